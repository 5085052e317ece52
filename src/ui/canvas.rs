//! The middle of the window: the picture or its preview, the cards over it, the line of steps, and what can be done with a
//! finished picture.

use super::fonts::Icon;
use super::theme::{CONTROL, FADE, Palette, RADIUS, space};
use super::view_state::{Shown, ViewState};
use super::widgets::{PictureCanvas, elided, icon_button, step_line, text_button, trailing, trailing_width};
use crate::base::{Lang, Size};
use crate::studio::{Action, Canvas, Finished, JobState, Studio};
use crate::text::{figures, window as w};
use egui::{Align, Button, Frame, Layout, Margin, Rect, RichText, Stroke, TextureId, Ui, UiBuilder, Vec2, pos2};

/// Air around the picture, and the height of the line of steps.
const AIR: f32 = 12.0;
const STEP_LINE: f32 = 4.0;
/// Height of the line under the picture.
const TOOLS: f32 = CONTROL + space::S;
/// How much of its light a picture keeps under a card.
const DIMMED: f32 = 0.35;
/// Wide enough for the buttons of a pause in one line.
const CARD: f32 = 528.0;

/// Fills what the other panels left.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let mut actions = Vec::new();
    let whole = ui.max_rect();
    let shot = match studio.canvas() {
        Canvas::Shot(finished) => Some(finished),
        _ => None,
    };
    let foot = if matches!(studio.canvas(), Canvas::Empty) { 0.0 } else { TOOLS };
    let surface = Rect::from_min_max(whole.min, pos2(whole.right(), (whole.bottom() - foot).max(whole.top())));
    picture(ui, studio, view, surface.shrink(AIR));
    steps(ui, studio, surface);
    if matches!(studio.canvas(), Canvas::Empty) && studio.running().is_none() && studio.trouble().is_none() {
        actions.extend(super::empty::show(ui, studio, surface));
    }
    if foot > 0.0 {
        let bar =
            Rect::from_min_max(pos2(whole.left() + AIR, surface.bottom()), pos2(whole.right() - AIR, whole.bottom()));
        tools(ui, studio, view, shot, bar, &mut actions);
    }
    actions.extend(super::notices::show(ui, studio, view, surface));
    cards(ui, studio, view, surface, &mut actions);
    drop_target(ui, studio, whole);
    actions
}

/// Whether something lies over the picture that needs an answer.
fn is_covered(studio: &Studio) -> bool {
    studio.trouble().is_some() || is_paused(studio)
}

fn is_paused(studio: &Studio) -> bool {
    studio.running().is_some_and(|job| job.paused())
}

fn picture(ui: &mut Ui, studio: &Studio, view: &mut ViewState, surface: Rect) {
    let lang = studio.lang();
    let (shown, texture, size, name) = match studio.canvas() {
        Canvas::Empty => {
            view.shown = Shown::Nothing;
            if let Some(job) = studio.running() {
                frame_to_be(ui, view, job.request.size, surface);
            }
            return;
        }
        Canvas::Preview(preview) => {
            let texture = view.textures.preview(ui.ctx(), preview.version, &preview.image);
            // The size of the picture to be, not of the latent: nothing jumps when it is done.
            let size = studio.running().map(|job| job.request.size);
            let size = size.map_or(pixels(&preview.image), |s| Vec2::new(s.width() as f32, s.height() as f32));
            let name = w::PREVIEW_OF_STEP.with(lang, &[("step", &preview.step)]);
            (Shown::Preview, Some(texture), size, name)
        }
        Canvas::Shot(finished) => {
            let image = &finished.shot.image;
            let name = w::SHOT_NAME.with(lang, &[("seed", &finished.shot.request.seed)]);
            (Shown::Shot(finished.id), view.textures.large(ui.ctx(), finished.id, image), pixels(image), name)
        }
    };
    let now = ui.input(|i| i.time);
    if view.shown != shown {
        let from_preview = view.shown == Shown::Preview && ui.style().animation_time > 0.0;
        view.fade_since = (from_preview && matches!(shown, Shown::Shot(_))).then_some(now);
        view.shown = shown;
    }
    let fading_from = fade(ui, view, now);
    let Some(texture) = texture.or(fading_from.map(|(below, _)| below)) else { return };
    view.scale = view.view.scale(size, surface.size(), ui.pixels_per_point());
    let light = if is_covered(studio) { DIMMED } else { 1.0 };
    PictureCanvas { texture, size, fading_from, light, name: &name }.show(ui, surface, &mut view.view);
}

/// The outline of the picture that a job began, until there is a first look at it: at its place, in its shape.
fn frame_to_be(ui: &Ui, view: &ViewState, size: Size, surface: Rect) {
    let size = Vec2::new(size.width() as f32, size.height() as f32);
    // The line of tools is not there yet; the picture will make room for it.
    let surface = Rect::from_min_max(surface.min, pos2(surface.right(), surface.bottom() - TOOLS));
    let rect = view.view.rect(size, surface, ui.pixels_per_point());
    let line = Stroke::new(1.0, Palette::of(ui).hairline);
    ui.painter_at(surface).rect_stroke(rect, 0.0, line, egui::StrokeKind::Inside);
}

/// The preview beneath the picture that takes its place, and how far it has come.
fn fade(ui: &Ui, view: &mut ViewState, now: f64) -> Option<(TextureId, f32)> {
    let since = view.fade_since?;
    let share = ((now - since) as f32 / FADE).clamp(0.0, 1.0);
    if share >= 1.0 {
        view.fade_since = None;
        return None;
    }
    ui.ctx().request_repaint();
    view.textures.last_preview().map(|below| (below, share))
}

fn pixels(image: &crate::base::RgbImage) -> Vec2 {
    Vec2::new(image.width() as f32, image.height() as f32)
}

fn steps(ui: &mut Ui, studio: &Studio, surface: Rect) {
    let Some(job) = studio.running() else { return };
    let Some(progress) = job.progress else { return };
    let rect = Rect::from_min_max(
        pos2(surface.left() + AIR, surface.bottom() - STEP_LINE),
        pos2(surface.right() - AIR, surface.bottom()),
    );
    if rect.is_positive() {
        let name = format!("{}: {}", w::PROGRESS.get(studio.lang()), super::job_bar::doing(studio.lang(), job));
        step_line(ui, rect, progress.step, progress.steps, &name);
    }
}

/// The line under the picture: what it is at the left, zoom and deeds at the right.
fn tools(
    ui: &mut Ui,
    studio: &Studio,
    view: &mut ViewState,
    shot: Option<&Finished>,
    bar: Rect,
    actions: &mut Vec<Action>,
) {
    let lang = studio.lang();
    let mut ui = ui.new_child(UiBuilder::new().max_rect(bar).layout(Layout::left_to_right(Align::Center)));
    ui.spacing_mut().item_spacing.x = space::XS;
    let caption = match (shot, studio.canvas()) {
        (Some(finished), _) => shot_caption(lang, finished),
        (None, Canvas::Preview(preview)) => w::PREVIEW_OF_STEP.with(lang, &[("step", &preview.step)]),
        (None, _) => String::new(),
    };
    let words = Vec2::new(ui.available_width() - trailing_width(&ui, "tools") - space::S, bar.height()).max(Vec2::ZERO);
    ui.allocate_ui_with_layout(words, Layout::left_to_right(Align::Center), |ui| {
        if studio.running().is_some()
            && studio.shots().selected().is_some()
            && text_button(ui, Icon::Eye, w::FOLLOW.get(lang)).clicked()
        {
            actions.push(Action::Select(None));
        }
        let ink = Palette::of(ui).quiet;
        elided(ui, RichText::new(caption).small().color(ink));
    });
    trailing(&mut ui, "tools", |ui| {
        ui.scope(|ui| zoom(ui, lang, view));
        if let Some(finished) = shot {
            ui.add_space(space::S);
            if studio.shots().len() > 1 {
                leaf(ui, lang, actions);
            }
            deeds(ui, lang, finished, actions);
        }
    });
}

fn shot_caption(lang: Lang, finished: &Finished) -> String {
    let shot = &finished.shot;
    let hover = w::SHOT_HOVER.with(lang, &[("seed", &shot.request.seed), ("time", &figures::took(lang, shot.seconds))]);
    let mut parts = vec![figures::size(lang, shot.request.size), hover];
    if let Some(steps) = shot.stopped_at {
        parts.push(w::STOPPED_AT.with(lang, &[("steps", &figures::steps(lang, steps))]));
    }
    if finished.unsaved() {
        parts.push(w::NOT_SAVED.get(lang).to_owned());
    }
    parts.join(" · ")
}

fn deeds(ui: &mut Ui, lang: Lang, finished: &Finished, actions: &mut Vec<Action>) {
    let id = finished.id;
    for (icon, name, action) in [
        (Icon::SlidersHorizontal, w::USE_SETTINGS, Action::UseSettings(id)),
        (Icon::Sprout, w::USE_SEED, Action::UseSeed(id)),
        (Icon::Save, w::SAVE_AS, Action::SaveAs(id)),
        (Icon::Copy, w::COPY, Action::CopyPicture(id)),
        (Icon::FolderOpen, w::OPEN_FOLDER, Action::OpenFolder(Some(id))),
    ] {
        if icon_button(ui, icon, name.get(lang)).clicked() {
            actions.push(action);
        }
    }
}

/// Through the finished pictures, for those who do not use the strip.
fn leaf(ui: &mut Ui, lang: Lang, actions: &mut Vec<Action>) {
    for (icon, name, action) in
        [(Icon::ChevronUp, w::NEWER, Action::SelectNewer), (Icon::ChevronDown, w::OLDER, Action::SelectOlder)]
    {
        if icon_button(ui, icon, name.get(lang)).clicked() {
            actions.push(action);
        }
    }
}

fn zoom(ui: &mut Ui, lang: Lang, view: &mut ViewState) {
    super::theme::make_quiet(ui);
    let help = w::CANVAS_HELP.get(lang);
    let share = w::ZOOM_VALUE.with(lang, &[("share", &figures::percent(f64::from(view.scale)))]);
    let ink = Palette::of(ui).quiet;
    ui.label(RichText::new(share).small().color(ink));
    if ui.add(Button::selectable(view.view.fits(), w::ZOOM_FIT.get(lang))).on_hover_text(help).clicked() {
        view.view.fit();
    }
    if ui.button(w::ZOOM_100.get(lang)).on_hover_text(help).clicked() {
        view.view.actual_size();
    }
}

/// The trouble, else the pause, on a plate in the middle.
fn cards(ui: &mut Ui, studio: &Studio, view: &mut ViewState, surface: Rect, actions: &mut Vec<Action>) {
    if let Some(trouble) = studio.trouble() {
        card(ui, surface, |ui| actions.extend(super::error_card::show(ui, studio, view, trouble)));
    } else if let Some(job) = studio.running()
        && let JobState::Paused { reason, interrupted } = &job.state
    {
        card(ui, surface, |ui| actions.extend(super::pause_card::show(ui, studio, reason, *interrupted)));
    }
}

fn card(ui: &mut Ui, surface: Rect, contents: impl FnOnce(&mut Ui)) {
    let p = Palette::of(ui);
    let width = CARD.min((surface.width() - 2.0 * space::L).max(0.0));
    // As high as it was in the last pass, so that it stands in the middle.
    let id = ui.scope_id().with("card height");
    let height: f32 = ui.data(|d| d.get_temp(id)).unwrap_or(140.0);
    let top = (surface.center().y - height / 2.0).max(surface.top() + space::S);
    let rect = Rect::from_min_size(pos2(surface.center().x - width / 2.0, top), Vec2::new(width, surface.height()));
    let mut ui = ui.new_child(UiBuilder::new().max_rect(rect).layout(Layout::top_down(Align::Min)));
    let shown = Frame::new()
        .fill(p.panel)
        .stroke(Stroke::new(1.0, p.hairline))
        .corner_radius(RADIUS + 2)
        .inner_margin(Margin::same(16))
        .shadow(ui.visuals().popup_shadow)
        .show(&mut ui, |ui| {
            ui.set_width((width - 32.0).max(0.0));
            contents(ui);
        });
    let now = shown.response.rect.height();
    ui.data_mut(|d| d.insert_temp(id, now));
    if (now - height).abs() > 0.5 {
        ui.ctx().request_repaint();
    }
}

/// While files hang over the window.
fn drop_target(ui: &mut Ui, studio: &Studio, whole: Rect) {
    if ui.input(|i| i.raw.hovered_files.is_empty()) {
        return;
    }
    let p = Palette::of(ui);
    let painter = ui.painter();
    painter.rect_filled(whole, 0.0, p.ground.gamma_multiply(0.96));
    let frame = whole.shrink(space::L);
    painter.rect_stroke(frame, RADIUS, Stroke::new(2.0, p.tungsten), egui::StrokeKind::Inside);
    let words = w::DROP_HERE.get(studio.lang());
    let galley = painter.layout(words.to_owned(), egui::FontId::proportional(16.0), p.text, frame.width() - 32.0);
    painter.galley(frame.center() - galley.size() / 2.0, galley, p.text);
}
