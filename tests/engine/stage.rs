//! What the engine's tests share: a started engine whose every event goes through the state machine of a job, and a hook
//! at its checkpoints by which a test acts at an exact place instead of an exact time.

use softbox::base::choice::MemoryLimits;
use softbox::base::problem::Phase;
use softbox::base::{
    DeviceChoice, JobError, JobId, ModelChoice, Notice, OutputPlan, Precision, Problem, ShotRequest, Size, VaeChoice,
};
use softbox::engine::protocol::{
    Command, EngineHandle, Event, Job, JobControl, PauseReason, Progress, Setup, Shot, Summary,
};
use softbox::engine::{self, AtCheckpoint, EngineSettings};
use softbox::studio::job::{JobEvent, JobState, Move};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No job here takes so long; a test that waits longer has found one that does not end.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A picture of 64×64 in four steps.
pub fn request() -> ShotRequest {
    ShotRequest {
        prompt: "a photo of a cat".to_owned(),
        negative: "blurry".to_owned(),
        steps: 4,
        size: Size::new(64, 64).unwrap(),
        seed: 7,
        ..ShotRequest::default()
    }
}

pub fn setup(model: impl Into<PathBuf>) -> Setup {
    Setup {
        model: ModelChoice::Path(model.into()),
        vae: VaeChoice::Automatic,
        device: DeviceChoice::Cpu,
        precision: Precision::F32,
        v_prediction: None,
        ema: false,
    }
}

type Act = Box<dyn FnMut(Phase, &Arc<JobControl>) + Send>;

/// What a test does at checkpoints, and the job it steers.
type Acting = (Act, Arc<JobControl>);

/// A running engine.
pub struct Stage {
    pub engine: EngineHandle,
    pub patience: Duration,
    act: Arc<Mutex<Option<Acting>>>,
    jobs: u64,
}

impl Stage {
    pub fn new() -> Self {
        Self::start(EngineSettings::default())
    }

    /// With a card as the gauge script tells it.
    pub fn scripted(script: &str, limits: MemoryLimits) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), script).unwrap();
        Self::start(EngineSettings { gauge_script: Some(file.path().to_owned()), limits, ..EngineSettings::default() })
    }

    pub fn start(settings: EngineSettings) -> Self {
        let act: Arc<Mutex<Option<Acting>>> = Arc::default();
        let hook = act.clone();
        let at_checkpoint = AtCheckpoint::new(move |phase| {
            // Taken out while it acts, so that an act that panics poisons nothing.
            let taken = hook.lock().unwrap().take();
            if let Some((mut act, control)) = taken {
                act(phase, &control);
                hook.lock().unwrap().get_or_insert((act, control));
            }
        });
        let settings = EngineSettings { device: DeviceChoice::Cpu, at_checkpoint: Some(at_checkpoint), ..settings };
        Stage { engine: engine::start(settings, || ()).unwrap(), patience: PATIENCE, act, jobs: 0 }
    }

    /// A job of the tiny folder model that writes nothing and keeps its latents.
    pub fn job(&mut self, request: ShotRequest) -> Job {
        self.jobs += 1;
        Job {
            id: JobId(self.jobs),
            request,
            setup: setup(data("tiny-a")),
            output: OutputPlan::Keep,
            keep_latents: true,
            control: Arc::default(),
        }
    }

    pub fn send(&self, command: Command) {
        self.engine.commands.send(command).unwrap();
    }

    /// Sends a job and hears it to its end.
    pub fn run(&mut self, job: Job) -> Told {
        self.run_acting(job, |_, _| ())
    }

    /// The same, with `act` called at every checkpoint of the job.
    pub fn run_acting(&mut self, job: Job, act: impl FnMut(Phase, &Arc<JobControl>) + Send + 'static) -> Told {
        let id = self.send_acting(job, act);
        let told = self.hear(id, |_| false);
        *self.act.lock().unwrap() = None;
        told
    }

    pub fn send_acting(&mut self, job: Job, act: impl FnMut(Phase, &Arc<JobControl>) + Send + 'static) -> JobId {
        *self.act.lock().unwrap() = Some((Box::new(act), job.control.clone()));
        let id = job.id;
        self.send(Command::Run(Box::new(job)));
        id
    }

    /// Makes the picture of `request` and expects that nothing comes between.
    pub fn picture(&mut self, request: ShotRequest) -> Told {
        let job = self.job(request);
        let told = self.run(job);
        assert!(told.summary.is_some(), "{told:?}");
        told
    }

    /// Hears what is told of a job until its end, or until `enough` of it was told.
    pub fn hear(&self, id: JobId, mut enough: impl FnMut(&Event) -> bool) -> Told {
        let mut told = Told::new();
        let until = Instant::now() + self.patience;
        while !told.state.ended() {
            let event = self.engine.events.recv_deadline(until).unwrap_or_else(|_| {
                panic!("no end after {:?}: {told:?}", self.patience);
            });
            let stop = enough(&event);
            told.take(id, event);
            if stop {
                break;
            }
        }
        told
    }
}

/// What the engine told, of one job and beside it.
pub struct Told {
    pub state: JobState,
    pub events: Vec<(Instant, Event)>,
    pub phases: Vec<Phase>,
    pub progress: Vec<Progress>,
    pub pauses: Vec<PauseReason>,
    pub resumed: usize,
    pub notices: Vec<Notice>,
    pub shots: Vec<Shot>,
    pub summary: Option<Summary>,
}

impl Told {
    fn new() -> Self {
        Told {
            state: JobState::Queued,
            events: Vec::new(),
            phases: Vec::new(),
            progress: Vec::new(),
            pauses: Vec::new(),
            resumed: 0,
            notices: Vec::new(),
            shots: Vec::new(),
            summary: None,
        }
    }

    /// Moves the job's state, which every event must be legal for.
    fn take(&mut self, id: JobId, event: Event) {
        self.events.push((Instant::now(), event.clone()));
        let moved = match event {
            Event::Started(of) if of == id => JobEvent::Started,
            Event::Phase(of, phase) if of == id => {
                self.phases.push(phase);
                JobEvent::Phase(phase)
            }
            Event::Progress(of, progress) if of == id => {
                self.progress.push(progress);
                JobEvent::Progress { step: progress.step, of: progress.steps }
            }
            Event::Paused(of, reason) if of == id => {
                self.pauses.push(reason.clone());
                JobEvent::Paused(reason)
            }
            Event::Resumed(of) if of == id => {
                self.resumed += 1;
                JobEvent::Resumed
            }
            Event::Picture(of, shot) if of == id => {
                self.shots.push(*shot);
                JobEvent::Picture
            }
            Event::Done(of, summary) if of == id => {
                self.summary = Some(*summary);
                JobEvent::Done
            }
            Event::Failed(of, error) if of == id => JobEvent::Failed(error),
            Event::Cancelled(of) if of == id => JobEvent::Cancelled,
            Event::Notice(_, notice) => return self.notices.push(notice),
            _ => return,
        };
        match self.state.next(&moved) {
            Move::To(state) => self.state = state,
            other => panic!("{other:?} after {self:?}"),
        }
    }

    /// What the job failed with.
    pub fn error(&self) -> &JobError {
        match &self.state {
            JobState::Failed(error) => error,
            _ => panic!("not failed: {self:?}"),
        }
    }

    pub fn problem(&self) -> &Problem {
        &self.error().problem
    }

    pub fn cancelled(&self) -> bool {
        self.state == JobState::Cancelled
    }

    /// The pixels of the only picture.
    pub fn pixels(&self) -> &[u8] {
        assert_eq!(self.shots.len(), 1, "{self:?}");
        self.shots[0].image.pixels()
    }

    /// The final latent of the only picture.
    pub fn latent(&self) -> &[f32] {
        &self.summary.as_ref().expect("done").latents[0]
    }
}

/// A line an event, without pixels.
impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, _)) = self.events.first() else { return f.write_str("nothing was told") };
        for (at, event) in &self.events {
            write!(f, "\n{:.3} ", at.duration_since(*first).as_secs_f64())?;
            match event {
                Event::Picture(_, shot) => write!(f, "Picture {} {:?}", shot.index, shot.stopped_at)?,
                Event::Done(_, summary) => write!(f, "Done {:?}", summary.seconds)?,
                other => write!(f, "{other:?}")?,
            }
        }
        Ok(())
    }
}
