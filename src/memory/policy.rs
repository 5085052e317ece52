//! The rules: a reading, a need and the limits become a verdict. Pure: no device, no clock, no thread.
//!
//! The 90 % rule looks at the whole card, by whomever it is used. The budget looks at this program alone. Both go down
//! the same ladder: empty our pools, drop parts that are not in use, read again. The engine carries out one verdict,
//! reads, and asks again; no rung is given twice before a verdict lets the run go on, so asking always ends.
//!
//! Thresholds differ for going down and coming back. A run waits once the card is at the limit, and goes on only when
//! all that its rest needs fits below the limit with a tenth of that need to spare. What a pause really gave back
//! counts as need where it is more than forecast: otherwise our own return could be what passes the limit again.

use super::{Part, Refusal};
use crate::base::choice::MemoryLimits;
use crate::base::{Bytes, MemoryReading, Size};

/// Room beyond its need that a waiting run asks for, as a share of that need.
const ROOM: f64 = 0.10;
/// By what share of the card use may still rise after the person, or a warning, let the run go on over the limit. A
/// need of at most this much is small: pausing for it gives nobody anything.
const HOLD: f64 = 0.02;
/// So many readings in a row must show room before a waiting run loads its weights again. A single dip of another
/// program is not worth the load.
const SETTLED: u32 = 2;

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    GoOn,
    /// Go on, and say that the card is, or will be, over the limit.
    Warn {
        used: f64,
        limit: f64,
    },
    /// Empty our pools, read, ask again.
    EmptyPools,
    /// Drop these parts and empty the pools, read, ask again.
    DropParts(Vec<Part>),
    /// Take the weights off the card, keep the latent, and wait ([`Policy::while_paused`]).
    PauseLowMemory {
        used: f64,
        limit: f64,
        others: Option<Bytes>,
    },
    /// The job ends with [`MemoryError::DoesNotFit`](super::MemoryError::DoesNotFit).
    Refuse(Refusal),
}

/// What a paused run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    Stay,
    Resume,
}

/// What a run, or its next phase, will take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The most at once, weights included, the context not.
    pub most: Bytes,
    /// What of that is on the card already: loaded parts that it uses.
    pub loaded: Bytes,
}

impl Need {
    /// What must newly be allocated.
    pub fn new_bytes(&self) -> Bytes {
        self.most - self.loaded
    }
}

/// The rules with what they remember between two questions.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    limits: MemoryLimits,
    /// Rungs of the ladder taken since the last verdict that let the run go on.
    emptied: bool,
    dropped: bool,
    /// Over the limit, go on until use reaches this share.
    hold: Option<f64>,
    pause: Option<Pause>,
}

/// What is remembered while a run waits.
#[derive(Clone, Copy, Debug)]
struct Pause {
    used: f64,
    ours: Option<Bytes>,
    /// What leaving the card gave back; known from the first reading of the pause.
    released: Option<Bytes>,
    /// Readings in a row that showed room.
    settled: u32,
}

impl Policy {
    pub fn new(limits: MemoryLimits) -> Self {
        Policy { limits, ..Policy::default() }
    }

    pub fn limits(&self) -> &MemoryLimits {
        &self.limits
    }

    /// New limits hold from the next question. What the person allowed under the old ones is void.
    pub fn set_limits(&mut self, limits: MemoryLimits) {
        if limits != self.limits {
            self.hold = None;
            self.limits = limits;
        }
    }

    /// Before step 0: `need` is the least that the run can do with, one part loaded at a time; `spare` are loaded parts
    /// that it can do without at its worst moment; `fit` finds the nearest picture whose need is at most so much.
    pub fn before_run(
        &mut self,
        reading: &MemoryReading,
        need: &Need,
        spare: &[(Part, Bytes)],
        fit: impl Fn(Bytes) -> Option<Size>,
    ) -> Verdict {
        self.pause = None;
        self.hold = None;
        if let Some(refusal) = self.over_budget(reading, need, &fit) {
            return self.settle(Verdict::Refuse(refusal));
        }
        let Some(card) = Card::of(reading) else { return self.settle(Verdict::GoOn) };
        let limit = card.total.portion(self.limits.pause_at);
        if card.used + need.new_bytes() <= limit {
            return self.settle(Verdict::GoOn);
        }
        if let Some(rung) = self.rung(reading, spare) {
            return rung;
        }
        // Nothing of ours is left to give: what is used now stays.
        let after = card.used + need.new_bytes();
        let small = card.total.portion(HOLD);
        let excess = after - limit;
        if after <= card.total && (need.new_bytes() <= small || excess <= small) {
            self.hold = Some(after.share_of(card.total) + HOLD);
            return self.settle(Verdict::Warn { used: after.share_of(card.total), limit: self.limits.pause_at });
        }
        let have = need.loaded + (limit - card.used);
        self.settle(Verdict::Refuse(Refusal { need: need.most, have, limit, fits: fit(have) }))
    }

    /// Before a phase that allocates much at once (a part's weights, a decode): makes room while our own can still be
    /// given up, and waits where the device would refuse the allocation.
    pub fn before_phase(&mut self, reading: &MemoryReading, need: &Need, spare: &[(Part, Bytes)]) -> Verdict {
        let budget_passed = self.limits.budget.is_some_and(|budget| held(reading) + need.new_bytes() > budget);
        let Some(card) = Card::of(reading) else {
            let rung = if budget_passed { self.rung(reading, spare) } else { None };
            return rung.unwrap_or_else(|| self.settle(Verdict::GoOn));
        };
        let after = card.used + need.new_bytes();
        if after <= card.total.portion(self.limits.pause_at) && !budget_passed {
            return self.settle(Verdict::GoOn);
        }
        if let Some(rung) = self.rung(reading, spare) {
            return rung;
        }
        if after <= card.total || self.hold.is_some() {
            return self.settle(Verdict::GoOn);
        }
        self.pause_now(reading, &card)
    }

    /// A step boundary, with a fresh reading. `spare` are loaded parts that the running phase does not use.
    pub fn at_boundary(&mut self, reading: &MemoryReading, spare: &[(Part, Bytes)]) -> Verdict {
        if let Some(budget) = self.limits.budget
            && held(reading) > budget
        {
            // Nobody but us can make room in our own budget, so waiting would never end.
            return self.rung(reading, spare).unwrap_or_else(|| {
                let need = held(reading);
                self.settle(Verdict::Refuse(Refusal { need, have: budget, limit: budget, fits: None }))
            });
        }
        let Some(card) = Card::of(reading) else { return self.settle(Verdict::GoOn) };
        let share = card.share();
        if self.hold.is_some() && share < self.limits.pause_at - HOLD {
            self.hold = None;
        }
        let line = self.hold.unwrap_or(self.limits.pause_at).max(self.limits.pause_at);
        // A share that differs by rounding only counts as reached.
        if share < line - 1e-9 {
            return self.settle(Verdict::GoOn);
        }
        if let Some(rung) = self.rung(reading, spare) {
            return rung;
        }
        self.pause_now(reading, &card)
    }

    /// While a run waits for memory and its weights are off the card. `rest` is the most that what is left of the run
    /// takes at once ([`Forecast::rest`](super::Forecast::rest)). Ask with every reading, four times a second.
    ///
    /// A run that waits without a verdict, since an allocation failed, goes on by the same rule.
    pub fn while_paused(&mut self, reading: &MemoryReading, rest: Bytes) -> Waiting {
        let limit = self.limits.pause_at;
        let Some(card) = Card::of(reading) else {
            // The device no longer tells: nothing to wait for can be seen.
            return self.resume();
        };
        let unasked = Pause { used: card.share(), ours: None, released: Some(Bytes::ZERO), settled: 0 };
        let pause = self.pause.get_or_insert(unasked);
        let released = *pause.released.get_or_insert_with(|| match (pause.ours, reading.ours()) {
            (Some(before), Some(after)) => before - after,
            _ => {
                // What others freed at the same moment is in this figure too, so it is trusted only so far.
                let fallen = card.total.portion(pause.used - card.share());
                fallen.min(rest.portion(2.0))
            }
        });
        let need = rest.max(released);
        let fits = card.used + need + need.portion(ROOM) < card.total.portion(limit);
        pause.settled = if fits { pause.settled + 1 } else { 0 };
        if pause.settled < SETTLED {
            return Waiting::Stay;
        }
        self.resume()
    }

    /// The person says: go on. It holds until use has risen by another 2 % beyond what it was when the run paused, or
    /// beyond what it will be when the weights are back, whichever is more.
    pub fn person_resumes(&mut self, reading: &MemoryReading, rest: Bytes) {
        let paused_at = self.pause.map(|pause| pause.used);
        let back = Card::of(reading).map(|card| (card.used + rest).share_of(card.total));
        let base = paused_at.into_iter().chain(back).fold(self.limits.pause_at, f64::max);
        self.hold = Some(base + HOLD);
        self.resume();
    }

    fn resume(&mut self) -> Waiting {
        self.pause = None;
        (self.emptied, self.dropped) = (false, false);
        Waiting::Resume
    }

    /// The next rung that was not taken yet and can give something.
    fn rung(&mut self, reading: &MemoryReading, spare: &[(Part, Bytes)]) -> Option<Verdict> {
        if !self.emptied {
            self.emptied = true;
            // Where the pools do not tell, emptying them costs less than not knowing.
            if reading.ours_pooled != Some(Bytes::ZERO) {
                return Some(Verdict::EmptyPools);
            }
        }
        if !self.dropped {
            self.dropped = true;
            let parts: Vec<Part> =
                spare.iter().filter(|(_, bytes)| *bytes > Bytes::ZERO).map(|(part, _)| *part).collect();
            if !parts.is_empty() {
                return Some(Verdict::DropParts(parts));
            }
        }
        None
    }

    fn pause_now(&mut self, reading: &MemoryReading, card: &Card) -> Verdict {
        let used = card.share();
        self.pause = Some(Pause { used, ours: reading.ours(), released: None, settled: 0 });
        self.hold = None;
        self.settle(Verdict::PauseLowMemory { used, limit: self.limits.pause_at, others: reading.others })
    }

    /// A verdict that ends the ladder.
    fn settle(&mut self, verdict: Verdict) -> Verdict {
        (self.emptied, self.dropped) = (false, false);
        verdict
    }

    fn over_budget(
        &self,
        reading: &MemoryReading,
        need: &Need,
        fit: &impl Fn(Bytes) -> Option<Size>,
    ) -> Option<Refusal> {
        let budget = self.limits.budget?;
        let have = budget - reading.ours_context.unwrap_or_default();
        (need.most > have).then(|| Refusal { need: need.most, have, limit: budget, fits: fit(have) })
    }
}

/// What of a reading the rule needs.
struct Card {
    total: Bytes,
    used: Bytes,
}

impl Card {
    fn of(reading: &MemoryReading) -> Option<Self> {
        let total = reading.total.filter(|total| *total > Bytes::ZERO)?;
        Some(Card { total, used: reading.used()? })
    }

    fn share(&self) -> f64 {
        self.used.share_of(self.total)
    }
}

/// What the budget is held against: all that is known to be ours.
fn held(reading: &MemoryReading) -> Bytes {
    [reading.ours_in_use, reading.ours_pooled, reading.ours_context].into_iter().flatten().sum()
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
