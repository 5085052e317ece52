//! The phrases that a model is known to follow, and putting one into a prompt.
//!
//! A small model knows few words; the window offers them beside the prompt. Which they are lies beside the model's weights.

use super::emphasis::Edited;
use serde::Deserialize;
use std::ops::Range;

/// What a model was taught to read. In the model's language, which is English.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Vocabulary {
    pub categories: Vec<Category>,
    /// Whole prompts made of such phrases.
    pub examples: Vec<String>,
}

/// Phrases of one kind: hair, clothing, light.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Category {
    pub name: String,
    pub words: Vec<String>,
    /// Colours that each of the words can have: "red" before "t-shirt". Mostly none.
    pub colors: Vec<String>,
}

/// Puts a phrase into a prompt, set off by commas.
///
/// `selection` is in characters. What is selected gives way. A cursor between two commas goes to the end of what stands there
/// first, so that no phrase is torn; one before any words of them stays. The cursor is behind the phrase then.
pub fn insert_phrase(text: &str, selection: Range<usize>, phrase: &str) -> Edited {
    let chars: Vec<char> = text.chars().collect();
    let mut start = selection.start.min(selection.end).min(chars.len());
    let mut end = selection.start.max(selection.end).min(chars.len());
    let is_break = |c: &char| matches!(c, ',' | '\n');
    if start == end {
        let before = chars.iter().take(start).rev().take_while(|c| !is_break(c));
        if before.clone().any(|c| !c.is_whitespace()) {
            start += chars.iter().skip(start).take_while(|c| !is_break(c)).count();
            end = start;
        }
    }
    let before: String = chars.iter().take(start).collect();
    let after: String = chars.iter().skip(end).collect();
    let before = before.trim_end_matches(' ');
    let after = after.trim_start_matches(' ');
    let opening = match before.chars().last() {
        None | Some('\n' | '(' | '[') => "",
        Some(',') => " ",
        Some(_) => ", ",
    };
    let closing = match after.chars().next() {
        None | Some(',' | '\n' | ')' | ']') => "",
        Some(_) => ", ",
    };
    let edited = format!("{before}{opening}{phrase}{closing}{after}");
    let cursor = before.chars().count() + opening.chars().count() + phrase.chars().count();
    Edited { text: edited, selection: cursor..cursor }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` marks the ends of the selection, or the cursor.
    fn insert(marked: &str) -> String {
        let places: Vec<usize> = marked.chars().enumerate().filter(|(_, c)| *c == '|').map(|(at, _)| at).collect();
        let selection = match places[..] {
            [at] => at..at,
            [from, to] => from..to - 1,
            _ => panic!("mark one or two places in {marked}"),
        };
        let Edited { text, selection } = insert_phrase(&marked.replace('|', ""), selection, "red hair");
        assert_eq!(selection.start, selection.end);
        let mut chars: Vec<char> = text.chars().collect();
        chars.insert(selection.end, '|');
        chars.into_iter().collect()
    }

    #[test]
    fn a_phrase_stands_between_commas_wherever_the_cursor_is() {
        for (given, wanted) in [
            ("|", "red hair|"),
            ("photo of a woman|", "photo of a woman, red hair|"),
            ("photo of a woman, |", "photo of a woman, red hair|"),
            ("photo of a woman,|", "photo of a woman, red hair|"),
            ("photo of| a woman", "photo of a woman, red hair|"),
            ("photo| of a woman, smiling", "photo of a woman, red hair|, smiling"),
            ("photo, |smiling", "photo, red hair|, smiling"),
            ("|photo, smiling", "red hair|, photo, smiling"),
            ("photo, |blue hair|, smiling", "photo, red hair|, smiling"),
            ("|blue hair|", "red hair|"),
            ("一位女子|，微笑", "一位女子，微笑, red hair|"),
            ("photo\n|smiling", "photo\nred hair|, smiling"),
            ("photo|\nsmiling", "photo, red hair|\nsmiling"),
            ("photo, (|smiling:1.2)", "photo, (smiling:1.2), red hair|"),
        ] {
            assert_eq!(insert(given), wanted, "{given}");
        }
    }

    #[test]
    fn a_cursor_beyond_the_text_is_at_its_end() {
        assert_eq!(insert_phrase("a", 7..9, "b"), Edited { text: "a, b".to_owned(), selection: 4..4 });
    }
}
