//! What a person chooses besides the shot itself: model, VAE, device, precision, and where pictures go.

use super::{Bytes, Size};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The checkpoint to use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelChoice {
    /// A single `.safetensors` file or a diffusers folder.
    Path(PathBuf),
    /// The small model inside the program, for a first picture without a checkpoint.
    Pocket,
    /// Seeded random weights at full SD1.5 size: for benchmarks and memory tests. Its pictures are noise.
    RandomSd15,
}

/// Endings that checkpoints go by, and that are no part of their names.
const FILE_ENDINGS: [&str; 6] = ["safetensors", "sft", "ckpt", "pt", "pth", "bin"];

impl ModelChoice {
    /// The model where none is chosen; `None` where it was left out of the build.
    pub const BUILT_IN: Option<ModelChoice> = if cfg!(feature = "pocket") { Some(ModelChoice::Pocket) } else { None };

    /// The sizes to offer for it.
    pub fn sizes(&self) -> &'static [Size] {
        match self {
            ModelChoice::Pocket => &Size::SMALL_PRESETS,
            ModelChoice::Path(_) | ModelChoice::RandomSd15 => &Size::PRESETS,
        }
    }

    /// The size of a picture for which none was chosen.
    pub fn usual_size(&self) -> Size {
        match self {
            ModelChoice::Pocket => Size::SMALL,
            ModelChoice::Path(_) | ModelChoice::RandomSd15 => Size::default(),
        }
    }

    /// The name by which pictures' texts and the window call it: the file's stem, the folder's name, `Pocket`, or
    /// `random-sd15`.
    pub fn name(&self) -> String {
        match self {
            ModelChoice::Pocket => "Pocket".to_owned(),
            ModelChoice::RandomSd15 => "random-sd15".to_owned(),
            ModelChoice::Path(path) => {
                // Told from the name alone: the window asks often, and a folder may have a dot in its name.
                let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
                let is_file = ending.is_some_and(|ending| FILE_ENDINGS.contains(&ending.as_str()));
                let name = if is_file { path.file_stem() } else { path.file_name() };
                name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
        }
    }
}

/// Which VAE decodes the latent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VaeChoice {
    /// The checkpoint's own, or, where it has none, an ft-mse VAE found beside it.
    #[default]
    Automatic,
    Path(PathBuf),
}

/// Where the model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// The first that passes its probe: CUDA, then Vulkan, then CPU.
    #[default]
    Auto,
    Cuda(usize),
    Vulkan(usize),
    Cpu,
}

/// The type of weights and activations. Norm statistics, softmax and sampling are always f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f16 on a GPU that supports it, f32 on the CPU.
    #[default]
    Auto,
    F32,
    F16,
    Bf16,
}

impl Precision {
    pub fn label(self) -> &'static str {
        match self {
            Precision::Auto => "auto",
            Precision::F32 => "f32",
            Precision::F16 => "f16",
            Precision::Bf16 => "bf16",
        }
    }

    /// Bytes of one element; `Auto` counts as 2.
    pub fn size(self) -> usize {
        if self == Precision::F32 { 4 } else { 2 }
    }
}

/// The format pictures are written in. All three carry their settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl ImageFormat {
    pub fn extension(self) -> &'static str {
        match self {
            ImageFormat::Png => "png",
            ImageFormat::Jpeg => "jpg",
            ImageFormat::Webp => "webp",
        }
    }
}

/// Where finished pictures are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputPlan {
    /// Into a folder, named by a pattern with `[seed]`, `[prompt]`, `[date]`, `[time]`, `[model]`, `[sampler]`, `[steps]`,
    /// `[cfg]`, `[width]`, `[height]` and `[number]`; an existing file is never overwritten.
    Folder { folder: PathBuf, pattern: String, format: ImageFormat },
    /// To this very file; for several pictures `-2`, `-3` … go before the ending.
    File(PathBuf),
    /// Nowhere: the picture is only shown.
    Keep,
}

/// Limits on memory that a person sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryLimits {
    /// The share of the card in use, by whomever, at which a job stops to make room. 0.5 to 0.98.
    pub pause_at: f64,
    /// A ceiling for this program alone.
    pub budget: Option<Bytes>,
    /// Clean by itself after so many images; `None` is off.
    pub clean_every: Option<u32>,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        MemoryLimits { pause_at: 0.90, budget: None, clean_every: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_called_by_its_stem_and_a_folder_by_its_whole_name() {
        let name = |path: &str| ModelChoice::Path(PathBuf::from(path)).name();
        assert_eq!(name("/models/photon_v1.safetensors"), "photon_v1");
        assert_eq!(name("/models/Photon.v1.SAFETENSORS"), "Photon.v1");
        assert_eq!(name("/models/photon-v1.5"), "photon-v1.5");
        assert_eq!(name("/models/photon-v1.5/"), "photon-v1.5");
        assert_eq!(ModelChoice::RandomSd15.name(), "random-sd15");
        assert_eq!(ModelChoice::Pocket.name(), "Pocket");
    }

    #[test]
    fn each_model_offers_the_size_it_usually_makes() {
        for model in [ModelChoice::Pocket, ModelChoice::RandomSd15, ModelChoice::Path("m".into())] {
            assert!(model.sizes().contains(&model.usual_size()), "{model:?}");
        }
    }
}
