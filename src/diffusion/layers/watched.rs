//! Long operations in slices, with the watch asked between them.
//!
//! A GPU queues an operation within moments, and runs it whole. The CPU computes while it is asked, and at full size one
//! convolution of the VAE or one attention of the UNet takes many seconds there; a wish is to be heard within two. Slices
//! are cut by the size of the operation alone, so that a picture does not depend on when or whether somebody asked.

use super::{Conv2d, GroupNorm, attention as attend};
use crate::diffusion::config::Activation;
use crate::diffusion::{DiffusionError, Watch};
use burn::backend::DispatchDevice;
use burn::tensor::{Device, Tensor};

/// What one slice may cost, in nanoseconds on one common core: a sixth of a second, which leaves room for a slower machine
/// with other work to do. The costs below were measured with burn's own CPU operations on two cores at 2.6 GHz; ours take a quarter
/// to a twentieth of it there, which leaves the rest to processors with narrow vectors.
const SLICE: f64 = 1.6e8;

/// Nanoseconds for one multiplication and addition of a convolution.
const PRODUCT: f64 = 0.045;
/// The least number of output channels that a convolution's time goes by: fewer take as long.
const LEAST_OUT: usize = 32;
/// Nanoseconds for one element of a norm and the activation after it.
const NORM: f64 = 35.0;
/// Nanoseconds for one score of attention: of its own, and for each value of a head.
const SCORE: (f64, f64) = (4.0, 0.07);

fn computes_at_once(device: &Device) -> bool {
    !matches!(device.as_dispatch(), DispatchDevice::Cube(_))
}

/// How many of `whole` parts, each at `cost`, go into a slice: at least one.
fn per_slice(whole: usize, cost: f64) -> usize {
    ((SLICE / cost.max(1e-3)) as usize).clamp(1, whole.max(1))
}

/// The slices `start..end` of `whole` parts with so many in each.
fn slices(whole: usize, each: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..whole).step_by(each.max(1)).map(move |start| (start, (start + each).min(whole)))
}

/// [`Conv2d::forward`] in bands of rows.
pub fn convolve(conv: &Conv2d, x: Tensor<4>, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
    watch.check()?;
    let ([n, channels, height, width], [out, _, kernel, kernel_width]) = (x.dims(), conv.weight.dims());
    let rows = (height + conv.padding[0].0 + conv.padding[0].1 + 1).saturating_sub(kernel);
    let row = (n * channels * kernel * kernel_width * width * out.max(LEAST_OUT)) as f64 * PRODUCT;
    let each = per_slice(rows, row);
    if !computes_at_once(&x.device()) || conv.stride != 1 || each >= rows {
        return Ok(conv.forward(x));
    }
    in_bands(conv, x, each, watch)
}

/// A convolution of stride 1, so many rows of its output at a time.
fn in_bands(conv: &Conv2d, x: Tensor<4>, each: usize, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
    let ([_, _, height, _], [_, _, kernel, _]) = (x.dims(), conv.weight.dims());
    let [(top, bottom), sides] = conv.padding;
    let bands = slices((height + top + bottom + 1).saturating_sub(kernel), each).map(|(start, end)| {
        watch.check()?;
        // Rows of the input that these rows of the output see, and how many of them are padding.
        let (above, below) = (top.saturating_sub(start), (end + kernel - 1).saturating_sub(top + height));
        let (first, last) = ((start + above) - top, end + kernel - 1 - top - below);
        let band = Conv2d { padding: [(above, below), sides], ..conv.clone() };
        Ok(band.forward(x.clone().narrow(2, first, last - first)))
    });
    Ok(Tensor::cat(bands.collect::<Result<_, DiffusionError>>()?, 2))
}

/// [`GroupNorm::forward`] and an activation, some groups at a time.
pub fn normalise(
    norm: &GroupNorm,
    act: Option<Activation>,
    x: Tensor<4>,
    watch: Watch,
) -> Result<Tensor<4>, DiffusionError> {
    watch.check()?;
    let [n, channels, height, width] = x.dims();
    let size = channels / norm.groups.max(1);
    let each = per_slice(norm.groups, (n * size * height * width) as f64 * NORM);
    if !computes_at_once(&x.device()) || each == norm.groups {
        return Ok(norm.forward_then(x, act));
    }
    let parts = slices(norm.groups, each).map(|(start, end)| {
        watch.check()?;
        let (first, count) = (start * size, (end - start) * size);
        let part = GroupNorm {
            gamma: norm.gamma.clone().narrow(0, first, count),
            beta: norm.beta.clone().narrow(0, first, count),
            groups: end - start,
            eps: norm.eps,
        };
        Ok(part.forward_then(x.clone().narrow(1, first, count), act))
    });
    Ok(Tensor::cat(parts.collect::<Result<_, DiffusionError>>()?, 1))
}

/// [`attention`](super::attention) for some queries at a time.
pub fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
    watch.check()?;
    let ([n, heads, queries, d], [_, _, keys, _]) = (q.dims(), k.dims());
    let each = per_slice(queries, (n * heads * keys) as f64 * (SCORE.0 + SCORE.1 * d as f64));
    if !computes_at_once(&q.device()) || each == queries {
        return Ok(attend(q, k, v));
    }
    let parts = slices(queries, each).map(|(start, end)| {
        watch.check()?;
        Ok(attend(q.clone().narrow(2, start, end - start), k.clone(), v.clone()))
    });
    Ok(Tensor::cat(parts.collect::<Result<_, DiffusionError>>()?, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Distribution, TensorData};
    use std::cell::Cell;

    fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
        Tensor::random(shape, Distribution::Normal(0.0, 1.0), (&Device::flex(), DType::F32))
    }

    fn values<const D: usize>(x: Tensor<D>) -> TensorData {
        x.into_data()
    }

    fn worst(a: Tensor<4>, b: Tensor<4>) -> f32 {
        assert_eq!(a.dims(), b.dims());
        let [a, b] = [a, b].map(|x| values(x).try_into_vec::<f32>().unwrap());
        a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    /// Runs with a watch that counts how often it was asked.
    fn counted<T>(run: impl FnOnce(Watch) -> Result<T, DiffusionError>) -> (T, usize) {
        let asked = Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            true
        };
        let result = run(Watch::new(&go_on)).unwrap();
        (result, asked.get())
    }

    #[test]
    fn a_convolution_in_bands_is_the_convolution() {
        let conv = |kernel, padding| Conv2d {
            weight: random([5, 6, kernel, kernel]),
            bias: Some(random([5])),
            stride: 1,
            padding,
        };
        let x = random([2, 6, 23, 17]);
        for conv in [conv(3, Conv2d::SAME), conv(1, Conv2d::NONE), conv(3, [(0, 1), (0, 1)]), conv(3, Conv2d::NONE)] {
            for each in [1, 2, 7, 22] {
                let (sliced, asked) = counted(|watch| in_bands(&conv, x.clone(), each, watch));
                assert!(worst(sliced, conv.forward(x.clone())) < 1e-4, "{:?} {each}", conv.padding);
                assert!(asked >= 21 / each, "{asked}");
            }
        }
        // What the VAE does at full size, at an eighth of its channels.
        let conv = Conv2d { weight: random([32, 32, 3, 3]), bias: None, stride: 1, padding: Conv2d::SAME };
        let (_, asked) = counted(|watch| convolve(&conv, random([1, 32, 1024, 512]), watch));
        assert!(asked > 1, "{asked}");
    }

    #[test]
    fn a_norm_in_parts_is_the_norm() {
        let norm = GroupNorm { gamma: random([24]), beta: random([24]), groups: 12, eps: 1e-6 };
        let x = random([1, 24, 600, 800]);
        let (sliced, asked) = counted(|watch| normalise(&norm, Some(Activation::Silu), x.clone(), watch));
        assert!(asked > 2, "{asked}");
        assert!(worst(sliced, Activation::Silu.apply(norm.forward(x))) < 1e-5);
    }

    #[test]
    fn attention_in_slices_is_the_attention() {
        let [q, k, v] = [0, 1, 2].map(|_| random([1, 8, 2300, 16]));
        let (sliced, asked) = counted(|watch| attention(q.clone(), k.clone(), v.clone(), watch));
        assert!(asked > 2, "{asked}");
        assert!(worst(sliced, attend(q, k, v)) < 1e-5);
    }

    #[test]
    fn a_stop_is_heard_between_slices() {
        let asked = Cell::new(0);
        let stop_at_third = || {
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        let x = random([1, 8, 2300, 16]);
        let stopped = attention(x.clone(), x.clone(), x, Watch::new(&stop_at_third));
        assert!(matches!(stopped, Err(DiffusionError::Stopped)));
        assert_eq!(asked.get(), 3);
    }
}
