//! What survives a restart. The app reads and writes the file; missing, unknown or wrong fields cost only themselves.

use super::draft::Draft;
use super::history::PromptPair;
use crate::base::{Lang, ModelChoice};
use crate::base::choice::MemoryLimits;
use serde::{Deserialize, Serialize};

/// The window's colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    #[default]
    System,
    Dark,
    Light,
}

/// Sizes in points and folds of the panels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Panels {
    pub left_width: f32,
    pub strip_width: f32,
    pub band_height: f32,
    pub strip_open: bool,
    pub band_open: bool,
    pub advanced_open: bool,
}

impl Default for Panels {
    fn default() -> Self {
        Panels {
            left_width: 344.0,
            strip_width: 168.0,
            band_height: 128.0,
            strip_open: true,
            band_open: true,
            advanced_open: false,
        }
    }
}

/// All that is kept between runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preferences {
    pub draft: Draft,
    /// `None` follows the system.
    pub lang: Option<Lang>,
    pub theme: Theme,
    pub limits: MemoryLimits,
    /// Newest first.
    pub recent_models: Vec<ModelChoice>,
    /// Oldest first.
    pub history: Vec<PromptPair>,
    pub panels: Panels,
    pub notify_when_done: bool,
}

impl Default for Preferences {
    fn default() -> Self {
        Preferences {
            draft: Draft::default(),
            lang: None,
            theme: Theme::System,
            limits: MemoryLimits::default(),
            recent_models: Vec::new(),
            history: Vec::new(),
            panels: Panels::default(),
            notify_when_done: true,
        }
    }
}
