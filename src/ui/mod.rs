//! The window: one panel a file, each a function from the studio (read only) to the actions a person took.
//!
//! The application calls [`fonts::install`] and [`theme::install`] once, then [`show`] in every pass, and applies what comes
//! back to the studio. Nothing here changes the studio, blocks, or touches a file.

mod canvas;
mod empty;
mod error_card;
pub mod fonts;
mod job_bar;
mod memory_band;
mod notices;
mod pause_card;
mod prompt_panel;
mod prompt_words;
mod settings_advanced;
mod settings_panel;
mod shortcuts;
mod strip;
pub mod textures;
pub mod theme;
mod top_bar;
mod view_state;
pub mod widgets;

pub use view_state::ViewState;

use crate::studio::{Action, Panels, Studio, Theme};
use crate::text::window as w;
use egui::{CentralPanel, Frame, Margin, Panel, ScrollArea, ThemePreference, Ui};
use theme::Palette;

/// Below these the strip and the memory band fold, whatever was chosen: the canvas needs the room.
const WIDE_ENOUGH_FOR_STRIP: f32 = 960.0;
const HIGH_ENOUGH_FOR_BAND: f32 = 680.0;
/// The left column, in points.
const COLUMN: std::ops::RangeInclusive<f32> = 320.0..=400.0;

/// Which panels the window has room for.
#[derive(Clone, Copy)]
struct Room {
    strip: bool,
    band: bool,
}

/// Draws the whole window into `ui` and returns what the person did.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    follow_theme(ui, studio, view);
    view.begin(studio);
    if !std::mem::replace(&mut view.greeted, true) {
        // One opens the studio to write.
        ui.memory_mut(|memory| memory.request_focus(prompt_panel::prompt_id()));
    }
    // Keys are taken before the fields see them, but what they ask comes last: what was typed before Ctrl+Enter counts.
    let keys = shortcuts::read(ui, studio);
    let mut actions: Vec<Action> = dropped_files(ui).into_iter().collect();

    let p = Palette::of(ui);
    let size = ui.available_size();
    let panels = studio.panels();
    let mut widths = *panels;
    let room = Room { strip: size.x >= WIDE_ENOUGH_FOR_STRIP, band: size.y >= HIGH_ENOUGH_FOR_BAND };
    let strip = panels.strip_open && room.strip;
    let band = panels.band_open && room.band;
    let plain = Frame::new().fill(p.panel);

    Panel::top("top bar")
        .frame(plain.inner_margin(Margin::symmetric(12, 8)))
        .resizable(false)
        .show(ui, |ui| actions.extend(top_bar::show(ui, studio, room)));

    // A narrow window is shared half and half.
    let most = (size.x * 0.5).clamp(*COLUMN.start() / 2.0, *COLUMN.end());
    let least = COLUMN.start().min(most);
    let bottom = Panel::bottom("memory band").frame(plain.inner_margin(Margin::symmetric(12, 8)));
    if band {
        let shown = bottom.resizable(true).default_size(panels.band_height).size_range(104.0..=280.0).show(ui, |ui| {
            actions.extend(memory_band::show(ui, studio, view));
        });
        widths.band_height = shown.response.rect.height();
    } else {
        bottom.resizable(false).show(ui, |ui| actions.extend(memory_band::line(ui, studio)));
    }

    let column = Panel::left("settings")
        .frame(plain)
        .resizable(true)
        .default_size(panels.left_width)
        .size_range(least..=most)
        .show(ui, |ui| {
            Panel::bottom("job bar")
                .frame(plain.inner_margin(Margin::symmetric(12, 8)))
                .resizable(false)
                .show(ui, |ui| actions.extend(job_bar::show(ui, studio)));
            CentralPanel::default().frame(plain).show(ui, |ui| {
                ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
                    Frame::new().inner_margin(Margin { left: 12, right: 12, top: 8, bottom: 4 }).show(ui, |ui| {
                        ui.spacing_mut().item_spacing.y = 5.0;
                        actions.extend(prompt_panel::show(ui, studio, view));
                        widgets::section(ui);
                        actions.extend(settings_panel::show(ui, studio, view));
                    });
                });
            });
        });
    widths.left_width = column.response.rect.width();

    if strip {
        let shown = Panel::right("strip")
            .frame(plain)
            .resizable(true)
            .default_size(panels.strip_width)
            .size_range(112.0..=280.0)
            .show(ui, |ui| actions.extend(strip::show(ui, studio, view)));
        widths.strip_width = shown.response.rect.width();
    }

    CentralPanel::default().frame(Frame::new().fill(p.ground)).show(ui, |ui| {
        actions.extend(canvas::show(ui, studio, view));
    });

    if studio.asks_to_close() {
        actions.extend(close_question(ui, studio));
    }
    actions.extend(remember(ui, panels, widths, size));
    actions.extend(keys);
    if !actions.is_empty() {
        // What they change is drawn in the pass that follows.
        ui.ctx().request_repaint();
    }
    actions
}

/// Tells egui the theme when it was changed.
fn follow_theme(ui: &Ui, studio: &Studio, view: &mut ViewState) {
    if view.theme != Some(studio.theme()) {
        view.theme = Some(studio.theme());
        ui.ctx().set_theme(match studio.theme() {
            Theme::System => ThemePreference::System,
            Theme::Dark => ThemePreference::Dark,
            Theme::Light => ThemePreference::Light,
        });
        ui.ctx().request_repaint();
    }
}

/// Reports new sizes once the person has let go of the edge. A window too small for a panel's own size says nothing of it.
fn remember(ui: &Ui, old: &Panels, new: Panels, window: egui::Vec2) -> Option<Action> {
    let moved = |a: f32, b: f32| (a - b).abs() > 1.0;
    let roomy = window.x >= WIDE_ENOUGH_FOR_STRIP && window.y >= HIGH_ENOUGH_FOR_BAND;
    let differs = moved(old.left_width, new.left_width)
        || moved(old.strip_width, new.strip_width)
        || moved(old.band_height, new.band_height);
    let released = ui.input(|i| i.pointer.primary_released());
    (roomy && differs && released).then_some(Action::SetPanels(new))
}

fn dropped_files(ui: &Ui) -> Option<Action> {
    let paths: Vec<_> = ui.input(|i| {
        i.raw
            .dropped_files
            .iter()
            .map(|file| file.path().to_owned())
            .filter(|path| !path.as_os_str().is_empty())
            .collect()
    });
    (!paths.is_empty()).then_some(Action::FilesDropped(paths))
}

/// Pictures that lie nowhere on disk would be lost.
fn close_question(ui: &Ui, studio: &Studio) -> Option<Action> {
    let lang = studio.lang();
    let unsaved = studio.shots().unsaved().count();
    let mut answer = None;
    let plate = Frame::popup(ui.style()).inner_margin(Margin::same(16)).corner_radius(theme::RADIUS + 2);
    let modal = egui::Modal::new(egui::Id::unique("close question")).frame(plate).show(ui.ctx(), |ui| {
        ui.set_width(340.0);
        ui.heading(w::CLOSE_TITLE.get(lang));
        let pictures = crate::text::figures::pictures(lang, u32::try_from(unsaved).unwrap_or(u32::MAX));
        ui.label(w::CLOSE_BODY.with(lang, &[("pictures", &pictures)]));
        ui.add_space(theme::space::M);
        ui.horizontal(|ui| {
            ui.scope(|ui| {
                theme::make_primary(ui);
                if ui.button(w::KEEP_OPEN.get(lang)).clicked() {
                    answer = Some(Action::KeepOpen);
                }
            });
            if ui.button(w::CLOSE_ANYWAY.get(lang)).clicked() {
                answer = Some(Action::CloseAnyway);
            }
        });
    });
    answer.or_else(|| modal.should_close().then_some(Action::KeepOpen))
}
