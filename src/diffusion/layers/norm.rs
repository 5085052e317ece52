//! Group and layer norm with f32 statistics.
//!
//! On a GPU the channels of an activation lie innermost, and burn's stock reduction gives each result to one thread. So
//! group norm sums in short steps there, each of which keeps thousands of threads busy.

use crate::diffusion::config::Activation;
use crate::kernels::{self, cpu::Then};
use burn::backend::DispatchDevice;
use burn::tensor::{DType, Tensor, module};

/// Normalises groups of channels over all pixels.
#[derive(Debug, Clone)]
pub struct GroupNorm {
    /// `[channels]`, f32.
    pub gamma: Tensor<1>,
    /// `[channels]`, f32.
    pub beta: Tensor<1>,
    pub groups: usize,
    pub eps: f64,
}

impl GroupNorm {
    /// `[n, channels, h, w]` to the same shape and type.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.forward_then(x, None)
    }

    /// [`forward`](Self::forward) and an activation.
    pub fn forward_then(&self, x: Tensor<4>, act: Option<Activation>) -> Tensor<4> {
        let (then, after) = match act {
            Some(Activation::Silu) => (Then::Silu, None),
            act => (Then::Nothing, act),
        };
        let activate = |x: Tensor<4>, act: Option<Activation>| match act {
            Some(act) => act.apply(x),
            None => x,
        };
        match kernels::cpu::group_norm(&x, &self.gamma, &self.beta, self.groups, self.eps, then) {
            Some(y) => activate(y, after),
            None => activate(self.plain(x), act),
        }
    }

    /// The norm by burn's operations.
    fn plain(&self, x: Tensor<4>) -> Tensor<4> {
        let dtype = x.dtype();
        let [n, c, h, w] = x.dims();
        let channels_last = matches!(x.device().as_dispatch(), DispatchDevice::Cube(_));
        let x = x.cast(DType::F32);
        let y = if channels_last {
            // [n, h·w, c], which is how the activation already lies in memory
            let x = x.permute([0, 2, 3, 1]).reshape([n, h * w, c]);
            let mean = self.over_groups(mean_of_rows(x.clone()));
            let centred = x - mean;
            let variance = self.over_groups(mean_of_rows(centred.clone().square()));
            let scale = (variance + self.eps).sqrt().recip() * self.gamma.clone().reshape([1, 1, c]);
            let y = centred * scale + self.beta.clone().reshape([1, 1, c]);
            y.reshape([n, h, w, c]).permute([0, 3, 1, 2])
        } else {
            // [n, groups, (c / groups)·h·w]
            let x = x.reshape([n, self.groups, c / self.groups * h * w]);
            let (variance, mean) = x.clone().var_mean_bias(2);
            let y = ((x - mean) / (variance + self.eps).sqrt()).reshape([n, c, h, w]);
            y * self.gamma.clone().reshape([1, c, 1, 1]) + self.beta.clone().reshape([1, c, 1, 1])
        };
        y.cast(dtype)
    }

    /// Means of channels `[n, 1, c]` to the means of their groups, repeated for each channel: `[n, 1, c]`.
    fn over_groups(&self, means: Tensor<3>) -> Tensor<3> {
        let [n, _, c] = means.dims();
        let size = c / self.groups;
        means.reshape([n, self.groups, size]).mean_dim(2).expand([n, self.groups, size]).reshape([n, 1, c])
    }
}

/// `[n, rows, c]` to the mean over the rows, `[n, 1, c]`, in steps of short sums.
pub(super) fn mean_of_rows(x: Tensor<3>) -> Tensor<3> {
    /// Rows that one thread sums. 32 keeps the number of threads high and the number of steps at three for 2^15 rows.
    const SHORT: usize = 32;
    let [n, rows, c] = x.dims();
    let mut sum = x;
    let mut left = rows;
    while left > 1 {
        let step = (2..=SHORT).rev().find(|step| left % step == 0).unwrap_or(left);
        left /= step;
        sum = sum.reshape([n, left, step, c]).sum_dim(2).reshape([n, left, c]);
    }
    sum / rows as f64
}

/// Normalises the last dimension.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    /// `[width]`, f32.
    pub gamma: Tensor<1>,
    /// `[width]`, f32.
    pub beta: Tensor<1>,
    pub eps: f64,
}

impl LayerNorm {
    /// `[.., width]` to the same shape and type.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        if let Some(y) = kernels::cpu::layer_norm(&x, &self.gamma, &self.beta, self.eps) {
            return y;
        }
        let dtype = x.dtype();
        module::layer_norm(x.cast(DType::F32), self.gamma.clone(), Some(self.beta.clone()), self.eps).cast(dtype)
    }
}
