//! What survives a restart. The app reads and writes the file; missing, unknown or wrong fields cost only themselves.

use super::draft::Draft;
use super::history::PromptPair;
use crate::base::choice::MemoryLimits;
use crate::base::{Lang, ModelChoice, VaeChoice};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

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

impl Preferences {
    /// Models remembered.
    pub const RECENT: usize = 12;

    /// Reads what [`Preferences::write`] made, or an older or newer version of the program, or a hand. Every field that
    /// can be read is taken; the others have their defaults. What is no JSON at all gives the defaults.
    pub fn read(text: &str) -> Self {
        let mut kept = Preferences::default();
        let Ok(given) = serde_json::from_str::<Value>(text) else { return kept };
        let Ok(mut whole) = serde_json::to_value(&kept) else { return kept };
        for path in leaves(&whole, &given) {
            let Some(value) = given.pointer(&path) else { continue };
            let Some(slot) = whole.pointer_mut(&path) else { continue };
            let old = std::mem::replace(slot, value.clone());
            match serde_json::from_value(whole.clone()) {
                Ok(read) => kept = read,
                // This one field does not hold: its default stays.
                Err(_) => {
                    if let Some(slot) = whole.pointer_mut(&path) {
                        *slot = old;
                    }
                }
            }
        }
        kept.recent_models.truncate(Self::RECENT);
        kept
    }

    /// As JSON, for a person to look at too. JSON is text, and a file's name need not be: one that is not is forgotten,
    /// rather than everything else with it.
    pub fn write(&self) -> String {
        let is_text = |path: &Path| path.to_str().is_some();
        let lasts = |model: &ModelChoice| !matches!(model, ModelChoice::Path(path) if !is_text(path));
        let mut kept = self.clone();
        kept.draft.model = kept.draft.model.filter(lasts);
        kept.recent_models.retain(lasts);
        if matches!(&kept.draft.vae, VaeChoice::Path(path) if !is_text(path)) {
            kept.draft.vae = VaeChoice::Automatic;
        }
        kept.draft.folder = kept.draft.folder.filter(|path| is_text(path));
        // Plain data with string keys and paths that are text: writing it cannot fail.
        serde_json::to_string_pretty(&kept).unwrap_or_default()
    }
}

/// Pointers to the fields of `whole` that `given` has too, down to what is no table in both.
fn leaves(whole: &Value, given: &Value) -> Vec<String> {
    let (Value::Object(whole), Value::Object(given)) = (whole, given) else { return vec![] };
    let mut found = Vec::new();
    for (key, value) in whole {
        let Some(other) = given.get(key) else { continue };
        if value.is_object() && other.is_object() {
            found.extend(leaves(value, other).into_iter().map(|path| format!("/{key}{path}")));
        } else {
            found.push(format!("/{key}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Size;
    use crate::studio::SeedChoice;

    fn other() -> Preferences {
        let mut kept = Preferences { lang: Some(Lang::Zh), theme: Theme::Light, ..Preferences::default() };
        kept.draft.prompt = "portrait, \u{4e2d}\"".into();
        kept.draft.seed = SeedChoice::Fixed(u64::MAX);
        kept.draft.size = Size::nearest(640, 960);
        kept.draft.model = Some(ModelChoice::Path("/m/x.safetensors".into()));
        kept.draft.vae = VaeChoice::Path("/m/v.safetensors".into());
        kept.limits.pause_at = 0.8;
        kept.panels.left_width = 400.0;
        kept.history.push(PromptPair { prompt: "a".into(), negative: "b".into() });
        kept.recent_models.push(ModelChoice::RandomSd15);
        kept
    }

    #[test]
    fn what_is_written_is_read_back() {
        for kept in [Preferences::default(), other()] {
            assert_eq!(Preferences::read(&kept.write()), kept);
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_name_that_is_not_text_costs_only_itself() {
        use std::os::unix::ffi::OsStrExt;
        let odd = || std::path::PathBuf::from(std::ffi::OsStr::from_bytes(b"/m/caf\xff"));
        let mut kept = other();
        kept.draft.model = Some(ModelChoice::Path(odd()));
        kept.draft.vae = VaeChoice::Path(odd());
        kept.recent_models.push(ModelChoice::Path(odd()));
        let read = Preferences::read(&kept.write());
        let draft = Draft { model: None, vae: VaeChoice::Automatic, ..other().draft };
        assert_eq!(read, Preferences { draft, ..other() });
    }

    #[test]
    fn a_wrong_or_missing_or_unknown_field_costs_only_itself() {
        let mut value = serde_json::to_value(other()).unwrap();
        value["theme"] = "sepia".into();
        value["draft"]["sampler"] = "a-sampler-of-next-year".into();
        value["draft"]["steps"] = (-3).into();
        value["draft"]["size"] = serde_json::json!([511, 3]);
        value["panels"] = 7.into();
        value["new"] = "?".into();
        value.as_object_mut().unwrap().remove("lang");
        let read = Preferences::read(&value.to_string());
        let expected = Preferences {
            lang: None,
            theme: Theme::System,
            panels: Panels::default(),
            draft: Draft { size: Size::default(), ..other().draft },
            ..other()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn rubbish_gives_the_defaults() {
        for text in ["", "null", "[]", "{", "7", "{\"draft\":null}", "\u{0}"] {
            assert_eq!(Preferences::read(text), Preferences::default(), "{text}");
        }
    }
}
