//! CLIP's text encoder: token ids in, one vector a token out.
//!
//! Fields carry the names of `transformers`' CLIPTextModel, so that a checkpoint's names find their place by themselves.

use super::config::{Activation, TextEncoderConfig};
use super::layers::{Embedding, LayerNorm, Linear, Loader};
use super::layers::{causal_attention, merge_heads, split_heads};
use super::{DiffusionError, Watch};
use burn::tensor::{Int, Tensor, TensorData};

/// The text encoder, loaded.
#[derive(Debug)]
pub struct TextEncoder {
    token_embedding: Embedding,
    position_embedding: Embedding,
    layers: Vec<EncoderLayer>,
    final_layer_norm: LayerNorm,
}

#[derive(Debug)]
struct EncoderLayer {
    layer_norm1: LayerNorm,
    self_attn: SelfAttention,
    layer_norm2: LayerNorm,
    fc1: Linear,
    fc2: Linear,
    act: Activation,
}

#[derive(Debug)]
struct SelfAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    heads: usize,
}

impl TextEncoder {
    pub fn load(config: &TextEncoderConfig, loader: &Loader) -> Result<Self, DiffusionError> {
        let eps = config.layer_norm_eps;
        let act = config.activation;
        if config.heads == 0 || !config.hidden_size.is_multiple_of(config.heads) {
            let what = format!("width {} with {} heads", config.hidden_size, config.heads);
            return Err(DiffusionError::Unsupported { part: "text encoder", what });
        }
        let model = loader.at("text_model");
        let embeddings = model.at("embeddings");
        let layer = |index| {
            let at = model.at("encoder.layers").at(index);
            let attn = at.at("self_attn");
            Ok(EncoderLayer {
                layer_norm1: at.layer_norm("layer_norm1", eps)?,
                self_attn: SelfAttention {
                    q_proj: attn.linear("q_proj")?,
                    k_proj: attn.linear("k_proj")?,
                    v_proj: attn.linear("v_proj")?,
                    out_proj: attn.linear("out_proj")?,
                    heads: config.heads,
                },
                layer_norm2: at.layer_norm("layer_norm2", eps)?,
                fc1: at.linear("mlp.fc1")?,
                fc2: at.linear("mlp.fc2")?,
                act,
            })
        };
        Ok(TextEncoder {
            token_embedding: embeddings.embedding("token_embedding")?,
            position_embedding: embeddings.embedding("position_embedding")?,
            layers: (0..config.layers).map(layer).collect::<Result<_, DiffusionError>>()?,
            final_layer_norm: model.layer_norm("final_layer_norm", eps)?,
        })
    }

    /// Rows of the token table: ids from here on have no vector.
    pub fn vocabulary(&self) -> usize {
        self.token_embedding.rows()
    }

    /// Token ids of one chunk to `[1, tokens, width]`. `clip_skip` 1 is the last layer, 2 the one before it, and so on; the
    /// final norm follows in every case. Positions are always 0, 1, 2 …, whatever `position_ids` a file may hold.
    ///
    /// # Errors
    /// When an id has no row, the chunk is longer than the position table, or the watch says stop.
    pub fn forward(&self, ids: &[u32], clip_skip: usize, watch: Watch) -> Result<Tensor<3>, DiffusionError> {
        let (rows, positions) = (self.token_embedding.rows(), self.position_embedding.rows());
        if ids.len() > positions || ids.iter().any(|id| *id as usize >= rows) {
            let what = format!("{} tokens below {positions}, ids below {rows}", ids.len());
            return Err(DiffusionError::Unsupported { part: "text encoder", what });
        }
        let device = self.token_embedding.table.device();
        let numbers = |numbers: Vec<i32>| {
            let tokens = numbers.len();
            Tensor::<2, Int>::from_data(TensorData::new(numbers, [1, tokens]), &device)
        };
        let ids = numbers(ids.iter().map(|id| *id as i32).collect());
        let places = numbers((0..ids.dims()[1] as i32).collect());
        // [1, tokens, width]
        let mut x = self.token_embedding.forward(ids) + self.position_embedding.forward(places);
        let used = (self.layers.len() + 1).saturating_sub(clip_skip.max(1)).max(1);
        for layer in self.layers.iter().take(used) {
            watch.check()?;
            x = layer.forward(x);
        }
        Ok(self.final_layer_norm.forward(x))
    }
}

impl EncoderLayer {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = x.clone() + self.self_attn.forward(self.layer_norm1.forward(x));
        let h = self.act.apply(self.fc1.forward(self.layer_norm2.forward(x.clone())));
        x + self.fc2.forward(h)
    }
}

impl SelfAttention {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let heads = |proj: &Linear| split_heads(proj.forward(x.clone()), self.heads);
        let attended = causal_attention(heads(&self.q_proj), heads(&self.k_proj), heads(&self.v_proj));
        self.out_proj.forward(merge_heads(attended))
    }
}
