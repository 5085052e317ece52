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
