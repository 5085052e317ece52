//! Attention on the CPU: scores of some queries at a time, small enough for the second-level cache, never the whole matrix.

use super::gemm::{Product, Start, multiply, panel_width};
use super::simd::{Kind, Simd, dispatch};
use super::work::{Shared, in_parts, room, rows_per_part};

/// f32 scores that are held at a time: one megabyte.
const SCORES: usize = 1 << 18;

/// The shape of an attention: q `[batch, queries, d]`, k and v `[batch, keys, d]`, where batch counts pictures and heads.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub batch: usize,
    pub queries: usize,
    pub keys: usize,
    pub d: usize,
}

dispatch! {
    /// Turns a row of scores into e^(scale · (score - largest)), and returns their sum.
    unsafe fn exponentials(scores: &mut [f32], scale: f32) -> f32 = exponentials_on
}

#[inline(always)]
unsafe fn exponentials_on<S: Simd>(scores: &mut [f32], scale: f32) -> f32 {
    let whole = scores.len() / S::LANES * S::LANES;
    let (vectors, rest) = scores.split_at_mut(whole);
    // SAFETY: vectors are read and written within whole chunks of their length; the rest goes through a buffer.
    unsafe {
        let mut most = S::splat(f32::NEG_INFINITY);
        for part in vectors.chunks_exact(S::LANES) {
            most = S::max(most, S::load(part.as_ptr()));
        }
        let largest = rest.iter().copied().fold(S::largest(most), f32::max);
        let (by, offset) = (S::splat(scale), S::splat(-scale * largest));
        let mut sums = S::splat(0.0);
        for part in vectors.chunks_exact_mut(S::LANES) {
            let e = S::exp(S::fma(S::load(part.as_ptr()), by, offset));
            sums = S::add(sums, e);
            S::store(part.as_mut_ptr(), e);
        }
        let mut buffer = [0.0f32; 16];
        buffer[..rest.len()].copy_from_slice(rest);
        let e = S::exp(S::fma(S::load(buffer.as_ptr()), by, offset));
        S::store(buffer.as_mut_ptr(), e);
        rest.copy_from_slice(&buffer[..rest.len()]);
        S::sum(sums) + rest.iter().sum::<f32>()
    }
}

/// softmax(q · kᵀ / √d) · v. Lengths must fit the shape.
pub fn attention(kind: Kind, q: &[f32], k: &[f32], v: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { batch, queries, keys, d } = shape;
    assert_eq!(
        (q.len(), k.len(), v.len()),
        (batch * queries * d, batch * keys * d, batch * keys * d),
        "the shapes of attention"
    );
    let mut y = vec![0.0; q.len()];
    if y.is_empty() || keys == 0 {
        return y;
    }
    let scale = (d as f32).powf(-0.5);
    let width = panel_width(kind);
    let each = rows_per_part(queries, batch);
    let chunks = queries.div_ceil(each);
    let (wide_keys, wide_d) = (keys.next_multiple_of(width), d.next_multiple_of(16));
    let rows_at_once = (SCORES / keys).clamp(6, 96) / 6 * 6;
    let target = Shared(y.as_mut_ptr());
    in_parts(batch * chunks, |buffer, part| {
        let (item, first) = (part / chunks, part % chunks * each);
        let last = (first + each).min(queries);
        let (turned, others) =
            room(buffer, d * wide_keys + keys * wide_d + rows_at_once * keys).split_at_mut(d * wide_keys);
        let (values, scores) = others.split_at_mut(keys * wide_d);
        // kᵀ in panels, and v with room for whole vectors.
        for (key, row) in k[item * keys * d..(item + 1) * keys * d].chunks_exact(d).enumerate() {
            let panel = &mut turned[key / width * width * d..];
            for (i, value) in row.iter().enumerate() {
                panel[i * width + key % width] = *value;
            }
        }
        for (line, row) in values.chunks_exact_mut(wide_d).zip(v[item * keys * d..].chunks_exact(d)) {
            line[..d].copy_from_slice(row);
        }
        for row in (first..last).step_by(rows_at_once) {
            let rows = rows_at_once.min(last - row);
            let a = q[(item * queries + row) * d..].as_ptr();
            for key in (0..keys).step_by(width) {
                let columns = width.min(keys - key);
                let (b, c) = (turned[key * d..].as_ptr(), scores[key..].as_mut_ptr());
                let product = Product {
                    a,
                    a_stride: d,
                    b,
                    b_stride: width,
                    c,
                    c_stride: keys,
                    rows,
                    k: d,
                    columns,
                    start: Start::Zero,
                }; // fmt: skip
                // SAFETY: `rows` lines of q, a panel of kᵀ, and `rows` lines of scores; `kind` is the processor's.
                unsafe { multiply(kind, product) };
            }
            let sums: Vec<f32> = scores[..rows * keys]
                .chunks_exact_mut(keys)
                // SAFETY: `kind` is the processor's.
                .map(|scores| unsafe { exponentials(kind, scores, scale) })
                .collect();
            let place = target.at((item * queries + row) * d);
            for column in (0..d).step_by(width) {
                let columns = width.min(d - column);
                let (b, c) = (values[column..].as_ptr(), place.wrapping_add(column));
                let product = Product {
                    a: scores.as_ptr(),
                    a_stride: keys,
                    b,
                    b_stride: wide_d,
                    c,
                    c_stride: d,
                    rows,
                    k: keys,
                    columns,
                    start: Start::Zero,
                }; // fmt: skip
                // SAFETY: `rows` lines of scores, whole vectors of v, and rows of y that are this part's alone.
                unsafe { multiply(kind, product) };
            }
            // SAFETY: as above.
            let y = unsafe { std::slice::from_raw_parts_mut(place, rows * d) };
            for (y, sum) in y.chunks_exact_mut(d).zip(sums) {
                let by = sum.recip();
                y.iter_mut().for_each(|y| *y *= by);
            }
        }
    });
    y
}

#[cfg(test)]
mod tests {
    use super::super::simd::kinds;
    use super::super::tests::{close, noise};
    use super::*;

    #[test]
    fn attention_of_all_shapes_is_right_on_every_kind() {
        for kind in kinds() {
            for (batch, queries, keys, d, size) in [
                (1, 1, 1, 1, 1.0),
                (2, 9, 77, 40, 1.0),
                (3, 70, 70, 16, 3.0),
                (1, 130, 65, 80, 1.0),
                (2, 7, 154, 160, 1.0),
                (1, 5, 300, 24, 30.0),
                (1, 3, 9000, 8, 1.0),
            ] {
                let shape = Shape { batch, queries, keys, d };
                let q: Vec<f32> = noise(batch * queries * d, 1).iter().map(|x| x * size).collect();
                let (k, v) = (noise(batch * keys * d, 2), noise(batch * keys * d, 3));
                let mut truth = Vec::new();
                for row in 0..batch * queries {
                    let item = row / queries;
                    let score = |key: usize| -> f64 {
                        (0..d)
                            .map(|i| f64::from(q[row * d + i]) * f64::from(k[(item * keys + key) * d + i]))
                            .sum::<f64>()
                            / (d as f64).sqrt()
                    };
                    let scores: Vec<f64> = (0..keys).map(score).collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
                    let sum: f64 = weights.iter().sum();
                    truth.extend((0..d).map(|i| {
                        weights
                            .iter()
                            .enumerate()
                            .map(|(key, w)| w * f64::from(v[(item * keys + key) * d + i]))
                            .sum::<f64>()
                            / sum
                    }));
                }
                close(&attention(kind, &q, &k, &v, shape), &truth, if size > 10.0 { 1e-4 } else { 5e-6 });
            }
        }
    }
}
