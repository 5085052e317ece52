//! Cuts a prompt's tokens into chunks that the text encoder takes one at a time.
//!
//! A1111's rules: a chunk is full at 75 tokens (two fewer than the encoder has positions), BREAK ends one early, and what
//! follows a late comma moves to the next chunk rather than being torn from its phrase.

use super::{Piece, read};
use crate::diffusion::tokenizer::Tokenizer;

/// How many tokens back the last comma may be for the rest to move on (A1111's default).
const COMMA_REACH: usize = 20;

/// Token ids ready for the text encoder, with the weight of each.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptChunks {
    /// `[chunks][positions]`: start, the tokens, end, padding.
    pub ids: Vec<Vec<u32>>,
    /// `[chunks][positions]`: 1.0 for start, end and padding.
    pub weights: Vec<Vec<f32>>,
    /// How many of each chunk's tokens are the prompt's own.
    pub used: Vec<usize>,
}

/// What the counter beside a prompt shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCount {
    /// Tokens per chunk; all but the last may be padded out.
    pub used: Vec<usize>,
    /// What a chunk holds: 75 in SD1.5.
    pub capacity: usize,
}

impl TokenCount {
    /// Places taken, as A1111 counts: the full chunks and what stands in the last.
    pub fn tokens(&self) -> usize {
        self.used.len().saturating_sub(1) * self.capacity + self.used.last().copied().unwrap_or(0)
    }

    /// Places there are in the chunks in use: the second number of "42/75".
    pub fn room(&self) -> usize {
        self.used.len().max(1) * self.capacity
    }
}

/// How many tokens a chunk of an encoder with so many positions holds, besides start and end.
fn capacity(positions: usize) -> usize {
    positions.saturating_sub(2).max(1)
}

/// Cuts pieces into chunks of `positions` ids each (the text encoder's `max_position_embeddings`). At least one chunk.
pub fn chunk(tokenizer: &Tokenizer, pieces: &[Piece], positions: usize) -> PromptChunks {
    let comma = tokenizer.comma();
    let capacity = capacity(positions);
    let mut done: Vec<Vec<(u32, f32)>> = Vec::new();
    let mut open: Vec<(u32, f32)> = Vec::new();
    // How many tokens the open chunk had before its last comma.
    let mut last_comma: Option<usize> = None;
    for piece in pieces {
        let Piece::Text { text, weight } = piece else {
            done.push(std::mem::take(&mut open));
            last_comma = None;
            continue;
        };
        for id in tokenizer.encode(text) {
            let is_comma = Some(id) == comma;
            if open.len() == capacity {
                let near = last_comma.take().filter(|at| !is_comma && capacity - at <= COMMA_REACH);
                let moved = open.split_off(near.map_or(capacity, |at| at + 1));
                done.push(std::mem::replace(&mut open, moved));
            }
            if is_comma {
                last_comma = Some(open.len());
            }
            open.push((id, *weight));
        }
    }
    if !open.is_empty() || done.is_empty() {
        done.push(open);
    }

    let special = tokenizer.special();
    let framed = |tokens: &[(u32, f32)]| -> (Vec<u32>, Vec<f32>) {
        let ends = std::iter::once((special.end, 1.0)).chain(std::iter::repeat((special.pad, 1.0)));
        let all = std::iter::once((special.start, 1.0)).chain(tokens.iter().copied()).chain(ends);
        all.take(capacity + 2).unzip()
    };
    let used = done.iter().map(Vec::len).collect();
    let (ids, weights) = done.iter().map(|tokens| framed(tokens)).unzip();
    PromptChunks { ids, weights, used }
}

/// The counter of a prompt as typed.
pub fn count(tokenizer: &Tokenizer, prompt: &str, positions: usize) -> TokenCount {
    let used = chunk(tokenizer, &read(prompt).pieces, positions).used;
    TokenCount { used, capacity: capacity(positions) }
}

/// How a prompt and a negative prompt of different length meet in the UNet.
///
/// Attention does not change when all keys and values are repeated equally often, but it does when empty chunks are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// In one pass, the prompt's chunks repeated so often and the negative's so often.
    Together { prompt: usize, negative: usize },
    /// In two passes, each with its own chunks: the common multiple would be too long.
    Apart,
}

/// Decides the pairing. In one pass at most `most` chunks are attended to, or as many as the longer one has anyway.
pub fn pair_chunks(prompt: usize, negative: usize, most: usize) -> Pairing {
    let (mut common, mut remainder) = (prompt, negative);
    while remainder != 0 {
        (common, remainder) = (remainder, common % remainder);
    }
    let repeated = negative.checked_div(common).and_then(|times| prompt.checked_mul(times));
    if !repeated.is_some_and(|chunks| (1..=most.max(prompt.max(negative))).contains(&chunks)) {
        return Pairing::Apart;
    }
    Pairing::Together { prompt: negative / common, negative: prompt / common }
}
