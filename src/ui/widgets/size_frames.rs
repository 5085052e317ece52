//! Size presets as small frames in their true shape.

use crate::base::Size;
use crate::ui::theme::Palette;
use egui::accesskit::Role;
use egui::{CornerRadius, FontId, Galley, Rect, Response, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};
use std::sync::Arc;

/// Side of the square that the largest preset fills.
const LARGEST: f32 = 30.0;
const HEIGHT: f32 = 52.0;
const FIGURES: f32 = 10.5;

/// Draws the presets side by side over the whole width and returns the one that was pressed.
///
/// The longest side of any preset takes [`LARGEST`] points; all share one scale, so that 1024×1024 looks twice as wide as
/// 512×512. A cell is as wide as its figures; what is left is shared among all.
pub fn size_frames(ui: &mut Ui, presets: &[Size], chosen: Size) -> Option<Size> {
    let longest = presets.iter().map(|s| s.width().max(s.height())).max().unwrap_or(1) as f32;
    let gap = 2.0;
    let font = FontId::proportional(FIGURES);
    let named = |ui: &Ui, size: Size| {
        let name = format!("{}×{}", size.width(), size.height());
        ui.painter().layout_no_wrap(name, font.clone(), egui::Color32::PLACEHOLDER)
    };
    let needed: f32 = presets.iter().map(|size| named(ui, *size).size().x + gap).sum();
    let share = ((ui.available_width() - needed) / presets.len().max(1) as f32).max(0.0).floor();
    let mut pressed = None;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = gap;
        for &size in presets {
            let figures = named(ui, size);
            let cell = Vec2::new((figures.size().x + share).floor(), HEIGHT);
            if frame(ui, size, size == chosen, cell, LARGEST / longest, figures).clicked() {
                pressed = Some(size);
            }
        }
    });
    pressed
}

fn frame(ui: &mut Ui, size: Size, chosen: bool, cell: Vec2, scale: f32, figures: Arc<Galley>) -> Response {
    let (rect, response) = ui.allocate_exact_size(cell, Sense::click());
    let name = figures.text().to_owned();
    let enabled = ui.is_enabled();
    response.widget_info(|| WidgetInfo::selected(Role::RadioButton, enabled, chosen, &name));
    if ui.is_rect_visible(rect) {
        let p = Palette::of(ui);
        let visuals = ui.style().interact(&response);
        let ground = if chosen {
            p.chosen
        } else if response.hovered() {
            p.lifted
        } else {
            p.panel
        };
        let ring = if response.has_focus() { visuals.bg_stroke } else { Stroke::NONE };
        let painter = ui.painter();
        painter.rect(rect, visuals.corner_radius, ground, ring, StrokeKind::Inside);
        let ink = if chosen || response.hovered() { p.text } else { p.quiet };
        // The frames stand on one line, as on a shelf.
        let side = Vec2::new(size.width() as f32, size.height() as f32) * scale;
        let shelf = rect.bottom() - 16.0;
        let shape = Rect::from_min_size(egui::pos2(rect.center().x - side.x / 2.0, shelf - side.y), side);
        let line = Stroke::new(if chosen { 1.75 } else { 1.0 }, ink);
        painter.rect_stroke(shape, CornerRadius::same(1), line, StrokeKind::Inside);
        let below = egui::pos2(rect.center().x, rect.bottom() - 8.0) - figures.size() / 2.0;
        painter.galley(below, figures, ink);
    }
    response.on_hover_text(name)
}
