//! Whether something can be written where a person asked, found out before the run rather than after it.
//!
//! A file is only replaced by one of its own kind: a picture by a picture, latents by latents. So no slip of the keyboard
//! costs a checkpoint, and none replaces a device. Called by the command line before a job, and by `save` at its end.

use super::metadata::{self, ReadError};
use super::save::{self, SaveError, Temporary};
use crate::base::OutputPlan;
use crate::diffusion::weights::Archive;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What a file that is to be written will hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Picture,
    /// A safetensors file with the one tensor `latents`.
    Latents,
}

/// About what a picture takes: a disk with less than that to spare is full.
const TRIAL: usize = 1 << 20;

/// Tries everything that can be tried of a plan for `count` pictures. Leaves no file and no new folder behind.
///
/// # Errors
/// Any that writing the first picture, or replacing one of the named files, would end with.
pub fn check_pictures(plan: &OutputPlan, count: u32) -> Result<(), SaveError> {
    match plan {
        OutputPlan::Keep => Ok(()),
        OutputPlan::Folder { folder, .. } => try_folder(folder),
        OutputPlan::File(file) => {
            (0..count).try_for_each(|index| may_replace(&save::file_of(file, index), Content::Picture))?;
            try_folder(folder_of(file))
        }
    }
}

/// As [`check_pictures`], for `--save-latents`; a file that a picture of the plan will take is refused too.
///
/// # Errors
/// As [`check_pictures`].
pub fn check_latents(file: &Path, plan: &OutputPlan, count: u32) -> Result<(), SaveError> {
    may_replace(file, Content::Latents)?;
    if let OutputPlan::File(picture) = plan
        && (0..count).any(|index| save::file_of(picture, index) == file)
    {
        return Err(SaveError::OtherKind { path: file.to_path_buf() });
    }
    try_folder(folder_of(file))
}

/// Whether `file` is free, empty, or holds what it is to hold again.
pub(super) fn may_replace(file: &Path, content: Content) -> Result<(), SaveError> {
    let meta = match fs::metadata(file) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(SaveError::new(file, error)),
    };
    if !meta.is_file() {
        return Err(SaveError::NotAFile { path: file.to_path_buf() });
    }
    let same = meta.len() == 0
        || match content {
            // Damaged or not, it is a picture by its first bytes.
            Content::Picture => {
                !matches!(metadata::read_parameters(file), Err(ReadError::NotAPicture | ReadError::Io(_)))
            }
            Content::Latents => {
                Archive::open(file).is_ok_and(|archive| archive.tensors().keys().map(String::as_str).eq(["latents"]))
            }
        };
    if same { Ok(()) } else { Err(SaveError::OtherKind { path: file.to_path_buf() }) }
}

/// The folder that a file lies in.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file, or other thing, that stands where `folder` or one of the folders above it should be.
pub(super) fn file_in_the_way(folder: &Path) -> Option<PathBuf> {
    let there = folder.ancestors().find(|path| path.exists())?;
    (!there.is_dir()).then(|| there.to_path_buf())
}

/// Makes the folder, writes as much as a picture, and takes both away again.
fn try_folder(folder: &Path) -> Result<(), SaveError> {
    let new: Vec<&Path> =
        folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    let tried = Temporary::write(folder, &vec![0; TRIAL]).map(drop);
    for made in new {
        // Only an empty folder goes: whatever another program has put there meanwhile stays.
        drop(fs::remove_dir(made));
    }
    tried
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ImageFormat, RgbImage};

    fn folder(path: PathBuf) -> OutputPlan {
        OutputPlan::Folder { folder: path, pattern: "x".to_owned(), format: ImageFormat::Png }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_checkpoint_is_never_a_target() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in [("m.safetensors", &b"weights"[..]), ("m.png", b"weights"), ("m.yaml", b"model:")] {
            let file = dir.path().join(name);
            fs::write(&file, bytes).unwrap();
            let keep = OutputPlan::Keep;
            assert!(matches!(check_latents(&file, &keep, 1), Err(SaveError::OtherKind { .. })), "{name}");
            let plan = OutputPlan::File(file.clone());
            assert!(matches!(check_pictures(&plan, 1), Err(SaveError::OtherKind { .. })), "{name}");
            // Nor does the end of a run replace it, should it come there meanwhile.
            assert!(save::save_latents(&file, &[vec![0.0; 4]], [1, 2, 2]).is_err());
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
    }

    #[test]
    fn what_was_written_before_may_be_replaced_by_its_like() {
        let dir = tempfile::tempdir().unwrap();
        let latents = dir.path().join("latents.safetensors");
        let keep = OutputPlan::Keep;
        for _ in 0..2 {
            check_latents(&latents, &keep, 1).unwrap();
            save::save_latents(&latents, &[vec![0.0; 4]], [1, 2, 2]).unwrap();
        }
        let picture = dir.path().join("a.png");
        let image = RgbImage::new(8, 8, vec![1; 8 * 8 * 3]).unwrap();
        fs::write(&picture, metadata::encode(&image, "", ImageFormat::Png).unwrap()).unwrap();
        check_pictures(&OutputPlan::File(picture.clone()), 1).unwrap();
        assert!(check_latents(&picture, &keep, 1).is_err());
        assert!(check_pictures(&OutputPlan::File(latents.clone()), 1).is_err());
    }

    #[test]
    fn every_numbered_file_counts_and_latents_do_not_take_a_pictures_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a-3.png"), "my thesis").unwrap();
        let plan = OutputPlan::File(dir.path().join("a.png"));
        assert!(check_pictures(&plan, 2).is_ok());
        assert!(matches!(check_pictures(&plan, 3), Err(SaveError::OtherKind { .. })));
        assert!(check_latents(&dir.path().join("a-2.png"), &plan, 2).is_err());
        assert!(check_latents(&dir.path().join("a-2.png"), &plan, 1).is_ok());
    }

    #[test]
    fn a_place_that_cannot_be_written_to_is_found_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("blocked");
        fs::write(&blocked, "a file").unwrap();
        for path in [blocked.clone(), blocked.join("x"), blocked.join("x/y")] {
            let error = check_pictures(&folder(path.clone()), 1).unwrap_err();
            assert!(matches!(&error, SaveError::NotAFolder { path } if *path == blocked), "{path:?}: {error}");
        }
        let error = check_pictures(&OutputPlan::File(blocked.join("a.png")), 1).unwrap_err();
        assert!(matches!(error, SaveError::NotAFolder { path } if path == blocked));
        assert!(check_pictures(&OutputPlan::File(dir.path().to_path_buf()), 1).is_err());
        check_pictures(&folder(dir.path().join("new/deep")), 1).unwrap();
        assert_eq!(names(dir.path()), ["blocked"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn devices_and_the_systems_own_folders_are_no_targets() {
        assert!(matches!(may_replace(Path::new("/dev/full"), Content::Latents), Err(SaveError::NotAFile { .. })));
        assert!(check_pictures(&folder("/proc/softbox".into()), 1).is_err());
    }
}
