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
