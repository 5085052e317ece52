//! Below the prompt, while the model is one that knows few words: these words by kind, another example, and the way to a model
//! that knows more.
//!
//! A press on a phrase puts it into the prompt where the cursor is or was last. The menu stays open for the next one; what is
//! in the prompt already has a tick.

use super::fonts::{self, Icon};
use super::theme::{self, Palette, space};
use super::view_state::{Field, ViewState};
use super::widgets::{caption, icon_button, trailing};
use crate::base::Lang;
use crate::base::vocabulary::{Category, Vocabulary, insert_phrase};
use crate::studio::{Action, Setting, Studio};
use crate::text::{pocket, window as w};
use egui::containers::menu::{MenuButton, MenuConfig, SubMenuButton};
use egui::{Button, Color32, Label, PopupCloseBehavior, Response, RichText, ScrollArea, Ui, Vec2};

/// A menu of phrases is no higher than this, in points.
const MENU_HEIGHT: f32 = 320.0;

/// Nothing where the model knows any words.
pub fn show(ui: &mut Ui, studio: &Studio, view: &mut ViewState) -> Vec<Action> {
    let Some(vocabulary) = studio.vocabulary() else { return vec![] };
    let lang = studio.lang();
    let mut actions = Vec::new();
    ui.horizontal(|ui| {
        let quiet = Palette::of(ui).quiet;
        ui.add(Label::new(RichText::new(w::WORDS_KNOWN.get(lang)).small().color(quiet)));
        trailing(ui, "example", |ui| {
            if let Some(example) = next_example(vocabulary, &studio.draft().prompt)
                && icon_button(ui, Icon::RefreshCw, w::EXAMPLE.get(lang)).clicked()
            {
                actions.push(Action::Set(Setting::Prompt(example.to_owned())));
            }
        });
    });
    let mut chosen = None;
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing = Vec2::splat(space::XS);
        ui.spacing_mut().button_padding = Vec2::new(6.0, 2.0);
        ui.spacing_mut().interact_size.y = SMALL;
        ui.horizontal_wrapped(|ui| {
            for category in &vocabulary.categories {
                kind_menu(ui, lang, category, &view.prompt.text, &mut chosen);
            }
        });
    });
    if let Some(phrase) = chosen {
        actions.push(insert(&mut view.prompt, &phrase));
    }
    ui.add_space(space::XS);
    caption(ui, w::POCKET_LINE.get(lang));
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        for (icon, name, action) in [
            (Icon::FileBox, w::OPEN_CHECKPOINT_FILE, Action::OpenModelFile),
            (Icon::FolderOpen, w::OPEN_CHECKPOINT_FOLDER, Action::OpenModelFolder),
        ] {
            if small_button(ui, icon, name.get(lang)).clicked() {
                actions.push(action);
            }
        }
    });
    actions
}

/// The example that follows the one in the prompt, or the first.
fn next_example<'a>(vocabulary: &'a Vocabulary, prompt: &str) -> Option<&'a str> {
    let examples = &vocabulary.examples;
    let next = examples.iter().position(|example| example == prompt).map_or(0, |at| at + 1);
    examples.get(next % examples.len().max(1)).map(String::as_str)
}

/// Puts the phrase into the field and tells the studio. Ctrl+Z in the field takes it out again.
fn insert(field: &mut Field, phrase: &str) -> Action {
    let edited = insert_phrase(&field.text, field.selection.clone(), phrase);
    field.replaced = Some(std::mem::replace(&mut field.text, edited.text));
    field.select_next = Some(edited.selection.clone());
    field.selection = edited.selection;
    Action::Set(Setting::Prompt(field.text.clone()))
}

fn kind_menu(ui: &mut Ui, lang: Lang, category: &Category, prompt: &str, chosen: &mut Option<String>) {
    let name = pocket::kind(lang, &category.name);
    let button = Button::new(RichText::new(&name).small()).min_size(Vec2::new(0.0, SMALL));
    let stays = MenuConfig::new().close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let (response, _) = MenuButton::from_button(button).config(stays).ui(ui, |ui| {
        ui.spacing_mut().button_padding = Vec2::new(10.0, 4.0);
        ScrollArea::vertical().max_height(MENU_HEIGHT).show(ui, |ui| {
            for word in &category.words {
                if category.colors.is_empty() {
                    phrase(ui, lang, word, prompt, chosen);
                } else {
                    in_colors(ui, lang, word, &category.colors, prompt, chosen);
                }
            }
        });
    });
    response.accessible_name(name);
}

/// A piece of clothing, by itself and in each colour.
fn in_colors(ui: &mut Ui, lang: Lang, word: &str, colors: &[String], prompt: &str, chosen: &mut Option<String>) {
    let meaning = pocket::meaning(lang, word);
    let name = meaning.map_or_else(|| word.to_owned(), |meaning| format!("{word}  {meaning}"));
    let button = Button::new(RichText::new(&name)).right_text(fonts::icon(Icon::ChevronRight));
    let (response, _) = SubMenuButton::from_button(button).ui(ui, |ui| {
        phrase(ui, lang, word, prompt, chosen);
        for color in colors {
            phrase(ui, lang, &format!("{color} {word}"), prompt, chosen);
        }
    });
    response.accessible_name(name);
}

/// One phrase: as it goes into the prompt, and what it means.
fn phrase(ui: &mut Ui, lang: Lang, words: &str, prompt: &str, chosen: &mut Option<String>) {
    let p = Palette::of(ui);
    let tick = fonts::icon(Icon::Check);
    // Kept free where it is not drawn, so that all words begin on one line.
    let there = holds(prompt, words);
    let tick = if there { tick } else { tick.color(Color32::TRANSPARENT) };
    let meaning = pocket::meaning(lang, words);
    let name = meaning.as_ref().map_or_else(|| words.to_owned(), |meaning| format!("{words}  {meaning}"));
    let button = match meaning {
        Some(meaning) => Button::selectable(there, (tick, RichText::new(words), RichText::new(meaning).color(p.quiet))),
        None => Button::selectable(there, (tick, RichText::new(words))),
    };
    if ui.add(button).accessible_name(name).clicked() {
        *chosen = Some(words.to_owned());
    }
}

/// Whether the prompt holds these words, not as a part of longer ones.
fn holds(prompt: &str, words: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '-';
    prompt.match_indices(words).any(|(at, _)| {
        let before = prompt.get(..at).and_then(|text| text.chars().next_back());
        let after = prompt.get(at + words.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
    })
}

/// Height of the small buttons, in points.
const SMALL: f32 = 22.0;

fn small_button(ui: &mut Ui, icon: Icon, words: &str) -> Response {
    let quiet = |ui: &mut Ui| {
        theme::make_quiet(ui);
        ui.spacing_mut().button_padding = Vec2::new(6.0, 2.0);
        let icon = RichText::new(icon.unicode()).font(fonts::icon_font(12.0));
        ui.add(Button::new((icon, RichText::new(words).small())).min_size(Vec2::new(0.0, SMALL)))
    };
    ui.scope(quiet).inner.accessible_name(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_follow_each_other_and_begin_again() {
        let vocabulary = Vocabulary { examples: vec!["a".into(), "b".into()], ..Vocabulary::default() };
        assert_eq!(next_example(&vocabulary, "something else"), Some("a"));
        assert_eq!(next_example(&vocabulary, "a"), Some("b"));
        assert_eq!(next_example(&vocabulary, "b"), Some("a"));
        assert_eq!(next_example(&Vocabulary::default(), "a"), None);
    }

    #[test]
    fn a_phrase_is_found_as_a_whole() {
        assert!(holds("photo of a woman, red hair", "woman") && holds("red hair", "red hair"));
        assert!(!holds("photo of a woman", "man") && !holds("sunglasses", "glasses") && !holds("bald-headed", "bald"));
    }
}
