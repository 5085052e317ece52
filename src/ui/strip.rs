//! The right strip: finished pictures, newest on top, each in its own shape.

use super::fonts::Icon;
use super::theme::{Palette, space};
use super::view_state::ViewState;
use super::widgets::{caption, text_button, thumbnail};
use crate::studio::{Action, Canvas, Finished, Studio};
use crate::text::{figures, reasons, window as w};
use egui::{Frame, Margin, RichText, ScrollArea, Ui, Vec2};

/// The tallest a thumbnail gets, in points.
const TALLEST: f32 = 260.0;

/// The whole strip, with a scroll of its own.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let lang = studio.lang();
    let mut actions = Vec::new();
    // As wide as it was made, whatever is in it.
    ui.take_available_width();
    Frame::new().inner_margin(Margin { left: 10, right: 10, top: 8, bottom: 6 }).show(ui, |ui| {
        let ink = Palette::of(ui).quiet;
        super::widgets::elided(ui, RichText::new(w::FINISHED.get(lang)).color(ink));
    });
    if studio.shots().newest().is_none() {
        Frame::new().inner_margin(Margin::symmetric(10, 0)).show(ui, |ui| caption(ui, w::FINISHED_NONE.get(lang)));
        return actions;
    }
    let shown = match studio.canvas() {
        Canvas::Shot(finished) => Some(finished.id),
        _ => None,
    };
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        Frame::new().inner_margin(Margin { left: 10, right: 12, top: 2, bottom: 10 }).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = space::S;
            for finished in studio.shots().iter() {
                one(ui, studio, view, finished, shown == Some(finished.id), &mut actions);
            }
        });
    });
    actions
}

fn one(
    ui: &mut Ui,
    studio: &Studio,
    view: &mut ViewState,
    finished: &Finished,
    chosen: bool,
    actions: &mut Vec<Action>,
) {
    let lang = studio.lang();
    let shot = &finished.shot;
    let size = Vec2::new(shot.image.width() as f32, shot.image.height() as f32);
    // Pictures out of sight need no texture yet.
    let scale = (ui.available_width() / size.x.max(1.0)).min(TALLEST / size.y.max(1.0));
    let place = egui::Rect::from_min_size(ui.cursor().min, Vec2::new(ui.available_width(), size.y * scale));
    let texture = if ui.is_rect_visible(place) {
        view.textures.thumb(ui.ctx(), finished.id, &shot.image)
    } else {
        Some(egui::TextureId::default())
    };
    let Some(texture) = texture else {
        // Its turn comes in a pass soon; the place is kept.
        ui.allocate_space(place.size());
        return;
    };
    let name = w::SHOT_NAME.with(lang, &[("seed", &shot.request.seed)]);
    let badge = finished.unsaved().then(|| w::NOT_SAVED.get(lang));
    let response = thumbnail(ui, texture, size, TALLEST, chosen, &name, badge);
    if response.clicked() {
        actions.push(Action::Select(Some(finished.id)));
    }
    // Onto the prompt: its settings.
    response.dnd_set_drag_payload(finished.id);
    response.context_menu(|ui| menu(ui, studio, finished, actions));
    response.on_hover_ui(|ui| {
        let took = figures::took(lang, shot.seconds);
        ui.label(w::SHOT_HOVER.with(lang, &[("seed", &shot.request.seed), ("time", &took)]));
        if let Some(why) = &shot.save_error {
            ui.label(RichText::new(reasons::reason(lang, why)).small().weak());
        }
    });
}

fn menu(ui: &mut Ui, studio: &Studio, finished: &Finished, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let id = finished.id;
    for (icon, words, action) in [
        (Icon::SlidersHorizontal, w::USE_SETTINGS, Action::UseSettings(id)),
        (Icon::Sprout, w::USE_SEED, Action::UseSeed(id)),
        (Icon::Save, w::SAVE_AS, Action::SaveAs(id)),
        (Icon::Copy, w::COPY, Action::CopyPicture(id)),
        (Icon::ClipboardList, w::COPY_SETTINGS, Action::CopyParameters(id)),
        (Icon::FolderOpen, w::OPEN_FOLDER, Action::OpenFolder(Some(id))),
        (Icon::Trash, w::REMOVE, Action::Remove(id)),
    ] {
        if text_button(ui, icon, words.get(lang)).clicked() {
            actions.push(action);
            ui.close();
        }
    }
}
