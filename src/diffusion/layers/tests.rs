//! What parity with the reference does not show: the parts that only a GPU walks, held against plain arithmetic.

use super::loader::rows_to_columns;
use super::norm::mean_of_rows;
use super::*;
use burn::tensor::{DType, Device, Tensor, TensorData};

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1013) as f32 / 506.0 - 1.0).collect()
}

fn tensor<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    let n = shape.iter().product();
    Tensor::<1>::from_data(TensorData::new(ramp(n), [n]), (&Device::flex(), DType::F32)).reshape(shape)
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().into_vec().unwrap()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn kernels_are_turned_to_channels_last() {
    // One output, two inputs, three taps, two bytes each.
    let bytes: Vec<u8> = (0..12).collect();
    assert_eq!(rows_to_columns::<2>(&bytes, 1, 2, 3), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]);
}

#[test]
fn short_sums_give_the_mean_for_any_number_of_rows() {
    for rows in [1, 2, 31, 97, 96, 1000, 4096] {
        let x = tensor([2, rows, 3]);
        let plain = values(x.clone().mean_dim(1));
        assert!(worst(&values(mean_of_rows(x)), &plain) < 1e-5, "{rows} rows");
    }
}

#[test]
fn group_norm_gives_each_group_mean_zero_and_variance_one() {
    let device = Device::flex();
    let norm = GroupNorm {
        gamma: Tensor::ones([8], (&device, DType::F32)),
        beta: Tensor::zeros([8], (&device, DType::F32)),
        groups: 4,
        eps: 1e-6,
    };
    let y = values(norm.forward(tensor([1, 8, 5, 3]) * 3.0 + 2.0));
    for group in y.chunks_exact(2 * 15) {
        let mean = group.iter().sum::<f32>() / 30.0;
        let variance = group.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / 30.0;
        assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "{mean} {variance}");
    }
}

#[test]
fn heads_are_split_and_merged_without_loss() {
    let x = tensor([2, 5, 12]);
    assert_eq!(values(merge_heads(split_heads(x.clone(), 3))), values(x));
}

#[test]
fn causal_attention_does_not_look_ahead() {
    let (q, k, v) = (tensor([1, 2, 6, 4]), tensor([1, 2, 6, 4]) * 0.5, tensor([1, 2, 6, 4]));
    let whole = causal_attention(q.clone(), k.clone(), v.clone());
    let first = causal_attention(q.narrow(2, 0, 3), k.narrow(2, 0, 3), v.narrow(2, 0, 3));
    assert!(worst(&values(whole.narrow(2, 0, 3)), &values(first)) < 1e-6);
}
