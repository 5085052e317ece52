//! The card over the dimmed picture while a job is paused: why, in figures, and what can be done.

use super::fonts::{self, Icon};
use super::theme::{self, Palette, space};
use super::widgets::text_button;
use crate::base::problem::Phase;
use crate::studio::{Action, PauseReason, Studio};
use crate::text::{memory as m, window as w};
use egui::{RichText, Ui};

/// The card's contents; [`super::canvas`] puts them on a plate in the middle of the picture.
pub fn show(ui: &mut Ui, studio: &Studio, reason: &PauseReason, interrupted: Phase) -> Vec<Action> {
    let lang = studio.lang();
    let p = Palette::of(ui);
    let mut actions = Vec::new();
    let (icon, ink, said) = match reason {
        PauseReason::Asked => {
            let step = match interrupted {
                Phase::Denoising { step, .. } if step > 0 => Some(step),
                _ => None,
            };
            (Icon::Pause, p.quiet, m::paused_by_hand(lang, step))
        }
        PauseReason::LowMemory { step, used, limit, others } => {
            (Icon::TriangleAlert, p.safelight, m::paused_low_memory(lang, *step, *used, *limit, *others))
        }
    };
    ui.horizontal_top(|ui| {
        ui.label(RichText::new(icon.unicode()).font(fonts::icon_font(20.0)).color(ink));
        ui.vertical(|ui| {
            ui.label(RichText::new(said).size(14.0).strong());
            if let PauseReason::LowMemory { used, limit, .. } = reason {
                ui.label(RichText::new(m::LATENT_STAYS.get(lang)).color(p.quiet));
                ui.label(RichText::new(m::goes_on(lang, *used, *limit)).color(p.quiet));
            }
        });
    });
    ui.add_space(space::XS);
    ui.horizontal_wrapped(|ui| {
        let low = matches!(reason, PauseReason::LowMemory { .. });
        let go_on = if low { w::RESUME_ANYWAY } else { w::RESUME };
        ui.scope(|ui| {
            theme::make_primary(ui);
            if text_button(ui, Icon::Play, go_on.get(lang)).clicked() {
                actions.push(Action::Resume);
            }
        });
        if low && text_button(ui, Icon::BrushCleaning, m::CLEAN_MEMORY.get(lang)).clicked() {
            actions.push(Action::Clean);
        }
        if text_button(ui, Icon::Square, w::STOP_AND_KEEP.get(lang)).clicked() {
            actions.push(Action::StopAndKeep);
        }
        if text_button(ui, Icon::X, w::CANCEL.get(lang)).clicked() {
            actions.push(Action::Cancel);
        }
    });
    actions
}
