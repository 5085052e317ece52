//! Memory over time: a stack of areas that fills the card's total, the ribbon of stages beneath, lines and marks over it.
//!
//! The stack is one mesh of at most two triangles a layer and column, whatever the width, so drawing it costs the same at any
//! size. What is kept in the pools is hatched by a small repeating texture; what is unknown is left open and says so.

use crate::ui::fonts::{self, Icon};
use crate::ui::theme::{CAPTION, Palette, mix};
use egui::accesskit::Role;
use egui::epaint::{Vertex, WHITE_UV};
use egui::{
    Align2, Color32, CornerRadius, EventFilter, FontId, Key, Mesh, Modifiers, Painter, Pos2, Rect, Response, Sense,
    Shape, Stroke, StrokeKind, TextureId, Ui, WidgetInfo, pos2, vec2,
};

/// In use, pooled, context, others, and what is used but not told apart.
pub const LAYERS: usize = 5;
/// Height of the ribbon, and the air above it.
const RIBBON: f32 = 17.0;
const GAP: f32 = 3.0;
/// A tile of the hatching texture, in points.
pub const HATCH: f32 = 6.0;

/// What is drawn at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphColumn {
    /// In the gauge's seconds.
    pub at: f64,
    /// Each layer's share of the total, from the bottom; `None` where the total or the free part is unknown.
    pub layers: Option<[f32; LAYERS]>,
    /// Index into [`StackGraph::stages`].
    pub stage: usize,
}

/// A moment worth a line through the graph.
#[derive(Clone, Copy, Debug)]
pub struct GraphMark<'a> {
    pub at: f64,
    pub icon: Icon,
    pub name: &'a str,
}

/// One graph, ready to be drawn.
pub struct StackGraph<'a> {
    /// Oldest first.
    pub columns: &'a [GraphColumn],
    /// The moment at the right edge, and how many seconds lie between the edges.
    pub now: f64,
    pub span: f64,
    /// Share of the total at which a job stops, with its words.
    pub limit: (f32, &'a str),
    /// Share of the total that the next job is forecast to reach, with its words.
    pub forecast: Option<(f32, &'a str)>,
    pub marks: &'a [GraphMark<'a>],
    /// Colour and word of each stage; a stage without a word leaves the ribbon empty.
    pub stages: &'a [(Color32, &'a str)],
    pub unknown: &'a str,
    pub hatch: TextureId,
    /// The whole in words, for screen readers.
    pub name: &'a str,
}

impl StackGraph<'_> {
    /// Draws in `rect`. `cursor` is how many seconds back the person reads: by pointer, or by arrow keys with the focus.
    pub fn show(&self, ui: &mut Ui, rect: Rect, cursor: &mut Option<f64>) -> Response {
        let response = ui.interact(rect, ui.scope_id().with("stack graph"), Sense::click());
        let enabled = ui.is_enabled();
        response.widget_info(|| WidgetInfo::labeled(Role::Image, enabled, self.name));
        self.read_off(ui, &response, rect, cursor);
        if ui.is_rect_visible(rect) {
            let p = Palette::of(ui);
            let area = Rect::from_min_max(rect.min, pos2(rect.right(), rect.bottom() - RIBBON - GAP));
            let painter = ui.painter_at(rect.expand(1.0));
            painter.rect_filled(area, CornerRadius::same(2), p.ground);
            self.paint_stack(&painter, area, p);
            self.paint_lines(&painter, area, p);
            self.paint_marks(&painter, area, p);
            self.paint_ribbon(&painter, Rect::from_min_max(pos2(rect.left(), rect.bottom() - RIBBON), rect.max), p);
            if let Some(back) = *cursor {
                let x = self.x(self.now - back, area);
                painter.vline(x, rect.y_range(), Stroke::new(1.0, p.text));
            }
            if response.has_focus() {
                painter.rect_stroke(
                    rect,
                    CornerRadius::same(2),
                    ui.visuals().widgets.active.bg_stroke,
                    StrokeKind::Inside,
                );
            }
        }
        response
    }

    fn x(&self, at: f64, area: Rect) -> f32 {
        area.right() - ((self.now - at) / self.span.max(1e-3)) as f32 * area.width()
    }

    fn read_off(&self, ui: &Ui, response: &Response, rect: Rect, cursor: &mut Option<f64>) {
        if let Some(pointer) = response.hover_pos() {
            let share = ((rect.right() - pointer.x) / rect.width().max(1.0)).clamp(0.0, 1.0);
            *cursor = Some(f64::from(share) * self.span);
        } else if response.has_focus() {
            let keep = EventFilter { horizontal_arrows: true, ..EventFilter::default() };
            ui.memory_mut(|m| m.set_focus_lock_filter(response.id, keep));
            let step = self.span / 60.0;
            let back = cursor.unwrap_or(0.0);
            if ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::ArrowLeft)) {
                *cursor = Some((back + step).min(self.span));
            } else if ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::ArrowRight)) {
                *cursor = (back > step).then_some(back - step);
            }
        } else {
            *cursor = None;
        }
    }

    fn paint_stack(&self, painter: &Painter, area: Rect, p: &Palette) {
        let solid = [p.in_use, Color32::TRANSPARENT, p.context, p.others, mix(p.others, p.ground, 0.45)];
        let mut fill = Mesh::default();
        let mut hatch = Mesh::with_texture(self.hatch);
        let mut unknown = Mesh::with_texture(self.hatch);
        let mut top: Vec<Pos2> = Vec::with_capacity(self.columns.len());
        let mut over = false;
        for (index, pair) in self.columns.windows(2).enumerate() {
            let &[left, right] = pair else { continue };
            let (x0, x1) = (self.x(left.at, area).max(area.left()), self.x(right.at, area).max(area.left()));
            if x1 <= x0 {
                continue;
            }
            let (Some(a), Some(b)) = (left.layers, right.layers) else {
                tile(&mut unknown, [x0, x1], [area.bottom(); 2], [area.top(); 2], p.hairline);
                self.end_line(painter, &mut top, over, p);
                continue;
            };
            let (mut low, mut sum) = ([area.bottom(); 2], [0.0f32; 2]);
            for layer in 0..LAYERS {
                sum[0] += a[layer];
                sum[1] += b[layer];
                let high = sum.map(|share| area.bottom() - share.clamp(0.0, 1.0) * area.height());
                if layer == 1 {
                    quad(&mut fill, [x0, x1], low, high, p.in_use.gamma_multiply(0.22));
                    tile(&mut hatch, [x0, x1], low, high, p.in_use);
                } else {
                    quad(&mut fill, [x0, x1], low, high, solid[layer]);
                }
                low = high;
            }
            let now_over = sum[1] > self.limit.0;
            if top.is_empty() {
                top.push(pos2(x0, low[0]));
            } else if now_over != over {
                let last = top.last().copied();
                self.end_line(painter, &mut top, over, p);
                top.extend(last);
            }
            over = now_over;
            top.push(pos2(x1, low[1]));
            if index + 2 == self.columns.len() {
                self.end_line(painter, &mut top, over, p);
            }
        }
        painter.add(Shape::mesh(fill));
        painter.add(Shape::mesh(hatch));
        if unknown.indices.is_empty() {
            return;
        }
        painter.add(Shape::mesh(unknown));
        if self.columns.last().is_none_or(|c| c.layers.is_none()) {
            painter.text(area.center(), Align2::CENTER_CENTER, self.unknown, FontId::proportional(CAPTION), p.quiet);
        }
    }

    /// Draws the upper edge of the stack so far: in safelight where it lies over the limit.
    fn end_line(&self, painter: &Painter, points: &mut Vec<Pos2>, over: bool, p: &Palette) {
        if points.len() > 1 {
            let (width, color) = if over { (2.5, p.safelight) } else { (1.0, mix(p.quiet, p.ground, 0.35)) };
            painter.line(std::mem::take(points), Stroke::new(width, color));
        }
        points.clear();
    }

    fn paint_lines(&self, painter: &Painter, area: Rect, p: &Palette) {
        let font = FontId::proportional(10.0);
        let (share, words) = self.limit;
        let y = area.bottom() - share.clamp(0.0, 1.0) * area.height();
        dashes(painter, area, y, 5.0, Stroke::new(1.0, p.text));
        plate(painter, pos2(area.left() + 4.0, y + 1.0), Align2::LEFT_TOP, words, &font, p.text, p);
        if let Some((share, words)) = self.forecast {
            let y = area.bottom() - share.clamp(0.0, 1.0) * area.height();
            dashes(painter, area, y, 2.0, Stroke::new(1.0, p.tungsten));
            plate(painter, pos2(area.left() + 4.0, y - 1.0), Align2::LEFT_BOTTOM, words, &font, p.text, p);
        }
    }

    fn paint_marks(&self, painter: &Painter, area: Rect, p: &Palette) {
        for mark in self.marks {
            let x = self.x(mark.at, area);
            if x < area.left() + 8.0 {
                continue;
            }
            painter.vline(x, area.y_range(), Stroke::new(1.0, mix(p.quiet, p.ground, 0.3)));
            // Whole at the right edge too, where a mark is when it is new.
            let spot = pos2(x.min(area.right() - 8.0), area.top() + 9.0);
            let spot = Rect::from_center_size(spot, vec2(16.0, 16.0));
            painter.rect_filled(spot, CornerRadius::same(3), p.panel);
            painter.text(spot.center(), Align2::CENTER_CENTER, mark.icon.unicode(), fonts::icon_font(12.0), p.text);
        }
    }

    fn paint_ribbon(&self, painter: &Painter, area: Rect, p: &Palette) {
        painter.rect_filled(area, CornerRadius::same(2), p.ground);
        let mut run: Option<(f32, usize)> = None;
        let mut last = area.left();
        for column in self.columns {
            let x = self.x(column.at, area).max(area.left());
            match run {
                Some((_, stage)) if stage == column.stage => {}
                Some((from, stage)) => {
                    self.paint_run(painter, area, from, x, stage, p);
                    run = Some((x, column.stage));
                }
                None => run = Some((x, column.stage)),
            }
            last = x;
        }
        if let Some((from, stage)) = run {
            self.paint_run(painter, area, from, last, stage, p);
        }
    }

    fn paint_run(&self, painter: &Painter, area: Rect, from: f32, to: f32, stage: usize, p: &Palette) {
        let Some(&(color, words)) = self.stages.get(stage) else { return };
        if words.is_empty() || to - from < 1.0 {
            return;
        }
        let cell = Rect::from_min_max(pos2(from, area.top()), pos2(to - 0.5, area.bottom()));
        painter.rect_filled(cell, CornerRadius::same(2), mix(color, p.panel, 0.72));
        let edge = Rect::from_min_max(cell.min, pos2(cell.right(), cell.top() + 3.0));
        painter.rect_filled(edge, CornerRadius::same(1), color);
        let galley = painter.layout_no_wrap(words.to_owned(), FontId::proportional(10.0), p.text);
        if galley.size().x + 8.0 <= cell.width() {
            let at = pos2(cell.left() + 4.0, cell.center().y + 1.0 - galley.size().y / 2.0);
            painter.galley(at, galley, p.text);
        }
    }
}

/// Adds one layer of one column: two triangles between `low` and `high` at both sides.
fn quad(mesh: &mut Mesh, x: [f32; 2], low: [f32; 2], high: [f32; 2], color: Color32) {
    if color == Color32::TRANSPARENT || (low[0] - high[0] < 0.01 && low[1] - high[1] < 0.01) {
        return;
    }
    let first = mesh.vertices.len() as u32;
    for (x, y) in [(x[0], low[0]), (x[0], high[0]), (x[1], low[1]), (x[1], high[1])] {
        mesh.vertices.push(Vertex { pos: pos2(x, y), uv: WHITE_UV, color });
    }
    mesh.add_triangle(first, first + 1, first + 2);
    mesh.add_triangle(first + 1, first + 2, first + 3);
}

/// Like [`quad`], filled with the hatching, whose lines run on from one quad to the next.
fn tile(mesh: &mut Mesh, x: [f32; 2], low: [f32; 2], high: [f32; 2], color: Color32) {
    let first = mesh.vertices.len();
    quad(mesh, x, low, high, color);
    for vertex in mesh.vertices.iter_mut().skip(first) {
        vertex.uv = (vertex.pos.to_vec2() / HATCH).to_pos2();
    }
}

fn dashes(painter: &Painter, area: Rect, y: f32, dash: f32, stroke: Stroke) {
    painter.extend(Shape::dashed_line(&[pos2(area.left(), y), pos2(area.right(), y)], stroke, dash, dash));
}

/// Small words on a plate of their own, so that they stay readable over any layer.
fn plate(painter: &Painter, at: Pos2, align: Align2, words: &str, font: &FontId, ink: Color32, p: &Palette) {
    if words.is_empty() {
        return;
    }
    let galley = painter.layout_no_wrap(words.to_owned(), font.clone(), ink);
    let rect = align.anchor_size(at, galley.size() + vec2(6.0, 2.0));
    painter.rect_filled(rect, CornerRadius::same(2), p.panel.gamma_multiply(0.85));
    painter.galley(rect.min + vec2(3.0, 1.0), galley, ink);
}
