//! The canvas before there is a picture: what to open, or that all is ready.

use super::fonts::{self, Icon};
use super::theme::{self, Palette, space};
use super::widgets::text_button;
use crate::base::ModelChoice;
use crate::studio::{Action, Studio};
use crate::text::window as w;
use egui::{RichText, Ui, UiBuilder, Vec2};

/// In the middle of the canvas.
pub fn show(ui: &mut Ui, studio: &Studio, surface: egui::Rect) -> Vec<Action> {
    let lang = studio.lang();
    let p = Palette::of(ui);
    let mut actions = Vec::new();
    let missing = studio.draft().model.is_none();
    let (icon, title, body) = match studio.draft().model {
        None => (Icon::FileBox, w::EMPTY_TITLE, w::EMPTY_BODY),
        Some(ModelChoice::Pocket) => (Icon::Aperture, w::READY_TITLE, w::READY_POCKET),
        Some(_) => (Icon::Aperture, w::READY_TITLE, w::READY_BODY),
    };
    let size = Vec2::new(380.0, if missing { 220.0 } else { 130.0 }).min(surface.size());
    let middle = egui::Rect::from_center_size(surface.center(), size);
    let mut ui = ui.new_child(UiBuilder::new().max_rect(middle));
    ui.vertical_centered(|ui| {
        ui.label(RichText::new(icon.unicode()).font(fonts::icon_font(36.0)).color(p.quiet));
        ui.add_space(space::XS);
        ui.label(RichText::new(title.get(lang)).heading().strong());
        ui.label(RichText::new(body.get(lang)).color(p.quiet));
        if missing {
            ui.add_space(space::S);
            ui.scope(|ui| {
                theme::make_primary(ui);
                if text_button(ui, Icon::FileBox, w::OPEN_CHECKPOINT.get(lang)).clicked() {
                    actions.push(Action::OpenModelFile);
                }
            });
            if text_button(ui, Icon::FolderOpen, w::OPEN_CHECKPOINT_FOLDER.get(lang)).clicked() {
                actions.push(Action::OpenModelFolder);
            }
        }
    });
    actions
}
