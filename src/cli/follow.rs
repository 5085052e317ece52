//! One job seen from the command line: sent to the engine, steered by Ctrl+C, shown as it goes, gathered at its end.

use super::{Exit, Voice, write};
use crate::base::problem::Phase;
use crate::base::{DeviceChoice, JobError, JobId, MemoryReading, Notice, OutputPlan, Problem};
use crate::engine::names::{DEFAULT_PATTERN, NameParts};
use crate::engine::protocol::{
    Command, DeviceStatus, EngineHandle, Event, Job, JobControl, PauseReason, Progress, Shot, Summary,
};
use crate::engine::{self, EngineSettings, StartError, save};
use crate::text::reasons::reason;
use crate::text::{cli, figures, memory, notices, problems, window};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How often a line is written where there is no terminal to draw a bar on.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What came of a job.
#[derive(Debug, Default)]
pub struct Outcome {
    pub shots: Vec<Shot>,
    pub summary: Option<Summary>,
    pub device: Option<DeviceStatus>,
    pub notices: Vec<Notice>,
    pub error: Option<JobError>,
    pub interrupted: bool,
    /// From sending the job to its first sign of life: the opening of the device, for the most part.
    pub start_seconds: f64,
    pub reading: Option<MemoryReading>,
}

impl Outcome {
    /// The worst that happened decides. A picture that was made but not written counts as bad input: the place was.
    pub fn exit(&self) -> Exit {
        match &self.error {
            Some(error) => Exit::of(&error.problem),
            None if self.interrupted => Exit::Interrupted,
            None if self.shots.iter().any(|shot| shot.save_error.is_some()) => Exit::Input,
            None => Exit::Done,
        }
    }
}

/// Starts the engine, or says why it cannot be.
pub fn start(settings: EngineSettings, voice: Voice) -> Result<EngineHandle, Exit> {
    // Nobody sleeps here: this thread waits on the events themselves.
    engine::start(settings, || {}).map_err(|error| match error {
        StartError::Script(_) => voice.refuse(Exit::Input, &super::start_error(voice.lang, &error)),
        StartError::Thread(_) => voice.refuse(Exit::Internal, &super::start_error(voice.lang, &error)),
    })
}

/// Cancels the running job at the first Ctrl+C and ends the program at the second. One for the whole program.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    running: Arc<Mutex<Option<Arc<JobControl>>>>,
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    pub fn catch(voice: Voice) -> Self {
        let interrupt = Interrupt::default();
        let Interrupt { running, asked } = interrupt.clone();
        let caught = ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::AcqRel) {
                process::exit(Exit::Interrupted as i32);
            }
            write::say(&format!("\n{}", cli::INTERRUPTING.get(voice.lang)));
            if let Some(control) = &*running.lock().unwrap_or_else(PoisonError::into_inner) {
                control.cancel();
            }
        });
        if let Err(error) = caught {
            tracing::warn!("Ctrl+C ends the program at once: {error}");
        }
        interrupt
    }

    fn asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// From here on Ctrl+C means this job.
    fn steer(&self, control: &Arc<JobControl>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(control.clone());
        // It may have been pressed before there was a job to cancel.
        if self.asked() {
            control.cancel();
        }
    }
}

/// Sends a job and stays with it until it is over.
pub fn follow(engine: &EngineHandle, job: Job, interrupt: &Interrupt, voice: Voice) -> Outcome {
    let id = job.id;
    interrupt.steer(&job.control);
    let mut outcome = Outcome::default();
    let mut show = Show::new(&job, voice);
    let sent = Instant::now();
    if engine.commands.send(Command::Run(Box::new(job))).is_err() {
        outcome.error = Some(engine_gone());
        return outcome;
    }
    loop {
        let Ok(event) = engine.events.recv() else {
            outcome.error = Some(engine_gone());
            break;
        };
        match event {
            Event::Device(status) => {
                show.device(&status);
                outcome.device = Some(status);
            }
            Event::Started(of) if of == id => outcome.start_seconds = sent.elapsed().as_secs_f64(),
            Event::Phase(of, phase) if of == id => show.phase(phase),
            Event::Progress(of, progress) if of == id => show.progress(progress),
            Event::Paused(of, reason) if of == id => show.paused(&reason),
            Event::Resumed(of) if of == id => show.say(memory::MARK_RESUMED.get(voice.lang)),
            // What became of such a picture is said with the picture.
            Event::Notice(_, Notice::NotSaved { .. }) => {}
            Event::Notice(_, notice) => {
                show.notice(&notice);
                outcome.notices.push(notice);
            }
            Event::Picture(of, mut shot) if of == id => {
                if shot.save_error.is_some() {
                    shot.file = rescue(&shot);
                }
                show.picture(&shot);
                outcome.shots.push(*shot);
            }
            Event::Done(of, summary) if of == id => {
                outcome.summary = Some(*summary);
                break;
            }
            Event::Failed(of, error) if of == id => {
                outcome.error = Some(*error);
                break;
            }
            Event::Cancelled(of) if of == id => {
                outcome.interrupted = true;
                break;
            }
            _ => {}
        }
    }
    show.end();
    outcome.reading = engine.readings.take();
    outcome
}

/// A job's control and id, for commands that make one after another.
pub fn job(
    number: u64,
    request: crate::base::ShotRequest,
    setup: crate::engine::protocol::Setup,
    output: crate::base::OutputPlan,
    keep_latents: bool,
) -> Job {
    Job { id: JobId(number), request, setup, output, keep_latents, control: Arc::new(JobControl::default()) }
}

/// A picture that could not be written where it was asked goes to the first place that takes it: the current folder, or
/// the system's for temporary files.
fn rescue(shot: &Shot) -> Option<PathBuf> {
    let parts = NameParts { request: &shot.request, model: &shot.model, index: shot.index, at: SystemTime::now() };
    places().into_iter().find_map(|folder| {
        let plan =
            OutputPlan::Folder { folder, pattern: DEFAULT_PATTERN.to_owned(), format: crate::base::ImageFormat::Png };
        save::write(&shot.image, &shot.parameters, &plan, &parts).ok().flatten()
    })
}

/// Where things go that could not go where they should.
pub fn places() -> [PathBuf; 2] {
    [std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")), std::env::temp_dir()]
}

fn engine_gone() -> JobError {
    let what = problems::ENGINE_GONE.get(crate::base::Lang::En).to_owned();
    JobError::new(Problem::Internal(what), "")
}

/// The progress of one job on standard error: a bar on a terminal, now and then a line elsewhere, nothing if quiet.
struct Show {
    voice: Voice,
    bar: Option<ProgressBar>,
    lines: bool,
    last_line: Option<Instant>,
    steps: u64,
    /// Phases that a line was written for: parts load one by one, which is one phase to a person.
    said: Vec<Phase>,
}

impl Show {
    fn new(job: &Job, voice: Voice) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let steps = u64::from(job.request.steps) * u64::from(job.request.count);
        let bar = (terminal && !voice.quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
            // The template is fixed, so it cannot be wrong; the plain bar would do as well.
            if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:32}] {pos}/{len} {prefix}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Show { voice, lines: bar.is_none() && !voice.quiet, bar, last_line: None, steps, said: Vec::new() }
    }

    /// A line above the bar.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(write::shortened(&write::plain(text))),
            None if self.lines => write::say(text),
            None => {}
        }
    }

    fn device(&self, status: &DeviceStatus) {
        let values: [(&str, &dyn std::fmt::Display); 2] =
            [("device", &status.name), ("precision", &status.precision.label())];
        self.say(&cli::USING_DEVICE.with(self.voice.lang, &values));
    }

    fn notice(&self, notice: &Notice) {
        // Why a better device is not used is told at length by `softbox devices`; beside a GPU it is noise.
        let text = notices::notice(self.voice.lang, notice);
        self.say(&cli::NOTE.with(self.voice.lang, &[("what", &text)]));
    }

    fn phase(&mut self, phase: Phase) {
        let text = window::phase(self.voice.lang, phase);
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        } else if self.lines && !matches!(phase, Phase::Denoising { .. }) && !self.said.contains(&phase) {
            self.said.push(phase);
            write::say(&text);
        }
    }

    fn progress(&mut self, progress: Progress) {
        let done = u64::from(progress.image) * u64::from(progress.steps) + u64::from(progress.step);
        let left = progress.left.map(|left| figures::about(self.voice.lang, left)).unwrap_or_default();
        let pace = progress.steps_per_second.map(|pace| format!("{pace:.2}/s ")).unwrap_or_default();
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_prefix(format!("{pace}{left}"));
        } else if self.lines && (self.last_line.is_none_or(|at| at.elapsed() >= LINE_EVERY) || done == self.steps) {
            self.last_line = Some(Instant::now());
            write::say(&format!("{done}/{} {pace}{left}", self.steps));
        }
    }

    fn paused(&self, reason: &PauseReason) {
        self.say(&match reason {
            PauseReason::Asked => memory::PAUSED.get(self.voice.lang).to_owned(),
            PauseReason::LowMemory { step, used, limit, others } => {
                let said = memory::paused_low_memory(self.voice.lang, *step, *used, *limit, *others);
                let goes_on = memory::goes_on(self.voice.lang, *used, *limit);
                format!("{said} {goes_on}")
            }
        });
    }

    /// Standard output gets the finished file; with JSON it comes in the object.
    fn picture(&mut self, shot: &Shot) {
        // These come with every picture.
        self.said.retain(|phase| !matches!(phase, Phase::Decoding | Phase::Saving));
        if let Some(why) = &shot.save_error {
            let why = reason(self.voice.lang, why);
            let said = match &shot.file {
                Some(file) => cli::SAVED_ELSEWHERE.with(self.voice.lang, &[("why", &why), ("file", &file.display())]),
                None => cli::NOT_SAVED_ANYWHERE.with(self.voice.lang, &[("why", &why)]),
            };
            self.say(&cli::error(self.voice.lang, &said, ""));
            return;
        }
        let Some(file) = &shot.file else { return };
        let print = || self.voice.line(&cli::saved(self.voice.lang, file));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The name by which the command line calls a device.
pub fn device_name(choice: DeviceChoice) -> String {
    match choice {
        DeviceChoice::Auto => "auto".to_owned(),
        DeviceChoice::Cpu => "cpu".to_owned(),
        DeviceChoice::Cuda(n) => format!("cuda:{n}"),
        DeviceChoice::Vulkan(n) => format!("vulkan:{n}"),
    }
}
