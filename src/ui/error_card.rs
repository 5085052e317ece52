//! What went wrong: a sentence, the next steps as buttons, and the technical details for whoever asks.

use super::fonts::{self, Icon};
use super::theme::{self, Palette, space};
use super::view_state::ViewState;
use super::widgets::{icon_button, text_button};
use crate::base::Hint;
use crate::studio::{Action, Studio, Trouble};
use crate::text::{problems, window as w};
use egui::{Align, Label, Layout, RichText, ScrollArea, TextWrapMode, Ui};

/// The card's contents; [`super::canvas`] puts them on a plate.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState, trouble: &Trouble) -> Vec<Action> {
    let lang = studio.lang();
    let p = Palette::of(ui);
    let mut actions = Vec::new();
    ui.horizontal_top(|ui| {
        ui.label(RichText::new(Icon::CircleAlert.unicode()).font(fonts::icon_font(20.0)).color(p.safelight));
        let words = ui.available_width() - theme::CONTROL - space::S;
        ui.allocate_ui_with_layout(egui::vec2(words, 0.0), Layout::top_down(Align::Min), |ui| {
            ui.set_width(words);
            let headline = RichText::new(headline(studio, trouble)).size(14.0).strong();
            ui.add(Label::new(headline).wrap_mode(TextWrapMode::Wrap));
        });
        if icon_button(ui, Icon::X, w::DISMISS.get(lang)).clicked() {
            actions.push(Action::DismissTrouble);
        }
    });
    ui.add_space(space::XS);
    ui.horizontal_wrapped(|ui| {
        for (index, hint) in trouble.hints().iter().enumerate() {
            ui.scope(|ui| {
                if index == 0 {
                    theme::make_primary(ui);
                }
                if text_button(ui, hint_icon(hint), problems::hint(lang, hint)).clicked() {
                    actions.push(Action::TakeHint(hint.clone()));
                }
            });
        }
        if !trouble.details().is_empty() {
            let caret = if view.details_open { Icon::ChevronDown } else { Icon::ChevronRight };
            if text_button(ui, caret, w::DETAILS.get(lang)).clicked() {
                view.details_open = !view.details_open;
            }
        }
    });
    if view.details_open && !trouble.details().is_empty() {
        ui.add_space(space::XS);
        ScrollArea::vertical().max_height(120.0).id_salt("details").show(ui, |ui| {
            let text = RichText::new(trouble.details()).monospace().color(p.quiet);
            ui.add(Label::new(text).wrap_mode(TextWrapMode::Wrap).selectable(true));
        });
        if text_button(ui, Icon::Copy, w::COPY_DETAILS.get(lang)).clicked() {
            ui.ctx().copy_text(trouble.details().to_owned());
        }
    }
    actions
}

fn headline(studio: &Studio, trouble: &Trouble) -> String {
    let lang = studio.lang();
    match trouble {
        Trouble::Draft(error) => problems::request_error(lang, error),
        Trouble::Job { error, .. } => problems::headline(lang, &error.problem),
        Trouble::EngineGone => problems::ENGINE_GONE.get(lang).to_owned(),
    }
}

fn hint_icon(hint: &Hint) -> Icon {
    match hint {
        Hint::OpenModel => Icon::FolderOpen,
        Hint::ChooseVae => Icon::Layers,
        Hint::UseSize(_) => Icon::Scaling,
        Hint::UseDevice(_) => Icon::Cpu,
        Hint::UseF32 => Icon::Binary,
        Hint::CleanMemory => Icon::BrushCleaning,
        Hint::ChooseFolder => Icon::Folder,
        Hint::TryAgain => Icon::RotateCw,
        Hint::SaveAs => Icon::Save,
        Hint::Install(_) => Icon::Copy,
        Hint::CheckDownload => Icon::Download,
    }
}
