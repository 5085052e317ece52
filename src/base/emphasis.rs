//! Editing a prompt's weights in place: what Ctrl+Up and Ctrl+Down do to the words under the cursor.
//!
//! Pure text in, text out; the window calls it with the cursor's range and puts the result back.

use std::ops::Range;

/// How much one key press changes a weight.
pub const WEIGHT_STEP: f32 = 0.1;
/// Weights a person can reach by keys.
pub const WEIGHT_RANGE: std::ops::RangeInclusive<f32> = 0.0..=10.0;

/// A text after an edit, and what is selected in it then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    /// In characters, as egui counts.
    pub selection: Range<usize>,
}

/// Changes the weight of the selected words by `delta`, usually plus or minus [`WEIGHT_STEP`].
///
/// `selection` is in characters. An empty one means the bracket that the cursor stands in, if that carries a weight, else the
/// word at the cursor. Words that carry no weight are wrapped as `(words:1.1)`; a weight that is there is changed; at 1.0 the
/// brackets go. Brackets that stand alone, `(words)`, count as 1.1. `None` where there is no word or nothing changes.
pub fn adjust_weight(text: &str, selection: Range<usize>, delta: f32) -> Option<Edited> {
    let chars: Vec<char> = text.chars().collect();
    let start = selection.start.min(selection.end).min(chars.len());
    let end = selection.start.max(selection.end).min(chars.len());
    let (words, bracket) = if start == end {
        match enclosing(&chars, start) {
            Some(bracket) => (bracket.words.clone(), Some(bracket)),
            None => {
                let word = word_at(&chars, start)?;
                (word.clone(), around(&chars, word))
            }
        }
    } else {
        let words = trimmed(&chars, start..end)?;
        // The selection may hold the brackets itself, or stand just within them.
        match whole(&chars, words.clone()) {
            Some(bracket) => (bracket.words.clone(), Some(bracket)),
            None => (words.clone(), around(&chars, words)),
        }
    };

    let old = bracket.as_ref().map_or(1.0, |bracket| bracket.weight);
    // Two decimals, so that ten steps of 0.1 make exactly one.
    let rounded = ((f64::from(old) + f64::from(delta)) * 100.0).round() / 100.0;
    let new = rounded.clamp(f64::from(*WEIGHT_RANGE.start()), f64::from(*WEIGHT_RANGE.end()));
    let outer = bracket.map_or(words.clone(), |bracket| bracket.outer);
    let middle: String = chars.get(words.clone())?.iter().collect();
    let (opening, closing) = if new == 1.0 { ("", String::new()) } else { ("(", format!(":{new})")) };

    let before: String = chars.get(..outer.start)?.iter().collect();
    let after: String = chars.get(outer.end..)?.iter().collect();
    let edited = format!("{before}{opening}{middle}{closing}{after}");
    let from = outer.start + opening.len();
    (edited != text).then(|| Edited { text: edited, selection: from..from + words.len() })
}

/// A pair of round brackets that gives words a weight. Ranges in characters.
struct Bracket {
    /// With the brackets and the number.
    outer: Range<usize>,
    words: Range<usize>,
    weight: f32,
}

/// Reads the bracket that opens at `open` and closes at `close`.
fn bracket(chars: &[char], open: usize, close: usize) -> Option<Bracket> {
    let inner = chars.get(open + 1..close)?;
    let colon = inner.iter().rposition(|&c| c == ':');
    let number = colon.and_then(|at| {
        let number: String = inner.get(at + 1..)?.iter().collect();
        let number = number.trim();
        let plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'));
        Some((at, number.parse::<f32>().ok().filter(|value| plain && value.is_finite())?))
    });
    let (length, weight) = number.unwrap_or((inner.len(), 1.1));
    Some(Bracket { outer: open..close + 1, words: open + 1..open + 1 + length, weight })
}

fn is_escaped(chars: &[char], at: usize) -> bool {
    chars.iter().take(at).rev().take_while(|&&c| c == '\\').count() % 2 == 1
}

/// The bracket that belongs to the one opening at `open`.
fn closing(chars: &[char], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut escaped = false;
    for (at, &c) in chars.iter().enumerate().skip(open) {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The innermost bracket around the cursor at `at`, if it carries a number.
fn enclosing(chars: &[char], at: usize) -> Option<Bracket> {
    let mut depth = 0usize;
    for open in (0..at).rev() {
        match chars.get(open) {
            Some(')') if !is_escaped(chars, open) => depth += 1,
            Some('(') if !is_escaped(chars, open) => {
                if depth == 0 {
                    let close = closing(chars, open)?;
                    let bracket = bracket(chars, open, close)?;
                    let numbered = bracket.words.end + 1 < bracket.outer.end;
                    return numbered.then_some(bracket);
                }
                depth -= 1;
            }
            _ => {}
        }
    }
    None
}

/// The bracket that `range` is, from its opening to its closing.
fn whole(chars: &[char], range: Range<usize>) -> Option<Bracket> {
    let open = range.start;
    if chars.get(open) != Some(&'(') || is_escaped(chars, open) {
        return None;
    }
    closing(chars, open).filter(|close| close + 1 == range.end).and_then(|close| bracket(chars, open, close))
}

/// The bracket whose words are exactly `words`.
fn around(chars: &[char], words: Range<usize>) -> Option<Bracket> {
    let open = words.start.checked_sub(1)?;
    if chars.get(open) != Some(&'(') || is_escaped(chars, open) {
        return None;
    }
    let close = closing(chars, open)?;
    bracket(chars, open, close).filter(|bracket| bracket.words == words)
}

/// The word that the cursor at `at` touches.
fn word_at(chars: &[char], at: usize) -> Option<Range<usize>> {
    let in_word = |c: &char| !c.is_whitespace() && !",.:;()[]{}<>|\"\\".contains(*c);
    let start = at - chars.iter().take(at).rev().take_while(|c| in_word(c)).count();
    let end = at + chars.iter().skip(at).take_while(|c| in_word(c)).count();
    (start < end).then_some(start..end)
}

/// `range` without white space and commas at its ends; `None` where nothing is left.
fn trimmed(chars: &[char], range: Range<usize>) -> Option<Range<usize>> {
    let idle = |c: &char| c.is_whitespace() || *c == ',';
    let selected = chars.get(range.clone())?;
    let before = selected.iter().take_while(|c| idle(c)).count();
    let after = selected.iter().skip(before).rev().take_while(|c| idle(c)).count();
    (before < selected.len()).then_some(range.start + before..range.end - after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` marks the ends of the selection, or the cursor.
    fn press(marked: &str, delta: f32) -> Option<String> {
        let places: Vec<usize> = marked.chars().enumerate().filter(|(_, c)| *c == '|').map(|(at, _)| at).collect();
        let selection = match places[..] {
            [at] => at..at,
            [from, to] => from..to - 1,
            _ => panic!("mark one or two places in {marked}"),
        };
        let Edited { text, selection } = adjust_weight(&marked.replace('|', ""), selection, delta)?;
        let mut chars: Vec<char> = text.chars().collect();
        chars.insert(selection.end, '|');
        chars.insert(selection.start, '|');
        Some(chars.into_iter().collect())
    }

    #[test]
    fn weights_are_added_changed_and_taken_away() {
        let cases = [
            ("a |cat| here", 0.1, "a (|cat|:1.1) here"),
            ("a (|cat|:1.1) here", 0.1, "a (|cat|:1.2) here"),
            ("a (|cat|:1.1) here", -0.1, "a |cat| here"),
            ("a |(cat:1.1)| here", -0.1, "a |cat| here"),
            ("a |cat| here", -0.1, "a (|cat|:0.9) here"),
            ("a (|cat|:0.9) here", 0.1, "a |cat| here"),
            ("a (|cat|) here", 0.1, "a (|cat|:1.2) here"),
            ("a (|cat|) here", -0.1, "a |cat| here"),
            ("|two words, |end", 0.1, "(|two words|:1.1), end"),
            ("a (red c|at:1.25) here", 0.1, "a (|red cat|:1.35) here"),
            ("a ca|t here", 0.1, "a (|cat|:1.1) here"),
            ("cat|", 0.1, "(|cat|:1.1)"),
            ("金发|少女", 0.1, "(|金发少女|:1.1)"),
            ("(a |b| c:1.3)", 0.1, "(a (|b|:1.1) c:1.3)"),
            ("\\(|cat|\\)", 0.1, "\\((|cat|:1.1)\\)"),
            ("(|(a) b|:1.2)", 0.1, "(|(a) b|:1.3)"),
            ("(|cat|:1.25)", 0.05, "(|cat|:1.3)"),
        ];
        for (before, delta, after) in cases {
            assert_eq!(press(before, delta).as_deref(), Some(after), "{before}");
        }
    }

    #[test]
    fn a_selection_survives_any_number_of_presses() {
        let mut now = Edited { text: "a long cat, here".to_owned(), selection: 2..10 };
        for delta in [WEIGHT_STEP; 20].into_iter().chain([-WEIGHT_STEP; 20]) {
            now = adjust_weight(&now.text, now.selection, delta).unwrap();
        }
        assert_eq!((now.text.as_str(), now.selection), ("a long cat, here", 2..10));
    }

    #[test]
    fn where_nothing_can_change_nothing_does() {
        for marked in ["|", "a | b", "| , |", "(|cat|:10)"] {
            assert_eq!(press(marked, 0.1), None, "{marked}");
        }
        assert_eq!(press("(|cat|:0)", -0.1), None);
        let beyond = Range { start: 90, end: 70 };
        assert_eq!(adjust_weight("cat ,", beyond, 0.1), None);
        let backwards = Range { start: 90, end: 0 };
        assert_eq!(adjust_weight("cat", backwards, 0.1).map(|e| e.text).as_deref(), Some("(cat:1.1)"));
    }

    #[test]
    fn no_text_and_no_range_fails() {
        let alphabet: Vec<char> = "()\\: ,a1.é中".chars().collect();
        let mut state = 3u64;
        for _ in 0..20_000 {
            let mut draw = |below: usize| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize % below
            };
            let text: String = (0..draw(12)).map(|_| alphabet[draw(alphabet.len())]).collect();
            let range = draw(14)..draw(14);
            if let Some(edited) = adjust_weight(&text, range, 0.1) {
                assert!(edited.selection.end <= edited.text.chars().count(), "{text:?}");
            }
        }
    }
}
