//! What a person (or the app on the person's behalf) asks of the studio, and what the studio asks of the app in return.

use super::draft::{Field, Setting};
use super::preferences::{Panels, Theme};
use super::shots::ShotId;
use crate::base::choice::MemoryLimits;
use crate::base::{Hint, JobError, JobId, Lang, ModelChoice, Reason, RgbImage, ShotRequest, VaeChoice};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that changes the studio. Panels return these; `Studio::apply` is the only place they take effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Once, after the window opened: tells the engine limits and device, looks at the remembered model.
    Start,

    // The draft.
    Set(Setting),
    /// Double-click on a value.
    Reset(Field),
    SwapSize,
    /// The dice: a random seed for every press of Generate.
    RollSeed,
    /// Keep the seed of the newest picture.
    ReuseSeed,
    /// Fill the draft with an earlier prompt pair, or a later one again.
    HistoryPrevious,
    HistoryNext,
    ForgetHistory,

    // Jobs.
    Generate,
    Pause,
    Resume,
    StopAndKeep,
    /// Cancel the running job (Esc), and with it generating forever.
    Cancel,
    /// Cancel one job, running or waiting.
    CancelJob(JobId),
    CancelAll,

    // Memory.
    Clean,
    SetLimits(MemoryLimits),

    // Finished pictures.
    /// Look at a picture; `None` follows the running job and its newest picture.
    Select(Option<ShotId>),
    SelectNewer,
    SelectOlder,
    /// Take the picture's settings, its seed included, into the draft.
    UseSettings(ShotId),
    UseSeed(ShotId),
    SaveAs(ShotId),
    CopyPicture(ShotId),
    CopyParameters(ShotId),
    /// Open the folder that holds the picture; `None` opens the output folder.
    OpenFolder(Option<ShotId>),
    /// Take the picture off the strip. Its file stays.
    Remove(ShotId),

    // Choosers, and what comes back from them.
    OpenModelFile,
    OpenModelFolder,
    ChooseVae,
    ChooseFolder,
    ModelChosen(ModelChoice),
    ModelInspected {
        choice: ModelChoice,
        result: Result<ModelInfo, Box<JobError>>,
    },
    VaeChosen(VaeChoice),
    FolderChosen(PathBuf),
    FilesDropped(Vec<PathBuf>),
    DropRead {
        path: PathBuf,
        found: Dropped,
    },
    SaveAsDone {
        shot: ShotId,
        result: Result<PathBuf, Box<JobError>>,
    },
    CopyDone(Result<(), Reason>),
    /// The system opened no file dialog.
    NoDialog,
    /// Opening a folder or the like failed, technically.
    EffectFailed(Reason),

    // Messages.
    DismissNotice(u64),
    DismissTrouble,
    /// A hint's button on the shown trouble.
    TakeHint(Hint),

    // The window.
    /// `None` follows the system.
    SetLang(Option<Lang>),
    SetTheme(Theme),
    SetPanels(Panels),
    SetNotifyWhenDone(bool),
    /// The person closes the window. Asks first where pictures would be lost.
    Close,
    CloseAnyway,
    KeepOpen,
}

/// What the studio may not do itself. The app does it and answers with an [`Action`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A native dialog for a `.safetensors` file; answered by [`Action::ModelChosen`], or by nothing.
    PickModelFile,
    /// For a diffusers folder.
    PickModelFolder,
    /// Answered by [`Action::VaeChosen`].
    PickVae,
    /// Answered by [`Action::FolderChosen`].
    PickOutputFolder,
    /// Look at the model off the UI thread; answered by [`Action::ModelInspected`].
    Inspect(ModelChoice),
    /// Tell what a dropped file is, off the UI thread; answered by [`Action::DropRead`].
    ReadDropped(PathBuf),
    /// A save dialog, then write; answered by [`Action::SaveAsDone`], or by nothing when closed.
    SaveAs {
        shot: ShotId,
        image: Arc<RgbImage>,
        request: Box<ShotRequest>,
        parameters: String,
        model: String,
    },
    /// Answered by [`Action::CopyDone`].
    CopyPicture(Arc<RgbImage>),
    CopyText(String),
    /// Show a folder, or the folder of a file with the file marked, in the file manager.
    Reveal(PathBuf),
    /// A job is done and the person asked to be told.
    NotifyDone,
    Quit,
}

/// What inspection told of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelInfo {
    /// As shown: the file's stem or the folder's name.
    pub name: String,
    /// "SD 1.5 checkpoint", "diffusers folder".
    pub kind: String,
    pub has_vae: bool,
    /// An ft-mse VAE found beside a checkpoint that has none.
    pub suggested_vae: Option<PathBuf>,
    /// Something worth knowing, technically.
    pub note: Option<String>,
}

/// What a dropped file turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Dropped {
    Model(ModelInfo),
    Vae,
    /// A picture with settings inside.
    Settings(Box<ShotRequest>),
    /// A picture without.
    NoSettings,
    Refused(Box<JobError>),
}
