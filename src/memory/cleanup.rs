//! When to clean, and what a clean-up drops: pure decisions. The engine drops, empties and reads.

use super::Part;
use crate::base::choice::MemoryLimits;
use crate::base::{Bytes, MemoryReading};
use std::time::Duration;

/// After so long without work, what is held is given back.
pub const IDLE: Duration = Duration::from_secs(60);

/// Why a clean-up happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanReason {
    /// A person pressed the button.
    Asked,
    /// The card is at or over the limit.
    OverLimit,
    /// The next job needs the room: [`Policy::before_run`](super::Policy::before_run) said so.
    NextJob,
    Idle,
    /// So many pictures were made since the last time.
    EveryN,
}

/// Keeps track of what happened since the last clean-up. Time is handed in.
#[derive(Clone, Copy, Debug, Default)]
pub struct CleanRule {
    images: u32,
    /// Something ran since the last clean-up, so that there may be something to give back.
    used: bool,
}

impl CleanRule {
    /// A job, or anything else that allocates, has begun.
    pub fn work(&mut self) {
        self.used = true;
    }

    /// A picture was finished. Says whether the every-n rule is due.
    pub fn after_image(&mut self, limits: &MemoryLimits) -> Option<CleanReason> {
        self.used = true;
        self.images = self.images.saturating_add(1);
        let due = limits.clean_every.is_some_and(|n| n > 0 && self.images >= n);
        due.then_some(CleanReason::EveryN)
    }

    /// No job runs, for `idle` now. Once per stretch: after a clean-up nothing is left to give until something runs
    /// again.
    pub fn when_idle(&self, idle: Duration, reading: &MemoryReading, limits: &MemoryLimits) -> Option<CleanReason> {
        if !self.used {
            return None;
        }
        if reading.share_used().is_some_and(|share| share >= limits.pause_at) {
            return Some(CleanReason::OverLimit);
        }
        (idle >= IDLE).then_some(CleanReason::Idle)
    }

    /// A clean-up was done, for whatever reason.
    pub fn cleaned(&mut self) {
        *self = CleanRule::default();
    }
}

/// What a clean-up drops and keeps of the loaded parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanPlan {
    pub drop: Vec<Part>,
    pub keep: Vec<(Part, Bytes)>,
}

impl CleanPlan {
    /// `needed` are the parts that the running job uses at this moment or will use in its current phase; without a job,
    /// none.
    pub fn new(loaded: &[(Part, Bytes)], needed: &[Part]) -> Self {
        let (keep, drop): (Vec<_>, Vec<_>) = loaded.iter().copied().partition(|(part, _)| needed.contains(part));
        CleanPlan { drop: drop.into_iter().map(|(part, _)| part).collect(), keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(used: u64) -> MemoryReading {
        MemoryReading { total: Some(Bytes(100)), free: Some(Bytes(100 - used)), ..MemoryReading::default() }
    }

    #[test]
    fn every_nth_picture_is_counted_from_the_last_clean_up() {
        let limits = |clean_every| MemoryLimits { clean_every, ..MemoryLimits::default() };
        for (every, due) in
            [(None, vec![]), (Some(0), vec![]), (Some(1), vec![1, 2, 3, 4, 5, 6]), (Some(3), vec![3, 6])]
        {
            let mut rule = CleanRule::default();
            let seen: Vec<u32> = (1..=6)
                .filter(|_| {
                    let reason = rule.after_image(&limits(every));
                    if reason.is_some() {
                        rule.cleaned();
                    }
                    reason == Some(CleanReason::EveryN)
                })
                .collect();
            assert_eq!(seen, due, "{every:?}");
        }
        // A clean-up in between begins the count anew.
        let mut rule = CleanRule::default();
        rule.after_image(&limits(Some(3)));
        rule.after_image(&limits(Some(3)));
        rule.cleaned();
        assert_eq!(rule.after_image(&limits(Some(3))), None);
    }

    #[test]
    fn idle_cleans_once_and_only_after_work() {
        let limits = MemoryLimits::default();
        let seconds = Duration::from_secs;
        let mut rule = CleanRule::default();
        assert_eq!(rule.when_idle(seconds(3600), &reading(95), &limits), None, "nothing ran yet");
        rule.work();
        let unknown = MemoryReading::default();
        for (idle, reading, want) in [
            (59, &reading(50), None),
            (60, &reading(50), Some(CleanReason::Idle)),
            (1, &reading(90), Some(CleanReason::OverLimit)),
            (59, &unknown, None),
            (60, &unknown, Some(CleanReason::Idle)),
        ] {
            assert_eq!(rule.when_idle(seconds(idle), reading, &limits), want, "{idle} s");
        }
        rule.cleaned();
        assert_eq!(rule.when_idle(seconds(3600), &reading(95), &limits), None);
    }

    #[test]
    fn parts_at_work_stay() {
        let loaded = [(Part::TextEncoder, Bytes(2)), (Part::Unet, Bytes(17)), (Part::VaeDecoder, Bytes(1))];
        let plan = CleanPlan::new(&loaded, &[Part::Unet]);
        assert_eq!(plan.drop, [Part::TextEncoder, Part::VaeDecoder]);
        assert_eq!(plan.keep, [(Part::Unet, Bytes(17))]);
        assert_eq!(CleanPlan::new(&loaded, &[]).keep, []);
        assert_eq!(CleanPlan::new(&[], &[Part::Unet]), CleanPlan::default());
    }
}
