//! Keys that work anywhere in the window. Read before the panels, so that no field takes them first.

use super::view_state::{Field, ViewState};
use crate::base::emphasis::{self, WEIGHT_STEP};
use crate::studio::{Action, Canvas, Setting, Studio};
use egui::{Key, Modifiers, Popup, Ui};

/// Ctrl+Enter generates, Esc cancels, Ctrl+S saves the shown picture, Ctrl+Up and Ctrl+Down change a weight.
pub fn read(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
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
    for (key, delta) in [(Key::ArrowUp, WEIGHT_STEP), (Key::ArrowDown, -WEIGHT_STEP)] {
        if !view.prompt.focused && !view.negative.focused {
            break;
        }
        if !pressed(Modifiers::COMMAND, key) {
            continue;
        }
        if view.prompt.focused && weigh(&mut view.prompt, delta) {
            actions.push(Action::Set(Setting::Prompt(view.prompt.text.clone())));
        } else if view.negative.focused && weigh(&mut view.negative, delta) {
            actions.push(Action::Set(Setting::Negative(view.negative.text.clone())));
        }
    }
    actions
}

fn weigh(field: &mut Field, delta: f32) -> bool {
    let Some(edited) = emphasis::adjust_weight(&field.text, field.selection.clone(), delta) else { return false };
    field.text = edited.text;
    field.select_next = Some(edited.selection.clone());
    field.selection = edited.selection;
    true
}
