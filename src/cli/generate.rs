//! `softbox generate`: pictures into files, progress on standard error, results on standard output.

use super::args::GenerateArgs;
use super::follow::{self, Interrupt, Outcome};
use super::{Exit, Voice, report};
use crate::base::Lang;
use crate::engine::EngineSettings;
use crate::engine::protocol::Command;
use crate::engine::save::save_latents;
use crate::text::{cli, problems};

pub fn run(args: &GenerateArgs) -> Exit {
    let voice = Voice::new(&args.say);
    let output = match args.output() {
        Ok(output) => output,
        Err(what) => return voice.refuse(Exit::Usage, &what),
    };
    let request = match args.request.request(args.count).check() {
        Ok(request) => request,
        Err(error) => return voice.refuse(Exit::Usage, &problems::request_error(voice.lang, &error)),
    };
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
    let latents = match keep_latents(args, &outcome, voice) {
        Ok(()) => args.save_latents.as_deref().filter(|_| outcome.summary.is_some()),
        Err(exit) => return exit,
    };
    voice.object(&report::generated(&outcome, &request, &args.setup.setup(), latents));
    say_end(&outcome, voice);
    outcome.exit()
}

fn keep_latents(args: &GenerateArgs, outcome: &Outcome, voice: Voice) -> Result<(), Exit> {
    let (Some(file), Some(summary)) = (&args.save_latents, &outcome.summary) else { return Ok(()) };
    save_latents(file, &summary.latents, summary.latent_shape).map_err(|error| {
        let what = cli::CANNOT_WRITE.with(voice.lang, &[("file", &file.display()), ("why", &error)]);
        voice.refuse(Exit::Input, &what)
    })?;
    voice.line(&cli::CLI_LATENTS_SAVED.with(voice.lang, &[("file", &file.display())]));
    Ok(())
}

fn say_end(outcome: &Outcome, voice: Voice) {
    let lang: Lang = voice.lang;
    if outcome.interrupted {
        eprintln!("{}", cli::INTERRUPTED.get(lang));
    }
    for why in outcome.shots.iter().filter_map(|shot| shot.save_error.as_deref()) {
        eprintln!("{}", cli::error(lang, why, ""));
    }
    if let Some(summary) = outcome.summary.as_ref().filter(|_| !voice.quiet) {
        let peak = summary.peak_process.or(summary.peak_ours);
        eprintln!("{}", cli::done(lang, summary.images, summary.seconds.total, peak));
    }
}
