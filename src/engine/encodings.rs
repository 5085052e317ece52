//! Encoded prompts, kept for as long as nothing that changes them changes.

use crate::diffusion::pipeline::Conditioning;
use crate::diffusion::prompt::PromptChunks;

/// The most encodings kept: a few prompts and their negatives, a quarter megabyte for each chunk.
const MOST: usize = 16;

/// A cache over token ids, weights and clip skip. Model and precision changes clear it.
#[derive(Debug, Default)]
pub struct Encodings(Vec<(PromptChunks, u32, Conditioning)>);

impl Encodings {
    pub fn get(&self, chunks: &PromptChunks, clip_skip: u32) -> Option<Conditioning> {
        self.0.iter().find(|(c, skip, _)| c == chunks && *skip == clip_skip).map(|(_, _, known)| known.clone())
    }

    /// Keeps one more, in place of the oldest where there are too many.
    pub fn put(&mut self, chunks: PromptChunks, clip_skip: u32, encoded: Conditioning) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((chunks, clip_skip, encoded));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
