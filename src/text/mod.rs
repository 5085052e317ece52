//! Every sentence a person reads, in English and Simplified Chinese.
//!
//! A file an area; `phrases!` gives each key both languages at once. Functions put typed problems, notices and figures of
//! `base` into words. The window and the command line call these and write no sentences of their own.

pub mod cli;
pub mod figures;
pub mod help;
pub mod memory;
pub mod notices;
mod phrase;
pub mod pocket;
pub mod problems;
pub mod reasons;
pub mod window;

pub(crate) use phrase::phrases;
pub use phrase::{Lang, Phrase};

/// Every phrase of every area, with the area's name.
pub const AREAS: [(&str, &[Phrase]); 9] = [
    ("cli", cli::ALL),
    ("figures", figures::ALL),
    ("help", help::ALL),
    ("memory", memory::ALL),
    ("notices", notices::ALL),
    ("pocket", pocket::ALL),
    ("problems", problems::ALL),
    ("reasons", reasons::ALL),
    ("window", window::ALL),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    /// Chinese entries that rightly hold no Han characters: names, units and bare figures.
    const WITHOUT_HAN: [&str; 11] = [
        "CFG",
        "VAE",
        "CLIP_SKIP",
        "SIZE_VALUE",
        "ZOOM_100",
        "ZOOM_VALUE",
        "PACE",
        "PERCENT",
        "OF_TOTAL",
        "PAIR",
        "OF_PATH",
    ];

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|tail| tail.split_once('}')).map(|(name, _)| name).collect()
    }

    fn has_han(text: &str) -> bool {
        text.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c))
    }

    fn every_phrase() -> impl Iterator<Item = (&'static str, &'static Phrase)> {
        AREAS.into_iter().flat_map(|(area, all)| all.iter().map(move |phrase| (area, phrase)))
    }

    #[test]
    fn each_language_is_complete() {
        for (area, phrase) in every_phrase() {
            for lang in Lang::ALL {
                let text = phrase.get(lang);
                assert!(!text.trim().is_empty() && text == text.trim(), "{area}::{} in {lang:?}", phrase.key);
                assert!(!text.contains(['!', '！']), "{area}::{}: no exclamation marks", phrase.key);
            }
            assert!(!has_han(phrase.en), "{area}::{} has Chinese in its English", phrase.key);
        }
    }

    #[test]
    fn both_languages_have_the_same_placeholders() {
        for (area, phrase) in every_phrase() {
            assert_eq!(placeholders(phrase.en), placeholders(phrase.zh), "{area}::{}", phrase.key);
            for text in [phrase.en, phrase.zh] {
                assert_eq!(text.matches('{').count(), text.matches('}').count(), "{area}::{}", phrase.key);
            }
        }
    }

    #[test]
    fn chinese_is_chinese() {
        for (area, phrase) in every_phrase() {
            let excused = WITHOUT_HAN.contains(&phrase.key);
            assert!(has_han(phrase.zh) || excused, "{area}::{}: {}", phrase.key, phrase.zh);
            for mark in [", ", "; ", ". ", ": ", "? "] {
                assert!(!phrase.zh.contains(mark) || excused, "{area}::{}: half-width \"{mark}\"", phrase.key);
            }
        }
        for key in WITHOUT_HAN {
            let found = every_phrase().find(|(_, phrase)| phrase.key == key);
            assert!(found.is_some_and(|(_, phrase)| !has_han(phrase.zh)), "{key} need not be on the list");
        }
    }

    #[test]
    fn keys_are_unique_within_an_area() {
        for (area, all) in AREAS {
            let mut seen = HashSet::new();
            assert!(all.iter().all(|phrase| seen.insert(phrase.key)), "{area}");
        }
    }
}
