//! Work in parts on all cores.

use rayon::prelude::*;

/// A pointer that threads may share, since each writes where no other does.
#[derive(Clone, Copy)]
pub struct Shared(pub *mut f32);

// SAFETY: only handed to parts that write apart from each other.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn at(self, offset: usize) -> *mut f32 {
        self.0.wrapping_add(offset)
    }
}

/// Runs `part` for each number below `count`, with a buffer that a thread keeps between its parts.
pub fn in_parts(count: usize, part: impl Fn(&mut Vec<f32>, usize) + Send + Sync) {
    (0..count).into_par_iter().with_max_len(1).for_each_init(Vec::new, part);
}

/// The first `length` values of a buffer; what they hold is left from before.
pub fn room(buffer: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if buffer.len() < length {
        buffer.resize(length, 0.0);
    }
    &mut buffer[..length]
}

/// How many of `rows` a part takes, so that with `others` parts beside it all cores are busy to the end: whole tiles of six.
pub fn rows_per_part(rows: usize, others: usize) -> usize {
    let wanted = (4 * rayon::current_num_threads()).div_ceil(others.max(1));
    rows.div_ceil(wanted).max(48).next_multiple_of(6)
}
