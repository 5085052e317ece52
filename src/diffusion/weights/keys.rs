//! The names under which files keep the tensors of each part.
//!
//! Every tensor has one name of our own, the one diffusers gives it, and a short list of names that files give it. The
//! list follows from the name and from the sizes of the model, so that models of another depth need no table of their
//! own. `assemble` takes the first of the list that a file has. What a file has besides is sorted by `leftover`.

/// How one part is named in one file.
pub trait Naming {
    /// The names that a tensor may have in the file, the likeliest first.
    fn candidates(&self, name: &str) -> Vec<String>;
}

/// Where the UNet's names come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UNetNaming {
    /// Numbered as in the original code: `input_blocks.N`, `middle_block.N`, `output_blocks.N`.
    Original {
        prefix: &'static str,
        layers_per_block: usize,
    },
    /// The averaged copy of the same, each name written without its dots.
    OriginalEma {
        layers_per_block: usize,
    },
    Diffusers {
        prefix: &'static str,
    },
}

/// Where the VAE's names come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaeNaming {
    Original { prefix: &'static str, levels: usize },
    Diffusers { prefix: &'static str },
}

/// Where the text encoder's names come from: all that differs is what stands before `embeddings` and `encoder`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextNaming {
    pub prefix: &'static str,
}

/// Prefixes of an originally named UNet: whole checkpoints, extracted UNets, bare ones.
pub const UNET_PREFIXES: [&str; 3] = ["model.diffusion_model.", "diffusion_model.", ""];
/// Prefixes of a UNet with diffusers' names.
pub const UNET_DIFFUSERS_PREFIXES: [&str; 2] = ["", "unet."];
/// Prefixes of a VAE: whole checkpoints, separate files, files with one prefix per part.
pub const VAE_PREFIXES: [&str; 3] = ["first_stage_model.", "", "vae."];
/// Prefixes of a text encoder. Single files made before transformers 4.31 and folders made since 5.0 lack `text_model.`.
pub const TEXT_PREFIXES: [&str; 6] = [
    "cond_stage_model.transformer.text_model.",
    "cond_stage_model.transformer.",
    "text_model.",
    "text_encoder.text_model.",
    "text_encoder.",
    "",
];

/// A resnet's layers in the original UNet, numbered by their place in a `Sequential`.
const RESNET: [(&str, &str); 6] = [
    ("norm1", "in_layers.0"),
    ("conv1", "in_layers.2"),
    ("time_emb_proj", "emb_layers.1"),
    ("norm2", "out_layers.0"),
    ("conv2", "out_layers.3"),
    ("conv_shortcut", "skip_connection"),
];

/// Layers with more than one name: ours, then the others.
///
/// The VAE's attention was renamed twice: `q, k, v, proj_out` are the original's 1×1 convolutions, `query, key, value,
/// proj_attn` are diffusers' before 0.17, `to_q …` are diffusers' since.
const VAE_ATTENTION: [(&str, [&str; 3]); 5] = [
    ("group_norm", ["group_norm", "norm", "group_norm"]),
    ("to_q", ["to_q", "query", "q"]),
    ("to_k", ["to_k", "key", "k"]),
    ("to_v", ["to_v", "value", "v"]),
    ("to_out.0", ["to_out.0", "proj_attn", "proj_out"]),
];

impl Naming for UNetNaming {
    fn candidates(&self, name: &str) -> Vec<String> {
        match self {
            UNetNaming::Diffusers { prefix } => vec![format!("{prefix}{name}")],
            UNetNaming::Original { prefix, layers_per_block } => {
                unet_original(name, *layers_per_block).into_iter().map(|n| format!("{prefix}{n}")).collect()
            }
            UNetNaming::OriginalEma { layers_per_block } => {
                unet_original(name, *layers_per_block).iter().map(|name| ema_name(name)).collect()
            }
        }
    }
}

impl Naming for VaeNaming {
    fn candidates(&self, name: &str) -> Vec<String> {
        let (prefix, names) = match self {
            VaeNaming::Diffusers { prefix } => (prefix, vec![name.to_owned()]),
            VaeNaming::Original { prefix, levels } => (prefix, vec![vae_original(name, *levels)]),
        };
        let names = names.into_iter().flat_map(|n| vae_variants(name, n));
        names.map(|n| format!("{prefix}{n}")).collect()
    }
}

impl Naming for TextNaming {
    fn candidates(&self, name: &str) -> Vec<String> {
        let bare = name.strip_prefix("text_model.").unwrap_or(name);
        vec![format!("{}{bare}", self.prefix)]
    }
}

/// The averaged copy of a tensor of the original UNet: its name without dots.
pub fn ema_name(original: &str) -> String {
    format!("model_ema.diffusion_model{}", original.replace('.', ""))
}

/// A UNet tensor's names in the original numbering, without prefix.
///
/// Counting from the finest level: block 0 is `conv_in`, each level takes one number per layer and one for its
/// downsampler; on the way up each level takes one number per layer, and an upsampler shares its level's last.
fn unet_original(name: &str, depth: usize) -> Vec<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    let one = |text: String| vec![text];
    match parts.as_slice() {
        ["conv_in", leaf] => one(format!("input_blocks.0.0.{leaf}")),
        ["time_embedding", "linear_1", leaf] => one(format!("time_embed.0.{leaf}")),
        ["time_embedding", "linear_2", leaf] => one(format!("time_embed.2.{leaf}")),
        ["conv_norm_out", leaf] => one(format!("out.0.{leaf}")),
        ["conv_out", leaf] => one(format!("out.2.{leaf}")),
        ["down_blocks", level, "downsamplers", "0", "conv", leaf] => {
            one(format!("input_blocks.{}.0.op.{leaf}", (number(level) + 1) * (depth + 1)))
        }
        ["down_blocks", level, kind, layer, rest @ ..] => {
            let block = 1 + number(level) * (depth + 1) + number(layer);
            one(format!("input_blocks.{block}.{}", block_layer(kind, rest)))
        }
        ["mid_block", "resnets", layer, rest @ ..] => {
            one(format!("middle_block.{}.{}", number(layer) * 2, resnet_layer(rest)))
        }
        ["mid_block", "attentions", "0", rest @ ..] => one(format!("middle_block.1.{}", rest.join("."))),
        ["up_blocks", level, "upsamplers", "0", "conv", leaf] => {
            // After the level's attention where it has one.
            let block = number(level) * (depth + 1) + depth;
            [2, 1].iter().map(|place| format!("output_blocks.{block}.{place}.conv.{leaf}")).collect()
        }
        ["up_blocks", level, kind, layer, rest @ ..] => {
            let block = number(level) * (depth + 1) + number(layer);
            one(format!("output_blocks.{block}.{}", block_layer(kind, rest)))
        }
        _ => one(name.to_owned()),
    }
}

fn block_layer(kind: &str, rest: &[&str]) -> String {
    if kind == "attentions" { format!("1.{}", rest.join(".")) } else { format!("0.{}", resnet_layer(rest)) }
}

fn resnet_layer(rest: &[&str]) -> String {
    let (layer, leaf) = (rest.first().copied().unwrap_or(""), rest.get(1).copied().unwrap_or(""));
    let original = RESNET.iter().find(|(ours, _)| *ours == layer).map_or(layer, |(_, original)| original);
    format!("{original}.{leaf}")
}

/// A VAE tensor's name in the original code, which numbers the decoder's blocks from the finest level, while diffusers
/// numbers them in the order they run.
fn vae_original(name: &str, levels: usize) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    let from_finest = |level: &str| levels.saturating_sub(1).saturating_sub(number(level));
    match parts.as_slice() {
        [side, "conv_norm_out", leaf] => format!("{side}.norm_out.{leaf}"),
        [side, "mid_block", "resnets", layer, rest @ ..] => {
            format!("{side}.mid.block_{}.{}", number(layer) + 1, rest.join("."))
        }
        [side, "mid_block", "attentions", "0", rest @ ..] => format!("{side}.mid.attn_1.{}", rest.join(".")),
        [side, "up_blocks", level, "resnets", layer, rest @ ..] => {
            format!("{side}.up.{}.block.{layer}.{}", from_finest(level), rest.join("."))
        }
        [side, "up_blocks", level, "upsamplers", "0", rest @ ..] => {
            format!("{side}.up.{}.upsample.{}", from_finest(level), rest.join("."))
        }
        [side, "down_blocks", level, "resnets", layer, rest @ ..] => {
            format!("{side}.down.{level}.block.{layer}.{}", rest.join("."))
        }
        [side, "down_blocks", level, "downsamplers", "0", rest @ ..] => {
            format!("{side}.down.{level}.downsample.{}", rest.join("."))
        }
        _ => name.to_owned(),
    }
}

/// The further names of layers that have several; `ours` tells which layer `file_name` is.
fn vae_variants(ours: &str, file_name: String) -> Vec<String> {
    if ours.contains(".conv_shortcut.") {
        // The original calls it "network in network".
        return vec![file_name.replace(".conv_shortcut.", ".nin_shortcut."), file_name];
    }
    if let Some((_, layer)) = ours.split_once(".mid_block.attentions.0.")
        && let Some((name, others)) = VAE_ATTENTION.iter().find(|(name, _)| layer.starts_with(&format!("{name}.")))
    {
        return others.iter().map(|other| file_name.replace(&format!(".{name}."), &format!(".{other}."))).collect();
    }
    vec![file_name]
}

/// What a tensor is that no part of the model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Known and of no use: training state, buffers that are always the same.
    Ignored,
    /// The averaged copy of the UNet.
    Ema,
    SafetyChecker,
    /// Names nothing this program knows.
    Unknown,
}

/// How a rule of `LEFTOVERS` is held against a name.
enum Rule {
    Exact(&'static str),
    Prefix(&'static str),
    Suffix(&'static str),
}

/// Tensors that may lie in a checkpoint without being part of the model, and why they may be passed over.
const LEFTOVERS: [(Rule, Leftover, &str); 24] = [
    (Rule::Prefix("betas"), Leftover::Ignored, "noise schedule, computed"),
    (Rule::Prefix("alphas_cumprod"), Leftover::Ignored, "noise schedule, computed"),
    (Rule::Prefix("sqrt_"), Leftover::Ignored, "noise schedule, computed"),
    (Rule::Prefix("log_one_minus_alphas_cumprod"), Leftover::Ignored, "noise schedule, computed"),
    (Rule::Prefix("posterior_"), Leftover::Ignored, "noise schedule, computed"),
    (Rule::Exact("logvar"), Leftover::Ignored, "training loss weights"),
    (Rule::Exact("lvlb_weights"), Leftover::Ignored, "training loss weights"),
    (Rule::Exact("scale_factor"), Leftover::Ignored, "the VAE's scaling, known"),
    (Rule::Exact("v_pred"), Leftover::Ignored, "an empty mark: the model predicts v"),
    (Rule::Exact("ztsnr"), Leftover::Ignored, "an empty mark: trained with zero terminal SNR"),
    (Rule::Suffix("position_ids"), Leftover::Ignored, "always 0..76, at times stored rounded"),
    (Rule::Suffix("logit_scale"), Leftover::Ignored, "CLIP's contrastive training"),
    (Rule::Suffix("text_projection.weight"), Leftover::Ignored, "CLIP's contrastive training"),
    (Rule::Suffix("text_projection"), Leftover::Ignored, "CLIP's contrastive training"),
    (Rule::Prefix("embedding_manager."), Leftover::Ignored, "textual-inversion training"),
    (Rule::Prefix("loss."), Leftover::Ignored, "the VAE's discriminator and perceptual loss"),
    (Rule::Prefix("first_stage_model.loss."), Leftover::Ignored, "the VAE's discriminator and perceptual loss"),
    (Rule::Exact("model_ema.decay"), Leftover::Ignored, "training state of the average"),
    (Rule::Exact("model_ema.num_updates"), Leftover::Ignored, "training state of the average"),
    (Rule::Prefix("first_stage_model.model_ema."), Leftover::Ignored, "training state of the VAE's average"),
    (Rule::Prefix("optimizer"), Leftover::Ignored, "training state"),
    (Rule::Prefix("model_ema."), Leftover::Ema, "the average, read on request"),
    (Rule::Prefix("safety_checker."), Leftover::SafetyChecker, "not part of making a picture"),
    (Rule::Prefix("cond_stage_model.transformer.vision_model."), Leftover::Ignored, "CLIP's image half"),
];

/// Sorts a tensor that no part has claimed.
pub fn leftover(name: &str) -> Leftover {
    let holds = |rule: &Rule| match rule {
        Rule::Exact(text) => name == *text,
        Rule::Prefix(text) => name.starts_with(text),
        Rule::Suffix(text) => name.ends_with(text),
    };
    LEFTOVERS.iter().find(|(rule, ..)| holds(rule)).map_or(Leftover::Unknown, |(_, kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diffusion::config::{UNetConfig, VaeConfig};
    use crate::diffusion::weights::layout;
    use std::collections::BTreeSet;

    #[test]
    fn the_unets_numbers_are_those_of_the_original_file() {
        let naming = UNetNaming::Original { prefix: "model.diffusion_model.", layers_per_block: 2 };
        for (ours, original) in [
            ("conv_in.weight", "input_blocks.0.0.weight"),
            ("time_embedding.linear_2.bias", "time_embed.2.bias"),
            ("down_blocks.0.resnets.1.norm1.weight", "input_blocks.2.0.in_layers.0.weight"),
            ("down_blocks.0.downsamplers.0.conv.bias", "input_blocks.3.0.op.bias"),
            ("down_blocks.1.resnets.0.conv_shortcut.weight", "input_blocks.4.0.skip_connection.weight"),
            ("down_blocks.2.attentions.1.proj_in.weight", "input_blocks.8.1.proj_in.weight"),
            ("down_blocks.3.resnets.1.time_emb_proj.bias", "input_blocks.11.0.emb_layers.1.bias"),
            ("mid_block.resnets.1.conv2.weight", "middle_block.2.out_layers.3.weight"),
            ("mid_block.attentions.0.norm.weight", "middle_block.1.norm.weight"),
            (
                "up_blocks.2.attentions.0.transformer_blocks.0.ff.net.0.proj.weight",
                "output_blocks.6.1.transformer_blocks.0.ff.net.0.proj.weight",
            ),
            ("up_blocks.3.resnets.2.conv1.weight", "output_blocks.11.0.in_layers.2.weight"),
            ("conv_norm_out.weight", "out.0.weight"),
            ("conv_out.bias", "out.2.bias"),
        ] {
            assert_eq!(naming.candidates(ours), [format!("model.diffusion_model.{original}")], "{ours}");
        }
        let up = naming.candidates("up_blocks.0.upsamplers.0.conv.weight");
        assert!(up.contains(&"model.diffusion_model.output_blocks.2.1.conv.weight".to_owned()));
        let up = naming.candidates("up_blocks.1.upsamplers.0.conv.weight");
        assert_eq!(up[0], "model.diffusion_model.output_blocks.5.2.conv.weight");
        let ema = UNetNaming::OriginalEma { layers_per_block: 2 };
        assert_eq!(ema.candidates("conv_in.weight"), ["model_ema.diffusion_modelinput_blocks00weight"]);
    }

    #[test]
    fn the_vaes_names_in_all_their_ages() {
        let original = VaeNaming::Original { prefix: "first_stage_model.", levels: 4 };
        let has = |naming: &VaeNaming, ours: &str, file: &str| {
            let all = naming.candidates(ours);
            assert!(all.iter().any(|n| n == file), "{ours}: {file} not in {all:?}");
        };
        has(
            &original,
            "decoder.up_blocks.0.resnets.2.norm1.weight",
            "first_stage_model.decoder.up.3.block.2.norm1.weight",
        );
        has(
            &original,
            "decoder.up_blocks.2.resnets.0.conv_shortcut.weight",
            "first_stage_model.decoder.up.1.block.0.nin_shortcut.weight",
        );
        has(
            &original,
            "decoder.up_blocks.1.upsamplers.0.conv.bias",
            "first_stage_model.decoder.up.2.upsample.conv.bias",
        );
        has(
            &original,
            "encoder.down_blocks.1.downsamplers.0.conv.bias",
            "first_stage_model.encoder.down.1.downsample.conv.bias",
        );
        has(
            &original,
            "decoder.mid_block.resnets.1.conv1.weight",
            "first_stage_model.decoder.mid.block_2.conv1.weight",
        );
        has(&original, "encoder.conv_norm_out.bias", "first_stage_model.encoder.norm_out.bias");
        has(&original, "quant_conv.weight", "first_stage_model.quant_conv.weight");
        let diffusers = VaeNaming::Diffusers { prefix: "" };
        for (ours, layers) in [
            ("to_q", ["q", "query", "to_q"]),
            ("to_out.0", ["proj_out", "proj_attn", "to_out.0"]),
            ("group_norm", ["norm", "group_norm", "group_norm"]),
        ] {
            for layer in layers {
                let name = format!("decoder.mid_block.attentions.0.{ours}.weight");
                has(&original, &name, &format!("first_stage_model.decoder.mid.attn_1.{layer}.weight"));
                has(&diffusers, &name, &format!("decoder.mid_block.attentions.0.{layer}.weight"));
            }
        }
    }

    #[test]
    fn no_two_tensors_share_a_name_in_a_file() {
        let unet = layout::unet(&UNetConfig::sd15());
        for naming in [
            UNetNaming::Original { prefix: "", layers_per_block: 2 },
            UNetNaming::OriginalEma { layers_per_block: 2 },
            UNetNaming::Diffusers { prefix: "" },
        ] {
            let names: Vec<String> = unet.iter().flat_map(|s| naming.candidates(&s.name)).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{naming:?}");
        }
        let vae = [layout::vae_decoder(&VaeConfig::sd15()), layout::vae_encoder(&VaeConfig::sd15())].concat();
        let naming = VaeNaming::Original { prefix: "", levels: 4 };
        let first: BTreeSet<String> =
            vae.iter().filter_map(|s| naming.candidates(&s.name).into_iter().next()).collect();
        assert_eq!(first.len(), vae.len());
    }

    #[test]
    fn leftovers_are_sorted() {
        for name in [
            "betas",
            "alphas_cumprod_prev",
            "sqrt_recipm1_alphas_cumprod",
            "posterior_mean_coef1",
            "logvar",
            "cond_stage_model.logit_scale",
            "embedding_manager.embedder.x",
            "model_ema.decay",
            "loss.logvar",
            "cond_stage_model.transformer.text_model.embeddings.position_ids",
        ] {
            assert_eq!(leftover(name), Leftover::Ignored, "{name}");
        }
        assert_eq!(leftover("model_ema.diffusion_modelout0bias"), Leftover::Ema);
        assert_eq!(leftover("model.diffusion_model.input_blocks.1.2.extra.weight"), Leftover::Unknown);
        assert!(LEFTOVERS.iter().all(|(_, _, reason)| !reason.is_empty()));
    }
}
