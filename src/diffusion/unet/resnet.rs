//! The residual block of UNet and VAE.

use crate::diffusion::config::Activation;
use crate::diffusion::layers::{Conv2d, GroupNorm, Linear, Loader, watched};
use crate::diffusion::{DiffusionError, Watch};
use burn::tensor::Tensor;

/// Norm, activation, convolution, twice, around a shortcut; the timestep's vector is added in between where there is one.
#[derive(Debug)]
pub struct ResnetBlock2D {
    norm1: GroupNorm,
    conv1: Conv2d,
    time_emb_proj: Option<Linear>,
    norm2: GroupNorm,
    conv2: Conv2d,
    conv_shortcut: Option<Conv2d>,
    act: Activation,
}

impl ResnetBlock2D {
    pub fn load(loader: &Loader, groups: usize, eps: f64, act: Activation) -> Result<Self, DiffusionError> {
        let has = |name: &str| loader.has(&format!("{name}.weight"));
        Ok(ResnetBlock2D {
            norm1: loader.group_norm("norm1", groups, eps)?,
            conv1: loader.conv2d("conv1", 1, Conv2d::SAME)?,
            time_emb_proj: if has("time_emb_proj") { Some(loader.linear("time_emb_proj")?) } else { None },
            norm2: loader.group_norm("norm2", groups, eps)?,
            conv2: loader.conv2d("conv2", 1, Conv2d::SAME)?,
            conv_shortcut: if has("conv_shortcut") {
                Some(loader.conv2d("conv_shortcut", 1, Conv2d::NONE)?)
            } else {
                None
            },
            act,
        })
    }

    /// `[n, in, h, w]` to `[n, out, h, w]`; `time` is `[1, width]`.
    pub fn forward(&self, x: Tensor<4>, time: Option<&Tensor<2>>, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
        let h = watched::normalise(&self.norm1, Some(self.act), x.clone(), watch)?;
        let mut h = watched::convolve(&self.conv1, h, watch)?;
        if let (Some(proj), Some(time)) = (&self.time_emb_proj, time) {
            let channels = proj.width_out();
            h = h + proj.forward(time.clone()).reshape([1, channels, 1, 1]);
        }
        let h = watched::normalise(&self.norm2, Some(self.act), h, watch)?;
        let h = watched::convolve(&self.conv2, h, watch)?;
        let shortcut = match &self.conv_shortcut {
            Some(conv) => watched::convolve(conv, x, watch)?,
            None => x,
        };
        Ok(shortcut + h)
    }
}
