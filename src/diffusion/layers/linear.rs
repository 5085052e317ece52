//! Linear layers and lookup tables.

use super::product;
use burn::tensor::{Int, Tensor, module};

/// `y = x · weight + bias`.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[in, out]`.
    pub weight: Tensor<2>,
    /// `[out]`.
    pub bias: Option<Tensor<1>>,
}

impl Linear {
    /// `[.., in]` to `[.., out]`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        product::linear(x, self.weight.clone(), self.bias.clone())
    }

    pub fn width_out(&self) -> usize {
        self.weight.dims()[1]
    }
}

/// A table of rows, looked up by number.
#[derive(Debug, Clone)]
pub struct Embedding {
    /// `[rows, width]`.
    pub table: Tensor<2>,
}

impl Embedding {
    /// Row numbers `[batch, tokens]` to `[batch, tokens, width]`. Every number must be below [`rows`](Self::rows).
    pub fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        module::embedding(self.table.clone(), ids)
    }

    pub fn rows(&self) -> usize {
        self.table.dims()[0]
    }
}
