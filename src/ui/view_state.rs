//! What the window remembers between passes and the studio need not know: text being typed, how the picture is looked at,
//! the GPU's textures. Nothing here survives a restart.

use super::textures::Textures;
use super::widgets::{GraphColumn, View};
use crate::studio::{SeedChoice, ShotId, Studio, Theme};
use egui::Id;
use std::ops::Range;

/// A text field's own copy of a text of the studio.
#[derive(Debug, Default)]
pub struct Field {
    pub text: String,
    /// Set while the field has the keyboard's focus.
    pub id: Option<Id>,
    /// In characters; where the cursor is or was last.
    pub selection: Range<usize>,
    /// Select this when the field is drawn next.
    pub select_next: Option<Range<usize>>,
    /// What stood here before it was changed from elsewhere, for Ctrl+Z.
    pub replaced: Option<String>,
    /// Whether the field had the focus when it was last drawn.
    pub focused: bool,
}

impl Field {
    /// Takes the studio's text where it differs: the person's last edit is there already, so it was changed elsewhere.
    pub fn follow(&mut self, text: &str) {
        if self.text != text {
            self.replaced = Some(std::mem::replace(&mut self.text, text.to_owned()));
            let end = self.text.chars().count();
            self.selection = end..end;
        }
    }
}

/// What the canvas showed last, to know when to fade and when to go back to the whole picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    #[default]
    Nothing,
    Preview,
    Shot(ShotId),
}

/// The window's own memory. Made once by the application and handed to [`super::show`] each pass.
#[derive(Default)]
pub struct ViewState {
    pub textures: Textures,
    pub prompt: Field,
    pub negative: Field,
    pub pattern: Field,
    /// The seed as it is typed, and the choice it was last made from.
    pub(crate) seed: (String, Option<SeedChoice>),
    pub view: View,
    /// Screen pixels a picture pixel, as last drawn.
    pub(crate) scale: f32,
    pub(crate) shown: Shown,
    /// When the shown picture took the preview's place, in egui's seconds.
    pub(crate) fade_since: Option<f64>,
    /// The graph's columns, in a buffer that is used again.
    pub(crate) columns: Vec<GraphColumn>,
    /// How many seconds back the graph is read.
    pub(crate) cursor: Option<f64>,
    pub(crate) details_open: bool,
    /// Notices that go by themselves, and when each was first drawn, in egui's seconds.
    pub(crate) noticed: Vec<(u64, f64)>,
    /// Whether the window was drawn before.
    pub(crate) greeted: bool,
    /// What egui was last told of the theme.
    pub(crate) theme: Option<Theme>,
}

impl ViewState {
    /// Once a pass, before the panels.
    pub(crate) fn begin(&mut self, studio: &Studio) {
        let draft = studio.draft();
        self.prompt.follow(&draft.prompt);
        self.negative.follow(&draft.negative);
        self.pattern.follow(&draft.pattern);
        if self.seed.1 != Some(draft.seed) {
            self.seed = (draft.seed.to_string(), Some(draft.seed));
        }
        if studio.trouble().is_none() {
            self.details_open = false;
        }
        self.textures.begin(studio.shots());
        if studio.preview().is_none() && self.shown != Shown::Preview && self.fade_since.is_none() {
            self.textures.forget_preview();
        }
    }
}
