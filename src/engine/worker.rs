//! The engine's thread: it takes commands, does one job after another, and survives what the GPU stack may do.

use super::device::{self, Candidate};
use super::encodings::Encodings;
use super::error::Ended;
use super::hash::Hasher;
use super::link::Link;
use super::protocol::{Command, DeviceStatus, Event, Job, PassedOver, Setup};
use super::run_job;
use crate::base::{DeviceChoice, JobError, ModelChoice, Notice, Precision, Problem, VaeChoice};
use crate::diffusion::DiffusionError;
use crate::memory::{CardId, Keeper, Model, ModelKey, Target};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How often an idle engine looks whether there is something to tidy up.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// All that the engine's thread holds.
pub struct Worker {
    pub link: Link,
    commands: Receiver<Command>,
    /// Jobs that arrived while another ran.
    waiting: VecDeque<Box<Job>>,
    pub memory: Keeper,
    pub encodings: Encodings,
    hasher: Hasher,
    status: Option<DeviceStatus>,
    asked_for: DeviceChoice,
    clean_asked: bool,
    ending: bool,
}

impl Worker {
    pub fn new(link: Link, commands: Receiver<Command>, memory: Keeper, asked_for: DeviceChoice) -> Self {
        Worker {
            link,
            commands,
            waiting: VecDeque::new(),
            memory,
            encodings: Encodings::default(),
            hasher: Hasher::new(Hasher::usual_cache()),
            status: None,
            asked_for,
            clean_asked: false,
            ending: false,
        }
    }

    /// Serves until told to end, or until nobody can command any more.
    pub fn serve(mut self) {
        // The window shows the device before the first job; a device that cannot be had is told again with the job.
        if self.use_device(self.asked_for).is_err() {
            tracing::debug!("no device could be opened at start");
        }
        while !self.ending {
            if let Some(job) = self.waiting.pop_front() {
                self.do_job(&job);
                continue;
            }
            match self.commands.recv_timeout(IDLE_LOOK) {
                Ok(command) => self.obey(command, None),
                Err(RecvTimeoutError::Timeout) => self.memory.while_idle(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.clean_if_asked();
        }
    }

    /// Obeys what was commanded since the last boundary of `job`.
    pub fn serve_commands_of(&mut self, job: &Job) {
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command, Some(job));
        }
        self.clean_if_asked();
    }

    fn obey(&mut self, command: Command, running: Option<&Job>) {
        match command {
            Command::Run(job) => self.waiting.push_back(job),
            Command::Clean => self.clean_asked = true,
            Command::Limits(limits) => self.memory.set_limits(limits),
            Command::Probe(choice) => {
                self.asked_for = choice;
                // A running job keeps its device.
                if running.is_none() {
                    self.close_device();
                    if let Err(Ended::Failed(error)) = self.use_device(choice) {
                        tracing::warn!(?error, "the device could not be opened");
                    }
                }
            }
            Command::Shutdown => {
                self.ending = true;
                if let Some(job) = running {
                    job.control.cancel();
                }
            }
        }
    }

    fn clean_if_asked(&mut self) {
        if std::mem::take(&mut self.clean_asked) {
            let report = self.memory.clean();
            self.link.tell(Event::Cleaned(Box::new(report)));
        }
    }

    /// Does a job inside its own walls: whatever happens in there, the next job runs.
    fn do_job(&mut self, job: &Job) {
        self.link.tell(Event::Started(job.id));
        self.memory.job_begins();
        let outcome = catch_unwind(AssertUnwindSafe(|| run_job::run(self, job)));
        self.memory.job_ends();
        let event = match outcome {
            Ok(Ok(summary)) => Event::Done(job.id, Box::new(summary)),
            Ok(Err(Ended::Cancelled)) => {
                self.memory.tidy();
                Event::Cancelled(job.id)
            }
            Ok(Err(Ended::Failed(error))) => {
                self.after_failure(&error.problem, &error.details);
                Event::Failed(job.id, error)
            }
            Err(panic) => {
                let details = panic_text(&*panic);
                let device = self.status.as_ref().map_or_else(String::new, |status| status.name.clone());
                let problem = match device::is_device_lost(&details) {
                    true => Problem::DeviceLost { device },
                    false => Problem::DeviceFault { device },
                };
                self.after_failure(&problem, &details);
                Event::Failed(job.id, Box::new(JobError::new(problem, details)))
            }
        };
        self.link.tell(event);
    }

    /// Leaves the device as the job found it, or lets it go where it can no longer be trusted.
    fn after_failure(&mut self, problem: &Problem, details: &str) {
        match problem {
            Problem::DeviceFault { device } | Problem::DeviceLost { device } => {
                tracing::error!(details, "the device failed");
                let lost = device.clone();
                self.close_device();
                if self.use_device(self.asked_for).is_ok() {
                    let now = self.status.as_ref().map_or_else(String::new, |status| status.name.clone());
                    if now != lost {
                        self.link.tell(Event::Notice(None, Notice::DeviceReplaced { lost, now }));
                    }
                }
            }
            Problem::OutOfMemory { .. } => self.memory.let_everything_go(),
            _ => self.memory.tidy(),
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
        for PassedOver { device, why, command } in status.passed_over.iter().cloned() {
            self.link.tell(Event::Notice(None, Notice::BetterDevice { device, why, command }));
        }
        self.status = Some(status.clone());
        self.link.tell(Event::Device(status.clone()));
        Ok(status)
    }

    /// Opens the checkpoint of `setup` unless it is the one in use, and says what is worth a notice about it.
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
        if let ModelChoice::Path(path) = &setup.model {
            self.hasher.want(path);
        }
        if let VaeChoice::Path(path) = &setup.vae {
            self.hasher.want(path);
        }
    }

    /// The hashes of model and VAE, as far as they are known by now.
    pub fn hashes(&self, setup: &Setup) -> (Option<String>, Option<String>) {
        let model = match &setup.model {
            ModelChoice::Path(path) => self.hasher.known(path),
            ModelChoice::RandomSd15 => None,
        };
        let vae = match &setup.vae {
            VaeChoice::Path(path) => self.hasher.known(path),
            VaeChoice::Automatic => None,
        };
        (model, vae)
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
