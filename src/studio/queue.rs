//! The jobs handed to the engine that have not ended, in the order they will run, and the last one that did.
//!
//! The engine holds them too and takes one after the other; a waiting job is cancelled through its control like a
//! running one.

use super::draft::Draft;
use super::job::{JobEvent, JobState, Move};
use crate::base::problem::Phase;
use crate::base::{JobError, JobId, OutputPlan, SamplerKind, ShotRequest};
use crate::engine::protocol::{Job, JobControl, PauseReason, Progress, Setup, Summary, Wish};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// One job as the studio sees it.
#[derive(Clone, Debug)]
pub struct JobEntry {
    pub id: JobId,
    pub request: ShotRequest,
    pub setup: Setup,
    pub output: OutputPlan,
    pub state: JobState,
    pub progress: Option<Progress>,
    /// Pictures that came so far.
    pub pictures: u32,
    /// How it went; only of a job that is done.
    pub summary: Option<Box<Summary>>,
    pub(super) control: Arc<JobControl>,
}

impl JobEntry {
    /// What it is doing, or will go on with.
    pub fn phase(&self) -> Option<Phase> {
        self.state.phase()
    }

    pub fn paused(&self) -> bool {
        matches!(self.state, JobState::Paused { .. })
    }

    /// Asked to pause, not paused yet.
    pub fn pausing(&self) -> bool {
        !self.paused() && self.control.wish() == Wish::Pause
    }

    /// Asked to go on after a pause by hand, not gone on yet.
    pub fn resuming(&self) -> bool {
        matches!(self.state, JobState::Paused { reason: PauseReason::Asked, .. }) && self.control.wish() == Wish::Run
    }

    /// Asked to stop and keep, not ended yet.
    pub fn stopping(&self) -> bool {
        self.control.wish() == Wish::StopAndKeep
    }

    /// Asked to cancel; the engine has not confirmed it yet.
    pub fn cancelling(&self) -> bool {
        self.control.wish() == Wish::Cancel
    }
}

/// Jobs that have not ended, in order, and the last that ended.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: VecDeque<JobEntry>,
    last: Option<JobEntry>,
    /// The last that failed, to be tried again.
    failed: Option<JobEntry>,
    pace: Option<Pace>,
    made: u64,
}

/// What an event came to.
#[derive(Debug)]
pub(super) enum Advance {
    /// The job is still in the queue.
    Moved,
    /// The job ended as the state of [`Queue::last`] says.
    Ended,
    /// No such job any more: the event means nothing.
    Late,
    /// The engine told what cannot be; the job has ended as failed with this.
    Illegal(Box<JobError>),
}

/// What the last finished job measured.
#[derive(Debug)]
struct Pace {
    setup: Setup,
    /// Seconds a UNet call takes for a pixel and a pass.
    per_work: f64,
    /// Seconds to decode and save, for a pixel.
    per_pixel: f64,
    encode: f64,
}

impl Queue {
    /// Jobs that may wait at once; a held key should not fill the engine's channel.
    pub const MOST: usize = 100;

    /// In the order they will run.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = &JobEntry> + ExactSizeIterator {
        self.jobs.iter()
    }

    /// The job that runs or is paused.
    pub fn running(&self) -> Option<&JobEntry> {
        self.jobs.iter().find(|job| job.state != JobState::Queued)
    }

    /// Jobs the engine has not begun.
    pub fn waiting(&self) -> impl Iterator<Item = &JobEntry> {
        self.jobs.iter().filter(|job| job.state == JobState::Queued)
    }

    pub fn get(&self, id: JobId) -> Option<&JobEntry> {
        self.jobs.iter().find(|job| job.id == id)
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.jobs.len() >= Self::MOST
    }

    /// The last job that ended, however it did.
    pub fn last(&self) -> Option<&JobEntry> {
        self.last.as_ref()
    }

    /// The last job that failed, whatever ended since.
    pub(super) fn failed(&self) -> Option<&JobEntry> {
        self.failed.as_ref()
    }

    /// The one that runs, or else will run next.
    pub(super) fn front(&self) -> Option<&JobEntry> {
        self.running().or_else(|| self.jobs.front())
    }

    /// Adds a job and makes what is sent to the engine.
    pub(super) fn push(&mut self, request: ShotRequest, setup: Setup, output: OutputPlan) -> Job {
        self.made += 1;
        let id = JobId(self.made);
        let control = Arc::new(JobControl::default());
        self.jobs.push_back(JobEntry {
            id,
            request: request.clone(),
            setup: setup.clone(),
            output: output.clone(),
            state: JobState::Queued,
            progress: None,
            pictures: 0,
            summary: None,
            control: control.clone(),
        });
        Job { id, request, setup, output, keep_latents: false, control }
    }

    /// Moves a job by an event.
    pub(super) fn advance(&mut self, id: JobId, event: &JobEvent) -> Advance {
        let Some(place) = self.jobs.iter().position(|job| job.id == id) else { return Advance::Late };
        let Some(job) = self.jobs.get_mut(place) else { return Advance::Late };
        let illegal = match job.state.next(event) {
            Move::To(state) => {
                job.state = state;
                None
            }
            Move::Late => return Advance::Late,
            Move::Illegal(error) => {
                // Whatever the engine is doing with it, nobody waits for it any more.
                job.control.cancel();
                job.state = JobState::Failed(error.clone());
                Some(error)
            }
        };
        if *event == JobEvent::Picture && illegal.is_none() {
            job.pictures += 1;
        }
        let ended = job.state.ended();
        if ended {
            self.last = self.jobs.remove(place);
            if let Some(JobState::Failed(_)) = self.last.as_ref().map(|job| &job.state) {
                self.failed = self.last.clone();
            }
        }
        match (illegal, ended) {
            (Some(error), _) => Advance::Illegal(error),
            (None, true) => Advance::Ended,
            (None, false) => Advance::Moved,
        }
    }

    pub(super) fn progress(&mut self, id: JobId, progress: Progress) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) {
            job.progress = Some(progress);
        }
    }

    /// Keeps how the last job went, and its pace for estimates.
    pub(super) fn summarise(&mut self, id: JobId, summary: Box<Summary>) {
        let Some(job) = self.last.as_mut().filter(|job| job.id == id) else { return };
        self.pace = Pace::of(job, &summary).or(self.pace.take());
        job.summary = Some(summary);
    }

    /// The engine is gone: every job ends as failed with this.
    pub(super) fn fail_all(&mut self, error: &JobError) {
        for mut job in self.jobs.drain(..) {
            job.state = JobState::Failed(Box::new(error.clone()));
            self.last = Some(job);
        }
    }

    pub(super) fn cancel_all(&self) {
        self.jobs.iter().for_each(|job| job.control.cancel());
    }

    /// See [`Studio::time_estimate`](super::Studio::time_estimate).
    pub(super) fn estimate(&self, draft: &Draft) -> Option<Duration> {
        let pace = self.pace.as_ref().filter(|pace| draft.setup().as_ref() == Some(&pace.setup))?;
        let request = draft.request(0).ok()?;
        let pixels = request.size.pixels() as f64;
        let one = work(&request) * f64::from(request.steps) * pace.per_work + pixels * pace.per_pixel;
        Duration::try_from_secs_f64(pace.encode + one * f64::from(request.count)).ok()
    }
}

impl Pace {
    /// `None` where the job made no step or no picture.
    fn of(job: &JobEntry, summary: &Summary) -> Option<Pace> {
        let mut steps: Vec<f64> = summary.seconds.steps.iter().copied().filter(|s| s.is_finite()).collect();
        steps.sort_by(f64::total_cmp);
        let median = *steps.get(steps.len() / 2)?;
        if summary.images == 0 {
            return None;
        }
        let pixels = job.request.size.pixels() as f64 * f64::from(summary.images);
        Some(Pace {
            setup: job.setup.clone(),
            per_work: median / work(&job.request),
            per_pixel: (summary.seconds.decode + summary.seconds.save) / pixels,
            encode: summary.seconds.encode,
        })
    }
}

/// What a step costs, in pixels × UNet calls × passes.
fn work(request: &ShotRequest) -> f64 {
    // Heun and DPM++ SDE evaluate the model twice a step; CFG 1 skips the unconditional pass.
    let calls = if matches!(request.sampler, SamplerKind::Heun | SamplerKind::DpmppSde) { 2.0 } else { 1.0 };
    let passes = if request.cfg == 1.0 { 1.0 } else { 2.0 };
    request.size.pixels() as f64 * calls * passes
}
