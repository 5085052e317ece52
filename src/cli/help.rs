//! The help in the person's language. Clap lays it out; the words of other languages than English come from `text/help.rs`.

use crate::base::Lang;
use crate::text::help::{self, translated};
use clap::{Arg, Command};

/// The program's commands and options with help in this language. English is what stands beside them already.
pub fn in_language(mut command: Command, lang: Lang) -> Command {
    if lang == Lang::En {
        return command;
    }
    // Built first, so that clap's own parts (help, version) are there to be translated.
    command.build();
    translate(command, lang)
}

fn translate(command: Command, lang: Lang) -> Command {
    let say =
        |words: Option<&clap::builder::StyledStr>| words.map(|words| translated(lang, &words.to_string()).to_owned());
    let (about, long) = (say(command.get_about()), say(command.get_long_about()));
    let after = say(command.get_after_help());
    let template = format!("{{about-with-newline}}\n{} {{usage}}\n\n{{all-args}}{{after-help}}", help::USAGE.get(lang));
    let mut command = command
        .subcommand_help_heading(help::COMMANDS.get(lang))
        .help_template(template)
        .mut_args(|argument| in_words(argument, lang))
        .mut_subcommands(|inner| translate(inner, lang));
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long) = long {
        command = command.long_about(long);
    }
    if let Some(after) = after {
        command = command.after_help(after);
    }
    command
}

/// One option with its help, default and possible values, which clap would name in English.
fn in_words(argument: Arg, lang: Lang) -> Arg {
    let heading = if argument.is_positional() { help::ARGUMENTS } else { help::OPTIONS };
    let Some(english) = argument.get_help().map(ToString::to_string) else {
        return argument.help_heading(heading.get(lang));
    };
    let mut words = translated(lang, &english).to_owned();
    let possible: Vec<String> = match argument.get_action().takes_values() {
        true => argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        false => Vec::new(),
    };
    if !possible.is_empty() {
        words = help::POSSIBLE.with(lang, &[("help", &words), ("values", &possible.join("、"))]);
    }
    let default: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if argument.get_action().takes_values() && default.iter().any(|value| !value.is_empty()) {
        words = help::DEFAULT.with(lang, &[("help", &words), ("value", &default.join(" "))]);
    }
    let argument = argument.help(words.clone()).hide_default_value(true).hide_possible_values(true);
    let argument = if argument.get_long_help().is_some() { argument.long_help(words) } else { argument };
    argument.help_heading(heading.get(lang))
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::CommandFactory;

    fn walk(command: &Command, visit: &mut impl FnMut(String)) {
        for words in [command.get_about(), command.get_long_about(), command.get_after_help()].into_iter().flatten() {
            visit(words.to_string());
        }
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            visit(argument.get_help().map(ToString::to_string).unwrap_or_else(|| panic!("{argument} has no help")));
        }
        command.get_subcommands().for_each(|inner| walk(inner, visit));
    }

    #[test]
    fn every_command_and_option_has_its_help_in_every_language() {
        let mut english = Cli::command();
        english.build();
        let mut seen = 0;
        walk(&english, &mut |words| {
            seen += 1;
            assert_ne!(translated(Lang::Zh, &words), words, "no Chinese for this help");
        });
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn chinese_help_is_chinese_throughout_and_parses_the_same() {
        let mut chinese = in_language(Cli::command(), Lang::Zh);
        let whole = chinese.render_long_help().to_string();
        let generate = chinese.find_subcommand_mut("generate").unwrap().render_long_help().to_string();
        for (text, words) in [
            (&whole, ["用法:", "命令:", "选项:", "示例：", "显示版本"]),
            (&generate, ["用法:", "选项:", "（默认 25）", "（可选：gpu、cpu）", "显示帮助"]),
        ] {
            for word in words {
                assert!(text.contains(word), "{word} is not in\n{text}");
            }
            for english in ["Usage:", "Options:", "Commands:", "default:", "possible values", "Print"] {
                assert!(!text.contains(english), "{english} is in\n{text}");
            }
        }
        let read = in_language(Cli::command(), Lang::Zh);
        let read = read.try_get_matches_from(["softbox", "generate", "--model", "m", "--steps", "3"]).unwrap();
        assert_eq!(read.subcommand().map(|(name, _)| name), Some("generate"));
        in_language(Cli::command(), Lang::Zh).debug_assert();
    }
}
