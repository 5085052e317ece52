//! What parity with the reference does not show: the parts that only a GPU walks, held against plain arithmetic.

use super::attention::attention_in_slices;
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
    x.into_data().try_into_vec().unwrap()
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

fn open(is: fn(&crate::base::DeviceChoice) -> bool) -> Device {
    let probe = crate::engine::device::probe();
    let found = probe.devices.iter().find(|candidate| is(&candidate.choice));
    crate::engine::device::open_candidate(found.expect("such a device")).expect("it opens")
}

#[test]
#[ignore = "needs a Vulkan device, a software renderer will do"]
fn vulkan_layers_equal_the_cpu() {
    layers_equal_the_cpu(&open(|choice| matches!(choice, crate::base::DeviceChoice::Vulkan(_))), DType::F32, 1e-4);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn cuda_layers_equal_the_cpu() {
    let gpu = open(|choice| matches!(choice, crate::base::DeviceChoice::Cuda(_)));
    // Products of f32 run on tensor cores in TF32, whose mantissa has ten bits.
    layers_equal_the_cpu(&gpu, DType::F32, 2e-3);
    layers_equal_the_cpu(&gpu, DType::BF16, 2e-2);
    // Half a unit in the last place of f16 is 2.4e-4 of the largest value; sums in f16 would be a hundred times that.
    layers_equal_the_cpu(&gpu, DType::F16, 2.5e-3);
}

/// Each layer on a GPU in `dtype` against the CPU in f32, at shapes that are odd everywhere and at some of SD1.5's.
fn layers_equal_the_cpu(gpu: &Device, dtype: DType, tolerance: f32) {
    let cpu = Device::flex();
    // Both start from values that the type holds exactly.
    let on = |device: &Device, wanted: DType, shape: &[usize]| {
        let n: usize = shape.iter().product();
        Tensor::<1>::from_data(TensorData::new(ramp(n), [n]), (device, DType::F32)).cast(dtype).cast(wanted)
    };
    type Case = (&'static str, fn(&dyn Fn(&[usize]) -> Tensor<1>) -> Tensor<1>);
    fn flat<const D: usize>(x: Tensor<D>) -> Tensor<1> {
        let n: usize = x.dims().iter().product();
        x.reshape([n])
    }
    let cases: Vec<Case> = vec![
        ("linear", |t| {
            let weight = t(&[24 * 36]).reshape([24, 36]).swap_dims(0, 1);
            flat(Linear { weight, bias: Some(t(&[24])) }.forward(t(&[2 * 77 * 36]).reshape([2, 77, 36])))
        }),
        ("linear of one row", |t| {
            let weight = t(&[24 * 36]).reshape([24, 36]).swap_dims(0, 1);
            flat(Linear { weight, bias: Some(t(&[24])) }.forward(t(&[36]).reshape([1, 36])))
        }),
        ("layer norm", |t| {
            let norm = LayerNorm { gamma: t(&[36]).cast(DType::F32), beta: t(&[36]).cast(DType::F32), eps: 1e-5 };
            flat(norm.forward(t(&[2 * 77 * 36]).reshape([2, 77, 36])))
        }),
        ("group norm", |t| {
            let norm =
                GroupNorm { gamma: t(&[12]).cast(DType::F32), beta: t(&[12]).cast(DType::F32), groups: 4, eps: 1e-5 };
            flat(norm.forward(t(&[2 * 12 * 35]).reshape([2, 12, 5, 7])))
        }),
        ("conv 3x3", |t| {
            let weight = t(&[8 * 9 * 12]).reshape([8, 3, 3, 12]).permute([0, 3, 1, 2]);
            let conv = Conv2d { weight, bias: Some(t(&[8])), stride: 1, padding: Conv2d::SAME };
            flat(conv.forward(t(&[2 * 12 * 35]).reshape([2, 12, 5, 7])))
        }),
        ("conv 3x3 stride 2, padded after", |t| {
            let weight = t(&[8 * 9 * 12]).reshape([8, 3, 3, 12]).permute([0, 3, 1, 2]);
            let conv = Conv2d { weight, bias: Some(t(&[8])), stride: 2, padding: [(0, 1), (0, 1)] };
            flat(conv.forward(t(&[2 * 12 * 35]).reshape([2, 12, 5, 7])))
        }),
        ("conv 1x1", |t| {
            let conv = Conv2d {
                weight: t(&[8 * 12]).reshape([8, 12, 1, 1]),
                bias: Some(t(&[8])),
                stride: 1,
                padding: Conv2d::NONE,
            };
            flat(conv.forward(t(&[2 * 12 * 35]).reshape([2, 12, 5, 7])))
        }),
        ("conv 3x3 of 1280 channels", |t| {
            let weight = t(&[64 * 9 * 1280]).reshape([64, 3, 3, 1280]).permute([0, 3, 1, 2]);
            let conv = Conv2d { weight, bias: Some(t(&[64])), stride: 1, padding: Conv2d::SAME };
            flat(conv.forward(t(&[2 * 1280 * 64]).reshape([2, 8, 8, 1280]).permute([0, 3, 1, 2])))
        }),
        ("conv 3x3 from 4 channels", |t| {
            let weight = t(&[320 * 9 * 4]).reshape([320, 3, 3, 4]).permute([0, 3, 1, 2]);
            let conv = Conv2d { weight, bias: Some(t(&[320])), stride: 1, padding: Conv2d::SAME };
            flat(conv.forward(t(&[2 * 4 * 192]).reshape([2, 4, 12, 16])))
        }),
        ("conv 3x3 to 3 channels", |t| {
            let weight = t(&[3 * 9 * 128]).reshape([3, 3, 3, 128]).permute([0, 3, 1, 2]);
            let conv = Conv2d { weight, bias: Some(t(&[3])), stride: 1, padding: Conv2d::SAME };
            flat(conv.forward(t(&[128 * 192]).reshape([1, 12, 16, 128]).permute([0, 3, 1, 2])))
        }),
        ("conv 3x3 stride 2 of 320 channels", |t| {
            let weight = t(&[320 * 9 * 320]).reshape([320, 3, 3, 320]).permute([0, 3, 1, 2]);
            let conv = Conv2d { weight, bias: Some(t(&[320])), stride: 2, padding: Conv2d::SAME };
            flat(conv.forward(t(&[2 * 320 * 192]).reshape([2, 12, 16, 320]).permute([0, 3, 1, 2])))
        }),
        ("linear of 1280 to 320", |t| {
            let weight = t(&[320 * 1280]).reshape([320, 1280]).swap_dims(0, 1);
            flat(Linear { weight, bias: Some(t(&[320])) }.forward(t(&[2 * 96 * 1280]).reshape([2, 96, 1280])))
        }),
        ("upsample", |t| flat(upsample_nearest(t(&[2 * 12 * 35]).reshape([2, 12, 5, 7]), [9, 14]))),
        ("attention", |t| {
            let q = split_heads(t(&[2 * 35 * 24]).reshape([2, 35, 24]), 4);
            let k = split_heads(t(&[2 * 77 * 24]).reshape([2, 77, 24]), 4);
            flat(merge_heads(attention(q, k.clone(), k)))
        }),
        ("attention in slices", |t| {
            let q = split_heads(t(&[2 * 35 * 24]).reshape([2, 35, 24]), 4);
            let k = split_heads(t(&[2 * 77 * 24]).reshape([2, 77, 24]), 4);
            // Eleven queries at a time: three slices and a rest.
            flat(merge_heads(attention_in_slices(q, k.clone(), k, 4 * 2 * 4 * 77 * 11)))
        }),
        ("attention of 6144 tokens", |t| {
            let q = split_heads(t(&[2 * 6144 * 80]).reshape([2, 6144, 80]), 2);
            flat(merge_heads(attention_in_slices(q.clone(), q.clone(), q, 16 << 20)))
        }),
        ("group norm of 320 channels, 96x64", |t| {
            let norm = GroupNorm {
                gamma: t(&[320]).cast(DType::F32),
                beta: t(&[320]).cast(DType::F32),
                groups: 32,
                eps: 1e-5,
            };
            flat(norm.forward(t(&[2 * 320 * 6144]).reshape([2, 320, 96, 64])))
        }),
        ("causal attention", |t| {
            let q = split_heads(t(&[77 * 24]).reshape([1, 77, 24]), 4);
            flat(merge_heads(causal_attention(q.clone(), q.clone(), q)))
        }),
        ("matrix product", |t| {
            flat(product::product(t(&[5 * 36]).reshape([1, 1, 5, 36]), t(&[36 * 24]).reshape([1, 1, 36, 24])))
        }),
        ("softmax", |t| flat(burn::tensor::activation::softmax(t(&[5 * 77]).reshape([5, 77]), 1))),
        ("gelu", |t| burn::tensor::activation::gelu(t(&[77]))),
        ("silu", |t| burn::tensor::activation::silu(t(&[77]))),
        ("mean", |t| flat(t(&[5 * 77]).reshape([5, 77]).mean_dim(1))),
        ("concatenation", |t| {
            let x = t(&[2 * 12 * 35]).reshape([2, 12, 5, 7]);
            flat(Tensor::cat(vec![x.clone(), x], 1))
        }),
    ];
    let mut wrong = Vec::new();
    for (name, case) in cases {
        let got = values(case(&|shape| on(gpu, dtype, shape)).cast(DType::F32));
        let want = values(case(&|shape| on(&cpu, DType::F32, shape)));
        let scale = want.iter().fold(0f32, |most, v| most.max(v.abs()));
        let error = worst(&got, &want) / scale;
        println!("{dtype:?} {name}: {error:.1e}");
        if error.is_nan() || error > tolerance {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
