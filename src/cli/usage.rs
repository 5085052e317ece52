//! Wrong usage in the person's language: clap finds it, `text/cli.rs` says it. Called by `parse`.

use super::args::Unfit;
use crate::base::Lang;
use crate::base::bytes::ParseBytesError;
use crate::base::request::RequestError;
use crate::text::{cli, figures, problems};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;

/// What is wrong, in one sentence that names the argument.
pub fn sentence(lang: Lang, error: &clap::Error) -> String {
    // A command takes the argument's place where the two do not go together.
    let named = words(error, ContextKind::InvalidArg).or_else(|| words(error, ContextKind::InvalidSubcommand));
    let argument = || named.as_deref().map(first_word).unwrap_or_default();
    let value = || words(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidValue if value().is_empty() => needs_value(lang, &argument()),
        ErrorKind::InvalidValue => {
            let possible = words(error, ContextKind::ValidValue).unwrap_or_default();
            let values: [(&str, &dyn std::fmt::Display); 3] =
                [("argument", &argument()), ("value", &value()), ("possible", &possible)];
            cli::USAGE_ONE_OF.with(lang, &values)
        }
        ErrorKind::ValueValidation => {
            if let Some(wrong) = error.source().and_then(|source| source.downcast_ref::<RequestError>()) {
                return figures::pair(lang, argument(), problems::request_error(lang, wrong));
            }
            let why = error.source().map(|source| unfit(lang, source)).unwrap_or_default();
            cli::USAGE_UNFIT.with(lang, &[("argument", &argument()), ("value", &value()), ("why", &why)])
        }
        ErrorKind::UnknownArgument => {
            suggesting(lang, cli::USAGE_NO_OPTION.with(lang, &[("argument", &argument())]), error)
        }
        ErrorKind::InvalidSubcommand => {
            let command = words(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            suggesting(lang, cli::USAGE_NO_COMMAND.with(lang, &[("command", &command)]), error)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = words(error, ContextKind::InvalidArg).unwrap_or_default();
            cli::USAGE_MISSING.with(lang, &[("argument", &missing)])
        }
        ErrorKind::ArgumentConflict => match words(error, ContextKind::PriorArg).map(|prior| first_word(&prior)) {
            Some(prior) if prior == argument() => cli::USAGE_TWICE.with(lang, &[("argument", &prior)]),
            Some(prior) => cli::USAGE_CONFLICT.with(lang, &[("argument", &argument()), ("other", &prior)]),
            None => cli::USAGE_MISPLACED.with(lang, &[("argument", &argument())]),
        },
        ErrorKind::NoEquals | ErrorKind::TooFewValues => needs_value(lang, &argument()),
        ErrorKind::TooManyValues | ErrorKind::WrongNumberOfValues => {
            cli::USAGE_TOO_MANY.with(lang, &[("argument", &argument())])
        }
        ErrorKind::InvalidUtf8 => cli::USAGE_NOT_UTF8.get(lang).to_owned(),
        // What is left does not come from a command line: a fault in the definitions, or in writing the help.
        _ => first_line(&error.to_string()),
    }
}

fn needs_value(lang: Lang, argument: &str) -> String {
    cli::USAGE_NO_VALUE.with(lang, &[("argument", &argument)])
}

/// Why a value does not hold, as its parser said it.
fn unfit(lang: Lang, source: &(dyn Error + 'static)) -> String {
    if let Some(Unfit(phrase)) = source.downcast_ref() {
        return phrase.get(lang).to_owned();
    }
    if source.is::<ParseBytesError>() {
        return cli::UNFIT_BYTES.get(lang).to_owned();
    }
    source.to_string()
}

/// The sentence, and what was probably meant.
fn suggesting(lang: Lang, sentence: String, error: &clap::Error) -> String {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    match kinds.into_iter().find_map(|kind| words(error, kind)) {
        Some(meant) => cli::USAGE_MEANT.with(lang, &[("sentence", &sentence), ("meant", &meant)]),
        None => sentence,
    }
}

/// What clap tells about one side of the error.
fn words(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(all) => Some(all.join(", ")),
        ContextValue::StyledStr(styled) => Some(styled.to_string()),
        ContextValue::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// "--size <WxH>" → "--size".
fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::Parser;

    fn said(lang: Lang, arguments: &[&str]) -> String {
        let all = std::iter::once("softbox").chain(arguments.iter().copied());
        sentence(lang, &Cli::try_parse_from(all).unwrap_err())
    }

    #[test]
    fn every_kind_of_wrong_usage_names_the_argument_in_both_languages() {
        const MODEL: [&str; 3] = ["generate", "--model", "m"];
        for (more, named) in [
            (&["--size", "8x8"][..], "--size"),
            (&["--size", "big"], "big"),
            (&["--seed", "1.5"], "--seed"),
            (&["--steps", "-5"], "--steps"),
            (&["--cfg", "much"], "--cfg"),
            (&["--count", "-1"], "--count"),
            (&["--sampler", "euler_a"], "euler-a"),
            (&["--schedule", "x"], "karras"),
            (&["--dtype", "f64"], "bf16"),
            (&["--device", "tpu"], "vulkan:N"),
            (&["--memory-budget", "lots"], "4GiB"),
            (&["--pause-at", "20"], "--pause-at"),
            (&["--v-prediction=maybe"], "--v-prediction"),
            (&["--lang", "fr"], "zh"),
            (&["--nonsense"], "--nonsense"),
            (&["--stepz", "3"], "--steps"),
            (&["--steps"], "--steps"),
            (&["--steps", "3", "--steps", "4"], "--steps"),
            (&["--ema=1"], "--ema"),
            (&["more"], "more"),
        ] {
            let arguments = [&MODEL[..], more].concat();
            for lang in Lang::ALL {
                let said = said(lang, &arguments);
                assert!(said.contains(named), "{arguments:?}: {said}");
                assert!(said.ends_with(['.', '。', '?', '？']) && !said.contains('\n'), "{arguments:?}: {said}");
                let han = said.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c));
                assert_eq!(han, lang == Lang::Zh, "{arguments:?}: {said}");
                assert!(!said.to_lowercase().contains("error"), "{arguments:?}: {said}");
            }
        }
        for (arguments, named) in [
            (&["generate", "--model", ""][..], "--model"),
            (&["paint"], "paint"),
            (&["generat"], "generate"),
            (&["inspect"], "FILE"),
            (&["bench", "--model", "m", "--runs", "0"], "--runs"),
            (&["--model", "m", "devices"], "devices"),
        ] {
            for lang in Lang::ALL {
                assert!(said(lang, arguments).contains(named), "{arguments:?}: {}", said(lang, arguments));
            }
        }
        assert_eq!(said(Lang::Zh, &["inspect"]), "缺少 <FILE>。");
    }

    #[test]
    fn a_sentence_reads_well() {
        assert_eq!(
            said(Lang::En, &["generate", "--model", "m", "--steps", "x"]),
            "--steps x does not work: it is a whole number, such as 4."
        );
        assert_eq!(
            said(Lang::Zh, &["generate", "--model", "m", "--seed", "a"]),
            format!("--seed a 不可用：种子应为 0 到 {}，或 -1。", u64::MAX)
        );
        assert_eq!(said(Lang::En, &["generat"]), "There is no command generat. Did you mean generate?");
    }
}
