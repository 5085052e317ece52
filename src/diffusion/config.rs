//! The sizes and settings of each part of the model, as diffusers' `config.json` files state them.
//!
//! Field by field they are read and obeyed; an absent one takes the default that diffusers (0.42) and transformers give
//! it; one that is understood and not supported is refused by name. `weights::shapes` fills the same types for single
//! files, whose sizes come from shapes. The text encoder, UNet, VAE and samplers are built from these types.

use super::place::Place;
use super::weights::WeightError;
use serde_json::Value;
use std::path::Path;

/// The activation inside a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x·σ(x), also called swish.
    Silu,
    /// The exact form, with erf.
    Gelu,
    /// x·σ(1.702·x), as CLIP ViT-L/14 was trained with.
    QuickGelu,
    Relu,
}

impl Activation {
    /// The activation that a config calls `name`.
    fn parse(file: &Path, field: &str, name: &str) -> Result<Self, WeightError> {
        match name {
            "silu" | "swish" => Ok(Activation::Silu),
            "gelu" => Ok(Activation::Gelu),
            "quick_gelu" => Ok(Activation::QuickGelu),
            "relu" => Ok(Activation::Relu),
            other => Err(WeightError::unsupported(file, field, other)),
        }
    }
}

/// The CLIP text encoder (transformers' `CLIPTextModel`).
#[derive(Clone, Debug, PartialEq)]
pub struct TextEncoderConfig {
    pub vocab_size: usize,
    pub hidden_size: usize,
    /// Width of the MLP's inner layer.
    pub intermediate_size: usize,
    pub layers: usize,
    pub heads: usize,
    /// Longest input in tokens, start and end included.
    pub max_positions: usize,
    pub activation: Activation,
    pub layer_norm_eps: f64,
    /// Ids as the encoder's own config states them. SD1.5's says 0, 2 and 1, which are wrong: the tokenizer's files are
    /// the truth for ids.
    pub bos_id: u32,
    pub eos_id: u32,
    pub pad_id: u32,
}

impl TextEncoderConfig {
    /// `text_encoder/config.json` of stable-diffusion-v1-5 (CLIP ViT-L/14).
    pub fn sd15() -> Self {
        TextEncoderConfig {
            vocab_size: 49408,
            hidden_size: 768,
            intermediate_size: 3072,
            layers: 12,
            heads: 12,
            max_positions: 77,
            activation: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            bos_id: 0,
            eos_id: 2,
            pad_id: 1,
        }
    }

    /// Reads `text_encoder/config.json`. A whole CLIP's config keeps the text part under `text_config`.
    ///
    /// # Errors
    /// `Io`, `Config`, `ConfigUnsupported`.
    pub fn from_file(place: impl Into<Place>) -> Result<Self, WeightError> {
        let place = place.into();
        let (file, whole) = (place.path(), Fields::read(&place)?);
        let f = match whole.root.get("text_config") {
            Some(text @ Value::Object(_)) => Fields { file, root: text.clone() },
            _ => whole,
        };
        let config = TextEncoderConfig {
            vocab_size: f.size("vocab_size", 49408)?,
            hidden_size: f.size("hidden_size", 512)?,
            intermediate_size: f.size("intermediate_size", 2048)?,
            layers: f.size("num_hidden_layers", 12)?,
            heads: f.size("num_attention_heads", 8)?,
            max_positions: f.size("max_position_embeddings", 77)?,
            activation: Activation::parse(file, "hidden_act", &f.text("hidden_act", "quick_gelu")?)?,
            layer_norm_eps: f.number("layer_norm_eps", 1e-5)?,
            bos_id: f.id("bos_token_id", 49406)?,
            eos_id: f.id("eos_token_id", 49407)?,
            pad_id: f.id("pad_token_id", 1)?,
        };
        config.check(file)?;
        Ok(config)
    }

    pub(crate) fn check(&self, file: &Path) -> Result<(), WeightError> {
        positive(file, "layer_norm_eps", self.layer_norm_eps)?;
        at_most(file, "num_hidden_layers", self.layers, MOST_LAYERS)?;
        for (field, n) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_positions),
        ] {
            at_most(file, field, n, LARGEST)?;
        }
        divides(file, "num_attention_heads", self.heads, self.hidden_size)
    }
}

/// The UNet (diffusers' `UNet2DConditionModel`). Levels are numbered from the finest, as `down_blocks` are.
#[derive(Clone, Debug, PartialEq)]
pub struct UNetConfig {
    pub in_channels: usize,
    pub out_channels: usize,
    /// Channels per level.
    pub block_out_channels: Vec<usize>,
    /// Whether a level's down block has attention (`CrossAttnDownBlock2D`).
    pub down_attention: Vec<bool>,
    /// Whether an up block has attention, in the order of `up_blocks`: the coarsest level first.
    pub up_attention: Vec<bool>,
    /// Resnets in a down block; an up block has one more.
    pub layers_per_block: usize,
    /// Attention heads per level. The middle block has those of the last.
    ///
    /// A config calls this `attention_head_dim`: diffusers kept that name for a number of heads.
    pub heads: Vec<usize>,
    /// Transformer layers per level. The middle block has those of the last.
    pub transformer_layers: Vec<usize>,
    /// Width of the text encoder's output.
    pub cross_attention_dim: usize,
    pub norm_num_groups: usize,
    /// Of the resnets' group norms. The transformers' group norm has 1e-6 and their layer norms 1e-5 (diffusers'
    /// `Transformer2DModel` and `BasicTransformerBlock`).
    pub norm_eps: f64,
    pub activation: Activation,
    /// Whether the file's `proj_in` and `proj_out` are linear; as 1×1 convolutions they compute the same.
    pub use_linear_projection: bool,
    /// Padding of the stride-2 convolutions on both sides.
    pub downsample_padding: usize,
    /// Whether the time embedding has its cosines first.
    pub flip_sin_to_cos: bool,
    pub freq_shift: f64,
    /// Width and height of the latent it was trained on.
    pub sample_size: Option<usize>,
}

/// Fields of a UNet config with the only values supported: those that SD1.5 has, which are also the defaults.
const UNET_FIXED: [(&str, &[&str]); 27] = [
    ("center_input_sample", &["false"]),
    ("only_cross_attention", &["false"]),
    ("mid_block_only_cross_attention", &["null", "false"]),
    ("dual_cross_attention", &["false"]),
    ("mid_block_type", &["\"UNetMidBlock2DCrossAttn\""]),
    ("mid_block_scale_factor", &["1", "1.0"]),
    ("num_attention_heads", &["null"]),
    ("reverse_transformer_layers_per_block", &["null"]),
    ("encoder_hid_dim", &["null"]),
    ("encoder_hid_dim_type", &["null"]),
    ("class_embed_type", &["null"]),
    ("addition_embed_type", &["null"]),
    ("num_class_embeds", &["null"]),
    ("resnet_time_scale_shift", &["\"default\""]),
    ("resnet_skip_time_act", &["false"]),
    ("resnet_out_scale_factor", &["1", "1.0"]),
    ("time_embedding_type", &["\"positional\""]),
    ("time_embedding_dim", &["null"]),
    ("time_embedding_act_fn", &["null"]),
    ("timestep_post_act", &["null"]),
    ("time_cond_proj_dim", &["null"]),
    ("conv_in_kernel", &["3"]),
    ("conv_out_kernel", &["3"]),
    ("attention_type", &["\"default\""]),
    ("class_embeddings_concat", &["false"]),
    ("cross_attention_norm", &["null"]),
    ("projection_class_embeddings_input_dim", &["null"]),
];

impl UNetConfig {
    /// `unet/config.json` of stable-diffusion-v1-5.
    pub fn sd15() -> Self {
        UNetConfig {
            in_channels: 4,
            out_channels: 4,
            block_out_channels: vec![320, 640, 1280, 1280],
            down_attention: vec![true, true, true, false],
            up_attention: vec![false, true, true, true],
            layers_per_block: 2,
            heads: vec![8; 4],
            transformer_layers: vec![1; 4],
            cross_attention_dim: 768,
            norm_num_groups: 32,
            norm_eps: 1e-5,
            activation: Activation::Silu,
            use_linear_projection: false,
            downsample_padding: 1,
            flip_sin_to_cos: true,
            freq_shift: 0.0,
            sample_size: Some(64),
        }
    }

    /// Reads `unet/config.json`.
    ///
    /// # Errors
    /// `Io`, `Config`, `ConfigUnsupported`.
    pub fn from_file(place: impl Into<Place>) -> Result<Self, WeightError> {
        let place = place.into();
        let (file, f) = (place.path(), Fields::read(&place)?);
        f.fixed(&UNET_FIXED)?;
        let block_out_channels = f.sizes("block_out_channels", &[320, 640, 1280, 1280])?;
        let levels = block_out_channels.len();
        let default_down = ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"];
        let default_up = ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"];
        let down = f.block_types("down_block_types", &default_down, "DownBlock2D", "CrossAttnDownBlock2D")?;
        let up = f.block_types("up_block_types", &default_up, "UpBlock2D", "CrossAttnUpBlock2D")?;
        let config = UNetConfig {
            in_channels: f.size("in_channels", 4)?,
            out_channels: f.size("out_channels", 4)?,
            down_attention: down,
            up_attention: up,
            layers_per_block: f.uniform("layers_per_block", 2)?,
            heads: f.per_level("attention_head_dim", 8, levels)?,
            transformer_layers: f.per_level("transformer_layers_per_block", 1, levels)?,
            cross_attention_dim: f.uniform("cross_attention_dim", 1280)?,
            norm_num_groups: f.size("norm_num_groups", 32)?,
            norm_eps: f.number("norm_eps", 1e-5)?,
            activation: Activation::parse(file, "act_fn", &f.text("act_fn", "silu")?)?,
            use_linear_projection: f.flag("use_linear_projection", false)?,
            downsample_padding: f.count("downsample_padding", 1)?,
            flip_sin_to_cos: f.flag("flip_sin_to_cos", true)?,
            freq_shift: f.number("freq_shift", 0.0)?,
            sample_size: f.optional_size("sample_size"),
            block_out_channels,
        };
        config.check(file)?;
        Ok(config)
    }

    pub fn levels(&self) -> usize {
        self.block_out_channels.len()
    }

    /// Width of the time embedding: four times the first level's, as diffusers has it.
    pub fn time_embed_dim(&self) -> usize {
        self.block_out_channels.first().map_or(0, |c| c * 4)
    }

    pub(crate) fn check(&self, file: &Path) -> Result<(), WeightError> {
        let levels = self.levels();
        levels_fit(file, "block_out_channels", levels)?;
        for (field, n) in [
            ("down_block_types", self.down_attention.len()),
            ("up_block_types", self.up_attention.len()),
            ("attention_head_dim", self.heads.len()),
            ("transformer_layers_per_block", self.transformer_layers.len()),
        ] {
            if n != levels {
                return Err(WeightError::config(file, field, format!("{n} entries for {levels} levels")));
            }
        }
        positive(file, "norm_eps", self.norm_eps)?;
        at_most(file, "layers_per_block", self.layers_per_block, MOST_LAYERS)?;
        for layers in &self.transformer_layers {
            at_most(file, "transformer_layers_per_block", *layers, MOST_LAYERS)?;
        }
        for (field, n) in [
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("cross_attention_dim", self.cross_attention_dim),
        ] {
            at_most(file, field, n, LARGEST)?;
        }
        for channels in &self.block_out_channels {
            at_most(file, "block_out_channels", *channels, LARGEST)?;
        }
        if self.downsample_padding > 1 {
            return Err(WeightError::unsupported(file, "downsample_padding", self.downsample_padding));
        }
        for (channels, heads) in self.block_out_channels.iter().zip(&self.heads) {
            divides(file, "norm_num_groups", self.norm_num_groups, *channels)?;
            divides(file, "attention_head_dim", *heads, *channels)?;
        }
        // The time embedding is half sines, half cosines.
        if self.block_out_channels.first().is_some_and(|c| c % 2 != 0) {
            return Err(WeightError::config(file, "block_out_channels", "the first must be even"));
        }
        Ok(())
    }
}

/// The VAE (diffusers' `AutoencoderKL`). All its group norms have eps 1e-6; its attention has one head.
#[derive(Clone, Debug, PartialEq)]
pub struct VaeConfig {
    /// Channels of a picture.
    pub in_channels: usize,
    pub out_channels: usize,
    pub latent_channels: usize,
    /// Channels per level, the finest first.
    pub block_out_channels: Vec<usize>,
    /// Resnets in an encoder block; a decoder block has one more.
    pub layers_per_block: usize,
    pub norm_num_groups: usize,
    pub activation: Activation,
    /// A latent is divided by this before decoding.
    pub scaling_factor: f64,
    /// And then this is added.
    pub shift_factor: f64,
    pub use_quant_conv: bool,
    pub use_post_quant_conv: bool,
    /// Whether the middle block has attention.
    pub mid_attention: bool,
}

impl VaeConfig {
    /// Of every group norm in the VAE (diffusers' `resnet_eps` in its encoder and decoder).
    pub const NORM_EPS: f64 = 1e-6;
    /// `scaling_factor` where nothing states one: SD1's (Rombach et al. 2022, the released configuration).
    pub const SCALING_FACTOR: f64 = 0.18215;

    /// `vae/config.json` of stable-diffusion-v1-5.
    pub fn sd15() -> Self {
        VaeConfig {
            in_channels: 3,
            out_channels: 3,
            latent_channels: 4,
            block_out_channels: vec![128, 256, 512, 512],
            layers_per_block: 2,
            norm_num_groups: 32,
            activation: Activation::Silu,
            scaling_factor: Self::SCALING_FACTOR,
            shift_factor: 0.0,
            use_quant_conv: true,
            use_post_quant_conv: true,
            mid_attention: true,
        }
    }

    /// Reads `vae/config.json`.
    ///
    /// # Errors
    /// `Io`, `Config`, `ConfigUnsupported`.
    pub fn from_file(place: impl Into<Place>) -> Result<Self, WeightError> {
        let place = place.into();
        let (file, f) = (place.path(), Fields::read(&place)?);
        f.fixed(&[("latents_mean", &["null"]), ("latents_std", &["null"])])?;
        let block_out_channels = f.sizes("block_out_channels", &[64])?;
        for (field, only) in [("down_block_types", "DownEncoderBlock2D"), ("up_block_types", "UpDecoderBlock2D")] {
            let n = f.block_types(field, &[only], only, only)?.len();
            if n != block_out_channels.len() {
                let detail = format!("{n} entries for {} levels", block_out_channels.len());
                return Err(WeightError::config(file, field, detail));
            }
        }
        let config = VaeConfig {
            in_channels: f.size("in_channels", 3)?,
            out_channels: f.size("out_channels", 3)?,
            latent_channels: f.size("latent_channels", 4)?,
            layers_per_block: f.uniform("layers_per_block", 1)?,
            norm_num_groups: f.size("norm_num_groups", 32)?,
            activation: Activation::parse(file, "act_fn", &f.text("act_fn", "silu")?)?,
            scaling_factor: f.number("scaling_factor", Self::SCALING_FACTOR)?,
            shift_factor: f.number("shift_factor", 0.0)?,
            use_quant_conv: f.flag("use_quant_conv", true)?,
            use_post_quant_conv: f.flag("use_post_quant_conv", true)?,
            mid_attention: f.flag("mid_block_add_attention", true)?,
            block_out_channels,
        };
        config.check(file)?;
        Ok(config)
    }

    /// Pixels per latent cell on each side: 8 for SD1.5.
    pub fn factor(&self) -> usize {
        1 << self.block_out_channels.len().saturating_sub(1)
    }

    pub(crate) fn check(&self, file: &Path) -> Result<(), WeightError> {
        levels_fit(file, "block_out_channels", self.block_out_channels.len())?;
        positive(file, "scaling_factor", self.scaling_factor)?;
        at_most(file, "layers_per_block", self.layers_per_block, MOST_LAYERS)?;
        for n in self.block_out_channels.iter().chain([&self.in_channels, &self.latent_channels]) {
            at_most(file, "block_out_channels", *n, LARGEST)?;
        }
        if self.out_channels != 3 {
            return Err(WeightError::unsupported(file, "out_channels", self.out_channels));
        }
        self.block_out_channels.iter().try_for_each(|c| divides(file, "norm_num_groups", self.norm_num_groups, *c))
    }
}

/// What the model predicts at each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PredictionType {
    /// The noise.
    #[default]
    Epsilon,
    /// v = α·noise − σ·image (Salimans and Ho 2022).
    V,
}

/// The shape of the noise schedule's betas over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetaSchedule {
    Linear,
    /// Linear in the square root.
    ScaledLinear,
    SquaredCosCapV2,
}

/// Where the inference timesteps of a leading, trailing or linspace schedule lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestepSpacing {
    Leading,
    Linspace,
    Trailing,
}

/// The training noise schedule (`scheduler/scheduler_config.json`).
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    pub beta_start: f64,
    pub beta_end: f64,
    pub beta_schedule: BetaSchedule,
    /// In place of the three above.
    pub trained_betas: Option<Vec<f64>>,
    pub train_timesteps: usize,
    pub prediction: PredictionType,
    /// Added to the timesteps of a leading schedule.
    pub steps_offset: usize,
    /// DDIM: alpha before the first step is 1, not `alphas_cumprod[0]`.
    pub set_alpha_to_one: bool,
    pub timestep_spacing: TimestepSpacing,
    pub rescale_betas_zero_snr: bool,
}

impl SchedulerConfig {
    /// `scheduler/scheduler_config.json` of stable-diffusion-v1-5.
    pub fn sd15() -> Self {
        SchedulerConfig {
            beta_start: 0.00085,
            beta_end: 0.012,
            beta_schedule: BetaSchedule::ScaledLinear,
            trained_betas: None,
            train_timesteps: 1000,
            prediction: PredictionType::Epsilon,
            steps_offset: 1,
            set_alpha_to_one: false,
            timestep_spacing: TimestepSpacing::Leading,
            rescale_betas_zero_snr: false,
        }
    }

    /// Reads `scheduler/scheduler_config.json`, of whatever scheduler class.
    ///
    /// # Errors
    /// `Io`, `Config`, `ConfigUnsupported`.
    pub fn from_file(place: impl Into<Place>) -> Result<Self, WeightError> {
        let place = place.into();
        let (file, f) = (place.path(), Fields::read(&place)?);
        let class = f.text("_class_name", "PNDMScheduler")?;
        let beta_schedule = match f.text("beta_schedule", "linear")?.as_str() {
            "linear" => BetaSchedule::Linear,
            "scaled_linear" => BetaSchedule::ScaledLinear,
            "squaredcos_cap_v2" => BetaSchedule::SquaredCosCapV2,
            other => return Err(WeightError::unsupported(file, "beta_schedule", other)),
        };
        let prediction = match f.text("prediction_type", "epsilon")?.as_str() {
            "epsilon" => PredictionType::Epsilon,
            "v_prediction" => PredictionType::V,
            other => return Err(WeightError::unsupported(file, "prediction_type", other)),
        };
        // The two defaults below differ by class in diffusers.
        let spacing = if matches!(class.as_str(), "PNDMScheduler" | "DDIMScheduler" | "LCMScheduler" | "DDPMScheduler")
        {
            "leading"
        } else {
            "linspace"
        };
        let timestep_spacing = match f.text("timestep_spacing", spacing)?.as_str() {
            "leading" => TimestepSpacing::Leading,
            "linspace" => TimestepSpacing::Linspace,
            "trailing" => TimestepSpacing::Trailing,
            other => return Err(WeightError::unsupported(file, "timestep_spacing", other)),
        };
        let config = SchedulerConfig {
            beta_start: f.number("beta_start", 0.0001)?,
            beta_end: f.number("beta_end", 0.02)?,
            beta_schedule,
            trained_betas: f.numbers("trained_betas")?,
            train_timesteps: f.size("num_train_timesteps", 1000)?,
            prediction,
            steps_offset: f.count("steps_offset", 0)?,
            set_alpha_to_one: f.flag("set_alpha_to_one", matches!(class.as_str(), "DDIMScheduler" | "LCMScheduler"))?,
            timestep_spacing,
            rescale_betas_zero_snr: f.flag("rescale_betas_zero_snr", false)?,
        };
        config.check(file)?;
        Ok(config)
    }

    fn check(&self, file: &Path) -> Result<(), WeightError> {
        const MOST_STEPS: usize = 100_000;
        if self.train_timesteps > MOST_STEPS {
            return Err(WeightError::config(file, "num_train_timesteps", self.train_timesteps.to_string()));
        }
        let valid = |b: f64| b > 0.0 && b < 1.0;
        match &self.trained_betas {
            Some(betas) if betas.len() != self.train_timesteps || !betas.iter().all(|b| valid(*b)) => {
                Err(WeightError::config(file, "trained_betas", format!("{} values", betas.len())))
            }
            None if !valid(self.beta_start) || !valid(self.beta_end) || self.beta_end < self.beta_start => {
                Err(WeightError::config(file, "beta_start", format!("{} to {}", self.beta_start, self.beta_end)))
            }
            _ => Ok(()),
        }
    }
}

/// Where a checkpoint keeps its tokenizer; `None` in a single file, which goes with CLIP's own vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizerFiles {
    /// The folder of `vocab.json` and `merges.txt`, or of `tokenizer.json`.
    pub folder: Place,
}

/// No size of a model of this kind comes near it; far beyond it arithmetic on sizes could overflow.
const LARGEST: usize = 1 << 20;
/// Likewise for layers in a row: lists of tensors grow with them.
const MOST_LAYERS: usize = 128;

fn at_most(file: &Path, field: &str, value: usize, most: usize) -> Result<(), WeightError> {
    if value <= most { Ok(()) } else { Err(WeightError::config(file, field, format!("{value} is over {most}"))) }
}

fn positive(file: &Path, field: &str, value: f64) -> Result<(), WeightError> {
    let holds = value.is_finite() && value > 0.0;
    if holds { Ok(()) } else { Err(WeightError::config(file, field, value.to_string())) }
}

fn divides(file: &Path, field: &str, part: usize, whole: usize) -> Result<(), WeightError> {
    let holds = part > 0 && whole > 0 && whole.is_multiple_of(part);
    if holds { Ok(()) } else { Err(WeightError::config(file, field, format!("{whole} is no multiple of {part}"))) }
}

fn levels_fit(file: &Path, field: &str, levels: usize) -> Result<(), WeightError> {
    // Each level halves the size; the published models have four.
    let holds = (1..=8).contains(&levels);
    if holds { Ok(()) } else { Err(WeightError::config(file, field, format!("{levels} levels"))) }
}

mod fields;
use fields::Fields;

#[cfg(test)]
mod tests;
