//! Scaled dot-product attention over heads.
//!
//! The CPU has a kernel of ours. On a GPU the scores are made for a few queries at a time, so that their matrix never
//! takes more than a fixed amount of memory at any picture size.

use super::product::product;
use crate::kernels::cpu;
use burn::backend::DispatchDevice;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{DType, Tensor, activation, module};

/// The most bytes that one slice of scores may take: large enough that each matrix product fills a big card.
pub const SCORE_BYTES: usize = 256 << 20;

/// `[n, tokens, heads·d]` to `[n, heads, tokens, d]`.
pub fn split_heads(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [n, tokens, width] = x.dims();
    x.reshape([n, tokens, heads, width / heads]).swap_dims(1, 2)
}

/// `[n, heads, tokens, d]` to `[n, tokens, heads·d]`.
pub fn merge_heads(x: Tensor<4>) -> Tensor<3> {
    let [n, heads, tokens, d] = x.dims();
    x.swap_dims(1, 2).reshape([n, tokens, heads * d])
}

/// softmax(q·kᵀ / √d)·v for q `[n, heads, tokens, d]` and k, v `[n, heads, keys, d]`; softmax in f32.
pub fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
    if let Some(y) = cpu::attention(&q, &k, &v) {
        return y;
    }
    if !matches!(q.device().as_dispatch(), DispatchDevice::Cube(_)) {
        return module::attention(q, k, v, None, None, AttentionModuleOptions::default());
    }
    attention_in_slices(q, k, v, SCORE_BYTES)
}

/// [`attention`], with at most `score_bytes` of f32 scores at a time.
pub(super) fn attention_in_slices(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, score_bytes: usize) -> Tensor<4> {
    let dtype = q.dtype();
    let [n, heads, tokens, d] = q.dims();
    let keys = k.dims()[2];
    // Scaling before the product keeps the scores within f16.
    let q = q * (d as f64).powf(-0.5);
    let k = k.swap_dims(2, 3);
    let rows = (score_bytes / (4 * n * heads * keys)).clamp(1, tokens);
    let slices = (0..tokens).step_by(rows).map(|start| {
        let q = if rows == tokens { q.clone() } else { q.clone().narrow(2, start, rows.min(tokens - start)) };
        let scores = product(q, k.clone()).cast(DType::F32);
        product(activation::softmax(scores, 3).cast(dtype), v.clone())
    });
    let mut slices: Vec<_> = slices.collect();
    if slices.len() == 1 { slices.remove(0) } else { Tensor::cat(slices, 2) }
}

/// Attention in which a token sees itself and those before it, as in CLIP's text encoder.
pub fn causal_attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
    let [_, _, tokens, d] = q.dims();
    let dtype = q.dtype();
    let device = q.device();
    let scores = product(q * (d as f64).powf(-0.5), k.swap_dims(2, 3)).cast(DType::F32);
    // -10⁹ instead of -∞: the same softmax in f32, and every backend can write it down.
    let mask: Vec<f32> = (0..tokens * tokens).map(|i| if i % tokens > i / tokens { -1e9 } else { 0.0 }).collect();
    let mask = Tensor::<1>::from_data(burn::tensor::TensorData::new(mask, [tokens * tokens]), (&device, DType::F32));
    let weights = activation::softmax(scores + mask.reshape([1, 1, tokens, tokens]), 3).cast(dtype);
    product(weights, v)
}
