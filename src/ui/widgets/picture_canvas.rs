//! A picture on a surface: fitted, at 100 %, zoomed at the pointer, moved.
//!
//! [`View`] is the person's choice and lives in the view state; the geometry below is pure and tested without a window.

use egui::accesskit::Role;
use egui::{
    Color32, CursorIcon, EventFilter, Key, Modifiers, PointerButton, Rect, Response, Sense, TextureId, Ui, Vec2,
    WidgetInfo, pos2,
};

/// The least and the most screen pixels that a picture's pixel takes.
const ZOOM: std::ops::RangeInclusive<f32> = 0.05..=16.0;
/// What one press of + or − does.
const KEY_ZOOM: f32 = 1.25;
/// Points of scrolling that double the size.
const SCROLL_PER_DOUBLING: f32 = 240.0;
/// So much of the picture always stays on the surface.
const HOLD: f32 = 48.0;

/// How a picture is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// Screen pixels a picture pixel; `None` fits the whole picture in.
    zoom: Option<f32>,
    /// From the middle of the surface to the middle of the picture, in points.
    offset: Vec2,
}

impl View {
    pub fn fits(&self) -> bool {
        self.zoom.is_none()
    }

    pub fn fit(&mut self) {
        *self = View::default();
    }

    /// One picture pixel on one screen pixel.
    pub fn actual_size(&mut self) {
        *self = View { zoom: Some(1.0), offset: Vec2::ZERO };
    }

    /// Screen pixels a picture pixel, for a picture of `size` pixels on `surface` points.
    pub fn scale(&self, size: Vec2, surface: Vec2, pixels_per_point: f32) -> f32 {
        self.zoom.unwrap_or_else(|| {
            let room = surface * pixels_per_point;
            (room.x / size.x.max(1.0)).min(room.y / size.y.max(1.0)).clamp(*ZOOM.start(), *ZOOM.end())
        })
    }

    /// Where the picture lies.
    pub fn rect(&self, size: Vec2, surface: Rect, pixels_per_point: f32) -> Rect {
        let scale = self.scale(size, surface.size(), pixels_per_point) / pixels_per_point;
        Rect::from_center_size(surface.center() + self.offset, size * scale)
    }

    /// Zooms by `factor` so that what lies `at` (from the middle of the surface) stays there.
    fn zoom_by(&mut self, factor: f32, at: Vec2, size: Vec2, surface: Vec2, pixels_per_point: f32) {
        let old = self.scale(size, surface, pixels_per_point);
        let new = (old * factor).clamp(*ZOOM.start(), *ZOOM.end());
        self.offset = at - (at - self.offset) * (new / old);
        self.zoom = Some(new);
        self.keep_in_sight(size, surface, pixels_per_point);
    }

    fn pan(&mut self, by: Vec2, size: Vec2, surface: Vec2, pixels_per_point: f32) {
        if !self.fits() {
            self.offset += by;
            self.keep_in_sight(size, surface, pixels_per_point);
        }
    }

    fn keep_in_sight(&mut self, size: Vec2, surface: Vec2, pixels_per_point: f32) {
        let scale = self.scale(size, surface, pixels_per_point) / pixels_per_point;
        let most = ((size * scale + surface) / 2.0 - Vec2::splat(HOLD)).max(Vec2::ZERO);
        self.offset = self.offset.clamp(-most, most);
    }
}

/// What is drawn: up to two layers, the lower one for a fade.
pub struct PictureCanvas<'a> {
    pub texture: TextureId,
    /// Of the finished picture in pixels, whatever the texture's size: so nothing jumps when the preview gives way to it.
    pub size: Vec2,
    /// Drawn beneath, with the picture at this opacity over it.
    pub fading_from: Option<(TextureId, f32)>,
    /// Darkens the picture: 1 leaves it, 0 is black.
    pub light: f32,
    pub name: &'a str,
}

impl PictureCanvas<'_> {
    /// Draws over `surface` and lets the person look around.
    ///
    /// Wheel and pinch zoom at the pointer; dragging with space held, with the middle button, or plainly while zoomed
    /// moves; a double-click goes to 100 % and back. With the focus: + − 0 1 and the arrow keys.
    pub fn show(&self, ui: &mut Ui, surface: Rect, view: &mut View) -> Response {
        let response = ui.interact(surface, ui.scope_id().with("picture"), Sense::click_and_drag());
        let enabled = ui.is_enabled();
        response.widget_info(|| WidgetInfo::labeled(Role::Image, enabled, self.name));
        let pixels = ui.pixels_per_point();
        self.pointer(ui, &response, surface, view, pixels);
        if response.has_focus() {
            self.keys(ui, &response, surface, view, pixels);
        }
        self.paint(ui, &response, surface, view, pixels);
        response
    }

    fn pointer(&self, ui: &Ui, response: &Response, surface: Rect, view: &mut View, pixels: f32) {
        if response.double_clicked() {
            if view.fits() { view.actual_size() } else { view.fit() }
        }
        if let Some(pointer) = response.hover_pos() {
            let (scroll, pinch) = ui.input(|i| (i.smooth_scroll_delta().y, i.zoom_delta()));
            let factor = pinch * (scroll / SCROLL_PER_DOUBLING).exp2();
            if (factor - 1.0).abs() > 1e-4 {
                view.zoom_by(factor, pointer - surface.center(), self.size, surface.size(), pixels);
            }
            if ui.input(|i| i.key_down(Key::Space)) && !view.fits() {
                ui.ctx().set_cursor_icon(CursorIcon::Grab);
            }
        }
        if response.dragged_by(PointerButton::Primary) || response.dragged_by(PointerButton::Middle) {
            view.pan(response.drag_delta(), self.size, surface.size(), pixels);
            if !view.fits() {
                ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            }
        }
    }

    fn keys(&self, ui: &Ui, response: &Response, surface: Rect, view: &mut View, pixels: f32) {
        // The arrows move the picture instead of the focus.
        let keep = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|m| m.set_focus_lock_filter(response.id, keep));
        let pressed = |key: Key| ui.input_mut(|i| i.consume_key(Modifiers::NONE, key));
        let mut zoom = 1.0;
        if pressed(Key::Plus) || pressed(Key::Equals) {
            zoom = KEY_ZOOM;
        }
        if pressed(Key::Minus) {
            zoom = 1.0 / KEY_ZOOM;
        }
        if zoom != 1.0 {
            view.zoom_by(zoom, Vec2::ZERO, self.size, surface.size(), pixels);
        }
        if pressed(Key::Num0) {
            view.fit();
        }
        if pressed(Key::Num1) {
            view.actual_size();
        }
        let step = 48.0;
        for (key, by) in [
            (Key::ArrowLeft, Vec2::new(step, 0.0)),
            (Key::ArrowRight, Vec2::new(-step, 0.0)),
            (Key::ArrowUp, Vec2::new(0.0, step)),
            (Key::ArrowDown, Vec2::new(0.0, -step)),
        ] {
            if pressed(key) {
                view.pan(by, self.size, surface.size(), pixels);
            }
        }
    }

    fn paint(&self, ui: &Ui, response: &Response, surface: Rect, view: &View, pixels: f32) {
        let painter = ui.painter_at(surface.expand(2.0));
        let rect = view.rect(self.size, surface, pixels);
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        let lit = Color32::from_gray((self.light.clamp(0.0, 1.0) * 255.0) as u8);
        let mut opacity = 1.0;
        if let Some((below, share)) = self.fading_from {
            painter.image(below, rect, whole, lit);
            opacity = share.clamp(0.0, 1.0);
        }
        painter.image(self.texture, rect, whole, lit.gamma_multiply(opacity));
        if response.has_focus() {
            let ring = ui.visuals().widgets.active.bg_stroke;
            let around = rect.intersect(surface);
            painter.rect_stroke(around, egui::CornerRadius::ZERO, ring, egui::StrokeKind::Outside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Vec2 = Vec2::new(512.0, 768.0);

    fn surface() -> Rect {
        Rect::from_min_size(pos2(100.0, 50.0), Vec2::new(600.0, 400.0))
    }

    #[test]
    fn fits_whole_and_in_the_middle() {
        let rect = View::default().rect(SIZE, surface(), 1.0);
        assert!((rect.height() - 400.0).abs() < 0.01 && surface().contains_rect(rect));
        assert_eq!(rect.center(), surface().center());
        // Twice the pixels a point: the same room on screen.
        let fine = View::default().rect(SIZE, surface(), 2.0);
        assert!((fine.height() - 400.0).abs() < 0.01);
    }

    #[test]
    fn actual_size_is_one_screen_pixel_each() {
        let mut view = View::default();
        view.actual_size();
        assert_eq!(view.rect(SIZE, surface(), 2.0).size(), SIZE / 2.0);
    }

    #[test]
    fn zooming_keeps_what_is_under_the_pointer() {
        let mut view = View::default();
        let at = Vec2::new(40.0, -30.0);
        let before = view.rect(SIZE, surface(), 1.0);
        let seen = (surface().center() + at - before.min) / before.size();
        view.zoom_by(1.7, at, SIZE, surface().size(), 1.0);
        let after = view.rect(SIZE, surface(), 1.0);
        let now = (surface().center() + at - after.min) / after.size();
        assert!((seen - now).length() < 1e-3, "{seen:?} {now:?}");
    }

    #[test]
    fn the_picture_cannot_be_lost() {
        let mut view = View::default();
        view.actual_size();
        view.pan(Vec2::splat(1e6), SIZE, surface().size(), 1.0);
        assert!(view.rect(SIZE, surface(), 1.0).intersects(surface()));
        view.zoom_by(1e9, Vec2::ZERO, SIZE, surface().size(), 1.0);
        assert!(view.rect(SIZE, surface(), 1.0).is_finite());
        view.zoom_by(0.0, Vec2::ZERO, SIZE, surface().size(), 1.0);
        assert!(view.rect(SIZE, surface(), 1.0).width() > 0.0);
    }
}
