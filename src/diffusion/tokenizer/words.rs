//! Cuts cleaned text into the words that byte pairs are merged within.
//!
//! CLIP's pattern: an English contraction's ending; a run of letters; one digit; a run of anything else but white space.

use unicode_normalization::char::is_combining_mark;

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The words of `text`, which is already lower-case, in order.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = if let Some(ending) = CONTRACTIONS.iter().find(|ending| rest.starts_with(**ending)) {
            ending.len()
        } else if first.is_numeric() {
            first.len_utf8()
        } else {
            let letters = is_letter(first);
            let ends = |c: char| c.is_whitespace() || c.is_numeric() || is_letter(c) != letters;
            rest.find(ends).unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        Some(word)
    })
}

/// Unicode's general category L, made from the wider property Alphabetic by taking away its marks, letter numbers and
/// enclosed letters (Unicode Standard Annex 44, Other_Alphabetic).
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
        || (!c.is_ascii()
            && c.is_alphabetic()
            && !c.is_numeric()
            && !is_combining_mark(c)
            && !matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f149}' | '\u{1f150}'..='\u{1f169}' | '\u{1f170}'..='\u{1f189}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_clips_pattern() {
        let cut = |text| words(text).collect::<Vec<_>>();
        assert_eq!(cut("  don't  you've!'s 1girl"), ["don", "'t", "you", "'ve", "!'", "s", "1", "girl"]);
        assert_eq!(cut("2024 ½ (a:1.2)"), ["2", "0", "2", "4", "½", "(", "a", ":", "1", ".", "2", ")"]);
        assert_eq!(cut("中文 ⓐb e\u{301}\u{328}x"), ["中文", "ⓐ", "b", "e", "\u{301}\u{328}", "x"]);
        assert_eq!(cut(" \n\t "), [""; 0]);
    }
}
