//! The settings of the next picture: size, steps, CFG, sampler, schedule, seed, count. Labels left, values right.

use super::fonts::{self, Icon};
use super::theme::{Palette, space};
use super::view_state::ViewState;
use super::widgets::{icon_button, icon_toggle, row, size_frames};
use crate::base::{SamplerKind, ScheduleKind, ShotRequest, Size};
use crate::studio::{Action, Draft, Field, SeedChoice, Setting, Studio};
use crate::text::window as w;
use egui::{ComboBox, DragValue, Slider, SliderClamping, TextEdit, Ui};

/// Width of a number's field and of a chooser, in points.
pub(super) const NUMBER: f32 = 56.0;
pub(super) const CHOOSER: f32 = 176.0;
const SLIDER: f32 = 130.0;

/// Everything below the prompts; the advanced part is folded away by [`super::settings_advanced`].
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let mut actions = Vec::new();
    size(ui, studio, &mut actions);
    numbers(ui, studio, &mut actions);
    sampling(ui, studio, &mut actions);
    seed(ui, studio, view, &mut actions);
    count(ui, studio, &mut actions);
    actions.extend(super::settings_advanced::show(ui, studio, view));
    actions
}

/// A row of a field of the draft: marked where it differs, put back by a double-click.
pub(super) fn field<R>(
    ui: &mut Ui,
    studio: &Studio,
    field: Field,
    label: &str,
    actions: &mut Vec<Action>,
    value: impl FnOnce(&mut Ui) -> R,
) -> R {
    let differs = studio.draft().differs(field);
    let hint = if differs { w::RESET_HELP.get(studio.lang()) } else { "" };
    let row = row(ui, label, hint, differs, value);
    if row.reset {
        actions.push(Action::Reset(field));
    }
    row.inner
}

fn size(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let size = studio.draft().size;
    let (mut width, mut height) = (size.width(), size.height());
    let mut swap = false;
    field(ui, studio, Field::Size, w::SIZE.get(lang), actions, |ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        side(ui, &mut width, w::WIDTH.get(lang));
        ui.label("×");
        side(ui, &mut height, w::HEIGHT.get(lang));
        swap = icon_button(ui, Icon::ArrowLeftRight, w::SWAP_SIZE.get(lang)).clicked();
    });
    if swap {
        actions.push(Action::SwapSize);
    } else if (width, height) != (size.width(), size.height()) {
        actions.push(Action::Set(Setting::Size(Size::nearest(width, height))));
    }
    if let Some(size) = size_frames(ui, studio.draft().sizes(), size) {
        actions.push(Action::Set(Setting::Size(size)));
    }
}

/// One side in pixels. What is typed is brought to the nearest multiple of 8 when the field is left.
fn side(ui: &mut Ui, pixels: &mut u32, name: &str) {
    let value = DragValue::new(pixels)
        .range(Size::LEAST..=Size::MOST)
        .speed(Size::STEP)
        .update_while_editing(false)
        .min_size(egui::vec2(NUMBER, 0.0));
    ui.add(value).accessible_name(name).on_hover_text(name);
}

fn numbers(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let draft = studio.draft();
    let mut steps = draft.steps;
    field(ui, studio, Field::Steps, w::STEPS.get(lang), actions, |ui| {
        // The slider spans what is useful; more can be typed.
        slider(ui, |ui| ui.add(Slider::new(&mut steps, 1..=60).clamping(SliderClamping::Never).show_value(false)));
        let value = DragValue::new(&mut steps).range(ShotRequest::STEPS).speed(0.2).min_size(egui::vec2(NUMBER, 0.0));
        ui.add(value.update_while_editing(false));
    });
    if steps != draft.steps {
        actions.push(Action::Set(Setting::Steps(steps)));
    }
    let mut cfg = draft.cfg;
    let help = w::CFG_HELP.get(lang);
    field(ui, studio, Field::Cfg, w::CFG.get(lang), actions, |ui| {
        let range = *ShotRequest::CFG.start()..=20.0;
        slider(ui, |ui| {
            ui.add(Slider::new(&mut cfg, range).clamping(SliderClamping::Never).step_by(0.5).show_value(false))
        })
        .on_hover_text(help);
        let value = DragValue::new(&mut cfg).range(ShotRequest::CFG).speed(0.05).fixed_decimals(1);
        ui.add(value.update_while_editing(false).min_size(egui::vec2(NUMBER, 0.0))).on_hover_text(help);
    });
    if cfg != draft.cfg {
        actions.push(Action::Set(Setting::Cfg(cfg)));
    }
}

fn slider(ui: &mut Ui, add: impl FnOnce(&mut Ui) -> egui::Response) -> egui::Response {
    ui.scope(|ui| {
        ui.spacing_mut().slider_width = SLIDER.min(ui.available_width() - NUMBER - space::S).max(0.0);
        ui.visuals_mut().widgets.inactive.bg_fill = Palette::of(ui).lifted;
        let response = add(ui);
        if response.has_focus() {
            // egui's own handle does not show it.
            let ring = ui.visuals().widgets.active.bg_stroke;
            ui.painter().rect_stroke(response.rect.expand(2.0), super::theme::RADIUS, ring, egui::StrokeKind::Inside);
        }
        response
    })
    .inner
}

fn sampling(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let draft = studio.draft();
    field(ui, studio, Field::Sampler, w::SAMPLER.get(lang), actions, |ui| {
        chooser("sampler", draft.sampler.label()).show_ui(ui, |ui| {
            SamplerKind::ALL
                .into_iter()
                .find(|kind| ui.selectable_label(*kind == draft.sampler, kind.label()).clicked())
        })
    })
    .inner
    .flatten()
    .into_iter()
    .for_each(|kind| actions.push(Action::Set(Setting::Sampler(kind))));
    field(ui, studio, Field::Schedule, w::SCHEDULE.get(lang), actions, |ui| {
        chooser("schedule", draft.schedule.label()).show_ui(ui, |ui| schedules(ui, draft, lang))
    })
    .inner
    .flatten()
    .into_iter()
    .for_each(|kind| actions.push(Action::Set(Setting::Schedule(kind))));
}

/// A list that drops down, with the window's own caret.
pub(super) fn chooser<'a>(id: &'a str, chosen: impl Into<String>) -> ComboBox<'a> {
    let caret = |ui: &Ui, rect: egui::Rect, visuals: &egui::style::WidgetVisuals, _open: bool| {
        let ink = visuals.fg_stroke.color;
        let caret = Icon::ChevronDown.unicode();
        ui.painter().text(rect.center(), egui::Align2::CENTER_CENTER, caret, fonts::icon_font(14.0), ink);
    };
    ComboBox::from_id_salt(id).width(CHOOSER).truncate().icon(caret).selected_text(chosen.into())
}

/// All schedules; those that do not go with the sampler are shown and say so.
fn schedules(ui: &mut Ui, draft: &Draft, lang: crate::base::Lang) -> Option<ScheduleKind> {
    let mut chosen = None;
    for kind in ScheduleKind::ALL {
        ui.add_enabled_ui(draft.sampler.pairs_with(kind), |ui| {
            let why = w::SCHEDULE_NOT_WITH.with(lang, &[("sampler", &draft.sampler.label())]);
            let item = ui.selectable_label(kind == draft.schedule, kind.label()).on_disabled_hover_text(why);
            if item.clicked() {
                chosen = Some(kind);
            }
        });
    }
    chosen
}

fn seed(ui: &mut Ui, studio: &Studio, view: &mut ViewState, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let (text, made_from) = &mut view.seed;
    let (mut dice, mut reuse, mut typed) = (false, false, None);
    field(ui, studio, Field::Seed, w::SEED.get(lang), actions, |ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        let wrong = SeedChoice::from_text(text).is_none();
        let ink = wrong.then_some(Palette::of(ui).safelight);
        let edit = TextEdit::singleline(text)
            .desired_width(CHOOSER - 2.0 * (super::theme::CONTROL + space::XS))
            .text_color_opt(ink)
            .align(egui::Align2::LEFT_CENTER)
            .char_limit(24);
        let edit = ui.add(edit).accessible_name(w::SEED.get(lang)).on_hover_text(w::SEED_HELP.get(lang));
        if wrong {
            // Not by colour alone.
            edit.show_tooltip_text(w::SEED_HELP.get(lang));
        }
        if edit.changed() {
            typed = SeedChoice::from_text(text);
        }
        if edit.lost_focus() && wrong {
            *made_from = None;
        }
        let random = studio.draft().seed == SeedChoice::Random;
        dice = icon_toggle(ui, Icon::Dices, w::SEED_RANDOM.get(lang), random).clicked();
        let has_shot = studio.shots().newest().is_some();
        ui.add_enabled_ui(has_shot, |ui| {
            reuse = icon_button(ui, Icon::Recycle, w::SEED_REUSE.get(lang)).clicked();
        });
    });
    if dice {
        actions.push(Action::RollSeed);
    } else if reuse {
        actions.push(Action::ReuseSeed);
    } else if let Some(choice) = typed.filter(|choice| *choice != studio.draft().seed) {
        // What was typed stays as it was typed ("007"), until the choice changes elsewhere.
        view.seed.1 = Some(choice);
        actions.push(Action::Set(Setting::Seed(choice)));
    }
}

fn count(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let draft = studio.draft();
    let mut count = draft.count;
    let mut forever = draft.forever;
    field(ui, studio, Field::Count, w::COUNT.get(lang), actions, |ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        ui.add_enabled_ui(!forever, |ui| {
            let value = DragValue::new(&mut count).range(ShotRequest::COUNT).speed(0.1).update_while_editing(false);
            ui.add(value.min_size(egui::vec2(NUMBER, 0.0)));
        });
        let name = w::FOREVER.get(lang);
        let toggle = icon_toggle(ui, Icon::Infinity, name, forever);
        if toggle.on_hover_text(w::FOREVER_HELP.get(lang)).clicked() {
            forever = !forever;
        }
    });
    if forever != draft.forever {
        actions.push(Action::Set(Setting::Forever(forever)));
    }
    if count != draft.count {
        actions.push(Action::Set(Setting::Count(count)));
    }
}
