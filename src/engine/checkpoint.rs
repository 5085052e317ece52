//! What happens between two steps: the device is in step with us (its results have been read back), so commands, the
//! person's wish and the memory verdict are all true now.

use super::error::Ended;
use super::protocol::{Event, Job, PauseReason, Progress, Seconds, Wish};
use super::steering::Steering;
use super::worker::Worker;
use crate::memory::{Boundary, Pressure};
use std::time::Duration;

/// What the loop does next.
pub enum After {
    GoOn,
    /// Stop here and decode what there is.
    Keep,
    /// The card is over the limit: the weights leave it, and the job waits.
    Wait(Pressure),
}

/// The watcher of one picture's loop.
pub struct Checkpoint<'a> {
    job: &'a Job,
    steering: &'a Steering<'a>,
    index: u32,
    steps: usize,
    /// Seconds of the recent steps, for the pace.
    recent: Vec<f64>,
}

/// Steps that the pace is averaged over.
const RECENT: usize = 8;

impl<'a> Checkpoint<'a> {
    pub fn new(job: &'a Job, steering: &'a Steering<'a>, index: u32, steps: usize) -> Self {
        Checkpoint { job, steering, index, steps, recent: Vec::with_capacity(RECENT) }
    }

    /// Called after `step` steps, the last of which took `seconds`.
    pub fn after_step(
        &mut self,
        worker: &mut Worker,
        step: usize,
        seconds: f64,
        so_far: &Seconds,
    ) -> Result<After, Ended> {
        self.tell_progress(worker, step, seconds, so_far);
        self.steering.checkpoint();
        worker.serve_commands();
        if let Some(after) = self.heed_wish(worker)? {
            return Ok(after);
        }
        if step == self.steps {
            return Ok(After::GoOn);
        }
        match worker.memory.at_boundary() {
            Ok(Boundary::GoOn) => Ok(After::GoOn),
            Ok(Boundary::Pause(pressure)) => Ok(After::Wait(pressure)),
            Err(error) => Err(Ended::Failed(Box::new(error.into_job_error(self.steering.phase())))),
        }
    }

    /// Waits until what the rest of the run needs fits again, or the person decides.
    pub fn wait_for_room(&self, worker: &mut Worker, step: usize, pressure: Pressure) -> Result<After, Ended> {
        wait_for_room(worker, self.steering, step as u32, pressure);
        Ok(self.heed_wish(worker)?.unwrap_or(After::GoOn))
    }

    /// Waits while paused, and says if the loop is to end.
    fn heed_wish(&self, worker: &mut Worker) -> Result<Option<After>, Ended> {
        self.steering.wait_while_paused(|| worker.serve_commands());
        match self.steering.wish() {
            Wish::Cancel => Err(Ended::Cancelled),
            Wish::StopAndKeep => Ok(Some(After::Keep)),
            Wish::Run | Wish::Pause => Ok(None),
        }
    }

    fn tell_progress(&mut self, worker: &Worker, step: usize, seconds: f64, so_far: &Seconds) {
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(seconds);
        // The first step of a run compiles kernels, so it says little about the next ones.
        let told = if self.recent.len() > 2 { &self.recent[1..] } else { &self.recent[..] };
        let pace = told.iter().sum::<f64>() / told.len().max(1) as f64;
        let images = self.job.request.count;
        let done = self.index;
        let steps_left = (self.steps - step) + self.steps * images.saturating_sub(done + 1) as usize;
        // Until a picture has been decoded, decoding counts as two steps.
        let decode = if done > 0 { so_far.decode / f64::from(done) } else { 2.0 * pace };
        let left = pace * steps_left as f64 + decode * f64::from(images.saturating_sub(done));
        worker.link.tell(Event::Progress(
            self.job.id,
            Progress {
                image: done,
                images,
                step: step as u32,
                steps: self.steps as u32,
                steps_per_second: (pace > 0.0).then(|| pace.recip()),
                left: Duration::try_from_secs_f64(left).ok(),
            },
        ));
    }
}

/// Takes the weights off the device and waits until what is left of the run fits, the person says to go on anyway, or
/// they end it.
pub fn wait_for_room(worker: &mut Worker, steering: &Steering, step: u32, pressure: Pressure) {
    worker.memory.let_weights_go();
    let Pressure { used, limit, others } = pressure;
    // What was said before this pause does not mean it.
    steering.take_go_anyway();
    steering.wait(PauseReason::LowMemory { step, used, limit, others }, || {
        worker.serve_commands();
        steering.breaks_off() || worker.memory.has_room_again(steering.take_go_anyway())
    });
}
