//! The finished pictures of this run of the program, newest first, and which of them is looked at.
//!
//! Pictures stay in memory up to [`Shots::CEILING`]; beyond it the oldest go, but only those that lie on disk.

use crate::base::Bytes;
use crate::engine::protocol::Shot;
use std::collections::VecDeque;

/// Names a finished picture for as long as the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShotId(pub u64);

/// A picture of the strip.
#[derive(Clone, Debug)]
pub struct Finished {
    pub id: ShotId,
    pub shot: Shot,
}

impl Finished {
    /// Whether it exists nowhere but in memory.
    pub fn unsaved(&self) -> bool {
        self.shot.file.is_none()
    }
}

/// The strip of finished pictures.
#[derive(Debug, Default)]
pub struct Shots {
    newest_first: VecDeque<Finished>,
    selected: Option<ShotId>,
    made: u64,
}
