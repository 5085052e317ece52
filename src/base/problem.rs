//! What can go wrong and what a person should know, as data. `text/` says it in words.

use super::request::RequestError;
use super::{Bytes, Flaw, Reason, Size};
use std::path::PathBuf;

/// What happened. `text::problem` makes the headline.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The request itself does not hold.
    Request(RequestError),
    /// The file or folder is not there or cannot be read.
    FileUnreadable { path: PathBuf },
    /// The file is damaged, cut short, or no safetensors file.
    FileDamaged { path: PathBuf, what: Flaw },
    /// A download that has not finished.
    FileIncomplete { path: PathBuf, have: Bytes, need: Bytes },
    /// The file was replaced or cut while it was in use.
    FileChanged { path: PathBuf },
    /// A file of a kind this program does not make pictures with ("SDXL checkpoint", "LoRA", …).
    WrongKind { path: PathBuf, kind: String },
    /// What was chosen as a VAE is something else, and holds none.
    NotVae { path: PathBuf, kind: String },
    /// A checkpoint that lacks its VAE, and none was chosen or found beside it.
    NoVae { path: PathBuf },
    /// A part of the checkpoint is missing or does not fit.
    BadCheckpoint { path: PathBuf, what: Flaw },
    /// No checkpoint is chosen.
    NoModel,
    /// The chosen device is not usable.
    DeviceUnavailable { device: String, why: Reason },
    /// The device stopped answering during the run.
    DeviceLost { device: String },
    /// The GPU stack panicked; the job failed, the program goes on.
    DeviceFault { device: String },
    /// The job does not fit: what it needs, what there is.
    DoesNotFit { need: Bytes, have: Bytes, limit: Bytes, fits: Option<Size> },
    /// Memory ran out in a phase.
    OutOfMemory { phase: Phase },
    /// The latent holds numbers that are not finite, at a step.
    LatentNotFinite { step: u32 },
    /// The same in a run that was in full precision already: the weights themselves are at fault.
    WeightsNotFinite { path: PathBuf, step: u32 },
    /// The picture could not be decoded to finite pixels in any precision, f32 included.
    PictureNotFinite,
    /// The picture was made but not written.
    NotSaved { folder: PathBuf, why: Reason },
    /// A bug of ours.
    Internal(String),
}

/// What an artist can do about it, as a button where a click can do it.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    OpenModel,
    ChooseVae,
    UseSize(Size),
    UseDevice(super::DeviceChoice),
    UseF32,
    CleanMemory,
    ChooseFolder,
    TryAgain,
    SaveAs,
    /// Copies this command, which brings what the device lacks.
    Install(String),
    CheckDownload,
}

/// A failed job: the only error type that crosses the thread.
#[derive(Clone, Debug, PartialEq)]
pub struct JobError {
    pub problem: Problem,
    /// What was given, technically: file, tensor, sizes, the cause's own words.
    pub details: String,
    pub hints: Vec<Hint>,
}

impl JobError {
    pub fn new(problem: Problem, details: impl Into<String>) -> Self {
        let hints = problem.hints();
        JobError { problem, details: details.into(), hints }
    }
}

impl Problem {
    /// The next steps that make sense after this problem.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Problem::Request(_) | Problem::Internal(_) => vec![],
            Problem::FileUnreadable { .. } | Problem::FileDamaged { .. } | Problem::WrongKind { .. } => {
                vec![Hint::OpenModel]
            }
            Problem::BadCheckpoint { .. } | Problem::NoModel => vec![Hint::OpenModel],
            Problem::FileIncomplete { .. } => vec![Hint::CheckDownload, Hint::OpenModel],
            Problem::FileChanged { .. } | Problem::DeviceFault { .. } | Problem::DeviceLost { .. } => {
                vec![Hint::TryAgain]
            }
            Problem::NoVae { .. } | Problem::NotVae { .. } | Problem::PictureNotFinite => vec![Hint::ChooseVae],
            Problem::WeightsNotFinite { .. } => vec![Hint::CheckDownload, Hint::OpenModel],
            Problem::DeviceUnavailable { .. } => vec![Hint::UseDevice(super::DeviceChoice::Auto)],
            Problem::DoesNotFit { fits, .. } => {
                fits.map(Hint::UseSize).into_iter().chain([Hint::CleanMemory]).collect()
            }
            Problem::OutOfMemory { .. } => vec![Hint::CleanMemory, Hint::TryAgain],
            Problem::LatentNotFinite { .. } => vec![Hint::UseF32],
            Problem::NotSaved { .. } => vec![Hint::ChooseFolder, Hint::SaveAs],
        }
    }
}

/// What a running job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Loading,
    Encoding,
    Denoising { step: u32, of: u32 },
    Decoding,
    Saving,
}

/// Something worth a quiet line, not an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Prompt scheduling `[a:b:0.5]` is taken as plain text without effect.
    PromptScheduling(String),
    /// Alternation `[a|b]`.
    PromptAlternation(String),
    /// `AND` between prompts.
    PromptComposition,
    /// `<lora:…>` and its like in the prompt.
    PromptExtraNetwork(String),
    /// The prompt is in a script that SD1.5's encoder was not trained on.
    PromptNotEnglish,
    /// Tensors of the checkpoint that no part knows.
    UnknownTensors { count: usize, first: String },
    /// The checkpoint has no VAE; this one was taken.
    VaeTaken(PathBuf),
    /// The checkpoint predicts v, told by a side file or its configuration.
    VPrediction,
    /// The picture was decoded again in a wider type since it was not finite.
    DecodedAgain(&'static str),
    /// Every pixel of the picture has the same colour.
    OneColour { black: bool },
    /// The model is random weights: pictures are noise.
    NoiseModel,
    /// A better device is not used, and why; with the command that would help, if one does.
    BetterDevice { device: String, why: Reason, command: Option<String> },
    /// A device was lost and replaced.
    DeviceReplaced { lost: String, now: String },
    /// The card is over the limit; the job goes on since its own need is small.
    OverLimit { used: f64, limit: f64 },
    /// Something of the memory could not be read.
    GaugeUnknown(Reason),
    /// The picture was made but not written where it was asked.
    NotSaved { why: Reason },
}
