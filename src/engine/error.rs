//! Turns what the pipeline reports into the one error that a person sees: what happened, what was given, what to do next.

use crate::base::problem::Phase;
use crate::base::{Bytes, JobError, Precision, Problem};
use crate::diffusion::DiffusionError;
use crate::diffusion::weights::WeightError;
use crate::memory::Refused;
use std::error::Error;
use std::path::Path;

/// Why a job ended without its pictures.
#[derive(Debug)]
pub enum Ended {
    /// The person cancelled.
    Cancelled,
    Failed(Box<JobError>),
}

impl Ended {
    pub fn failed(problem: Problem, details: impl Into<String>) -> Self {
        Ended::Failed(Box::new(JobError::new(problem, details)))
    }
}

/// Where an error happened, for those that do not say so themselves.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub phase: Phase,
    pub device: &'a str,
    /// The checkpoint; empty for the random model.
    pub model: &'a Path,
    /// The type that the run computes in.
    pub precision: Precision,
}

/// What an error of the pipeline means for the job, in the phase it happened.
pub fn from_diffusion(error: DiffusionError, scene: Scene) -> Ended {
    let Scene { phase, device, model, precision } = scene;
    let details = chain(&error);
    let problem = match &error {
        DiffusionError::Stopped => return Ended::Cancelled,
        DiffusionError::Weights(error) => from_weights(error),
        DiffusionError::Shape { .. } | DiffusionError::Unsupported { .. } | DiffusionError::Tokenizer(_) => {
            Problem::BadCheckpoint { path: model.to_owned(), what: details.clone() }
        }
        DiffusionError::Device(text) if is_out_of_memory(text) => Problem::OutOfMemory { phase },
        DiffusionError::Device(_) => Problem::DeviceFault { device: device.to_owned() },
        DiffusionError::LatentNotFinite { step } => {
            let step = u32::try_from(*step).unwrap_or(u32::MAX);
            match precision {
                Precision::F32 => Problem::WeightsNotFinite { path: model.to_owned(), step },
                _ => Problem::LatentNotFinite { step },
            }
        }
        DiffusionError::PictureNotFinite => Problem::PictureNotFinite,
        DiffusionError::Sampler(error) => Problem::Request(error.to_string()),
    };
    Ended::failed(problem, details)
}

/// What it means that memory did not give something. Waiting is the caller's business; here it is out of memory.
pub fn from_refused(refused: Refused, scene: Scene) -> Ended {
    let phase = scene.phase;
    match refused {
        Refused::Diffusion(error) => from_diffusion(error, scene),
        Refused::Memory(error) => Ended::Failed(Box::new(error.into_job_error(phase))),
        Refused::Wait(_) => Ended::failed(Problem::OutOfMemory { phase }, "no room on the device"),
    }
}

/// The kind of fault in a checkpoint's files.
pub fn from_weights(error: &WeightError) -> Problem {
    // The sentence names the file by itself.
    let what = |file: &Path| {
        let text = error.to_string();
        text.strip_prefix(&format!("{}: ", file.display())).map(ToOwned::to_owned).unwrap_or(text)
    };
    let damaged = |file: &Path| Problem::FileDamaged { path: file.to_owned(), what: what(file) };
    match error {
        WeightError::Io { file, .. } => Problem::FileUnreadable { path: file.clone() },
        WeightError::NotFound { path } => Problem::FileUnreadable { path: path.clone() },
        WeightError::Incomplete { file, have, need, .. } | WeightError::InvalidHeaderLength { file, have, need } => {
            Problem::FileIncomplete { path: file.clone(), have: Bytes(*have), need: Bytes(*need) }
        }
        WeightError::Changed { file } => Problem::FileChanged { path: file.clone() },
        WeightError::Refused { path, family } => Problem::WrongKind { path: path.clone(), kind: family.to_string() },
        WeightError::Foreign { file, format } => Problem::WrongKind { path: file.clone(), kind: format.to_string() },
        WeightError::NotVae { path, kind } => Problem::NotVae { path: path.clone(), kind: kind.clone() },
        WeightError::OnlyPickle { folder, .. } => {
            Problem::WrongKind { path: folder.clone(), kind: "folder with pickled weights only".to_owned() }
        }
        WeightError::NoVae { path } => Problem::NoVae { path: path.clone() },
        WeightError::HeaderTooSmall { file, .. }
        | WeightError::HeaderTooLarge { file, .. }
        | WeightError::HeaderUtf8 { file, .. }
        | WeightError::HeaderJson { file, .. }
        | WeightError::TensorEntry { file, .. }
        | WeightError::Duplicate { file, .. }
        | WeightError::OffsetMismatch { file, .. }
        | WeightError::Overflow { file, .. }
        | WeightError::Overlap { file, .. }
        | WeightError::Gap { file, .. }
        | WeightError::ExtraBytes { file, .. } => damaged(file),
        WeightError::NoTensor { file, .. }
        | WeightError::NotFloat { file, .. }
        | WeightError::Shape { file, .. }
        | WeightError::MissingTensors { file, .. }
        | WeightError::Config { file, .. }
        | WeightError::ConfigUnsupported { file, .. } => {
            Problem::BadCheckpoint { path: file.clone(), what: what(file) }
        }
        WeightError::MissingPart { path, .. } => Problem::BadCheckpoint { path: path.clone(), what: what(path) },
        WeightError::MissingShard { index, .. } => Problem::BadCheckpoint { path: index.clone(), what: what(index) },
        WeightError::PrecisionUndecided => Problem::Internal(error.to_string()),
    }
}

/// Whether a device's own words mean that memory ran out. cubecl passes the driver's error on as text only.
pub fn is_out_of_memory(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["out of memory", "outofmemory", "out_of_memory", "buffertoobig", "too big"].iter().any(|sign| text.contains(sign))
}

/// The error's text and that of everything below it, without repeats.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Hint;

    fn scene(phase: Phase) -> Scene<'static> {
        Scene { phase, device: "GPU", model: Path::new("/m.safetensors"), precision: Precision::F16 }
    }

    #[test]
    fn an_allocation_that_failed_is_told_from_other_faults() {
        for text in ["CUDA_ERROR_OUT_OF_MEMORY", "IoError::BufferTooBig", "Out of memory on device 0"] {
            assert!(is_out_of_memory(text), "{text}");
        }
        assert!(!is_out_of_memory("an illegal memory access was encountered"));
        let ended = from_diffusion(DiffusionError::Device("OutOfMemory".into()), scene(Phase::Decoding));
        let Ended::Failed(error) = ended else { panic!("not a failure") };
        assert_eq!(error.problem, Problem::OutOfMemory { phase: Phase::Decoding });
    }

    #[test]
    fn full_precision_is_only_advised_to_whom_it_is_new() {
        let broken = |precision| match from_diffusion(
            DiffusionError::LatentNotFinite { step: 3 },
            Scene { precision, ..scene(Phase::Loading) },
        ) {
            Ended::Failed(error) => error.hints,
            Ended::Cancelled => panic!("not a failure"),
        };
        assert_eq!(broken(Precision::F16), [Hint::UseF32]);
        assert!(!broken(Precision::F32).contains(&Hint::UseF32) && !broken(Precision::F32).is_empty());
    }

    #[test]
    fn a_file_is_named_once() {
        let file = Path::new("/models/m.safetensors").to_owned();
        let error = WeightError::NoTensor { file, tensor: "x".to_owned() };
        let Problem::BadCheckpoint { what, .. } = from_weights(&error) else { panic!("{error}") };
        assert_eq!(what, "no tensor x");
    }

    #[test]
    fn a_stop_is_no_failure() {
        assert!(matches!(from_diffusion(DiffusionError::Stopped, scene(Phase::Encoding)), Ended::Cancelled));
    }
}
