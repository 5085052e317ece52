//! The finished pictures of this run of the program, newest first, and which of them is looked at.
//!
//! Pictures stay in memory up to [`Shots::CEILING`]; beyond it the oldest go, but only those that lie on disk.

use crate::base::Bytes;
use crate::engine::protocol::Shot;
use std::collections::VecDeque;
use std::path::PathBuf;

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

impl Shots {
    /// Pixels kept in memory beyond those of unsaved pictures.
    pub const CEILING: Bytes = Bytes::mib(512);

    /// Newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Finished> + ExactSizeIterator {
        self.newest_first.iter()
    }

    pub fn len(&self) -> usize {
        self.newest_first.len()
    }

    pub fn is_empty(&self) -> bool {
        self.newest_first.is_empty()
    }

    pub fn get(&self, id: ShotId) -> Option<&Finished> {
        self.newest_first.iter().find(|finished| finished.id == id)
    }

    pub fn newest(&self) -> Option<&Finished> {
        self.newest_first.front()
    }

    /// The picture that was picked to look at; `None` while following what runs.
    pub fn selected(&self) -> Option<&Finished> {
        self.get(self.selected?)
    }

    /// Pictures that exist nowhere but in memory.
    pub fn unsaved(&self) -> impl Iterator<Item = &Finished> {
        self.newest_first.iter().filter(|finished| finished.unsaved())
    }

    pub(super) fn add(&mut self, shot: Shot) -> ShotId {
        self.made += 1;
        let id = ShotId(self.made);
        self.newest_first.push_front(Finished { id, shot });
        self.make_room();
        id
    }

    pub(super) fn select(&mut self, id: Option<ShotId>) {
        self.selected = id.filter(|id| self.get(*id).is_some());
    }

    /// Moves the selection by `by` places towards older ones; from nowhere it starts at the newest.
    pub(super) fn step(&mut self, by: isize) {
        let at = self.selected.and_then(|id| self.newest_first.iter().position(|finished| finished.id == id));
        let last = self.newest_first.len().saturating_sub(1);
        let to = at.unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = self.newest_first.get(to).map(|finished| finished.id);
    }

    /// Where the picture lies now.
    pub(super) fn saved(&mut self, id: ShotId, file: PathBuf) {
        if let Some(finished) = self.newest_first.iter_mut().find(|finished| finished.id == id) {
            finished.shot.file = Some(file);
            finished.shot.save_error = None;
        }
    }

    pub(super) fn remove(&mut self, id: ShotId) {
        self.newest_first.retain(|finished| finished.id != id);
        self.selected = self.selected.filter(|selected| *selected != id);
    }

    /// Drops the oldest pictures that lie on disk until the rest fits. The newest and the selected stay.
    fn make_room(&mut self) {
        let size = |finished: &Finished| Bytes(finished.shot.image.pixels().len() as u64);
        let mut held: Bytes = self.newest_first.iter().map(size).sum();
        let mut place = self.newest_first.len();
        while held > Self::CEILING && place > 1 {
            place -= 1;
            let goes = self.newest_first.get(place).filter(|old| !old.unsaved() && Some(old.id) != self.selected);
            if let Some(size) = goes.map(size) {
                held = held - size;
                self.newest_first.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{JobId, RgbImage, ShotRequest};
    use std::sync::Arc;

    fn shot(side: usize, saved: bool) -> Shot {
        let image = RgbImage::new(side, side, vec![0; side * side * 3]).map(Arc::new);
        Shot {
            job: JobId(1),
            index: 0,
            request: ShotRequest::default(),
            image: image.unwrap_or_else(|| panic!("no picture of side {side}")),
            file: saved.then(|| PathBuf::from("x.png")),
            save_error: None,
            parameters: String::new(),
            model: String::new(),
            seconds: 1.0,
            stopped_at: None,
        }
    }

    #[test]
    fn old_saved_pictures_make_room_and_unsaved_ones_stay() {
        let mut shots = Shots::default();
        let unsaved = shots.add(shot(4096, false));
        let selected = shots.add(shot(4096, true));
        shots.select(Some(selected));
        let old = shots.add(shot(4096, true));
        // Each takes 48 MiB, so eleven do not fit below 512 MiB.
        let newest = (0..8).map(|_| shots.add(shot(4096, true))).last();
        assert!(shots.get(old).is_none());
        assert!(shots.get(unsaved).is_some() && shots.get(selected).is_some());
        assert_eq!((shots.len(), shots.newest().map(|s| s.id)), (10, newest));
        assert_eq!(shots.unsaved().map(|s| s.id).collect::<Vec<_>>(), [unsaved]);
        shots.saved(unsaved, "y.png".into());
        assert_eq!(shots.unsaved().count(), 0);
    }

    #[test]
    fn the_selection_moves_within_the_strip_and_leaves_with_its_picture() {
        let mut shots = Shots::default();
        shots.step(1);
        assert!(shots.selected().is_none());
        let ids: Vec<_> = (0..3).map(|_| shots.add(shot(1, true))).collect();
        shots.step(1);
        assert_eq!(shots.selected().map(|s| s.id), Some(ids[1]));
        shots.step(9);
        assert_eq!(shots.selected().map(|s| s.id), Some(ids[0]));
        shots.step(-9);
        assert_eq!(shots.selected().map(|s| s.id), Some(ids[2]));
        shots.remove(ids[2]);
        assert!(shots.selected().is_none());
        shots.select(Some(ids[2]));
        assert!(shots.selected().is_none());
    }
}
