//! The transformer of the UNet: pixels look at each other, then at the prompt.

use crate::diffusion::config::UNetConfig;
use crate::diffusion::layers::{GroupNorm, LayerNorm, Linear, Loader};
use crate::diffusion::layers::{merge_heads, split_heads, watched};
use crate::diffusion::{DiffusionError, Watch};
use crate::kernels::cpu;
use burn::tensor::{Tensor, activation};

/// diffusers fixes these two in code, and no configuration carries them.
const GROUP_NORM_EPS: f64 = 1e-6;
const LAYER_NORM_EPS: f64 = 1e-5;

#[derive(Debug)]
pub struct Transformer2D {
    norm: GroupNorm,
    proj_in: Linear,
    transformer_blocks: Vec<TransformerBlock>,
    proj_out: Linear,
}

#[derive(Debug)]
struct TransformerBlock {
    norm1: LayerNorm,
    attn1: Attention,
    norm2: LayerNorm,
    attn2: Attention,
    norm3: LayerNorm,
    /// `ff.net.0.proj`, its two halves.
    ff_value: Linear,
    ff_gate: Linear,
    /// `ff.net.2`.
    ff_out: Linear,
}

#[derive(Debug)]
pub struct Attention {
    to_q: Linear,
    to_k: Linear,
    to_v: Linear,
    to_out: Linear,
    heads: usize,
}

impl Transformer2D {
    /// The transformer of a block at `level` (0 is the widest picture).
    pub fn load(config: &UNetConfig, level: usize, loader: &Loader) -> Result<Self, DiffusionError> {
        let heads = config.heads.get(level).copied().unwrap_or(0);
        let depth = config.transformer_layers.get(level).copied().unwrap_or(1);
        let block = |index| {
            let at = loader.at("transformer_blocks").at(index);
            let [ff_value, ff_gate] = at.linear_parts("ff.net.0.proj")?;
            Ok(TransformerBlock {
                norm1: at.layer_norm("norm1", LAYER_NORM_EPS)?,
                attn1: Attention::load(&at.at("attn1"), heads)?,
                norm2: at.layer_norm("norm2", LAYER_NORM_EPS)?,
                attn2: Attention::load(&at.at("attn2"), heads)?,
                norm3: at.layer_norm("norm3", LAYER_NORM_EPS)?,
                ff_value,
                ff_gate,
                ff_out: at.linear("ff.net.2")?,
            })
        };
        Ok(Transformer2D {
            norm: loader.group_norm("norm", config.norm_num_groups, GROUP_NORM_EPS)?,
            // Stored as a 1×1 convolution or as a linear layer, which are the same thing once pixels are tokens.
            proj_in: loader.linear("proj_in")?,
            transformer_blocks: (0..depth).map(block).collect::<Result<_, DiffusionError>>()?,
            proj_out: loader.linear("proj_out")?,
        })
    }

    /// `[n, c, h, w]` with a context `[n, tokens, width]` to `[n, c, h, w]`.
    pub fn forward(&self, x: Tensor<4>, context: &Tensor<3>, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
        let [n, c, h, w] = x.dims();
        // [n, h·w, c]
        let normed = watched::normalise(&self.norm, None, x.clone(), watch)?;
        let mut tokens = normed.permute([0, 2, 3, 1]).reshape([n, h * w, c]);
        tokens = self.proj_in.forward(tokens);
        for block in &self.transformer_blocks {
            tokens = block.forward(tokens, context, watch)?;
        }
        let tokens = self.proj_out.forward(tokens);
        Ok(x + tokens.reshape([n, h, w, c]).permute([0, 3, 1, 2]))
    }
}

impl TransformerBlock {
    fn forward(&self, x: Tensor<3>, context: &Tensor<3>, watch: Watch) -> Result<Tensor<3>, DiffusionError> {
        watch.check()?;
        let normed = self.norm1.forward(x.clone());
        let x = x + self.attn1.forward(normed.clone(), normed, watch)?;
        watch.check()?;
        let x = x.clone() + self.attn2.forward(self.norm2.forward(x), context.clone(), watch)?;
        watch.check()?;
        let normed = self.norm3.forward(x.clone());
        let gate = self.ff_gate.forward(normed.clone());
        watch.check()?;
        let value = self.ff_value.forward(normed);
        watch.check()?;
        let gated = cpu::gated(&value, &gate).unwrap_or_else(|| value * activation::gelu(gate));
        watch.check()?;
        Ok(x + self.ff_out.forward(gated))
    }
}

impl Attention {
    pub fn load(loader: &Loader, heads: usize) -> Result<Self, DiffusionError> {
        let to_q = loader.linear("to_q")?;
        let width = to_q.width_out();
        if heads == 0 || width % heads != 0 {
            let what = format!("width {width} with {heads} heads");
            return Err(DiffusionError::Unsupported { part: "attention", what });
        }
        Ok(Attention {
            to_q,
            to_k: loader.linear("to_k")?,
            to_v: loader.linear("to_v")?,
            to_out: loader.linear("to_out.0")?,
            heads,
        })
    }

    /// `[n, tokens, c]` looking at `[n, keys, width]` gives `[n, tokens, c]`.
    pub fn forward(&self, x: Tensor<3>, context: Tensor<3>, watch: Watch) -> Result<Tensor<3>, DiffusionError> {
        let q = split_heads(self.to_q.forward(x), self.heads);
        let k = split_heads(self.to_k.forward(context.clone()), self.heads);
        let v = split_heads(self.to_v.forward(context), self.heads);
        let attended = watched::attention(q, k, v, watch)?;
        Ok(self.to_out.forward(merge_heads(attended)))
    }
}
