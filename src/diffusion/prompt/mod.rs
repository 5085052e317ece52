//! Prompts in A1111's syntax: text to weighted pieces, pieces to chunks of token ids, and what a person should know of them.
//!
//! The pipeline calls [`read`], then [`chunk`], encodes each chunk by itself and calls [`apply_weights`] on what comes out.
//! The window's counter calls [`count`]. No prompt fails: what is not syntax is text.

mod chunks;
mod notices;
mod parse;
mod weights;

pub use chunks::{Pairing, PromptChunks, TokenCount, chunk, count, pair_chunks};
pub use parse::{Piece, parse};
pub use weights::apply_weights;

use crate::base::Notice;

/// A prompt taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPrompt {
    pub pieces: Vec<Piece>,
    /// Syntax that has no effect here, and a language that the encoder does not know.
    pub notices: Vec<Notice>,
}

/// Takes a prompt apart.
///
/// `<lora:…>` and its like are left out, since as text they would only disturb; everything else that is not honoured stays in
/// the prompt as the text it is. Either way there is a notice.
pub fn read(prompt: &str) -> ReadPrompt {
    let (text, networks) = notices::without_extra_networks(prompt);
    ReadPrompt { pieces: parse(&text), notices: notices::notices(&text, networks) }
}

#[cfg(test)]
mod tests;
