//! The engine's thread: it takes commands, does one job after another, and survives what the GPU stack may do.

use super::device::{self, Candidate};
use super::encodings::Encodings;
use super::error::{Ended, is_out_of_memory};
use super::hash::Hasher;
use super::inbox::Inbox;
use super::link::Link;
use super::protocol::{Command, DeviceStatus, Event, Job, PassedOver, Setup, Wish};
use super::steering::Steering;
use super::{AtCheckpoint, run_job};
use crate::base::{DeviceChoice, JobError, ModelChoice, Notice, Precision, Problem, VaeChoice};
use crate::diffusion::place::Place;
use crate::diffusion::{DiffusionError, pocket};
use crate::memory::{CardId, Keeper, Model, ModelKey, Target};
use crossbeam_channel::Receiver;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

/// How often an idle engine looks whether there is something to tidy up.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// All that the engine's thread holds.
pub struct Worker {
    pub link: Link,
    /// Shared with the steering of the job that runs.
    inbox: Rc<Inbox>,
    at_checkpoint: Option<AtCheckpoint>,
    /// Jobs that wait for their turn.
    waiting: VecDeque<Box<Job>>,
    pub memory: Keeper,
    pub encodings: Encodings,
    hasher: Hasher,
    status: Option<DeviceStatus>,
    asked_for: DeviceChoice,
    /// A device to look at once the running job, which keeps its own, has ended.
    probe_asked: Option<DeviceChoice>,
    clean_asked: bool,
}

impl Worker {
    pub fn new(
        link: Link,
        commands: Receiver<Command>,
        memory: Keeper,
        asked_for: DeviceChoice,
        at_checkpoint: Option<AtCheckpoint>,
    ) -> Self {
        Worker {
            link,
            inbox: Rc::new(Inbox::new(commands)),
            at_checkpoint,
            waiting: VecDeque::new(),
            memory,
            encodings: Encodings::default(),
            hasher: Hasher::new(Hasher::usual_cache()),
            status: None,
            asked_for,
            probe_asked: None,
            clean_asked: false,
        }
    }

    /// Serves until told to end, or until nobody can command any more.
    pub fn serve(mut self) {
        // The window shows the device before the first job; a device that cannot be had is told again with the job.
        if self.use_device(self.asked_for).is_err() {
            tracing::debug!("no device could be opened at start");
        }
        loop {
            self.guarded(|worker| {
                worker.serve_commands();
                if let Some(choice) = worker.probe_asked.take() {
                    worker.look_again(choice);
                }
            });
            if self.inbox.ending() {
                break;
            }
            if let Some(job) = self.waiting.pop_front() {
                self.do_job(&job);
            } else if self.inbox.abandoned() {
                break;
            } else if !self.inbox.wait(IDLE_LOOK) {
                self.guarded(|worker| worker.memory.while_idle());
            }
        }
        for job in &self.waiting {
            self.link.tell(Event::Cancelled(job.id));
        }
    }

    /// Obeys what was commanded since the last time; called at a job's boundaries and between jobs.
    pub fn serve_commands(&mut self) {
        self.inbox.listen();
        while let Some(command) = self.inbox.next() {
            match command {
                Command::Run(job) => self.waiting.push_back(job),
                Command::Clean => self.clean_asked = true,
                Command::Limits(limits) => self.memory.set_limits(limits),
                Command::Probe(choice) => self.probe_asked = Some(choice),
                // The inbox keeps it to itself and says so by `ending`.
                Command::Shutdown => {}
            }
        }
        if std::mem::take(&mut self.clean_asked) {
            let report = self.memory.clean();
            self.link.tell(Event::Cleaned(Box::new(report)));
        }
    }

    /// Closes the device and opens `choice`, also if it is the same.
    fn look_again(&mut self, choice: DeviceChoice) {
        self.close_device();
        if let Err(Ended::Failed(error)) = self.use_device(choice) {
            tracing::warn!(?error, "the device could not be opened");
        }
    }

    /// Does a job inside its own walls: whatever happens in there, the next job runs.
    fn do_job(&mut self, job: &Job) {
        if job.control.wish() == Wish::Cancel {
            self.link.tell(Event::Cancelled(job.id));
            return;
        }
        self.link.tell(Event::Started(job.id));
        let (link, inbox, at_checkpoint) = (self.link.clone(), self.inbox.clone(), self.at_checkpoint.clone());
        let steering = Steering::new(job, &link, &inbox, at_checkpoint.as_ref());
        self.memory.job_begins();
        let outcome = catch_unwind(AssertUnwindSafe(|| run_job::run(self, job, &steering)));
        // In any case the device is left in order before the other side may send the next job.
        let event = match outcome {
            Ok(Ok(summary)) => {
                self.guarded(|worker| worker.memory.job_ends());
                Event::Done(job.id, Box::new(summary))
            }
            Ok(Err(Ended::Cancelled)) => {
                self.guarded(|worker| {
                    worker.memory.job_ends();
                    worker.memory.tidy();
                });
                Event::Cancelled(job.id)
            }
            Ok(Err(Ended::Failed(error))) => {
                self.guarded(|worker| {
                    worker.memory.job_ends();
                    worker.after_failure(&error.problem, &error.details);
                });
                Event::Failed(job.id, error)
            }
            Err(panic) => {
                let details = panic_text(&*panic);
                let device = self.status.as_ref().map_or_else(String::new, |status| status.name.clone());
                self.replace_device(&details);
                self.guarded(|worker| worker.memory.job_ends());
                let problem = if device::is_device_lost(&details) {
                    Problem::DeviceLost { device }
                } else if is_out_of_memory(&details) {
                    Problem::OutOfMemory { phase: steering.phase() }
                } else {
                    Problem::DeviceFault { device }
                };
                Event::Failed(job.id, Box::new(JobError::new(problem, details)))
            }
        };
        self.link.tell(event);
    }

    /// Does something that may touch the device, outside of a job. If the device's own code panics, the device goes with
    /// all that lies on it, and the next job opens it anew.
    fn guarded(&mut self, deed: impl FnOnce(&mut Self)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| deed(&mut *self))) {
            tracing::error!(details = panic_text(&*panic), "the device failed between jobs");
            self.close_device();
        }
    }

    /// Leaves the device as the job found it, or lets it go where it can no longer be trusted.
    fn after_failure(&mut self, problem: &Problem, details: &str) {
        match problem {
            Problem::DeviceFault { .. } | Problem::DeviceLost { .. } => self.replace_device(details),
            Problem::OutOfMemory { .. } => self.memory.let_everything_go(),
            _ => self.memory.tidy(),
        }
    }

    /// Closes a device that failed and opens it, or the next best, anew.
    fn replace_device(&mut self, details: &str) {
        tracing::error!(details, "the device failed");
        let lost = self.status.as_ref().map(|status| status.name.clone());
        self.close_device();
        if let (Some(lost), Ok(status)) = (lost, self.use_device(self.asked_for))
            && status.name != lost
        {
            self.link.tell(Event::Notice(None, Notice::DeviceReplaced { lost, now: status.name }));
        }
    }

    fn close_device(&mut self) {
        // A device that failed may fail again while it is tidied up.
        if catch_unwind(AssertUnwindSafe(|| self.memory.close())).is_err() {
            tracing::warn!("the device could not be tidied up");
        }
        self.status = None;
    }

    /// Opens the device that `choice` names, unless it is open.
    pub fn use_device(&mut self, choice: DeviceChoice) -> Result<DeviceStatus, Ended> {
        if let Some(status) = &self.status
            && (self.asked_for == choice || status.choice == choice)
        {
            return Ok(status.clone());
        }
        self.close_device();
        self.asked_for = choice;
        let probe = device::probe();
        // The gauge looks first at the device that is likely to open, to tell what its context costs.
        let likely = probe.find(choice).map(target);
        if let Some(target) = &likely {
            self.memory.device_opens(target);
        }
        let (opened, status) = device::open(choice, &probe).map_err(|error| Ended::Failed(Box::new(error.into())))?;
        let used = probe.devices.iter().find(|candidate| candidate.choice == status.choice).map(target);
        if let Some(target) = used.filter(|used| likely.as_ref() != Some(used)) {
            self.memory.device_opens(&target);
        }
        self.memory.device_opened(opened);
        for PassedOver { device, why, command } in
            status.passed_over.iter().filter(|one| !one.why.is_absence()).cloned()
        {
            self.link.tell(Event::Notice(None, Notice::BetterDevice { device, why, command }));
        }
        self.status = Some(status.clone());
        self.link.tell(Event::Device(status.clone()));
        Ok(status)
    }

    /// Opens the checkpoint of `setup` unless it is the one in use and still on disk as it was, and says what is worth a
    /// notice about it.
    pub fn use_model(&mut self, setup: &Setup, precision: Precision) -> Result<Vec<Notice>, DiffusionError> {
        let key = ModelKey {
            model: setup.model.clone(),
            vae: setup.vae.clone(),
            ema: setup.ema,
            v_prediction: setup.v_prediction,
            precision,
        };
        if self.memory.holds(&key) {
            return Ok(Vec::new());
        }
        self.encodings.clear();
        let model = Model::open(key)?;
        let notices = model.notices();
        self.memory.set_model(model);
        Ok(notices)
    }

    /// Starts hashing the model's files, so that the hash is there by the time a picture is written.
    pub fn want_hashes(&mut self, setup: &Setup) {
        if let Some(place) = place_of(&setup.model) {
            self.hasher.want(place);
        }
        if let VaeChoice::Path(path) = &setup.vae {
            self.hasher.want(path);
        }
    }

    /// The hashes of model and VAE, as far as they are known by now.
    pub fn hashes(&self, setup: &Setup) -> (Option<String>, Option<String>) {
        let model = place_of(&setup.model).and_then(|place| self.hasher.known(place));
        let vae = match &setup.vae {
            VaeChoice::Path(path) => self.hasher.known(path),
            VaeChoice::Automatic => None,
        };
        (model, vae)
    }
}

/// Where a model's files lie, if it has any.
fn place_of(model: &ModelChoice) -> Option<Place> {
    match model {
        ModelChoice::Path(path) => Some(Place::from(path)),
        ModelChoice::Pocket => pocket::folder(),
        ModelChoice::RandomSd15 => None,
    }
}

/// By what the gauge finds a device again.
fn target(candidate: &Candidate) -> Target {
    if candidate.choice == DeviceChoice::Cpu {
        return Target::Cpu;
    }
    Target::Card(CardId {
        uuid: candidate.uuid.as_deref().and_then(|uuid| uuid.parse().ok()),
        pci: candidate.pci.as_deref().and_then(|pci| pci.parse().ok()),
        name: Some(candidate.name.clone()),
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "the device's own code panicked without a message".to_owned())
}
