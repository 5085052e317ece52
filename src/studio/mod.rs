//! The application's state, on the UI thread. [`Studio::apply`] and [`Studio::poll`] are the only writers.
//!
//! It knows no window, no file and no GPU: what it may not do itself it returns as [`Effect`]s, which the app performs. The
//! window reads it through accessors; the engine is spoken to through its [`EngineHandle`].

pub mod action;
mod apply;
pub mod draft;
pub mod history;
pub mod job;
pub mod memory;
pub mod messages;
mod poll;
pub mod preferences;
pub mod queue;
pub mod shots;

pub use action::{Action, Dropped, Effect, ModelInfo};
pub use draft::{Draft, Field, SeedChoice, Setting};
pub use history::{History, PromptPair};
pub use job::{JobEvent, JobState};
pub use memory::{Forecast, Mark, MarkKind, Memory, Sample, Stage};
pub use messages::{Line, NoticeLine, Notices, Trouble};
pub use preferences::{Panels, Preferences, Theme};
pub use queue::{JobEntry, Queue};
pub use shots::{Finished, ShotId, Shots};

/// Why a job waits; the window names it through the studio.
pub use crate::engine::protocol::PauseReason;

use crate::base::{JobId, Lang, ModelChoice, RgbImage, Vocabulary};
use crate::engine::protocol::{DeviceStatus, EngineHandle};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How many tokens a prompt has and where its chunks begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCount {
    pub tokens: usize,
    /// Byte offsets in the text at which the second, third … chunk begins.
    pub chunks: Vec<usize>,
    /// Tokens a chunk holds.
    pub limit: usize,
}

impl TokenCount {
    /// SD1.5's text encoder takes 77 positions, two of which are the start and end tokens.
    pub const LIMIT: usize = 75;
}

impl Default for TokenCount {
    fn default() -> Self {
        TokenCount { tokens: 0, chunks: Vec::new(), limit: TokenCount::LIMIT }
    }
}

/// Pure functions that live in folders the studio may not use.
pub struct Services {
    /// As this model counts them; CLIP's vocabulary where there is none.
    pub count_tokens: Box<CountFn>,
    /// Whether the draft would fit by these readings and limits on this device; `None` where that is not known.
    pub forecast: Box<ForecastFn>,
    /// Where pictures go while no folder is chosen.
    pub pictures_folder: Option<PathBuf>,
    /// The words that the built-in model knows; `None` where there is no such model.
    pub pocket: Option<Vocabulary>,
    /// What `Preferences::lang = None` means.
    pub system_lang: Lang,
}

/// See [`Services::count_tokens`].
pub type CountFn = dyn Fn(Option<&ModelChoice>, &str) -> TokenCount + Send;

/// See [`Services::forecast`].
pub type ForecastFn = dyn Fn(&Draft, &Memory, Option<&DeviceStatus>) -> Option<Forecast> + Send;

/// The newest look at the picture in the making.
#[derive(Clone, Debug)]
pub struct PreviewView {
    pub job: JobId,
    pub image_index: u32,
    pub step: u32,
    pub image: Arc<RgbImage>,
    /// Grows with every new picture: upload the texture when it changed.
    pub version: u64,
}

/// What the canvas shows.
#[derive(Clone, Copy, Debug)]
pub enum Canvas<'a> {
    /// Neither a picture nor a preview.
    Empty,
    Preview(&'a PreviewView),
    Shot(&'a Finished),
}

/// The whole state of the program as the window knows it.
pub struct Studio {
    engine: EngineHandle,
    services: Services,
    draft: Draft,
    tokens: (TokenCount, TokenCount),
    history: History,
    queue: Queue,
    shots: Shots,
    preview: Option<PreviewView>,
    versions: u64,
    memory: Memory,
    forecast: Option<Forecast>,
    notices: Notices,
    trouble: Option<Trouble>,
    device: Option<DeviceStatus>,
    model: Option<ModelInfo>,
    inspecting: Option<ModelChoice>,
    recent_models: Vec<ModelChoice>,
    lang: Option<Lang>,
    theme: Theme,
    panels: Panels,
    notify_when_done: bool,
    asks_to_close: bool,
    /// The engine was told to end, so its end is no trouble.
    closing: bool,
    engine_gone: bool,
    /// Effects that `poll` met; handed out by [`Studio::take_effects`].
    pending: Vec<Effect>,
}

impl Studio {
    /// The state as it was kept. Nothing is told to the engine before [`Action::Start`].
    ///
    /// Where no model is chosen it is the built-in one; at the very first start there is a prompt for it too, so that the first
    /// click on Generate makes a portrait.
    pub fn new(engine: EngineHandle, services: Services, kept: Preferences) -> Self {
        let mut draft = kept.draft;
        draft.tidy();
        match &services.pocket {
            Some(words) => {
                if draft.model.is_none() {
                    draft.choose_model(Some(ModelChoice::Pocket));
                }
                let first_start = draft.prompt.is_empty() && kept.history.is_empty();
                if first_start && draft.model == Some(ModelChoice::Pocket) {
                    draft.prompt = words.examples.first().cloned().unwrap_or_default();
                }
            }
            // Kept by a program that had it.
            None if draft.model == Some(ModelChoice::Pocket) => draft.choose_model(None),
            None => {}
        }
        let count = |text: &str| (services.count_tokens)(draft.model.as_ref(), text);
        let tokens = (count(&draft.prompt), count(&draft.negative));
        Studio {
            engine,
            services,
            draft,
            tokens,
            history: History::new(kept.history),
            queue: Queue::default(),
            shots: Shots::default(),
            preview: None,
            versions: 0,
            memory: Memory::new(kept.limits),
            forecast: None,
            notices: Notices::default(),
            trouble: None,
            device: None,
            model: None,
            inspecting: None,
            recent_models: kept.recent_models,
            lang: kept.lang,
            theme: kept.theme,
            panels: kept.panels,
            notify_when_done: kept.notify_when_done,
            asks_to_close: false,
            closing: false,
            engine_gone: false,
            pending: Vec::new(),
        }
    }

    /// What should survive a restart, as it is now.
    pub fn preferences(&self) -> Preferences {
        Preferences {
            draft: self.draft.clone(),
            lang: self.lang,
            theme: self.theme,
            limits: *self.memory.limits(),
            recent_models: self.recent_models.clone(),
            history: self.history.pairs().to_vec(),
            panels: self.panels,
            notify_when_done: self.notify_when_done,
        }
    }

    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    pub fn prompt_tokens(&self) -> &TokenCount {
        &self.tokens.0
    }

    pub fn negative_tokens(&self) -> &TokenCount {
        &self.tokens.1
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The job that runs or is paused.
    pub fn running(&self) -> Option<&JobEntry> {
        self.queue.running()
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    pub fn shots(&self) -> &Shots {
        &self.shots
    }

    pub fn preview(&self) -> Option<&PreviewView> {
        self.preview.as_ref()
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether the draft would fit; `None` where that is not known.
    pub fn forecast(&self) -> Option<Forecast> {
        self.forecast
    }

    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    pub fn device(&self) -> Option<&DeviceStatus> {
        self.device.as_ref()
    }

    /// What inspection told of the chosen model; `None` until it did.
    pub fn model_info(&self) -> Option<&ModelInfo> {
        self.model.as_ref()
    }

    /// The model being looked at.
    pub fn inspecting(&self) -> Option<&ModelChoice> {
        self.inspecting.as_ref()
    }

    /// Newest first.
    pub fn recent_models(&self) -> &[ModelChoice] {
        &self.recent_models
    }

    /// Whether there is a built-in model to go back to.
    pub fn has_pocket(&self) -> bool {
        self.services.pocket.is_some()
    }

    /// The words that the chosen model is known to follow; `None` of a model that knows any.
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        self.services.pocket.as_ref().filter(|_| self.draft.model == Some(ModelChoice::Pocket))
    }

    /// The language as chosen; `None` follows the system.
    pub fn lang_choice(&self) -> Option<Lang> {
        self.lang
    }

    pub fn lang(&self) -> Lang {
        self.lang.unwrap_or(self.services.system_lang)
    }

    pub fn theme(&self) -> Theme {
        self.theme
    }

    pub fn panels(&self) -> &Panels {
        &self.panels
    }

    pub fn notify_when_done(&self) -> bool {
        self.notify_when_done
    }

    /// Closing would lose pictures: the window asks.
    pub fn asks_to_close(&self) -> bool {
        self.asks_to_close
    }

    /// Whether Generate can be pressed: a model is chosen and the engine lives.
    pub fn can_generate(&self) -> bool {
        self.draft.model.is_some() && !self.engine_gone
    }

    /// The folder pictures go to, chosen or offered.
    pub fn output_folder(&self) -> Option<&PathBuf> {
        self.draft.folder.as_ref().or(self.services.pictures_folder.as_ref())
    }

    /// How long the draft would take, from the last job's pace with the same setup, scaled by pixels.
    pub fn time_estimate(&self) -> Option<Duration> {
        self.queue.estimate(&self.draft)
    }

    /// What the canvas shows: the picture that was selected, else the running job's preview, else the newest picture.
    pub fn canvas(&self) -> Canvas<'_> {
        match (self.shots.selected(), &self.preview, self.shots.newest()) {
            (Some(shot), _, _) => Canvas::Shot(shot),
            (None, Some(preview), _) => Canvas::Preview(preview),
            (None, None, Some(shot)) => Canvas::Shot(shot),
            (None, None, None) => Canvas::Empty,
        }
    }
}

#[cfg(test)]
mod tests;
