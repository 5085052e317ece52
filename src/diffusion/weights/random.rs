//! Seeded random weights at full SD1.5 size, for benchmarks and memory tests without a download.
//!
//! Each value is a hash of seed, tensor name and place, so any tensor can be made alone and always comes out the same.
//! Scales are chosen so that signals keep their size through the blocks, that the prediction resembles the noise in its
//! input as a trained model's does (so that sampling stays bounded), and that the prompt matters.

use super::convert;
use super::error::WeightError;
use super::layout::{self, TensorSpec};
use super::{HostTensor, TensorSource};
use crate::base::Precision;
use crate::diffusion::config::{TextEncoderConfig, UNetConfig, VaeConfig};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Standard deviation of a layer's output for inputs of unit variance. A weight's own is this over √(fan in).
///
/// SiLU and GELU of a unit normal have a root mean square near 0.6, which `AFTER_ACTIVATION` makes up for.
pub mod gain {
    /// Convolutions and projections whose input is already of unit size.
    pub const PLAIN: f32 = 1.0;
    /// Layers behind an activation.
    pub const AFTER_ACTIVATION: f32 = 1.7;
    /// The last layer of a residual branch behind an activation: the sum grows by about 6 % each time.
    pub const RESIDUAL_ACTIVATION: f32 = 0.6;
    /// The last layer of an attention branch.
    pub const RESIDUAL_ATTENTION: f32 = 0.5;
    /// A transformer's way back into the picture.
    pub const TRANSFORMER_OUT: f32 = 0.4;
    /// Queries and keys of self-attention: logits of deviation 1.4 look at some cells more than at others.
    pub const SELF_QUERY_KEY: f32 = 1.2;
    /// Queries and keys of cross-attention: sharper, so that single words count.
    pub const CROSS_QUERY_KEY: f32 = 1.5;
    /// Values and output of cross-attention, as strong as the picture itself.
    pub const CROSS_VALUE: f32 = 1.5;
    pub const CROSS_OUT: f32 = 1.0;
    /// The time embedding's shift inside a resnet.
    pub const TIME_SHIFT: f32 = 0.8;
    /// The sinusoids of the time embedding have a root mean square of 0.7.
    pub const TIME_IN: f32 = 1.4;
    /// The part of the prediction that is not the input's own noise.
    pub const PREDICTION: f32 = 0.5;
    /// The VAE's first layer undoes its scaling, so that a unit latent stays one.
    pub const VAE_IN: f32 = 0.18215;
    /// Pixels of deviation 0.4 around grey.
    pub const VAE_OUT: f32 = 0.7;
    pub const TOKEN_EMBEDDING: f32 = 1.0;
    pub const POSITION_EMBEDDING: f32 = 0.5;
    pub const BIAS: f32 = 0.02;
}

/// The random model. Sizes are those of stable-diffusion-v1-5's published configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomSd15 {
    pub seed: u64,
}

impl Default for RandomSd15 {
    fn default() -> Self {
        RandomSd15 { seed: 15 }
    }
}

impl RandomSd15 {
    pub fn text_encoder(&self) -> RandomPart {
        self.part(layout::text_encoder(&TextEncoderConfig::sd15()))
    }

    pub fn unet(&self) -> RandomPart {
        self.part(layout::unet(&UNetConfig::sd15()))
    }

    /// The decoder.
    pub fn vae(&self) -> RandomPart {
        self.part(layout::vae_decoder(&VaeConfig::sd15()))
    }

    fn part(&self, specs: Vec<TensorSpec>) -> RandomPart {
        let shapes = specs.into_iter().map(|s| (s.name, s.shape)).collect();
        RandomPart { seed: self.seed, shapes: Arc::new(shapes) }
    }
}

/// One part of the random model.
#[derive(Clone, Debug)]
pub struct RandomPart {
    seed: u64,
    shapes: Arc<BTreeMap<String, Vec<usize>>>,
}

impl TensorSource for RandomPart {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.shapes.get(name).cloned()
    }

    fn read(&self, name: &str, precision: Precision) -> Result<HostTensor, WeightError> {
        let missing = || WeightError::NoTensor { file: PathBuf::from("random-sd15"), tensor: name.to_owned() };
        let shape = self.shapes.get(name).ok_or_else(missing)?.clone();
        if precision == Precision::Auto {
            return Err(WeightError::PrecisionUndecided);
        }
        let count: usize = shape.iter().product();
        let mut bytes = Vec::with_capacity(count * precision.size());
        let (mean, deviation) = distribution(name, &shape);
        let plan = PassThrough::of(name, &shape);
        let mut block = [0f32; BLOCK];
        let seed = mix(self.seed ^ name_hash(name));
        for start in (0..count).step_by(BLOCK) {
            let n = BLOCK.min(count - start);
            uniform(seed, (start / LANES) as u64, mean, deviation, &mut block);
            if let Some(values) = block.get_mut(..n) {
                if let Some(plan) = &plan {
                    plan.apply(start, values);
                }
                convert::push(values, precision, &mut bytes);
            }
        }
        Ok(HostTensor { shape, precision, bytes })
    }

    fn names(&self) -> Vec<String> {
        self.shapes.keys().cloned().collect()
    }
}

const BLOCK: usize = 2048;
/// Values made from one hash, 16 bits each.
const LANES: usize = 4;

/// Fills `out` with uniform values of the given mean and deviation, from the hash with number `counter` on.
fn uniform(seed: u64, counter: u64, mean: f32, deviation: f32, out: &mut [f32; BLOCK]) {
    // A uniform value on ±w has the deviation w/√3.
    let step = deviation * 3f32.sqrt() / 32768.0;
    for (i, lanes) in (counter..).zip(out.as_chunks_mut::<LANES>().0) {
        let bits = mix(seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for (lane, value) in lanes.iter_mut().enumerate() {
            let sixteen = (bits >> (16 * lane)) as u16 as i16;
            *value = mean + (f32::from(sixteen) + 0.5) * step;
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// FNV-1a.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Mean and standard deviation of a tensor's values, by what its layer does.
fn distribution(name: &str, shape: &[usize]) -> (f32, f32) {
    if name.ends_with(".bias") {
        return (0.0, gain::BIAS);
    }
    if shape.len() == 1 {
        return (1.0, 0.0);
    }
    if name.ends_with("token_embedding.weight") {
        return (0.0, gain::TOKEN_EMBEDDING);
    }
    if name.ends_with("position_embedding.weight") {
        return (0.0, gain::POSITION_EMBEDDING);
    }
    let fan_in: usize = shape.iter().skip(1).product();
    (0.0, layer_gain(name.strip_suffix(".weight").unwrap_or(name)) / (fan_in.max(1) as f32).sqrt())
}

fn layer_gain(layer: &str) -> f32 {
    let ends = |list: &[&str]| list.iter().any(|end| layer.ends_with(end));
    if ends(&["attn2.to_q", "attn2.to_k"]) {
        gain::CROSS_QUERY_KEY
    } else if ends(&["attn2.to_v"]) {
        gain::CROSS_VALUE
    } else if ends(&["attn2.to_out.0"]) {
        gain::CROSS_OUT
    } else if ends(&["to_q", "to_k", "q_proj", "k_proj"]) {
        gain::SELF_QUERY_KEY
    } else if ends(&["to_out.0", "self_attn.out_proj"]) {
        gain::RESIDUAL_ATTENTION
    } else if ends(&["attentions.0.proj_out", "attentions.1.proj_out", "attentions.2.proj_out"]) {
        gain::TRANSFORMER_OUT
    } else if ends(&[".conv2", "ff.net.2", "mlp.fc2"]) {
        gain::RESIDUAL_ACTIVATION
    } else if ends(&[".conv1", "time_embedding.linear_2"]) {
        gain::AFTER_ACTIVATION
    } else if ends(&["time_emb_proj"]) {
        gain::TIME_SHIFT
    } else if ends(&["time_embedding.linear_1"]) {
        gain::TIME_IN
    } else if layer == "conv_out" {
        gain::PREDICTION
    } else if layer == "decoder.conv_in" {
        gain::VAE_IN
    } else if layer == "decoder.conv_out" {
        gain::VAE_OUT
    } else {
        gain::PLAIN
    }
}

/// The way of the input's noise straight through the UNet.
///
/// `conv_in` writes each latent channel x into a pair of its channels as x and −x. Its output is also the last skip, which
/// the last resnet's `conv_shortcut` copies pair by pair, and `conv_out` subtracts the second of a pair from the first:
/// silu(x) − silu(−x) = x. So the prediction is close to the scaled input, as the best prediction for a picture of unit
/// normal pixels would be, and what the blocks in between make of text and picture is added to it.
enum PassThrough {
    /// `conv_in.weight`: rows of `[out, in, 3, 3]` for the pairs.
    In { row: usize, pairs: usize },
    /// The last `conv_shortcut.weight`: rows of `[out, hidden + skip, 1, 1]`.
    Copy { row: usize, skip: usize, pairs: usize },
    /// `conv_out.weight`: `[latent, in, 3, 3]`.
    Out { row: usize },
}

/// Cells of a 3×3 kernel, and the middle one.
const KERNEL: usize = 9;
const CENTRE: usize = 4;

impl PassThrough {
    fn of(name: &str, shape: &[usize]) -> Option<Self> {
        let sd15 = UNetConfig::sd15();
        let row: usize = shape.iter().skip(1).product();
        let pairs = sd15.in_channels;
        match name {
            "conv_in.weight" => Some(PassThrough::In { row, pairs }),
            "up_blocks.3.resnets.2.conv_shortcut.weight" => {
                let skip = row.checked_sub(*sd15.block_out_channels.first()?)?;
                Some(PassThrough::Copy { row, skip, pairs })
            }
            "conv_out.weight" => Some(PassThrough::Out { row }),
            _ => None,
        }
    }

    /// Changes the values from place `start` of the tensor on.
    fn apply(&self, start: usize, values: &mut [f32]) {
        for (place, value) in (start..).zip(values) {
            match *self {
                PassThrough::In { row, pairs } => {
                    let (out, rest) = (place / row, place % row);
                    if out < pairs * 2 {
                        let hit = rest == (out / 2) * KERNEL + CENTRE;
                        *value = if hit { sign(out) } else { 0.0 };
                    }
                }
                PassThrough::Copy { row, skip, pairs } => {
                    let (out, rest) = (place / row, place % row);
                    if out < pairs * 2 {
                        *value = if rest == skip + out { 1.0 } else { 0.0 };
                    }
                }
                PassThrough::Out { row } => {
                    let (out, rest) = (place / row, place % row);
                    let (channel, cell) = (rest / KERNEL, rest % KERNEL);
                    if cell == CENTRE && channel / 2 == out {
                        *value += sign(channel);
                    }
                }
            }
        }
    }
}

/// +1 for the first of a pair, −1 for the second.
fn sign(channel: usize) -> f32 {
    if channel.is_multiple_of(2) { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(part: &RandomPart, name: &str) -> Vec<f32> {
        part.read(name, Precision::F32).unwrap().to_f32()
    }

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        (mean, (values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    #[test]
    fn values_have_the_deviation_that_their_layer_asks_for() {
        let unet = RandomSd15::default().unet();
        let name = "mid_block.resnets.0.conv1.weight";
        let (mean, deviation) = moments(&values(&unet, name));
        let want = f64::from(gain::AFTER_ACTIVATION) / (1280.0 * 9.0f64).sqrt();
        assert!(mean.abs() < want * 0.01 && (deviation / want - 1.0).abs() < 0.01, "{mean} {deviation} {want}");
        assert!(values(&unet, "mid_block.resnets.0.norm1.weight").iter().all(|v| *v == 1.0));
        let neighbours = values(&unet, "mid_block.attentions.0.proj_in.weight");
        let pairs: Vec<f32> = neighbours.windows(2).map(|w| w[0] * w[1] * 1280.0).collect();
        assert!(moments(&pairs).0.abs() < 0.01, "neighbours are not correlated");
    }

    #[test]
    fn a_seed_gives_one_model_and_each_tensor_its_own_values() {
        let a = RandomSd15::default().unet();
        let name = "down_blocks.0.attentions.0.proj_in.weight";
        assert_eq!(values(&a, name), values(&RandomSd15::default().unet(), name));
        assert_ne!(values(&a, name), values(&RandomSd15 { seed: 16 }.unet(), name));
        assert_ne!(values(&a, name), values(&a, "down_blocks.0.attentions.0.proj_out.weight"));
        let half = a.read(name, Precision::F16).unwrap();
        assert_eq!(half.bytes.len(), 320 * 320 * 2);
        let near = half.to_f32().iter().zip(values(&a, name)).all(|(h, f)| (h - f).abs() < 1e-4);
        assert!(near, "precisions agree");
        assert!(a.read("no.such", Precision::F16).is_err());
        assert!(a.read(name, Precision::Auto).is_err());
    }

    #[test]
    fn the_inputs_noise_passes_straight_through() {
        let unet = RandomSd15::default().unet();
        let conv_in = values(&unet, "conv_in.weight");
        let shortcut = values(&unet, "up_blocks.3.resnets.2.conv_shortcut.weight");
        let conv_out = values(&unet, "conv_out.weight");
        for latent in 0..4usize {
            for pair in 0..2usize {
                let channel = latent * 2 + pair;
                let sign = if pair == 0 { 1.0 } else { -1.0 };
                let row = &conv_in[channel * 36..(channel + 1) * 36];
                assert_eq!(row.iter().filter(|v| **v != 0.0).count(), 1);
                assert_eq!(row[latent * 9 + 4], sign);
                let row = &shortcut[channel * 640..(channel + 1) * 640];
                assert_eq!(row.iter().sum::<f32>(), 1.0);
                assert_eq!(row[320 + channel], 1.0);
                assert!((conv_out[latent * 2880 + channel * 9 + 4] - sign).abs() < 0.1);
            }
        }
    }

    #[test]
    fn all_parts_have_their_published_number_of_tensors() {
        let model = RandomSd15::default();
        assert_eq!([model.text_encoder(), model.unet(), model.vae()].map(|p| p.names().len()), [196, 686, 140]);
    }

    /// `cargo test --release -- --ignored --nocapture the_whole_unet`.
    #[test]
    #[ignore = "makes 860 million values and prints how long it took"]
    fn the_whole_unet_is_made_in_seconds() {
        let start = std::time::Instant::now();
        let unet = RandomSd15::default().unet();
        let bytes: usize = unet.names().iter().map(|n| unet.read(n, Precision::F16).unwrap().bytes.len()).sum();
        println!("{bytes} bytes in {:?}", start.elapsed());
        assert_eq!(bytes, 859_520_964 * 2);
    }
}
