//! Whole runs under gauge scripts: account, gauge and policy together, called in the order in which the engine calls
//! them.

use super::{Account, Gauge, MemoryError, Need, Part, Policy, Rates, Script, Verdict, Waiting};
use crate::base::choice::MemoryLimits;
use crate::base::{Bytes, Latest};
use std::time::Duration;

/// The sizes of a run in MiB.
const UNET: u64 = 2000;
const VAE: u64 = 200;
const STEP: u64 = 1000;
const STEPS: usize = 10;

/// What happened, one word each.
#[derive(Debug, PartialEq)]
enum Seen {
    Refused,
    Warned,
    Emptied(usize),
    Dropped(usize),
    Paused(usize),
    /// Resumed after so many looks.
    Resumed(usize),
    Failed(Bytes),
    Done,
}

/// Plays a run of ten steps. `patience` is after how many looks of a pause the person says to go on.
fn play(script: &str, limits: MemoryLimits, patience: usize) -> Vec<Seen> {
    let account = Account::scripted(Script::parse(script).expect("the script holds"));
    let rates = Rates { reading: Duration::from_secs(3600), ..Rates::default() };
    let gauge = Gauge::start(account.source().expect("a scripted card"), rates, Latest::new(), || ());
    let mut policy = Policy::new(limits);
    let mib = Bytes::mib;
    let mut seen = Vec::new();

    let rest = mib(UNET + STEP);
    let need = Need { most: rest, loaded: Bytes::ZERO };
    match policy.before_run(&gauge.boundary(account.pools()), &need, &[], |_| None) {
        Verdict::GoOn => {}
        Verdict::Warn { .. } => seen.push(Seen::Warned),
        Verdict::Refuse(_) => return vec![Seen::Refused],
        other => panic!("{other:?} before anything is loaded"),
    }
    gauge.job_begins();
    let mut run = || -> Result<(), MemoryError> {
        let mut unet = Some(account.take("UNet", mib(UNET))?);
        let mut vae = Some(account.take("VAE", mib(VAE))?);
        for step in 1..=STEPS {
            drop(account.take("step", mib(STEP))?);
            account.look();
            loop {
                let spare: Vec<(Part, Bytes)> = vae.iter().map(|vae| (Part::VaeDecoder, vae.bytes())).collect();
                match policy.at_boundary(&gauge.boundary(account.pools()), &spare) {
                    Verdict::GoOn => break,
                    Verdict::EmptyPools => {
                        account.empty_pools();
                        seen.push(Seen::Emptied(step));
                    }
                    Verdict::DropParts(parts) => {
                        assert_eq!(parts, [Part::VaeDecoder]);
                        vae = None;
                        account.empty_pools();
                        seen.push(Seen::Dropped(step));
                    }
                    Verdict::PauseLowMemory { .. } => {
                        seen.push(Seen::Paused(step));
                        drop(unet.take());
                        account.empty_pools();
                        let mut looks = 0;
                        loop {
                            account.look();
                            looks += 1;
                            assert!(looks < 1000, "it waits for ever");
                            let reading = gauge.boundary(account.pools());
                            if looks == patience {
                                policy.person_resumes(&reading, rest);
                                break;
                            }
                            if policy.while_paused(&reading, rest) == Waiting::Resume {
                                break;
                            }
                        }
                        seen.push(Seen::Resumed(looks));
                        unet = Some(account.take("UNet", mib(UNET))?);
                        break;
                    }
                    other => panic!("{other:?} at a boundary"),
                }
            }
        }
        drop((unet, vae));
        Ok(())
    };
    let end = run();
    gauge.job_ends();
    seen.push(match end {
        Ok(()) => Seen::Done,
        Err(MemoryError::OutOfMemory { have, .. }) => Seen::Failed(have),
        Err(other) => panic!("{other}"),
    });
    seen
}

const NEVER: usize = usize::MAX;

#[test]
fn a_roomy_card_is_no_event() {
    assert_eq!(play("clock steps\n0 8 1", MemoryLimits::default(), NEVER), [Seen::Done]);
}

#[test]
fn the_rungs_are_enough_where_little_is_missing() {
    // Limit 7372.8 MiB. From look 3 on, 5150 + 3200 is over it and 5150 + 2200 is not: each step the pool goes, no
    // more.
    let seen = play("clock steps\n0 8 1\n3 8 4850MiB\n", MemoryLimits::default(), NEVER);
    let emptied = (3..=10).map(Seen::Emptied).chain([Seen::Done]).collect::<Vec<_>>();
    assert_eq!(seen, emptied);
}

#[test]
fn a_pause_waits_for_room_and_the_rest_of_the_run_follows() {
    // Limit 7372.8 MiB: 5500 + 2000 of weights are over it even without the pool and the VAE. From look 9 on there is
    // room.
    let script = "clock steps\n0 8 1\n4 8 5500MiB\n9 8 1\n";
    let seen = play(script, MemoryLimits::default(), NEVER);
    let want = [Seen::Emptied(4), Seen::Dropped(4), Seen::Paused(4), Seen::Resumed(6), Seen::Done];
    assert_eq!(seen, want);
}

#[test]
fn the_person_may_go_on_before_there_is_room() {
    let script = "clock steps\n0 9 1\n4 9 6200MiB\n";
    let limits = MemoryLimits { pause_at: 0.8, ..MemoryLimits::default() };
    let seen = play(script, limits, 3);
    let want = [Seen::Emptied(4), Seen::Dropped(4), Seen::Paused(4), Seen::Resumed(3), Seen::Done];
    assert_eq!(seen, want);
}

#[test]
fn what_can_never_fit_is_refused_and_what_is_unknown_is_tried() {
    assert_eq!(play("clock steps\n0 8 6", MemoryLimits::default(), NEVER), [Seen::Refused]);
    assert_eq!(play("clock steps\n0 - -", MemoryLimits::default(), NEVER), [Seen::Done]);
    let budget = MemoryLimits { budget: Some(Bytes::gib(2)), ..MemoryLimits::default() };
    assert_eq!(play("clock steps\n0 80 1", budget, NEVER), [Seen::Refused]);
    // Just over the limit: warned, not refused.
    assert_eq!(play("clock steps\n0 8 4450MiB", MemoryLimits::default(), NEVER)[0], Seen::Warned);
}

#[test]
fn an_allocation_that_the_trace_leaves_no_room_for_fails_the_run() {
    // Unknown while the run begins, so that nothing warns of it.
    let seen = play(
        "clock steps\n0 - -\n1 8 5500MiB\n",
        MemoryLimits { pause_at: 0.98, budget: None, clean_every: None },
        NEVER,
    );
    assert_eq!(seen, [Seen::Emptied(1), Seen::Failed(Bytes::mib(492))]);
}
