//! Prompt and negative prompt: their fields, token counters, chunk boundaries, and the way back through earlier prompts. The
//! words that a small model knows stand between them, in `prompt_words`.

use super::fonts::Icon;
use super::prompt_words;
use super::shortcuts;
use super::theme::{Palette, space};
use super::view_state::{Field, ViewState};
use super::widgets::{icon_button, trailing};
use crate::base::Lang;
use crate::studio::{Action, Setting, ShotId, Studio, TokenCount};
use crate::text::window as w;
use egui::epaint::text::cursor::CCursor;
use egui::text::{LayoutJob, TextFormat};
use egui::text_selection::CCursorRange;
use egui::{Id, Label, RichText, TextEdit, TextStyle, Ui};

/// Both fields, over the whole width.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let lang = studio.lang();
    let mut actions = Vec::new();
    let area = ui.scope(|ui| {
        header(ui, w::PROMPT.get(lang), studio.prompt_tokens(), lang, |ui| {
            let history = studio.history();
            for (can, icon, name, action) in [
                (history.has_previous(), Icon::ChevronLeft, w::HISTORY_PREVIOUS, Action::HistoryPrevious),
                (history.has_next(), Icon::ChevronRight, w::HISTORY_NEXT, Action::HistoryNext),
            ] {
                if ui.add_enabled_ui(can, |ui| icon_button(ui, icon, name.get(lang))).inner.clicked() {
                    actions.push(action);
                }
            }
        });
        let field =
            FieldLook { id: prompt_id(), rows: 4, name: w::PROMPT.get(lang), hint: w::PROMPT_PLACEHOLDER.get(lang) };
        if edit(ui, &mut view.prompt, &field, studio.prompt_tokens()) {
            actions.push(Action::Set(Setting::Prompt(view.prompt.text.clone())));
        }
        actions.extend(prompt_words::show(ui, studio, view));
        header(ui, w::NEGATIVE_PROMPT.get(lang), studio.negative_tokens(), lang, |_| {});
        let field = FieldLook {
            id: negative_id(),
            rows: 2,
            name: w::NEGATIVE_PROMPT.get(lang),
            hint: w::NEGATIVE_PLACEHOLDER.get(lang),
        };
        if edit(ui, &mut view.negative, &field, studio.negative_tokens()) {
            actions.push(Action::Set(Setting::Negative(view.negative.text.clone())));
        }
    });
    // A picture dragged from the strip onto the prompt brings its settings.
    if let Some(shot) = area.response.dnd_release_payload::<ShotId>() {
        actions.push(Action::UseSettings(*shot));
    }
    actions
}

/// The prompt's field, for the first focus of the window.
pub fn prompt_id() -> Id {
    Id::unique("prompt")
}

fn negative_id() -> Id {
    Id::unique("negative prompt")
}

fn header(ui: &mut Ui, name: &str, count: &TokenCount, lang: Lang, buttons: impl FnOnce(&mut Ui)) {
    let p = Palette::of(ui);
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        ui.add(Label::new(RichText::new(name).color(p.quiet)));
        trailing(ui, name, |ui| {
            buttons(ui);
            let chunks = count.chunks.len() + 1;
            let counter = format!("{}/{}", count.tokens, count.limit * chunks);
            let words =
                w::TOKENS_HELP.with(lang, &[("tokens", &count.tokens), ("chunks", &chunks), ("limit", &count.limit)]);
            ui.add(Label::new(RichText::new(counter).small().color(p.quiet))).on_hover_text(words);
        });
    });
}

struct FieldLook<'a> {
    id: Id,
    rows: usize,
    name: &'a str,
    hint: &'a str,
}

/// Draws the field; true when the person changed its text.
fn edit(ui: &mut Ui, field: &mut Field, look: &FieldLook<'_>, count: &TokenCount) -> bool {
    if let Some(range) = field.select_next.take() {
        let mut state = TextEdit::load_state(ui.ctx(), look.id).unwrap_or_default();
        let (start, end) = (CCursor::new(range.start), CCursor::new(range.end));
        state.cursor.set_char_range(Some(CCursorRange::two(start, end)));
        state.store(ui.ctx(), look.id);
    }
    if let Some(before) = field.replaced.take() {
        keep_for_undo(ui, look.id, [(&before, None), (&field.text, None)]);
    }
    // Taken before the field would move its cursor by them, done after it has taken what was typed before.
    let delta = if field.focused { shortcuts::weight_keys(ui) } else { 0.0 };
    // Chunks after the first lie on grounds in turn, so that one sees where the encoder starts anew.
    let chunks = &count.chunks;
    let mut layouter = |ui: &Ui, text: &dyn egui::TextBuffer, width: f32| {
        ui.fonts_mut(|fonts| fonts.layout_job(layout(ui, text.as_str(), chunks, width)))
    };
    let shown = TextEdit::multiline(&mut field.text)
        .id(look.id)
        .hint_text(look.hint)
        .desired_rows(look.rows)
        .desired_width(f32::INFINITY)
        .layouter(&mut layouter)
        .show(ui);
    let response = shown.response.response.accessible_name(look.name);
    field.focused = response.has_focus();
    if response.lost_focus() {
        // egui notices a change a second later, and by then the field may be left.
        keep_for_undo(ui, look.id, [(&field.text, shown.cursor_range)]);
    }
    field.id = Some(look.id);
    if let Some(range) = shown.cursor_range {
        let [start, end] = range.sorted_cursors();
        field.selection = start.index.0..end.index.0;
    }
    let before = (delta != 0.0).then(|| field.text.clone());
    let weighed = before.is_some() && shortcuts::weigh(field, delta);
    if let Some(before) = before.filter(|_| weighed) {
        let after = CCursorRange::two(CCursor::new(field.selection.start), CCursor::new(field.selection.end));
        keep_for_undo(ui, look.id, [(&before, shown.cursor_range), (&field.text, Some(after))]);
    }
    weighed || response.changed()
}

/// Makes texts that the field did not change by itself steps of its Ctrl+Z, each with its cursor, or that at its end.
fn keep_for_undo<const N: usize>(ui: &Ui, id: Id, texts: [(&str, Option<CCursorRange>); N]) {
    let mut state = TextEdit::load_state(ui.ctx(), id).unwrap_or_default();
    let mut undoer = state.undoer();
    for (text, cursor) in texts {
        let end = CCursor::new(text.chars().count());
        undoer.add_undo(&(cursor.unwrap_or(CCursorRange::one(end)), text.to_owned()));
    }
    state.set_undoer(undoer);
    state.store(ui.ctx(), id);
}

fn layout(ui: &Ui, text: &str, chunks: &[usize], width: f32) -> LayoutJob {
    let p = Palette::of(ui);
    let font = TextStyle::Body.resolve(ui.style());
    let mut job = LayoutJob::default();
    job.wrap.max_width = width;
    let mut from = 0;
    for (index, to) in chunks.iter().copied().chain([text.len()]).enumerate() {
        // The counts are of the studio's text, which is this one or, while an edit is on its way, nearly so.
        let Some(part) = text.get(from..to.min(text.len())) else { continue };
        let mut format = TextFormat::simple(font.clone(), p.text);
        if index % 2 == 1 {
            format.background = p.lifted;
        }
        job.append(part, 0.0, format);
        from += part.len();
    }
    if let Some(rest) = text.get(from..).filter(|rest| !rest.is_empty() || job.sections.is_empty()) {
        job.append(rest, 0.0, TextFormat::simple(font, p.text));
    }
    job
}
