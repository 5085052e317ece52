//! The command line: the same engine as the window's, without a window.
//!
//! [`parse`] turns arguments into a [`Mode`], [`run`] does a command and gives its exit code. One file a command;
//! `follow` steers a job from Ctrl+C and shows its progress, `report` makes the JSON. Called by `main`.

mod args;
mod bench;
mod devices;
mod follow;
mod generate;
mod help;
mod inspect;
mod memory;
mod report;
mod usage;
mod write;

pub use args::{Cli, Command, LangArg, WindowArgs};
pub use write::say as say_on_stderr;

use crate::base::{JobError, Lang, ModelChoice, Problem};
use crate::engine::StartError;
use crate::memory::MemoryError;
use crate::text::{cli, problems, reasons};
use args::SayArgs;
use clap::{CommandFactory, FromArgMatches, ValueEnum};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

/// What the program was started for.
#[derive(Clone, Debug)]
pub enum Mode {
    Window(Box<WindowArgs>),
    Command(Command),
}

/// How a command ended, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// A fault of the program itself, or a window that cannot open.
    Internal = 1,
    Usage = 2,
    Input = 3,
    Memory = 4,
    Device = 5,
    /// By Ctrl+C, as shells count it: 128 and the signal's number.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// The code for a kind of problem.
    pub fn of(problem: &Problem) -> Self {
        match problem {
            Problem::Request(_) => Exit::Usage,
            Problem::DoesNotFit { .. } | Problem::OutOfMemory { .. } => Exit::Memory,
            Problem::DeviceUnavailable { .. } | Problem::DeviceLost { .. } | Problem::DeviceFault { .. } => {
                Exit::Device
            }
            Problem::Internal(_) => Exit::Internal,
            Problem::FileUnreadable { .. }
            | Problem::FileDamaged { .. }
            | Problem::FileIncomplete { .. }
            | Problem::FileChanged { .. }
            | Problem::WrongKind { .. }
            | Problem::NoVae { .. }
            | Problem::NotVae { .. }
            | Problem::WeightsNotFinite { .. }
            | Problem::BadCheckpoint { .. }
            | Problem::NoModel
            | Problem::LatentNotFinite { .. }
            | Problem::PictureNotFinite
            | Problem::NotSaved { .. } => Exit::Input,
        }
    }
}

/// Reads the arguments. For help, the version and wrong usage it prints what there is to say and gives the exit code.
///
/// Where `--json` is among the arguments, wrong usage is one JSON object like any other error.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Mode, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let json = arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json");
    let lang = language(asked_language(&arguments));
    let matches = help::in_language(Cli::command(), lang).try_get_matches_from(arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Cli { command: Some(command), .. }) => Ok(Mode::Command(command)),
        Ok(Cli { command: None, window }) => Ok(Mode::Window(Box::new(window))),
        // Help and the version. A closed pipe is no reason to say more.
        Err(error) if !error.use_stderr() => {
            drop(error.print());
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            let said = usage::sentence(lang, &error);
            write::say(&cli::error(lang, &said, ""));
            write::say(&cli::HINT_LINE.with(lang, &[("what", &cli::USAGE_HELP.get(lang))]));
            if json {
                write::result(&format!("{:#}", usage_failure(&said, &error)));
            }
            Err(Exit::Usage.into())
        }
    }
}

/// The language that the arguments ask for, found before they are known to hold: wrong usage is said in it too.
fn asked_language(arguments: &[OsString]) -> Option<LangArg> {
    let mut words = arguments.iter().take_while(|argument| *argument != "--").filter_map(|argument| argument.to_str());
    let name = loop {
        let word = words.next()?;
        match word.strip_prefix("--lang") {
            Some("") => break words.next()?,
            Some(rest) if rest.starts_with('=') => break rest.trim_start_matches('='),
            _ => {}
        }
    };
    LangArg::from_str(name, true).ok()
}

/// Wrong usage as JSON, with clap's own words as the details.
fn usage_failure(said: &str, error: &clap::Error) -> Value {
    let details = error.to_string();
    json!({ "error": { "message": said, "details": details.trim(), "exit_code": Exit::Usage as u8 } })
}

/// Why the engine did not start.
pub fn start_error(lang: Lang, error: &StartError) -> String {
    match error {
        StartError::Script(MemoryError::ScriptUnreadable { path, why }) => {
            cli::BAD_SCRIPT.with(lang, &[("file", &path.display()), ("why", &reasons::reason(lang, why))])
        }
        StartError::Script(MemoryError::ScriptLine { path, line, what }) => {
            let why = reasons::SCRIPT_LINE.with(lang, &[("line", line), ("told", what)]);
            cli::BAD_SCRIPT.with(lang, &[("file", &path.display()), ("why", &why)])
        }
        StartError::Script(error) => error.to_string(),
        StartError::Thread(error) => {
            cli::NO_THREAD.with(lang, &[("why", &reasons::io(lang, error.kind(), &error.to_string()))])
        }
    }
}

/// Does one command. Results that could not be written, for a full disk, are a failure.
pub fn run(command: Command) -> ExitCode {
    let exit = match command {
        Command::Generate(args) => generate::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Memory(args) => memory::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    if exit == Exit::Done && write::lost() { Exit::Input.into() } else { exit.into() }
}

/// Sends log lines to standard error: warnings, or what `RUST_LOG` asks for.
pub fn start_log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false);
    // Where standard error cannot be written, there is no place to say so either; by default that would be a panic.
    if let Err(error) = log.log_internal_errors(false).try_init() {
        write::say(&error.to_string());
    }
}

/// The language asked for, or the system's.
pub fn language(asked: Option<LangArg>) -> Lang {
    match asked {
        Some(LangArg::En) => Lang::En,
        Some(LangArg::Zh) => Lang::Zh,
        None => {
            let named = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| std::env::var(name).ok());
            named.map(|locale| Lang::from_system_locale(&locale)).unwrap_or_default()
        }
    }
}

/// What a command has to say, in whichever way was asked for.
#[derive(Clone, Copy, Debug)]
struct Voice {
    lang: Lang,
    json: bool,
    quiet: bool,
}

impl Voice {
    fn new(say: &SayArgs) -> Self {
        Voice { lang: language(say.lang), json: say.json, quiet: say.quiet }
    }

    /// A result, for people; nothing where JSON was asked for.
    fn line(self, text: &str) {
        if !self.json {
            write::result(&write::shortened(&write::plain(text)));
        }
    }

    /// A result of many lines, whole.
    fn text(self, text: &str) {
        if !self.json {
            write::result(&write::plain(text));
        }
    }

    /// A quiet line beside the results, on standard error.
    fn note(self, text: &str) {
        if !self.quiet {
            write::say(&cli::NOTE.with(self.lang, &[("what", &text)]));
        }
    }

    /// Says which model it is where that is not the person's own.
    fn name_model(self, model: &ModelChoice) {
        if *model == ModelChoice::Pocket {
            self.note(cli::POCKET_USED.get(self.lang));
        }
    }

    /// The one object on standard output.
    fn object(self, value: &Value) {
        if self.json {
            write::result(&format!("{value:#}"));
        }
    }

    /// What went wrong and what helps, on standard error, and as JSON where that was asked for.
    fn fail(self, error: &JobError) -> Exit {
        let headline = problems::headline(self.lang, &error.problem);
        let repeats = headline.contains(error.details.trim());
        write::say(&cli::error(self.lang, &headline, if repeats { "" } else { &error.details }));
        for help in error.hints.iter().filter_map(|hint| cli::help(self.lang, hint)) {
            write::say(&cli::HINT_LINE.with(self.lang, &[("what", &help)]));
        }
        let exit = Exit::of(&error.problem);
        self.object(&report::failure(&headline, error, exit));
        exit
    }

    /// A fault that is no job's: a file, an option.
    fn refuse(self, exit: Exit, what: &str) -> Exit {
        write::say(&cli::error(self.lang, what, ""));
        self.object(&json!({ "error": { "message": what, "exit_code": exit as u8 } }));
        exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Bytes;
    use crate::base::problem::Phase;
    use clap::Parser;

    #[test]
    fn every_kind_of_problem_has_the_code_that_the_help_names() {
        let device = || "x".to_owned();
        for (problem, code) in [
            (Problem::Request(crate::base::request::RequestError::Steps(0)), 2),
            (Problem::NoModel, 3),
            (Problem::WrongKind { path: "a".into(), kind: "LoRA".to_owned() }, 3),
            (Problem::DoesNotFit { need: Bytes(2), have: Bytes(1), limit: Bytes(1), fits: None }, 4),
            (Problem::OutOfMemory { phase: Phase::Decoding }, 4),
            (Problem::DeviceLost { device: device() }, 5),
            (Problem::DeviceUnavailable { device: device(), why: crate::base::Reason::NoCard }, 5),
            (Problem::Internal(device()), 1),
        ] {
            assert_eq!(Exit::of(&problem) as u8, code, "{problem:?}");
        }
    }

    #[test]
    fn arguments_choose_between_window_and_command() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(matches!(parse(words(&["softbox"])), Ok(Mode::Window(_))));
        assert!(matches!(parse(words(&["softbox", "devices", "--json"])), Ok(Mode::Command(Command::Devices(_)))));
        assert!(parse(words(&["softbox", "paint"])).is_err());
        // Names of files need not be UTF-8.
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt;
            let mut odd = words(&["softbox", "generate", "--model"]);
            odd.push(OsString::from_vec(b"caf\xff.safetensors".to_vec()));
            assert!(matches!(parse(odd), Ok(Mode::Command(Command::Generate(_)))));
        }
    }

    #[test]
    fn the_language_is_known_before_the_arguments_are() {
        let asked = |words: &[&str]| asked_language(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked(&["softbox", "generate", "--lang", "zh", "--steps"]), Some(LangArg::Zh));
        assert_eq!(asked(&["softbox", "--lang=en"]), Some(LangArg::En));
        assert_eq!(asked(&["softbox", "--lang", "fr"]), None);
        assert_eq!(asked(&["softbox", "--language", "zh"]), None);
        assert_eq!(asked(&["softbox", "--lang"]), None);
        assert_eq!(asked(&["softbox", "--", "--lang=zh"]), None);
    }

    #[test]
    fn wrong_usage_is_said_in_one_sentence_as_json() {
        for (arguments, says) in [
            (&["generate", "--model", "m", "--size", "8x8"][..], "--size"),
            (&["generate", "--model", "m", "--count", "-1"], "--count"),
            (&["generate", "--model", "m", "--steps", "-5"], "--steps"),
            (&["generate", "--model", "m", "--cfg", "-5"], "7.5"),
            (&["generate", "--model", ""], "--model"),
        ] {
            let arguments = std::iter::once("softbox").chain(arguments.iter().copied());
            let error = Cli::try_parse_from(arguments).unwrap_err();
            let object = usage_failure(&usage::sentence(Lang::En, &error), &error);
            let message = object["error"]["message"].as_str().unwrap();
            assert!(message.contains(says) && !message.contains('\n'), "{message}");
            assert_eq!((object["error"]["exit_code"].as_u64(), error.exit_code()), (Some(2), 2));
        }
    }
}
