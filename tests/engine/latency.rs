//! How long a wish can go unheard: the longest time between two checkpoints of a job, at each of which a cancel ends it
//! and, on the CPU, a pause holds it.

use super::stage::{Stage, request};
use softbox::base::problem::Phase;
use softbox::base::{ModelChoice, ShotRequest, Size};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest silence in each phase of a run.
fn longest_silences(model: Option<ModelChoice>, request: ShotRequest) -> BTreeMap<String, Duration> {
    let mut stage = Stage::new();
    let mut job = stage.job(request);
    if let Some(model) = model {
        stage.patience = Duration::from_secs(3600);
        job.setup.model = model;
    }
    let gaps: Arc<Mutex<BTreeMap<String, Duration>>> = Arc::default();
    let seen = gaps.clone();
    let mut before: Option<(Instant, Phase)> = None;
    let told = stage.run_acting(job, move |phase, _| {
        let now = Instant::now();
        if let Some((last, phase)) = before.replace((now, phase)) {
            let name = format!("{phase:?}").split_whitespace().next().unwrap_or_default().to_owned();
            let mut gaps = seen.lock().unwrap();
            let longest = gaps.entry(name).or_default();
            *longest = (*longest).max(now - last);
        }
    });
    assert!(told.summary.is_some(), "{told:?}");
    gaps.lock().unwrap().clone()
}

/// Full size on the CPU, where a layer takes longest: `cargo test --release -- --ignored --nocapture full_size`.
#[test]
#[ignore = "minutes, and 5 GB of memory"]
fn at_full_size_on_the_cpu_no_silence_is_longer_than_two_seconds() {
    let side = |name| std::env::var(name).ok().and_then(|side| side.parse().ok()).unwrap_or(512);
    let size = Size::new(side("SOFTBOX_TEST_WIDTH"), side("SOFTBOX_TEST_HEIGHT")).unwrap();
    let gaps = longest_silences(Some(ModelChoice::RandomSd15), ShotRequest { steps: 1, size, ..request() });
    println!("{gaps:?}");
    assert!(gaps.values().all(|gap| *gap < Duration::from_secs(2)), "{gaps:?}");
}

/// A step of a tiny model at a size where each attention of it takes a second.
#[test]
fn a_wish_is_heard_within_two_seconds_at_a_large_size() {
    let size = Size::new(640, 640).unwrap();
    let gaps = longest_silences(None, ShotRequest { steps: 1, cfg: 1.0, size, ..request() });
    assert!(gaps.values().all(|gap| *gap < Duration::from_secs(2)), "{gaps:?}");
}
