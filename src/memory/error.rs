//! What can go wrong with memory, and what each case becomes for the person.

use crate::base::problem::Phase;
use crate::base::{Bytes, Flaw, JobError, Problem, Reason, Size};
use std::path::PathBuf;

/// An error of `memory/`. Each becomes one [`Problem`] at the end of the job that met it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MemoryError {
    /// An allocation found no room.
    #[error("out of memory: {what} needs {need}, {have} can be had")]
    OutOfMemory { what: String, need: Bytes, have: Bytes },
    /// The run was refused before it began, or its budget does not hold.
    #[error("does not fit: {0}")]
    DoesNotFit(Refusal),
    /// The gauge script cannot be read.
    #[error("{}: {}", path.display(), why.told())]
    ScriptUnreadable { path: PathBuf, why: Reason },
    /// A line of the gauge script does not hold. Lines count from 1.
    #[error("{}, line {line}: {what}", path.display())]
    ScriptLine { path: PathBuf, line: usize, what: String },
}

/// Why a run does not fit, in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The most that the run holds at once.
    pub need: Bytes,
    /// What of that can be had without passing the limit.
    pub have: Bytes,
    /// The line that would be passed: a share of the card, or the budget.
    pub limit: Bytes,
    /// The nearest smaller picture that fits.
    pub fits: Option<Size>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} needed, {} available below {}", self.need, self.have, self.limit)?;
        if let Some(size) = self.fits {
            write!(f, ", {size} fits")?;
        }
        Ok(())
    }
}

impl MemoryError {
    /// The error as the job's end. `phase` is what the job was doing.
    pub fn into_job_error(self, phase: Phase) -> JobError {
        let details = self.to_string();
        let problem = match self {
            MemoryError::OutOfMemory { .. } => Problem::OutOfMemory { phase },
            MemoryError::DoesNotFit(Refusal { need, have, limit, fits }) => {
                Problem::DoesNotFit { need, have, limit, fits }
            }
            MemoryError::ScriptUnreadable { path, .. } => Problem::FileUnreadable { path },
            MemoryError::ScriptLine { path, line, what } => {
                Problem::FileDamaged { path, what: Flaw::ScriptLine { line, told: what } }
            }
        };
        JobError::new(problem, details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Hint;

    #[test]
    fn each_error_becomes_the_problem_with_its_figures() {
        let size = Size::new(512, 512).unwrap();
        let refusal = Refusal { need: Bytes::gib(9), have: Bytes::gib(5), limit: Bytes::gib(7), fits: Some(size) };
        let error = MemoryError::DoesNotFit(refusal).into_job_error(Phase::Loading);
        assert_eq!(error.hints.first(), Some(&Hint::UseSize(size)));
        assert!(error.details.contains("9.0 GiB needed, 5.0 GiB available below 7.0 GiB, 512x512 fits"));

        let error = MemoryError::OutOfMemory { what: "UNet".into(), need: Bytes::gib(2), have: Bytes::gib(1) };
        let error = error.into_job_error(Phase::Decoding);
        assert_eq!(error.problem, Problem::OutOfMemory { phase: Phase::Decoding });

        let error = MemoryError::ScriptLine { path: "a.gauge".into(), line: 3, what: "no number".into() };
        assert!(error.to_string().starts_with("a.gauge, line 3"));
    }
}
