//! Tests of the gauge: parts that add up whatever the figures, and the thread's behaviour.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn figures(total: u64, free: u64, reserved: u64, ours: Option<u64>) -> DeviceFigures {
    DeviceFigures {
        total: Some(Bytes::mib(total)),
        free: Some(Bytes::mib(free)),
        reserved: Some(Bytes::mib(reserved)),
        ours: ours.map(Bytes::mib),
        ..DeviceFigures::default()
    }
}

fn pools(in_use: u64, reserved: u64) -> Option<Pools> {
    Some(Pools { in_use: Bytes::mib(in_use), reserved: Bytes::mib(reserved) })
}

/// In use, pooled, context, others in MiB.
fn parts(reading: &MemoryReading) -> [Option<u64>; 4] {
    [reading.ours_in_use, reading.ours_pooled, reading.ours_context, reading.others].map(|b| b.map(|b| b.0 >> 20))
}

#[test]
fn the_parts_are_as_the_figures_say() {
    let context = Some(Bytes::mib(300));
    let others = Some(Bytes::mib(1000));
    let known = |pools, context, others| Known { no_pools: false, pools, context, others };
    let cases = [
        (
            "fresh figures",
            figures(8000, 4000, 200, Some(2300)),
            known(pools(1500, 2000), None, None),
            [Some(1500), Some(500), Some(300), Some(1500)],
        ),
        (
            "ours grew within a step",
            figures(8000, 3000, 200, Some(3300)),
            known(pools(1500, 2000), context, None),
            [Some(2500), Some(500), Some(300), Some(1500)],
        ),
        (
            "ours shrank since",
            figures(8000, 5000, 200, Some(1300)),
            known(pools(1500, 2000), context, None),
            [Some(1000), Some(0), Some(300), Some(1500)],
        ),
        (
            "not counted by program",
            figures(8000, 4000, 200, None),
            known(pools(1500, 2000), context, None),
            [Some(1500), Some(500), Some(300), Some(1500)],
        ),
        (
            "that, grown within a job",
            figures(8000, 2000, 200, None),
            known(pools(1500, 2000), context, others),
            [Some(4000), Some(500), Some(300), Some(1000)],
        ),
        (
            "that, without a measured context",
            figures(8000, 4000, 200, None),
            known(pools(1500, 2000), None, None),
            [Some(1500), Some(500), None, None],
        ),
        (
            "hidden by the driver",
            figures(8000, 4000, 200, Some(0)),
            known(pools(1500, 2000), context, None),
            [Some(1500), Some(500), Some(300), Some(1500)],
        ),
        (
            "device not opened yet",
            figures(8000, 4000, 200, Some(0)),
            known(None, None, None),
            [Some(0), Some(0), Some(0), Some(3800)],
        ),
        (
            "pools not told",
            figures(8000, 4000, 200, Some(800)),
            known(None, None, None),
            [None, None, None, Some(3000)],
        ),
        (
            "CPU",
            figures(8000, 4000, 0, Some(900)),
            Known { no_pools: true, context, ..Known::default() },
            [Some(600), Some(0), Some(300), Some(3100)],
        ),
        (
            "nothing known",
            DeviceFigures::unknown(Reason::NoNvml(String::new())),
            known(pools(10, 30), None, None),
            [Some(10), Some(20), None, None],
        ),
    ];
    for (name, figures, known, want) in cases {
        let reading = combine(&figures, &known);
        assert_eq!(parts(&reading), want, "{name}");
        if want.iter().all(Option::is_some) {
            assert_eq!(sum(&reading), reading.total, "{name}");
        }
    }
    let hidden = combine(&figures(8000, 4000, 200, Some(0)), &known(pools(1, 2), None, None));
    assert_eq!(hidden.unknown_because.len(), 1);
}

fn sum(r: &MemoryReading) -> Option<Bytes> {
    Some(r.ours_in_use? + r.ours_pooled? + r.ours_context? + r.others? + r.reserved? + r.free?)
}

/// A small deterministic generator (SplitMix64), so that a failure can be repeated.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn maybe(&mut self, bound: u64) -> Option<Bytes> {
        (self.below(4) > 0).then(|| Bytes(self.below(bound)))
    }
}

#[test]
fn whatever_the_figures_the_parts_add_up_and_none_is_more_than_the_whole() {
    let mut random = Random(7);
    let mut complete = 0;
    for round in 0..20_000 {
        let total = Bytes(random.below(1 << 20));
        // Figures of different moments: any of them may contradict any other.
        let bound = 1 << 21;
        let figures = DeviceFigures {
            total: Some(total),
            free: Some(Bytes(random.below(bound))),
            reserved: random.maybe(bound),
            ours: random.maybe(bound),
            ..DeviceFigures::default()
        };
        let known = Known {
            no_pools: random.below(4) == 0,
            pools: (random.below(4) > 0)
                .then(|| Pools { in_use: Bytes(random.below(bound)), reserved: Bytes(random.below(bound)) }),
            context: random.maybe(bound),
            others: random.maybe(bound),
        };
        let reading = combine(&figures, &known);
        let all = [reading.ours_in_use, reading.ours_pooled, reading.ours_context, reading.others, reading.free];
        assert!(all.into_iter().flatten().all(|part| part <= total), "round {round}: {reading:?}");
        if let Some(sum) = sum(&reading) {
            assert_eq!(sum, total, "round {round}: {figures:?} {known:?}");
            complete += 1;
        }
    }
    assert!(complete > 5_000, "only {complete} rounds were complete");
}

/// A device that a test sets by hand.
#[derive(Clone)]
struct Hand(Arc<Mutex<DeviceFigures>>);

impl Source for Hand {
    fn read(&mut self) -> DeviceFigures {
        lock(&self.0).clone()
    }
}

fn hand(figures: DeviceFigures) -> Hand {
    Hand(Arc::new(Mutex::new(figures)))
}

const QUICK: Rates = Rates { reading: Duration::from_millis(20), peak: Duration::from_millis(2) };
/// So slow that only what the test itself asks for is read.
const SLOW: Rates = Rates { reading: Duration::from_secs(3600), peak: Duration::from_secs(3600) };

#[test]
fn it_wakes_only_for_what_can_be_seen_and_ends_at_once() {
    let device = hand(figures(8000, 4000, 0, Some(0)));
    let (woken, out) = (Arc::new(AtomicUsize::new(0)), Latest::new());
    let count = woken.clone();
    let gauge = Gauge::start(Box::new(device.clone()), QUICK, out.clone(), move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let wait_for = |n: usize| {
        let begun = Instant::now();
        while woken.load(Ordering::SeqCst) < n && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        woken.load(Ordering::SeqCst)
    };
    assert_eq!(wait_for(1), 1);
    *lock(&device.0) = figures(8000, 3999, 0, Some(0));
    let until = Instant::now() + Duration::from_millis(200);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(woken.load(Ordering::SeqCst), 1, "1 MiB of 8000 is not seen");
    *lock(&device.0) = figures(8000, 3900, 0, Some(0));
    assert_eq!(wait_for(2), 2);
    assert!(out.take().is_some_and(|reading| reading.at > 0.0));
    let begun = Instant::now();
    drop(gauge);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_spike_between_two_readings_is_the_peak_of_its_job_only() {
    let device = hand(figures(8000, 5000, 0, Some(1000)));
    let rates = Rates { reading: Duration::from_secs(3600), peak: Duration::from_millis(1) };
    let gauge = Gauge::start(Box::new(device.clone()), rates, Latest::new(), || ());
    gauge.boundary(pools(600, 800));
    gauge.job_begins();
    gauge.boundary(pools(700, 900));
    *lock(&device.0) = figures(8000, 2000, 0, Some(4000));
    let begun = Instant::now();
    while gauge.peaks().process != Some(Bytes::mib(4000)) && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    *lock(&device.0) = figures(8000, 5000, 0, Some(1000));
    let peaks = gauge.job_ends();
    let mib = |n| Some(Bytes::mib(n));
    assert_eq!(
        peaks,
        Peaks { pools_in_use: mib(700), pools_reserved: mib(900), process: mib(4000), device: mib(6000) }
    );
    assert_eq!(gauge.now().peak, mib(4000), "it is shown until the next job");
    gauge.job_begins();
    assert_eq!(gauge.now().peak, mib(1000));
}

#[test]
fn a_driver_that_does_not_count_by_program_is_helped_by_before_and_after() {
    let device = hand(figures(8000, 7000, 0, None));
    let gauge = Gauge::start(Box::new(device.clone()), SLOW, Latest::new(), || ());
    gauge.context_opens();
    *lock(&device.0) = figures(8000, 6700, 0, None);
    gauge.context_opened(pools(0, 0));
    *lock(&device.0) = figures(8000, 5000, 0, None);
    let reading = gauge.boundary(pools(1500, 1700));
    assert_eq!(parts(&reading), [Some(1500), Some(200), Some(300), Some(1000)]);
}

#[test]
fn another_device_is_another_story() {
    let gauge = Gauge::start(Box::new(hand(figures(8000, 7000, 0, Some(500)))), SLOW, Latest::new(), || ());
    gauge.boundary(pools(100, 200));
    gauge.watch(Box::new(hand(figures(16000, 9000, 0, None))));
    let reading = gauge.now();
    assert_eq!((reading.total, reading.ours_in_use), (Some(Bytes::mib(16000)), None));
}
