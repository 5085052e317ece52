//! What the engine told since the last look.

use super::action::Effect;
use super::job::{JobEvent, JobState};
use super::memory::{MarkKind, Stage};
use super::messages::{Line, Trouble};
use super::queue::Advance;
use super::{PreviewView, Studio};
use crate::base::{JobError, JobId, Notice, OutputPlan, Problem};
use crate::engine::protocol::{Event, PauseReason, Preview, Shot};
use crossbeam_channel::TryRecvError;

impl Studio {
    /// Takes all that the engine told: events, then the newest preview and reading. Never waits. Whether anything changed.
    pub fn poll(&mut self) -> bool {
        let mut changed = false;
        loop {
            match self.engine.events.try_recv() {
                Ok(event) => {
                    self.take_event(event);
                    changed = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    changed |= self.lose_engine();
                    break;
                }
            }
        }
        if let Some(preview) = self.engine.previews.take() {
            changed |= self.take_preview(preview);
        }
        if let Some(reading) = self.engine.readings.take() {
            self.memory.take_reading(reading, self.stage());
            changed = true;
        }
        if changed {
            self.foresee();
        }
        changed
    }

    /// What the app has to do because of what `poll` met.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.pending)
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Device(status) => self.device = Some(status),
            Event::Started(id) => self.advance(id, JobEvent::Started),
            Event::Phase(id, phase) => self.advance(id, JobEvent::Phase(phase)),
            Event::Progress(id, progress) => {
                self.queue.progress(id, progress);
                self.advance(id, JobEvent::Progress { step: progress.step, of: progress.steps });
            }
            Event::Paused(id, reason) => self.advance(id, JobEvent::Paused(reason)),
            Event::Resumed(id) => self.advance(id, JobEvent::Resumed),
            // The picture itself brings word of it, with more to do about it.
            Event::Notice(_, Notice::NotSaved { .. }) => {}
            Event::Notice(job, notice) => self.notices.push(job, Line::Engine(notice)),
            Event::Picture(id, shot) => self.take_picture(id, *shot),
            Event::Done(id, summary) => {
                let (images, seconds) = (summary.images, summary.seconds.total);
                if let Advance::Ended = self.advance_quietly(id, &JobEvent::Done) {
                    self.queue.summarise(id, summary);
                    self.notices.push(Some(id), Line::Done { images, seconds });
                    self.job_done();
                }
            }
            Event::Failed(id, error) => self.advance(id, JobEvent::Failed(error)),
            Event::Cancelled(id) => self.advance(id, JobEvent::Cancelled),
            Event::Cleaned(report) => {
                self.memory.cleaned(report.clone());
                self.notices.push(None, Line::Cleaned(report));
            }
        }
    }

    /// Moves a job and shows what came of it.
    fn advance(&mut self, id: JobId, event: JobEvent) {
        match self.advance_quietly(id, &event) {
            Advance::Moved => match event {
                JobEvent::Paused(PauseReason::Asked) => self.memory.mark(MarkKind::PausedByHand),
                JobEvent::Paused(PauseReason::LowMemory { .. }) => self.memory.mark(MarkKind::PausedForMemory),
                JobEvent::Resumed => self.memory.mark(MarkKind::Resumed),
                _ => {}
            },
            Advance::Ended => match event {
                JobEvent::Failed(error) => {
                    self.draft.forever = false;
                    self.trouble = Some(Trouble::Job { job: Some(id), error });
                }
                JobEvent::Cancelled => self.notices.push(Some(id), Line::Cancelled),
                _ => {}
            },
            Advance::Late | Advance::Illegal(_) => {}
        }
    }

    /// Moves a job; shows only what must not be.
    fn advance_quietly(&mut self, id: JobId, event: &JobEvent) -> Advance {
        let advance = self.queue.advance(id, event);
        if let Advance::Illegal(error) = &advance {
            self.draft.forever = false;
            self.trouble = Some(Trouble::Job { job: Some(id), error: error.clone() });
        }
        if self.preview.as_ref().is_some_and(|preview| self.queue.get(preview.job).is_none()) {
            self.preview = None;
        }
        advance
    }

    /// After a job that went well: the next round, or word to the person.
    fn job_done(&mut self) {
        if !self.queue.is_empty() {
            return;
        }
        if self.draft.forever {
            if let Some(request) = self.queue.last().map(|job| job.request.clone()) {
                self.go_on_forever(&request);
            }
        } else if self.notify_when_done {
            self.pending.push(Effect::NotifyDone);
        }
    }

    /// A finished picture is kept whatever became of its job.
    fn take_picture(&mut self, id: JobId, shot: Shot) {
        let output = self.queue.get(id).map(|job| job.output.clone());
        if let (None, Some(why)) = (&shot.file, &shot.save_error) {
            let folder = match output {
                Some(OutputPlan::Folder { folder, .. }) => folder,
                Some(OutputPlan::File(file)) => file,
                Some(OutputPlan::Keep) | None => self.output_folder().cloned().unwrap_or_default(),
            };
            let told = why.told().to_owned();
            let problem = Problem::NotSaved { folder, why: why.clone() };
            self.trouble = Some(Trouble::Job { job: None, error: Box::new(JobError::new(problem, told)) });
            // Going on would fill the memory with pictures that lie nowhere else.
            self.draft.forever = false;
        }
        if self.preview.as_ref().is_some_and(|preview| preview.job == id) {
            self.preview = None;
        }
        self.shots.add(shot);
        self.advance(id, JobEvent::Picture);
    }

    /// Takes a preview of the running job. One of a picture that is finished came late.
    fn take_preview(&mut self, preview: Preview) -> bool {
        let fits = self.queue.running().is_some_and(|job| job.id == preview.job && preview.image_index >= job.pictures);
        if fits {
            self.versions += 1;
            self.preview = Some(PreviewView {
                job: preview.job,
                image_index: preview.image_index,
                step: preview.step,
                image: preview.image,
                version: self.versions,
            });
        }
        fits
    }

    /// What the ribbon under the graph shows for this moment.
    pub fn stage(&self) -> Stage {
        match self.queue.running().map(|job| &job.state) {
            Some(JobState::Running { phase }) => Stage::from(*phase),
            Some(JobState::Paused { .. }) => Stage::Paused,
            _ => Stage::Idle,
        }
    }

    /// The engine's thread has ended: its jobs have failed. Whether that is new.
    pub(super) fn lose_engine(&mut self) -> bool {
        if self.engine_gone {
            return false;
        }
        self.engine_gone = true;
        self.preview = None;
        self.draft.forever = false;
        self.memory.set_cleaning(false);
        let problem = Problem::Internal("the engine's thread has ended".to_owned());
        self.queue.fail_all(&JobError::new(problem, ""));
        if !self.closing {
            self.trouble = Some(Trouble::EngineGone);
        }
        true
    }

    /// Forecasts the draft by what is known now.
    pub(super) fn foresee(&mut self) {
        self.forecast = (self.services.forecast)(&self.draft, &self.memory, self.device.as_ref());
    }
}

impl Drop for Studio {
    /// No job may run on for nobody.
    fn drop(&mut self) {
        self.queue.cancel_all();
    }
}
