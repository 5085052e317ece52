//! Says what a file or folder is, from names and shapes alone, before any weights are read.
//!
//! `analyse` is also how `checkpoint` opens one: what is told and what is loaded cannot differ. `inspect` wraps its
//! findings for `softbox inspect` and the model chooser.

use super::assemble::{Collected, TensorFiles, collect};
use super::convert::DType;
use super::error::WeightError;
use super::folder;
use super::keys::{self, Leftover, TextNaming, VaeNaming};
use super::layout;
use super::shapes;
use super::side_file::parameterization;
use crate::base::Bytes;
use crate::diffusion::config::{PredictionType, SchedulerConfig, TextEncoderConfig, UNetConfig, VaeConfig};
use crate::diffusion::place::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

pub use super::family::{Family, classify};

/// A part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    TextEncoder,
    UNet,
    /// The averaged copy of the UNet.
    UNetEma,
    VaeDecoder,
    VaeEncoder,
    SafetyChecker,
}

impl PartKind {
    pub fn label(self) -> &'static str {
        match self {
            PartKind::TextEncoder => "text encoder",
            PartKind::UNet => "UNet",
            PartKind::UNetEma => "UNet (EMA)",
            PartKind::VaeDecoder => "VAE decoder",
            PartKind::VaeEncoder => "VAE encoder",
            PartKind::SafetyChecker => "safety checker",
        }
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// How many names of a list are kept for showing.
const SHOWN: usize = 8;

/// A list of names of which only the first few are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyList {
    pub count: usize,
    pub first: Vec<String>,
}

impl KeyList {
    fn push(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(name.to_owned());
        }
    }

    fn of<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let mut list = KeyList::default();
        names.into_iter().for_each(|n| list.push(n));
        list
    }
}

/// Where the prediction type was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredictionSource {
    /// Nothing says otherwise.
    Default,
    /// A `.yaml` beside the file, or a folder's scheduler config.
    File(PathBuf),
    /// An empty tensor `v_pred` in the file.
    Mark,
}

/// One part as far as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSummary {
    pub kind: PartKind,
    /// Tensors found and used.
    pub tensors: usize,
    /// Values in them.
    pub values: u64,
    pub stored: Bytes,
    /// Names, of ours, that a whole part would have.
    pub missing: KeyList,
    /// Names, of the file, whose shape does not fit.
    pub misshapen: KeyList,
}

impl PartSummary {
    /// What the part takes in f16 or bf16.
    pub fn half(&self) -> Bytes {
        Bytes(self.values.saturating_mul(2))
    }

    /// What the part takes in f32.
    pub fn full(&self) -> Bytes {
        Bytes(self.values.saturating_mul(4))
    }

    fn of(found: &Collected) -> Self {
        PartSummary {
            kind: found.part,
            tensors: found.entries.len(),
            values: found.values(),
            stored: Bytes(found.stored_bytes()),
            missing: KeyList::of(&found.missing),
            misshapen: KeyList::of(found.misshapen.iter().map(|m| &m.file_name)),
        }
    }
}

/// What `inspect` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    pub path: PathBuf,
    pub is_folder: bool,
    pub family: Family,
    pub parts: Vec<PartSummary>,
    /// Tensors and bytes in all files together.
    pub tensors: usize,
    pub stored: Bytes,
    /// Tensors by their type.
    pub dtypes: BTreeMap<DType, usize>,
    /// Training leftovers and constant buffers, passed over.
    pub ignored: usize,
    /// What no part claims.
    pub unknown: KeyList,
    pub has_vae: bool,
    pub prediction: PredictionType,
    pub prediction_source: PredictionSource,
    /// A VAE that lies beside a checkpoint without one.
    pub suggested_vae: Option<PathBuf>,
    pub unet: Option<UNetConfig>,
    pub text_encoder: Option<TextEncoderConfig>,
    pub vae: Option<VaeConfig>,
    /// The files' own free texts.
    pub metadata: BTreeMap<String, String>,
}

impl Inspection {
    pub fn part(&self, kind: PartKind) -> Option<&PartSummary> {
        self.parts.iter().find(|p| p.kind == kind)
    }
}

/// A part's config and what was found of its tensors.
#[derive(Clone, Debug)]
pub(crate) struct Found<C> {
    pub config: C,
    pub tensors: Collected,
}

/// Everything known about a file or folder before weights are read.
#[derive(Clone, Debug)]
pub(crate) struct Analysis {
    pub family: Family,
    pub text_encoder: Option<Found<TextEncoderConfig>>,
    pub unet: Option<Found<UNetConfig>>,
    pub unet_ema: Option<Found<UNetConfig>>,
    pub vae: Option<Found<VaeConfig>>,
    pub vae_encoder: Option<Collected>,
    pub safety_checker: usize,
    pub ignored: usize,
    pub unknown: KeyList,
    pub scheduler: SchedulerConfig,
    pub prediction_source: PredictionSource,
    /// All files that were opened.
    pub files: Vec<TensorFiles>,
}

impl Analysis {
    fn new(family: Family) -> Self {
        Analysis {
            family,
            text_encoder: None,
            unet: None,
            unet_ema: None,
            vae: None,
            vae_encoder: None,
            safety_checker: 0,
            ignored: 0,
            unknown: KeyList::default(),
            scheduler: SchedulerConfig::sd15(),
            prediction_source: PredictionSource::Default,
            files: Vec::new(),
        }
    }

    fn collected(&self) -> Vec<&Collected> {
        let text = self.text_encoder.iter().map(|f| &f.tensors);
        let unet = self.unet.iter().chain(&self.unet_ema).map(|f| &f.tensors);
        text.chain(unet).chain(self.vae.iter().map(|f| &f.tensors)).chain(&self.vae_encoder).collect()
    }

    /// Sorts all that `files` have and no part claimed.
    fn sort_leftovers(&mut self, files: &TensorFiles) {
        let claimed: BTreeSet<String> =
            self.collected().iter().flat_map(|c| c.entries.values().map(|e| e.file_name.clone())).collect();
        for name in files.names().filter(|n| !claimed.contains(*n)) {
            match keys::leftover(name) {
                Leftover::Ignored | Leftover::Ema => self.ignored += 1,
                Leftover::SafetyChecker => self.safety_checker += 1,
                Leftover::Unknown => self.unknown.push(name),
            }
        }
    }

    fn add_vae(&mut self, files: &TensorFiles, config: VaeConfig, naming: &VaeNaming) {
        let tensors = collect(PartKind::VaeDecoder, files, &layout::vae_decoder(&config), naming);
        let encoder = collect(PartKind::VaeEncoder, files, &layout::vae_encoder(&config), naming);
        self.vae_encoder = (!encoder.entries.is_empty()).then_some(encoder);
        self.vae = Some(Found { config, tensors });
    }

    fn add_text(&mut self, files: &TensorFiles, config: TextEncoderConfig, naming: &TextNaming) {
        let tensors = collect(PartKind::TextEncoder, files, &layout::text_encoder(&config), naming);
        self.text_encoder = Some(Found { config, tensors });
    }
}

/// Says what lies there: a safetensors file, a diffusers folder, or one part's folder.
///
/// # Errors
/// Any [`WeightError`] about a file that does not hold; never one about what kind of model it is, or about tensors that
/// are missing, which are in the answer (unless a size was to be read from one: then `NoTensor`).
pub fn inspect(place: impl Into<Place>) -> Result<Inspection, WeightError> {
    let place = folder::resolve(place);
    let found = analyse(&place)?;
    let mut parts: Vec<PartSummary> = found.collected().into_iter().map(PartSummary::of).collect();
    if found.safety_checker > 0 {
        parts.push(PartSummary {
            kind: PartKind::SafetyChecker,
            tensors: found.safety_checker,
            values: 0,
            stored: Bytes::ZERO,
            missing: KeyList::default(),
            misshapen: KeyList::default(),
        });
    }
    let mut dtypes = BTreeMap::new();
    let archives = || found.files.iter().flat_map(|f| f.archives());
    for info in archives().flat_map(|a| a.tensors().values()) {
        *dtypes.entry(info.dtype).or_insert(0) += 1;
    }
    let has_vae = found.vae.is_some();
    Ok(Inspection {
        is_folder: place.is_dir(),
        family: found.family,
        parts,
        tensors: found.files.iter().map(TensorFiles::len).sum(),
        stored: Bytes(archives().map(|a| a.file_len()).sum()),
        dtypes,
        ignored: found.ignored,
        unknown: found.unknown,
        has_vae,
        prediction: found.scheduler.prediction,
        prediction_source: found.prediction_source,
        suggested_vae: if found.family.is_sd1() && !has_vae { vae_beside(&place) } else { None },
        unet: found.unet.map(|f| f.config),
        text_encoder: found.text_encoder.map(|f| f.config),
        vae: found.vae.map(|f| f.config),
        metadata: found.files.iter().flat_map(|f| f.archives()).flat_map(|a| a.metadata().clone()).collect(),
        path: place.path().to_owned(),
    })
}

/// Looks at whatever lies there.
pub(crate) fn analyse(place: &Place) -> Result<Analysis, WeightError> {
    if folder::is_pipeline(place) {
        analyse_pipeline(place)
    } else if place.is_dir() {
        analyse_part_folder(place)
    } else {
        let files = TensorFiles::open(place)?;
        let mut found = analyse_files(&files)?;
        (found.scheduler.prediction, found.prediction_source) = prediction_of_file(place, &files)?;
        found.files = vec![files];
        Ok(found)
    }
}

/// What lies there, if that holds no VAE of SD1.
///
/// # Errors
/// As [`inspect`]; what is no safetensors file is an answer.
pub(crate) fn kind_without_vae(place: &Place) -> Result<Option<String>, WeightError> {
    let family = if folder::is_pipeline(place) {
        pipeline_family(place)
    } else {
        let opened =
            if place.is_dir() { folder::open_part(place, PartKind::VaeDecoder) } else { TensorFiles::open(place) };
        let files = match opened {
            Ok(files) => files,
            Err(WeightError::Foreign { format, .. }) => return Ok(Some(format.to_string())),
            Err(error) => return Err(error),
        };
        if shapes::vae_naming(&files).is_none() {
            let part = shapes::unet_naming(&files).is_some() && shapes::text_naming(&files).is_none();
            let label = if part { PartKind::UNet.label() } else { classify(&files).label() };
            return Ok(Some(label.to_owned()));
        }
        classify(&files)
    };
    let fits = family.is_sd1() || family == Family::Vae;
    Ok((!fits).then(|| family.label().to_owned()))
}

/// The parts in one file or one set of shards, by names and shapes.
fn analyse_files(files: &TensorFiles) -> Result<Analysis, WeightError> {
    let mut found = Analysis::new(classify(files));
    // Other families are named and left alone: their parts have layouts of their own.
    if !found.family.is_sd1() && !matches!(found.family, Family::Vae | Family::TextEncoder) {
        return Ok(found);
    }
    if let Some(naming) = shapes::unet_naming(files) {
        let config = shapes::unet(files, &naming)?;
        let specs = layout::unet(&config);
        if let Some(ema) = shapes::unet_ema_naming(files, &naming) {
            let tensors = collect(PartKind::UNetEma, files, &specs, &ema);
            found.unet_ema = Some(Found { config: config.clone(), tensors });
        }
        // Some trainers save the average alone: then that is the UNet.
        let averaged = matches!(naming, keys::UNetNaming::OriginalEma { .. });
        let kind = if averaged { PartKind::UNetEma } else { PartKind::UNet };
        let tensors = collect(kind, files, &specs, &naming);
        found.unet = Some(Found { config, tensors });
    }
    if let Some(naming) = shapes::text_naming(files) {
        found.add_text(files, shapes::text_encoder(files, &naming)?, &naming);
    }
    if let Some(naming) = shapes::vae_naming(files) {
        found.add_vae(files, shapes::vae(files, &naming)?, &naming);
    }
    found.sort_leftovers(files);
    Ok(found)
}

/// A folder with a subfolder per part.
fn analyse_pipeline(place: &Place) -> Result<Analysis, WeightError> {
    let family = pipeline_family(place);
    let mut found = Analysis::new(family);
    if !family.is_sd1() {
        return Ok(found);
    }
    let unet_folder = place.join("unet");
    let files = folder::open_part(&unet_folder, PartKind::UNet)?;
    if let Some(naming) = shapes::unet_naming(&files) {
        let config = UNetConfig::from_file(unet_folder.join("config.json"))?;
        let tensors = collect(PartKind::UNet, &files, &layout::unet(&config), &naming);
        found.unet = Some(Found { config, tensors });
    }
    found.sort_leftovers(&files);
    found.files.push(files);

    let text_folder = place.join("text_encoder");
    if text_folder.is_dir() {
        let files = folder::open_part(&text_folder, PartKind::TextEncoder)?;
        if let Some(naming) = shapes::text_naming(&files) {
            let config = TextEncoderConfig::from_file(text_folder.join("config.json"))?;
            found.add_text(&files, config, &naming);
        }
        found.sort_leftovers(&files);
        found.files.push(files);
    }
    let vae_folder = place.join("vae");
    if vae_folder.is_dir() {
        let files = folder::open_part(&vae_folder, PartKind::VaeDecoder)?;
        if let Some(naming) = shapes::vae_naming(&files) {
            found.add_vae(&files, VaeConfig::from_file(vae_folder.join("config.json"))?, &naming);
        }
        found.sort_leftovers(&files);
        found.files.push(files);
    }
    let scheduler = place.join("scheduler").join("scheduler_config.json");
    if scheduler.is_file() {
        found.scheduler = SchedulerConfig::from_file(&scheduler)?;
        found.prediction_source = PredictionSource::File(scheduler.path().to_owned());
    }
    Ok(found)
}

/// One part's folder: `config.json` beside weights. Its config is obeyed where it is a VAE's or a UNet's, whose sizes do
/// not all show in their tensors.
fn analyse_part_folder(place: &Place) -> Result<Analysis, WeightError> {
    let files = folder::open_part(place, PartKind::UNet)?;
    let config = place.join("config.json");
    let mut found = match shapes::vae_naming(&files) {
        Some(naming) if classify(&files) == Family::Vae && config.is_file() => {
            let mut found = Analysis::new(Family::Vae);
            found.add_vae(&files, VaeConfig::from_file(&config)?, &naming);
            found.sort_leftovers(&files);
            found
        }
        _ => match shapes::unet_naming(&files) {
            Some(naming) if classify(&files).is_sd1() && config.is_file() => {
                let config = UNetConfig::from_file(&config)?;
                let mut found = Analysis::new(Family::of_channels(config.in_channels));
                let tensors = collect(PartKind::UNet, &files, &layout::unet(&config), &naming);
                found.unet = Some(Found { config, tensors });
                found.sort_leftovers(&files);
                found
            }
            _ => analyse_files(&files)?,
        },
    };
    found.files.push(files);
    Ok(found)
}

/// Tells a pipeline folder's family by its subfolders and the raw fields of its configs.
fn pipeline_family(place: &Place) -> Family {
    let json = |file: Place| -> Value {
        let text = file.read_to_string().unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    };
    if place.join("transformer").is_dir() && !place.join("unet").is_dir() {
        let config = json(place.join("transformer").join("config.json"));
        let class = config.get("_class_name").and_then(Value::as_str).unwrap_or_default();
        return match class {
            c if c.starts_with("SD3") => Family::Sd3,
            c if c.starts_with("Flux") => Family::Flux,
            _ => Family::Unknown,
        };
    }
    let unet = json(place.join("unet").join("config.json"));
    let text = json(place.join("text_encoder").join("config.json"));
    let number = |v: &Value, field: &str| v.get(field).and_then(Value::as_u64);
    let cross = number(&unet, "cross_attention_dim");
    let second = place.join("text_encoder_2").is_dir();
    if second || unet.get("addition_embed_type").is_some_and(|v| v == "text_time") {
        let refiner = !place.join("text_encoder").is_dir() && cross == Some(1280);
        return if refiner { Family::SdxlRefiner } else { Family::Sdxl };
    }
    if cross == Some(1024) || number(&text, "hidden_size") == Some(1024) {
        return Family::Sd2;
    }
    let channels = number(&unet, "in_channels").unwrap_or(4);
    Family::of_channels(usize::try_from(channels).unwrap_or(0))
}

/// The prediction type of a single file: a side file's word, then an empty mark in the file itself.
fn prediction_of_file(place: &Place, files: &TensorFiles) -> Result<(PredictionType, PredictionSource), WeightError> {
    for ending in ["yaml", "yml"] {
        let side = place.with_extension(ending);
        let Ok(text) = side.read_to_string() else { continue };
        let told = || PredictionSource::File(side.path().to_owned());
        match parameterization(&text).as_deref() {
            Some("v" | "v_prediction") => return Ok((PredictionType::V, told())),
            Some("eps" | "epsilon") => return Ok((PredictionType::Epsilon, told())),
            Some(other) => return Err(WeightError::unsupported(side.path(), "parameterization", other)),
            None => {}
        }
    }
    if files.has("v_pred") {
        return Ok((PredictionType::V, PredictionSource::Mark));
    }
    Ok((PredictionType::Epsilon, PredictionSource::Default))
}

/// A VAE that goes with a checkpoint without one: `NAME.vae.safetensors` beside `NAME.safetensors`, or an ft-mse VAE
/// (what Realistic Vision's authors recommend) beside it, in its `VAE` folder, or in the `VAE` folder next to its own. Only
/// looked for on disk.
pub fn vae_beside(checkpoint: &Place) -> Option<PathBuf> {
    let checkpoint = checkpoint.on_disk()?;
    let is_vae = |p: &Path| TensorFiles::open(p).is_ok_and(|files| classify(&files) == Family::Vae);
    let own = checkpoint.with_extension("vae.safetensors");
    if own.is_file() && is_vae(&own) {
        return Some(own);
    }
    let folder = checkpoint.parent()?;
    let mut folders = vec![folder.to_owned()];
    for name in ["VAE", "vae", "Vae"] {
        folders.push(folder.join(name));
        folders.push(folder.join("..").join(name));
    }
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        files.sort();
        let fits = |p: &PathBuf| {
            let name = p.file_name().map(|n| n.to_string_lossy().to_lowercase().replace('_', "-")).unwrap_or_default();
            name.contains("ft-mse") && name.ends_with(".safetensors") && is_vae(p)
        };
        if let Some(found) = files.into_iter().find(fits) {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
