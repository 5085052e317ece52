//! The states of one job and the moves between them. Pure: no channel, no clock.
//!
//! [`JobState::next`] is the whole table. Cancelling is no state: it is a wish in the job's control until the engine
//! confirms it with [`JobEvent::Cancelled`].

use crate::base::problem::Phase;
use crate::base::{JobError, Problem};
use crate::engine::protocol::PauseReason;

/// Where a job stands.
#[derive(Clone, Debug, PartialEq)]
pub enum JobState {
    /// Handed to the engine, not begun.
    Queued,
    Running {
        phase: Phase,
    },
    /// Waiting; goes on with `interrupted`.
    Paused {
        reason: PauseReason,
        interrupted: Phase,
    },
    Done,
    Failed(Box<JobError>),
    Cancelled,
}

/// What the engine told of a job, as far as its state is concerned.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEvent {
    Started,
    Phase(Phase),
    /// A step is done.
    Progress {
        step: u32,
        of: u32,
    },
    Paused(PauseReason),
    Resumed,
    Picture,
    Done,
    Failed(Box<JobError>),
    Cancelled,
}

/// What an event does to a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    To(JobState),
    /// The job has ended; whatever still comes of it means nothing.
    Late,
    /// The engine told what cannot be here. The job counts as failed with this.
    Illegal(Box<JobError>),
}
