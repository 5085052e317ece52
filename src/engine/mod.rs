//! The background thread that makes pictures: it takes jobs, walks their phases, and tells what happens.
//!
//! [`protocol`] is what crosses to the window or the command line. [`start`] is the only way in. It never names egui, and
//! never waits for the other side.

mod checkpoint;
pub mod device;
mod encodings;
mod error;
pub mod hash;
mod inbox;
mod leftovers;
mod link;
pub mod metadata;
pub mod names;
mod preview;
pub mod protocol;
mod run_job;
pub mod save;
mod steering;
pub mod targets;
mod worker;

pub use error::from_weights as problem_of_weights;

use crate::base::choice::MemoryLimits;
use crate::base::problem::Phase;
use crate::base::{DeviceChoice, Latest};
use crate::memory::{Keeper, MemoryError, Script};
use link::Link;
use protocol::EngineHandle;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What the engine is started with.
#[derive(Clone, Debug, Default)]
pub struct EngineSettings {
    /// Opened at once, so that the window can show it.
    pub device: DeviceChoice,
    pub limits: MemoryLimits,
    /// A file of times and figures that stands in for the device's memory.
    pub gauge_script: Option<PathBuf>,
    /// For tests and diagnostics.
    pub at_checkpoint: Option<AtCheckpoint>,
}

/// Called on the engine's thread at every place where a job can be steered: on entering a phase, between tensors and
/// layers, and between steps, with the phase the job is in. It may steer the job, note the time between two calls (the
/// longest that a cancel can take), or panic in the place of the GPU stack.
#[derive(Clone)]
pub struct AtCheckpoint(Arc<dyn Fn(Phase) + Send + Sync>);

impl AtCheckpoint {
    pub fn new(call: impl Fn(Phase) + Send + Sync + 'static) -> Self {
        AtCheckpoint(Arc::new(call))
    }

    fn call(&self, phase: Phase) {
        (self.0)(phase);
    }
}

impl fmt::Debug for AtCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtCheckpoint")
    }
}

/// Why the engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Script(#[from] MemoryError),
    #[error("the engine's thread could not be started: {0}")]
    Thread(#[from] io::Error),
}

/// Starts the engine's thread. `wake` is called whenever there is something new to look at.
///
/// The thread ends on `Command::Shutdown`, which cancels the job that runs, or when the handle is dropped, after the jobs
/// that were sent; one that is paused then is cancelled.
///
/// # Errors
/// When the gauge script cannot be read, or the system gives no thread.
pub fn start(settings: EngineSettings, wake: impl Fn() + Send + Sync + 'static) -> Result<EngineHandle, StartError> {
    let (commands, inbox) = crossbeam_channel::unbounded();
    let (outbox, events) = crossbeam_channel::unbounded();
    let (previews, readings) = (Latest::new(), Latest::new());
    let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
    let script = settings.gauge_script.as_deref().map(Script::read).transpose()?;
    let link = Link::new(outbox, previews.clone(), wake.clone());
    let keeper = Keeper::new(settings.limits, script, readings.clone(), wake);
    std::thread::Builder::new()
        .name("softbox-engine".to_owned())
        .spawn(move || worker::Worker::new(link, inbox, keeper, settings.device, settings.at_checkpoint).serve())?;
    Ok(EngineHandle { commands, events, previews, readings })
}
