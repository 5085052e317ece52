//! Keys that work anywhere in the window. Read before the panels, so that no field takes them first.

use super::view_state::Field;
use crate::base::emphasis::{self, WEIGHT_STEP};
use crate::studio::{Action, Canvas, Studio};
use egui::{Key, Modifiers, Popup, Ui};

/// Ctrl+Enter generates, Esc cancels, Ctrl+S saves the shown picture.
pub fn read(ui: &mut Ui, studio: &Studio) -> Vec<Action> {
    let mut actions = Vec::new();
    let pressed = |modifiers: Modifiers, key: Key| ui.input_mut(|i| i.consume_key(modifiers, key));
    if pressed(Modifiers::COMMAND, Key::Enter) && studio.can_generate() {
        actions.push(Action::Generate);
    }
    if pressed(Modifiers::COMMAND, Key::S)
        && let Canvas::Shot(finished) = studio.canvas()
    {
        actions.push(Action::SaveAs(finished.id));
    }
    // An open menu closes first.
    if studio.running().is_some() && !Popup::is_any_open(ui.ctx()) && pressed(Modifiers::NONE, Key::Escape) {
        actions.push(Action::Cancel);
    }
    actions
}

/// How much Ctrl+Up and Ctrl+Down ask to change the weight by, in the field that has the focus; 0 where they were not pressed.
pub fn weight_keys(ui: &mut Ui) -> f32 {
    let pressed = |key: Key| ui.input_mut(|i| i.count_and_consume_key(Modifiers::COMMAND, key)) as f32;
    (pressed(Key::ArrowUp) - pressed(Key::ArrowDown)) * WEIGHT_STEP
}

/// Changes the weight of the field's selection, or of the word at its cursor. Whether the text changed.
pub fn weigh(field: &mut Field, delta: f32) -> bool {
    let Some(edited) = emphasis::adjust_weight(&field.text, field.selection.clone(), delta) else { return false };
    field.text = edited.text;
    field.select_next = Some(edited.selection.clone());
    field.selection = edited.selection;
    true
}
