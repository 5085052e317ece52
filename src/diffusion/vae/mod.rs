//! The VAE's decoder: latent in, pixels out. Its encoder is recognised in files and serves later.
//!
//! Fields carry the names of diffusers' AutoencoderKL.

use super::config::{Activation, VaeConfig};
use super::layers::{Conv2d, GroupNorm, Linear, Loader};
use super::layers::{merge_heads, split_heads, upsample_nearest, watched};
use super::unet::ResnetBlock2D;
use super::{DiffusionError, Watch};
use burn::tensor::Tensor;

const EPS: f64 = VaeConfig::NORM_EPS;

/// The decoder, loaded.
#[derive(Debug)]
pub struct VaeDecoder {
    post_quant_conv: Option<Conv2d>,
    conv_in: Conv2d,
    mid_resnet_0: ResnetBlock2D,
    mid_attention: Option<MidAttention>,
    mid_resnet_1: ResnetBlock2D,
    up_blocks: Vec<UpDecoderBlock>,
    conv_norm_out: GroupNorm,
    act: Activation,
    conv_out: Conv2d,
    scaling_factor: f64,
    shift_factor: f64,
}

#[derive(Debug)]
struct UpDecoderBlock {
    resnets: Vec<ResnetBlock2D>,
    upsample: Option<Conv2d>,
}

/// One head over all pixels.
#[derive(Debug)]
struct MidAttention {
    group_norm: GroupNorm,
    to_q: Linear,
    to_k: Linear,
    to_v: Linear,
    to_out: Linear,
}

impl VaeDecoder {
    pub fn load(config: &VaeConfig, loader: &Loader) -> Result<Self, DiffusionError> {
        let act = config.activation;
        let groups = config.norm_num_groups;
        let decoder = loader.at("decoder");
        let mid = decoder.at("mid_block");
        let resnet = |at: &Loader| ResnetBlock2D::load(at, groups, EPS, act);
        let up = |index: usize| {
            let at = decoder.at("up_blocks").at(index);
            let resnets = (0..=config.layers_per_block).map(|i| resnet(&at.at("resnets").at(i)));
            Ok(UpDecoderBlock {
                resnets: resnets.collect::<Result<_, _>>()?,
                upsample: match at.has("upsamplers.0.conv.weight") {
                    true => Some(at.conv2d("upsamplers.0.conv", 1, Conv2d::SAME)?),
                    false => None,
                },
            })
        };
        Ok(VaeDecoder {
            post_quant_conv: match loader.has("post_quant_conv.weight") {
                true => Some(loader.conv2d("post_quant_conv", 1, Conv2d::NONE)?),
                false => None,
            },
            conv_in: decoder.conv2d("conv_in", 1, Conv2d::SAME)?,
            mid_resnet_0: resnet(&mid.at("resnets.0"))?,
            mid_attention: match mid.has("attentions.0.to_q.weight") {
                true => Some(MidAttention::load(&mid.at("attentions.0"), groups)?),
                false => None,
            },
            mid_resnet_1: resnet(&mid.at("resnets.1"))?,
            up_blocks: (0..config.block_out_channels.len()).map(up).collect::<Result<_, DiffusionError>>()?,
            conv_norm_out: decoder.group_norm("conv_norm_out", groups, EPS)?,
            act,
            conv_out: decoder.conv2d("conv_out", 1, Conv2d::SAME)?,
            scaling_factor: config.scaling_factor,
            shift_factor: config.shift_factor,
        })
    }

    /// A latent as the sampler leaves it, `[n, 4, h, w]`, to pixels `[n, 3, 8h, 8w]` in about −1 to 1.
    pub fn forward(&self, latent: Tensor<4>, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
        let mut x = latent / self.scaling_factor + self.shift_factor;
        if let Some(conv) = &self.post_quant_conv {
            x = conv.forward(x);
        }
        x = watched::convolve(&self.conv_in, x, watch)?;
        x = self.mid_resnet_0.forward(x, None, watch)?;
        if let Some(attention) = &self.mid_attention {
            x = attention.forward(x, watch)?;
        }
        x = self.mid_resnet_1.forward(x, None, watch)?;
        for block in &self.up_blocks {
            for resnet in &block.resnets {
                x = resnet.forward(x, None, watch)?;
            }
            if let Some(conv) = &block.upsample {
                watch.check()?;
                let [_, _, h, w] = x.dims();
                x = watched::convolve(conv, upsample_nearest(x, [2 * h, 2 * w]), watch)?;
            }
        }
        x = watched::normalise(&self.conv_norm_out, Some(self.act), x, watch)?;
        watched::convolve(&self.conv_out, x, watch)
    }
}

impl MidAttention {
    fn load(loader: &Loader, groups: usize) -> Result<Self, DiffusionError> {
        Ok(MidAttention {
            group_norm: loader.group_norm("group_norm", groups, EPS)?,
            to_q: loader.linear("to_q")?,
            to_k: loader.linear("to_k")?,
            to_v: loader.linear("to_v")?,
            to_out: loader.linear("to_out.0")?,
        })
    }

    /// `[n, c, h, w]` to the same shape.
    fn forward(&self, x: Tensor<4>, watch: Watch) -> Result<Tensor<4>, DiffusionError> {
        let [n, c, h, w] = x.dims();
        // [n, h·w, c]
        let normed = watched::normalise(&self.group_norm, None, x.clone(), watch)?;
        let tokens = normed.permute([0, 2, 3, 1]).reshape([n, h * w, c]);
        let one_head = |proj: &Linear| split_heads(proj.forward(tokens.clone()), 1);
        let attended = watched::attention(one_head(&self.to_q), one_head(&self.to_k), one_head(&self.to_v), watch)?;
        let out = self.to_out.forward(merge_heads(attended));
        Ok(x + out.reshape([n, h, w, c]).permute([0, 3, 1, 2]))
    }
}
