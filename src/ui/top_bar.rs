//! The bar at the top: which checkpoint, VAE and device; cleaning; language, theme, and which panels are open.

use super::fonts::{self, Icon};
use super::theme::{Palette, space};
use super::widgets::{icon_toggle, text_button, trailing, trailing_width};
use crate::base::{DeviceChoice, Lang, ModelChoice, Precision, VaeChoice};
use crate::studio::{Action, Panels, Setting, Studio, Theme};
use crate::text::{memory as m, reasons::reason, window as w};
use egui::containers::menu::MenuButton;
use egui::{AtomExt, Button, Color32, RichText, TextWrapMode, Ui};

/// Menus do not grow wider than this, in points; longer names end in "…".
const MENU: f32 = 320.0;

/// The whole bar, in one line.
pub(super) fn show(ui: &mut Ui, studio: &Studio, room: super::Room) -> Vec<Action> {
    let mut actions = Vec::new();
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::S;
        // What the right side leaves is for names, which can be cut.
        let share = (ui.available_width() - trailing_width(ui, "end") - 3.0 * space::S).max(0.0);
        model_menu(ui, studio, share * 0.4, &mut actions);
        vae_menu(ui, studio, share * 0.24, &mut actions);
        device_menu(ui, studio, share * 0.36, &mut actions);
        trailing(ui, "end", |ui| {
            ui.spacing_mut().item_spacing.x = space::XS;
            clean(ui, studio, &mut actions);
            language_menu(ui, studio, &mut actions);
            theme_menu(ui, studio, &mut actions);
            panel_toggles(ui, studio, room, &mut actions);
        });
    });
    actions
}

/// A button that opens a menu and says what is chosen; no wider than `width`.
fn chooser(ui: &mut Ui, icon: Icon, name: &str, chosen: &str, width: f32, menu: impl FnOnce(&mut Ui)) {
    // Of several texts egui would cut the first, which is the icon.
    let words = RichText::new(chosen).atom_shrink(true);
    let button = Button::new((fonts::icon(icon), words)).wrap_mode(TextWrapMode::Truncate);
    ui.scope(|ui| {
        ui.set_max_width(width);
        let (response, _) = MenuButton::from_button(button).ui(ui, |ui| {
            ui.set_max_width(MENU);
            menu(ui);
        });
        response.accessible_name(format!("{name}: {chosen}")).on_hover_text(format!("{name}: {chosen}"));
    });
}

/// One line of a menu that is chosen or not, told by a tick as well as by its ground.
fn choice(ui: &mut Ui, chosen: bool, words: impl Into<String>) -> bool {
    let words = words.into();
    // Kept free where it is not drawn, so that all words begin on one line.
    let tick = fonts::icon(Icon::Check);
    let tick = if chosen { tick } else { tick.color(Color32::TRANSPARENT) };
    let button = Button::selectable(chosen, (tick, RichText::new(&words).atom_shrink(true))).truncate();
    let chosen = ui.add(button).accessible_name(words).clicked();
    if chosen {
        // By the keyboard too, which the menu itself does not see.
        ui.close();
    }
    chosen
}

/// One line of a menu that does something.
fn deed(ui: &mut Ui, icon: Icon, words: &str) -> bool {
    let pressed = text_button(ui, icon, words).clicked();
    if pressed {
        ui.close();
    }
    pressed
}

fn model_menu(ui: &mut Ui, studio: &Studio, width: f32, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let chosen = match (studio.inspecting(), studio.model_info(), &studio.draft().model) {
        (Some(choice), _, _) => w::LOOKING_AT.with(lang, &[("name", &choice.name())]),
        (None, _, Some(ModelChoice::Pocket)) => w::POCKET_CHOSEN.get(lang).to_owned(),
        (None, Some(info), _) => info.name.clone(),
        (None, None, Some(choice)) => choice.name(),
        (None, None, None) => w::NO_CHECKPOINT.get(lang).to_owned(),
    };
    chooser(ui, Icon::Box, w::CHECKPOINT.get(lang), &chosen, width, |ui| {
        if deed(ui, Icon::FileBox, w::OPEN_CHECKPOINT_FILE.get(lang)) {
            actions.push(Action::OpenModelFile);
        }
        if deed(ui, Icon::FolderOpen, w::OPEN_CHECKPOINT_FOLDER.get(lang)) {
            actions.push(Action::OpenModelFolder);
        }
        let recent = studio.recent_models();
        if !recent.is_empty() {
            ui.separator();
            super::widgets::caption(ui, w::RECENT_CHECKPOINTS.get(lang));
            for model in recent {
                if choice(ui, studio.draft().model.as_ref() == Some(model), model.name()) {
                    actions.push(Action::ModelChosen(model.clone()));
                }
            }
        }
        ui.separator();
        if studio.has_pocket() {
            let pocket = studio.draft().model == Some(ModelChoice::Pocket);
            if choice(ui, pocket, w::POCKET.get(lang)) {
                actions.push(Action::ModelChosen(ModelChoice::Pocket));
            }
        }
        let random = studio.draft().model == Some(ModelChoice::RandomSd15);
        if choice(ui, random, w::RANDOM_WEIGHTS.get(lang)) {
            actions.push(Action::ModelChosen(ModelChoice::RandomSd15));
        }
        if let Some(info) = studio.model_info() {
            ui.separator();
            super::widgets::caption(ui, &info.kind);
            if !info.has_vae {
                super::widgets::caption(ui, w::HAS_NO_VAE.get(lang));
            }
            if let Some(note) = &info.note {
                super::widgets::caption(ui, note);
            }
        }
    });
}

fn vae_menu(ui: &mut Ui, studio: &Studio, width: f32, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let vae = &studio.draft().vae;
    let name = |path: &std::path::Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let chosen = match vae {
        VaeChoice::Automatic => w::VAE_AUTOMATIC.get(lang).to_owned(),
        VaeChoice::Path(path) => name(path),
    };
    let words = format!("{} · {chosen}", w::VAE.get(lang));
    chooser(ui, Icon::Layers, w::VAE.get(lang), &words, width, |ui| {
        if choice(ui, *vae == VaeChoice::Automatic, w::VAE_AUTOMATIC.get(lang)) {
            actions.push(Action::Set(Setting::Vae(VaeChoice::Automatic)));
        }
        super::widgets::caption(ui, w::VAE_AUTOMATIC_HELP.get(lang));
        if let VaeChoice::Path(path) = vae {
            choice(ui, true, name(path));
        }
        if let Some(path) = studio.model_info().and_then(|info| info.suggested_vae.as_ref())
            && *vae != VaeChoice::Path(path.clone())
            && choice(ui, false, name(path))
        {
            actions.push(Action::VaeChosen(VaeChoice::Path(path.clone())));
        }
        ui.separator();
        if deed(ui, Icon::FolderOpen, w::CHOOSE_VAE.get(lang)) {
            actions.push(Action::ChooseVae);
        }
    });
}

fn device_menu(ui: &mut Ui, studio: &Studio, width: f32, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let draft = studio.draft();
    let chosen = match studio.device() {
        Some(device) => device.name.clone(),
        None => w::LOOKING_FOR_DEVICE.get(lang).to_owned(),
    };
    let icon = match studio.device().map(|device| device.choice) {
        Some(DeviceChoice::Cpu) | None => Icon::Cpu,
        Some(_) => Icon::Gpu,
    };
    chooser(ui, icon, w::DEVICE.get(lang), &chosen, width, |ui| {
        if let Some(device) = studio.device() {
            super::widgets::caption(ui, w::device_line(lang, &device.name, device.total));
        }
        let known = [DeviceChoice::Auto, DeviceChoice::Cuda(0), DeviceChoice::Vulkan(0), DeviceChoice::Cpu];
        let other = (!known.contains(&draft.device)).then_some(draft.device);
        for device in known.into_iter().chain(other) {
            if choice(ui, draft.device == device, w::device_choice(lang, device)) {
                actions.push(Action::Set(Setting::Device(device)));
            }
        }
        for passed in studio.device().map(|device| device.passed_over.as_slice()).unwrap_or_default() {
            let words = w::PASSED_OVER.with(lang, &[("device", &passed.device), ("why", &reason(lang, &passed.why))]);
            super::widgets::caption(ui, words);
            if let Some(command) = &passed.command
                && text_button(ui, Icon::Copy, w::COPY_COMMAND.get(lang)).on_hover_text(command).clicked()
            {
                ui.ctx().copy_text(command.clone());
            }
        }
        ui.separator();
        super::widgets::caption(ui, w::PRECISION.get(lang));
        for precision in [Precision::Auto, Precision::F16, Precision::Bf16, Precision::F32] {
            if choice(ui, draft.precision == precision, precision_words(studio, lang, precision)) {
                actions.push(Action::Set(Setting::Precision(precision)));
            }
        }
    });
}

fn precision_words(studio: &Studio, lang: Lang, precision: Precision) -> String {
    match (precision, studio.device()) {
        (Precision::Auto, Some(device)) => {
            w::PRECISION_AUTOMATIC.with(lang, &[("precision", &device.precision.label())])
        }
        (Precision::Auto, None) => w::AUTOMATIC.get(lang).to_owned(),
        (precision, _) => precision.label().to_owned(),
    }
}

fn clean(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let memory = studio.memory();
    let words = match (memory.cleaning(), studio.running().is_some()) {
        (true, true) => m::CLEANING_AT_STEP.get(lang).to_owned(),
        (true, false) => m::CLEANING.get(lang).to_owned(),
        (false, _) => m::clean_button(lang, memory.latest().and_then(|reading| reading.ours_pooled)),
    };
    ui.add_enabled_ui(!memory.cleaning(), |ui| {
        // Whatever amount it shows, its name stays the same.
        let name = if memory.cleaning() { words.as_str() } else { m::CLEAN_MEMORY.get(lang) };
        let button = text_button(ui, Icon::BrushCleaning, words.as_str()).accessible_name(name);
        if button.on_hover_text(m::CLEAN_HELP.get(lang)).clicked() {
            actions.push(Action::Clean);
        }
    });
}

fn icon_menu(ui: &mut Ui, icon: Icon, name: &str, menu: impl FnOnce(&mut Ui)) {
    ui.scope(|ui| {
        super::theme::make_quiet(ui);
        ui.spacing_mut().button_padding = egui::Vec2::ZERO;
        let button = Button::new(fonts::icon(icon)).min_size(egui::Vec2::splat(super::theme::CONTROL));
        let (response, _) = MenuButton::from_button(button).ui(ui, |ui| {
            ui.spacing_mut().button_padding = egui::Vec2::new(10.0, 4.0);
            menu(ui);
        });
        response.accessible_name(name).on_hover_text(name);
    });
}

fn language_menu(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    icon_menu(ui, Icon::Languages, w::LANGUAGE.get(lang), |ui| {
        if choice(ui, studio.lang_choice().is_none(), w::LANGUAGE_SYSTEM.get(lang)) {
            actions.push(Action::SetLang(None));
        }
        for other in Lang::ALL {
            if choice(ui, studio.lang_choice() == Some(other), other.own_name()) {
                actions.push(Action::SetLang(Some(other)));
            }
        }
    });
}

fn theme_menu(ui: &mut Ui, studio: &Studio, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let icon = if ui.visuals().dark_mode { Icon::Moon } else { Icon::Sun };
    icon_menu(ui, icon, w::THEME.get(lang), |ui| {
        for (theme, words) in
            [(Theme::System, w::THEME_SYSTEM), (Theme::Dark, w::THEME_DARK), (Theme::Light, w::THEME_LIGHT)]
        {
            if choice(ui, studio.theme() == theme, words.get(lang)) {
                actions.push(Action::SetTheme(theme));
            }
        }
    });
}

fn panel_toggles(ui: &mut Ui, studio: &Studio, room: super::Room, actions: &mut Vec<Action>) {
    let lang = studio.lang();
    let panels = *studio.panels();
    let p = Palette::of(ui);
    let (rect, _) = ui.allocate_exact_size(egui::vec2(space::S, 16.0), egui::Sense::hover());
    ui.painter().vline(rect.center().x, rect.y_range(), egui::Stroke::new(1.0, p.hairline));
    let band = Panels { band_open: !panels.band_open, ..panels };
    let strip = Panels { strip_open: !panels.strip_open, ..panels };
    for (icon, name, open, room, turned) in [
        (Icon::PanelBottom, m::GAUGE, panels.band_open, room.band, band),
        (Icon::PanelRight, w::FINISHED, panels.strip_open, room.strip, strip),
    ] {
        ui.add_enabled_ui(room, |ui| {
            let toggle = icon_toggle(ui, icon, name.get(lang), open && room);
            if toggle.on_disabled_hover_text(w::NO_ROOM.get(lang)).clicked() {
                actions.push(Action::SetPanels(turned));
            }
        });
    }
}
