//! Norms and activations on the CPU, each in one walk to sum and one to write.

use super::simd::{Kind, Simd, dispatch};
use super::work::{Shared, in_parts};

/// What follows a norm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    Nothing,
    /// x / (1 + e⁻ˣ).
    Silu,
}

dispatch! {
    /// Sum and sum of squares of the differences from `shift`.
    unsafe fn moments(x: &[f32], shift: f32) -> (f64, f64) = moments_on
}

#[inline(always)]
unsafe fn moments_on<S: Simd>(x: &[f32], shift: f32) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0f64, 0.0f64);
    // SAFETY: vectors are read within whole chunks of their length.
    unsafe {
        let by = S::splat(shift);
        // In blocks, so that long sums do not lose what short ones keep.
        for block in x.chunks(4096) {
            let (mut s, mut q) = ([S::splat(0.0); 4], [S::splat(0.0); 4]);
            let vectors = block.chunks_exact(S::LANES);
            let rest = vectors.remainder();
            for (i, part) in vectors.enumerate() {
                let v = S::sub(S::load(part.as_ptr()), by);
                s[i % 4] = S::add(s[i % 4], v);
                q[i % 4] = S::fma(v, v, q[i % 4]);
            }
            for i in 0..4 {
                sum += f64::from(S::sum(s[i]));
                squares += f64::from(S::sum(q[i]));
            }
            for x in rest {
                let v = f64::from(x - shift);
                sum += v;
                squares += v * v;
            }
        }
    }
    (sum, squares)
}

dispatch! {
    /// x · `scale` + `offset`, then what follows, into `y` of the same length.
    unsafe fn scaled(x: &[f32], y: &mut [f32], scale: f32, offset: f32, then: Then) = scaled_on
}

#[inline(always)]
unsafe fn scaled_on<S: Simd>(x: &[f32], y: &mut [f32], scale: f32, offset: f32, then: Then) {
    let whole = x.len() / S::LANES * S::LANES;
    // SAFETY: vectors are read and written within whole chunks of their length; the rest goes through a buffer.
    unsafe {
        let (a, b) = (S::splat(scale), S::splat(offset));
        for (x, y) in x[..whole].chunks_exact(S::LANES).zip(y.chunks_exact_mut(S::LANES)) {
            S::store(y.as_mut_ptr(), scaled_vector::<S>(S::load(x.as_ptr()), a, b, then));
        }
        let rest = x.len() - whole;
        if rest > 0 {
            let mut buffer = [0.0f32; 16];
            buffer[..rest].copy_from_slice(&x[whole..]);
            let v = scaled_vector::<S>(S::load(buffer.as_ptr()), a, b, then);
            S::store(buffer.as_mut_ptr(), v);
            y[whole..].copy_from_slice(&buffer[..rest]);
        }
    }
}

// Functions, not closures: a closure would be compiled without the caller's instructions.
#[inline(always)]
unsafe fn scaled_vector<S: Simd>(x: S::V, scale: S::V, offset: S::V, then: Then) -> S::V {
    // SAFETY: as the caller's.
    unsafe {
        let v = S::fma(x, scale, offset);
        match then {
            Then::Nothing => v,
            Then::Silu => S::div(v, S::add(S::splat(1.0), S::exp(S::sub(S::splat(0.0), v)))),
        }
    }
}

/// Mean and 1 / √(variance + eps).
fn statistics(kind: Kind, x: &[f32], eps: f64) -> (f64, f64) {
    let shift = x.first().copied().unwrap_or(0.0);
    let n = x.len().max(1) as f64;
    // SAFETY: `kind` is the processor's.
    let (sum, squares) = unsafe { moments(kind, x, shift) };
    let mean = sum / n;
    ((mean + f64::from(shift)), ((squares / n - mean * mean).max(0.0) + eps).sqrt().recip())
}

/// How the values of a group norm lie: `[n, channels, pixels]`, the channels in groups.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub n: usize,
    pub pixels: usize,
    pub groups: usize,
}

/// Group norm of `x`, with `gamma` and `beta` `[channels]`. Lengths must fit.
pub fn group_norm(
    kind: Kind,
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
    layout: Layout,
    eps: f64,
    then: Then,
) -> Vec<f32> {
    let Layout { n, pixels, groups } = layout;
    let channels = gamma.len();
    assert_eq!(
        (x.len(), beta.len(), channels % groups.max(1)),
        (n * channels * pixels, channels, 0),
        "the shapes of a norm"
    );
    let mut y = vec![0.0; x.len()];
    if y.is_empty() {
        return y;
    }
    let size = channels / groups;
    let out = Shared(y.as_mut_ptr());
    in_parts(n * groups, |_, part| {
        let first = part * size * pixels;
        let x = &x[first..first + size * pixels];
        // SAFETY: each part is a group of its own.
        let y = unsafe { std::slice::from_raw_parts_mut(out.at(first), size * pixels) };
        let (mean, scale) = statistics(kind, x, eps);
        for (i, (x, y)) in x.chunks_exact(pixels).zip(y.chunks_exact_mut(pixels)).enumerate() {
            let channel = part % groups * size + i;
            let a = f64::from(gamma[channel]) * scale;
            let b = f64::from(beta[channel]) - mean * a;
            // SAFETY: `kind` is the processor's.
            unsafe { scaled(kind, x, y, a as f32, b as f32, then) };
        }
    });
    y
}

dispatch! {
    /// (x - `mean`) · `scale` · gamma + beta.
    unsafe fn layer(x: &[f32], y: &mut [f32], gamma: &[f32], beta: &[f32], mean: f32, scale: f32) = layer_on
}

#[inline(always)]
unsafe fn layer_on<S: Simd>(x: &[f32], y: &mut [f32], gamma: &[f32], beta: &[f32], mean: f32, scale: f32) {
    let whole = x.len() / S::LANES * S::LANES;
    // SAFETY: all slices have the length of `x`, and vectors stay below `whole`.
    unsafe {
        let (m, s) = (S::splat(mean), S::splat(scale));
        for i in (0..whole).step_by(S::LANES) {
            let v = S::mul(S::sub(S::load(x.as_ptr().add(i)), m), s);
            let v = S::fma(v, S::load(gamma.as_ptr().add(i)), S::load(beta.as_ptr().add(i)));
            S::store(y.as_mut_ptr().add(i), v);
        }
    }
    for i in whole..x.len() {
        y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
    }
}

/// Layer norm of each row of `x` `[rows, gamma.len()]`. Lengths must fit.
pub fn layer_norm(kind: Kind, x: &[f32], gamma: &[f32], beta: &[f32], eps: f64) -> Vec<f32> {
    let width = gamma.len();
    assert_eq!((beta.len(), x.len() % width.max(1)), (width, 0), "the shapes of a norm");
    let mut y = vec![0.0; x.len()];
    by_rows(&mut y, width, |first, y| {
        let x = &x[first * width..];
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            let (mean, scale) = statistics(kind, x, eps);
            // SAFETY: all slices are `width` long; `kind` is the processor's.
            unsafe { layer(kind, x, y, gamma, beta, mean as f32, scale as f32) };
        }
    });
    y
}

/// Runs `part` with its first row and some rows of `y`, on all cores.
fn by_rows(y: &mut [f32], width: usize, part: impl Fn(usize, &mut [f32]) + Send + Sync) {
    let rows = y.len() / width.max(1);
    let each = rows.div_ceil(4 * rayon::current_num_threads()).max(8);
    let out = Shared(y.as_mut_ptr());
    in_parts(rows.div_ceil(each), |_, i| {
        let first = i * each;
        let count = each.min(rows - first);
        // SAFETY: each part has rows of its own.
        part(first, unsafe { std::slice::from_raw_parts_mut(out.at(first * width), count * width) });
    });
}

dispatch! {
    /// a · gelu(b).
    unsafe fn gated_part(a: &[f32], b: &[f32], y: &mut [f32]) = gated_on
}

#[inline(always)]
unsafe fn gated_on<S: Simd>(a: &[f32], b: &[f32], y: &mut [f32]) {
    let whole = y.len() / S::LANES * S::LANES;
    // SAFETY: all slices have the length of `y`; the rest goes through buffers.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            let v = S::mul(S::load(a.as_ptr().add(i)), gelu::<S>(S::load(b.as_ptr().add(i))));
            S::store(y.as_mut_ptr().add(i), v);
        }
        if whole < y.len() {
            let mut buffer = [0.0f32; 16];
            buffer[..y.len() - whole].copy_from_slice(&b[whole..]);
            let v = gelu::<S>(S::load(buffer.as_ptr()));
            S::store(buffer.as_mut_ptr(), v);
            for i in whole..y.len() {
                y[i] = a[i] * buffer[i - whole];
            }
        }
    }
}

/// x · Φ(x), by the error function of Abramowitz and Stegun 7.1.26, whose error is at most 1.5e-7.
#[inline(always)]
unsafe fn gelu<S: Simd>(x: S::V) -> S::V {
    // SAFETY: as the caller's.
    unsafe {
        let zero = S::splat(0.0);
        let size = S::mul(S::max(x, S::sub(zero, x)), S::splat(std::f32::consts::FRAC_1_SQRT_2));
        let t = S::div(S::splat(1.0), S::fma(size, S::splat(0.327_591_1), S::splat(1.0)));
        let mut p = S::splat(1.061_405_4);
        for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            p = S::fma(p, t, S::splat(c));
        }
        let tail = S::mul(S::mul(p, t), S::exp(S::sub(zero, S::mul(size, size))));
        // Φ(x) is 1 - tail / 2 above zero and tail / 2 below: x · Φ(x) = max(x, 0) - |x| · tail / 2.
        let half = S::mul(S::mul(S::max(x, S::sub(zero, x)), tail), S::splat(0.5));
        S::sub(S::max(x, zero), half)
    }
}

/// Values that a part of an elementwise operation takes.
const PART: usize = 1 << 14;

/// `a` times gelu of `b`, of one length: the gate of GEGLU.
pub fn gated(kind: Kind, a: &[f32], b: &[f32]) -> Vec<f32> {
    assert_eq!(a.len(), b.len(), "the shapes of a gated activation");
    let mut y = vec![0.0; a.len()];
    let out = Shared(y.as_mut_ptr());
    in_parts(a.len().div_ceil(PART), |_, part| {
        let (first, last) = (part * PART, (part * PART + PART).min(a.len()));
        // SAFETY: each part has values of its own; `kind` is the processor's.
        unsafe {
            let y = std::slice::from_raw_parts_mut(out.at(first), last - first);
            gated_part(kind, &a[first..last], &b[first..last], y);
        }
    });
    y
}

/// SiLU of every value.
pub fn silu(kind: Kind, x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    let out = Shared(y.as_mut_ptr());
    in_parts(x.len().div_ceil(PART), |_, part| {
        let (first, last) = (part * PART, (part * PART + PART).min(x.len()));
        // SAFETY: as above.
        unsafe {
            let y = std::slice::from_raw_parts_mut(out.at(first), last - first);
            scaled(kind, &x[first..last], y, 1.0, 0.0, Then::Silu);
        }
    });
    y
}

#[cfg(test)]
mod tests {
    use super::super::simd::kinds;
    use super::super::tests::{close, noise};
    use super::*;

    fn silu64(x: f64) -> f64 {
        x / (1.0 + (-x).exp())
    }

    #[test]
    fn group_norms_are_right_also_far_from_zero() {
        for kind in kinds() {
            for (n, channels, pixels, groups, far) in
                [(1, 4, 1, 2, 0.0), (2, 6, 35, 3, 0.0), (3, 32, 64, 32, 5.0), (1, 8, 9001, 2, 300.0)]
            {
                let x: Vec<f32> = noise(n * channels * pixels, 4).iter().map(|x| x + far).collect();
                let (gamma, beta) = (noise(channels, 5), noise(channels, 6));
                let size = channels / groups * pixels;
                for then in [Then::Nothing, Then::Silu] {
                    let mut truth = Vec::new();
                    for (g, x) in x.chunks_exact(size).enumerate() {
                        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / size as f64;
                        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / size as f64;
                        for (i, x) in x.iter().enumerate() {
                            let c = g % groups * (channels / groups) + i / pixels;
                            let v = (f64::from(*x) - mean) / (variance + 1e-5).sqrt() * f64::from(gamma[c])
                                + f64::from(beta[c]);
                            truth.push(if then == Then::Silu { silu64(v) } else { v });
                        }
                    }
                    let tolerance = if far > 100.0 { 3e-4 } else { 2e-5 };
                    close(
                        &group_norm(kind, &x, &gamma, &beta, Layout { n, pixels, groups }, 1e-5, then),
                        &truth,
                        tolerance,
                    );
                }
            }
        }
    }

    #[test]
    fn layer_norms_activations_and_gates_are_right() {
        for kind in kinds() {
            let (rows, width) = (19, 77);
            let (x, gamma, beta) = (noise(rows * width, 7), noise(width, 8), noise(width, 9));
            let truth: Vec<f64> = x
                .chunks_exact(width)
                .flat_map(|x| {
                    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / width as f64;
                    let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / width as f64;
                    let of = move |x: f32| (f64::from(x) - mean) / (variance + 1e-5).sqrt();
                    x.iter()
                        .enumerate()
                        .map(|(i, x)| of(*x) * f64::from(gamma[i]) + f64::from(beta[i]))
                        .collect::<Vec<_>>()
                })
                .collect();
            close(&layer_norm(kind, &x, &gamma, &beta, 1e-5), &truth, 1e-5);
            let wide: Vec<f32> = noise(40_001, 10).iter().map(|x| x * 6.0).collect();
            let truth: Vec<f64> = wide.iter().map(|x| silu64(f64::from(*x))).collect();
            close(&silu(kind, &wide), &truth, 2e-6);
            assert!(silu(kind, &[-1e30, 1e30, -200.0]).iter().all(|y| y.is_finite()));
        }
    }

    #[test]
    fn gelu_is_right() {
        // Φ at these places, from tables.
        let places = [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (-1.0, 0.158_655_254),
            (2.0, 0.977_249_868),
            (-3.0, 0.001_349_898),
            (6.0, 1.0),
        ];
        for kind in kinds() {
            let gates: Vec<f32> = places.iter().map(|(x, _)| *x as f32).collect();
            let truth: Vec<f64> = places.iter().map(|(x, phi)| 2.0 * x * phi).collect();
            close(&gated(kind, &vec![2.0; places.len()], &gates), &truth, 2e-6);
        }
    }
}
