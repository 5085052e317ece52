//! Activation functions.

use crate::diffusion::config::Activation;
use crate::kernels::cpu;
use burn::tensor::{Tensor, activation};

impl Activation {
    pub fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Activation::Silu => cpu::silu(&x).unwrap_or_else(|| activation::silu(x)),
            Activation::Gelu => activation::gelu(x),
            Activation::QuickGelu => x.clone() * activation::sigmoid(x * 1.702),
            Activation::Relu => activation::relu(x),
        }
    }
}
