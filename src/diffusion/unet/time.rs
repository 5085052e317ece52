//! How the UNet is told which timestep it looks at.

use crate::diffusion::DiffusionError;
use crate::diffusion::config::{Activation, UNetConfig};
use crate::diffusion::layers::{Linear, Loader};
use burn::tensor::{DType, Tensor, TensorData};

/// Sinusoids of the timestep (Vaswani et al. 2017, section 3.5) and two linear layers.
#[derive(Debug)]
pub struct TimeEmbedding {
    linear_1: Linear,
    linear_2: Linear,
    act: Activation,
    width: usize,
    flip_sin_to_cos: bool,
    freq_shift: f64,
}

impl TimeEmbedding {
    pub fn load(config: &UNetConfig, loader: &Loader) -> Result<Self, DiffusionError> {
        let at = loader.at("time_embedding");
        Ok(TimeEmbedding {
            linear_1: at.linear("linear_1")?,
            linear_2: at.linear("linear_2")?,
            act: config.activation,
            width: config.block_out_channels.first().copied().unwrap_or_default(),
            flip_sin_to_cos: config.flip_sin_to_cos,
            freq_shift: config.freq_shift,
        })
    }

    /// `[1, 4·base]` on the device and in the type of `like`, with the activation applied, as every resnet takes it.
    pub fn forward(&self, timestep: f32, like: &Tensor<4>) -> Tensor<2> {
        let sinusoids = sinusoids(timestep, self.width, self.flip_sin_to_cos, self.freq_shift);
        let x = Tensor::<2>::from_data(TensorData::new(sinusoids, [1, self.width]), (&like.device(), DType::F32));
        let x = self.linear_1.forward(x.cast(like.dtype()));
        self.act.apply(self.linear_2.forward(self.act.apply(x)))
    }
}

/// `width` values: sines and cosines of the timestep at geometric frequencies from 1 down to 1/10000.
fn sinusoids(timestep: f32, width: usize, flip_sin_to_cos: bool, freq_shift: f64) -> Vec<f32> {
    let half = width / 2;
    let angle = |i: usize| {
        let exponent = -(10_000f64.ln()) * i as f64 / (half as f64 - freq_shift);
        f64::from(timestep) * exponent.exp()
    };
    let sines = (0..half).map(|i| angle(i).sin() as f32);
    let cosines = (0..half).map(|i| angle(i).cos() as f32);
    let mut values: Vec<f32> =
        if flip_sin_to_cos { cosines.chain(sines).collect() } else { sines.chain(cosines).collect() };
    values.resize(width, 0.0);
    values
}
