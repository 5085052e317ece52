//! A panic in the GPU stack, played at every kind of place where there may be one.

use super::stage::{Stage, request};
use softbox::base::choice::MemoryLimits;
use softbox::base::problem::Phase;
use softbox::base::{Bytes, Problem};
use softbox::engine::protocol::Event;
use std::sync::Once;
use std::time::Duration;

/// Panics that a test plays need no trace on standard error.
fn quietly() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let played = info.payload().downcast_ref::<&str>().is_some_and(|text| text.starts_with("played: "));
            if !played {
                usual(info);
            }
        }));
    });
}

#[test]
fn a_panic_in_any_phase_fails_the_job_and_the_next_one_gives_the_same_pixels() {
    quietly();
    let mut stage = Stage::new();
    let pixels = stage.picture(request()).pixels().to_vec();
    let steps = (0..4).map(|step| Phase::Denoising { step, of: 4 });
    for phase in [Phase::Loading, Phase::Encoding].into_iter().chain(steps).chain([Phase::Decoding, Phase::Saving]) {
        for nth in [1, 4] {
            // Another model in between, so that each run loads and encodes again.
            let mut job = stage.job(request());
            job.setup.v_prediction = Some(nth == 1);
            let mut seen = 0;
            let told = stage.run_acting(job, move |now, _| {
                seen += usize::from(now == phase);
                if now == phase && (seen == nth || phase == Phase::Saving) {
                    panic!("played: the stack fails");
                }
            });
            assert_eq!(told.problem(), &Problem::DeviceFault { device: "CPU".to_owned() }, "{phase:?}");
            assert_eq!(told.error().details, "played: the stack fails");
            assert!(told.events.iter().any(|(_, event)| matches!(event, Event::Device(_))), "opened anew");
        }
        assert_eq!(stage.picture(request()).pixels(), pixels, "{phase:?}");
    }
}

#[test]
fn a_panic_gives_back_all_that_the_job_held() {
    quietly();
    let mut stage = Stage::scripted("0 1 0.25\n", MemoryLimits::default());
    for phase in [Phase::Encoding, Phase::Denoising { step: 2, of: 4 }, Phase::Decoding] {
        let job = stage.job(request());
        stage.run_acting(job, move |now, _| {
            if now == phase {
                panic!("played: the stack fails");
            }
        });
        // The next reading that comes by itself.
        stage.engine.readings.take();
        std::thread::sleep(Duration::from_millis(400));
        let reading = stage.engine.readings.take().expect("a reading");
        assert_eq!(reading.ours(), Some(Bytes::ZERO), "{phase:?}: {reading:?}");
    }
}

#[test]
fn a_panic_that_speaks_of_memory_is_told_as_such() {
    quietly();
    let mut stage = Stage::new();
    let job = stage.job(request());
    let told = stage.run_acting(job, |phase, _| {
        if phase == Phase::Decoding {
            panic!("played: CUDA_ERROR_OUT_OF_MEMORY");
        }
    });
    assert_eq!(told.problem(), &Problem::OutOfMemory { phase: Phase::Decoding });
    stage.picture(request());
}
