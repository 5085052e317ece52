//! Memory decisions of whole jobs, on a card that a gauge script tells of. Allocations beyond what the script leaves fail.
//!
//! The tiny model takes some 34 MiB in each phase: next to nothing of weights, and the floor of every forecast.

use super::stage::{Stage, Told, request};
use softbox::base::choice::MemoryLimits;
use softbox::base::problem::Phase;
use softbox::base::{Bytes, Hint, Problem, ShotRequest, Size};
use softbox::engine::protocol::{Command, Event, JobControl, PauseReason};
use softbox::studio::job::JobState;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn limits() -> MemoryLimits {
    MemoryLimits::default()
}

fn undisturbed() -> &'static Told {
    static RUN: OnceLock<Told> = OnceLock::new();
    RUN.get_or_init(|| Stage::new().picture(request()))
}

/// Runs a job on a scripted card; `on_pause` acts each time it pauses for memory.
fn play(stage: &mut Stage, on_pause: impl Fn(&JobControl)) -> Told {
    let job = stage.job(request());
    let control = job.control.clone();
    let id = stage.send_acting(job, |_, _| ());
    stage.hear(id, |event| {
        if let Event::Paused(_, PauseReason::LowMemory { .. }) = event {
            on_pause(&control);
        }
        false
    })
}

/// All of ours is off the card once it is cleaned.
fn nothing_is_left(stage: &Stage) {
    stage.send(Command::Clean);
    let report = loop {
        if let Event::Cleaned(report) = stage.engine.events.recv_timeout(Duration::from_secs(20)).unwrap() {
            break report;
        }
    };
    assert_eq!(report.after.ours(), Some(Bytes::ZERO), "{report:?}");
    assert!(report.kept.is_empty());
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_loaded_and_the_nearest_size_works() {
    let mut stage = Stage::scripted("0 0.25 0.1\n", limits());
    let wanted = ShotRequest { size: Size::new(1024, 1024).unwrap(), steps: 1, ..request() };
    let told = {
        let job = stage.job(wanted.clone());
        stage.run(job)
    };
    let Problem::DoesNotFit { need, have, fits: Some(fits), .. } = told.problem().clone() else {
        panic!("{:?}", told.problem());
    };
    assert!(need > have && told.phases == [Phase::Loading], "{:?}", told.phases);
    assert!(told.error().hints.contains(&Hint::UseSize(fits)));
    assert!(fits.pixels() < wanted.size.pixels() && fits.width() == fits.height());
    let told = stage.picture(ShotRequest { size: fits, ..wanted });
    assert!(told.pauses.is_empty(), "{fits} was promised: {:?}", told.pauses);
    nothing_is_left(&stage);
}

#[test]
fn a_budget_that_is_too_small_is_told_with_its_figures() {
    let budget = Some(Bytes::mib(20));
    let mut stage = Stage::scripted("0 8 1\n", MemoryLimits { budget, ..limits() });
    let told = {
        let job = stage.job(request());
        stage.run(job)
    };
    let &Problem::DoesNotFit { need, have, limit, .. } = told.problem() else { panic!("{:?}", told.problem()) };
    assert!(need > have && Some(limit) == budget);
    stage.send(Command::Limits(limits()));
    stage.picture(request());
}

/// Another program takes the card at the engine's look number `at`, for four looks.
fn taken_at(at: usize) -> Told {
    let script = format!("clock steps\n0 0.25 0.05\n{at} 0.25 0.235\n{} 0.25 0.05\n", at + 4);
    let mut stage = Stage::scripted(&script, limits());
    let told = play(&mut stage, |_| ());
    nothing_is_left(&stage);
    told
}

#[test]
fn whenever_the_card_fills_up_the_run_waits_and_goes_on_to_the_same_latent() {
    let places: Vec<usize> = (1..=11).collect();
    let told: Vec<Told> = std::thread::scope(|scope| {
        let runs: Vec<_> = places.iter().map(|at| scope.spawn(|| taken_at(*at))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let (mut refused, mut interrupted) = (0, Vec::new());
    for (at, told) in places.iter().zip(&told) {
        if told.summary.is_none() {
            // Full before it began: refused with nothing loaded.
            assert!(matches!(told.problem(), Problem::DoesNotFit { .. }), "look {at}: {:?}", told.problem());
            assert_eq!((told.phases.as_slice(), told.pauses.len()), ([Phase::Loading].as_slice(), 0));
            refused += 1;
            continue;
        }
        assert!(told.pauses.len() <= 1 && told.resumed == told.pauses.len(), "look {at} flaps: {:?}", told.pauses);
        assert_eq!(told.latent(), undisturbed().latent(), "look {at}");
        assert_eq!(told.pixels(), undisturbed().pixels(), "look {at}");
        if let [PauseReason::LowMemory { step, used, limit, others }] = told.pauses[..] {
            assert!(used >= limit || others.unwrap() > Bytes::mib(200), "look {at}: {used} {limit} {others:?}");
            assert_eq!(others, Some(Bytes((0.235 * (1u64 << 30) as f64).round() as u64)));
            interrupted.push(step);
        }
    }
    interrupted.dedup();
    assert!((1..=2).contains(&refused), "{refused} were refused");
    assert_eq!(interrupted, [0, 1, 2, 3, 4], "a pause before every step, and one before decoding");
}

/// Over the limit from the end of the second step on (the engine's seventh look), with room enough for the run itself.
const CROWDED: &str = "clock steps\n0 1 0.1\n7 1 0.91\n";

#[test]
fn the_person_may_go_on_over_the_limit_and_is_not_asked_again() {
    let mut stage = Stage::scripted(CROWDED, limits());
    let told = play(&mut stage, JobControl::resume);
    assert_eq!((told.pauses.len(), told.resumed), (1, 1), "{:?}", told.pauses);
    assert_eq!(told.latent(), undisturbed().latent());
    // It was said for that run: the next is refused or paused by the rule again.
    let job = stage.job(request());
    let again = stage.run(job);
    assert!(matches!(again.problem(), Problem::DoesNotFit { .. }), "{:?}", again.state);
}

#[test]
fn a_run_that_waits_for_memory_can_be_cancelled_or_kept() {
    let mut stage = Stage::scripted(CROWDED, limits());
    let told = play(&mut stage, JobControl::cancel);
    assert!(told.cancelled() && told.pauses.len() == 1);
    nothing_is_left(&stage);

    let mut stage = Stage::scripted(CROWDED, limits());
    let told = play(&mut stage, JobControl::stop_and_keep);
    assert_eq!(told.state, JobState::Done);
    let Some(PauseReason::LowMemory { step, .. }) = told.pauses.first() else { panic!("{:?}", told.pauses) };
    assert_eq!(told.shots[0].stopped_at, Some(*step));
}

#[test]
fn stop_and_keep_on_a_full_card_waits_for_room_to_decode() {
    let mut stage = Stage::scripted("clock steps\n0 0.25 0.05\n7 0.25 0.235\n13 0.25 0.05\n", limits());
    let told = play(&mut stage, JobControl::stop_and_keep);
    assert_eq!(told.state, JobState::Done, "{told:?}");
    assert!(told.shots[0].stopped_at.is_some());
}

#[test]
fn an_allocation_that_fails_ends_the_job_and_the_next_one_has_the_room_again() {
    // No room even for the weights, and the person goes on all the same.
    let mut stage = Stage::scripted("clock steps\n0 0.25 0.05\n7 0.25 0.2499\n40 0.25 0.05\n", limits());
    let told = play(&mut stage, JobControl::resume);
    assert!(matches!(told.problem(), Problem::OutOfMemory { .. }), "{:?}", told.problem());
    // Each clean-up looks twice, so that the script goes on.
    for _ in 0..20 {
        nothing_is_left(&stage);
    }
    assert_eq!(stage.picture(request()).pixels(), undisturbed().pixels());
}

#[test]
fn a_clean_up_during_a_job_waits_for_the_step_and_changes_nothing() {
    let mut stage = Stage::scripted("0 8 1\n", limits());
    let commands = stage.engine.commands.clone();
    let job = stage.job(request());
    let told = stage.run_acting(job, move |phase, _| {
        if phase == (Phase::Denoising { step: 1, of: 4 }) {
            commands.send(Command::Clean).unwrap();
        }
    });
    let order: Vec<char> = told
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Progress(..) => Some('p'),
            Event::Cleaned(_) => Some('c'),
            _ => None,
        })
        .collect();
    let order: String = order.into_iter().collect();
    assert!(order.starts_with("ppc") && order.trim_matches(['p', 'c']).is_empty() && order.ends_with("cpp"), "{order}");
    let report = told.events.iter().find_map(|(_, e)| if let Event::Cleaned(r) = e { Some(r) } else { None }).unwrap();
    assert!(report.kept.iter().any(|(part, _)| part == "UNet"), "what the step uses stays: {:?}", report.kept);
    assert!(report.freed > Some(Bytes::ZERO), "{report:?}");
    assert_eq!(told.pixels(), undisturbed().pixels());
    nothing_is_left(&stage);
}

#[test]
fn new_limits_hold_from_the_next_step_and_a_wider_one_ends_the_pause() {
    let mut stage = Stage::scripted("0 1 0.6\n", limits());
    let (commands, outside) = (stage.engine.commands.clone(), stage.engine.commands.clone());
    let narrow = MemoryLimits { pause_at: 0.5, ..limits() };
    let mut narrowed = false;
    let job = stage.job(request());
    let id = stage.send_acting(job, move |phase, _| {
        if phase == (Phase::Denoising { step: 2, of: 4 }) && !std::mem::replace(&mut narrowed, true) {
            commands.send(Command::Limits(narrow)).unwrap();
        }
    });
    let told = stage.hear(id, |event| {
        if let Event::Paused(..) = event {
            outside.send(Command::Limits(limits())).unwrap();
        }
        false
    });
    let [PauseReason::LowMemory { step: 3, limit, .. }] = told.pauses[..] else { panic!("{:?}", told.pauses) };
    assert_eq!((limit, told.resumed), (0.5, 1));
    assert_eq!(told.latent(), undisturbed().latent());
}

#[test]
fn resuming_an_ordinary_pause_does_not_lift_the_limit() {
    let mut stage = Stage::scripted("0 1 0.6\n", limits());
    let commands = stage.engine.commands.clone();
    let mut asked = false;
    let job = stage.job(request());
    let id = stage.send_acting(job, move |phase, control: &Arc<JobControl>| {
        if phase == (Phase::Denoising { step: 1, of: 4 }) && !std::mem::replace(&mut asked, true) {
            control.pause();
            commands.send(Command::Limits(MemoryLimits { pause_at: 0.5, ..limits() })).unwrap();
            let control = control.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                control.resume();
            });
        }
    });
    let told = stage.hear(id, |event| matches!(event, Event::Paused(_, PauseReason::LowMemory { .. })));
    assert!(matches!(told.pauses[..], [PauseReason::Asked, PauseReason::LowMemory { .. }]), "{:?}", told.pauses);
    stage.send(Command::Shutdown);
}

#[test]
fn cleaning_after_each_picture_keeps_what_the_next_one_needs() {
    let mut stage = Stage::scripted("0 8 1\n", MemoryLimits { clean_every: Some(1), ..limits() });
    let told = stage.picture(ShotRequest { count: 2, ..request() });
    assert_eq!(told.shots[0].image.pixels(), undisturbed().pixels());
    let loads = told.phases.iter().filter(|phase| **phase == Phase::Loading).count();
    assert_eq!(loads, 3, "each part once: {:?}", told.phases);
    stage.engine.readings.take();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(stage.engine.readings.take().unwrap().ours(), Some(Bytes::ZERO), "and nothing after the last");
}

#[test]
fn what_cannot_be_read_stops_nothing() {
    let mut stage = Stage::scripted("0 - -\n", limits());
    assert_eq!(stage.picture(request()).pixels(), undisturbed().pixels());
}
