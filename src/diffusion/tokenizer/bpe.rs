//! Byte-pair encoding of one word, in n·log n steps for n bytes.
//!
//! CLIP spells bytes with printable characters and marks a word's last piece with `</w>`. Spellings are turned into numbers
//! once, when a vocabulary is read; encoding then only compares numbers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Marks a piece that ends its word.
pub(super) const WORD_END: &str = "</w>";

/// All bytes in the order in which CLIP numbers them: those with a printable Latin-1 character first.
pub(super) const BYTE_ORDER: [u8; 256] = byte_order();

const fn byte_order() -> [u8; 256] {
    let mut order = [0; 256];
    let mut next = 0;
    let mut pass = 0;
    while pass < 2 {
        let mut byte = 0;
        while byte < 256 {
            if is_printable(byte as u8) == (pass == 0) {
                order[next] = byte as u8;
                next += 1;
            }
            byte += 1;
        }
        pass += 1;
    }
    order
}

const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The character that stands for a byte in `vocab.json`: itself where printable, else counted up from U+0100.
pub(super) fn spelling(byte: u8) -> char {
    if is_printable(byte) {
        return char::from(byte);
    }
    let nth = (0..byte).filter(|&b| !is_printable(b)).count() as u32;
    char::from_u32(0x100 + nth).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A piece of a word, numbered in the order in which pieces were met.
type Piece = u32;

#[derive(Clone, Debug)]
pub(super) struct Bpe {
    /// The piece of each byte within a word, and of each byte that ends one.
    inner: [Piece; 256],
    last: [Piece; 256],
    /// What two neighbours become, and how early (the lower rank goes first).
    merges: HashMap<(Piece, Piece), (u32, Piece)>,
    /// The vocabulary's id of each piece.
    ids: Vec<u32>,
    unknown: u32,
}

impl Bpe {
    /// `merges` come best first. A piece that `vocabulary` lacks becomes `unknown`, but only once merging is over, so that
    /// what it could have been part of is found.
    pub fn new<'a>(
        vocabulary: &HashMap<String, u32>,
        merges: impl Iterator<Item = (&'a str, &'a str)>,
        unknown: u32,
    ) -> Self {
        let mut numbers = HashMap::new();
        let mut ids = Vec::new();
        let mut number = |text: String| -> Piece {
            let id = vocabulary.get(&text).copied().unwrap_or(unknown);
            *numbers.entry(text).or_insert_with(|| {
                ids.push(id);
                (ids.len() - 1) as Piece
            })
        };
        let inner = std::array::from_fn(|byte| number(spelling(byte as u8).to_string()));
        let last = std::array::from_fn(|byte| number(format!("{}{WORD_END}", spelling(byte as u8))));
        let mut table = HashMap::new();
        for (rank, (left, right)) in (0..).zip(merges) {
            let whole = number(format!("{left}{right}"));
            let pair = (number(left.to_owned()), number(right.to_owned()));
            table.entry(pair).or_insert((rank, whole));
        }
        Bpe { inner, last, merges: table, ids, unknown }
    }

    /// Appends the ids of one word.
    pub fn encode_word(&self, word: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        let Some((&end, before)) = word.as_bytes().split_last() else { return };
        scratch.links.clear();
        let pieces = before.iter().map(|&byte| self.inner[usize::from(byte)]).chain([self.last[usize::from(end)]]);
        for (at, piece) in pieces.enumerate() {
            scratch.links.push(Link { piece, previous: at.checked_sub(1), next: Some(at + 1) });
        }
        if let Some(link) = scratch.links.last_mut() {
            link.next = None;
        }
        self.merge(scratch);
        let mut at = Some(0);
        while let Some(link) = at.and_then(|at| scratch.links.get(at)) {
            ids.push(self.ids.get(link.piece as usize).copied().unwrap_or(self.unknown));
            at = link.next;
        }
    }

    /// Merges the best pair everywhere, left to right, until no pair is left that merges.
    fn merge(&self, scratch: &mut Scratch) {
        let Scratch { links, queue, found } = scratch;
        queue.clear();
        found.clear();
        queue.extend((0..links.len()).filter_map(|at| self.candidate(links, at)));
        while let Some(&Reverse(Candidate { rank, .. })) = queue.peek() {
            // One pass over the word takes one rank; pairs that arise in it wait for the next pass.
            while let Some(&Reverse(candidate)) = queue.peek()
                && candidate.rank == rank
            {
                queue.pop();
                let Candidate { at, pair, whole, .. } = candidate;
                let Some(next) = links[at].next else { continue };
                if (links[at].piece, links[next].piece) != pair {
                    continue;
                }
                let after = links[next].next;
                links[at].piece = whole;
                links[at].next = after;
                // The piece that was swallowed must match no candidate that still names its place.
                links[next].piece = Piece::MAX;
                links[next].next = None;
                if let Some(after) = after {
                    links[after].previous = Some(at);
                }
                found.push(at);
                found.extend(links[at].previous);
            }
            queue.extend(found.drain(..).filter_map(|at| self.candidate(links, at)));
        }
    }

    /// The merge of the piece at `at` with its right neighbour, if there is one.
    fn candidate(&self, links: &[Link], at: usize) -> Option<Reverse<Candidate>> {
        let link = links.get(at)?;
        let pair = (link.piece, links.get(link.next?)?.piece);
        let &(rank, whole) = self.merges.get(&pair)?;
        Some(Reverse(Candidate { rank, at, pair, whole }))
    }
}

/// Room that words share, so that encoding a prompt allocates once.
#[derive(Default)]
pub(super) struct Scratch {
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<Candidate>>,
    found: Vec<usize>,
}

/// A piece in its word: a list that is linked by places in `Scratch::links`, all of which stay valid.
struct Link {
    piece: Piece,
    previous: Option<usize>,
    next: Option<usize>,
}

/// A merge that was possible when it was queued. Ordered by rank, then from left to right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    at: usize,
    pair: (Piece, Piece),
    whole: Piece,
}
