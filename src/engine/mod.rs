//! The background thread that makes pictures: it takes jobs, walks their phases, and tells what happens.
//!
//! [`protocol`] is what crosses to the window or the command line. [`start`] is the only way in. It never names egui, and
//! never waits for the other side.

mod checkpoint;
pub mod device;
mod encodings;
mod error;
pub mod hash;
mod link;
pub mod metadata;
pub mod names;
mod preview;
pub mod protocol;
mod run_job;
pub mod save;
mod steering;
mod worker;

pub use error::from_weights as problem_of_weights;

use crate::base::choice::MemoryLimits;
use crate::base::{DeviceChoice, Latest};
use crate::memory::{Keeper, MemoryError, Script};
use link::Link;
use protocol::EngineHandle;
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
/// The thread ends on `Command::Shutdown`, or when the handle is dropped, after the job that runs.
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
        .spawn(move || worker::Worker::new(link, inbox, keeper, settings.device).serve())?;
    Ok(EngineHandle { commands, events, previews, readings })
}
