//! `softbox bench`: the studio's own path several times over, and where the time of it goes.

use super::args::BenchArgs;
use super::follow::{self, Interrupt, Outcome};
use super::{Exit, Voice, report, write};
use crate::base::{CleanReport, OutputPlan};
use crate::engine::EngineSettings;
use crate::engine::protocol::{Command, EngineHandle, Event, Seconds};
use crate::text::{cli, figures, memory, problems};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a clean-up may take before its report is done without.
const CLEANING: Duration = Duration::from_secs(30);

pub fn run(args: &BenchArgs) -> Exit {
    let voice = Voice::new(&args.say);
    let request = match args.request.request(&args.setup.model, 1).check() {
        Ok(request) => request,
        Err(error) => return voice.refuse(Exit::Usage, &problems::request_error(voice.lang, &error)),
    };
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
    let mut runs: Vec<Outcome> = Vec::new();
    // The first run also loads and compiles; the others are what a person waits for from then on.
    for number in 0..=u64::from(args.runs) {
        let mut request = request.clone();
        // Another prompt each time, so that encoding is measured and not the cache.
        request.prompt = format!("{} {number}", request.prompt);
        let job = follow::job(number + 1, request, args.setup.setup(), OutputPlan::Keep, false);
        let outcome = follow::follow(&engine, job, &interrupt, voice);
        if let Some(error) = &outcome.error {
            return voice.fail(error);
        }
        if outcome.interrupted {
            write::say(cli::INTERRUPTED.get(voice.lang));
            return Exit::Interrupted;
        }
        if let Some(summary) = &outcome.summary {
            let time = figures::took(voice.lang, summary.seconds.total);
            let values: [(&str, &dyn std::fmt::Display); 3] =
                [("run", &(number + 1)), ("runs", &(u64::from(args.runs) + 1)), ("time", &time)];
            voice.line(&cli::BENCH_RUN.with(voice.lang, &values));
        }
        runs.push(outcome);
    }
    let cleaned = clean(&engine);
    if let Some(report) = &cleaned {
        voice.line(&memory::clean_report(voice.lang, report));
    }
    // The engine may have ended by itself; then there is nobody left to tell.
    drop(engine.commands.send(Command::Shutdown));
    let warm: Vec<&Seconds> = runs.iter().skip(1).filter_map(|run| run.summary.as_ref()).map(|s| &s.seconds).collect();
    let steps: Vec<f64> = warm.iter().flat_map(|seconds| seconds.steps.iter().copied()).collect();
    if let Some(step) = median(&steps) {
        let time = format!("{:.1}", step * 1000.0);
        voice.line(&cli::BENCH_STEP.with(voice.lang, &[("time", &time), ("count", &steps.len())]));
    }
    voice.object(&summed_up(&runs, &warm, &steps, cleaned.as_ref()));
    Exit::Done
}

/// Cleans as the window's button does, and gives the readings before and after.
fn clean(engine: &EngineHandle) -> Option<CleanReport> {
    engine.commands.send(Command::Clean).ok()?;
    loop {
        match engine.events.recv_timeout(CLEANING).ok()? {
            Event::Cleaned(report) => return Some(*report),
            _ => continue,
        }
    }
}

/// Medians of the runs after the first, the first for itself, and the memory before and after cleaning.
fn summed_up(runs: &[Outcome], warm: &[&Seconds], steps: &[f64], cleaned: Option<&CleanReport>) -> Value {
    let of = |part: fn(&Seconds) -> f64| {
        let values: Vec<f64> = warm.iter().map(|seconds| part(seconds)).collect();
        median(&values).map(report::rounded)
    };
    let first = runs.first().and_then(|run| run.summary.as_ref());
    let last = runs.last().and_then(|run| run.summary.as_ref());
    json!({
        "device": last.map(|summary| summary.device.clone()),
        "dtype": last.map(|summary| summary.precision.label()),
        "runs": warm.len(),
        "first": first.map(report::seconds),
        "median": {
            "load": of(|seconds| seconds.load),
            "encode": of(|seconds| seconds.encode),
            "step": median(steps).map(report::rounded),
            "decode": of(|seconds| seconds.decode),
            "total": of(|seconds| seconds.total),
        },
        "peak_memory": last.map(report::peaks),
        "before_cleaning": cleaned.map(|cleaned| report::reading(&cleaned.before)),
        "after_cleaning": cleaned.map(|cleaned| report::reading(&cleaned.after)),
        "freed": report::bytes(cleaned.and_then(|cleaned| cleaned.freed)),
    })
}

/// The middle value, between the two middle ones for an even number. `None` of nothing.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }
}
