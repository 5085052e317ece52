//! The thin line of steps along the lower edge of the canvas.

use crate::ui::theme::Palette;
use egui::accesskit::Role;
use egui::{CornerRadius, Rect, Sense, Ui, WidgetInfo, pos2};

/// Draws `done` of `of` steps in `rect`. Up to a step every four points they are apart, beyond that one bar.
pub fn step_line(ui: &mut Ui, rect: Rect, done: u32, of: u32, name: &str) {
    let response = ui.interact(rect, ui.scope_id().with("step line"), Sense::hover());
    let enabled = ui.is_enabled();
    response.widget_info(|| WidgetInfo::labeled(Role::ProgressIndicator, enabled, name));
    let p = Palette::of(ui);
    let painter = ui.painter();
    let of = of.max(1);
    let width = rect.width() / of as f32;
    if width >= 4.0 {
        for step in 0..of {
            let left = rect.left() + width * step as f32;
            let cell = Rect::from_min_max(pos2(left, rect.top()), pos2(left + width - 1.0, rect.bottom()));
            let color = if step < done { p.tungsten } else { p.hairline };
            painter.rect_filled(cell, CornerRadius::same(1), color);
        }
    } else {
        painter.rect_filled(rect, CornerRadius::same(1), p.hairline);
        let share = (done as f32 / of as f32).clamp(0.0, 1.0);
        let filled = Rect::from_min_size(rect.min, egui::vec2(rect.width() * share, rect.height()));
        painter.rect_filled(filled, CornerRadius::same(1), p.tungsten);
    }
}
