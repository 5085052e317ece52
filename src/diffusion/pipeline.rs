//! From words to pixels, as plain functions over loaded parts: encode, predict noise, decode, preview.
//!
//! The denoising loop is not here: the engine writes it out, since what happens between two steps is its business. Latents
//! and predictions cross to the host once a call, where the samplers' arithmetic runs in f32; a call of the UNet costs
//! thousands of times as much.

use super::config::PredictionType;
use super::layers::float_type;
use super::prompt::{Pairing, PromptChunks, apply_weights, pair_chunks};
use super::samplers::{ModelInput, guidance};
use super::text_encoder::TextEncoder;
use super::unet::UNet;
use super::vae::VaeDecoder;
use super::{DiffusionError, Watch};
use crate::base::{Precision, RgbImage};
use burn::tensor::{DType, Device, Tensor, TensorData};
use std::sync::Arc;

/// A prompt as the UNet takes it, on the host so that it outlives every device clean-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditioning {
    /// `[tokens, width]`, row-major.
    values: Vec<f32>,
    tokens: usize,
    width: usize,
    /// Of how many chunks the tokens are.
    chunks: usize,
}

impl Conditioning {
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// `[1, times·tokens, width]` on the device. Saying everything equally often leaves attention as it was.
    fn upload(&self, times: usize, device: &Device, precision: Precision) -> Tensor<3> {
        let flat = upload(&self.values.repeat(times), device, precision);
        flat.reshape([1, times * self.tokens, self.width])
    }
}

/// Encodes each chunk by itself, weighs its tokens, and lays the chunks one after another.
///
/// # Errors
/// When a token has no row in the encoder's table, the device fails, or the watch says stop.
pub fn encode(
    encoder: &TextEncoder,
    chunks: &PromptChunks,
    clip_skip: u32,
    watch: Watch,
) -> Result<Conditioning, DiffusionError> {
    let mut all = Conditioning { values: Vec::new(), tokens: 0, width: 0, chunks: chunks.ids.len() };
    for (ids, weights) in chunks.ids.iter().zip(&chunks.weights) {
        let encoded = encoder.forward(ids, clip_skip as usize, watch)?;
        let [_, tokens, width] = encoded.dims();
        let mut values = download(encoded)?;
        apply_weights(&mut values, weights, width);
        all.values.extend(values);
        all.tokens += tokens;
        all.width = width;
    }
    Ok(all)
}

/// Up to here, prompt and negative prompt of different lengths are repeated until they are equally long. Beyond, two passes
/// cost less than the longer attention.
const MOST_CHUNKS: usize = 12;

/// The UNet with what stays the same during a run.
pub struct Denoiser {
    unet: Arc<UNet>,
    device: Device,
    precision: Precision,
    passes: Passes,
    cfg: f32,
    prediction: PredictionType,
    /// `[channels, height, width]` of the latent.
    shape: [usize; 3],
}

/// How the prompt and the negative prompt go through the UNet.
enum Passes {
    /// CFG 1: the prompt alone.
    Single(Tensor<3>),
    /// Both in one batch: `[2, tokens, width]`, the prompt first.
    Batched(Tensor<3>),
    /// One after the other, since they differ in their number of chunks, and padding would change what attention sees.
    Apart(Box<[Tensor<3>; 2]>),
}

impl Denoiser {
    /// `negative` is not looked at where `cfg` is 1. `shape` is `[channels, height, width]` of the latent.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        unet: Arc<UNet>,
        device: &Device,
        precision: Precision,
        prompt: &Conditioning,
        negative: &Conditioning,
        cfg: f32,
        prediction: PredictionType,
        shape: [usize; 3],
    ) -> Self {
        let up = |conditioning: &Conditioning, times| conditioning.upload(times, device, precision);
        let passes = match pair_chunks(prompt.chunks, negative.chunks, MOST_CHUNKS) {
            _ if cfg == 1.0 => Passes::Single(up(prompt, 1)),
            Pairing::Together { prompt: p, negative: n } => {
                Passes::Batched(Tensor::cat(vec![up(prompt, p), up(negative, n)], 0))
            }
            Pairing::Apart => Passes::Apart(Box::new([up(prompt, 1), up(negative, 1)])),
        };
        Denoiser { unet, device: device.clone(), precision, passes, cfg, prediction, shape }
    }

    /// The guided prediction of the noise in a latent `[channels, height, width]`.
    ///
    /// # Errors
    /// When the device fails or the watch says stop.
    pub fn predict(&self, input: &ModelInput, watch: Watch) -> Result<Vec<f32>, DiffusionError> {
        let [c, h, w] = self.shape;
        let latent = upload(input.latent, &self.device, self.precision).reshape([1, c, h, w]);
        let call = |latent: Tensor<4>, context: &Tensor<3>| {
            download(self.unet.forward(latent, input.timestep, context.clone(), watch)?)
        };
        let mut predicted = match &self.passes {
            Passes::Single(prompt) => call(latent, prompt)?,
            Passes::Batched(both) => {
                let mut prompt = call(Tensor::cat(vec![latent.clone(), latent], 0), both)?;
                let negative = prompt.split_off(prompt.len() / 2);
                guidance::combine(&mut prompt, &negative, self.cfg);
                prompt
            }
            Passes::Apart(both) => {
                let [prompt, negative] = both.as_ref();
                let mut predicted = call(latent.clone(), prompt)?;
                guidance::combine(&mut predicted, &call(latent, negative)?, self.cfg);
                predicted
            }
        };
        if self.prediction == PredictionType::V {
            guidance::epsilon_from_v(&mut predicted, input);
        }
        Ok(predicted)
    }
}

/// Decodes a latent `[channels, height, width]` to pixels.
///
/// # Errors
/// [`DiffusionError::PictureNotFinite`] when a value is NaN or infinite, which f16 VAEs are known for: the caller decodes
/// again in a wider type. Otherwise when the device fails or the watch says stop.
pub fn decode(
    vae: &VaeDecoder,
    latent: &[f32],
    shape: [usize; 3],
    device: &Device,
    precision: Precision,
    watch: Watch,
) -> Result<RgbImage, DiffusionError> {
    let [c, h, w] = shape;
    let latent = upload(latent, device, precision).reshape([1, c, h, w]);
    let decoded = vae.forward(latent, watch)?;
    let [_, channels, height, width] = decoded.dims();
    let values = download(decoded)?;
    if values.iter().any(|value| !value.is_finite()) {
        return Err(DiffusionError::PictureNotFinite);
    }
    let plane = height * width;
    let mut pixels = vec![0u8; 3 * plane];
    for channel in 0..3 {
        let from = values.get(channel * plane..(channel + 1) * plane).unwrap_or_default();
        for (pixel, value) in pixels.chunks_exact_mut(3).zip(from) {
            pixel[channel] = ((value * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0).round() as u8;
        }
    }
    RgbImage::new(width, height, pixels).ok_or_else(|| DiffusionError::Shape {
        name: "decoded picture".to_owned(),
        found: vec![channels, height, width],
        expected: "[3, height, width]".to_owned(),
    })
}

/// A rough look at a clean latent `[4, h, w]`: one pixel for each of its cells; `None` if it has other than 4 channels.
///
/// The map from SD1's four channels to RGB was fitted and published by "keturn" on the Hugging Face forum in 2022
/// ("Decoding latents to RGB without upscaling").
pub fn preview(latent: &[f32], shape: [usize; 3]) -> Option<RgbImage> {
    const TO_RGB: [[f32; 3]; 4] =
        [[0.298, 0.207, 0.208], [0.187, 0.286, 0.173], [-0.158, 0.189, 0.264], [-0.184, -0.271, -0.473]];
    let [channels, h, w] = shape;
    let plane = h * w;
    if channels != TO_RGB.len() || latent.len() != channels * plane {
        return None;
    }
    let mut pixels = Vec::with_capacity(3 * plane);
    for cell in 0..plane {
        for colour in 0..3 {
            let mixed: f32 = TO_RGB.iter().enumerate().map(|(c, row)| latent[c * plane + cell] * row[colour]).sum();
            // NaN becomes 0 in this conversion.
            pixels.push(((mixed * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0) as u8);
        }
    }
    RgbImage::new(w, h, pixels)
}

/// Host values as one dense row on the device, in the run's type.
fn upload(values: &[f32], device: &Device, precision: Precision) -> Tensor<1> {
    let data = TensorData::new(values.to_vec(), [values.len()]);
    Tensor::<1>::from_data(data, (device, DType::F32)).cast(float_type(precision))
}

/// Waits for the device and brings the values back as f32, with any error of the work that was queued.
fn download<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, DiffusionError> {
    let data = tensor.cast(DType::F32).try_into_data()?;
    data.try_into_vec::<f32>().map_err(|error| DiffusionError::Device(format!("{error:?}")))
}
