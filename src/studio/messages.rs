//! Quiet lines and the one shown trouble, as data. `text/` has the words, `ui/` puts them together.

use crate::base::request::RequestError;
use crate::base::{CleanReport, Hint, JobError, JobId, Notice};
use std::collections::VecDeque;
use std::path::PathBuf;

/// A quiet line.
#[derive(Clone, Debug, PartialEq)]
pub struct NoticeLine {
    /// For [`Action::DismissNotice`](super::Action::DismissNotice).
    pub id: u64,
    pub job: Option<JobId>,
    pub what: Line,
}

/// What a quiet line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Engine(Notice),
    /// A job ended well: how many pictures, in how many seconds.
    Done { images: u32, seconds: f64 },
    Cancelled,
    Cleaned(Box<CleanReport>),
    Saved(PathBuf),
    Copied,
    /// The settings of a picture were taken into the draft.
    SettingsTaken,
    /// A dropped picture holds no settings.
    NoSettings,
    /// Copying or opening failed, technically.
    Failed(String),
}

/// What went wrong, shown until dismissed or solved.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// The draft does not hold.
    Draft(RequestError),
    /// A job, an inspection or a save failed.
    Job { job: Option<JobId>, error: Box<JobError> },
    /// The engine's thread is gone: only a restart of the program helps.
    EngineGone,
}

/// The quiet lines, newest last; at most [`Notices::SHOWN`].
#[derive(Debug, Default)]
pub struct Notices {
    lines: VecDeque<NoticeLine>,
    made: u64,
}

impl Trouble {
    /// What an artist can do about it.
    pub fn hints(&self) -> &[Hint] {
        match self {
            Trouble::Job { error, .. } => &error.hints,
            Trouble::Draft(_) | Trouble::EngineGone => &[],
        }
    }

    /// What was given, technically; may be empty.
    pub fn details(&self) -> &str {
        match self {
            Trouble::Job { error, .. } => &error.details,
            Trouble::Draft(_) | Trouble::EngineGone => "",
        }
    }
}
