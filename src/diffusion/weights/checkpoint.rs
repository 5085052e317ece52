//! A checkpoint as the model sees it: three parts, each a config and a source of tensors.
//!
//! Opening one reads headers and configs only, and demands that every tensor the model needs is there with the right
//! shape, so that a refused file costs no time and no memory. Weights are read later, one tensor at a time. The engine
//! opens it; the pipeline's loaders read from its parts.

use super::archive::Archive;
use super::assemble::{Collected, Entry};
use super::error::WeightError;
use super::folder;
use super::inspect::{self, Analysis, Family, Found, KeyList, PartKind, PredictionSource};
use super::random::{RandomPart, RandomSd15};
use super::{HostTensor, TensorSource};
use crate::base::{ModelChoice, Precision, VaeChoice};
use crate::diffusion::config::{SchedulerConfig, TextEncoderConfig, TokenizerFiles, UNetConfig, VaeConfig};
use crate::diffusion::place::Place;
use crate::diffusion::pocket;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One part of the model.
#[derive(Clone, Debug)]
pub struct Part<C> {
    pub config: C,
    pub tensors: PartTensors,
}

/// Where a part's tensors come from.
#[derive(Clone, Debug)]
pub enum PartTensors {
    Files(FileTensors),
    Random(RandomPart),
}

/// A part's tensors in their files.
#[derive(Clone, Debug)]
pub struct FileTensors {
    entries: BTreeMap<String, Entry>,
    path: PathBuf,
}

impl FileTensors {
    fn is_unchanged(&self) -> bool {
        let mut files: Vec<&Arc<Archive>> = self.entries.values().map(|entry| &entry.archive).collect();
        files.sort_by_key(|archive| Arc::as_ptr(archive));
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        files.into_iter().all(|archive| archive.is_unchanged())
    }
}

impl TensorSource for FileTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.entries.get(name).map(|e| e.shape.clone())
    }

    fn read(&self, name: &str, precision: Precision) -> Result<HostTensor, WeightError> {
        let missing = || WeightError::NoTensor { file: self.path.clone(), tensor: name.to_owned() };
        let entry = self.entries.get(name).ok_or_else(missing)?;
        let mut bytes = Vec::new();
        entry.archive.read_as(&entry.file_name, precision, &mut bytes)?;
        Ok(HostTensor { shape: entry.shape.clone(), precision, bytes })
    }

    fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }
}

impl TensorSource for PartTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        match self {
            PartTensors::Files(files) => files.shape(name),
            PartTensors::Random(random) => random.shape(name),
        }
    }

    fn read(&self, name: &str, precision: Precision) -> Result<HostTensor, WeightError> {
        match self {
            PartTensors::Files(files) => files.read(name, precision),
            PartTensors::Random(random) => random.read(name, precision),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            PartTensors::Files(files) => files.names(),
            PartTensors::Random(random) => random.names(),
        }
    }
}

impl PartTensors {
    /// Values in all tensors together; times the size of the run's type it is what the part takes on the device.
    pub fn values(&self) -> u64 {
        let size = |shape: Vec<usize>| shape.iter().fold(1u64, |n, d| n.saturating_mul(*d as u64));
        self.names().iter().filter_map(|n| self.shape(n)).map(size).sum()
    }
}

/// Where the VAE in use comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaeOrigin {
    /// The checkpoint's own.
    Checkpoint,
    /// Chosen by the person.
    Chosen(PathBuf),
    /// Found beside a checkpoint that has none.
    Beside(PathBuf),
}

/// An open checkpoint, whole but for the VAE, which may be missing until decoding is asked.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    path: Option<PathBuf>,
    text_encoder: Part<TextEncoderConfig>,
    unet: Part<UNetConfig>,
    vae: Option<(Part<VaeConfig>, VaeOrigin)>,
    scheduler: SchedulerConfig,
    prediction_source: PredictionSource,
    tokenizer: Option<TokenizerFiles>,
    unknown: KeyList,
}

impl Checkpoint {
    /// Opens a single file, a diffusers folder, the built-in model, or the random one. With `ema` the averaged UNet is taken where the
    /// file has one beside the other.
    ///
    /// # Errors
    /// `NotBuiltIn` for the built-in model where it was left out, `Refused` for another family, `MissingPart`, `MissingTensors`, `Shape`, and every fault of a file. A missing VAE is
    /// no error here: [`Checkpoint::vae`] says so.
    pub fn open(model: &ModelChoice, vae: &VaeChoice, ema: bool) -> Result<Checkpoint, WeightError> {
        match model {
            ModelChoice::RandomSd15 => Self::random(&RandomSd15::default(), vae),
            ModelChoice::Pocket => Self::from_place(&pocket::folder().ok_or(WeightError::NotBuiltIn)?, vae, ema),
            ModelChoice::Path(path) => Self::from_place(&folder::resolve(path), vae, ema),
        }
    }

    /// The random model, with a real VAE where one is chosen.
    ///
    /// # Errors
    /// Those of the chosen VAE.
    pub fn random(random: &RandomSd15, vae: &VaeChoice) -> Result<Checkpoint, WeightError> {
        let own = Part { config: VaeConfig::sd15(), tensors: PartTensors::Random(random.vae()) };
        let vae = match vae {
            VaeChoice::Automatic => (own, VaeOrigin::Checkpoint),
            VaeChoice::Path(path) => (open_vae(path)?, VaeOrigin::Chosen(path.clone())),
        };
        Ok(Checkpoint {
            path: None,
            text_encoder: Part {
                config: TextEncoderConfig::sd15(),
                tensors: PartTensors::Random(random.text_encoder()),
            },
            unet: Part { config: UNetConfig::sd15(), tensors: PartTensors::Random(random.unet()) },
            vae: Some(vae),
            scheduler: SchedulerConfig::sd15(),
            prediction_source: PredictionSource::Default,
            tokenizer: None,
            unknown: KeyList::default(),
        })
    }

    fn from_place(place: &Place, vae: &VaeChoice, ema: bool) -> Result<Checkpoint, WeightError> {
        let path = place.path();
        let Analysis {
            family, text_encoder, unet, unet_ema, vae: own_vae, scheduler, prediction_source, unknown, ..
        } = inspect::analyse(place)?;
        let missing = |part| WeightError::MissingPart { path: path.to_owned(), part };
        if family == Family::Unknown && place.is_dir() {
            return Err(missing(PartKind::UNet));
        }
        if !family.is_supported() {
            return Err(WeightError::Refused { path: path.to_owned(), family });
        }
        let unet = unet_ema.filter(|_| ema).or(unet).ok_or_else(|| missing(PartKind::UNet))?;
        let text_encoder = text_encoder.ok_or_else(|| missing(PartKind::TextEncoder))?;
        if text_encoder.config.hidden_size != unet.config.cross_attention_dim {
            let (text, unet) = (text_encoder.config.hidden_size, unet.config.cross_attention_dim);
            let detail = format!("{unet}, and the text encoder's hidden_size is {text}");
            return Err(WeightError::config(path, "cross_attention_dim", detail));
        }
        let vae = match (vae, own_vae) {
            (VaeChoice::Path(chosen), _) => Some((open_vae(chosen)?, VaeOrigin::Chosen(chosen.clone()))),
            (VaeChoice::Automatic, Some(own)) => Some((whole(own)?, VaeOrigin::Checkpoint)),
            (VaeChoice::Automatic, None) => match inspect::vae_beside(place) {
                Some(beside) => Some((open_vae(&beside)?, VaeOrigin::Beside(beside))),
                None => None,
            },
        };
        if let Some((part, _)) = &vae
            && part.config.latent_channels != unet.config.out_channels
        {
            let (latent, unet) = (part.config.latent_channels, unet.config.out_channels);
            return Err(WeightError::config(path, "latent_channels", format!("{latent}, and the UNet makes {unet}")));
        }
        let tokenizer = place.join("tokenizer");
        Ok(Checkpoint {
            path: Some(path.to_owned()),
            text_encoder: whole(text_encoder)?,
            unet: whole(unet)?,
            vae,
            scheduler,
            prediction_source,
            tokenizer: tokenizer.is_dir().then_some(TokenizerFiles { folder: tokenizer }),
            unknown,
        })
    }

    /// The file or folder; `None` for the random model.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub fn text_encoder(&self) -> &Part<TextEncoderConfig> {
        &self.text_encoder
    }

    pub fn unet(&self) -> &Part<UNetConfig> {
        &self.unet
    }

    /// The VAE in use.
    ///
    /// # Errors
    /// `NoVae` where the checkpoint has none, none was chosen, and none lies beside it.
    pub fn vae(&self) -> Result<&Part<VaeConfig>, WeightError> {
        let none = || WeightError::NoVae { path: self.path.clone().unwrap_or_default() };
        self.vae.as_ref().map(|(part, _)| part).ok_or_else(none)
    }

    pub fn vae_origin(&self) -> Option<&VaeOrigin> {
        self.vae.as_ref().map(|(_, origin)| origin)
    }

    /// The noise schedule it was trained with, prediction type included.
    pub fn scheduler(&self) -> &SchedulerConfig {
        &self.scheduler
    }

    /// What told the prediction type.
    pub fn prediction_source(&self) -> &PredictionSource {
        &self.prediction_source
    }

    /// The checkpoint's own tokenizer; `None` where CLIP's is meant.
    pub fn tokenizer(&self) -> Option<&TokenizerFiles> {
        self.tokenizer.as_ref()
    }

    /// Whether every file of it is on disk as it was when it was opened.
    pub fn is_unchanged(&self) -> bool {
        let vae = self.vae.as_ref().map(|(part, _)| &part.tensors);
        [Some(&self.text_encoder.tensors), Some(&self.unet.tensors), vae].into_iter().flatten().all(|part| match part {
            PartTensors::Files(files) => files.is_unchanged(),
            PartTensors::Random(_) => true,
        })
    }

    /// Tensors of the checkpoint that no part knows: worth a warning where the count is not 0.
    pub fn unknown(&self) -> &KeyList {
        &self.unknown
    }
}

fn whole<C>(found: Found<C>) -> Result<Part<C>, WeightError> {
    found.tensors.require_whole()?;
    let Collected { entries, path, .. } = found.tensors;
    Ok(Part { config: found.config, tensors: PartTensors::Files(FileTensors { entries, path }) })
}

/// Opens a VAE by itself: a file, a part's folder, or the VAE of a whole checkpoint.
///
/// # Errors
/// `NotVae` where the file has another family's VAE or none at all, and every fault of a file.
pub fn open_vae(path: &Path) -> Result<Part<VaeConfig>, WeightError> {
    let place = folder::resolve(path);
    let not_vae = |kind: String| WeightError::NotVae { path: place.path().to_owned(), kind };
    // Kind first: the sizes of other parts may be wrong in ways that do not matter here.
    if let Some(kind) = inspect::kind_without_vae(&place)? {
        return Err(not_vae(kind));
    }
    let found = inspect::analyse(&place)?;
    whole(found.vae.ok_or_else(|| not_vae(found.family.to_string()))?)
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
