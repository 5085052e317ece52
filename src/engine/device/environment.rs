//! Makes a CUDA toolchain usable that the backend would not find by itself. Runs once, first thing in `main`.
//!
//! cudarc opens NVRTC by a fixed list of names, and CubeCL takes headers from one folder named by `CUDA_PATH`. Python
//! packages have neither the names on the search path nor one folder, so this links the parts into a folder of our own
//! in the cache, sets `CUDA_PATH`, and loads NVRTC so that its name is known, or starts the program once more with the
//! search path set where a name alone does not do.

use super::driver::{Driver, Version};
use super::places;
use super::toolchain::{self, Nvrtc, Toolchain, ToolchainError};
use libloading::Library;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Set in the second start, so that there is never a third.
const RELAUNCHED: &str = "SOFTBOX_RELAUNCHED";

static FOUND: OnceLock<Result<Toolchain, ToolchainError>> = OnceLock::new();

/// The toolchain that [`prepare_environment`] settled on, or what one would be on a driver of this version.
pub(super) fn toolchain(driver: Version) -> Result<Toolchain, ToolchainError> {
    FOUND.get_or_init(|| toolchain::find(driver, &places::all())).clone()
}

/// Finds the CUDA compiler and headers, and sets this process up so that the backend finds them too.
///
/// Without an NVIDIA driver, or with a toolchain in its usual place, nothing changes. Failures are logged; the probe
/// then finds the same thing missing and says so.
///
/// # Safety
///
/// Call it first thing in `main`, before any thread starts: it sets environment variables.
pub unsafe fn prepare_environment() {
    let Some(driver) = Driver::load().ok().and_then(|driver| driver.version().ok()) else { return };
    let Ok(found) = toolchain(driver) else { return };
    match include_root(&found.includes) {
        Ok(root) if usual_root().as_ref() != Some(&root) => {
            // SAFETY: the caller promises that no other thread runs yet, so nobody reads the environment meanwhile.
            unsafe { env::set_var("CUDA_PATH", &root) };
        }
        Ok(_) => {}
        Err(error) => tracing::warn!("CUDA headers could not be gathered: {error}"),
    }
    if let Err(error) = offer(&found.nvrtc) {
        tracing::warn!("NVRTC could not be made known: {error}");
    }
}

/// The folder that CubeCL takes by itself (`cubecl_cuda::install::cuda_path`).
fn usual_root() -> Option<PathBuf> {
    env::var_os("CUDA_PATH").map(PathBuf::from).or_else(cubecl::cuda::install::cuda_path)
}

/// A folder whose `include` (and `include/cccl`) holds all parts: their own parent if one folder has all, else a folder
/// of links in the cache.
fn include_root(includes: &[PathBuf]) -> io::Result<PathBuf> {
    if let [only] = includes
        && only.ends_with("include")
        && let Some(parent) = only.parent()
    {
        return Ok(parent.to_path_buf());
    }
    let root = cache_folder(includes)?;
    let folder = root.join("include");
    fs::create_dir_all(&folder)?;
    for include in includes {
        for entry in fs::read_dir(include)? {
            let entry = entry?;
            link(&entry.path(), &folder.join(entry.file_name()))?;
        }
    }
    Ok(root)
}

/// A folder in the cache that belongs to exactly these paths and their state.
fn cache_folder(of: &[PathBuf]) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    for path in of {
        path.hash(&mut hasher);
        fs::metadata(path).and_then(|data| data.modified()).ok().hash(&mut hasher);
    }
    let base = match directories::ProjectDirs::from("", "", "Softbox") {
        Some(dirs) => dirs.cache_dir().to_path_buf(),
        None => env::temp_dir().join("softbox"),
    };
    let folder = base.join("cuda").join(format!("{:016x}", hasher.finish()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Links a file or folder under another name. What is there already stays: another start of the program made it.
#[cfg(unix)]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match std::os::unix::fs::symlink(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Copies, since links need a right that most people do not have on Windows.
#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            link(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if to.exists() { Ok(()) } else { fs::copy(from, to).map(drop) }
}

/// Makes a later `dlopen` by name find this NVRTC.
///
/// The dynamic linker answers a name that equals the inner name (`SONAME`) of a library already loaded, and Windows one
/// that equals its file name. cudarc asks for the bare name first, so where the system has another NVRTC under that
/// name, or this one's inner name is of a generation that cudarc does not ask for, only the search path helps. That is
/// read when a program starts.
fn offer(nvrtc: &Nvrtc) -> io::Result<()> {
    let Some(file) = &nvrtc.file else { return Ok(()) };
    preload(file)?;
    if cudarc_finds(nvrtc.version) { Ok(()) } else { relaunch(file) }
}

/// Loads the library for good, on Windows with the part that it loads by name itself.
fn preload(file: &Path) -> io::Result<()> {
    let beside = file.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let builtins = beside.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        cfg!(windows) && name.starts_with("nvrtc-builtins64_") && !name.contains("alt")
    });
    for library in builtins.chain([file.to_path_buf()]) {
        // SAFETY: NVIDIA's compiler, which answered `nvrtcVersion` before; it stays loaded for the program's whole life.
        let loaded = unsafe { Library::new(&library) }.map_err(io::Error::other)?;
        std::mem::forget(loaded);
    }
    Ok(())
}

/// Whether the names that cudarc asks for lead to an NVRTC of this version now.
fn cudarc_finds(wanted: Version) -> bool {
    let names = cudarc::get_lib_name_candidates("nvrtc");
    names.iter().find_map(|name| toolchain::nvrtc_version(Path::new(name))) == Some(wanted)
}

/// Starts the program in place of itself, with the library under its bare name on the search path.
#[cfg(all(unix, not(target_os = "macos")))]
fn relaunch(file: &Path) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    if env::var_os(RELAUNCHED).is_some() {
        return Err(io::Error::other("the search path was set and still leads elsewhere"));
    }
    let folder = cache_folder(&[file.to_path_buf()])?.join("lib");
    fs::create_dir_all(&folder)?;
    link(file, &folder.join("libnvrtc.so"))?;
    let old = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    // The library finds its own builtins in the folder it comes from.
    let own = file.parent().map(Path::to_path_buf);
    let paths = [folder].into_iter().chain(own).chain(env::split_paths(&old).filter(|path| path != Path::new("")));
    let mut command = std::process::Command::new(env::current_exe()?);
    let mut arguments = env::args_os();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(RELAUNCHED, "1");
    command.env("LD_LIBRARY_PATH", env::join_paths(paths).map_err(io::Error::other)?);
    // Only returns when it fails.
    Err(command.exec())
}

#[cfg(not(all(unix, not(target_os = "macos"))))]
fn relaunch(file: &Path) -> io::Result<()> {
    let name = file.display();
    Err(io::Error::other(format!(
        "{name} is of a generation that this program does not ask for (RELAUNCHED: {RELAUNCHED})"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_include_folder_is_taken_as_it_is_and_several_are_linked_together() {
        let dir = tempfile::tempdir().unwrap();
        let one = dir.path().join("toolkit/include");
        fs::create_dir_all(&one).unwrap();
        assert_eq!(include_root(std::slice::from_ref(&one)).unwrap(), dir.path().join("toolkit"));

        let two = dir.path().join("cccl/include");
        fs::create_dir_all(two.join("cuda")).unwrap();
        fs::write(two.join("cuda/barrier"), "barrier").unwrap();
        fs::write(one.join("cuda_fp16.h"), "half").unwrap();
        let includes = [one, two];
        let root = include_root(&includes).unwrap();
        assert_eq!(include_root(&includes).unwrap(), root, "a second start finds what the first made");
        assert_eq!(fs::read_to_string(root.join("include/cuda_fp16.h")).unwrap(), "half");
        assert_eq!(fs::read_to_string(root.join("include/cuda/barrier")).unwrap(), "barrier");
        fs::remove_dir_all(root).unwrap();
    }
}
