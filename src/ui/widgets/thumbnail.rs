//! One finished picture of the strip, in its own shape.

use crate::ui::theme::Palette;
use egui::accesskit::Role;
use egui::{Color32, CornerRadius, Rect, Response, Sense, Stroke, StrokeKind, TextureId, Ui, Vec2, WidgetInfo, pos2};

/// Draws the picture over the whole width, at most `tallest` high, and keeps its shape.
///
/// `badge` is a short word over the corner ("not saved"); a picture has none when all is well.
pub fn thumbnail(
    ui: &mut Ui,
    texture: TextureId,
    size: Vec2,
    tallest: f32,
    chosen: bool,
    name: &str,
    badge: Option<&str>,
) -> Response {
    let width = ui.available_width();
    let scale = (width / size.x.max(1.0)).min(tallest / size.y.max(1.0));
    let drawn = size * scale;
    let (cell, response) = ui.allocate_exact_size(Vec2::new(width, drawn.y), Sense::click_and_drag());
    let enabled = ui.is_enabled();
    response.widget_info(|| WidgetInfo::selected(Role::Button, enabled, chosen, name));
    if ui.is_rect_visible(cell) {
        let p = Palette::of(ui);
        let rect = Rect::from_center_size(cell.center(), drawn);
        let painter = ui.painter();
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        painter.image(texture, rect, whole, Color32::WHITE);
        let ring = if response.has_focus() {
            Stroke::new(2.5, p.text)
        } else if chosen {
            Stroke::new(2.0, p.tungsten)
        } else if response.hovered() {
            Stroke::new(1.0, p.quiet)
        } else {
            Stroke::NONE
        };
        painter.rect_stroke(rect, CornerRadius::same(2), ring, StrokeKind::Outside);
        if let Some(words) = badge {
            let galley = painter.layout_no_wrap(words.to_owned(), egui::FontId::proportional(11.0), p.text);
            let plate = Rect::from_min_size(
                pos2(rect.left() + 4.0, rect.bottom() - galley.size().y - 8.0),
                galley.size() + Vec2::new(8.0, 4.0),
            );
            painter.rect_filled(plate, CornerRadius::same(3), p.panel.gamma_multiply(0.92));
            painter.galley(plate.min + Vec2::new(4.0, 2.0), galley, p.text);
        }
    }
    response
}
