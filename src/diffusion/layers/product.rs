//! The matrix product, and what stands in for it where a device gets it wrong.
//!
//! Software renderers of Vulkan do not run CubeCL's matrix product: Mesa 22's lavapipe crashes in it, SwiftShader gives wrong
//! numbers. Their convolutions are right, so there a product is a convolution with a kernel of one pixel. It is slow, and
//! exists so that the code for GPUs can be tried without one.

use super::Conv2d;
use crate::kernels;
use burn::backend::DispatchDevice;
use burn::tensor::{Device, Tensor, module};

/// Whether the device is a renderer in software, which is no physical card.
fn is_software(device: &Device) -> bool {
    let gpu = matches!(device.as_dispatch(), DispatchDevice::Cube(_));
    gpu && device.identity().is_some_and(|identity| identity.physical.is_none())
}

/// `[n, heads, rows, k]` times `[n, heads, k, columns]`.
pub fn product(left: Tensor<4>, right: Tensor<4>) -> Tensor<4> {
    if !is_software(&left.device()) {
        return left.matmul(right);
    }
    let ([n, heads, rows, k], columns) = (left.dims(), right.dims()[3]);
    let (left, right) = (left.reshape([n * heads, rows, k]), right.reshape([n * heads, k, columns]));
    let each = (0..n * heads).map(|i| {
        let matrix = |x: &Tensor<3>| x.clone().narrow(0, i, 1).squeeze_dim::<2>(0);
        as_convolution(matrix(&left), matrix(&right), None)
    });
    Tensor::cat(each.collect(), 0).reshape([n, heads, rows, columns])
}

/// `[.., in]` times `[in, out]`, plus `[out]`.
pub fn linear<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    if let Some(y) = kernels::cpu::linear(&x, &weight, bias.as_ref()) {
        return y;
    }
    if !is_software(&x.device()) {
        return module::linear(x, weight, bias);
    }
    let mut shape = x.dims();
    let [d_in, d_out] = weight.dims();
    let rows = shape.iter().product::<usize>() / d_in.max(1);
    let y = as_convolution(x.reshape([rows, d_in]), weight, bias);
    shape[D - 1] = d_out;
    y.reshape(shape)
}

/// `[rows, k]` times `[k, columns]`: each row is a pixel with k channels.
fn as_convolution(left: Tensor<2>, right: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let ([rows, k], columns) = (left.dims(), right.dims()[1]);
    let weight = right.swap_dims(0, 1).reshape([columns, k, 1, 1]);
    let conv = Conv2d { weight, bias, stride: 1, padding: Conv2d::NONE };
    let pixels = left.reshape([1, rows, 1, k]).permute([0, 3, 1, 2]);
    conv.forward(pixels).permute([0, 2, 3, 1]).reshape([rows, columns])
}
