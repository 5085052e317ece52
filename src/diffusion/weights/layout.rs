//! Names and shapes of every tensor that each part has, worked out from its config.
//!
//! The names are those of diffusers' classes, the shapes those the layers need (`[out, in]` for projections that some
//! files keep as 1×1 convolutions). A file is held against these lists; random weights are made from them.

use crate::diffusion::config::{TextEncoderConfig, UNetConfig, VaeConfig};

/// A tensor that a part must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    pub name: String,
    pub shape: Vec<usize>,
}

impl TensorSpec {
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |n, d| n * *d as u64)
    }
}

/// Collects specs under dotted names.
#[derive(Default)]
struct Layout(Vec<TensorSpec>);

impl Layout {
    fn add(&mut self, name: String, shape: &[usize]) {
        self.0.push(TensorSpec { name, shape: shape.to_vec() });
    }

    fn norm(&mut self, name: &str, channels: usize) {
        self.add(format!("{name}.weight"), &[channels]);
        self.add(format!("{name}.bias"), &[channels]);
    }

    fn linear(&mut self, name: &str, out: usize, inp: usize) {
        self.add(format!("{name}.weight"), &[out, inp]);
        self.add(format!("{name}.bias"), &[out]);
    }

    /// A square convolution of `kernel` cells.
    fn conv(&mut self, name: &str, out: usize, inp: usize, kernel: usize) {
        self.add(format!("{name}.weight"), &[out, inp, kernel, kernel]);
        self.add(format!("{name}.bias"), &[out]);
    }

    /// `time` is the width of the time embedding, where there is one.
    fn resnet(&mut self, name: &str, inp: usize, out: usize, time: Option<usize>) {
        self.norm(&format!("{name}.norm1"), inp);
        self.conv(&format!("{name}.conv1"), out, inp, 3);
        if let Some(time) = time {
            self.linear(&format!("{name}.time_emb_proj"), out, time);
        }
        self.norm(&format!("{name}.norm2"), out);
        self.conv(&format!("{name}.conv2"), out, out, 3);
        if inp != out {
            self.conv(&format!("{name}.conv_shortcut"), out, inp, 1);
        }
    }

    fn transformer(&mut self, name: &str, channels: usize, layers: usize, cross: usize) {
        self.norm(&format!("{name}.norm"), channels);
        self.linear(&format!("{name}.proj_in"), channels, channels);
        for layer in 0..layers {
            let block = format!("{name}.transformer_blocks.{layer}");
            for (norm, attention, width) in [("norm1", "attn1", channels), ("norm2", "attn2", cross)] {
                self.norm(&format!("{block}.{norm}"), channels);
                self.add(format!("{block}.{attention}.to_q.weight"), &[channels, channels]);
                self.add(format!("{block}.{attention}.to_k.weight"), &[channels, width]);
                self.add(format!("{block}.{attention}.to_v.weight"), &[channels, width]);
                self.linear(&format!("{block}.{attention}.to_out.0"), channels, channels);
            }
            self.norm(&format!("{block}.norm3"), channels);
            // GEGLU: value and gate side by side.
            self.linear(&format!("{block}.ff.net.0.proj"), channels * 8, channels);
            self.linear(&format!("{block}.ff.net.2"), channels, channels * 4);
        }
        self.linear(&format!("{name}.proj_out"), channels, channels);
    }

    /// The middle block of the VAE's encoder or decoder.
    fn vae_middle(&mut self, side: &str, channels: usize, attention: bool) {
        self.resnet(&format!("{side}.mid_block.resnets.0"), channels, channels, None);
        if attention {
            let name = format!("{side}.mid_block.attentions.0");
            self.norm(&format!("{name}.group_norm"), channels);
            for projection in ["to_q", "to_k", "to_v", "to_out.0"] {
                self.linear(&format!("{name}.{projection}"), channels, channels);
            }
        }
        self.resnet(&format!("{side}.mid_block.resnets.1"), channels, channels, None);
    }
}

/// Tensors of the text encoder: 196 for SD1.5.
pub fn text_encoder(config: &TextEncoderConfig) -> Vec<TensorSpec> {
    let mut l = Layout::default();
    let width = config.hidden_size;
    l.add("text_model.embeddings.token_embedding.weight".to_owned(), &[config.vocab_size, width]);
    l.add("text_model.embeddings.position_embedding.weight".to_owned(), &[config.max_positions, width]);
    for layer in 0..config.layers {
        let name = format!("text_model.encoder.layers.{layer}");
        l.norm(&format!("{name}.layer_norm1"), width);
        for projection in ["q_proj", "k_proj", "v_proj", "out_proj"] {
            l.linear(&format!("{name}.self_attn.{projection}"), width, width);
        }
        l.norm(&format!("{name}.layer_norm2"), width);
        l.linear(&format!("{name}.mlp.fc1"), config.intermediate_size, width);
        l.linear(&format!("{name}.mlp.fc2"), width, config.intermediate_size);
    }
    l.norm("text_model.final_layer_norm", width);
    l.0
}

/// Tensors of the UNet: 686 for SD1.5.
pub fn unet(config: &UNetConfig) -> Vec<TensorSpec> {
    let mut l = Layout::default();
    let channels = &config.block_out_channels;
    let (Some(&first), Some(&last)) = (channels.first(), channels.last()) else { return l.0 };
    let (time, cross, depth) = (config.time_embed_dim(), config.cross_attention_dim, config.layers_per_block);
    let levels = channels.len();
    let layers_at = |level: usize| config.transformer_layers.get(level).copied().unwrap_or(1);
    l.conv("conv_in", first, config.in_channels, 3);
    l.linear("time_embedding.linear_1", time, first);
    l.linear("time_embedding.linear_2", time, time);

    let mut inp = first;
    for (level, (&out, &attention)) in channels.iter().zip(&config.down_attention).enumerate() {
        for layer in 0..depth {
            l.resnet(&format!("down_blocks.{level}.resnets.{layer}"), inp, out, Some(time));
            if attention {
                l.transformer(&format!("down_blocks.{level}.attentions.{layer}"), out, layers_at(level), cross);
            }
            inp = out;
        }
        if level + 1 < levels {
            l.conv(&format!("down_blocks.{level}.downsamplers.0.conv"), out, out, 3);
        }
    }

    l.resnet("mid_block.resnets.0", last, last, Some(time));
    l.transformer("mid_block.attentions.0", last, layers_at(levels - 1), cross);
    l.resnet("mid_block.resnets.1", last, last, Some(time));

    let mut inp = last;
    for (block, (&out, &attention)) in channels.iter().rev().zip(&config.up_attention).enumerate() {
        let level = levels - 1 - block;
        // The last skip of a level was made before its down block widened it.
        let below = if level > 0 { channels.get(level - 1).copied().unwrap_or(first) } else { first };
        for layer in 0..=depth {
            let skip = if layer == depth { below } else { out };
            l.resnet(&format!("up_blocks.{block}.resnets.{layer}"), inp + skip, out, Some(time));
            if attention {
                l.transformer(&format!("up_blocks.{block}.attentions.{layer}"), out, layers_at(level), cross);
            }
            inp = out;
        }
        if block + 1 < levels {
            l.conv(&format!("up_blocks.{block}.upsamplers.0.conv"), out, out, 3);
        }
    }
    l.norm("conv_norm_out", first);
    l.conv("conv_out", config.out_channels, first, 3);
    l.0
}

/// Tensors of the VAE's decoder and what goes before it: 140 for SD1.5.
pub fn vae_decoder(config: &VaeConfig) -> Vec<TensorSpec> {
    let mut l = Layout::default();
    let channels = &config.block_out_channels;
    let (Some(&first), Some(&last)) = (channels.first(), channels.last()) else { return l.0 };
    if config.use_post_quant_conv {
        l.conv("post_quant_conv", config.latent_channels, config.latent_channels, 1);
    }
    l.conv("decoder.conv_in", last, config.latent_channels, 3);
    l.vae_middle("decoder", last, config.mid_attention);
    let mut inp = last;
    for (block, &out) in channels.iter().rev().enumerate() {
        for layer in 0..=config.layers_per_block {
            l.resnet(&format!("decoder.up_blocks.{block}.resnets.{layer}"), inp, out, None);
            inp = out;
        }
        if block + 1 < channels.len() {
            l.conv(&format!("decoder.up_blocks.{block}.upsamplers.0.conv"), out, out, 3);
        }
    }
    l.norm("decoder.conv_norm_out", first);
    l.conv("decoder.conv_out", config.out_channels, first, 3);
    l.0
}

/// Tensors of the VAE's encoder and what goes after it: 108 for SD1.5.
pub fn vae_encoder(config: &VaeConfig) -> Vec<TensorSpec> {
    let mut l = Layout::default();
    let channels = &config.block_out_channels;
    let (Some(&first), Some(&last)) = (channels.first(), channels.last()) else { return l.0 };
    l.conv("encoder.conv_in", first, config.in_channels, 3);
    let mut inp = first;
    for (block, &out) in channels.iter().enumerate() {
        for layer in 0..config.layers_per_block {
            l.resnet(&format!("encoder.down_blocks.{block}.resnets.{layer}"), inp, out, None);
            inp = out;
        }
        if block + 1 < channels.len() {
            l.conv(&format!("encoder.down_blocks.{block}.downsamplers.0.conv"), out, out, 3);
        }
    }
    l.vae_middle("encoder", last, config.mid_attention);
    l.norm("encoder.conv_norm_out", last);
    // Mean and log-variance side by side.
    l.conv("encoder.conv_out", config.latent_channels * 2, last, 3);
    if config.use_quant_conv {
        l.conv("quant_conv", config.latent_channels * 2, config.latent_channels * 2, 1);
    }
    l.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(specs: &[TensorSpec]) -> u64 {
        specs.iter().map(TensorSpec::elements).sum()
    }

    /// Counts of tensors and parameters as published for stable-diffusion-v1-5.
    #[test]
    fn sd15_has_its_published_size() {
        let text = text_encoder(&TextEncoderConfig::sd15());
        assert_eq!((text.len(), values(&text)), (196, 123_060_480));
        let unet = unet(&UNetConfig::sd15());
        assert_eq!((unet.len(), values(&unet)), (686, 859_520_964));
        let (decoder, encoder) = (vae_decoder(&VaeConfig::sd15()), vae_encoder(&VaeConfig::sd15()));
        assert_eq!((decoder.len(), encoder.len()), (140, 108));
        assert_eq!(values(&decoder) + values(&encoder), 83_653_863);
    }

    #[test]
    fn names_are_unique_and_skips_have_the_width_of_their_level() {
        let specs = unet(&UNetConfig::sd15());
        let names: std::collections::BTreeSet<_> = specs.iter().map(|s| &s.name).collect();
        assert_eq!(names.len(), specs.len());
        let shape = |name: &str| specs.iter().find(|s| s.name == name).unwrap().shape.clone();
        assert_eq!(shape("up_blocks.1.resnets.2.conv1.weight"), [1280, 1920, 3, 3]);
        assert_eq!(shape("up_blocks.3.resnets.0.conv1.weight"), [320, 960, 3, 3]);
        assert_eq!(shape("up_blocks.3.resnets.2.conv1.weight"), [320, 640, 3, 3]);
        assert_eq!(shape("mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight"), [1280, 768]);
    }
}
