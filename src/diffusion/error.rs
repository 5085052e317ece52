//! What can go wrong inside the pipeline.

use super::weights::WeightError;
use burn::tensor::ExecutionError;

/// An error of the pipeline. `engine/error.rs` turns it into what a person reads.
#[derive(Debug, thiserror::Error)]
pub enum DiffusionError {
    /// The caller's watch said stop: a cancel, not a fault.
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// A tensor is there, with a shape that its place in the model cannot take.
    #[error("{name}: shape {found:?} where {expected} is needed")]
    Shape { name: String, found: Vec<usize>, expected: String },
    /// A configuration asks for what this implementation does not have.
    #[error("{part}: {what}")]
    Unsupported { part: &'static str, what: String },
    /// The device reported an error when the queue was read back.
    #[error("the device failed: {0}")]
    Device(String),
    /// The latent holds NaN or infinity after a step.
    #[error("the latent is not finite after step {step}")]
    LatentNotFinite { step: usize },
    /// The decoded picture holds NaN or infinity.
    #[error("the decoded picture is not finite")]
    PictureNotFinite,
    #[error(transparent)]
    Sampler(#[from] super::samplers::SamplerError),
    #[error(transparent)]
    Tokenizer(#[from] super::tokenizer::TokenizerError),
}

impl From<ExecutionError> for DiffusionError {
    fn from(error: ExecutionError) -> Self {
        DiffusionError::Device(error.to_string())
    }
}
