//! One line of a setting: its label at the left, its value at the right. A double-click on the label resets the value.

use super::trailing;
use crate::ui::theme::{CONTROL, Palette, space};
use egui::{Align, Label, Layout, Response, RichText, Sense, TextWrapMode, Ui, UiBuilder, Vec2};

/// What a person did with a row.
pub struct Row<R> {
    pub inner: R,
    /// The label was double-clicked: put the value back.
    pub reset: bool,
}

/// Draws `label` at the left and what `value` adds at the right, in one line of a control's height.
///
/// Every input that `value` adds and that has no name takes the label for its name. `differs` marks a value that is not the
/// default with a dot; `hint` is shown over the label.
pub fn row<R>(ui: &mut Ui, label: &str, hint: &str, differs: bool, value: impl FnOnce(&mut Ui) -> R) -> Row<R> {
    let (_, rect) = ui.allocate_space(Vec2::new(ui.available_width(), CONTROL));
    let mut line = ui.new_child(UiBuilder::new().max_rect(rect).layout(Layout::left_to_right(Align::Center)));
    line.spacing_mut().item_spacing.x = space::S;
    let named = label_of(&mut line, label, hint, differs);
    let inner = trailing(&mut line, label, |ui| ui.label_inputs_by(named.id, value));
    Row { inner, reset: named.double_clicked() }
}

fn label_of(ui: &mut Ui, label: &str, hint: &str, differs: bool) -> Response {
    let p = Palette::of(ui);
    // Clickable with the pointer, yet no stop for the Tab key: the value itself is the stop.
    let text = RichText::new(label).color(if differs { p.text } else { p.quiet });
    let response = ui.add(Label::new(text).wrap_mode(TextWrapMode::Extend).sense(Sense::CLICK));
    if hint.is_empty() { response } else { response.on_hover_text(hint) }
}

/// A quiet line of small text.
pub fn caption(ui: &mut Ui, text: impl Into<String>) -> Response {
    let color = Palette::of(ui).quiet;
    ui.add(Label::new(RichText::new(text).small().color(color)).wrap_mode(TextWrapMode::Wrap))
}

/// One line of text that ends in "…" where it does not fit; the whole is shown on hover.
pub fn elided(ui: &mut Ui, text: impl Into<RichText>) -> Response {
    ui.add(Label::new(text.into()).wrap_mode(TextWrapMode::Truncate))
}

/// The air between groups of settings.
pub fn section(ui: &mut Ui) {
    ui.add_space(space::XS);
}
