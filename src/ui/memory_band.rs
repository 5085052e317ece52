//! The band along the lower edge: memory over time, and every part of it in figures, now or at the moment pointed at.

use super::fonts::{self, Icon};
use super::theme::{CAPTION, Palette, mix, space};
use super::view_state::ViewState;
use super::widgets::{GraphColumn, GraphMark, StackGraph, elided};
use crate::base::{Bytes, Lang, MemoryReading};
use crate::studio::{Action, Forecast, MarkKind, Memory, Panels, Stage, Studio};
use crate::text::{figures, memory as m};
use egui::{Align, Color32, FontId, Layout, Rect, RichText, Sense, Ui, UiBuilder, Vec2, pos2};
use std::time::Duration;

/// Seconds between the graph's edges.
const SPAN: f64 = 180.0;
/// Seconds a column stands for: the graph has at most SPAN ÷ this of them.
const COLUMN: f64 = 1.0;
/// Width of the figures beside the graph, in points.
const FIGURES: f32 = 366.0;
/// Marks and lines drawn at once, at most.
const MARKS: usize = 24;

/// The open band.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let memory = studio.memory();
    let whole = ui.available_rect_before_wrap();
    let side = FIGURES.min(whole.width() * 0.45);
    let graph = Rect::from_min_max(whole.min, pos2(whole.right() - side - space::L, whole.bottom()));
    let beside = Rect::from_min_max(pos2(graph.right() + space::L, whole.top()), whole.max);
    collect(memory, &mut view.columns);
    draw(ui, studio, view, graph);
    let now = memory.latest().map_or(0.0, |reading| reading.at);
    let back = view.cursor.filter(|_| memory.latest().is_some());
    let reading = match back {
        Some(back) => nearest(memory, now - back),
        None => memory.latest(),
    };
    let mut beside = ui.new_child(UiBuilder::new().max_rect(beside));
    parts(&mut beside, studio, reading, back);
    ui.allocate_rect(whole, Sense::hover());
    Vec::new()
}

/// The folded band: one line of figures and the way to unfold it.
pub fn line(ui: &mut Ui, studio: &Studio) -> Vec<Action> {
    let lang = studio.lang();
    let mut actions = Vec::new();
    ui.horizontal(|ui| {
        let panels = *studio.panels();
        if !panels.band_open
            && super::widgets::icon_button(ui, Icon::ChevronUp, crate::text::window::UNFOLD.get(lang)).clicked()
        {
            actions.push(Action::SetPanels(Panels { band_open: true, ..panels }));
        }
        let p = Palette::of(ui);
        ui.label(fonts::icon(Icon::MemoryStick).color(p.quiet));
        let latest = studio.memory().latest();
        let words = match latest {
            Some(reading) => summary(lang, reading),
            None => m::NO_READING.get(lang).to_owned(),
        };
        elided(ui, RichText::new(words).small());
    });
    actions
}

/// Brings the readings of the span into columns of one second: the fullest of each, so that no peak is lost.
///
/// Columns stand at whole seconds of the gauge, so they move as a whole and do not flicker.
fn collect(memory: &Memory, columns: &mut Vec<GraphColumn>) {
    columns.clear();
    let Some(now) = memory.latest().map(|reading| reading.at) else { return };
    for sample in memory.samples() {
        if sample.reading.at < now - SPAN - COLUMN || sample.reading.at > now {
            continue;
        }
        let at = (sample.reading.at / COLUMN).floor() * COLUMN;
        let layers = layers(&sample.reading);
        let stage = STAGES.iter().position(|stage| *stage == sample.stage).unwrap_or(0);
        let height = |layers: &Option<[f32; 5]>| layers.map_or(-1.0, |l| l.iter().sum::<f32>());
        match columns.last_mut() {
            Some(last) if last.at == at => {
                if height(&layers) >= height(&last.layers) {
                    last.layers = layers;
                }
                last.stage = stage;
            }
            _ => columns.push(GraphColumn { at, layers, stage }),
        }
    }
    // The newest column reaches the right edge, at the newest reading.
    if let (Some(last), Some(reading)) = (columns.last().copied(), memory.latest()) {
        columns.push(GraphColumn { at: now, layers: layers(reading), ..last });
    }
}

/// Each layer's share of the total. What is used but not told apart is the last layer; what is unknown there counts nothing.
fn layers(reading: &MemoryReading) -> Option<[f32; 5]> {
    let total = reading.total?;
    let used = reading.used()?;
    let known = [reading.ours_in_use, reading.ours_pooled, reading.ours_context, reading.others];
    let mut left = used;
    let mut shares = [0.0; 5];
    for (share, part) in shares.iter_mut().zip(known) {
        let part = part.unwrap_or(Bytes::ZERO).min(left);
        left = left - part;
        *share = part.share_of(total) as f32;
    }
    shares[4] = left.share_of(total) as f32;
    Some(shares)
}

const STAGES: [Stage; 7] =
    [Stage::Idle, Stage::Loading, Stage::Encoding, Stage::Denoising, Stage::Decoding, Stage::Saving, Stage::Paused];

fn stage_look(stage: Stage, lang: Lang, p: &Palette) -> (Color32, &'static str) {
    match stage {
        Stage::Idle => (p.ground, ""),
        Stage::Loading => (p.context, m::STAGE_LOADING.get(lang)),
        Stage::Encoding => (p.others, m::STAGE_ENCODING.get(lang)),
        Stage::Denoising => (p.tungsten, m::STAGE_DENOISING.get(lang)),
        Stage::Decoding => (p.in_use, m::STAGE_DECODING.get(lang)),
        Stage::Saving => (p.done, m::STAGE_SAVING.get(lang)),
        Stage::Paused => (p.quiet, m::STAGE_PAUSED.get(lang)),
    }
}

fn draw(ui: &mut Ui, studio: &Studio, view: &mut ViewState, rect: Rect) {
    if rect.width() < 40.0 || rect.height() < 30.0 {
        return;
    }
    let lang = studio.lang();
    let p = Palette::of(ui);
    let memory = studio.memory();
    let now = memory.latest().map_or(0.0, |reading| reading.at);
    let mut marks = [GraphMark { at: 0.0, icon: Icon::Pause, name: "" }; MARKS];
    let mut count = 0;
    for (slot, mark) in marks.iter_mut().zip(memory.marks().rev().filter(|mark| mark.at >= now - SPAN)) {
        let (icon, words) = match mark.kind {
            MarkKind::PausedByHand => (Icon::Pause, m::MARK_PAUSED),
            MarkKind::PausedForMemory => (Icon::TriangleAlert, m::MARK_PAUSED_MEMORY),
            MarkKind::Resumed => (Icon::Play, m::MARK_RESUMED),
            MarkKind::Cleaned => (Icon::BrushCleaning, m::MARK_CLEANED),
        };
        *slot = GraphMark { at: mark.at, icon, name: words.get(lang) };
        count += 1;
    }
    let limit = memory.limits().pause_at;
    let limit_words = m::LIMIT_LINE.with(lang, &[("share", &figures::percent(limit))]);
    let total = memory.latest().and_then(|reading| reading.total);
    let forecast_words;
    let forecast = match (studio.forecast(), total) {
        (Some(Forecast::Fits { peak, .. }), Some(total)) if studio.running().is_none() => {
            forecast_words = m::FORECAST_LINE.with(lang, &[("peak", &peak)]);
            Some((peak.share_of(total) as f32, forecast_words.as_str()))
        }
        _ => None,
    };
    let name = match memory.latest() {
        Some(reading) => format!("{}: {}", m::GAUGE.get(lang), summary(lang, reading)),
        None => format!("{}: {}", m::GAUGE.get(lang), m::NO_READING.get(lang)),
    };
    let stages = STAGES.map(|stage| stage_look(stage, lang, p));
    let graph = StackGraph {
        columns: &view.columns,
        now,
        span: SPAN,
        limit: (limit as f32, &limit_words),
        forecast,
        marks: marks.get(..count).unwrap_or_default(),
        stages: &stages,
        unknown: m::UNKNOWN.get(lang),
        hatch: view.textures.hatch(ui.ctx()),
        name: &name,
    };
    let response = graph.show(ui, rect, &mut view.cursor);
    if let Some(mark) = near_mark(graph.marks, now, view.cursor) {
        response.on_hover_text_at_pointer(mark);
    }
}

/// The words of the mark under the cursor.
fn near_mark<'a>(marks: &[GraphMark<'a>], now: f64, cursor: Option<f64>) -> Option<&'a str> {
    let back = cursor?;
    marks.iter().find(|mark| (now - mark.at - back).abs() < SPAN / 90.0).map(|mark| mark.name)
}

fn nearest(memory: &Memory, at: f64) -> Option<&MemoryReading> {
    memory.samples().map(|sample| &sample.reading).min_by(|a, b| (a.at - at).abs().total_cmp(&(b.at - at).abs()))
}

/// "5.1 / 8.0 GiB · 64 % in use · 58 % active".
fn summary(lang: Lang, reading: &MemoryReading) -> String {
    let mut words = m::of_total(lang, reading.used(), reading.total);
    for (share, phrase) in [(reading.share_used(), m::SHARE_USED), (reading.share_active(), m::SHARE_ACTIVE)] {
        if let Some(share) = share {
            words.push_str(" · ");
            words.push_str(&phrase.with(lang, &[("share", &figures::percent(share))]));
        }
    }
    words
}

/// Every part with its swatch, in two columns, under a line that says when and how full.
fn parts(ui: &mut Ui, studio: &Studio, reading: Option<&MemoryReading>, back: Option<f64>) {
    let lang = studio.lang();
    let p = Palette::of(ui);
    ui.spacing_mut().item_spacing = Vec2::new(space::S, 2.0);
    let Some(reading) = reading else {
        ui.label(RichText::new(m::NO_READING.get(lang)).color(p.quiet));
        return;
    };
    let when = match back {
        Some(back) => {
            let time = figures::duration(lang, Duration::try_from_secs_f64(back).unwrap_or_default());
            m::SECONDS_AGO.with(lang, &[("time", &time)])
        }
        None => m::NOW.get(lang).to_owned(),
    };
    let over = reading.share_used().is_some_and(|share| share >= studio.memory().limits().pause_at);
    ui.horizontal(|ui| {
        ui.label(RichText::new(when).small().color(p.quiet));
        if over {
            ui.label(RichText::new(Icon::TriangleAlert.unicode()).font(fonts::icon_font(12.0)).color(p.safelight));
        }
        elided(ui, RichText::new(summary(lang, reading)).small().color(p.text));
    });
    let rest = mix(p.others, p.ground, 0.45);
    let left = [
        (Swatch::Solid(p.in_use), m::IN_USE, reading.ours_in_use),
        (Swatch::Hatched(p.in_use), m::POOLED, reading.ours_pooled),
        (Swatch::Solid(p.context), m::CONTEXT, reading.ours_context),
        (Swatch::Solid(p.others), m::OTHERS, reading.others),
    ];
    let right = [
        (Swatch::Solid(rest), m::RESERVED, reading.reserved),
        (Swatch::Open(p.quiet), m::FREE, reading.free),
        (Swatch::None, m::LIMIT, reading.total.map(|total| total.portion(studio.memory().limits().pause_at))),
        (Swatch::None, m::PEAK, reading.peak),
    ];
    ui.columns_const(|[one, two]: &mut [Ui; 2]| {
        for (column, lines) in [(one, left), (two, right)] {
            column.spacing_mut().item_spacing = Vec2::new(6.0, 2.0);
            for (swatch, words, bytes) in lines {
                part(column, lang, swatch, words.get(lang), bytes, p);
            }
        }
    });
}

/// How a layer is drawn in the graph.
#[derive(Clone, Copy)]
enum Swatch {
    Solid(Color32),
    Hatched(Color32),
    Open(Color32),
    None,
}

fn part(ui: &mut Ui, lang: Lang, swatch: Swatch, name: &str, bytes: Option<Bytes>, p: &Palette) {
    let (_, line) = ui.allocate_space(Vec2::new(ui.available_width(), 18.0));
    let spot = Rect::from_center_size(pos2(line.left() + 5.0, line.center().y), Vec2::splat(9.0));
    let painter = ui.painter_at(line);
    match swatch {
        Swatch::Solid(color) => {
            painter.rect_filled(spot, 2.0, color);
        }
        Swatch::Hatched(color) => {
            painter.rect_filled(spot, 2.0, color.gamma_multiply(0.22));
            for offset in [-3.0, 1.5, 6.0] {
                let low = pos2(spot.left() + offset, spot.bottom());
                painter.with_clip_rect(spot).line_segment([low, low + Vec2::new(9.0, -9.0)], (1.5, color));
            }
        }
        Swatch::Open(color) => {
            painter.rect_stroke(spot, 2.0, (1.0, color), egui::StrokeKind::Inside);
        }
        Swatch::None => {}
    }
    let rest = Rect::from_min_max(pos2(line.left() + 16.0, line.top()), line.max);
    let mut ui = ui.new_child(UiBuilder::new().max_rect(rest).layout(Layout::right_to_left(Align::Center)));
    let ink = if bytes.is_some() { p.text } else { p.quiet };
    ui.label(RichText::new(m::amount(lang, bytes)).font(FontId::proportional(CAPTION)).color(ink));
    ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
        elided(ui, RichText::new(name).font(FontId::proportional(CAPTION)).color(p.quiet));
    });
}
