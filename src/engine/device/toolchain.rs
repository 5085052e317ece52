//! The CUDA compiler (NVRTC) and its headers: where they are, whether they fit the driver and each other, what is missing.
//!
//! CubeCL compiles kernels while the program runs and panics where a piece is missing. Pieces come from a toolkit, from
//! beside the program, or from NVIDIA's Python packages. `environment` makes what is found here usable; `probe` tells
//! what is missing. Which package holds which piece was read off the packages' own lists of files.

use super::driver::Version;
use super::places::Place;
use crate::base::Reason;
use libloading::Library;
use std::ffi::c_int;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Names under which the system's own search may find NVRTC, as cudarc tries them.
#[cfg(windows)]
const NVRTC_NAMES: &[&str] = &["nvrtc.dll", "nvrtc64_120_0.dll"];
#[cfg(not(windows))]
const NVRTC_NAMES: &[&str] = &["libnvrtc.so", "libnvrtc.so.12"];

/// The oldest generation whose functions the CUDA backend calls.
pub const OLDEST_DRIVER: Version = Version { major: 12, minor: 0 };

/// What a kernel may include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Headers {
    /// `cuda_fp16.h`, `cuda_bf16.h`, `mma.h`.
    Runtime,
    /// `crt/mma.h`, which `mma.h` needs.
    Crt,
    /// `cuda/barrier`, and `nv/target`, which `cooperative_groups.h` needs.
    Cccl,
}

impl Headers {
    pub const ALL: [Headers; 3] = [Headers::Runtime, Headers::Crt, Headers::Cccl];

    /// Files that tell whether the part is there, each possibly below `cccl/`.
    fn marks(self) -> &'static [&'static str] {
        match self {
            Headers::Runtime => &["cuda_fp16.h", "cuda_bf16.h", "mma.h"],
            Headers::Crt => &["crt/mma.h"],
            Headers::Cccl => &["cuda/barrier", "nv/target"],
        }
    }

    fn is_in(self, include: &Path) -> bool {
        let has = |mark: &&str| include.join(mark).is_file() || include.join("cccl").join(mark).is_file();
        self.marks().iter().all(has)
    }

    /// The Python package that holds it.
    fn package(self, major: u32) -> &'static str {
        match (self, major) {
            (Headers::Runtime, 12) => "nvidia-cuda-runtime-cu12",
            (Headers::Crt, 12) => "nvidia-cuda-nvcc-cu12",
            (Headers::Cccl, 12) => "nvidia-cuda-cccl-cu12",
            (Headers::Runtime, _) => "nvidia-cuda-runtime",
            (Headers::Crt, _) => "nvidia-cuda-crt",
            (Headers::Cccl, _) => "nvidia-cuda-cccl",
        }
    }
}

impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Headers::Runtime => "cuda_fp16.h and mma.h",
            Headers::Crt => "crt/mma.h",
            Headers::Cccl => "cuda/barrier (CCCL)",
        })
    }
}

/// A compiler that was found and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nvrtc {
    /// `None` where the system's own search finds it.
    pub file: Option<PathBuf>,
    pub version: Version,
}

/// A compiler and headers that go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    pub nvrtc: Nvrtc,
    /// Include folders that hold all of [`Headers::ALL`] between them, in order of preference.
    pub includes: Vec<PathBuf>,
}

/// Why kernels cannot be compiled here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolchainError {
    #[error("the NVIDIA driver serves CUDA {driver}, and {OLDEST_DRIVER} or newer is needed; update the driver")]
    DriverTooOld { driver: Version },
    #[error("the CUDA compiler NVRTC was not found")]
    NoCompiler { driver: Version },
    #[error("NVRTC {nvrtc} is newer than the driver, which serves CUDA {driver}")]
    CompilerTooNew { nvrtc: Version, driver: Version },
    #[error("NVRTC {nvrtc} is there, but not the CUDA headers {}", list(.missing))]
    NoHeaders { nvrtc: Version, driver: Version, missing: Vec<Headers> },
}

impl ToolchainError {
    /// The same for a person.
    pub fn reason(&self) -> Reason {
        match self {
            ToolchainError::DriverTooOld { driver } => {
                Reason::DriverTooOld { serves: driver.to_string(), needs: OLDEST_DRIVER.to_string() }
            }
            ToolchainError::NoCompiler { .. } => Reason::NoCompiler,
            ToolchainError::CompilerTooNew { nvrtc, driver } => {
                Reason::CompilerTooNew { compiler: nvrtc.to_string(), serves: driver.to_string() }
            }
            ToolchainError::NoHeaders { nvrtc, missing, .. } => {
                Reason::NoHeaders { compiler: nvrtc.to_string(), missing: list(missing) }
            }
        }
    }

    /// The one command that brings all that is missing, in versions that this driver serves.
    pub fn command(&self) -> Option<String> {
        match self {
            ToolchainError::DriverTooOld { .. } => None,
            ToolchainError::NoCompiler { driver }
            | ToolchainError::CompilerTooNew { driver, .. }
            | ToolchainError::NoHeaders { driver, .. } => Some(install_command(*driver)),
        }
    }
}

/// `pip install` for compiler and headers. Packages of the driver's own generation, none newer than the driver.
pub fn install_command(driver: Version) -> String {
    // A driver runs what an older compiler made, so an unknown later generation may take the newest known one.
    let major = driver.major.clamp(12, 13);
    let nvrtc = if major == 12 { "nvidia-cuda-nvrtc-cu12" } else { "nvidia-cuda-nvrtc" };
    let packages = std::iter::once(nvrtc).chain(Headers::ALL.map(|part| part.package(major)));
    let bound = Version { major: driver.major, minor: driver.minor + 1 };
    let quoted: Vec<String> = packages.map(|name| format!("\"{name}<{bound}\"")).collect();
    format!("pip install {}", quoted.join(" "))
}

/// Finds a compiler no newer than the driver, with headers of its own generation.
///
/// The system's own search comes first, then the places in their order. A compiler with all its headers wins over an
/// earlier one without; the error tells of the one that came nearest.
pub fn find(driver: Version, places: &[Place]) -> Result<Toolchain, ToolchainError> {
    choose(driver, compilers(places), places)
}

fn choose(
    driver: Version,
    compilers: impl Iterator<Item = Nvrtc>,
    places: &[Place],
) -> Result<Toolchain, ToolchainError> {
    if driver < OLDEST_DRIVER {
        return Err(ToolchainError::DriverTooOld { driver });
    }
    let mut error = ToolchainError::NoCompiler { driver };
    for nvrtc in compilers {
        if nvrtc.version > driver {
            if matches!(error, ToolchainError::NoCompiler { .. }) {
                error = ToolchainError::CompilerTooNew { nvrtc: nvrtc.version, driver };
            }
            continue;
        }
        match headers(&nvrtc, places) {
            Ok(includes) => return Ok(Toolchain { nvrtc, includes }),
            Err(missing) => {
                let nearer = match &error {
                    ToolchainError::NoHeaders { missing: before, .. } => missing.len() < before.len(),
                    _ => true,
                };
                if nearer {
                    error = ToolchainError::NoHeaders { nvrtc: nvrtc.version, driver, missing };
                }
            }
        }
    }
    Err(error)
}

/// Every compiler there is, looked at one by one, so that none is loaded once a good one is found.
fn compilers(places: &[Place]) -> impl Iterator<Item = Nvrtc> {
    let by_name = NVRTC_NAMES.iter().map(PathBuf::from).map(|name| (name, false));
    let by_place = places.iter().flat_map(|place| place.libraries()).map(|file| (file, true));
    by_name.chain(by_place).filter_map(|(file, placed)| {
        let version = if placed { version_beside(&file) } else { None }.or_else(|| nvrtc_version(&file))?;
        Some(Nvrtc { file: placed.then_some(file), version })
    })
}

/// The version of a compiler by the name of the part that lies beside it, `libnvrtc-builtins.so.12.9` or
/// `nvrtc-builtins64_129.dll`: without loading it, so that one that is not taken leaves no trace.
fn version_beside(file: &Path) -> Option<Version> {
    let generation = file.file_name()?.to_string_lossy().into_owned();
    let folder = fs::read_dir(file.parent()?).ok()?;
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut versions: Vec<Version> = names.filter_map(|name| builtins_version(&name)).collect();
    // Several generations may share a folder; `libnvrtc.so.12` and `nvrtc64_120_0.dll` tell theirs.
    let major = generation.trim_start_matches("libnvrtc.so.").trim_start_matches("nvrtc64_").get(..2);
    if let Some(major) = major.and_then(|digits| digits.parse::<u32>().ok()) {
        versions.retain(|version| version.major == major);
    }
    match versions.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn builtins_version(name: &str) -> Option<Version> {
    if let Some(rest) = name.strip_prefix("libnvrtc-builtins.so.") {
        let (major, minor) = rest.split_once('.')?;
        // The longer name is the file, this one a link to it.
        return Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? });
    }
    let digits = name.strip_prefix("nvrtc-builtins64_")?.strip_suffix(".dll")?;
    let (major, minor) = digits.split_at_checked(2)?;
    Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Asks a library for its version. `None` if it does not load or is no NVRTC.
///
/// It stays loaded: an NVRTC that was unloaded and loaded again crashes in its first compilation.
pub(super) fn nvrtc_version(file: &Path) -> Option<Version> {
    type GetVersion = unsafe extern "system" fn(*mut c_int, *mut c_int) -> c_int;
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: loading NVIDIA's compiler runs its initialisers, which need nothing; `nvrtcVersion(int*, int*)` is the
    // signature that NVRTC's manual gives, and both pointers are valid for the call.
    unsafe {
        let library = Library::new(file).ok()?;
        let answered = library.get::<GetVersion>(b"nvrtcVersion").is_ok_and(|get| get(&mut major, &mut minor) == 0);
        std::mem::forget(library);
        if !answered {
            return None;
        }
    }
    Some(Version { major: u32::try_from(major).ok()?, minor: u32::try_from(minor).ok()? })
}

/// Include folders that hold every part for this compiler, or the parts that none has.
///
/// Folders of another generation are left out; those of the compiler's own place come first.
fn headers(nvrtc: &Nvrtc, places: &[Place]) -> Result<Vec<PathBuf>, Vec<Headers>> {
    let mut own: Vec<&Place> = places.iter().collect();
    own.sort_by_key(|place| !nvrtc.file.as_deref().is_some_and(|file| place.holds(file)));
    for place in &own {
        if let Ok(includes) = cover(&place.includes, nvrtc.version.major) {
            return Ok(includes);
        }
    }
    // No place has all: parts from several places of the same generation serve as well.
    let all: Vec<PathBuf> = own.iter().flat_map(|place| place.includes.iter().cloned()).collect();
    cover(&all, nvrtc.version.major)
}

/// The fewest leading folders that hold each part once.
fn cover(folders: &[PathBuf], major: u32) -> Result<Vec<PathBuf>, Vec<Headers>> {
    let fits = |folder: &&PathBuf| header_version(folder).is_none_or(|version| version.major == major);
    let fitting: Vec<&PathBuf> = folders.iter().filter(fits).collect();
    let mut chosen: Vec<PathBuf> = Vec::new();
    let mut missing = Vec::new();
    for part in Headers::ALL {
        match fitting.iter().find(|folder| part.is_in(folder)) {
            Some(&folder) if !chosen.contains(folder) => chosen.push(folder.clone()),
            Some(_) => {}
            None => missing.push(part),
        }
    }
    if missing.is_empty() { Ok(chosen) } else { Err(missing) }
}

/// The version that `cuda_runtime_api.h` of a folder defines as `CUDART_VERSION`. Only the start of the file is read.
fn header_version(include: &Path) -> Option<Version> {
    use std::io::Read;
    let mut start = Vec::new();
    let file = fs::File::open(include.join("cuda_runtime_api.h")).ok()?;
    file.take(64 << 10).read_to_end(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start);
    let line = text.lines().find(|line| line.trim_start().starts_with("#define CUDART_VERSION"))?;
    line.split_whitespace().nth(2)?.parse().ok().map(Version::from_number)
}

fn list(parts: &[Headers]) -> String {
    parts.iter().map(Headers::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVER: Version = Version { major: 12, minor: 8 };

    fn nvrtc(major: u32, minor: u32) -> Nvrtc {
        Nvrtc { file: None, version: Version { major, minor } }
    }

    /// An include folder of the given CUDA version with these parts, CCCL below `cccl/` as a toolkit has it.
    fn include(at: &Path, name: &str, version: u32, parts: &[Headers]) -> PathBuf {
        let include = at.join(name);
        fs::create_dir_all(&include).unwrap();
        for part in parts {
            for mark in part.marks() {
                let below = if *part == Headers::Cccl { include.join("cccl") } else { include.clone() };
                let file = below.join(mark);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
        }
        if parts.contains(&Headers::Runtime) {
            let text = format!("/* */\n#define CUDART_VERSION  {version}\n");
            fs::write(include.join("cuda_runtime_api.h"), text).unwrap();
        }
        include
    }

    fn place(includes: Vec<PathBuf>) -> Place {
        Place { libraries: Vec::new(), includes }
    }

    #[test]
    fn a_compiler_newer_than_the_driver_is_passed_over_and_named_if_it_is_the_only_one() {
        let dir = tempfile::tempdir().unwrap();
        let places = [place(vec![include(dir.path(), "include", 12080, &Headers::ALL)])];
        let found = choose(DRIVER, [nvrtc(13, 0), nvrtc(12, 8)].into_iter(), &places).unwrap();
        assert_eq!(found.nvrtc, nvrtc(12, 8));
        let error = choose(DRIVER, [nvrtc(13, 0)].into_iter(), &places).unwrap_err();
        assert_eq!(error, ToolchainError::CompilerTooNew { nvrtc: Version { major: 13, minor: 0 }, driver: DRIVER });
    }

    #[test]
    fn headers_of_another_generation_do_not_count_and_the_missing_part_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let thirteen = include(dir.path(), "13", 13000, &Headers::ALL);
        let error = choose(DRIVER, [nvrtc(12, 4)].into_iter(), &[place(vec![thirteen])]).unwrap_err();
        // The parts without a version of their own stand; what tells its generation does not.
        let ToolchainError::NoHeaders { missing, .. } = &error else { panic!("{error}") };
        assert!(missing.contains(&Headers::Runtime));

        let split = include(dir.path(), "12", 12040, &[Headers::Runtime, Headers::Cccl]);
        let error = choose(DRIVER, [nvrtc(12, 4)].into_iter(), &[place(vec![split])]).unwrap_err();
        assert!(error.to_string().contains("crt/mma.h"), "{error}");
        assert!(!error.to_string().contains("cuda_fp16.h"), "{error}");
    }

    #[test]
    fn parts_are_gathered_from_the_folders_of_several_packages() {
        let dir = tempfile::tempdir().unwrap();
        let folders = vec![
            include(dir.path(), "runtime", 12080, &[Headers::Runtime]),
            include(dir.path(), "nvcc", 12080, &[Headers::Crt]),
            include(dir.path(), "cccl", 12080, &[Headers::Cccl]),
        ];
        let found = choose(DRIVER, [nvrtc(12, 8)].into_iter(), &[place(folders.clone())]).unwrap();
        assert_eq!(found.includes, folders);
    }

    #[test]
    fn the_command_takes_the_drivers_generation_and_nothing_newer() {
        let twelve = install_command(DRIVER);
        assert!(twelve.starts_with("pip install \"nvidia-cuda-nvrtc-cu12<12.9\""), "{twelve}");
        assert_eq!(twelve.matches("-cu12").count(), 4);
        let thirteen = install_command(Version { major: 13, minor: 0 });
        assert!(!thirteen.contains("cu12") && thirteen.contains("\"nvidia-cuda-crt<13.1\""), "{thirteen}");
    }

    #[test]
    fn an_old_driver_is_told_to_be_updated() {
        let old = Version { major: 11, minor: 8 };
        let error = choose(old, [nvrtc(11, 8)].into_iter(), &[]).unwrap_err();
        assert_eq!((error.clone(), error.command()), (ToolchainError::DriverTooOld { driver: old }, None));
    }

    #[test]
    fn a_version_is_read_off_the_names_of_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["libnvrtc.so.12", "libnvrtc-builtins.so.12.9", "libnvrtc-builtins.alt.so.12.9"] {
            fs::write(at(name), "").unwrap();
        }
        assert_eq!(version_beside(&at("libnvrtc.so.12")), Some(Version { major: 12, minor: 9 }));
        fs::write(at("libnvrtc-builtins.so.13.0"), "").unwrap();
        assert_eq!(version_beside(&at("libnvrtc.so.13")), Some(Version { major: 13, minor: 0 }));
        assert_eq!(version_beside(&at("libnvrtc.so")), None, "which of the two it is cannot be told by name");
        assert_eq!(builtins_version("nvrtc-builtins64_128.dll"), Some(Version { major: 12, minor: 8 }));
    }

    #[test]
    fn a_file_that_is_no_library_is_no_compiler() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("libnvrtc.so.12");
        fs::write(&file, "not a library").unwrap();
        assert_eq!(nvrtc_version(&file), None);
    }
}
