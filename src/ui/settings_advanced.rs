//! What most people set once or never, folded away: how the text is read, noise, where pictures go, limits on memory.

use super::fonts::{self, Icon};
use super::settings_panel::{CHOOSER, NUMBER, chooser, field};
use super::theme::{self, Palette};
use super::view_state::ViewState;
use super::widgets::{caption, row, section, text_button};
use crate::base::choice::MemoryLimits;
use crate::base::{Bytes, ImageFormat, Lang, NoiseSource, ShotRequest};
use crate::studio::{Action, Field, Memory, Panels, Setting, Studio};
use crate::text::window as w;
use egui::{Align, Button, Checkbox, DragValue, Layout, RichText, TextEdit, Ui};

/// What a name pattern may hold.
const PATTERN_FIELDS: &str = "[seed] [prompt] [date] [time] [model] [sampler] [steps] [cfg] [width] [height] [number]";

/// The fold's line, and what is in it while it is open.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let mut actions = Vec::new();
    section(ui);
    let panels = *studio.panels();
    if fold(ui, studio, panels.advanced_open) {
        actions.push(Action::SetPanels(Panels { advanced_open: !panels.advanced_open, ..panels }));
    }
    if panels.advanced_open {
        reading(ui, studio, &mut actions);
        section(ui);
        output(ui, studio, view, &mut actions);
        section(ui);
        limits(ui, studio, &mut actions);
        section(ui);
        habits(ui, studio, &mut actions);
    }
    actions
}

/// "Advanced", how many settings differ, and a caret. True when it was pressed.
fn fold(ui: &mut Ui, studio: &Studio, open: bool) -> bool {
    let lang = studio.lang();
    ui.horizontal(|ui| {
        let caret = if open { Icon::ChevronDown } else { Icon::ChevronRight };
        let pressed = ui
            .scope(|ui| {
                theme::make_quiet(ui);
                ui.spacing_mut().button_padding.x = 2.0;
                let button = Button::new((fonts::icon(caret), RichText::new(w::ADVANCED.get(lang)))).frame(true);
                let state = if open { w::FOLD } else { w::UNFOLD };
                ui.add(button).accessible_name(w::ADVANCED.get(lang)).on_hover_text(state.get(lang)).clicked()
            })
            .inner;
        let differing = studio.draft().advanced_differing().len();
        if let Some(words) = w::advanced_differ(lang, differing) {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let ink = Palette::of(ui).text;
                ui.label(RichText::new(words).small().color(ink));
            });
        }
        pressed
    })
    .inner
}

fn reading(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let draft = studio.draft();
    let mut skip = draft.clip_skip;
    field(ui, studio, Field::ClipSkip, w::CLIP_SKIP.get(lang), actions, |ui| {
        let value = DragValue::new(&mut skip).range(ShotRequest::CLIP_SKIP).speed(0.05).update_while_editing(false);
        ui.add(value.min_size(egui::vec2(NUMBER, 0.0))).on_hover_text(w::CLIP_SKIP_HELP.get(lang));
    });
    if skip != draft.clip_skip {
        actions.push(Action::Set(Setting::ClipSkip(skip)));
    }
    let noises = [NoiseSource::Gpu, NoiseSource::Cpu];
    let chosen = field(ui, studio, Field::Noise, w::NOISE.get(lang), actions, |ui| {
        choose(ui, "noise", &noises, draft.noise, |noise| w::noise(lang, noise).to_owned())
    });
    actions.extend(chosen.map(|noise| Action::Set(Setting::Noise(noise))));
    let chosen = field(ui, studio, Field::VPrediction, w::V_PREDICTION.get(lang), actions, |ui| {
        choose(ui, "v-prediction", &[None, Some(true), Some(false)], draft.v_prediction, |choice| {
            let words = match choice {
                None => w::AS_THE_FILE_SAYS,
                Some(true) => w::ON,
                Some(false) => w::OFF,
            };
            words.get(lang).to_owned()
        })
    });
    actions.extend(chosen.map(|choice| Action::Set(Setting::VPrediction(choice))));
    let mut ema = draft.ema;
    field(ui, studio, Field::Ema, w::EMA.get(lang), actions, |ui| ui.add(Checkbox::without_text(&mut ema)));
    if ema != draft.ema {
        actions.push(Action::Set(Setting::Ema(ema)));
    }
}

/// A chooser over a few values; what was picked, if something was.
fn choose<T: Copy + PartialEq>(
    ui: &mut Ui,
    id: &str,
    values: &[T],
    chosen: T,
    words: impl Fn(T) -> String,
) -> Option<T> {
    chooser(id, words(chosen))
        .show_ui(ui, |ui| values.iter().copied().find(|v| ui.selectable_label(*v == chosen, words(*v)).clicked()))
        .inner
        .flatten()
        .filter(|picked| *picked != chosen)
}

fn output(ui: &mut Ui, studio: &Studio, view: &mut ViewState, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let draft = studio.draft();
    let folder = studio.output_folder();
    let shown = folder.and_then(|f| f.file_name()).map(|name| name.to_string_lossy().into_owned());
    let shown = shown.unwrap_or_else(|| w::FOLDER_DEFAULT.get(lang).to_owned());
    let whole = folder.map(|f| f.display().to_string()).unwrap_or_default();
    let (mut choose_folder, mut open_folder) = (false, false);
    field(ui, studio, Field::Folder, w::OUTPUT_FOLDER.get(lang), actions, |ui| {
        ui.spacing_mut().item_spacing.x = theme::space::XS;
        let button = Button::new((fonts::icon(Icon::Folder), RichText::new(&shown)));
        let width = CHOOSER - theme::CONTROL - theme::space::XS;
        let name = w::CHOOSE_FOLDER.get(lang);
        choose_folder = ui
            .add_sized([width, theme::CONTROL], button.truncate())
            .accessible_name(name)
            .on_hover_text(if whole.is_empty() { name } else { &whole })
            .clicked();
        open_folder = super::widgets::icon_button(ui, Icon::ExternalLink, w::OPEN_FOLDER.get(lang)).clicked();
    });
    if choose_folder {
        actions.push(Action::ChooseFolder);
    }
    if open_folder {
        actions.push(Action::OpenFolder(None));
    }
    let help = w::NAME_PATTERN_HELP.with(lang, &[("fields", &PATTERN_FIELDS)]);
    let changed = field(ui, studio, Field::Pattern, w::NAME_PATTERN.get(lang), actions, |ui| {
        let edit = TextEdit::singleline(&mut view.pattern.text).desired_width(CHOOSER).align(egui::Align2::LEFT_CENTER);
        ui.add(edit).accessible_name(w::NAME_PATTERN.get(lang)).on_hover_text(&help).changed()
    });
    if changed {
        actions.push(Action::Set(Setting::Pattern(view.pattern.text.clone())));
    }
    let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];
    let chosen = field(ui, studio, Field::Format, w::FORMAT.get(lang), actions, |ui| {
        choose(ui, "format", &formats, draft.format, |format| format_name(format).to_owned())
    });
    actions.extend(chosen.map(|format| Action::Set(Setting::Format(format))));
}

fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Png => "PNG",
        ImageFormat::Jpeg => "JPEG",
        ImageFormat::Webp => "WebP",
    }
}

fn limits(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let old = *studio.memory().limits();
    let usual = MemoryLimits::default();
    let mut new = old;
    let hint = |differs: bool| if differs { w::RESET_HELP.get(lang) } else { "" };

    let mut percent = old.pause_at * 100.0;
    let differs = old.pause_at != usual.pause_at;
    let line = row(ui, w::PAUSE_AT.get(lang), hint(differs), differs, |ui| {
        let bounds = *Memory::PAUSE_AT.start() * 100.0..=*Memory::PAUSE_AT.end() * 100.0;
        let value = DragValue::new(&mut percent).range(bounds).speed(0.2).fixed_decimals(0).suffix(" %");
        ui.add(value.update_while_editing(false).min_size(egui::vec2(NUMBER, 0.0))).changed()
    });
    if line.reset {
        new.pause_at = usual.pause_at;
    } else if line.inner {
        new.pause_at = percent / 100.0;
    }

    let mut gib = old.budget.map_or(0.0, Bytes::as_gib);
    let differs = old.budget != usual.budget;
    let line = row(ui, w::MEMORY_BUDGET.get(lang), hint(differs), differs, |ui| {
        let value = DragValue::new(&mut gib).range(0.0..=1024.0).speed(0.05).update_while_editing(false);
        let value = value.custom_formatter(|gib, _| budget_words(lang, gib)).custom_parser(budget_read);
        ui.add(value.min_size(egui::vec2(NUMBER, 0.0))).changed()
    });
    if line.reset {
        new.budget = usual.budget;
    } else if line.inner {
        // Half a GiB and less is no ceiling: nothing would run.
        new.budget = (gib > 0.5).then_some(Bytes((gib * (1u64 << 30) as f64) as u64));
    }

    let differs = old.clean_every != usual.clean_every;
    let line = row(ui, w::CLEAN_EVERY.get(lang), hint(differs), differs, |ui| {
        choose(ui, "clean every", &[None, Some(1), Some(3), Some(5)], old.clean_every, |n| w::clean_every(lang, n))
    });
    if line.reset {
        new.clean_every = usual.clean_every;
    } else if let Some(every) = line.inner {
        new.clean_every = every;
    }
    if new != old {
        actions.push(Action::SetLimits(new));
    }
}

fn budget_words(lang: Lang, gib: f64) -> String {
    if gib > 0.5 { format!("{gib:.1} GiB") } else { w::NO_BUDGET.get(lang).to_owned() }
}

/// "4", "4 GiB", "3500 MiB": a bare number counts GiB here.
fn budget_read(text: &str) -> Option<f64> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse::<Bytes>().ok().map(Bytes::as_gib))
}

fn habits(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let mut notify = studio.notify_when_done();
    row(ui, w::NOTIFY.get(lang), "", false, |ui| ui.add(Checkbox::without_text(&mut notify)));
    if notify != studio.notify_when_done() {
        actions.push(Action::SetNotifyWhenDone(notify));
    }
    if text_button(ui, Icon::History, w::FORGET_HISTORY.get(lang)).clicked() {
        actions.push(Action::ForgetHistory);
    }
    if let Some(report) = studio.memory().last_report() {
        for line in crate::text::memory::clean_details(lang, report) {
            caption(ui, line);
        }
    }
}
