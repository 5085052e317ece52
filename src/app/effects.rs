//! What the studio asks for and may not do itself: dialogs, clipboard, files, folders.
//!
//! Everything that can take a while runs on a thread of its own. Answers come back as actions.

use super::forecast::Cost;
use crate::base::{JobError, Latest, ModelChoice, OutputPlan, Problem, Reason, ShotRequest, VaeChoice, parameters};
use crate::diffusion::place::Place;
use crate::diffusion::pocket;
use crate::diffusion::weights::{self, Family, Inspection, WeightError};
use crate::engine::names::{self, NameParts};
use crate::engine::{metadata, problem_of_weights, save};
use crate::studio::{Action, Dropped, Effect, ModelInfo, ShotId, Studio};
use crossbeam_channel::{Receiver, Sender};
use egui::{ColorImage, Context, UserAttentionType, ViewportCommand};
use rfd::AsyncFileDialog;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// No person opens and cancels a dialog within this.
const TOO_QUICK: Duration = Duration::from_millis(300);

/// Does effects and collects their answers.
pub struct Effects {
    ctx: Context,
    answers: Receiver<Action>,
    answer: Sender<Action>,
    /// Where the forecast finds what an inspected model costs.
    costs: Latest<Cost>,
}

impl Effects {
    pub fn new(ctx: Context, costs: Latest<Cost>) -> Self {
        let (answer, answers) = crossbeam_channel::unbounded();
        Effects { ctx, answers, answer, costs }
    }

    /// The next answer that has come, if any.
    pub fn answer(&self) -> Option<Action> {
        self.answers.try_recv().ok()
    }

    /// Does these. True if one of them is to quit.
    pub fn perform(&mut self, effects: Vec<Effect>, studio: &Studio) -> bool {
        let mut quit = false;
        for effect in effects {
            quit |= effect == Effect::Quit;
            self.one(effect, studio);
        }
        quit
    }

    fn one(&self, effect: Effect, studio: &Studio) {
        match effect {
            Effect::PickModelFile => {
                let dialog = weights_dialog().pick_file();
                self.ask(dialog, |path| Action::ModelChosen(ModelChoice::Path(path)));
            }
            Effect::PickModelFolder => {
                let dialog = AsyncFileDialog::new().pick_folder();
                self.ask(dialog, |path| Action::ModelChosen(ModelChoice::Path(path)));
            }
            Effect::PickVae => {
                let dialog = weights_dialog().pick_file();
                self.ask(dialog, |path| Action::VaeChosen(VaeChoice::Path(path)));
            }
            Effect::PickOutputFolder => {
                let mut dialog = AsyncFileDialog::new();
                if let Some(folder) = studio.output_folder() {
                    dialog = dialog.set_directory(folder);
                }
                self.ask(dialog.pick_folder(), Action::FolderChosen);
            }
            Effect::Inspect(choice) => {
                let costs = self.costs.clone();
                self.spawn(move || {
                    let result = inspect(&choice);
                    if result.is_ok() {
                        Cost::of(&choice).into_iter().for_each(|cost| costs.put(cost));
                    }
                    Some(Action::ModelInspected { choice, result })
                });
            }
            Effect::ReadDropped(path) => {
                let costs = self.costs.clone();
                self.spawn(move || {
                    let found = read_dropped(&path);
                    if matches!(found, Dropped::Model(_)) {
                        Cost::of(&ModelChoice::Path(path.clone())).into_iter().for_each(|cost| costs.put(cost));
                    }
                    Some(Action::DropRead { path, found })
                });
            }
            Effect::SaveAs { shot, image, request, parameters, model } => {
                let parts = NameParts { request: &request, model: &model, index: 0, at: SystemTime::now() };
                let name = names::numbered(&names::fill(names::DEFAULT_PATTERN, &parts), 1, "png");
                let dialog = AsyncFileDialog::new()
                    .add_filter("PNG, JPEG, WebP", &["png", "jpg", "jpeg", "webp"])
                    .set_file_name(name)
                    .save_file();
                self.ask(dialog, move |file| save_as(shot, &image, &request, &parameters, &model, file));
            }
            Effect::CopyPicture(image) => {
                let size = [image.width(), image.height()];
                self.ctx.copy_image(ColorImage::from_rgb(size, image.pixels()));
                self.tell(Action::CopyDone(Ok(())));
            }
            Effect::CopyText(text) => {
                self.ctx.copy_text(text);
                self.tell(Action::CopyDone(Ok(())));
            }
            Effect::Reveal(path) => self.spawn(move || reveal(&path).err().map(Action::EffectFailed)),
            Effect::NotifyDone => {
                let attention = ViewportCommand::RequestUserAttention(UserAttentionType::Informational);
                self.ctx.send_viewport_cmd(attention);
            }
            // The app reads this one from the return value.
            Effect::Quit => {}
        }
    }

    /// Waits for a dialog on a thread. The dialog itself was opened here, where some systems insist on it.
    ///
    /// No file is what a cancelled dialog answers, and what one that could not open does; only the latter is so quick.
    fn ask(
        &self,
        dialog: impl Future<Output = Option<rfd::FileHandle>> + Send + 'static,
        answer: impl FnOnce(PathBuf) -> Action + Send + 'static,
    ) {
        self.spawn(move || {
            let asked = Instant::now();
            match pollster::block_on(dialog) {
                Some(file) => Some(answer(file.path().to_owned())),
                None => (asked.elapsed() < TOO_QUICK).then_some(Action::NoDialog),
            }
        });
    }

    fn spawn(&self, work: impl FnOnce() -> Option<Action> + Send + 'static) {
        let (answer, ctx) = (self.answer.clone(), self.ctx.clone());
        let started = std::thread::Builder::new().name("softbox-effect".to_owned()).spawn(move || {
            if let Some(action) = work() {
                // A window that is gone needs no answer.
                drop(answer.send(action));
                ctx.request_repaint();
            }
        });
        if let Err(error) = started {
            self.tell(Action::EffectFailed(Reason::io(Path::new(""), &error)));
        }
    }

    fn tell(&self, action: Action) {
        drop(self.answer.send(action));
        self.ctx.request_repaint();
    }
}

fn weights_dialog() -> AsyncFileDialog {
    AsyncFileDialog::new().add_filter("safetensors", &["safetensors"]).add_filter("*", &["*"])
}

/// Says what a checkpoint is, without loading it.
fn inspect(choice: &ModelChoice) -> Result<ModelInfo, Box<JobError>> {
    let place = match choice {
        ModelChoice::RandomSd15 => {
            return Ok(ModelInfo {
                name: choice.name(),
                kind: "SD 1.5".to_owned(),
                has_vae: true,
                suggested_vae: None,
                note: None,
            });
        }
        ModelChoice::Pocket => pocket::folder().ok_or(WeightError::NotBuiltIn),
        ModelChoice::Path(path) => Ok(Place::from(path)),
    };
    let found = place.and_then(weights::inspect);
    let found = found.map_err(|error| Box::new(JobError::new(problem_of_weights(&error), error.to_string())))?;
    model_info(choice.name(), found)
}

fn model_info(name: String, found: Inspection) -> Result<ModelInfo, Box<JobError>> {
    if !found.family.is_supported() {
        let problem = Problem::WrongKind { path: found.path, kind: found.family.label().to_owned() };
        return Err(Box::new(JobError::new(problem, found.family.label())));
    }
    let note = found.unknown.first.first().map(|first| format!("{} × {first}", found.unknown.count));
    Ok(ModelInfo {
        name,
        kind: found.family.label().to_owned(),
        has_vae: found.has_vae,
        suggested_vae: found.suggested_vae,
        note,
    })
}

/// Tells what a dropped file is: a picture with settings, a VAE, or a checkpoint.
fn read_dropped(path: &Path) -> Dropped {
    match metadata::read_parameters(path) {
        Ok(Some(text)) => {
            return Dropped::Settings(Box::new(parameters::read(&text).onto(&ShotRequest::default())));
        }
        Ok(None) => return Dropped::NoSettings,
        // Not a picture, so it may be a model.
        Err(_) => {}
    }
    let name = ModelChoice::Path(path.to_owned()).name();
    match weights::inspect(path) {
        Ok(found) if found.family == Family::Vae => Dropped::Vae,
        Ok(found) => match model_info(name, found) {
            Ok(info) => Dropped::Model(info),
            Err(error) => Dropped::Refused(error),
        },
        Err(error) => Dropped::Refused(Box::new(JobError::new(problem_of_weights(&error), error.to_string()))),
    }
}

fn save_as(
    shot: ShotId,
    image: &crate::base::RgbImage,
    request: &ShotRequest,
    parameters: &str,
    model: &str,
    file: PathBuf,
) -> Action {
    let parts = NameParts { request, model, index: 0, at: SystemTime::now() };
    let written = save::write(image, parameters, &OutputPlan::File(file.clone()), &parts);
    let result = written.map(|path| path.unwrap_or_else(|| file.clone())).map_err(|error| {
        let folder = file.parent().map(ToOwned::to_owned).unwrap_or_default();
        Box::new(JobError::new(Problem::NotSaved { folder, why: error.reason() }, error.to_string()))
    });
    Action::SaveAsDone { shot, result }
}

/// Shows a folder, or a file in its folder, in the system's file manager.
fn reveal(path: &Path) -> Result<(), Reason> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let mut command = if cfg!(target_os = "windows") {
        Command::new("explorer")
    } else if cfg!(target_os = "macos") {
        Command::new("open")
    } else {
        Command::new("xdg-open")
    };
    let opener = PathBuf::from(command.get_program());
    let failed = |error: std::io::Error| Reason::io(&opener, &error);
    let mut child = command.arg(folder).spawn().map_err(failed)?;
    // Waited for, so that no dead process is left behind; its exit code says little (explorer's is always 1).
    child.wait().map(drop).map_err(failed)
}
