//! The checkpoint in use: what it is, how its prompts are read, and what its latents look like.

use super::forecast::{ModelShape, PerPart};
use crate::base::request::RequestError;
use crate::base::{ModelChoice, Notice, Precision, Problem, Size, VaeChoice};
use crate::diffusion::DiffusionError;
use crate::diffusion::config::{PredictionType, SchedulerConfig};
use crate::diffusion::prompt::{self, Piece, PromptChunks};
use crate::diffusion::tokenizer::Tokenizer;
use crate::diffusion::weights::Checkpoint;
use crate::diffusion::weights::checkpoint::VaeOrigin;
use std::path::PathBuf;

/// All that decides which weights are loaded, and in which type.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelKey {
    pub model: ModelChoice,
    pub vae: VaeChoice,
    pub ema: bool,
    pub v_prediction: Option<bool>,
    /// Never `Auto`.
    pub precision: Precision,
}

/// An open checkpoint with its tokenizer. Holds headers, no weights.
pub struct Model {
    key: ModelKey,
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    scheduler: SchedulerConfig,
}

impl Model {
    /// Reads headers and configurations; some milliseconds for a single file.
    ///
    /// # Errors
    /// Those of [`Checkpoint::open`] and of the tokenizer's files.
    pub fn open(key: ModelKey) -> Result<Self, DiffusionError> {
        let checkpoint = Checkpoint::open(&key.model, &key.vae, key.ema)?;
        let tokenizer = match checkpoint.tokenizer() {
            Some(files) => Tokenizer::from_folder(&files.folder)?,
            None => Tokenizer::clip(),
        };
        let (words, rows) = (tokenizer.vocabulary_size(), checkpoint.text_encoder().config.vocab_size);
        if words > rows {
            let what = match checkpoint.tokenizer() {
                Some(_) => format!("its vocabulary has {words} words, the text encoder knows {rows}"),
                None => format!("it is missing, and the text encoder's vocabulary ({rows}) is not CLIP's ({words})"),
            };
            return Err(DiffusionError::Unsupported { part: "tokenizer", what });
        }
        let mut scheduler = checkpoint.scheduler().clone();
        match key.v_prediction {
            Some(true) => scheduler.prediction = PredictionType::V,
            Some(false) => scheduler.prediction = PredictionType::Epsilon,
            None => {}
        }
        Ok(Model { key, checkpoint, tokenizer, scheduler })
    }

    /// Layers of the text encoder: as far as clip skip can go.
    pub fn text_layers(&self) -> usize {
        self.checkpoint.text_encoder().config.layers
    }

    pub fn key(&self) -> &ModelKey {
        &self.key
    }

    /// Whether its files are still those that were opened. Without a VAE it never is: one may have come to lie beside it.
    pub fn is_current(&self) -> bool {
        self.checkpoint.vae().is_ok() && self.checkpoint.is_unchanged()
    }

    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The noise schedule and prediction type, the person's switch included.
    pub fn scheduler(&self) -> &SchedulerConfig {
        &self.scheduler
    }

    /// The file or folder; empty for the random model.
    pub fn path(&self) -> PathBuf {
        self.checkpoint.path().map(ToOwned::to_owned).unwrap_or_default()
    }

    /// What a person should know about this checkpoint.
    pub fn notices(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        let unknown = self.checkpoint.unknown();
        if unknown.count > 0 {
            let first = unknown.first.first().cloned().unwrap_or_default();
            notices.push(Notice::UnknownTensors { count: unknown.count, first });
        }
        if let Some(VaeOrigin::Beside(path)) = self.checkpoint.vae_origin() {
            notices.push(Notice::VaeTaken(path.clone()));
        }
        if self.scheduler.prediction == PredictionType::V {
            notices.push(Notice::VPrediction);
        }
        if self.key.model == ModelChoice::RandomSd15 {
            notices.push(Notice::NoiseModel);
        }
        notices
    }

    /// The prompt's pieces as chunks of token ids, as long as the text encoder's positions.
    pub fn tokenize(&self, pieces: &[Piece]) -> PromptChunks {
        prompt::chunk(&self.tokenizer, pieces, self.checkpoint.text_encoder().config.max_positions)
    }

    /// `[channels, height, width]` of the latent of a picture.
    ///
    /// # Errors
    /// [`Problem::NoVae`] without a VAE, and [`Problem::Request`] where its factor does not divide the size.
    pub fn latent_shape(&self, size: Size) -> Result<[usize; 3], Problem> {
        let vae = self.checkpoint.vae().map_err(|_| Problem::NoVae { path: self.path() })?;
        let (factor, width, height) = (vae.config.factor(), size.width() as usize, size.height() as usize);
        if factor == 0 || width % factor != 0 || height % factor != 0 {
            return Err(Problem::Request(RequestError::Factor { size, factor }));
        }
        Ok([self.checkpoint.unet().config.in_channels, height / factor, width / factor])
    }

    /// The numbers that decide what a run takes.
    pub fn shape(&self) -> ModelShape {
        let (text, unet) = (&self.checkpoint.text_encoder().config, &self.checkpoint.unet().config);
        let many = |numbers: &[usize]| numbers.iter().map(|n| *n as u64).collect::<Vec<_>>();
        let attention_at = |level: usize| {
            let up = unet.up_attention.iter().rev().nth(level).copied().unwrap_or(false);
            unet.down_attention.get(level).copied().unwrap_or(false) || up
        };
        let heads = unet.heads.iter().enumerate();
        let vae = self.checkpoint.vae().ok().map(|part| &part.config);
        ModelShape {
            unet_channels: many(&unet.block_out_channels),
            unet_heads: heads.map(|(level, heads)| if attention_at(level) { *heads as u64 } else { 0 }).collect(),
            unet_mid_heads: unet.heads.last().copied().unwrap_or(0) as u64,
            unet_layers: unet.layers_per_block as u64,
            vae_channels: vae.map(|vae| many(&vae.block_out_channels)).unwrap_or_default(),
            vae_attention: vae.is_some_and(|vae| vae.mid_attention),
            vae_factor: vae.map_or(8, |vae| vae.factor() as u64),
            text_width: text.hidden_size as u64,
            text_heads: text.heads as u64,
            text_intermediate: text.intermediate_size as u64,
            text_tokens: text.max_positions as u64,
        }
    }

    /// Values of each part's weights.
    pub fn values(&self) -> PerPart<u64> {
        PerPart {
            text_encoder: self.checkpoint.text_encoder().tensors.values(),
            unet: self.checkpoint.unet().tensors.values(),
            vae: self.checkpoint.vae().map(|part| part.tensors.values()).unwrap_or(0),
        }
    }
}
