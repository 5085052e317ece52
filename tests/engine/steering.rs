//! Pause, resume, cancel and stop-and-keep in every phase.

use super::stage::{Stage, Told, request};
use softbox::base::problem::Phase;
use softbox::base::{ImageFormat, OutputPlan, ShotRequest};
use softbox::engine::protocol::{JobControl, PauseReason};
use softbox::studio::job::JobState;
use std::sync::Arc;
use std::time::Duration;

const STEPS: u32 = 4;

/// The phases of a job that starts from nothing.
fn phases() -> Vec<Phase> {
    let steps = (0..STEPS).map(|step| Phase::Denoising { step, of: STEPS });
    [Phase::Loading, Phase::Encoding].into_iter().chain(steps).chain([Phase::Decoding, Phase::Saving]).collect()
}

/// Runs a job on a fresh engine and does something at the `nth` checkpoint of a phase.
fn at(phase: Phase, nth: usize, act: impl Fn(&Arc<JobControl>) + Send + 'static) -> (Stage, Told) {
    let mut stage = Stage::new();
    let job = stage.job(request());
    let mut seen = 0;
    let told = stage.run_acting(job, move |now, control| {
        seen += usize::from(now == phase);
        if now == phase && seen == nth {
            act(control);
        }
    });
    (stage, told)
}

/// The next job runs as if nothing had been.
fn next_job_is_clean(stage: &mut Stage) {
    assert_eq!(stage.picture(request()).pixels(), undisturbed().pixels());
}

/// A run that nobody steers. The same on every engine, so it is made once.
fn undisturbed() -> &'static Told {
    static RUN: std::sync::OnceLock<Told> = std::sync::OnceLock::new();
    RUN.get_or_init(|| Stage::new().picture(request()))
}

#[test]
fn a_cancel_in_any_phase_ends_the_job_and_the_next_one_runs() {
    for phase in phases() {
        for nth in [1, 3] {
            let (mut stage, told) = at(phase, nth, |control| control.cancel());
            // Saving is entered once, and a picture that is finished is never lost.
            let saving = phase == Phase::Saving;
            assert_eq!(told.cancelled(), !(saving && nth == 3), "{phase:?} {nth}: {:?}", told.state);
            assert_eq!(told.shots.len(), usize::from(saving), "{phase:?}");
            assert_eq!(told.resumed, 0);
            if nth == 3 {
                next_job_is_clean(&mut stage);
            }
        }
    }
}

#[test]
fn a_pause_in_any_phase_holds_until_it_is_ended_and_changes_no_pixel() {
    for phase in phases().into_iter().filter(|phase| *phase != Phase::Saving) {
        let (_, told) = at(phase, 2, |control| {
            control.pause();
            resume_later(control);
        });
        assert_eq!((told.pauses.as_slice(), told.resumed), ([PauseReason::Asked].as_slice(), 1), "{phase:?}");
        let summary = told.summary.as_ref().unwrap();
        assert_eq!(summary.pauses.len(), 1);
        assert!(summary.seconds.paused >= 0.04 && summary.seconds.paused <= summary.seconds.total);
        let seconds = &summary.seconds;
        let worked = seconds.load + seconds.encode + seconds.steps.iter().sum::<f64>() + seconds.decode + seconds.save;
        assert!(worked + seconds.paused <= seconds.total + 1e-3, "{phase:?}: a pause is no work: {seconds:?}");
        assert_eq!(told.pixels(), undisturbed().pixels(), "{phase:?}");
    }
}

/// Ends a pause from another thread, as a window does.
fn resume_later(control: &Arc<JobControl>) {
    let control = control.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        control.resume();
    });
}

#[test]
fn a_paused_job_can_be_cancelled_or_kept() {
    for (step, keep) in [(0, false), (2, false), (2, true)] {
        let (mut stage, told) = at(Phase::Denoising { step, of: STEPS }, 5, move |control| {
            control.pause();
            let control = control.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                if keep { control.stop_and_keep() } else { control.cancel() }
            });
        });
        assert_eq!(told.pauses.len(), 1);
        assert_eq!(told.state, if keep { JobState::Done } else { JobState::Cancelled });
        assert_eq!(told.shots.first().map(|shot| shot.stopped_at), keep.then_some(Some(2)));
        next_job_is_clean(&mut stage);
    }
}

#[test]
fn stop_and_keep_in_any_phase_ends_the_job_with_a_picture() {
    for phase in phases() {
        let (mut stage, told) = at(phase, 2, |control| control.stop_and_keep());
        let wanted = match phase {
            // Nothing to keep yet: the first step is done first.
            Phase::Loading | Phase::Encoding | Phase::Denoising { step: 0, .. } => Some(1),
            Phase::Denoising { step, .. } => Some(step),
            Phase::Decoding | Phase::Saving => None,
        };
        assert_eq!(told.state, JobState::Done, "{phase:?}");
        assert_eq!(told.shots[0].stopped_at, wanted, "{phase:?}");
        assert_eq!(told.pixels() == undisturbed().pixels(), wanted.is_none(), "{phase:?}");
        next_job_is_clean(&mut stage);
    }
}

#[test]
fn stop_and_keep_ends_a_batch_with_the_pictures_it_has() {
    let mut stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let mut job = stage.job(ShotRequest { count: 5, ..request() });
    job.output =
        OutputPlan::Folder { folder: folder.path().to_owned(), pattern: "[seed]".to_owned(), format: ImageFormat::Png };
    let mut pictures = 0;
    let told = stage.run_acting(job, move |phase, control| {
        pictures += usize::from(phase == Phase::Saving);
        if pictures == 1 && phase == (Phase::Denoising { step: 3, of: STEPS }) {
            control.stop_and_keep();
        }
    });
    let stopped: Vec<_> = told.shots.iter().map(|shot| shot.stopped_at).collect();
    assert_eq!(stopped, [None, Some(3)]);
    assert_eq!(told.summary.as_ref().unwrap().images, 2);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_pause_between_pictures_holds_the_next_one_and_a_cancel_keeps_those_made() {
    let mut stage = Stage::new();
    let job = stage.job(ShotRequest { count: 3, ..request() });
    let mut saved = 0;
    let told = stage.run_acting(job, move |phase, control| {
        if phase == Phase::Saving {
            saved += 1;
            if saved == 1 {
                control.pause();
                resume_later(control);
            } else {
                control.cancel();
            }
        }
    });
    assert!(told.cancelled());
    assert_eq!((told.shots.len(), told.pauses.len(), told.resumed), (2, 1, 1));
    assert_eq!(told.shots[0].image.pixels(), undisturbed().pixels());
}
