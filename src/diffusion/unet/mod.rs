//! The UNet that predicts the noise in a latent.
//!
//! Fields carry the names of diffusers' UNet2DConditionModel. [`UNet::forward`] is a numbered walk; the blocks it walks are
//! in `blocks`, what they are built of in `resnet` and `transformer`.

mod blocks;
mod resnet;
mod time;
mod transformer;

pub use resnet::ResnetBlock2D;

use super::config::{Activation, UNetConfig};
use super::layers::{Conv2d, GroupNorm, Loader, watched};
use super::{DiffusionError, Watch};
use blocks::{DownBlock, MidBlock, UpBlock};
use burn::tensor::Tensor;
use time::TimeEmbedding;

/// The UNet, loaded.
#[derive(Debug)]
pub struct UNet {
    time_embedding: TimeEmbedding,
    conv_in: Conv2d,
    down_blocks: Vec<DownBlock>,
    mid_block: MidBlock,
    up_blocks: Vec<UpBlock>,
    conv_norm_out: GroupNorm,
    conv_act: Activation,
    conv_out: Conv2d,
}

impl UNet {
    pub fn load(config: &UNetConfig, loader: &Loader) -> Result<Self, DiffusionError> {
        let levels = config.levels();
        Ok(UNet {
            time_embedding: TimeEmbedding::load(config, loader)?,
            conv_in: loader.conv2d("conv_in", 1, Conv2d::SAME)?,
            down_blocks: (0..levels).map(|i| DownBlock::load(config, i, loader)).collect::<Result<_, _>>()?,
            mid_block: MidBlock::load(config, loader)?,
            up_blocks: (0..levels).map(|i| UpBlock::load(config, i, loader)).collect::<Result<_, _>>()?,
            conv_norm_out: loader.group_norm("conv_norm_out", config.norm_num_groups, config.norm_eps)?,
            conv_act: config.activation,
            conv_out: loader.conv2d("conv_out", 1, Conv2d::SAME)?,
        })
    }

    /// Latents `[n, in, h, w]` at `timestep` (0 to 999, fractions allowed) with a context `[n, tokens, width]` to the
    /// predicted noise `[n, out, h, w]` (or v, where the checkpoint predicts v).
    pub fn forward(
        &self,
        latent: Tensor<4>,
        timestep: f32,
        context: Tensor<3>,
        watch: Watch,
    ) -> Result<Tensor<4>, DiffusionError> {
        // 1. The timestep becomes a vector that every resnet adds: [1, 4·base]
        let time = self.time_embedding.forward(timestep, &latent);

        // 2. In
        let mut x = watched::convolve(&self.conv_in, latent, watch)?;

        // 3. Down, keeping each stage's output for the way up
        let mut skips = vec![x.clone()];
        for block in &self.down_blocks {
            x = block.forward(x, &time, &context, &mut skips, watch)?;
        }

        // 4. The bottom
        x = self.mid_block.forward(x, &time, &context, watch)?;

        // 5. Up, joining what was kept
        for block in &self.up_blocks {
            x = block.forward(x, &time, &context, &mut skips, watch)?;
        }

        // 6. Out
        let x = watched::normalise(&self.conv_norm_out, Some(self.conv_act), x, watch)?;
        watched::convolve(&self.conv_out, x, watch)
    }
}

#[cfg(test)]
mod tests;
