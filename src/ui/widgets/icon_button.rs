//! Buttons of one icon, and of an icon with a word. An icon alone always has a name: for the screen reader and on hover.

use crate::ui::fonts::{self, Icon};
use crate::ui::theme::{self, CONTROL};
use egui::{Button, Response, RichText, Ui, Vec2};

/// A square button without a frame until it is pointed at.
pub fn icon_button(ui: &mut Ui, icon: Icon, name: &str) -> Response {
    icon_toggle(ui, icon, name, false)
}

/// Like [`icon_button`], shown pressed in while `on`.
pub fn icon_toggle(ui: &mut Ui, icon: Icon, name: &str, on: bool) -> Response {
    let response = ui
        .scope(|ui| {
            theme::make_quiet(ui);
            ui.spacing_mut().button_padding = Vec2::ZERO;
            ui.add(Button::selectable(on, fonts::icon(icon)).frame(true).min_size(Vec2::splat(CONTROL)))
        })
        .inner;
    response.accessible_name(name).on_hover_text(name).on_disabled_hover_text(name)
}

/// A button of an icon and a word; its name is the word alone.
pub fn text_button(ui: &mut Ui, icon: Icon, words: impl Into<RichText>) -> Response {
    let words: RichText = words.into();
    let name = words.text().to_owned();
    ui.add(Button::new((fonts::icon(icon), words))).accessible_name(name)
}
