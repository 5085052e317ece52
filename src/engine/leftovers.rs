//! Temporary files that a program which was killed while writing has left behind, and their names. Called by `save`.
//!
//! Only a file of exactly this name, an hour old, whose process is gone, is taken away: nobody else names files so, and
//! writing a picture takes seconds.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// A file that was written to since is left alone, whoever's it is.
const OLD: Duration = Duration::from_secs(3600);

/// The name of the temporary file that this process writes as its `number`-th.
pub(super) fn name(process: u32, number: u64) -> String {
    format!(".softbox-{process}-{number}.tmp")
}

/// Process and number of a name of ours.
fn parts(name: &OsStr) -> Option<(u32, u64)> {
    let (process, number) = name.to_str()?.strip_prefix(".softbox-")?.strip_suffix(".tmp")?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(process) && digits(number)).then(|| Some((process.parse().ok()?, number.parse().ok()?)))?
}

/// Sweeps a folder when this program first writes there. `number` is that of the file it is about to write.
pub(super) fn sweep_once(folder: &Path, number: u64) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        sweep(folder, number, SystemTime::now());
    }
}

/// Takes away what was left in a folder. A file that cannot be is left for another time.
fn sweep(folder: &Path, number: u64, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut system = System::new().ok();
    for entry in entries.flatten() {
        let Some((process, of_process)) = parts(&entry.file_name()) else { continue };
        // Numbers begin at 0 in each process: one that is still to come was given by an earlier process of our number,
        // which in a container is often the same.
        let ours = process == std::process::id() && of_process < number;
        // Not followed where it is a link: then it is none of ours.
        let old = entry.metadata().is_ok_and(|meta| {
            let age = meta.modified().ok().and_then(|at| now.duration_since(at).ok());
            meta.is_file() && age.is_some_and(|age| age >= OLD)
        });
        if ours || !old || (process != std::process::id() && runs(&mut system, process)) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Ok(()) => tracing::info!("{} was left by a program that was killed, and is gone", entry.path().display()),
            Err(error) => tracing::debug!("{}: {error}", entry.path().display()),
        }
    }
}

/// Whether there is a process of this number, whatever it is; yes, where the system does not tell.
fn runs(system: &mut Option<System>, process: u32) -> bool {
    let Some(system) = system else { return true };
    let pid = Pid::from_u32(process);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, ProcessRefreshKind::nothing());
    system.process(pid).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn put(folder: &Path, name: &str, hours: u64) {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600 + 60)).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The number of a process that has just ended.
    fn gone() -> u32 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .arg("--list")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn a_name_gives_its_numbers_back_and_others_names_do_not() {
        assert_eq!(parts(OsStr::new(&name(7, u64::MAX))), Some((7, u64::MAX)));
        for other in [
            "",
            ".softbox-1-2.tmp.png",
            ".softbox-1.tmp",
            ".softbox--1.tmp",
            ".softbox-+1-2.tmp",
            ".softbox-1-2-3.tmp",
            "softbox-1-2.tmp",
            ".softbox-a-2.tmp",
            ".softbox-99999999999-1.tmp",
            ".softbox-1-2.TMP",
        ] {
            assert_eq!(parts(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn only_old_files_of_ended_processes_go() {
        let dir = tempfile::tempdir().unwrap();
        let (dead, own) = (gone(), std::process::id());
        put(dir.path(), &name(dead, 0), 1);
        put(dir.path(), &name(dead, 1), 30);
        put(dir.path(), &name(own, 12), 2);
        let mut kept = vec![name(dead, 2), name(own, 3), ".softbox-notes.tmp".to_owned(), "cat.png".to_owned()];
        File::create(dir.path().join(&kept[0])).unwrap();
        for name in &kept[1..] {
            put(dir.path(), name, 30);
        }
        // A process that certainly lives.
        #[cfg(unix)]
        {
            let parent = name(std::os::unix::process::parent_id(), 0);
            put(dir.path(), &parent, 30);
            kept.push(parent);
        }
        let folder = name(dead, 9);
        fs::create_dir(dir.path().join(&folder)).unwrap();
        kept.push(folder);
        sweep(dir.path(), 10, SystemTime::now());
        kept.sort();
        assert_eq!(names(dir.path()), kept);
        sweep(&dir.path().join("nowhere"), 0, SystemTime::now());
    }

    #[test]
    #[cfg(unix)]
    fn a_link_of_such_a_name_is_left_with_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "precious", 50);
        let link = dir.path().join(name(gone(), 0));
        std::os::unix::fs::symlink(dir.path().join("precious"), &link).unwrap();
        sweep(dir.path(), 0, SystemTime::now());
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn the_first_write_into_a_folder_sweeps_it() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &name(gone(), 0), 2);
        super::super::save::save_latents(&dir.path().join("l.safetensors"), &[vec![0.0; 4]], [1, 2, 2]).unwrap();
        assert_eq!(names(dir.path()), ["l.safetensors"]);
    }
}
