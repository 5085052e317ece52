//! The blocks of the UNet: down, bottom, up. Whether a block has transformers is said by its type in the configuration.

use super::resnet::ResnetBlock2D;
use super::transformer::Transformer2D;
use crate::diffusion::config::UNetConfig;
use crate::diffusion::layers::{Conv2d, Loader, upsample_nearest, watched};
use crate::diffusion::{DiffusionError, Watch};
use burn::tensor::Tensor;

/// A resnet, and the transformer after it where the block has any.
#[derive(Debug)]
struct Stage {
    resnet: ResnetBlock2D,
    attention: Option<Transformer2D>,
}

impl Stage {
    fn forward(
        &self,
        x: Tensor<4>,
        time: &Tensor<2>,
        context: &Tensor<3>,
        watch: Watch,
    ) -> Result<Tensor<4>, DiffusionError> {
        let x = self.resnet.forward(x, Some(time), watch)?;
        match &self.attention {
            Some(attention) => attention.forward(x, context, watch),
            None => Ok(x),
        }
    }
}

/// `count` stages below `loader`, at level `level` (0 is the widest picture).
fn stages(
    config: &UNetConfig,
    level: usize,
    count: usize,
    crossed: bool,
    loader: &Loader,
) -> Result<Vec<Stage>, DiffusionError> {
    let stage = |index: usize| {
        let resnet = loader.at("resnets").at(index);
        let attention = loader.at("attentions").at(index);
        Ok(Stage {
            resnet: ResnetBlock2D::load(&resnet, config.norm_num_groups, config.norm_eps, config.activation)?,
            attention: match crossed {
                true => Some(Transformer2D::load(config, level, &attention)?),
                false => None,
            },
        })
    };
    (0..count).map(stage).collect()
}

#[derive(Debug)]
pub struct DownBlock {
    stages: Vec<Stage>,
    downsample: Option<Conv2d>,
}

impl DownBlock {
    pub fn load(config: &UNetConfig, level: usize, loader: &Loader) -> Result<Self, DiffusionError> {
        let at = loader.at("down_blocks").at(level);
        let crossed = config.down_attention.get(level).copied().unwrap_or(false);
        // Padding 0 stands for one row and column of zeros after the picture only.
        let padding = match config.downsample_padding {
            0 => [(0, 1), (0, 1)],
            n => [(n, n), (n, n)],
        };
        let downsample = match at.has("downsamplers.0.conv.weight") {
            true => Some(at.conv2d("downsamplers.0.conv", 2, padding)?),
            false => None,
        };
        Ok(DownBlock { stages: stages(config, level, config.layers_per_block, crossed, &at)?, downsample })
    }

    /// `[n, in, h, w]` to `[n, out, h/2, w/2]`, pushing what the way up joins.
    pub fn forward(
        &self,
        mut x: Tensor<4>,
        time: &Tensor<2>,
        context: &Tensor<3>,
        skips: &mut Vec<Tensor<4>>,
        watch: Watch,
    ) -> Result<Tensor<4>, DiffusionError> {
        for stage in &self.stages {
            x = stage.forward(x, time, context, watch)?;
            skips.push(x.clone());
        }
        if let Some(conv) = &self.downsample {
            x = watched::convolve(conv, x, watch)?;
            skips.push(x.clone());
        }
        Ok(x)
    }
}

#[derive(Debug)]
pub struct MidBlock {
    first: Stage,
    last: ResnetBlock2D,
}

impl MidBlock {
    pub fn load(config: &UNetConfig, loader: &Loader) -> Result<Self, DiffusionError> {
        let at = loader.at("mid_block");
        let level = config.levels().saturating_sub(1);
        let attention = at.at("attentions.0");
        let resnet =
            |name: &str| ResnetBlock2D::load(&at.at(name), config.norm_num_groups, config.norm_eps, config.activation);
        Ok(MidBlock {
            first: Stage {
                resnet: resnet("resnets.0")?,
                attention: Some(Transformer2D::load(config, level, &attention)?),
            },
            last: resnet("resnets.1")?,
        })
    }

    pub fn forward(
        &self,
        x: Tensor<4>,
        time: &Tensor<2>,
        context: &Tensor<3>,
        watch: Watch,
    ) -> Result<Tensor<4>, DiffusionError> {
        let x = self.first.forward(x, time, context, watch)?;
        self.last.forward(x, Some(time), watch)
    }
}

#[derive(Debug)]
pub struct UpBlock {
    stages: Vec<Stage>,
    upsample: Option<Conv2d>,
}

impl UpBlock {
    /// Up block `index` works at the level that mirrors it: the first one at the smallest picture.
    pub fn load(config: &UNetConfig, index: usize, loader: &Loader) -> Result<Self, DiffusionError> {
        let at = loader.at("up_blocks").at(index);
        let level = config.levels().saturating_sub(1 + index);
        let crossed = config.up_attention.get(index).copied().unwrap_or(false);
        let upsample = match at.has("upsamplers.0.conv.weight") {
            true => Some(at.conv2d("upsamplers.0.conv", 1, Conv2d::SAME)?),
            false => None,
        };
        Ok(UpBlock { stages: stages(config, level, config.layers_per_block + 1, crossed, &at)?, upsample })
    }

    /// `[n, in, h, w]` to `[n, out, 2h, 2w]`, taking from `skips` what each stage joins.
    pub fn forward(
        &self,
        mut x: Tensor<4>,
        time: &Tensor<2>,
        context: &Tensor<3>,
        skips: &mut Vec<Tensor<4>>,
        watch: Watch,
    ) -> Result<Tensor<4>, DiffusionError> {
        for stage in &self.stages {
            if let Some(skip) = skips.pop() {
                x = Tensor::cat(vec![x, skip], 1);
            }
            x = stage.forward(x, time, context, watch)?;
        }
        if let Some(conv) = &self.upsample {
            let [_, _, h, w] = x.dims();
            // An odd size was rounded up on the way down, so the skip that comes next says how large the picture is here.
            let size = skips.last().map_or([2 * h, 2 * w], |skip| {
                let [_, _, h, w] = skip.dims();
                [h, w]
            });
            x = watched::convolve(conv, upsample_nearest(x, size), watch)?;
        }
        Ok(x)
    }
}
