//! One key, two languages. The macro makes it impossible to give one without the other.

pub use crate::base::Lang;
use std::fmt::Display;

/// A sentence or word in both languages. `{name}` in it is filled by [`Phrase::with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phrase {
    pub key: &'static str,
    pub en: &'static str,
    pub zh: &'static str,
}

impl Phrase {
    /// The words as they stand, for phrases without placeholders.
    pub const fn get(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }

    /// The words with every `{name}` replaced by its value, once: a value that itself holds braces stays as it is.
    pub fn with(self, lang: Lang, values: &[(&str, &dyn Display)]) -> String {
        let mut filled = String::new();
        let mut rest = self.get(lang);
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let Some((name, tail)) = after.split_once('}') else {
                filled.push('{');
                rest = after;
                continue;
            };
            match values.iter().find(|(key, _)| *key == name) {
                Some((_, value)) => filled.push_str(&value.to_string()),
                None => {
                    debug_assert!(false, "{}: no value for {{{name}}}", self.key);
                    filled.push_str(name);
                }
            }
            rest = tail;
        }
        filled.push_str(rest);
        filled
    }
}

/// `phrases! { KEY: "English", "中文"; … }` makes a `pub const KEY: Phrase` for each line and `pub const ALL: &[Phrase]`.
macro_rules! phrases {
    ($($(#[$doc:meta])* $key:ident: $en:literal, $zh:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $key: $crate::text::Phrase = $crate::text::Phrase { key: stringify!($key), en: $en, zh: $zh };
        )*
        /// Every phrase of this file, for the test of completeness.
        pub const ALL: &[$crate::text::Phrase] = &[$($key),*];
    };
}
pub(crate) use phrases;

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: Phrase = Phrase { key: "GREETING", en: "{a} and {b}, {a}", zh: "{b}和{a}" };

    #[test]
    fn placeholders_are_filled_wherever_they_stand() {
        assert_eq!(GREETING.with(Lang::En, &[("a", &1), ("b", &"x")]), "1 and x, 1");
        assert_eq!(GREETING.with(Lang::Zh, &[("a", &1), ("b", &"x")]), "x和1");
    }

    #[test]
    fn a_value_with_braces_is_not_filled_again() {
        assert_eq!(GREETING.with(Lang::En, &[("a", &"{b}"), ("b", &"{")]), "{b} and {, {b}");
    }
}
