//! Linear layers on the CPU.

use super::gemm::{DEPTH, Product, Start, multiply, panel_width};
use super::simd::Kind;
use super::work::{Shared, in_parts, room, rows_per_part};

/// `x` `[rows, d_in]` times `weight` `[d_in, d_out]`, plus `bias` `[d_out]`. Lengths must fit.
pub fn linear(
    kind: Kind,
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    rows: usize,
    d_in: usize,
    d_out: usize,
) -> Vec<f32> {
    assert_eq!((x.len(), weight.len()), (rows * d_in, d_in * d_out), "the shapes of a linear layer");
    assert!(bias.is_none_or(|bias| bias.len() == d_out), "the shape of a bias");
    let mut y = vec![0.0; rows * d_out];
    if y.is_empty() {
        return y;
    }
    let width = panel_width(kind);
    let panels = d_out.div_ceil(width);
    let each = rows_per_part(rows, panels);
    let chunks = rows.div_ceil(each);
    let out = Shared(y.as_mut_ptr());
    in_parts(panels * chunks, |buffer, part| {
        // Parts of one panel follow each other, so that its weights are still in the cache.
        let (panel, first) = (part / chunks, part % chunks * each);
        let (column, rows) = (panel * width, each.min(rows - first));
        let columns = width.min(d_out - column);
        let mut start = Start::Zero;
        let mut biases = [0.0; 64];
        if let Some(bias) = bias {
            biases[..columns].copy_from_slice(&bias[column..column + columns]);
            start = Start::Columns(biases.as_ptr());
        }
        // A panel for a few rows is read where it lies; packing it would cost as much as the product.
        let packed = rows > 12 || columns < width;
        for k in (0..d_in).step_by(DEPTH) {
            let depth = DEPTH.min(d_in - k);
            let lines = &weight[k * d_out + column..];
            if packed {
                // What an edge panel holds beyond its columns is calculated with and not stored.
                for (line, source) in room(buffer, depth * width).chunks_exact_mut(width).zip(lines.chunks(d_out)) {
                    line[..columns].copy_from_slice(&source[..columns]);
                }
            }
            let (b, b_stride) = if packed { (buffer.as_ptr(), width) } else { (lines.as_ptr(), d_out) };
            let a = x[first * d_in + k..].as_ptr();
            let c = out.at(first * d_out + column);
            let product =
                Product { a, a_stride: d_in, b, b_stride, c, c_stride: d_out, rows, k: depth, columns, start };
            // SAFETY: all lines lie within `x`, `weight` or the buffer, and `y`, as the lengths checked above say; parts write
            // different rows or columns; `kind` is the processor's.
            unsafe { multiply(kind, product) };
            start = Start::Sum;
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
    fn products_of_all_shapes_are_right_on_every_kind() {
        for kind in kinds() {
            for (rows, d_in, d_out) in [
                (1, 1, 1),
                (2, 77, 64),
                (7, 320, 130),
                (13, 5, 63),
                (100, 33, 65),
                (6, 4100, 17),
                (300, 64, 96),
                (12, 40, 128),
            ] {
                let (x, w, b) = (noise(rows * d_in, 1), noise(d_in * d_out, 2), noise(d_out, 3));
                for bias in [None, Some(&b[..])] {
                    let y = linear(kind, &x, &w, bias, rows, d_in, d_out);
                    let truth: Vec<f64> = (0..rows * d_out)
                        .map(|i| {
                            let (r, c) = (i / d_out, i % d_out);
                            let sum: f64 =
                                (0..d_in).map(|k| f64::from(x[r * d_in + k]) * f64::from(w[k * d_out + c])).sum();
                            sum + bias.map_or(0.0, |b| f64::from(b[c]))
                        })
                        .collect();
                    close(&y, &truth, 2e-6 * (d_in as f64).sqrt().max(1.0));
                }
            }
        }
    }

    #[test]
    fn no_rows_and_no_depth_are_no_fault() {
        for kind in kinds() {
            assert!(linear(kind, &[], &[1.0; 6], None, 0, 2, 3).is_empty());
            assert_eq!(linear(kind, &[], &[], Some(&[1.0, 2.0]), 2, 0, 2), [0.0, 0.0, 0.0, 0.0]);
        }
    }
}
