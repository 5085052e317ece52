//! The last prompts that were generated with, and the place in them while a person leafs through.

use serde::{Deserialize, Serialize};

/// A prompt and its negative prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptPair {
    pub prompt: String,
    pub negative: String,
}

/// Up to [`History::LENGTH`] pairs, each once, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    pairs: Vec<PromptPair>,
    /// Where the person is in it, and what stood in the draft before.
    at: Option<usize>,
    before: PromptPair,
}

impl History {
    pub const LENGTH: usize = 100;

    /// From what was kept, oldest first.
    pub(super) fn new(pairs: Vec<PromptPair>) -> Self {
        let mut history = History::default();
        pairs.into_iter().for_each(|pair| history.push(pair));
        history
    }

    /// Oldest first.
    pub fn pairs(&self) -> &[PromptPair] {
        &self.pairs
    }

    pub fn has_previous(&self) -> bool {
        self.at.unwrap_or(self.pairs.len()) > 0
    }

    pub fn has_next(&self) -> bool {
        self.at.is_some()
    }

    /// Remembers a pair as the newest; one that is there already moves to the end.
    pub(super) fn push(&mut self, pair: PromptPair) {
        self.at = None;
        if pair == PromptPair::default() {
            return;
        }
        self.pairs.retain(|old| *old != pair);
        self.pairs.push(pair);
        let surplus = self.pairs.len().saturating_sub(Self::LENGTH);
        self.pairs.drain(..surplus);
    }

    /// The pair before the one shown. `shown` is what stands in the draft; it comes back after the newest pair.
    pub(super) fn previous(&mut self, shown: PromptPair) -> Option<PromptPair> {
        let mut place = match self.at {
            Some(at) => at,
            None => {
                self.before = shown.clone();
                self.pairs.len()
            }
        };
        // What was just generated with stands in the draft already: a press that changes nothing would puzzle.
        if self.at.is_none() && self.pairs.last() == Some(&shown) {
            place -= 1;
        }
        let place = place.checked_sub(1)?;
        let pair = self.pairs.get(place)?.clone();
        self.at = Some(place);
        Some(pair)
    }

    /// The pair after the one shown, and at last what stood in the draft before leafing.
    pub(super) fn next(&mut self) -> Option<PromptPair> {
        let place = self.at? + 1;
        match self.pairs.get(place) {
            Some(pair) if *pair != self.before || place + 1 < self.pairs.len() => {
                self.at = Some(place);
                Some(pair.clone())
            }
            _ => {
                self.at = None;
                Some(std::mem::take(&mut self.before))
            }
        }
    }

    /// An edit ends leafing: the next step back starts from the newest again.
    pub(super) fn edited(&mut self) {
        self.at = None;
    }

    pub(super) fn clear(&mut self) {
        *self = History::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(prompt: &str) -> PromptPair {
        PromptPair { prompt: prompt.into(), negative: String::new() }
    }

    #[test]
    fn leafing_goes_back_and_returns_to_what_was_being_written() {
        let mut history = History::new(["a", "b", "c"].map(pair).to_vec());
        assert!(history.has_previous() && !history.has_next());
        assert_eq!(history.previous(pair("draft")), Some(pair("c")));
        assert_eq!(history.previous(pair("c")), Some(pair("b")));
        assert_eq!(history.previous(pair("b")), Some(pair("a")));
        assert_eq!(history.previous(pair("a")), None);
        assert_eq!(history.next(), Some(pair("b")));
        assert_eq!(history.next(), Some(pair("c")));
        assert_eq!(history.next(), Some(pair("draft")));
        assert_eq!(history.next(), None);
    }

    #[test]
    fn what_was_just_generated_is_skipped() {
        let mut history = History::new(["a", "b"].map(pair).to_vec());
        assert_eq!(history.previous(pair("b")), Some(pair("a")));
        assert_eq!(history.next(), Some(pair("b")));
        assert!(!history.has_next());
        let mut only = History::new(vec![pair("b")]);
        assert_eq!(only.previous(pair("b")), None);
        assert_eq!(History::default().previous(pair("x")), None);
    }

    #[test]
    fn each_pair_is_kept_once_and_a_hundred_at_most() {
        let mut history = History::default();
        for n in 0..150 {
            history.push(pair(&n.to_string()));
        }
        history.push(pair("60"));
        history.push(PromptPair::default());
        assert_eq!(history.pairs().len(), History::LENGTH);
        assert_eq!(history.pairs().last(), Some(&pair("60")));
        assert_eq!(history.pairs().first(), Some(&pair("50")));
        assert_eq!(history.pairs().iter().filter(|p| **p == pair("60")).count(), 1);
    }
}
