//! The jobs handed to the engine that have not ended, in the order they will run, and the last one that did.

use super::job::JobState;
use crate::base::{JobId, ShotRequest};
use crate::engine::protocol::{JobControl, Progress, Setup, Summary};
use std::collections::VecDeque;
use std::sync::Arc;

/// One job as the studio sees it.
#[derive(Clone, Debug)]
pub struct JobEntry {
    pub id: JobId,
    pub request: ShotRequest,
    pub setup: Setup,
    pub state: JobState,
    pub progress: Option<Progress>,
    /// Pictures that came so far.
    pub pictures: u32,
    /// Followed by another with a new seed until stopped.
    pub forever: bool,
    pub summary: Option<Box<Summary>>,
    pub(super) control: Arc<JobControl>,
}

/// Jobs that have not ended, in order, and the last that ended.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: VecDeque<JobEntry>,
    last: Option<JobEntry>,
    made: u64,
}
