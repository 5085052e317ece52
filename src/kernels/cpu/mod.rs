//! The operations that take a CPU's time, on all its cores and its widest vectors, for f32 in host memory.
//!
//! burn's CPU backend computes convolutions, products and norms on one core and reaches a third of what the processor can; these
//! take its tensors and give them back. Every kernel works on plain slices and is tested against sums in f64.

mod attention;
mod conv;
mod gemm;
mod linear;
mod norm;
mod simd;
mod tensors;
mod work;

pub use norm::Then;
pub use tensors::{attention, conv2d, gated, group_norm, layer_norm, linear, silu};

#[cfg(test)]
mod tests {
    /// Repeatable values of about unit size.
    pub fn noise(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f32 / (1u64 << 31) as f32 * 2.0 - 1.0
        };
        (0..count).map(|_| (next() + next() + next()) * 1.0).collect()
    }

    pub fn close(found: &[f32], truth: &[f64], tolerance: f64) {
        assert_eq!(found.len(), truth.len());
        for (i, (found, truth)) in found.iter().zip(truth).enumerate() {
            let off = (f64::from(*found) - truth).abs();
            assert!(off <= tolerance * (1.0 + truth.abs()), "{i}: {found} for {truth}");
        }
    }
}
