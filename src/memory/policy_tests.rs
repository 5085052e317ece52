//! Tests of the rules: tables for each question, and long random traces for what must never happen.

use super::*;
use crate::memory::gauge::tests::Random;

fn limits() -> MemoryLimits {
    MemoryLimits::default()
}

fn mib(n: u64) -> Bytes {
    Bytes::mib(n)
}

/// A card of 10 000 MiB, so that percents are round: ours in use, pooled, others.
fn reading(in_use: u64, pooled: u64, others: u64) -> MemoryReading {
    MemoryReading {
        total: Some(mib(10_000)),
        ours_in_use: Some(mib(in_use)),
        ours_pooled: Some(mib(pooled)),
        ours_context: Some(Bytes::ZERO),
        others: Some(mib(others)),
        reserved: Some(Bytes::ZERO),
        free: Some(mib(10_000) - mib(in_use + pooled + others)),
        ..MemoryReading::default()
    }
}

fn need(most: u64, loaded: u64) -> Need {
    Need { most: mib(most), loaded: mib(loaded) }
}

fn no_fit(_: Bytes) -> Option<Size> {
    None
}

const VAE: (Part, Bytes) = (Part::VaeDecoder, Bytes::mib(200));

#[test]
fn before_a_run() {
    let unknown = MemoryReading { total: None, ..reading(0, 0, 9900) };
    let refuse = |need, have, limit| {
        Verdict::Refuse(Refusal { need: mib(need), have: mib(have), limit: mib(limit), fits: None })
    };
    let warn = |used| Verdict::Warn { used, limit: 0.9 };
    let cases = [
        ("room", reading(0, 0, 1000), need(8000, 0), vec![], Verdict::GoOn),
        ("one more is too much by a little", reading(0, 0, 1000), need(8200, 0), vec![], warn(0.92)),
        ("and by more", reading(0, 0, 1000), need(8300, 0), vec![], refuse(8300, 8000, 9000)),
        ("what is loaded is not needed again", reading(2000, 0, 1000), need(8000, 2000), vec![], Verdict::GoOn),
        ("our pool is in the way", reading(0, 3000, 1000), need(6000, 0), vec![], Verdict::EmptyPools),
        ("a part is in the way", reading(200, 0, 1000), need(8000, 0), vec![VAE], Verdict::DropParts(vec![VAE.0])),
        ("over the limit, own need small", reading(0, 0, 9300), need(200, 0), vec![], warn(0.95)),
        ("small, but not there", reading(0, 0, 9900), need(150, 0), vec![], refuse(150, 0, 9000)),
        ("unknown", unknown, need(50_000, 0), vec![VAE], Verdict::GoOn),
    ];
    for (name, reading, need, spare, want) in cases {
        assert_eq!(Policy::new(limits()).before_run(&reading, &need, &spare, no_fit), want, "{name}");
    }
}

#[test]
fn a_refusal_names_the_picture_that_fits() {
    let fits = Size::new(512, 512).ok();
    let verdict = Policy::new(limits()).before_run(&reading(0, 0, 1000), &need(9500, 0), &[], |have| {
        assert_eq!(have, mib(8000));
        fits
    });
    assert!(matches!(verdict, Verdict::Refuse(refusal) if refusal.fits == fits), "{verdict:?}");
}

#[test]
fn a_warned_run_goes_on_until_use_rises_by_two_percent() {
    let mut policy = Policy::new(limits());
    let verdict = policy.before_run(&reading(0, 0, 9300), &need(100, 0), &[], no_fit);
    assert!(matches!(verdict, Verdict::Warn { .. }));
    assert_eq!(policy.at_boundary(&reading(100, 0, 9300), &[]), Verdict::GoOn);
    assert_eq!(policy.at_boundary(&reading(100, 0, 9450), &[]), Verdict::GoOn);
    assert!(matches!(policy.at_boundary(&reading(100, 0, 9600), &[]), Verdict::PauseLowMemory { .. }));
}

#[test]
fn at_a_boundary_the_ladder_goes_down_rung_by_rung() {
    let mut policy = Policy::new(limits());
    assert_eq!(policy.at_boundary(&reading(3000, 1000, 4999), &[VAE]), Verdict::GoOn);
    // Exactly at the limit counts.
    assert_eq!(policy.at_boundary(&reading(3000, 1000, 5000), &[VAE]), Verdict::EmptyPools);
    assert_eq!(policy.at_boundary(&reading(3000, 500, 5600), &[VAE]), Verdict::DropParts(vec![Part::VaeDecoder]));
    let pause = Verdict::PauseLowMemory { used: 0.9, limit: 0.9, others: Some(mib(6200)) };
    assert_eq!(policy.at_boundary(&reading(2800, 0, 6200), &[]), pause);

    // A rung that helped ends the ladder, and the next time begins at the top.
    let mut policy = Policy::new(limits());
    assert_eq!(policy.at_boundary(&reading(3000, 1000, 5000), &[VAE]), Verdict::EmptyPools);
    assert_eq!(policy.at_boundary(&reading(3000, 0, 5000), &[VAE]), Verdict::GoOn);
    assert_eq!(policy.at_boundary(&reading(3000, 1000, 5000), &[VAE]), Verdict::EmptyPools);

    // An empty pool is not emptied.
    let mut policy = Policy::new(limits());
    assert_eq!(policy.at_boundary(&reading(3000, 0, 6000), &[VAE]), Verdict::DropParts(vec![Part::VaeDecoder]));

    let unknown = MemoryReading { free: None, ..reading(3000, 1000, 6000) };
    assert_eq!(Policy::new(limits()).at_boundary(&unknown, &[VAE]), Verdict::GoOn);
}

/// A policy that paused at 92 %, 3000 MiB of them ours.
fn paused() -> Policy {
    let mut policy = Policy::new(limits());
    let verdict = policy.at_boundary(&reading(3000, 0, 6200), &[]);
    assert!(matches!(verdict, Verdict::PauseLowMemory { .. }), "{verdict:?}");
    policy
}

#[test]
fn it_goes_on_when_the_rest_fits_with_a_tenth_to_spare_for_two_readings() {
    let mut policy = paused();
    let rest = mib(3000);
    // 9000 − 3300 = 5700 is not below.
    for others in [6200, 5700, 5700, 5700] {
        assert_eq!(policy.while_paused(&reading(0, 0, others), rest), Waiting::Stay, "{others}");
    }
    assert_eq!(policy.while_paused(&reading(0, 0, 5699), rest), Waiting::Stay);
    assert_eq!(policy.while_paused(&reading(0, 0, 5700), rest), Waiting::Stay, "a dip does not count");
    assert_eq!(policy.while_paused(&reading(0, 0, 5699), rest), Waiting::Stay);
    assert_eq!(policy.while_paused(&reading(0, 0, 5699), rest), Waiting::Resume);
}

#[test]
fn what_the_pause_gave_back_counts_where_the_forecast_was_too_low() {
    let mut policy = paused();
    // Forecast 1000, but leaving the card freed 3000.
    for _ in 0..5 {
        assert_eq!(policy.while_paused(&reading(0, 0, 6200), mib(1000)), Waiting::Stay);
    }
    assert_eq!(policy.while_paused(&reading(0, 0, 5000), mib(1000)), Waiting::Stay);
    assert_eq!(policy.while_paused(&reading(0, 0, 5000), mib(1000)), Waiting::Resume);
}

#[test]
fn a_gauge_that_goes_blind_does_not_hold_a_run_for_ever() {
    let unknown = MemoryReading { total: None, ..reading(0, 0, 9000) };
    assert_eq!(paused().while_paused(&unknown, mib(3000)), Waiting::Resume);
}

#[test]
fn a_run_that_waits_since_an_allocation_failed_goes_on_by_the_same_rule() {
    let mut policy = Policy::new(limits());
    for (others, want) in [(8000, Waiting::Stay), (5000, Waiting::Stay), (5000, Waiting::Resume)] {
        assert_eq!(policy.while_paused(&reading(0, 0, others), mib(3000)), want, "{others}");
    }
}

#[test]
fn the_persons_word_holds_until_use_has_risen_by_two_percent() {
    let mut policy = paused();
    policy.person_resumes(&reading(0, 0, 6200), mib(3000));
    for others in [6200, 6399] {
        assert_eq!(policy.at_boundary(&reading(3000, 0, others), &[]), Verdict::GoOn, "{others}");
    }
    assert!(matches!(policy.at_boundary(&reading(3000, 0, 6400), &[]), Verdict::PauseLowMemory { .. }));

    // Well below the limit the word is spent: the next time the rule holds again.
    let mut policy = paused();
    policy.person_resumes(&reading(0, 0, 6200), mib(3000));
    assert_eq!(policy.at_boundary(&reading(3000, 0, 5000), &[]), Verdict::GoOn);
    assert!(matches!(policy.at_boundary(&reading(3000, 0, 6100), &[]), Verdict::PauseLowMemory { .. }));

    // New limits make it void too; the same ones again do not.
    let mut policy = paused();
    policy.person_resumes(&reading(0, 0, 6200), mib(3000));
    policy.set_limits(limits());
    assert_eq!(policy.at_boundary(&reading(3000, 0, 6200), &[]), Verdict::GoOn);
    policy.set_limits(MemoryLimits { pause_at: 0.8, ..limits() });
    assert!(matches!(policy.at_boundary(&reading(3000, 0, 6200), &[]), Verdict::PauseLowMemory { limit: 0.8, .. }));
}

#[test]
fn the_budget_is_a_ceiling_for_us_alone() {
    let budget = |n| MemoryLimits { budget: Some(mib(n)), ..limits() };
    let mut policy = Policy::new(budget(3000));
    let verdict = policy.before_run(&reading(0, 0, 0), &need(3100, 0), &[], no_fit);
    assert_eq!(verdict, Verdict::Refuse(Refusal { need: mib(3100), have: mib(3000), limit: mib(3000), fits: None }));
    assert_eq!(policy.before_run(&reading(0, 0, 0), &need(3000, 0), &[], no_fit), Verdict::GoOn);

    // The context counts.
    let with_context = MemoryReading { ours_context: Some(mib(400)), ..reading(0, 0, 0) };
    assert!(matches!(policy.before_run(&with_context, &need(2700, 0), &[], no_fit), Verdict::Refuse(_)));

    // Others do not.
    assert_eq!(policy.at_boundary(&reading(3000, 0, 5500), &[VAE]), Verdict::GoOn);
    assert_eq!(policy.at_boundary(&reading(2900, 200, 0), &[VAE]), Verdict::EmptyPools);
    assert_eq!(policy.at_boundary(&reading(3100, 0, 0), &[VAE]), Verdict::DropParts(vec![Part::VaeDecoder]));
    // Waiting would never end, so the job does.
    assert!(matches!(policy.at_boundary(&reading(3100, 0, 0), &[]), Verdict::Refuse(_)));

    // It holds also where the card itself is unknown.
    let unknown = MemoryReading { total: None, others: None, free: None, ..reading(2900, 200, 0) };
    assert_eq!(policy.at_boundary(&unknown, &[]), Verdict::EmptyPools);
}

#[test]
fn before_a_phase_room_is_made_and_an_allocation_that_must_fail_waits() {
    let ask = |reading: &MemoryReading, need: Need| {
        let mut policy = Policy::new(limits());
        let mut verdicts = vec![policy.before_phase(reading, &need, &[VAE])];
        while matches!(verdicts.last(), Some(Verdict::EmptyPools | Verdict::DropParts(_))) {
            assert!(verdicts.len() < 4, "the ladder does not end");
            verdicts.push(policy.before_phase(reading, &need, &[VAE]));
        }
        verdicts
    };
    let drop_vae = Verdict::DropParts(vec![Part::VaeDecoder]);
    assert_eq!(ask(&reading(2000, 500, 4000), need(2000, 0)), [Verdict::GoOn]);
    let tight = ask(&reading(2000, 500, 4000), need(3000, 0));
    assert_eq!(tight, [Verdict::EmptyPools, drop_vae.clone(), Verdict::GoOn]);
    let verdicts = ask(&reading(2000, 0, 5000), need(3500, 0));
    assert_eq!(verdicts[0], drop_vae);
    assert!(matches!(verdicts[1], Verdict::PauseLowMemory { .. }));
}

/// Plays the engine against a card on which others do as a random walk says.
struct Play {
    policy: Policy,
    running: bool,
    weights: u64,
    activations: u64,
    pooled: u64,
}

impl Play {
    fn reading(&self, others: u64) -> MemoryReading {
        // What does not fit is simply not there: the card is full.
        let ours = if self.running { self.weights + self.activations } else { 0 };
        reading(ours, self.pooled, others.min(10_000 - (ours + self.pooled).min(10_000)))
    }

    /// One look. Says whether it paused or resumed.
    fn look(&mut self, others: u64, forecast: u64) -> Option<Waiting> {
        if !self.running {
            let verdict = self.policy.while_paused(&self.reading(others), mib(forecast));
            self.running = verdict == Waiting::Resume;
            return self.running.then_some(Waiting::Resume);
        }
        for _ in 0..4 {
            match self.policy.at_boundary(&self.reading(others), &[]) {
                Verdict::GoOn => return None,
                Verdict::EmptyPools => self.pooled = 0,
                Verdict::PauseLowMemory { .. } => {
                    self.running = false;
                    return Some(Waiting::Stay);
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("the ladder does not end");
    }
}

#[test]
fn over_thousands_of_traces_it_never_flaps_and_never_waits_where_there_is_room() {
    let (mut pauses, mut resumes) = (0, 0);
    for seed in 0..4000 {
        let mut random = Random(seed);
        let mut play = Play {
            policy: Policy::new(limits()),
            running: true,
            weights: 500 + random.below(3000),
            activations: random.below(3000),
            pooled: 0,
        };
        let ours = play.weights + play.activations;
        // Forecasts are off by up to a half either way.
        let forecast = ours * (50 + random.below(100)) / 100;
        let mut others = random.below(9000);
        let jump = 1 + random.below(1500);
        let mut paused_at: Option<(u32, u64)> = None;
        let mut resumed_at: Option<(u32, u64)> = None;
        let mut roomy = 0;
        for at in 0..400u32 {
            others = (others + random.below(2 * jump)).saturating_sub(jump).min(10_000 - play.activations.min(10_000));
            if play.running && random.below(3) == 0 {
                play.pooled = random.below(1000);
            }
            let was_running = play.running;
            let change = play.look(others, forecast);
            let needed = ours.max(forecast);
            match change {
                Some(Waiting::Stay) => {
                    pauses += 1;
                    // Between a resume and the next pause the others must have risen from where all fitted with room to
                    // where it did not fit at all: by a tenth of what we hold.
                    if let Some((since, then)) = resumed_at {
                        assert!(at > since, "seed {seed}");
                        assert!(others + ours >= 9000 && then + needed < 9000, "seed {seed} at {at}");
                        assert!(others - then >= ours / 10, "seed {seed}: paused again after {} MiB", others - then);
                    }
                    paused_at = Some((at, others));
                    roomy = 0;
                }
                Some(Waiting::Resume) => {
                    resumes += 1;
                    let (since, then) = paused_at.expect("a resume follows a pause");
                    assert!(at - since >= SETTLED, "seed {seed}");
                    assert!(others < then, "seed {seed}: resumed although the others had not fallen");
                    resumed_at = Some((at, others));
                }
                None if !was_running => {
                    // Room for the larger of forecast and truth, with the tenth: two such readings in a row are enough.
                    let fits = (others as f64) + needed as f64 * 1.1 < 9000.0 - 1.0;
                    roomy = if fits { roomy + 1 } else { 0 };
                    assert!(roomy < SETTLED, "seed {seed} at {at}: waits though there is room");
                }
                None => {}
            }
        }
    }
    assert!(pauses > 2000 && resumes > 1000, "the traces hardly tried it: {pauses} pauses, {resumes} resumes");
}
