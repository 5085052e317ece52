//! The foot of the left column: Generate with its forecast, and, while a job runs, where it stands and how to steer it.

use super::fonts::{self, Icon};
use super::theme::{self, CONTROL, Palette, space};
use super::widgets::{elided, text_button, trailing, trailing_width};
use crate::base::Lang;
use crate::studio::{Action, Forecast, JobEntry, JobState, Studio};
use crate::text::{figures, memory as m, window as w};
use egui::{Align, Button, Layout, RichText, Ui, Vec2};

/// Height of the primary button.
const PRIMARY: f32 = 36.0;
/// Height of the line that says where the job stands.
const LINE: f32 = 20.0;

/// Always in sight, whatever the column is scrolled to.
pub fn show(ui: &mut Ui, studio: &Studio) -> Vec<Action> {
    let mut actions = Vec::new();
    ui.spacing_mut().item_spacing.y = 6.0;
    if let Some(job) = studio.running() {
        // Close together, so that at 800 points the settings above still need no scrolling.
        ui.spacing_mut().item_spacing.y = space::XS;
        standing(ui, studio, job);
        steering(ui, studio.lang(), job, &mut actions);
    }
    generate(ui, studio, &mut actions);
    forecast(ui, studio, &mut actions);
    actions
}

/// One line: what the job does, its pace, the time left; of several pictures, which one in another. The wish that is on its
/// way comes first.
fn standing(ui: &mut Ui, studio: &Studio, job: &JobEntry) {
    let lang = studio.lang();
    let doing = doing(lang, job);
    let figures = pace(lang, job);
    let picture = job.progress.filter(|progress| progress.images > 1).map(|progress| {
        let image = (progress.image + 1).min(progress.images);
        w::PICTURE_OF.with(lang, &[("image", &image), ("images", &progress.images)])
    });
    ui.horizontal(|ui| {
        ui.set_height(LINE);
        let icon = if job.paused() { Icon::Pause } else { Icon::Aperture };
        let p = Palette::of(ui);
        ui.label(fonts::icon(icon).color(p.tungsten));
        let words = (ui.available_width() - trailing_width(ui, "pace") - space::S).max(0.0);
        ui.allocate_ui_with_layout(Vec2::new(words, LINE), Layout::left_to_right(Align::Center), |ui| {
            elided(ui, doing);
        });
        trailing(ui, "pace", |ui| ui.label(RichText::new(figures).small().color(p.quiet)));
    });
    if let Some(picture) = picture {
        ui.label(RichText::new(picture).small().color(Palette::of(ui).quiet));
    }
}

/// What the job does at the moment, in words.
pub(super) fn doing(lang: Lang, job: &JobEntry) -> String {
    for (on_its_way, words) in [
        (job.cancelling(), w::CANCELLING),
        (job.stopping(), w::STOPPING),
        (job.pausing(), w::PAUSING),
        (job.resuming(), w::RESUMING),
    ] {
        if on_its_way {
            return words.get(lang).to_owned();
        }
    }
    match &job.state {
        JobState::Queued => w::JOB_WAITING.get(lang).to_owned(),
        JobState::Running { phase } => w::phase(lang, *phase),
        JobState::Paused { .. } => m::PAUSED.get(lang).to_owned(),
        JobState::Done | JobState::Failed(_) | JobState::Cancelled => String::new(),
    }
}

/// "6.8 it/s · about 6 s left": what is known of it.
fn pace(lang: Lang, job: &JobEntry) -> String {
    let Some(progress) = job.progress else { return String::new() };
    let mut parts = Vec::with_capacity(2);
    if matches!(job.state, JobState::Running { .. }) {
        if let Some(pace) = progress.steps_per_second {
            parts.push(w::PACE.with(lang, &[("pace", &format!("{pace:.1}"))]));
        }
        if let Some(left) = progress.left {
            parts.push(w::TIME_LEFT.with(lang, &[("time", &figures::about(lang, left))]));
        }
    }
    parts.join(" · ")
}

fn steering(ui: &mut Ui, lang: Lang, job: &JobEntry, actions: &mut Vec<Action>) {
    let ending = job.stopping() || job.cancelling();
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        ui.spacing_mut().button_padding.x = 8.0;
        ui.add_enabled_ui(!ending, |ui| {
            if job.paused() || job.pausing() {
                if text_button(ui, Icon::Play, w::RESUME.get(lang)).clicked() {
                    actions.push(Action::Resume);
                }
            } else if text_button(ui, Icon::Pause, w::PAUSE.get(lang)).clicked() {
                actions.push(Action::Pause);
            }
            let keep = text_button(ui, Icon::Square, w::STOP_AND_KEEP.get(lang));
            if keep.on_hover_text(w::STOP_AND_KEEP_HELP.get(lang)).clicked() {
                actions.push(Action::StopAndKeep);
            }
        });
        ui.add_enabled_ui(!job.cancelling(), |ui| {
            let cancel = text_button(ui, Icon::X, w::CANCEL.get(lang));
            if cancel.on_hover_text(w::CANCEL_HELP.get(lang)).clicked() {
                actions.push(Action::Cancel);
            }
        });
    });
}

fn generate(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let words = match studio.time_estimate() {
        Some(time) => format!("{}   {}", w::GENERATE.get(lang), figures::about(lang, time)),
        None => w::GENERATE.get(lang).to_owned(),
    };
    let waiting = studio.queue().waiting().count();
    ui.add_enabled_ui(studio.can_generate(), |ui| {
        // While a job runs the next one only queues: progress is then the one thing in tungsten.
        let idle = studio.running().is_none();
        // What cannot be pressed yet does not shine either.
        if idle && ui.is_enabled() {
            theme::make_primary(ui);
        }
        let help = if idle { w::GENERATE_HELP } else { w::QUEUE };
        let button = Button::new(RichText::new(words).size(14.0));
        let size = Vec2::new(ui.available_width(), if idle { PRIMARY } else { CONTROL });
        let response = ui.add_sized(size, button).accessible_name(w::GENERATE.get(lang));
        if response.on_hover_text(help.get(lang)).on_disabled_hover_text(w::EMPTY_TITLE.get(lang)).clicked() {
            actions.push(Action::Generate);
        }
    });
    if waiting > 0 {
        ui.horizontal(|ui| {
            let ink = Palette::of(ui).quiet;
            let words = w::WAITING_JOBS.with(lang, &[("count", &waiting)]);
            ui.label(RichText::new(words).small().color(ink));
            if ui.small_button(w::CANCEL_ALL.get(lang)).clicked() {
                actions.push(Action::CancelAll);
            }
        });
    }
}

/// Whether the draft fits, with a button to the largest size that does.
fn forecast(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let p = Palette::of(ui);
    let Some(forecast) = studio.forecast() else { return };
    // The gauge tells of this run, and the card of a pause why it waits; whether the next one fits is seen when it is over.
    if studio.running().is_some_and(|job| job.paused() || !matches!(forecast, Forecast::DoesNotFit { .. })) {
        return;
    }
    let (icon, ink, words) = match forecast {
        Forecast::Fits { peak, total } => (Icon::Check, p.done, m::fits(lang, peak, total)),
        Forecast::FitsTiled => (Icon::LayoutGrid, p.done, m::FITS_TILED.get(lang).to_owned()),
        Forecast::DoesNotFit { largest } => (Icon::TriangleAlert, p.safelight, m::does_not_fit(lang, largest)),
    };
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        ui.label(RichText::new(icon.unicode()).font(fonts::icon_font(12.0)).color(ink));
        ui.label(RichText::new(words).small().color(p.quiet));
        if let Forecast::DoesNotFit { largest: Some(size) } = forecast {
            let hint = crate::base::Hint::UseSize(size);
            if ui.small_button(crate::text::problems::hint(lang, &hint)).clicked() {
                actions.push(Action::Set(crate::studio::Setting::Size(size)));
            }
        }
    });
}
