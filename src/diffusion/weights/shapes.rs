//! Configs of single files, read off the names and shapes of their tensors.
//!
//! What shapes do not show is what SD1.5 has: 8 attention heads and 32 groups in the UNet, 32 groups in the VAE, heads of
//! width 64 and quick-GELU in the text encoder (the released `v1-inference.yaml` and CLIP ViT-L/14).

use super::assemble::TensorFiles;
use super::error::WeightError;
use super::keys::{
    Naming, TEXT_PREFIXES, TextNaming, UNET_DIFFUSERS_PREFIXES, UNET_PREFIXES, UNetNaming, VAE_PREFIXES, VaeNaming,
    ema_name,
};
use crate::diffusion::config::{TextEncoderConfig, UNetConfig, VaeConfig};

/// Width of a text-encoder head.
const TEXT_HEAD: usize = 64;
/// More blocks than any model has; bounds the search for the last one.
const MOST_BLOCKS: usize = 128;

/// How many of `name(0), name(1), …` there are without a gap.
fn count(files: &TensorFiles, name: impl Fn(usize) -> String) -> usize {
    (0..MOST_BLOCKS).take_while(|i| files.has(&name(*i))).count()
}

fn dim(files: &TensorFiles, naming: &dyn Naming, name: &str, axis: usize) -> Result<usize, WeightError> {
    let found = files.find(naming, name).and_then(|info| info.shape.get(axis)).copied().filter(|n| *n > 0);
    found.ok_or_else(|| WeightError::NoTensor {
        file: files.path().to_owned(),
        tensor: naming.candidates(name).into_iter().next().unwrap_or_else(|| name.to_owned()),
    })
}

/// How the UNet in these files is named, if there is one.
pub fn unet_naming(files: &TensorFiles) -> Option<UNetNaming> {
    for prefix in UNET_PREFIXES {
        if files.has(&format!("{prefix}input_blocks.0.0.weight")) {
            let layers_per_block = original_depth(files, |name| format!("{prefix}{name}"));
            return Some(UNetNaming::Original { prefix, layers_per_block });
        }
    }
    if files.has(&ema_name("input_blocks.0.0.weight")) {
        return Some(UNetNaming::OriginalEma { layers_per_block: original_depth(files, ema_name) });
    }
    let prefix = UNET_DIFFUSERS_PREFIXES.into_iter().find(|p| {
        files.has(&format!("{p}conv_in.weight")) && files.has(&format!("{p}time_embedding.linear_1.weight"))
    })?;
    Some(UNetNaming::Diffusers { prefix })
}

/// Layers in a block: the first downsampler follows those of the first level.
fn original_depth(files: &TensorFiles, name: impl Fn(&str) -> String) -> usize {
    let down = (1..MOST_BLOCKS).find(|n| files.has(&name(&format!("input_blocks.{n}.0.op.weight"))));
    let blocks = count(files, |n| name(&format!("input_blocks.{}.0.in_layers.0.weight", n + 1)));
    down.map_or(blocks, |n| n - 1).max(1)
}

/// Whether an averaged copy of an originally named UNet lies beside it, and how it is named.
pub fn unet_ema_naming(files: &TensorFiles, naming: &UNetNaming) -> Option<UNetNaming> {
    let UNetNaming::Original { layers_per_block, .. } = naming else { return None };
    let ema = UNetNaming::OriginalEma { layers_per_block: *layers_per_block };
    files.find(&ema, "conv_in.weight").map(|_| ema)
}

/// Sizes of the UNet.
///
/// # Errors
/// `NoTensor` for one that tells a size, `Config` where sizes do not fit together.
pub fn unet(files: &TensorFiles, naming: &UNetNaming) -> Result<UNetConfig, WeightError> {
    let levels = (0..MOST_BLOCKS)
        .take_while(|i| files.find(naming, &format!("down_blocks.{i}.resnets.0.conv1.weight")).is_some())
        .count();
    let layers_per_block = match naming {
        UNetNaming::Original { layers_per_block, .. } | UNetNaming::OriginalEma { layers_per_block } => {
            *layers_per_block
        }
        UNetNaming::Diffusers { prefix } => count(files, |j| format!("{prefix}down_blocks.0.resnets.{j}.conv1.weight")),
    };
    let channels = |level: usize| dim(files, naming, &format!("down_blocks.{level}.resnets.0.conv1.weight"), 0);
    let block_out_channels = (0..levels).map(channels).collect::<Result<Vec<usize>, _>>()?;
    let attention =
        |side: &str, block: usize| files.find(naming, &format!("{side}.{block}.attentions.0.norm.weight")).is_some();
    let down_attention: Vec<bool> = (0..levels).map(|i| attention("down_blocks", i)).collect();
    let up_attention: Vec<bool> = (0..levels).map(|i| attention("up_blocks", i)).collect();
    let layers_in = |block: String| {
        (0..MOST_BLOCKS)
            .take_while(|t| files.find(naming, &format!("{block}.transformer_blocks.{t}.norm1.weight")).is_some())
            .count()
    };
    let middle = "mid_block.attentions.0";
    let transformer_layers = (0..levels)
        .map(|i| match (down_attention.get(i), up_attention.get((levels - 1) - i)) {
            (Some(true), _) => layers_in(format!("down_blocks.{i}.attentions.0")),
            (_, Some(true)) => layers_in(format!("up_blocks.{}.attentions.0", levels - 1 - i)),
            _ => layers_in(middle.to_owned()),
        })
        .map(|n| n.max(1))
        .collect();
    let projection = files.find(naming, &format!("{middle}.proj_in.weight")).map_or(4, |info| info.shape.len());
    let config = UNetConfig {
        in_channels: dim(files, naming, "conv_in.weight", 1)?,
        out_channels: dim(files, naming, "conv_out.weight", 0)?,
        down_attention,
        up_attention,
        layers_per_block,
        heads: vec![8; levels],
        transformer_layers,
        cross_attention_dim: dim(files, naming, &format!("{middle}.transformer_blocks.0.attn2.to_k.weight"), 1)?,
        use_linear_projection: projection == 2,
        block_out_channels,
        sample_size: None,
        ..UNetConfig::sd15()
    };
    config.check(files.path())?;
    Ok(config)
}

/// How the text encoder in these files is named, if there is one.
pub fn text_naming(files: &TensorFiles) -> Option<TextNaming> {
    let anchor = "text_model.embeddings.token_embedding.weight";
    TEXT_PREFIXES.into_iter().map(|prefix| TextNaming { prefix }).find(|naming| files.find(naming, anchor).is_some())
}

/// Sizes of the text encoder.
///
/// # Errors
/// As [`unet`].
pub fn text_encoder(files: &TensorFiles, naming: &TextNaming) -> Result<TextEncoderConfig, WeightError> {
    let layer = |i: usize| format!("{}encoder.layers.{i}.layer_norm1.weight", naming.prefix);
    let hidden_size = dim(files, naming, "text_model.embeddings.token_embedding.weight", 1)?;
    let config = TextEncoderConfig {
        vocab_size: dim(files, naming, "text_model.embeddings.token_embedding.weight", 0)?,
        hidden_size,
        intermediate_size: dim(files, naming, "text_model.encoder.layers.0.mlp.fc1.weight", 0)?,
        layers: count(files, layer),
        heads: (hidden_size / TEXT_HEAD).max(1),
        max_positions: dim(files, naming, "text_model.embeddings.position_embedding.weight", 0)?,
        ..TextEncoderConfig::sd15()
    };
    config.check(files.path())?;
    Ok(config)
}

/// How the VAE in these files is named, if its decoder is there.
pub fn vae_naming(files: &TensorFiles) -> Option<VaeNaming> {
    for prefix in VAE_PREFIXES {
        let levels = count(files, |i| format!("{prefix}decoder.up.{i}.block.0.conv1.weight"));
        if levels > 0 && files.has(&format!("{prefix}decoder.conv_in.weight")) {
            return Some(VaeNaming::Original { prefix, levels });
        }
    }
    let prefix = VAE_PREFIXES.into_iter().find(|p| {
        files.has(&format!("{p}decoder.conv_in.weight"))
            && files.has(&format!("{p}decoder.up_blocks.0.resnets.0.conv1.weight"))
    })?;
    Some(VaeNaming::Diffusers { prefix })
}

/// Sizes of the VAE.
///
/// # Errors
/// As [`unet`].
pub fn vae(files: &TensorFiles, naming: &VaeNaming) -> Result<VaeConfig, WeightError> {
    let block = |i: usize, j: usize| format!("decoder.up_blocks.{i}.resnets.{j}.conv1.weight");
    let has = |name: &str| files.find(naming, name).is_some();
    let levels = match naming {
        VaeNaming::Original { levels, .. } => *levels,
        VaeNaming::Diffusers { .. } => (0..MOST_BLOCKS).take_while(|i| has(&block(*i, 0))).count(),
    };
    let layers = (0..MOST_BLOCKS).take_while(|j| has(&block(0, *j))).count();
    let channels = |level: usize| dim(files, naming, &block(levels - 1 - level, 0), 0);
    let sd15 = VaeConfig::sd15();
    let latent_channels = dim(files, naming, "decoder.conv_in.weight", 1)?;
    // SD1 always has these two; later families, told by their wider latent, do without.
    let quant = |name: &str| latent_channels == sd15.latent_channels || has(name);
    let config = VaeConfig {
        in_channels: dim(files, naming, "encoder.conv_in.weight", 1).unwrap_or(sd15.in_channels),
        out_channels: dim(files, naming, "decoder.conv_out.weight", 0)?,
        latent_channels,
        block_out_channels: (0..levels).map(channels).collect::<Result<Vec<usize>, _>>()?,
        layers_per_block: layers.saturating_sub(1).max(1),
        use_quant_conv: quant("quant_conv.weight"),
        use_post_quant_conv: quant("post_quant_conv.weight"),
        ..sd15
    };
    config.check(files.path())?;
    Ok(config)
}
