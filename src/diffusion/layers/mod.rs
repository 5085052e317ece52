//! The layers that all three networks are built of, and the loader that fills them from a checkpoint.
//!
//! Activations are `[batch, channels, height, width]` or `[batch, tokens, width]`. Statistics of norms and softmax are
//! taken in f32 whatever the run's type is. Layers hold plain tensors: nothing here is trained.

mod activation;
mod attention;
mod conv;
mod linear;
mod loader;
mod norm;
mod product;
pub mod watched;

pub use attention::{SCORE_BYTES, attention, causal_attention, merge_heads, split_heads};
pub use conv::{Conv2d, upsample_nearest};
pub use linear::{Embedding, Linear};
pub use loader::{Loader, float_type};
pub use norm::{GroupNorm, LayerNorm};

#[cfg(test)]
mod tests;
