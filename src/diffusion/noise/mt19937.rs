//! mt19937 (Matsumoto and Nishimura 1998) and the two ways torch's CPU `randn` makes normal numbers of it, which is the
//! noise of diffusers and ComfyUI.
//!
//! From 16 numbers on torch fills the tensor with f32 uniforms and pairs each with the one 8 places on; below that it
//! draws f64 pairs and keeps the second of a pair for the next call.

use std::f64::consts::TAU;

const N: usize = 624;
const M: usize = 397;
/// Numbers that torch transforms at a time, the first half of them paired with the second.
const BLOCK: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Mt19937 {
    state: [u32; N],
    next: usize,
    /// The second half of the last f64 pair.
    spare: Option<f64>,
}

impl Mt19937 {
    /// Takes the low 32 bits of the seed, as torch does.
    pub(super) fn new(seed: u64) -> Self {
        let mut state = [0u32; N];
        let mut word = seed as u32;
        for (i, entry) in state.iter_mut().enumerate() {
            if i > 0 {
                word = 1_812_433_253u32.wrapping_mul(word ^ (word >> 30)).wrapping_add(i as u32);
            }
            *entry = word;
        }
        Mt19937 { state, next: N, spare: None }
    }

    pub(super) fn fill(&mut self, out: &mut [f32]) {
        if out.len() < BLOCK {
            for value in out {
                *value = self.normal() as f32;
            }
            return;
        }
        self.fill_uniform(out);
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        blocks.iter_mut().for_each(box_muller);
        // A tail that fills no block: the last 16 places are drawn anew.
        if !rest.is_empty()
            && let Some(tail) = out.last_chunk_mut::<BLOCK>()
        {
            self.fill_uniform(tail);
            box_muller(tail);
        }
    }

    /// f32 uniforms in [0, 1) of 24 bits.
    fn fill_uniform(&mut self, out: &mut [f32]) {
        for value in out {
            *value = (self.word() & 0x00ff_ffff) as f32 / (1 << 24) as f32;
        }
    }

    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let angle = TAU * self.uniform_f64();
        let radius = (-2.0 * (-self.uniform_f64()).ln_1p()).sqrt();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// An f64 uniform in [0, 1) of 53 bits, the first word drawn being the high one.
    fn uniform_f64(&mut self) -> f64 {
        let (high, low) = (u64::from(self.word()), u64::from(self.word()));
        ((high << 32 | low) & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
    }

    fn word(&mut self) -> u32 {
        if self.next >= N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }
}

/// Box-Muller over a block of uniforms: the first half gives radii and receives cosines, the second angles and sines.
fn box_muller(block: &mut [f32; BLOCK]) {
    let (radii, angles) = block.split_at_mut(BLOCK / 2);
    for (a, b) in radii.iter_mut().zip(angles) {
        let radius = (-2.0 * (1.0 - f64::from(*a)).ln()).sqrt();
        let (sin, cos) = (TAU * f64::from(*b)).sin_cos();
        (*a, *b) = ((radius * cos) as f32, (radius * sin) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 10000th word of seed 5489, as the C++ standard requires of `std::mt19937`.
    #[test]
    fn the_standards_ten_thousandth_word() {
        let mut generator = Mt19937::new(5489);
        let last = (0..10_000).map(|_| generator.word()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn only_the_low_half_of_the_seed_counts() {
        let (mut a, mut b) = ([0.0; 20], [0.0; 20]);
        Mt19937::new(7).fill(&mut a);
        Mt19937::new(7 | 1 << 32).fill(&mut b);
        assert_eq!(a, b);
    }
}
