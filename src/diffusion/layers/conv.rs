//! Convolution and nearest-neighbour upsampling.

use crate::kernels;
use burn::backend::DispatchDevice;
use burn::tensor::ops::{ConvOptions, InterpolateMode, InterpolateOptions};
use burn::tensor::{Tensor, module};

/// A two-dimensional convolution.
#[derive(Debug, Clone)]
pub struct Conv2d {
    /// `[out, in, kernel height, kernel width]`; on a GPU the input channel is innermost in memory.
    pub weight: Tensor<4>,
    /// `[out]`.
    pub bias: Option<Tensor<1>>,
    pub stride: usize,
    /// Zeros before and after, for rows and columns.
    pub padding: [(usize, usize); 2],
}

impl Conv2d {
    /// Padding that keeps the size for kernel 3, stride 1.
    pub const SAME: [(usize, usize); 2] = [(1, 1), (1, 1)];
    pub const NONE: [(usize, usize); 2] = [(0, 0), (0, 0)];

    /// `[n, in, h, w]` to `[n, out, h', w']`.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let stride = [self.stride; 2];
        let [(top, bottom), (left, right)] = self.padding;
        if let Some(y) = kernels::cpu::conv2d(&x, &self.weight, self.bias.as_ref(), self.stride, self.padding) {
            return y;
        }
        let options = if top == bottom && left == right {
            ConvOptions::new(stride, [top, left], [1, 1], 1)
        } else {
            ConvOptions::new_with_padding(stride, self.padding, [1, 1], 1)
        };
        let (weight, bias) = (self.weight.clone(), self.bias.clone());
        match x.device().as_dispatch() {
            DispatchDevice::Cube(_) => kernels::conv::conv2d(x, weight, bias, options),
            _ => module::conv2d(x, weight, bias, options),
        }
    }
}

/// Repeats pixels until the picture has `size` = `[height, width]`.
pub fn upsample_nearest(x: Tensor<4>, size: [usize; 2]) -> Tensor<4> {
    module::interpolate(x, InterpolateOptions::new(InterpolateMode::Nearest).with_output_size(size))
}
