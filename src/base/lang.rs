//! The languages the program speaks. The words themselves are in `text/`.

use serde::{Deserialize, Serialize};

/// A language of the window and the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

impl Lang {
    pub const ALL: [Lang; 2] = [Lang::En, Lang::Zh];

    /// From a locale as systems write it ("zh_CN.UTF-8", "zh-Hans-CN", "en_GB", "C"). Whatever is not Chinese is English.
    pub fn from_system_locale(locale: &str) -> Self {
        let language = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
        if language.eq_ignore_ascii_case("zh") { Lang::Zh } else { Lang::En }
    }

    /// Its own name for itself, as the language chooser shows it.
    pub fn own_name(self) -> &'static str {
        match self {
            Lang::En => "English",
            Lang::Zh => "简体中文",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lang;

    #[test]
    fn locales_of_every_system_are_read() {
        for (locale, lang) in [
            ("zh_CN.UTF-8", Lang::Zh),
            ("zh-Hans-CN", Lang::Zh),
            ("ZH", Lang::Zh),
            ("zha_CN", Lang::En),
            ("en_GB", Lang::En),
            ("C.UTF-8", Lang::En),
            ("", Lang::En),
        ] {
            assert_eq!(Lang::from_system_locale(locale), lang, "{locale}");
        }
    }
}
