//! The far ends of the engine's channels, and a window over them. Tests play the engine through these.

use crossbeam_channel::{Receiver, Sender, unbounded};
use egui_kittest::Harness;
use softbox::base::problem::Phase;
use softbox::base::vocabulary::Category;
use softbox::base::{
    Bytes, DeviceChoice, JobError, JobId, Lang, Latest, MemoryReading, ModelChoice, Precision, Reason, RgbImage,
    ShotRequest, Vocabulary,
};
use softbox::engine::protocol::{
    Command, DeviceStatus, EngineHandle, Event, PauseReason, Preview, Progress, Shot, Summary,
};
use softbox::studio::{Action, Forecast, ModelInfo, Preferences, Services, Studio, Theme, TokenCount};
use softbox::ui::{self, ViewState};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A studio with an engine that does what the test says.
pub struct Stage {
    pub studio: Studio,
    pub commands: Receiver<Command>,
    events: Sender<Event>,
    previews: Latest<Preview>,
    readings: Latest<MemoryReading>,
}

impl Stage {
    pub fn new(kept: Preferences) -> Self {
        Self::with(None, kept)
    }

    /// Of a program with a built-in model that knows these words, or with none.
    fn with(pocket: Option<Vocabulary>, kept: Preferences) -> Self {
        let (to_engine, commands) = unbounded();
        let (events, from_engine) = unbounded();
        let (previews, readings) = (Latest::new(), Latest::new());
        let handle = EngineHandle {
            commands: to_engine,
            events: from_engine,
            previews: previews.clone(),
            readings: readings.clone(),
        };
        let services = Services {
            // A word a token is near enough for drawing a counter.
            count_tokens: Box::new(|_, text| {
                let words: Vec<usize> = text.split(' ').filter(|w| !w.is_empty()).map(str::len).collect();
                let chunks = (1..).map(|n| n * TokenCount::LIMIT).take_while(|n| *n < words.len());
                let chunks = chunks.map(|n| words[..n].iter().map(|length| length + 1).sum()).collect();
                TokenCount { tokens: words.len(), chunks, limit: TokenCount::LIMIT }
            }),
            forecast: Box::new(|_, memory, _| {
                let total = memory.latest()?.total?;
                Some(Forecast::Fits { peak: Bytes::mib(3174), total })
            }),
            pictures_folder: Some(PathBuf::from("/pictures/softbox")),
            pocket,
            system_lang: Lang::En,
        };
        let studio = Studio::new(handle, services, kept);
        Stage { studio, commands, events, previews, readings }
    }

    /// With the remembered settings of someone who has a checkpoint.
    pub fn ready(lang: Lang) -> Self {
        let mut stage = Stage::new(Preferences { lang: Some(lang), theme: Theme::Dark, ..Preferences::default() });
        let choice = ModelChoice::Path("/models/portrait_v5.safetensors".into());
        stage.studio.apply(Action::ModelChosen(choice.clone()));
        let info = ModelInfo {
            name: "portrait_v5".into(),
            kind: "SD 1.5 checkpoint".into(),
            has_vae: true,
            suggested_vae: None,
            note: None,
        };
        stage.studio.apply(Action::ModelInspected { choice, result: Ok(info) });
        stage.device();
        stage
    }

    /// The very first start of a program with a built-in model.
    pub fn pocket(lang: Lang) -> Self {
        let category = |name: &str, words: &[&str], colors: &[&str]| Category {
            name: name.into(),
            words: words.iter().map(|word| (*word).into()).collect(),
            colors: colors.iter().map(|color| (*color).into()).collect(),
        };
        let words = Vocabulary {
            categories: vec![
                category("hair", &["black hair", "red hair", "long hair"], &[]),
                category("clothing", &["t-shirt", "suit"], &["red", "blue"]),
            ],
            examples: vec!["portrait photo of a woman".into(), "portrait photo of a man".into()],
        };
        let kept = Preferences { lang: Some(lang), theme: Theme::Dark, ..Preferences::default() };
        let mut stage = Stage::with(Some(words), kept);
        stage.device();
        stage
    }

    /// Without a checkpoint.
    pub fn bare(lang: Lang) -> Self {
        Stage::new(Preferences { lang: Some(lang), theme: Theme::Dark, ..Preferences::default() })
    }

    pub fn tell(&mut self, event: Event) {
        self.events.send(event).expect("the studio listens");
        self.studio.poll();
    }

    pub fn device(&mut self) {
        self.tell(Event::Device(DeviceStatus {
            choice: DeviceChoice::Cuda(0),
            name: "NVIDIA RTX 3060 (CUDA)".into(),
            total: Some(Bytes::gib(8)),
            precision: Precision::F16,
            passed_over: vec![],
        }));
    }

    pub fn read(&mut self, reading: MemoryReading) {
        self.readings.put(reading);
        self.studio.poll();
    }

    /// Presses Generate and lets the engine begin.
    pub fn start(&mut self) -> JobId {
        self.studio.apply(Action::Generate);
        let id = self
            .commands
            .try_iter()
            .filter_map(|command| match command {
                Command::Run(job) => Some(job.id),
                _ => None,
            })
            .last()
            .expect("a job was sent");
        self.tell(Event::Started(id));
        self.tell(Event::Phase(id, Phase::Loading));
        id
    }

    /// Steps done of the job, with a preview.
    pub fn step(&mut self, id: JobId, step: u32, of: u32) {
        self.tell(Event::Phase(id, Phase::Denoising { step, of }));
        let progress = Progress {
            image: 0,
            images: 1,
            step,
            steps: of,
            steps_per_second: Some(6.8),
            left: Some(Duration::from_secs(2)),
        };
        self.tell(Event::Progress(id, progress));
        self.preview(id, step, picture(64, 96));
    }

    pub fn preview(&mut self, id: JobId, step: u32, image: RgbImage) {
        self.previews.put(Preview { job: id, image_index: 0, step, image: Arc::new(image) });
        self.studio.poll();
    }

    pub fn pause_for_memory(&mut self, id: JobId, step: u32) {
        let reason = PauseReason::LowMemory { step, used: 0.93, limit: 0.9, others: Some(Bytes::mib(5222)) };
        self.tell(Event::Paused(id, reason));
    }

    pub fn finish(&mut self, id: JobId, seed: u64, saved: bool) {
        let request = ShotRequest { seed, ..ShotRequest::default() };
        let shot = Shot {
            job: id,
            index: 0,
            request,
            image: Arc::new(picture(128, 192)),
            file: saved.then(|| format!("/pictures/softbox/{seed}.png").into()),
            save_error: (!saved).then(|| Reason::ReadOnly("/pictures/softbox".into())),
            parameters: String::new(),
            model: "portrait_v5".into(),
            seconds: 6.2,
            stopped_at: None,
        };
        self.tell(Event::Picture(id, Box::new(shot)));
        self.tell(Event::Done(id, Box::new(Summary { images: 1, ..Summary::default() })));
    }

    pub fn fail(&mut self, id: JobId, error: JobError) {
        self.tell(Event::Failed(id, Box::new(error)));
    }
}

/// A picture with something to see in it.
pub fn picture(width: usize, height: usize) -> RgbImage {
    let pixels = (0..width * height)
        .flat_map(|i| {
            let (x, y) = (i % width * 255 / width, i / width * 255 / height);
            [200u8.saturating_sub((y / 2) as u8), (x / 2 + 40) as u8, (255 - x) as u8 / 2]
        })
        .collect();
    RgbImage::new(width, height, pixels).expect("the sizes agree")
}

/// A reading of an 8 GiB card whose parts add up; `others` in MiB.
pub fn reading(at: f64, in_use: u64, others: u64) -> MemoryReading {
    let (pooled, context) = (430, 310);
    let total = 8192;
    MemoryReading {
        at,
        total: Some(Bytes::mib(total)),
        ours_in_use: Some(Bytes::mib(in_use)),
        ours_pooled: Some(Bytes::mib(pooled)),
        ours_context: Some(Bytes::mib(context)),
        others: Some(Bytes::mib(others)),
        reserved: Some(Bytes::ZERO),
        free: Some(Bytes::mib(total - in_use - pooled - context - others)),
        peak: Some(Bytes::mib(in_use + pooled + context)),
        unknown_because: vec![],
    }
}

/// A drawn window and the actions that were taken in it.
pub struct Window<'a> {
    pub harness: Harness<'a, (Stage, ViewState)>,
    taken: Rc<RefCell<Vec<Action>>>,
}

impl Window<'_> {
    pub fn open(stage: Stage, width: f32, height: f32) -> Self {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let log = taken.clone();
        let mut installed = false;
        let mut harness = Harness::builder()
            .with_size(egui::Vec2::new(width, height))
            // Without system fonts nothing here draws Chinese; its words are in the accessibility tree all the same.
            .allow_missing_glyphs()
            .with_max_steps(32)
            // Two clicks within four passes are a double-click.
            .with_step_dt(1.0 / 50.0)
            .build_ui_state(
                move |ui, (stage, view): &mut (Stage, ViewState)| {
                    if !installed {
                        installed = true;
                        ui::fonts::install(ui.ctx(), None);
                        ui::theme::install(ui.ctx(), false);
                    } else {
                        // Applied at once, as the application does.
                        for action in ui::show(ui, &stage.studio, view) {
                            log.borrow_mut().push(action.clone());
                            stage.studio.apply(action);
                        }
                    }
                },
                (stage, ViewState::default()),
            );
        harness.run_ok();
        taken.borrow_mut().clear();
        Window { harness, taken }
    }

    /// What was asked since the last look.
    pub fn take(&mut self) -> Vec<Action> {
        self.harness.run_ok();
        self.taken.take()
    }
}
