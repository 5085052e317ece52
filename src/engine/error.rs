//! Turns what the pipeline reports into the one error that a person sees: what happened, what was given, what to do next.

use crate::base::problem::Phase;
use crate::base::request::RequestError;
use crate::base::{Bytes, Flaw, JobError, ModelChoice, Precision, Problem};
use crate::diffusion::DiffusionError;
use crate::diffusion::samplers::SamplerError;
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
        DiffusionError::Shape { name, found, expected } => {
            let found = format!("{found:?}");
            bad(model, Flaw::Shape { tensor: name.clone(), found, expected: expected.clone() })
        }
        DiffusionError::Unsupported { part: "tokenizer", what } => bad(model, Flaw::Tokenizer(what.clone())),
        DiffusionError::Unsupported { part, what } => {
            bad(model, Flaw::Unsupported { part: (*part).to_owned(), told: what.clone() })
        }
        DiffusionError::Tokenizer(error) => bad(model, Flaw::Tokenizer(error.to_string())),
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
        DiffusionError::Sampler(error) => Problem::Request(from_sampler(*error)),
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

fn bad(path: &Path, what: Flaw) -> Problem {
    Problem::BadCheckpoint { path: path.to_owned(), what }
}

fn from_sampler(error: SamplerError) -> RequestError {
    match error {
        SamplerError::Pair { sampler, schedule } => RequestError::Pair { sampler, schedule },
        SamplerError::Steps { sampler, schedule, steps, least, most } => {
            RequestError::PairSteps { sampler, schedule, steps: u32::try_from(steps).unwrap_or(u32::MAX), least, most }
        }
    }
}

/// The kind of fault in a checkpoint's files.
pub fn from_weights(error: &WeightError) -> Problem {
    use WeightError as E;
    let damaged = |file: &Path, what: Flaw| Problem::FileDamaged { path: file.to_owned(), what };
    match error {
        E::Io { file, .. } => Problem::FileUnreadable { path: file.clone() },
        E::NotFound { path } => Problem::FileUnreadable { path: path.clone() },
        E::Incomplete { file, have, need, .. } | E::InvalidHeaderLength { file, have, need } => {
            Problem::FileIncomplete { path: file.clone(), have: Bytes(*have), need: Bytes(*need) }
        }
        E::Changed { file } => Problem::FileChanged { path: file.clone() },
        E::Refused { path, family } => Problem::WrongKind { path: path.clone(), kind: family.to_string() },
        E::Foreign { file, format } => Problem::WrongKind { path: file.clone(), kind: format.to_string() },
        E::NotVae { path, kind } => Problem::NotVae { path: path.clone(), kind: kind.clone() },
        E::OnlyPickle { folder, .. } => {
            Problem::WrongKind { path: folder.clone(), kind: "folder with pickled weights only".to_owned() }
        }
        E::NoVae { path } => Problem::NoVae { path: path.clone() },
        E::HeaderTooSmall { file, have } => damaged(file, Flaw::TooShort { have: *have }),
        E::HeaderTooLarge { file, length } => damaged(file, Flaw::HeaderTooLarge { length: *length }),
        E::HeaderUtf8 { file, .. } => damaged(file, Flaw::HeaderNoText),
        E::HeaderJson { file, detail } => damaged(file, Flaw::HeaderNoJson(detail.clone())),
        E::TensorEntry { file, tensor, detail } => {
            damaged(file, Flaw::Entry { tensor: tensor.clone(), told: detail.clone() })
        }
        E::Duplicate { file, tensor } => damaged(file, Flaw::Duplicate { tensor: tensor.clone() }),
        E::OffsetMismatch { file, tensor, need, have, .. } => {
            damaged(file, Flaw::Offsets { tensor: tensor.clone(), need: *need, have: *have })
        }
        E::Overflow { file, tensor, .. } => damaged(file, Flaw::Overflow { tensor: tensor.clone() }),
        E::Overlap { file, tensor, other } => {
            damaged(file, Flaw::Overlap { tensor: tensor.clone(), other: other.clone() })
        }
        E::Gap { file, tensor, gap } => damaged(file, Flaw::Gap { tensor: tensor.clone(), bytes: *gap }),
        E::ExtraBytes { file, extra, .. } => damaged(file, Flaw::ExtraBytes { bytes: *extra }),
        E::NoTensor { file, tensor } => bad(file, Flaw::NoTensor { tensor: tensor.clone() }),
        E::NotFloat { file, tensor, dtype } => {
            bad(file, Flaw::NoWeights { tensor: tensor.clone(), dtype: dtype.to_string() })
        }
        E::Shape { file, tensor, expected, found } => {
            let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
            bad(file, Flaw::Shape { tensor: tensor.clone(), found, expected })
        }
        E::MissingTensors { file, part, tensor, count } => {
            let part = part.label().to_owned();
            bad(file, Flaw::MissingTensors { part, count: *count, first: tensor.clone() })
        }
        E::MissingPart { path, part } => bad(path, Flaw::MissingPart { part: part.label().to_owned() }),
        E::MissingShard { index, shard } => bad(index, Flaw::MissingShard { shard: shard.clone() }),
        E::Config { file, field, detail } => bad(file, Flaw::Setting { field: field.clone(), told: detail.clone() }),
        E::ConfigUnsupported { file, field, value } => {
            bad(file, Flaw::SettingUnsupported { field: field.clone(), value: value.clone() })
        }
        E::NotBuiltIn => bad(Path::new(&ModelChoice::Pocket.name()), Flaw::LeftOut),
        E::PrecisionUndecided => Problem::Internal(error.to_string()),
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
    fn a_flaw_is_told_apart_from_its_file() {
        let file = Path::new("/models/m.safetensors").to_owned();
        let error = WeightError::NoTensor { file, tensor: "x".to_owned() };
        let Problem::BadCheckpoint { what, .. } = from_weights(&error) else { panic!("{error}") };
        assert_eq!(what, Flaw::NoTensor { tensor: "x".to_owned() });
    }

    #[test]
    fn a_stop_is_no_failure() {
        assert!(matches!(from_diffusion(DiffusionError::Stopped, scene(Phase::Encoding)), Ended::Cancelled));
    }
}
