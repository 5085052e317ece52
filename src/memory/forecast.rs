//! What each phase of a run will take: weights exactly, activations by formula from sizes.
//!
//! The formulas count the tensors that live at the worst moment when the model runs on burn's stock operations. They
//! take plain numbers (channels, heads, layers), so that models of any size are forecast alike. What a machine measures
//! corrects them ([`Correction`]).

use crate::base::{Bytes, Precision, Size};
use crate::diffusion::layers::SCORE_BYTES;
use serde::{Deserialize, Serialize};

/// A part of the model that is loaded and dropped as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    TextEncoder,
    Unet,
    VaeDecoder,
}

impl Part {
    pub const ALL: [Part; 3] = [Part::TextEncoder, Part::Unet, Part::VaeDecoder];

    /// The part's technical name, the same in every language.
    pub fn label(self) -> &'static str {
        match self {
            Part::TextEncoder => "CLIP",
            Part::Unet => "UNet",
            Part::VaeDecoder => "VAE",
        }
    }
}

/// One thing per part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerPart<T> {
    pub text_encoder: T,
    pub unet: T,
    pub vae: T,
}

impl<T: Copy> PerPart<T> {
    pub fn get(&self, part: Part) -> T {
        match part {
            Part::TextEncoder => self.text_encoder,
            Part::Unet => self.unet,
            Part::VaeDecoder => self.vae,
        }
    }

    pub fn get_mut(&mut self, part: Part) -> &mut T {
        match part {
            Part::TextEncoder => &mut self.text_encoder,
            Part::Unet => &mut self.unet,
            Part::VaeDecoder => &mut self.vae,
        }
    }

    pub fn from_fn(mut f: impl FnMut(Part) -> T) -> Self {
        PerPart { text_encoder: f(Part::TextEncoder), unet: f(Part::Unet), vae: f(Part::VaeDecoder) }
    }
}

/// The numbers of a model that decide what its activations take.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Channels of the UNet's levels, widest picture first.
    pub unet_channels: Vec<u64>,
    /// Attention heads of each level; 0 where a level has no attention.
    pub unet_heads: Vec<u64>,
    /// Heads of the middle block; 0 without attention.
    pub unet_mid_heads: u64,
    /// Resnets a level on the way down; one more on the way up.
    pub unet_layers: u64,
    /// Channels of the VAE's levels, widest picture first, as its config lists them.
    pub vae_channels: Vec<u64>,
    /// Whether the VAE's middle block has attention (one head).
    pub vae_attention: bool,
    /// Pixels a latent pixel, along one side.
    pub vae_factor: u64,
    pub text_width: u64,
    pub text_heads: u64,
    pub text_intermediate: u64,
    pub text_tokens: u64,
}

impl ModelShape {
    /// Stable Diffusion 1.5, from the configs published with it.
    pub fn sd15() -> Self {
        ModelShape {
            unet_channels: vec![320, 640, 1280, 1280],
            unet_heads: vec![8, 8, 8, 0],
            unet_mid_heads: 8,
            unet_layers: 2,
            vae_channels: vec![128, 256, 512, 512],
            vae_attention: true,
            vae_factor: 8,
            text_width: 768,
            text_heads: 12,
            text_intermediate: 3072,
            text_tokens: 77,
        }
    }
}

/// What of a run decides its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunShape {
    pub size: Size,
    /// Passes of the UNet in one batch: 2 with guidance (CFG above 1), else 1.
    pub batch: u64,
    /// Chunks of 75 tokens of the longer prompt.
    pub chunks: u64,
    /// The run's type; `Auto` counts as two bytes.
    pub precision: Precision,
    /// The VAE may run in a wider type.
    pub vae_precision: Precision,
}

impl RunShape {
    /// A run of one picture. `longest` is the length of the longer prompt in bytes.
    pub fn new(size: Size, cfg: f32, longest: usize, precision: Precision) -> Self {
        let batch = if cfg == 1.0 { 1 } else { 2 };
        // About four characters a token; the exact count changes little of the whole.
        let chunks = (longest / (4 * 75) + 1) as u64;
        RunShape { size, batch, chunks, precision, vae_precision: precision }
    }
}

/// How attention holds its scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// The whole matrix, in the run's type throughout.
    Whole,
    /// The whole matrix, with its softmax in f32.
    WholeF32,
    /// So many bytes of scores at a time at most.
    Sliced(Bytes),
    /// Never: a fused kernel.
    Fused,
}

/// The constants of the formulas. "Maps" are tensors of batch × channels × height × width in the run's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    pub attention: Attention,
    /// Copies of the score matrix that live at once: scores and their softmax, each read from one buffer into another.
    /// Measured with burn 0.22.1, f16, 1024×1024, CFG: 22 GB reserved less 3.55 GB weights over 2·8·16384² scores is
    /// 4.3 bytes a score: two copies of two bytes.
    pub score_copies: f64,
    /// Maps around self-attention: residual, normed input, q, k, v, output, projected output.
    pub attention_maps: f64,
    /// Maps in the gated feed-forward: residual and normed input 2, projection 8, both halves split off 4 + 4, product
    /// 4.
    pub feed_forward_maps: f64,
    /// Maps of a resnet's input channels: the joined input (skip and running map), its norm, and the activation of
    /// that.
    pub resnet_input_maps: f64,
    /// Maps of a resnet's output channels: both convolutions' outputs and the shortcut.
    pub resnet_output_maps: f64,
    /// Copies in f32 of a map while its norm's statistics are taken. In f32 runs the cast is none.
    pub norm_f32_maps: f64,
    /// Patches that a convolution lays out before it multiplies, in input maps: 9 where the device does im2col (the
    /// CPU), none where the product gathers them itself.
    pub patch_maps: f64,
    /// What the pools' pages and row padding add to all of it. Pages grow with the largest allocation, so what a page
    /// has left over is lost.
    pub pool_slack: f64,
    /// Small tensors, workspaces of the kernels, the sampler's latents.
    pub floor: Bytes,
}

impl Constants {
    /// burn's stock operations on a GPU.
    pub const STOCK_GPU: Constants = Constants {
        attention: Attention::WholeF32,
        score_copies: 2.0,
        attention_maps: 7.0,
        feed_forward_maps: 22.0,
        resnet_input_maps: 3.0,
        resnet_output_maps: 3.0,
        norm_f32_maps: 2.0,
        patch_maps: 0.0,
        pool_slack: 1.15,
        floor: Bytes::mib(32),
    };

    /// burn's CPU device: no pools, attention in tiles, convolutions by im2col.
    pub const STOCK_CPU: Constants =
        Constants { attention: Attention::Fused, patch_maps: 9.0, pool_slack: 1.0, ..Constants::STOCK_GPU };
}

/// Factors by which this machine's measurements correct the formulas, one for the phase of each part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction(PerPart<f64>);

impl Default for Correction {
    fn default() -> Self {
        Correction(PerPart::from_fn(|_| 1.0))
    }
}

impl Correction {
    /// Learns from one phase: what the formula said (uncorrected) and what the pools held beyond the weights.
    ///
    /// More than forecast counts at once, less only by a quarter: an allocation that fails costs more than one refused.
    /// A factor is kept between a quarter and four, so that one odd measurement cannot spoil the rest.
    pub fn learn(&mut self, part: Part, forecast: Bytes, measured: Bytes) {
        if forecast == Bytes::ZERO || measured == Bytes::ZERO {
            return;
        }
        let seen = measured.share_of(forecast);
        let factor = self.0.get_mut(part);
        let next = if seen > *factor { seen } else { *factor * 0.75 + seen * 0.25 };
        *factor = next.clamp(0.25, 4.0);
    }

    pub fn factor(&self, part: Part) -> f64 {
        self.0.get(part)
    }
}

/// What a run takes, by part: its weights, and the activations of its phase beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    pub weights: PerPart<Bytes>,
    pub activations: PerPart<Bytes>,
}

impl Forecast {
    /// Forecasts a run. `weights` are the parts' own sizes in the run's type ([`weight_bytes`]).
    pub fn new(
        model: &ModelShape,
        run: &RunShape,
        weights: PerPart<Bytes>,
        constants: &Constants,
        correction: &Correction,
    ) -> Self {
        let activations = PerPart::from_fn(|part| {
            Bytes((activations(part, model, run, constants).0 as f64 * correction.factor(part)) as u64)
        });
        Forecast { weights, activations }
    }

    /// Forecasts a run by the kernels as they are. `values` are the numbers in each part's weights.
    pub fn of_run(model: &ModelShape, values: PerPart<u64>, run: &RunShape, gpu: bool) -> Self {
        let constants = if gpu {
            Constants { attention: Attention::Sliced(Bytes(SCORE_BYTES as u64)), ..Constants::STOCK_GPU }
        } else {
            Constants::STOCK_CPU
        };
        let weights = PerPart::from_fn(|part| weight_bytes(values.get(part), run.precision));
        Forecast::new(model, run, weights, &constants, &Correction::default())
    }

    /// The most at once with every part kept.
    pub fn comfortable(&self) -> Bytes {
        let weights: Bytes = Part::ALL.into_iter().map(|part| self.weights.get(part)).sum();
        weights + self.most(|part| self.activations.get(part))
    }

    /// The most at once with only the part at work loaded.
    pub fn least(&self) -> Bytes {
        self.most(|part| self.phase(part))
    }

    /// What one phase takes: the part and its activations.
    pub fn phase(&self, part: Part) -> Bytes {
        self.weights.get(part) + self.activations.get(part)
    }

    /// The most that the rest of a run takes at once from a part's phase on, one part loaded at a time: what must fit
    /// before a paused run goes on.
    pub fn rest(&self, from: Part) -> Bytes {
        self.most(|part| if part >= from { self.phase(part) } else { Bytes::ZERO })
    }

    fn most(&self, of: impl Fn(Part) -> Bytes) -> Bytes {
        Part::ALL.into_iter().map(of).max().unwrap_or_default()
    }
}

/// The exact size of so many weights in the run's type.
pub fn weight_bytes(elements: u64, precision: Precision) -> Bytes {
    Bytes(elements.saturating_mul(precision.size() as u64))
}

/// What a part's phase takes beside its weights, by formula.
pub fn activations(part: Part, model: &ModelShape, run: &RunShape, constants: &Constants) -> Bytes {
    let bytes = match part {
        Part::TextEncoder => encode(model, run, constants),
        Part::Unet => step(model, run, constants),
        Part::VaeDecoder => decode(model, run, constants),
    };
    // Sizes up to 8192×8192 pass 2^53 bytes of scores only far beyond any card; as a float nothing wraps.
    Bytes((bytes * constants.pool_slack) as u64) + constants.floor
}

/// Scores of `heads` matrices of `queries × keys`, in bytes.
fn scores(heads: f64, queries: f64, keys: f64, element: f64, constants: &Constants) -> f64 {
    let whole = |element: f64| constants.score_copies * heads * queries * keys * element;
    match constants.attention {
        Attention::Whole => whole(element),
        Attention::WholeF32 => whole(4.0),
        Attention::Sliced(most) => whole(4.0).min(constants.score_copies * most.0 as f64),
        Attention::Fused => 0.0,
    }
}

/// The text encoder, one layer at a time: the feed-forward's inner tensors and the attention's.
fn encode(model: &ModelShape, run: &RunShape, constants: &Constants) -> f64 {
    let element = run.precision.size() as f64;
    let passes = (run.batch * run.chunks) as f64;
    let tokens = passes * model.text_tokens as f64;
    let around = constants.attention_maps * tokens * model.text_width as f64 * element;
    let one = model.text_tokens as f64;
    let attention = scores(passes * model.text_heads as f64, one, one, element, constants);
    // Before, after, and the sigmoid of quick-GELU.
    let feed_forward = 3.0 * tokens * model.text_intermediate as f64 * element;
    around + attention.max(feed_forward)
}

/// One step: the skip connections, which live through the whole pass, and the widest moment beside them.
fn step(model: &ModelShape, run: &RunShape, constants: &Constants) -> f64 {
    let element = run.precision.size() as f64;
    let batch = run.batch as f64;
    let latent = |side: u32| f64::from(side) / model.vae_factor.max(1) as f64;
    let (mut height, mut width) = (latent(run.size.height()), latent(run.size.width()));
    let context = (run.chunks * model.text_tokens) as f64;
    let norm = if element < 4.0 { constants.norm_f32_maps * 4.0 / element } else { 0.0 };

    let mut skips = 0.0;
    let mut widest: f64 = 0.0;
    let levels = model.unet_channels.len();
    for (level, channels) in model.unet_channels.iter().enumerate() {
        let channels = *channels as f64;
        let map = |channels: f64| batch * channels * height * width * element;
        // Every resnet's output, and the map that enters the level (conv_in's, or the downsampler's).
        skips += map(channels) * (model.unet_layers + 1) as f64;
        // On the way up the first resnet of a level joins the deeper level's map with the deepest skip.
        let deeper = model.unet_channels.get(level + 1).map_or(channels, |c| *c as f64);
        let joined = map(channels + deeper);
        let resnet = joined * (constants.resnet_input_maps + norm + constants.patch_maps)
            + map(channels) * constants.resnet_output_maps;
        let heads = model.unet_heads.get(level).copied().unwrap_or(0);
        let mid_heads = if level + 1 == levels { model.unet_mid_heads } else { 0 };
        let heads = heads.max(mid_heads) as f64;
        let mut moment = resnet;
        if heads > 0.0 {
            let tokens = height * width;
            let own = scores(batch * heads, tokens, tokens, element, constants);
            let cross = scores(batch * heads, tokens, context, element, constants);
            let attention = own.max(cross) + map(channels) * constants.attention_maps;
            moment = moment.max(attention).max(map(channels) * constants.feed_forward_maps);
        }
        widest = widest.max(moment);
        (height, width) = ((height / 2.0).ceil(), (width / 2.0).ceil());
    }
    skips + widest
}

/// The decoder: the middle's attention over the latent's pixels, or the widest resnet of a level, whichever is more.
fn decode(model: &ModelShape, run: &RunShape, constants: &Constants) -> f64 {
    let element = run.vae_precision.size() as f64;
    let latent = |side: u32| f64::from(side) / model.vae_factor.max(1) as f64;
    let tokens = latent(run.size.height()) * latent(run.size.width());
    let norm = if element < 4.0 { constants.norm_f32_maps * 4.0 / element } else { 0.0 };
    let deepest = model.vae_channels.last().copied().unwrap_or(0) as f64;

    let mut widest: f64 = 0.0;
    if model.vae_attention {
        let around = tokens * deepest * element * (constants.attention_maps + norm);
        widest = scores(1.0, tokens, tokens, element, constants) + around;
    }
    let mut input = deepest;
    let mut pixels = tokens;
    for (level, channels) in model.vae_channels.iter().rev().enumerate() {
        let channels = *channels as f64;
        let map = |channels: f64| channels * pixels * element;
        let resnet = map(input) * (constants.resnet_input_maps - 1.0 + norm + constants.patch_maps)
            + map(channels) * constants.resnet_output_maps;
        widest = widest.max(resnet);
        if level + 1 < model.vae_channels.len() {
            pixels *= 4.0;
            // The upsampler: the enlarged map, its patches, and its convolution's output.
            widest = widest.max(channels * pixels * element * (2.25 + constants.patch_maps));
        }
        input = channels;
    }
    widest
}

/// The nearest picture of about the same shape, not larger than `wanted`, of which the need fits.
///
/// Sides go down together in steps of 8 along the longer one. The first that fits is taken; needs need not fall evenly.
pub fn nearest_fit(need_of: impl Fn(Size) -> Bytes, wanted: Size, have: Bytes) -> Option<Size> {
    let (longer, shorter) = (wanted.width().max(wanted.height()), wanted.width().min(wanted.height()));
    let steps = (longer - Size::LEAST) / Size::STEP;
    (0..=steps).map(|step| longer - step * Size::STEP).find_map(|side| {
        let other = (f64::from(shorter) * f64::from(side) / f64::from(longer)).round() as u32;
        let (width, height) = if wanted.width() >= wanted.height() { (side, other) } else { (other, side) };
        let size = Size::nearest(width, height);
        (need_of(size) <= have).then_some(size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(size: &str, batch: u64, precision: Precision) -> RunShape {
        RunShape { size: size.parse().unwrap(), batch, chunks: 1, precision, vae_precision: precision }
    }

    fn gib(part: Part, run: &RunShape, constants: &Constants) -> f64 {
        activations(part, &ModelShape::sd15(), run, constants).as_gib()
    }

    /// Parameter counts of SD1.5's parts; the decoder without the encoder.
    fn weights(precision: Precision) -> PerPart<Bytes> {
        PerPart {
            text_encoder: weight_bytes(123_060_480, precision),
            unet: weight_bytes(859_520_964, precision),
            vae: weight_bytes(49_490_199, precision),
        }
    }

    #[test]
    fn the_step_at_1024_is_what_was_measured_with_stock_attention() {
        // 22 GB reserved less 3.55 GB weights, burn 0.22.1 with its attention in f16.
        let constants = Constants { attention: Attention::Whole, ..Constants::STOCK_GPU };
        let forecast = gib(Part::Unet, &run("1024x1024", 2, Precision::F16), &constants);
        let measured = (22.0 - 3.55) * 1e9 / (1u64 << 30) as f64;
        assert!((forecast / measured - 1.0).abs() < 0.25, "{forecast:.1} GiB for {measured:.1}");
    }

    #[test]
    fn cost_rises_with_size_batch_and_type_and_falls_with_slices() {
        let constants = Constants::STOCK_GPU;
        for part in [Part::Unet, Part::VaeDecoder] {
            let sizes = ["64x64", "256x256", "512x512", "512x768", "1024x1024", "2048x4096", "8192x8192"];
            let costs: Vec<f64> = sizes.iter().map(|s| gib(part, &run(s, 2, Precision::F16), &constants)).collect();
            assert!(costs.windows(2).all(|pair| pair[0] < pair[1] && pair[1].is_finite()), "{part:?} {costs:?}");
        }
        let wide = gib(Part::Unet, &run("512x512", 2, Precision::F32), &constants);
        assert!(wide > gib(Part::Unet, &run("512x512", 2, Precision::F16), &constants));
        let two = gib(Part::Unet, &run("512x512", 2, Precision::F16), &constants);
        let one = gib(Part::Unet, &run("512x512", 1, Precision::F16), &constants);
        assert!((1.8..2.01).contains(&(two / one)), "{two} {one}");
        let slices = Constants { attention: Attention::Sliced(Bytes::mib(256)), ..constants };
        let fused = Constants { attention: Attention::Fused, ..constants };
        let large = run("1024x1024", 2, Precision::F16);
        let [whole, sliced, fused] = [constants, slices, fused].map(|c| gib(Part::Unet, &large, &c));
        assert!(whole > sliced && sliced > fused && sliced < fused + 1.0, "{whole} {sliced} {fused}");
    }

    #[test]
    fn an_artists_usual_shot_is_of_the_known_order() {
        let constants = Constants { attention: Attention::Fused, ..Constants::STOCK_GPU };
        let usual = run("512x768", 2, Precision::F16);
        let step = gib(Part::Unet, &usual, &constants);
        assert!((0.1..1.5).contains(&step), "step {step}");
        let decode = gib(Part::VaeDecoder, &usual, &constants);
        assert!((0.7..3.0).contains(&decode), "decode {decode}");
        let encode = gib(Part::TextEncoder, &usual, &constants);
        assert!(encode < 0.1, "encode {encode}");
    }

    #[test]
    fn sums_of_a_run() {
        let run = run("512x768", 2, Precision::F16);
        let forecast = Forecast::new(
            &ModelShape::sd15(),
            &run,
            weights(Precision::F16),
            &Constants::STOCK_GPU,
            &Correction::default(),
        );
        assert_eq!(forecast.weights.unet, Bytes(1_719_041_928));
        assert!(forecast.comfortable() > forecast.least());
        assert_eq!(forecast.least(), forecast.rest(Part::TextEncoder));
        assert_eq!(forecast.rest(Part::VaeDecoder), forecast.phase(Part::VaeDecoder));
        assert!(forecast.rest(Part::Unet) >= forecast.rest(Part::VaeDecoder));
    }

    #[test]
    fn tiny_and_odd_models_are_forecast_too() {
        let tiny = ModelShape {
            unet_channels: vec![32, 64],
            unet_heads: vec![0, 4],
            unet_mid_heads: 4,
            unet_layers: 1,
            vae_channels: vec![32],
            vae_attention: true,
            vae_factor: 1,
            text_width: 32,
            text_heads: 4,
            text_intermediate: 37,
            text_tokens: 77,
        };
        let empty = ModelShape { unet_channels: vec![], vae_channels: vec![], vae_factor: 0, ..tiny.clone() };
        for model in [tiny, empty] {
            for part in Part::ALL {
                let bytes = activations(part, &model, &run("64x64", 1, Precision::F32), &Constants::STOCK_CPU);
                assert!(bytes >= Constants::STOCK_CPU.floor && bytes < Bytes::gib(2), "{part:?} {bytes}");
            }
        }
    }

    #[test]
    fn measurements_correct_quickly_upwards_and_slowly_downwards() {
        let mut correction = Correction::default();
        correction.learn(Part::Unet, Bytes::gib(2), Bytes::gib(3));
        assert_eq!(correction.factor(Part::Unet), 1.5);
        correction.learn(Part::Unet, Bytes::gib(2), Bytes::gib(1));
        assert_eq!(correction.factor(Part::Unet), 1.25);
        correction.learn(Part::Unet, Bytes::gib(1), Bytes::gib(100));
        assert_eq!(correction.factor(Part::Unet), 4.0);
        correction.learn(Part::Unet, Bytes::ZERO, Bytes::gib(1));
        assert_eq!((correction.factor(Part::Unet), correction.factor(Part::VaeDecoder)), (4.0, 1.0));
    }

    #[test]
    fn the_nearest_fit_keeps_the_shape_and_fits() {
        let need = |size: Size| Bytes(size.pixels() * 1000);
        let wanted: Size = "1024x1536".parse().unwrap();
        let fit = nearest_fit(need, wanted, need("512x768".parse().unwrap())).unwrap();
        assert_eq!(fit.to_string(), "512x768");
        assert_eq!(nearest_fit(need, wanted, need(wanted)), Some(wanted));
        assert_eq!(nearest_fit(need, wanted, Bytes(1000)), None);
        let long: Size = "8192x64".parse().unwrap();
        let fit = nearest_fit(need, long, need("4096x64".parse().unwrap())).unwrap();
        assert_eq!(fit.to_string(), "4096x64");
    }
}
