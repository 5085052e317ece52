//! What crosses between the engine's thread and the thread that owns the window or the command line.
//!
//! Commands go one way, events the other, both unbounded and small. Pictures in the making and memory readings go through
//! one-slot mailboxes. The running job is steered through its [`JobControl`], since the command queue is not read during
//! a job.

use crate::base::choice::MemoryLimits;
use crate::base::problem::Phase;
use crate::base::{
    Bytes, CleanReport, DeviceChoice, JobError, JobId, Latest, MemoryReading, ModelChoice, Notice, OutputPlan,
    Precision, Reason, RgbImage, ShotRequest, VaeChoice,
};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One press of Generate, with all that the engine needs for it.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub request: ShotRequest,
    pub setup: Setup,
    pub output: OutputPlan,
    /// Keep the final latents of every picture in the summary (`--save-latents`).
    pub keep_latents: bool,
    pub control: Arc<JobControl>,
}

/// The model, and where and how it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    pub model: ModelChoice,
    pub vae: VaeChoice,
    pub device: DeviceChoice,
    pub precision: Precision,
    /// Take v-prediction whatever the files say (`Some`), or as they say (`None`).
    pub v_prediction: Option<bool>,
    /// Take the checkpoint's EMA weights where it has both.
    pub ema: bool,
}

/// What the window asks of the engine.
#[derive(Clone, Debug)]
pub enum Command {
    /// Do this job after the one that runs.
    Run(Box<Job>),
    /// Drop what is not needed, empty the pools, report. During a job it happens at the next step boundary.
    Clean,
    /// Change the limits. During a job they hold from the next step boundary.
    Limits(MemoryLimits),
    /// Look at this device again and use it for what follows.
    Probe(DeviceChoice),
    /// End the thread. The running job is cancelled.
    Shutdown,
}

/// What the engine tells.
#[derive(Clone, Debug)]
pub enum Event {
    /// The device in use, told at start and whenever it changes.
    Device(DeviceStatus),
    /// The job's first sign of life.
    Started(JobId),
    Phase(JobId, Phase),
    Progress(JobId, Progress),
    Paused(JobId, PauseReason),
    Resumed(JobId),
    Notice(Option<JobId>, Notice),
    /// A picture is finished. It is on disk unless `file` is `None`.
    Picture(JobId, Box<Shot>),
    Done(JobId, Box<Summary>),
    Failed(JobId, Box<JobError>),
    Cancelled(JobId),
    Cleaned(Box<CleanReport>),
}

/// Which device is used, and why none that comes before it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceStatus {
    pub choice: DeviceChoice,
    /// "NVIDIA H200 (CUDA)", "CPU".
    pub name: String,
    pub total: Option<Bytes>,
    /// The type that `Precision::Auto` means here.
    pub precision: Precision,
    /// Devices that come before this one and are not used: name and reason, and the command that would help.
    pub passed_over: Vec<PassedOver>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PassedOver {
    pub device: String,
    pub why: Reason,
    pub command: Option<String>,
}

/// Where a job stands after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Which picture of the job, from 0, and of how many.
    pub image: u32,
    pub images: u32,
    /// Steps done of this picture.
    pub step: u32,
    pub steps: u32,
    /// Recent pace; `None` before the first step is done.
    pub steps_per_second: Option<f64>,
    /// Until the whole job is done.
    pub left: Option<Duration>,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq)]
pub enum PauseReason {
    Asked,
    /// The card is over the limit. `others` is what other programs hold, where known.
    LowMemory {
        step: u32,
        used: f64,
        limit: f64,
        others: Option<Bytes>,
    },
}

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Shot {
    pub job: JobId,
    /// Which picture of the job, from 0.
    pub index: u32,
    /// The request of this picture alone: its own seed, count 1.
    pub request: ShotRequest,
    pub image: Arc<RgbImage>,
    /// Where it was written; `None` if it was not, and then `save_error` may say why.
    pub file: Option<PathBuf>,
    pub save_error: Option<Reason>,
    /// The `parameters` text written into it.
    pub parameters: String,
    pub model: String,
    /// From the picture's first step to its pixels, without pauses.
    pub seconds: f64,
    /// Made by stop-and-keep, after this many steps.
    pub stopped_at: Option<u32>,
}

/// How a job went. The parts explain `total` within 10 %.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub device: String,
    pub precision: Precision,
    pub images: u32,
    pub seconds: Seconds,
    /// The most our pools held, and the most the driver counted as ours and for the whole card.
    pub peak_ours: Option<Bytes>,
    pub peak_process: Option<Bytes>,
    pub peak_device: Option<Bytes>,
    pub pauses: Vec<(PauseReason, f64)>,
    /// Per picture, f32 [4, h, w], before decoding, not divided by the VAE's scaling. Only with `keep_latents`.
    pub latents: Vec<Vec<f32>>,
    /// [4, h, w] of each of `latents`.
    pub latent_shape: [usize; 3],
}

/// Where the time of a job went, in seconds.
#[derive(Clone, Debug, Default)]
pub struct Seconds {
    pub load: f64,
    pub encode: f64,
    /// Every step of every picture, in order.
    pub steps: Vec<f64>,
    pub decode: f64,
    pub save: f64,
    pub paused: f64,
    pub total: f64,
}

/// A look at the picture in the making: the predicted clean latent through a linear map, one pixel a latent pixel.
#[derive(Clone, Debug)]
pub struct Preview {
    pub job: JobId,
    pub image_index: u32,
    pub step: u32,
    pub image: Arc<RgbImage>,
}

/// What a person wants of the running job. Ordered: a later wish wins over a weaker one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Wish {
    Run = 0,
    Pause = 1,
    /// Decode the latent as it is now, keep that picture, and end the job.
    StopAndKeep = 2,
    Cancel = 3,
}

/// The steering of one job, shared by both sides. Reading it is one atomic load.
#[derive(Debug, Default)]
pub struct JobControl {
    wish: AtomicU8,
    go_anyway: AtomicU8,
    lock: Mutex<()>,
    changed: Condvar,
}

impl JobControl {
    pub fn wish(&self) -> Wish {
        match self.wish.load(Ordering::Acquire) {
            0 => Wish::Run,
            1 => Wish::Pause,
            2 => Wish::StopAndKeep,
            _ => Wish::Cancel,
        }
    }

    pub fn pause(&self) {
        self.set(|wish| if wish == Wish::Run { Wish::Pause } else { wish });
    }

    /// Goes on after a pause. After one for memory it holds until use has risen by another 2 %.
    pub fn resume(&self) {
        self.go_anyway.store(1, Ordering::Release);
        self.set(|wish| if wish == Wish::Pause { Wish::Run } else { wish });
    }

    pub fn stop_and_keep(&self) {
        self.set(|wish| wish.max(Wish::StopAndKeep));
    }

    pub fn cancel(&self) {
        self.set(|_| Wish::Cancel);
    }

    /// True once after each [`resume`](Self::resume).
    pub fn take_go_anyway(&self) -> bool {
        self.go_anyway.swap(0, Ordering::AcqRel) != 0
    }

    /// Waits for the wish to change, at most so long. Only the engine's thread waits.
    pub fn wait(&self, at_most: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it was woken or timed out, the caller looks at the wish again.
        drop(self.changed.wait_timeout(guard, at_most));
    }

    fn set(&self, change: impl Fn(Wish) -> Wish) {
        {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.wish.store(change(self.wish()) as u8, Ordering::Release);
        }
        self.changed.notify_all();
    }
}

/// The window's end of the engine. A test holds the other ends and plays the engine.
#[derive(Debug)]
pub struct EngineHandle {
    pub commands: crossbeam_channel::Sender<Command>,
    pub events: crossbeam_channel::Receiver<Event>,
    pub previews: Latest<Preview>,
    pub readings: Latest<MemoryReading>,
}
