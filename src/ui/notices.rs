//! Quiet lines over the lower left of the canvas, newest at the bottom. What only confirms goes by itself; what one should
//! have read stays until it is dismissed or pushed out.

use super::fonts::{self, Icon};
use super::theme::{CONTROL, Palette, RADIUS, space};
use super::view_state::ViewState;
use super::widgets::icon_button;
use crate::base::Notice;
use crate::studio::{Action, Line, Studio};
use crate::text::{memory as m, notices as n, reasons, window as w};
use egui::{
    Align, Label, Layout, Rect, RichText, Sense, Stroke, StrokeKind, TextStyle, TextWrapMode, Ui, UiBuilder, Vec2, pos2,
};
use std::time::Duration;

/// The widest the words of a line get, in points, before they wrap.
const WIDEST: f32 = 380.0;

/// Seconds that a confirmation stays.
const CONFIRMATION: f64 = 8.0;

/// Draws the lines upwards from the lower left of `surface`.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState, surface: Rect) -> Vec<Action> {
    let mut actions = Vec::new();
    let now = ui.input(|i| i.time);
    view.noticed.retain(|(id, _)| studio.notices().iter().any(|line| line.id == *id));
    let room = surface.shrink(space::S);
    let mut bottom = room.bottom();
    for line in studio.notices().iter().rev() {
        let p = Palette::of(ui);
        let (icon, ink, words) = words(studio, p, &line.what);
        let command = command(&line.what);
        let buttons = if command.is_some() { 2.0 } else { 1.0 } * (CONTROL + space::XS);
        let around = 10.0 + fonts::ICON + space::S + buttons + space::XS;
        let font = TextStyle::Body.resolve(ui.style());
        let widest = WIDEST.min(room.width() - around).max(40.0);
        let galley = ui.painter().layout(words.clone(), font, p.text, widest);
        let size = Vec2::new(galley.size().x.ceil() + around, galley.size().y.max(CONTROL) + 4.0);
        let plate = Rect::from_min_size(pos2(room.left(), bottom - size.y), size);
        // What does not fit above is older: it waits for its turn.
        if plate.top() < room.top() {
            break;
        }
        ui.painter().rect(plate, RADIUS, p.panel, Stroke::new(1.0, p.hairline), StrokeKind::Inside);
        let inside = Rect::from_min_max(pos2(plate.left() + 10.0, plate.top()), plate.right_bottom());
        let mut row = ui.new_child(UiBuilder::new().max_rect(inside).layout(Layout::left_to_right(Align::Center)));
        row.spacing_mut().item_spacing.x = space::XS;
        row.label(fonts::icon(icon).color(ink));
        row.add_space(space::XS);
        row.allocate_ui_with_layout(galley.size().ceil(), Layout::left_to_right(Align::Center), |ui| {
            ui.add(Label::new(RichText::new(words).color(p.text)).wrap_mode(TextWrapMode::Wrap));
        });
        let lang = studio.lang();
        if let Some(command) = command
            && icon_button(&mut row, Icon::Copy, w::COPY_COMMAND.get(lang)).clicked()
        {
            row.ctx().copy_text(command.to_owned());
        }
        if icon_button(&mut row, Icon::X, w::DISMISS.get(lang)).clicked() {
            actions.push(Action::DismissNotice(line.id));
        }
        if let Line::Cleaned(report) = &line.what {
            let hover = row.interact(plate, row.scope_id().with("cleaned"), Sense::hover());
            hover.on_hover_text(m::clean_details(lang, report).join("\n"));
        }
        bottom = plate.top() - space::XS;
        if confirms(&line.what) {
            let since = match view.noticed.iter().find(|(id, _)| *id == line.id) {
                Some((_, since)) => *since,
                None => {
                    view.noticed.push((line.id, now));
                    now
                }
            };
            let left = since + CONFIRMATION - now;
            // Not from under the pointer.
            if left <= 0.0 && !row.rect_contains_pointer(plate) {
                actions.push(Action::DismissNotice(line.id));
            } else {
                let left = Duration::try_from_secs_f64(left.max(0.25)).unwrap_or_default();
                row.ctx().request_repaint_after(left);
            }
        }
    }
    actions
}

/// Whether a line only says that what was asked for is done.
fn confirms(what: &Line) -> bool {
    match what {
        Line::Done { .. } | Line::Cancelled | Line::Saved(_) | Line::Copied | Line::SettingsTaken => true,
        Line::Engine(_) | Line::Cleaned(_) | Line::QueueFull { .. } | Line::VaeChosen(_) => false,
        Line::NoSettings | Line::NoDialog | Line::Failed(_) => false,
    }
}

fn command(what: &Line) -> Option<&str> {
    match what {
        Line::Engine(Notice::BetterDevice { command, .. }) => command.as_deref(),
        _ => None,
    }
}

fn words(studio: &Studio, p: &Palette, what: &Line) -> (Icon, egui::Color32, String) {
    let lang = studio.lang();
    match what {
        Line::Engine(notice) => (Icon::Info, p.quiet, n::notice(lang, notice)),
        Line::Done { images, seconds } => (Icon::Check, p.done, n::done(lang, *images, *seconds)),
        Line::Cancelled => (Icon::Ban, p.quiet, n::CANCELLED.get(lang).to_owned()),
        Line::Cleaned(report) => (Icon::BrushCleaning, p.quiet, m::clean_report(lang, report)),
        Line::Saved(path) => (Icon::Save, p.done, n::saved(lang, path)),
        Line::Copied => (Icon::Copy, p.done, n::COPIED.get(lang).to_owned()),
        Line::SettingsTaken => (Icon::Check, p.done, n::SETTINGS_TAKEN.get(lang).to_owned()),
        Line::NoSettings => (Icon::Info, p.quiet, n::NO_SETTINGS.get(lang).to_owned()),
        Line::QueueFull { count } => (Icon::TriangleAlert, p.quiet, n::QUEUE_FULL.with(lang, &[("count", count)])),
        Line::VaeChosen(path) => (Icon::Layers, p.quiet, n::VAE_CHOSEN.with(lang, &[("file", &file_name(path))])),
        Line::NoDialog => (Icon::TriangleAlert, p.quiet, n::NO_DIALOG.get(lang).to_owned()),
        Line::Failed(why) => {
            (Icon::TriangleAlert, p.safelight, n::DID_NOT_WORK.with(lang, &[("why", &reasons::reason(lang, why))]))
        }
    }
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
