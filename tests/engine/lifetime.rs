//! How the engine's thread ends, and what is commanded while a job runs.

use super::stage::{Stage, data, request, setup};
use softbox::base::problem::Phase;
use softbox::base::{DeviceChoice, JobId, OutputPlan, ShotRequest};
use softbox::engine::protocol::{Command, Event, Job};
use softbox::engine::{self, EngineSettings};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// An engine, and what lives as long as its threads do: the closure that wakes the window.
fn engine() -> (softbox::engine::protocol::EngineHandle, Weak<()>) {
    let alive = Arc::new(());
    let threads = Arc::downgrade(&alive);
    let settings = EngineSettings { device: DeviceChoice::Cpu, ..EngineSettings::default() };
    let wake = move || {
        let _ = &alive;
    };
    (engine::start(settings, wake).unwrap(), threads)
}

fn ends_within(threads: &Weak<()>, limit: Duration) {
    let until = Instant::now() + limit;
    while threads.upgrade().is_some() {
        assert!(Instant::now() < until, "the thread still runs after {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn long_job(id: u64) -> Job {
    let setup = setup(data("tiny-a"));
    let request = ShotRequest { steps: 1000, ..request() };
    Job { id: JobId(id), request, setup, output: OutputPlan::Keep, keep_latents: false, control: Arc::default() }
}

#[test]
fn a_shutdown_ends_an_idle_a_running_and_a_paused_engine_soon() {
    for wait_for in [None, Some(false), Some(true)] {
        let (engine, threads) = engine();
        let job = long_job(1);
        let control = job.control.clone();
        if let Some(paused) = wait_for {
            engine.commands.send(Command::Run(Box::new(job))).unwrap();
            engine.commands.send(Command::Run(Box::new(long_job(2)))).unwrap();
            if paused {
                control.pause();
            }
            engine
                .events
                .iter()
                .find(|event| match event {
                    Event::Paused(..) => paused,
                    Event::Progress(..) => !paused,
                    _ => false,
                })
                .unwrap();
        }
        engine.commands.send(Command::Shutdown).unwrap();
        ends_within(&threads, Duration::from_secs(2));
        let ended: Vec<_> = engine.events.try_iter().filter(|event| matches!(event, Event::Cancelled(_))).collect();
        assert_eq!(ended.len(), if wait_for.is_some() { 2 } else { 0 }, "the queued one is told of as well");
    }
}

#[test]
fn a_dropped_handle_ends_the_thread_after_the_job_and_a_paused_job_at_once() {
    let (idle, threads) = engine();
    drop(idle);
    ends_within(&threads, Duration::from_secs(3));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("last.png");
    let (running, threads) = engine();
    let job = Job { output: OutputPlan::File(file.clone()), request: request(), ..long_job(1) };
    running.commands.send(Command::Run(Box::new(job))).unwrap();
    drop(running);
    ends_within(&threads, Duration::from_secs(20));
    assert!(file.is_file(), "what was asked for is finished");

    let (paused, threads) = engine();
    let job = long_job(1);
    job.control.pause();
    paused.commands.send(Command::Run(Box::new(job))).unwrap();
    paused.events.iter().find(|event| matches!(event, Event::Paused(..))).unwrap();
    drop(paused);
    ends_within(&threads, Duration::from_secs(2));
}

#[test]
fn a_probe_during_a_job_waits_for_its_end() {
    let mut stage = Stage::new();
    let commands = stage.engine.commands.clone();
    let job = stage.job(request());
    let mut asked = false;
    let id = stage.send_acting(job, move |phase, _| {
        if matches!(phase, Phase::Denoising { .. }) && !std::mem::replace(&mut asked, true) {
            commands.send(Command::Probe(DeviceChoice::Cpu)).unwrap();
        }
    });
    let told = stage.hear(id, |_| false);
    assert!(told.summary.is_some());
    let after = stage.engine.events.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(matches!(after, Event::Device(ref status) if status.choice == DeviceChoice::Cpu), "{after:?}");
    stage.picture(request());
}
