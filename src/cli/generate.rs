//! `softbox generate`: pictures into files, progress on standard error, results on standard output.

use super::args::GenerateArgs;
use super::follow::{self, Interrupt, Outcome};
use super::{Exit, Voice, report, write};
use crate::base::Lang;
use crate::engine::EngineSettings;
use crate::engine::protocol::Command;
use crate::engine::save::{SaveError, save_latents};
use crate::engine::targets;
use crate::text::{cli, problems, reasons};
use std::path::PathBuf;

pub fn run(args: &GenerateArgs) -> Exit {
    let voice = Voice::new(&args.say);
    let output = match args.output(voice.lang) {
        Ok(output) => output,
        Err(what) => return voice.refuse(Exit::Usage, &what),
    };
    let request = match args.request.request(&args.setup.model, args.count).check() {
        Ok(request) => request,
        Err(error) => return voice.refuse(Exit::Usage, &problems::request_error(voice.lang, &error)),
    };
    if let Err(error) = targets::check_pictures(&output, request.count) {
        return voice.refuse(exit_of(&error), &cannot_write(voice.lang, &error, "--out"));
    }
    if let Some(file) = &args.save_latents
        && let Err(error) = targets::check_latents(file, &output, request.count)
    {
        return voice.refuse(exit_of(&error), &cannot_write(voice.lang, &error, "--save-latents"));
    }
    voice.name_model(&args.setup.model);
    let interrupt = Interrupt::catch(voice);
    let settings = EngineSettings {
        device: args.setup.device,
        limits: args.setup.limits.limits(),
        gauge_script: args.setup.limits.gauge_script.clone(),
        at_checkpoint: None,
    };
    let engine = match follow::start(settings, voice) {
        Ok(engine) => engine,
        Err(exit) => return exit,
    };
    let job = follow::job(1, request.clone(), args.setup.setup(), output, args.save_latents.is_some());
    let outcome = follow::follow(&engine, job, &interrupt, voice);
    // The engine may have ended by itself; then there is nobody left to tell.
    drop(engine.commands.send(Command::Shutdown));
    if let Some(error) = &outcome.error {
        return voice.fail(error);
    }
    let latents = keep_latents(args, &outcome, voice);
    let (file, failure) = latents.map_or_else(|(file, why)| (file, Some(why)), |file| (file, None));
    let mut object = report::generated(&outcome, &request, &args.setup.setup(), file.as_deref());
    if let Some(why) = &failure {
        object["latents_error"] = why.as_str().into();
    }
    voice.object(&object);
    say_end(&outcome, voice);
    match outcome.exit() {
        Exit::Done if failure.is_some() => Exit::Input,
        exit => exit,
    }
}

/// Writes the latents, where they were asked for and the job came to its end: to the file named, or to a place that takes
/// them and with why.
fn keep_latents(
    args: &GenerateArgs,
    outcome: &Outcome,
    voice: Voice,
) -> Result<Option<PathBuf>, (Option<PathBuf>, String)> {
    let (Some(file), Some(summary)) = (&args.save_latents, &outcome.summary) else { return Ok(None) };
    let error = match save_latents(file, &summary.latents, summary.latent_shape) {
        Ok(()) => {
            voice.line(&cli::CLI_LATENTS_SAVED.with(voice.lang, &[("file", &file.display())]));
            return Ok(Some(file.clone()));
        }
        Err(error) => cannot_write(voice.lang, &error, "--save-latents"),
    };
    // A name of its own, since nothing that lies there may be replaced.
    let name = format!("latents-{}.safetensors", std::process::id());
    let elsewhere = follow::places()
        .map(|folder| folder.join(&name))
        .into_iter()
        .find(|file| !file.exists() && save_latents(file, &summary.latents, summary.latent_shape).is_ok());
    let said = match &elsewhere {
        Some(file) => cli::SAVED_ELSEWHERE.with(voice.lang, &[("why", &error), ("file", &file.display())]),
        None => error.clone(),
    };
    write::say(&cli::error(voice.lang, &said, ""));
    Err((elsewhere, error))
}

/// A target that must not be replaced is a slip in the command; a place that takes nothing is the place's fault.
fn exit_of(error: &SaveError) -> Exit {
    match error {
        SaveError::OtherKind { .. } | SaveError::NotAFile { .. } => Exit::Usage,
        _ => Exit::Input,
    }
}

/// Why something cannot be written, and the option that names another place.
fn cannot_write(lang: Lang, error: &SaveError, option: &str) -> String {
    let with = |phrase: crate::text::Phrase, path: &std::path::Path| {
        let reason = phrase.with(lang, &[("path", &path.display())]);
        cli::CHOOSE_ANOTHER.with(lang, &[("reason", &reason), ("option", &option)])
    };
    match error {
        SaveError::Full { folder } => with(cli::TARGET_FULL, folder),
        SaveError::ReadOnly { folder } => with(cli::TARGET_READ_ONLY, folder),
        SaveError::NotAFolder { path } => with(cli::TARGET_NO_FOLDER, path),
        SaveError::NotAFile { path } => with(cli::TARGET_NO_FILE, path),
        SaveError::OtherKind { path } => with(cli::TARGET_OTHER_KIND, path),
        SaveError::Io { path, source } => {
            let why = reasons::io(lang, source.kind(), &source.to_string());
            let reason = cli::TARGET_ELSE.with(lang, &[("path", &path.display()), ("why", &why)]);
            cli::CHOOSE_ANOTHER.with(lang, &[("reason", &reason), ("option", &option)])
        }
        SaveError::Encode(_) | SaveError::Latents { .. } => reasons::reason(lang, &error.reason()),
    }
}

fn say_end(outcome: &Outcome, voice: Voice) {
    let lang: Lang = voice.lang;
    if outcome.interrupted {
        write::say(cli::INTERRUPTED.get(lang));
    }
    if let Some(summary) = outcome.summary.as_ref().filter(|_| !voice.quiet) {
        let peak = summary.peak_process.or(summary.peak_ours);
        write::say(&cli::done(lang, summary.images, summary.seconds.total, peak));
    }
}
