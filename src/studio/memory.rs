//! What the gauge draws: the newest reading, ten minutes of past readings with their stages, marks, limits, the last
//! clean-up. It stores and never decides.

use crate::base::choice::MemoryLimits;
use crate::base::problem::Phase;
use crate::base::{Bytes, CleanReport, MemoryReading};
use std::collections::VecDeque;

/// What was going on when a reading was taken: the colour of the ribbon under the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    #[default]
    Idle,
    Loading,
    Encoding,
    Denoising,
    Decoding,
    Saving,
    Paused,
}

/// A past reading and its stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Without the technical lines of why something is unknown.
    pub reading: MemoryReading,
    pub stage: Stage,
}

/// Something that happened at a moment, drawn over the graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// In the gauge's seconds, as [`MemoryReading::at`].
    pub at: f64,
    pub kind: MarkKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    PausedByHand,
    PausedForMemory,
    Resumed,
    Cleaned,
}

/// The gauge's state.
#[derive(Debug, Default)]
pub struct Memory {
    latest: Option<MemoryReading>,
    history: VecDeque<Sample>,
    marks: VecDeque<Mark>,
    limits: MemoryLimits,
    cleaning: bool,
    last_report: Option<Box<CleanReport>>,
}

/// Whether the next job fits, as the memory side forecasts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forecast {
    Fits { peak: Bytes, total: Bytes },
    FitsTiled,
    DoesNotFit { largest: Option<crate::base::Size> },
}

impl From<Phase> for Stage {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Loading => Stage::Loading,
            Phase::Encoding => Stage::Encoding,
            Phase::Denoising { .. } => Stage::Denoising,
            Phase::Decoding => Stage::Decoding,
            Phase::Saving => Stage::Saving,
        }
    }
}

impl Memory {
    /// Past readings kept: ten minutes at four a second.
    pub const SAMPLES: usize = 10 * 60 * 4;
    /// The bounds of [`MemoryLimits::pause_at`].
    pub const PAUSE_AT: std::ops::RangeInclusive<f64> = 0.5..=0.98;

    pub(crate) fn new(limits: MemoryLimits) -> Self {
        let mut memory = Memory::default();
        memory.set_limits(limits);
        memory
    }

    pub fn latest(&self) -> Option<&MemoryReading> {
        self.latest.as_ref()
    }

    /// Oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> + ExactSizeIterator {
        self.history.iter()
    }

    /// Oldest first; none is older than the oldest sample.
    pub fn marks(&self) -> impl DoubleEndedIterator<Item = &Mark> {
        self.marks.iter()
    }

    pub fn limits(&self) -> &MemoryLimits {
        &self.limits
    }

    /// Whether a clean-up was asked for and has not reported yet.
    pub fn cleaning(&self) -> bool {
        self.cleaning
    }

    pub fn last_report(&self) -> Option<&CleanReport> {
        self.last_report.as_deref()
    }

    /// Whether the card is at or over the limit; `None` while its use is unknown.
    pub fn over_limit(&self) -> Option<bool> {
        Some(self.latest.as_ref()?.share_used()? >= self.limits.pause_at)
    }

    pub(crate) fn take_reading(&mut self, reading: MemoryReading, stage: Stage) {
        // A gauge that starts anew (another device) begins its time at 0: what came before cannot be drawn with it.
        if self.latest.as_ref().is_some_and(|old| reading.at < old.at) {
            self.history.clear();
            self.marks.clear();
        }
        self.history.push_back(Sample { reading: MemoryReading { unknown_because: vec![], ..reading.clone() }, stage });
        if self.history.len() > Self::SAMPLES {
            self.history.pop_front();
        }
        let oldest = self.history.front().map_or(0.0, |sample| sample.reading.at);
        while self.marks.front().is_some_and(|mark| mark.at < oldest) {
            self.marks.pop_front();
        }
        self.latest = Some(reading);
    }

    /// Marks the moment of the newest reading.
    pub(super) fn mark(&mut self, kind: MarkKind) {
        if let Some(reading) = &self.latest {
            self.marks.push_back(Mark { at: reading.at, kind });
            if self.marks.len() > Self::SAMPLES {
                self.marks.pop_front();
            }
        }
    }

    pub(super) fn set_limits(&mut self, limits: MemoryLimits) {
        let pause_at = if limits.pause_at.is_finite() { limits.pause_at } else { MemoryLimits::default().pause_at };
        self.limits = MemoryLimits {
            pause_at: pause_at.clamp(*Self::PAUSE_AT.start(), *Self::PAUSE_AT.end()),
            clean_every: limits.clean_every.filter(|images| *images > 0),
            ..limits
        };
    }

    pub(super) fn set_cleaning(&mut self, cleaning: bool) {
        self.cleaning = cleaning;
    }

    /// Takes the report of a clean-up, asked for or not.
    pub(super) fn cleaned(&mut self, report: Box<CleanReport>) {
        self.cleaning = false;
        self.last_report = Some(report);
        self.mark(MarkKind::Cleaned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at: f64) -> MemoryReading {
        MemoryReading { at, total: Some(Bytes::gib(8)), free: Some(Bytes::gib(2)), ..MemoryReading::default() }
    }

    #[test]
    fn ten_minutes_are_kept_and_marks_leave_with_their_samples() {
        let mut memory = Memory::default();
        for n in 0..Memory::SAMPLES + 10 {
            memory.take_reading(at(n as f64 * 0.25), Stage::Idle);
            if n == 5 || n == 2000 {
                memory.mark(MarkKind::Cleaned);
            }
        }
        assert_eq!(memory.samples().len(), Memory::SAMPLES);
        assert_eq!(memory.samples().next().map(|s| s.reading.at), Some(2.5));
        assert_eq!(memory.marks().map(|m| m.at).collect::<Vec<_>>(), [500.0]);
    }

    #[test]
    fn a_gauge_that_starts_anew_clears_the_graph() {
        let mut memory = Memory::default();
        memory.take_reading(at(50.0), Stage::Denoising);
        memory.mark(MarkKind::PausedForMemory);
        memory.take_reading(at(0.0), Stage::Idle);
        assert_eq!((memory.samples().len(), memory.marks().count()), (1, 0));
    }

    #[test]
    fn limits_stay_within_bounds_and_unknown_use_is_unknown() {
        let mut memory = Memory::new(MemoryLimits { pause_at: 7.0, budget: None, clean_every: Some(0) });
        assert_eq!(memory.limits(), &MemoryLimits { pause_at: 0.98, budget: None, clean_every: None });
        memory.set_limits(MemoryLimits { pause_at: f64::NAN, ..MemoryLimits::default() });
        assert_eq!(memory.limits().pause_at, 0.9);
        assert_eq!(memory.over_limit(), None);
        memory.take_reading(MemoryReading::default(), Stage::Idle);
        assert_eq!(memory.over_limit(), None);
        memory.take_reading(MemoryReading { free: Some(Bytes::mib(10)), ..at(1.0) }, Stage::Idle);
        assert_eq!(memory.over_limit(), Some(true));
    }
}
