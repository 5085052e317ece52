//! What each action does to the state.

use super::action::{Action, Dropped, Effect, ModelInfo};
use super::draft::{Field, SeedChoice, Setting};
use super::history::PromptPair;
use super::messages::{Line, Trouble};
use super::preferences::Preferences;
use super::queue::Queue;
use super::shots::ShotId;
use super::{JobState, Studio};
use crate::base::request::draw_seed;
use crate::base::{Hint, JobError, ModelChoice, OutputPlan, Precision, Problem, ShotRequest, VaeChoice};
use crate::engine::protocol::{Command, Setup};
use std::path::PathBuf;

/// Dropped files looked at in one go.
const DROPPED_AT_ONCE: usize = 4;

impl Studio {
    /// Does what was asked, and returns what the app has to do for it.
    pub fn apply(&mut self, action: Action) -> Vec<Effect> {
        let effects = self.act(action);
        self.foresee();
        effects
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Start => return self.start(),

            Action::Set(setting) => self.set(setting),
            Action::Reset(field) => self.reset(field),
            Action::SwapSize => self.draft.size = self.draft.size.swapped(),
            Action::RollSeed => self.draft.seed = SeedChoice::Random,
            Action::ReuseSeed => {
                if let Some(newest) = self.shots.newest() {
                    self.draft.seed = SeedChoice::Fixed(newest.shot.request.seed);
                }
            }
            Action::HistoryPrevious => {
                let pair = self.history.previous(self.prompt_pair());
                self.show_pair(pair);
            }
            Action::HistoryNext => {
                let pair = self.history.next();
                self.show_pair(pair);
            }
            Action::ForgetHistory => self.history.clear(),

            Action::Generate => self.generate(),
            Action::Pause => self.steer(|control| control.pause()),
            Action::Resume => self.steer(|control| control.resume()),
            Action::StopAndKeep => {
                self.draft.forever = false;
                self.steer(|control| control.stop_and_keep());
            }
            Action::Cancel => {
                self.draft.forever = false;
                if let Some(job) = self.queue.front() {
                    job.control.cancel();
                }
            }
            Action::CancelJob(id) => {
                if let Some(job) = self.queue.get(id) {
                    if job.state != JobState::Queued {
                        self.draft.forever = false;
                    }
                    job.control.cancel();
                }
            }
            Action::CancelAll => {
                self.draft.forever = false;
                self.queue.cancel_all();
            }

            Action::Clean => self.clean(),
            Action::SetLimits(limits) => {
                self.memory.set_limits(limits);
                self.send(Command::Limits(*self.memory.limits()));
            }

            Action::Select(id) => self.shots.select(id),
            Action::SelectNewer => self.shots.step(-1),
            Action::SelectOlder => self.shots.step(1),
            Action::UseSettings(id) => self.use_settings(id),
            Action::UseSeed(id) => {
                if let Some(finished) = self.shots.get(id) {
                    self.draft.seed = SeedChoice::Fixed(finished.shot.request.seed);
                }
            }
            Action::SaveAs(id) => return self.save_as(id).into_iter().collect(),
            Action::CopyPicture(id) => {
                return self.shots.get(id).map(|f| Effect::CopyPicture(f.shot.image.clone())).into_iter().collect();
            }
            Action::CopyParameters(id) => {
                return self.shots.get(id).map(|f| Effect::CopyText(f.shot.parameters.clone())).into_iter().collect();
            }
            Action::OpenFolder(id) => return self.folder_of(id).map(Effect::Reveal).into_iter().collect(),
            Action::Remove(id) => self.shots.remove(id),

            Action::OpenModelFile => return vec![Effect::PickModelFile],
            Action::OpenModelFolder => return vec![Effect::PickModelFolder],
            Action::ChooseVae => return vec![Effect::PickVae],
            Action::ChooseFolder => return vec![Effect::PickOutputFolder],
            Action::ModelChosen(choice) => {
                self.inspecting = Some(choice.clone());
                return vec![Effect::Inspect(choice)];
            }
            Action::ModelInspected { choice, result } => return self.inspected(choice, result),
            Action::VaeChosen(vae) => self.take_vae(vae),
            Action::FolderChosen(folder) => {
                self.draft.folder = Some(folder);
                self.forget_trouble(|problem| matches!(problem, Problem::NotSaved { .. }));
            }
            Action::FilesDropped(paths) => {
                return paths.into_iter().take(DROPPED_AT_ONCE).map(Effect::ReadDropped).collect();
            }
            Action::DropRead { path, found } => self.dropped(path, found),
            Action::SaveAsDone { shot, result } => self.saved_as(shot, result),
            Action::NoDialog => self.notices.push(None, Line::NoDialog),
            Action::CopyDone(Ok(())) => self.notices.push(None, Line::Copied),
            Action::CopyDone(Err(why)) | Action::EffectFailed(why) => self.notices.push(None, Line::Failed(why)),

            Action::DismissNotice(id) => self.notices.dismiss(id),
            Action::DismissTrouble => self.trouble = None,
            Action::TakeHint(hint) => return self.take_hint(hint),

            Action::SetLang(lang) => self.lang = lang,
            Action::SetTheme(theme) => self.theme = theme,
            Action::SetPanels(panels) => self.panels = panels,
            Action::SetNotifyWhenDone(notify) => self.notify_when_done = notify,
            Action::Close if self.shots.unsaved().next().is_some() => self.asks_to_close = true,
            Action::Close | Action::CloseAnyway => return self.close(),
            Action::KeepOpen => self.asks_to_close = false,
        }
        vec![]
    }

    fn start(&mut self) -> Vec<Effect> {
        self.send(Command::Limits(*self.memory.limits()));
        self.send(Command::Probe(self.draft.device));
        self.inspecting = self.draft.model.clone();
        self.inspecting.clone().map(Effect::Inspect).into_iter().collect()
    }

    // The draft.

    fn set(&mut self, setting: Setting) {
        let device = self.draft.device;
        let before = self.prompt_pair();
        self.draft.set(setting);
        if self.draft.device != device {
            self.send(Command::Probe(self.draft.device));
        }
        if self.prompt_pair() != before {
            self.history.edited();
            self.count_tokens(&before);
        }
    }

    fn reset(&mut self, field: Field) {
        let device = self.draft.device;
        let before = self.prompt_pair();
        self.draft.reset(field);
        if self.draft.device != device {
            self.send(Command::Probe(self.draft.device));
        }
        self.count_tokens(&before);
    }

    fn prompt_pair(&self) -> PromptPair {
        PromptPair { prompt: self.draft.prompt.clone(), negative: self.draft.negative.clone() }
    }

    fn show_pair(&mut self, pair: Option<PromptPair>) {
        if let Some(pair) = pair {
            let before = self.prompt_pair();
            self.draft.prompt = pair.prompt;
            self.draft.negative = pair.negative;
            self.count_tokens(&before);
        }
    }

    /// Counts again what differs from `before`.
    fn count_tokens(&mut self, before: &PromptPair) {
        let count = |text: &str| (self.services.count_tokens)(self.draft.model.as_ref(), text);
        if self.draft.prompt != before.prompt {
            self.tokens.0 = count(&self.draft.prompt);
        }
        if self.draft.negative != before.negative {
            self.tokens.1 = count(&self.draft.negative);
        }
    }

    fn take_request(&mut self, request: &ShotRequest) {
        let before = self.prompt_pair();
        self.draft.take(request);
        self.history.edited();
        self.count_tokens(&before);
        self.notices.push(None, Line::SettingsTaken);
    }

    fn use_settings(&mut self, id: ShotId) {
        if let Some(request) = self.shots.get(id).map(|finished| finished.shot.request.clone()) {
            self.take_request(&request);
        }
    }

    fn take_vae(&mut self, vae: VaeChoice) {
        if let VaeChoice::Path(path) = &vae {
            self.notices.push(None, Line::VaeChosen(path.clone()));
        }
        self.draft.vae = vae;
        self.forget_trouble(|problem| matches!(problem, Problem::NoVae { .. }));
    }

    // Jobs.

    fn generate(&mut self) {
        let seed = match self.draft.seed {
            SeedChoice::Random => draw_seed(),
            SeedChoice::Fixed(seed) => seed,
        };
        if self.begin(seed) {
            self.history.push(self.prompt_pair());
            self.shots.select(None);
        }
    }

    /// The next round of generating forever: drawn anew, or counted on from the last job where the seed is fixed.
    pub(super) fn go_on_forever(&mut self, last: &ShotRequest) {
        let seed = match self.draft.seed {
            SeedChoice::Random => draw_seed(),
            SeedChoice::Fixed(_) => last.seed.wrapping_add(u64::from(last.count)),
        };
        if !self.begin(seed) {
            self.draft.forever = false;
        }
    }

    /// Checks the draft and hands it to the engine. Whether it did.
    fn begin(&mut self, seed: u64) -> bool {
        let request = match self.draft.request(seed) {
            Ok(request) => request,
            Err(error) => {
                self.trouble = Some(Trouble::Draft(error));
                return false;
            }
        };
        let Some(setup) = self.draft.setup() else {
            let error = Box::new(JobError::new(Problem::NoModel, ""));
            self.trouble = Some(Trouble::Job { job: None, error });
            return false;
        };
        let output = self.draft.output(self.services.pictures_folder.as_ref());
        self.hand_over(request, setup, output)
    }

    /// Queues a job and sends it. Whether there was room, and an engine to take it.
    fn hand_over(&mut self, request: ShotRequest, setup: Setup, output: OutputPlan) -> bool {
        if self.engine_gone {
            self.trouble = Some(Trouble::EngineGone);
            return false;
        }
        if self.queue.is_full() {
            self.notices.push(None, Line::QueueFull { count: Queue::MOST });
            return false;
        }
        self.trouble = None;
        let job = self.queue.push(request, setup, output);
        self.send(Command::Run(Box::new(job)))
    }

    fn steer(&mut self, wish: impl FnOnce(&crate::engine::protocol::JobControl)) {
        if let Some(job) = self.queue.running() {
            wish(&job.control);
        }
    }

    /// Runs the failed job again, with the same seed and something changed.
    fn again(&mut self, change: impl FnOnce(&mut ShotRequest, &mut Setup)) {
        let Some(job) = self.queue.failed() else { return };
        let (mut request, mut setup, output) = (job.request.clone(), job.setup.clone(), job.output.clone());
        change(&mut request, &mut setup);
        match request.check() {
            Ok(request) => {
                self.hand_over(request, setup, output);
            }
            Err(error) => self.trouble = Some(Trouble::Draft(error)),
        }
    }

    fn clean(&mut self) {
        if !self.memory.cleaning() && self.send(Command::Clean) {
            self.memory.set_cleaning(true);
        }
    }

    /// Sends a command. A closed channel is a trouble shown, never a panic.
    fn send(&mut self, command: Command) -> bool {
        let sent = self.engine.commands.send(command).is_ok();
        if !sent {
            self.lose_engine();
        }
        sent
    }

    // Pictures.

    fn save_as(&self, id: ShotId) -> Option<Effect> {
        let shot = &self.shots.get(id)?.shot;
        Some(Effect::SaveAs {
            shot: id,
            image: shot.image.clone(),
            request: Box::new(shot.request.clone()),
            parameters: shot.parameters.clone(),
            model: shot.model.clone(),
        })
    }

    fn saved_as(&mut self, id: ShotId, result: Result<PathBuf, Box<JobError>>) {
        match result {
            Ok(file) => {
                self.notices.push(None, Line::Saved(file.clone()));
                self.shots.saved(id, file);
                if self.shots.unsaved().next().is_none() {
                    self.asks_to_close = false;
                    self.forget_trouble(|problem| matches!(problem, Problem::NotSaved { .. }));
                }
            }
            Err(error) => self.trouble = Some(Trouble::Job { job: None, error }),
        }
    }

    /// The picture's file, or the folder pictures go to.
    fn folder_of(&self, id: Option<ShotId>) -> Option<PathBuf> {
        match id {
            Some(id) => self.shots.get(id)?.shot.file.clone(),
            None => self.output_folder().cloned(),
        }
    }

    // Choosers.

    fn inspected(&mut self, choice: ModelChoice, result: Result<ModelInfo, Box<JobError>>) -> Vec<Effect> {
        // Another was chosen since: this answer came late.
        if self.inspecting.as_ref() != Some(&choice) {
            return vec![];
        }
        self.inspecting = None;
        match result {
            Ok(info) => {
                let was_chosen = self.model.is_none() && self.draft.model.as_ref() == Some(&choice);
                self.take_model(choice, info);
                // What took the place of a model that was lost does not hide that it was.
                if !was_chosen {
                    self.forget_model_trouble();
                }
            }
            Err(error) => {
                self.recent_models.retain(|recent| *recent != choice);
                self.trouble = Some(Trouble::Job { job: None, error });
                // A remembered model that is no longer there must not stay chosen.
                if self.draft.model.as_ref() == Some(&choice) {
                    self.model = None;
                    let instead = self.services.pocket.is_some().then_some(ModelChoice::Pocket);
                    self.choose_model(instead.filter(|instead| *instead != choice));
                    self.inspecting = self.draft.model.clone();
                    return self.inspecting.clone().map(Effect::Inspect).into_iter().collect();
                }
            }
        }
        vec![]
    }

    /// Takes a model and counts the prompts' tokens as it does.
    fn choose_model(&mut self, choice: Option<ModelChoice>) {
        self.draft.choose_model(choice);
        let count = |text: &str| (self.services.count_tokens)(self.draft.model.as_ref(), text);
        self.tokens = (count(&self.draft.prompt), count(&self.draft.negative));
    }

    fn take_model(&mut self, choice: ModelChoice, info: ModelInfo) {
        self.recent_models.retain(|recent| *recent != choice);
        // The built-in one has a place of its own in the menu.
        if choice != ModelChoice::Pocket {
            self.recent_models.insert(0, choice.clone());
            self.recent_models.truncate(Preferences::RECENT);
        }
        self.choose_model(Some(choice));
        self.model = Some(info);
    }

    /// Drops a trouble that another model solves.
    fn forget_model_trouble(&mut self) {
        self.forget_trouble(|problem| {
            use Problem::*;
            matches!(
                problem,
                NoModel | FileUnreadable { .. } | FileDamaged { .. } | FileIncomplete { .. } | FileChanged { .. }
            ) || matches!(problem, WrongKind { .. } | NoVae { .. } | BadCheckpoint { .. })
        });
    }

    fn dropped(&mut self, path: PathBuf, found: Dropped) {
        match found {
            Dropped::Model(info) => {
                self.inspecting = None;
                self.take_model(ModelChoice::Path(path), info);
                self.forget_model_trouble();
            }
            Dropped::Vae => self.take_vae(VaeChoice::Path(path)),
            Dropped::Settings(request) => self.take_request(&request),
            Dropped::NoSettings => self.notices.push(None, Line::NoSettings),
            Dropped::Refused(error) => self.trouble = Some(Trouble::Job { job: None, error }),
        }
    }

    // Messages.

    /// Drops the shown trouble where it is solved.
    fn forget_trouble(&mut self, solved: impl FnOnce(&Problem) -> bool) {
        if matches!(&self.trouble, Some(Trouble::Job { error, .. }) if solved(&error.problem)) {
            self.trouble = None;
        }
    }

    /// A hint's button. What changes a setting changes it in the draft too, and tries the failed job again.
    fn take_hint(&mut self, hint: Hint) -> Vec<Effect> {
        let failed = matches!(self.trouble, Some(Trouble::Job { job: Some(_), .. }));
        match hint {
            Hint::OpenModel => return vec![Effect::PickModelFile],
            Hint::ChooseVae => return vec![Effect::PickVae],
            Hint::ChooseFolder => return vec![Effect::PickOutputFolder],
            Hint::SaveAs => {
                let id = self.shots.unsaved().next().map(|finished| finished.id);
                return id.and_then(|id| self.save_as(id)).into_iter().collect();
            }
            Hint::Install(command) => return vec![Effect::CopyText(command)],
            Hint::CheckDownload => {
                return match &self.trouble {
                    Some(Trouble::Job { error, .. }) => match &error.problem {
                        Problem::FileIncomplete { path, .. } => vec![Effect::Reveal(path.clone())],
                        _ => vec![],
                    },
                    _ => vec![],
                };
            }
            Hint::CleanMemory => self.clean(),
            Hint::UseSize(size) => {
                self.set(Setting::Size(size));
                self.retry(failed, |request, _| request.size = size);
            }
            Hint::UseDevice(device) => {
                self.set(Setting::Device(device));
                self.retry(failed, |_, setup| setup.device = device);
            }
            Hint::UseF32 => {
                self.set(Setting::Precision(Precision::F32));
                self.retry(failed, |_, setup| setup.precision = Precision::F32);
            }
            Hint::TryAgain => self.retry(failed, |_, _| ()),
        }
        vec![]
    }

    fn retry(&mut self, failed: bool, change: impl FnOnce(&mut ShotRequest, &mut Setup)) {
        self.trouble = None;
        if failed {
            self.again(change);
        }
    }

    // The window.

    fn close(&mut self) -> Vec<Effect> {
        self.closing = true;
        self.asks_to_close = false;
        self.queue.cancel_all();
        // An engine that is gone needs no telling.
        let _ = self.engine.commands.send(Command::Shutdown);
        vec![Effect::Quit]
    }
}
