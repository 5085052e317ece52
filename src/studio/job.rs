//! The states of one job and the moves between them. Pure: no channel, no clock.
//!
//! [`JobState::next`] is the whole table. Cancelling is no state: it is a wish in the job's control until the engine
//! confirms it with [`JobEvent::Cancelled`].

use crate::base::problem::Phase;
use crate::base::{JobError, Problem};
use crate::engine::protocol::PauseReason;

/// Where a job stands.
#[derive(Clone, Debug, PartialEq)]
pub enum JobState {
    /// Handed to the engine, not begun.
    Queued,
    Running {
        phase: Phase,
    },
    /// Waiting; goes on with `interrupted`.
    Paused {
        reason: PauseReason,
        interrupted: Phase,
    },
    Done,
    Failed(Box<JobError>),
    Cancelled,
}

/// What the engine told of a job, as far as its state is concerned.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEvent {
    Started,
    Phase(Phase),
    /// A step is done.
    Progress {
        step: u32,
        of: u32,
    },
    Paused(PauseReason),
    Resumed,
    Picture,
    Done,
    Failed(Box<JobError>),
    Cancelled,
}

/// What an event does to a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    To(JobState),
    /// The job has ended; whatever still comes of it means nothing.
    Late,
    /// The engine told what cannot be here. The job counts as failed with this.
    Illegal(Box<JobError>),
}

impl JobState {
    /// Whether nothing more can happen to the job.
    pub fn ended(&self) -> bool {
        matches!(self, JobState::Done | JobState::Failed(_) | JobState::Cancelled)
    }

    /// What the job is doing, or will go on with.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            JobState::Running { phase } => Some(*phase),
            JobState::Paused { interrupted, .. } => Some(*interrupted),
            _ => None,
        }
    }

    /// What `event` makes of this state.
    ///
    /// | state | legal events |
    /// | --- | --- |
    /// | Queued | Started, Failed, Cancelled |
    /// | Running | Phase, Progress, Paused, Picture, Done, Failed, Cancelled |
    /// | Paused | Paused (another reason), Phase (stop and keep), Progress, Resumed, Picture, Done, Failed, Cancelled |
    /// | ended | none; all are late |
    pub fn next(&self, event: &JobEvent) -> Move {
        match (self, event) {
            (JobState::Done | JobState::Failed(_) | JobState::Cancelled, _) => Move::Late,
            (_, JobEvent::Failed(error)) => Move::To(JobState::Failed(error.clone())),
            (_, JobEvent::Cancelled) => Move::To(JobState::Cancelled),

            (JobState::Queued, JobEvent::Started) => Move::To(JobState::Running { phase: Phase::Loading }),

            // Stop-and-keep leaves a pause for the decoder without having gone on first.
            (JobState::Running { .. } | JobState::Paused { .. }, JobEvent::Phase(phase)) => {
                Move::To(JobState::Running { phase: *phase })
            }
            (JobState::Running { phase }, JobEvent::Progress { step, of }) => {
                Move::To(JobState::Running { phase: stepped(*phase, *step, *of) })
            }
            (JobState::Running { phase }, JobEvent::Paused(reason)) => {
                Move::To(JobState::Paused { reason: reason.clone(), interrupted: *phase })
            }
            (JobState::Paused { interrupted, .. }, JobEvent::Paused(reason)) => {
                Move::To(JobState::Paused { reason: reason.clone(), interrupted: *interrupted })
            }
            (JobState::Paused { reason, interrupted }, JobEvent::Progress { step, of }) => {
                Move::To(JobState::Paused { reason: reason.clone(), interrupted: stepped(*interrupted, *step, *of) })
            }
            (JobState::Paused { interrupted, .. }, JobEvent::Resumed) => {
                Move::To(JobState::Running { phase: *interrupted })
            }
            (JobState::Running { .. } | JobState::Paused { .. }, JobEvent::Picture) => Move::To(self.clone()),
            (JobState::Running { .. } | JobState::Paused { .. }, JobEvent::Done) => Move::To(JobState::Done),

            (
                JobState::Queued,
                JobEvent::Phase(_)
                | JobEvent::Progress { .. }
                | JobEvent::Paused(_)
                | JobEvent::Resumed
                | JobEvent::Picture
                | JobEvent::Done,
            )
            | (JobState::Running { .. }, JobEvent::Started | JobEvent::Resumed)
            | (JobState::Paused { .. }, JobEvent::Started) => Move::Illegal(Box::new(JobError::new(
                Problem::Internal("the job was told what cannot be".to_owned()),
                format!("{event:?} while {self:?}"),
            ))),
        }
    }
}

/// Progress moves the step of a denoising phase; in the others it is only a figure.
fn stepped(phase: Phase, step: u32, of: u32) -> Phase {
    if let Phase::Denoising { .. } = phase { Phase::Denoising { step, of } } else { phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> Box<JobError> {
        Box::new(JobError::new(Problem::NoModel, "x"))
    }

    fn low() -> PauseReason {
        PauseReason::LowMemory { step: 3, used: 0.93, limit: 0.9, others: None }
    }

    fn running(phase: Phase) -> JobState {
        JobState::Running { phase }
    }

    fn paused(reason: PauseReason, interrupted: Phase) -> JobState {
        JobState::Paused { reason, interrupted }
    }

    /// What a move comes to, with every illegal one alike.
    #[derive(Debug, PartialEq)]
    enum Seen {
        To(JobState),
        Late,
        Illegal,
    }

    fn seen(state: &JobState, event: &JobEvent) -> Seen {
        match state.next(event) {
            Move::To(state) => Seen::To(state),
            Move::Late => Seen::Late,
            Move::Illegal(_) => Seen::Illegal,
        }
    }

    /// Every state × every event.
    #[test]
    fn the_whole_table() {
        use JobEvent as E;
        let step2 = Phase::Denoising { step: 2, of: 9 };
        let step3 = Phase::Denoising { step: 3, of: 9 };
        let events = || {
            [
                E::Started,
                E::Phase(Phase::Decoding),
                E::Progress { step: 3, of: 9 },
                E::Paused(low()),
                E::Resumed,
                E::Picture,
                E::Done,
                E::Failed(error()),
                E::Cancelled,
            ]
        };
        let failed = || Seen::To(JobState::Failed(error()));
        let cancelled = || Seen::To(JobState::Cancelled);
        let done = || Seen::To(JobState::Done);
        use Seen::{Illegal, Late, To};

        let of_running = |phase: Phase, stepped: Phase| {
            [
                Illegal,
                To(running(Phase::Decoding)),
                To(running(stepped)),
                To(paused(low(), phase)),
                Illegal,
                To(running(phase)),
                done(),
                failed(),
                cancelled(),
            ]
        };
        let of_paused = |reason: fn() -> PauseReason, phase: Phase, stepped: Phase| {
            [
                Illegal,
                To(running(Phase::Decoding)),
                To(paused(reason(), stepped)),
                To(paused(low(), phase)),
                To(running(phase)),
                To(paused(reason(), phase)),
                done(),
                failed(),
                cancelled(),
            ]
        };
        let ended = || [Late, Late, Late, Late, Late, Late, Late, Late, Late];
        let table = [
            (
                JobState::Queued,
                [
                    To(running(Phase::Loading)),
                    Illegal,
                    Illegal,
                    Illegal,
                    Illegal,
                    Illegal,
                    Illegal,
                    failed(),
                    cancelled(),
                ],
            ),
            (running(Phase::Loading), of_running(Phase::Loading, Phase::Loading)),
            (running(Phase::Encoding), of_running(Phase::Encoding, Phase::Encoding)),
            (running(step2), of_running(step2, step3)),
            (running(Phase::Decoding), of_running(Phase::Decoding, Phase::Decoding)),
            (running(Phase::Saving), of_running(Phase::Saving, Phase::Saving)),
            (paused(low(), step2), of_paused(low, step2, step3)),
            (paused(PauseReason::Asked, step2), of_paused(|| PauseReason::Asked, step2, step3)),
            (
                paused(PauseReason::Asked, Phase::Loading),
                of_paused(|| PauseReason::Asked, Phase::Loading, Phase::Loading),
            ),
            (JobState::Done, ended()),
            (JobState::Failed(error()), ended()),
            (JobState::Cancelled, ended()),
        ];
        for (state, expected) in table {
            for (event, expected) in events().into_iter().zip(expected) {
                assert_eq!(seen(&state, &event), expected, "{event:?} while {state:?}");
            }
        }
    }

    #[test]
    fn an_illegal_move_says_what_was_told() {
        let Move::Illegal(error) = JobState::Queued.next(&JobEvent::Done) else { panic!("legal") };
        assert!(error.details.contains("Done") && error.details.contains("Queued"), "{}", error.details);
        assert!(matches!(error.problem, Problem::Internal(_)));
    }

    #[test]
    fn a_pause_remembers_where_to_go_on() {
        let step = Phase::Denoising { step: 7, of: 20 };
        let mut state = running(step);
        for event in [JobEvent::Paused(PauseReason::Asked), JobEvent::Paused(low()), JobEvent::Resumed] {
            let Move::To(next) = state.next(&event) else { panic!("{event:?}") };
            assert_eq!(next.phase(), Some(step));
            state = next;
        }
        assert_eq!(state, running(step));
    }
}
