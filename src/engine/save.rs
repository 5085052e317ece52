//! Writes pictures and latents so that a file under its final name is always whole, and none is ever overwritten unasked.
//!
//! Everything goes to a temporary name in the same folder, is flushed to the disk, and only then gets its name. A failure
//! leaves nothing behind. Called by the engine's thread after each picture, and for "save as" of one on screen.

use super::leftovers;
use super::metadata::{self, EncodeError};
use super::names::{self, NameParts};
use super::protocol::Setup;
use super::targets::{self, Content};
use crate::base::parameters::{self, PictureFacts};
use crate::base::{ImageFormat, OutputPlan, Reason, RgbImage, ShotRequest, VaeChoice};
use safetensors::tensor::{Dtype, TensorView};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The program and its version, as the picture's text names them.
const VERSION: &str = concat!("Softbox ", env!("CARGO_PKG_VERSION"));

/// Why something was not written. The picture itself is untouched, and may be saved elsewhere.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("the disk of {} is full", folder.display())]
    Full { folder: PathBuf },
    #[error("{} cannot be written to", folder.display())]
    ReadOnly { folder: PathBuf },
    /// Something that is no folder stands where a folder is needed.
    #[error("{} is a file, not a folder", path.display())]
    NotAFolder { path: PathBuf },
    /// A folder, a device, a pipe: nothing that a file may take the place of.
    #[error("{} is there and is no file", path.display())]
    NotAFile { path: PathBuf },
    /// A file of another kind than what is to be written, such as the checkpoint itself.
    #[error("{} is another kind of file, and is not replaced", path.display())]
    OtherKind { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the picture could not be encoded: {0}")]
    Encode(#[from] EncodeError),
    #[error("latents of {found} values do not have the shape {shape:?}")]
    Latents { found: usize, shape: [usize; 3] },
}

impl SaveError {
    pub(super) fn new(path: &Path, source: io::Error) -> Self {
        let folder = path.parent().unwrap_or(path).to_path_buf();
        match source.kind() {
            // Making a folder says "exists" and "not a directory" of a file that stands in its way.
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                SaveError::NotAFolder { path: targets::file_in_the_way(&folder).unwrap_or(folder) }
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => SaveError::Full { folder },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => SaveError::ReadOnly { folder },
            // The temporary name means nothing to a person.
            _ if path.extension() == Some(OsStr::new("tmp")) => SaveError::Io { path: folder, source },
            _ => SaveError::Io { path: path.to_path_buf(), source },
        }
    }
}

impl SaveError {
    /// The same for a person.
    pub fn reason(&self) -> Reason {
        match self {
            SaveError::Full { folder } => Reason::DiskFull(folder.clone()),
            SaveError::ReadOnly { folder } => Reason::ReadOnly(folder.clone()),
            SaveError::NotAFolder { path } => Reason::NotAFolder(path.clone()),
            SaveError::NotAFile { path } => Reason::NotAFile(path.clone()),
            SaveError::OtherKind { path } => Reason::OtherKind(path.clone()),
            SaveError::Io { path, source } => Reason::io(path, source),
            SaveError::Encode(_) | SaveError::Latents { .. } => Reason::NotEncoded(self.to_string()),
        }
    }
}

/// What a picture's text and name say besides the request.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    pub setup: &'a Setup,
    /// Of the model and of a separate VAE, as far as they are known.
    pub hashes: (Option<String>, Option<String>),
    /// Which picture of the job, from 0.
    pub index: u32,
    /// After how many steps the person stopped it.
    pub stopped_at: Option<u32>,
}

/// What became of a picture. A failure to write is no failure of the job: the picture exists.
#[derive(Debug)]
pub struct Saved {
    /// `None` if it was not to be written, or could not be.
    pub file: Option<PathBuf>,
    pub error: Option<Reason>,
    /// The text that was, or would have been, written into it.
    pub parameters: String,
}

/// Writes one picture of a job where the plan says, with its settings inside.
///
/// `request` is that of this picture alone. A picture that was stopped says the steps it was planned with, so that the
/// text makes the whole picture again.
pub fn save(image: &RgbImage, request: &ShotRequest, facts: &Facts, plan: &OutputPlan) -> Saved {
    let model = facts.setup.model.name();
    let (model_hash, vae_hash) = facts.hashes.clone();
    let vae = match &facts.setup.vae {
        VaeChoice::Path(path) => path.file_stem().map(|name| name.to_string_lossy().into_owned()),
        VaeChoice::Automatic => None,
    };
    let text =
        PictureFacts { model: Some(model.clone()), model_hash, vae, vae_hash, version: Some(VERSION.to_owned()) };
    let parameters = parameters::write(request, &text);
    let parts = NameParts { request, model: &model, index: facts.index, at: SystemTime::now() };
    match write(image, &parameters, plan, &parts) {
        Ok(file) => Saved { file, error: None, parameters },
        Err(error) => Saved { file: None, error: Some(error.reason()), parameters },
    }
}

/// Writes a picture with a ready text where the plan says. `None` where the plan is to keep it on screen only.
pub fn write(
    image: &RgbImage,
    parameters: &str,
    plan: &OutputPlan,
    parts: &NameParts,
) -> Result<Option<PathBuf>, SaveError> {
    match plan {
        OutputPlan::Keep => Ok(None),
        OutputPlan::Folder { folder, pattern, format } => {
            let bytes = metadata::encode(image, parameters, *format)?;
            let name = names::fill(pattern, parts);
            write_new(folder, &name, format.extension(), &bytes).map(Some)
        }
        OutputPlan::File(file) => {
            let file = file_of(file, parts.index);
            let format = format_of(&file).unwrap_or_default();
            let bytes = metadata::encode(image, parameters, format)?;
            write_over(&file, &bytes, Content::Picture).map(|()| Some(file))
        }
    }
}

/// The format that a file's ending asks for.
pub fn format_of(file: &Path) -> Option<ImageFormat> {
    match file.extension().and_then(OsStr::to_str)?.to_ascii_lowercase().as_str() {
        "png" => Some(ImageFormat::Png),
        "jpg" | "jpeg" => Some(ImageFormat::Jpeg),
        "webp" => Some(ImageFormat::Webp),
        _ => None,
    }
}

/// The file of picture `index` of a job that was told one file: `-2`, `-3` and so on before the ending from the second.
pub(super) fn file_of(file: &Path, index: u32) -> PathBuf {
    if index == 0 {
        return file.to_path_buf();
    }
    let mut name = file.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{}", u64::from(index) + 1));
    if let Some(ending) = file.extension() {
        name.push(".");
        name.push(ending);
    }
    file.with_file_name(name)
}

/// Final latents as one safetensors file with the tensor `latents`, f32 [n, c, h, w].
///
/// `each` holds `shape[0] × shape[1] × shape[2]` values per picture. An existing file of latents is replaced, any other is
/// left alone.
pub fn save_latents(path: &Path, each: &[Vec<f32>], shape: [usize; 3]) -> Result<(), SaveError> {
    let size: usize = shape.iter().product();
    if let Some(wrong) = each.iter().find(|values| values.len() != size) {
        return Err(SaveError::Latents { found: wrong.len(), shape });
    }
    let bytes: Vec<u8> = each.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let whole = vec![each.len(), shape[0], shape[1], shape[2]];
    let io = |error: safetensors::SafeTensorError| SaveError::new(path, io::Error::other(error.to_string()));
    let view = TensorView::new(Dtype::F32, whole, &bytes).map_err(io)?;
    let file = safetensors::serialize([("latents", view)], None).map_err(io)?;
    write_over(path, &file, Content::Latents)
}

/// Writes under the first free one of `name.ending`, `name-2.ending` …, whoever else writes there at the same time.
fn write_new(folder: &Path, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, SaveError> {
    let temporary = Temporary::write(folder, bytes)?;
    for number in 1..=u32::MAX {
        let file = folder.join(names::numbered(name, number, ending));
        match claim(&temporary.0, &file) {
            Ok(()) => {
                flush_folder(folder);
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(SaveError::new(&file, error)),
        }
    }
    Err(SaveError::new(folder, ErrorKind::AlreadyExists.into()))
}

/// Gives a file a second name if that is free. The system does it in one step where it has hard links; elsewhere an empty
/// file holds the name until the whole one takes its place.
fn claim(temporary: &Path, file: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, file) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            OpenOptions::new().write(true).create_new(true).open(file)?;
            fs::rename(temporary, file).inspect_err(|_| drop(fs::remove_file(file)))
        }
    }
}

/// Writes under exactly this name, in place of what was there, if that is of the same kind.
fn write_over(file: &Path, bytes: &[u8], content: Content) -> Result<(), SaveError> {
    targets::may_replace(file, content)?;
    let folder = targets::folder_of(file);
    let temporary = Temporary::write(folder, bytes)?;
    fs::rename(&temporary.0, file).map_err(|error| SaveError::new(file, error))?;
    flush_folder(folder);
    Ok(())
}

/// A finished file under a name that nobody looks for. Removed when dropped, unless it was renamed.
pub(super) struct Temporary(PathBuf);

impl Temporary {
    pub(super) fn write(folder: &Path, bytes: &[u8]) -> Result<Self, SaveError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(leftovers::name(std::process::id(), number));
        fs::create_dir_all(folder).map_err(|error| SaveError::new(&path, error))?;
        leftovers::sweep_once(folder, number);
        let open = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let mut file = open.map_err(|error| SaveError::new(&path, error))?;
        // From here on the file exists, and goes with this value if anything below fails.
        let temporary = Temporary(path);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| SaveError::new(&temporary.0, error))?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already after a rename; a failure here leaves a hidden file, which a later run sweeps away.
        drop(fs::remove_file(&self.0));
    }
}

/// Makes the new name itself last through a power cut, where the system can.
fn flush_folder(folder: &Path) {
    if cfg!(unix)
        && let Err(error) = File::open(folder).and_then(|folder| folder.sync_all())
    {
        tracing::debug!("{} was not flushed: {error}", folder.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{DeviceChoice, ModelChoice, NoiseSource, Precision};
    use std::collections::HashSet;

    fn picture() -> RgbImage {
        RgbImage::new(8, 8, vec![128; 8 * 8 * 3]).unwrap()
    }

    fn folder_plan(folder: &Path, pattern: &str) -> OutputPlan {
        OutputPlan::Folder { folder: folder.to_path_buf(), pattern: pattern.to_owned(), format: ImageFormat::Png }
    }

    fn save_as(plan: &OutputPlan, prompt: &str, index: u32) -> Result<Option<PathBuf>, SaveError> {
        let request = ShotRequest { prompt: prompt.to_owned(), ..ShotRequest::default() };
        let parts = NameParts { request: &request, model: "m", index, at: SystemTime::now() };
        write(&picture(), "Steps: 1", plan, &parts)
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_taken_name_is_numbered_and_the_folder_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let plan = folder_plan(&folder, "[prompt]");
        for _ in 0..3 {
            save_as(&plan, "cat", 0).unwrap();
        }
        assert_eq!(files(&folder), ["cat-2.png", "cat-3.png", "cat.png"]);
        assert!(image::open(folder.join("cat-3.png")).is_ok());
    }

    #[test]
    fn prompts_of_nothing_or_of_path_signs_are_saved_inside_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let plan = folder_plan(dir.path(), "[prompt]");
        for prompt in ["", "...", "/", "../../etc/passwd", &"中".repeat(500)] {
            let file = save_as(&plan, prompt, 0).unwrap().unwrap();
            assert_eq!(file.parent(), Some(dir.path()), "{prompt}");
            assert!(file.is_file());
        }
    }

    #[test]
    fn many_writers_at_once_lose_no_picture() {
        let dir = tempfile::tempdir().unwrap();
        let plan = folder_plan(dir.path(), "same");
        let saved: HashSet<PathBuf> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..5).map(|_| save_as(&plan, "", 0).unwrap().unwrap()).collect::<Vec<_>>()))
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(saved.len(), 40);
        assert_eq!(files(dir.path()).len(), 40, "and nothing else is left there");
    }

    #[test]
    fn a_named_file_is_replaced_and_more_pictures_are_numbered() {
        let dir = tempfile::tempdir().unwrap();
        let plan = OutputPlan::File(dir.path().join("out.v1.jpg"));
        for index in [0, 0, 1, 2] {
            save_as(&plan, "", index).unwrap();
        }
        assert_eq!(files(dir.path()), ["out.v1-2.jpg", "out.v1-3.jpg", "out.v1.jpg"]);
        assert_eq!(metadata::read_parameters(&dir.path().join("out.v1.jpg")).unwrap().as_deref(), Some("Steps: 1"));
    }

    #[test]
    fn a_saved_picture_gives_its_request_back_and_names_what_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup {
            model: ModelChoice::Path("/m/epic, v5.safetensors".into()),
            vae: VaeChoice::Path("/m/ft-mse.safetensors".into()),
            device: DeviceChoice::Cpu,
            precision: Precision::F32,
            v_prediction: None,
            ema: false,
        };
        let request = ShotRequest {
            prompt: "a cat, 猫: (x:1.2)".to_owned(),
            negative: "Steps: 3, blurry".to_owned(),
            seed: u64::MAX,
            noise: NoiseSource::Cpu,
            clip_skip: 2,
            ..ShotRequest::default()
        };
        let hashes = (Some("0123456789".to_owned()), None);
        let facts = Facts { setup: &setup, hashes, index: 0, stopped_at: None };
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp] {
            let plan =
                OutputPlan::Folder { folder: dir.path().to_path_buf(), pattern: "[model]-[seed]".to_owned(), format };
            let saved = save(&picture(), &request, &facts, &plan);
            let text = metadata::read_parameters(&saved.file.unwrap()).unwrap().unwrap();
            assert_eq!(text, saved.parameters);
            let read = parameters::read(&text);
            assert_eq!(read.onto(&ShotRequest::default()), request, "{format:?}");
            assert_eq!(read.facts.model_hash.as_deref(), Some("0123456789"));
            assert_eq!(read.facts.model.as_deref(), Some("epic, v5"));
            assert_eq!(read.facts.vae.as_deref(), Some("ft-mse"));
        }
        assert!(files(dir.path()).contains(&format!("epic, v5-{}.webp", u64::MAX)));
    }

    #[test]
    fn keep_writes_nothing() {
        assert!(save_as(&OutputPlan::Keep, "cat", 0).unwrap().is_none());
    }

    #[test]
    fn a_folder_that_is_a_file_is_an_error_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("blocked");
        fs::write(&blocked, "a file").unwrap();
        assert!(save_as(&folder_plan(&blocked, "x"), "", 0).is_err());
        assert!(save_as(&OutputPlan::File(blocked.join("x.png")), "", 0).is_err());
        assert_eq!(files(dir.path()), ["blocked"]);
    }

    #[test]
    fn a_name_that_cannot_be_taken_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out.png")).unwrap();
        assert!(save_as(&OutputPlan::File(dir.path().join("out.png")), "", 0).is_err());
        assert_eq!(files(dir.path()), ["out.png"]);
    }

    /// Needs a full disk; Linux has one for tests.
    #[test]
    #[cfg(target_os = "linux")]
    fn full_and_read_only_disks_are_told_apart() {
        let full = File::options().write(true).open("/dev/full").unwrap().write_all(b"x").unwrap_err();
        let folder = PathBuf::from("/pictures");
        assert!(matches!(SaveError::new(&folder.join("a.png"), full), SaveError::Full { folder: f } if f == folder));
        let locked = save_as(&folder_plan(Path::new("/proc/softbox"), "x"), "", 0).unwrap_err();
        assert!(!matches!(locked, SaveError::Full { .. }), "{locked}");
        let kind = io::Error::from(ErrorKind::ReadOnlyFilesystem);
        assert!(matches!(SaveError::new(&folder.join("a.png"), kind), SaveError::ReadOnly { .. }));
    }

    #[test]
    fn latents_come_back_in_shape_and_wrong_ones_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("latents.safetensors");
        let each = [vec![1.0; 24], (0..24).map(|n| n as f32).collect()];
        save_latents(&path, &each, [4, 2, 3]).unwrap();
        let bytes = fs::read(&path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let tensor = file.tensor("latents").unwrap();
        assert_eq!((tensor.shape(), tensor.dtype()), ([2, 4, 2, 3].as_slice(), Dtype::F32));
        assert_eq!(tensor.data()[4 * 47..], 23f32.to_le_bytes());
        assert!(matches!(save_latents(&path, &[vec![0.0; 5]], [4, 2, 3]), Err(SaveError::Latents { found: 5, .. })));
        assert_eq!(files(dir.path()), ["latents.safetensors"]);
    }
}
