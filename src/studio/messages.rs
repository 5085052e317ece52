//! Quiet lines and the one shown trouble, as data. `text/` has the words, `ui/` puts them together.

use crate::base::request::RequestError;
use crate::base::{CleanReport, Hint, JobError, JobId, Notice, Reason};
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
    Done {
        images: u32,
        seconds: f64,
    },
    Cancelled,
    /// The queue holds as many jobs as it may.
    QueueFull {
        count: usize,
    },
    Cleaned(Box<CleanReport>),
    VaeChosen(PathBuf),
    Saved(PathBuf),
    Copied,
    /// The settings of a picture were taken into the draft.
    SettingsTaken,
    /// A dropped picture holds no settings.
    NoSettings,
    /// The system opened no file dialog.
    NoDialog,
    /// Copying or opening failed.
    Failed(Reason),
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

impl Notices {
    /// Lines kept; the oldest make room.
    pub const SHOWN: usize = 5;

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &NoticeLine> + ExactSizeIterator {
        self.lines.iter()
    }

    pub fn newest(&self) -> Option<&NoticeLine> {
        self.lines.back()
    }

    /// Adds a line. One that says the same moves to the end instead of standing twice; of jobs that are done, the last counts.
    pub(super) fn push(&mut self, job: Option<JobId>, what: Line) {
        let done = matches!(what, Line::Done { .. });
        self.lines.retain(|line| line.what != what && !(done && matches!(line.what, Line::Done { .. })));
        self.made += 1;
        self.lines.push_back(NoticeLine { id: self.made, job, what });
        while self.lines.len() > Self::SHOWN {
            self.lines.pop_front();
        }
    }

    pub(super) fn dismiss(&mut self, id: u64) {
        self.lines.retain(|line| line.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_make_room_and_the_same_stands_once() {
        let mut notices = Notices::default();
        for images in 0..9 {
            notices.push(None, Line::QueueFull { count: images });
        }
        notices.push(None, Line::QueueFull { count: 6 });
        let shown: Vec<_> = notices.iter().map(|line| line.what.clone()).collect();
        assert_eq!(shown.len(), Notices::SHOWN);
        assert_eq!(shown.last(), Some(&Line::QueueFull { count: 6 }));
        let id = notices.newest().map(|line| line.id).unwrap_or_default();
        notices.dismiss(id);
        notices.dismiss(id);
        assert_eq!(notices.iter().len(), Notices::SHOWN - 1);
        notices.push(None, Line::Done { images: 1, seconds: 2.0 });
        notices.push(None, Line::Done { images: 1, seconds: 1.0 });
        let done = notices.iter().filter(|line| matches!(line.what, Line::Done { .. }));
        assert_eq!(done.count(), 1);
    }
}
