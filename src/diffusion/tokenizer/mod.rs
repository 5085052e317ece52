//! CLIP's byte-level BPE tokenizer: text to token ids, as the text encoder of a checkpoint was trained to read them.
//!
//! [`Tokenizer::clip`] is the vocabulary of every SD1.5 single file, bundled with the program; [`Tokenizer::from_folder`]
//! reads the one a diffusers folder brings, of any size. `prompt` cuts prompts into chunks with it. The algorithm is that of
//! Radford et al. 2021 (CLIP, `simple_tokenizer.py`); ids are equal to it, save that special tokens cannot be typed.

mod bpe;
mod clean;
mod files;
mod words;

use crate::diffusion::place::Place;
use bpe::{Bpe, Scratch};
use std::collections::HashMap;

pub use files::TokenizerError;

/// The merges of CLIP ViT-L/14; `assets/clip/README.md` tells where they come from.
const CLIP_MERGES: &str = include_str!("../../../assets/clip/merges.txt");

/// The ids that stand for something else than text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Opens every chunk.
    pub start: u32,
    /// Closes every chunk's text.
    pub end: u32,
    /// Fills a chunk up. The end token in CLIP ViT-L/14.
    pub pad: u32,
    /// Stands for what the vocabulary cannot spell.
    pub unknown: u32,
}

/// A vocabulary with its merges, ready to encode.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    bpe: Bpe,
    special: SpecialTokens,
    /// Tokens added to the vocabulary after training, by their first character, the longest first.
    added: HashMap<char, Vec<(String, u32)>>,
    size: usize,
}

impl Tokenizer {
    /// The tokenizer of CLIP ViT-L/14: 49,408 ids, of which 49,406 starts and 49,407 ends and pads.
    pub fn clip() -> Self {
        let merges: Vec<_> = files::merges(CLIP_MERGES).collect();
        // The published order: the bytes, the bytes that end a word, the merges, the two special tokens.
        let singles = bpe::BYTE_ORDER.iter().map(|&byte| bpe::spelling(byte).to_string());
        let mut vocabulary: Vec<String> = singles.collect();
        vocabulary.extend_from_within(..);
        vocabulary.iter_mut().skip(256).for_each(|spelling| spelling.push_str(bpe::WORD_END));
        vocabulary.extend(merges.iter().map(|(left, right)| format!("{left}{right}")));
        let start = vocabulary.len() as u32;
        let end = start + 1;
        let special = SpecialTokens { start, end, pad: end, unknown: end };
        let vocabulary = vocabulary.into_iter().zip(0..).collect();
        let bpe = Bpe::new(&vocabulary, merges.iter().copied(), special.unknown);
        Tokenizer { bpe, special, added: HashMap::new(), size: end as usize + 1 }
    }

    /// The tokenizer in the `tokenizer` folder of a diffusers checkpoint.
    ///
    /// Reads `vocab.json` with `merges.txt`, or `tokenizer.json` where these are absent; special and added tokens from
    /// `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json` where there are such.
    ///
    /// # Errors
    /// A file that is absent, no JSON or not of the expected form, and a special token that the vocabulary lacks.
    pub fn from_folder(folder: impl Into<Place>) -> Result<Self, TokenizerError> {
        let files::Parts { vocabulary, merges, special, added, size } = files::read(&folder.into())?;
        let pairs = merges.iter().map(|(left, right)| (left.as_str(), right.as_str()));
        let bpe = Bpe::new(&vocabulary, pairs, special.unknown);
        let mut by_first: HashMap<char, Vec<(String, u32)>> = HashMap::new();
        for (text, id) in added {
            if let Some(first) = text.chars().next() {
                by_first.entry(first).or_default().push((text, id));
            }
        }
        by_first.values_mut().for_each(|tokens| tokens.sort_by_key(|(text, _)| std::cmp::Reverse(text.len())));
        Ok(Tokenizer { bpe, special, added: by_first, size })
    }

    /// The ids of `text`, without start and end, in time proportional to its length (times a logarithm within one word).
    ///
    /// Any text has ids. The spelling of a special token, typed, is taken as the characters it consists of: the text encoder
    /// takes its pooled output and its padding from the end token, so a person must not be able to place one.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut scratch = Scratch::default();
        // Text since the last added token, and how far the search for the next one has come.
        let (mut from, mut skip_to) = (0, 0);
        if !self.added.is_empty() {
            for (at, first) in text.char_indices() {
                let here = &text[at..];
                let known = self.added.get(&first).filter(|_| at >= skip_to);
                if let Some((token, id)) = known.and_then(|list| list.iter().find(|(token, _)| here.starts_with(token)))
                {
                    self.encode_plain(&text[from..at], &mut scratch, &mut ids);
                    ids.push(*id);
                    from = at + token.len();
                    skip_to = from;
                }
            }
        }
        self.encode_plain(&text[from..], &mut scratch, &mut ids);
        ids
    }

    fn encode_plain(&self, text: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        let text = clean::clean(text);
        for word in words::words(&text) {
            self.bpe.encode_word(word, scratch, ids);
        }
    }

    pub fn special(&self) -> SpecialTokens {
        self.special
    }

    /// The id of a comma that is a word of its own, if the vocabulary has it. Chunks are cut after such commas.
    pub fn comma(&self) -> Option<u32> {
        match self.encode(",")[..] {
            [id] if id != self.special.unknown => Some(id),
            _ => None,
        }
    }

    /// One more than the highest id: what the text encoder's token embedding must have as rows, at least.
    pub fn vocabulary_size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests;
