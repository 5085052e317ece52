//! Where a CUDA compiler and its headers may lie: toolkits, the program's own folder, NVIDIA's Python packages.
//!
//! Only looks; loads nothing. Called by `environment` and `probe` through [`all`].

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// One place, with the folders in it that may hold NVRTC and headers. Folders that do not exist are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub libraries: Vec<PathBuf>,
    pub includes: Vec<PathBuf>,
}

impl Place {
    fn new(root: &Path, libraries: &[&str], includes: &[&str]) -> Option<Self> {
        let present = |names: &[&str]| -> Vec<PathBuf> {
            names.iter().map(|name| root.join(name)).filter(|folder| folder.is_dir()).collect()
        };
        let place = Place { libraries: present(libraries), includes: present(includes) };
        (!place.libraries.is_empty() || !place.includes.is_empty()).then_some(place)
    }

    /// A toolkit, or a Conda environment, which is laid out like one.
    fn toolkit(root: &Path) -> Option<Self> {
        Place::new(
            root,
            &[
                "lib64",
                "lib",
                "targets/x86_64-linux/lib",
                "targets/sbsa-linux/lib",
                "lib/x86_64-linux-gnu",
                "bin/x64",
                "bin",
                "Library/bin",
            ],
            &["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include", "Library/include"],
        )
    }

    /// The folder of one Python's packages: first the packages of CUDA 13, which share a folder, then those of CUDA 12.
    fn python(site: &Path) -> impl Iterator<Item = Self> {
        let nvidia = site.join("nvidia");
        let thirteen = Place::new(&nvidia, &["cu13/lib", "cu13/bin/x86_64", "cu13/bin"], &["cu13/include"]);
        let twelve = Place::new(
            &nvidia,
            &["cuda_nvrtc/lib", "cuda_nvrtc/bin"],
            &["cuda_runtime/include", "cuda_nvcc/include", "cuda_cccl/include"],
        );
        twelve.into_iter().chain(thirteen)
    }

    /// The NVRTC libraries in this place, newest name first.
    pub fn libraries(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = self
            .libraries
            .iter()
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flat_map(|entries| entries.filter_map(|entry| entry.ok().map(|entry| entry.path())))
            .filter(|file| file.file_name().is_some_and(|name| is_nvrtc(&name.to_string_lossy())))
            .collect();
        found.sort();
        found.reverse();
        found
    }

    pub fn holds(&self, file: &Path) -> bool {
        file.parent().is_some_and(|folder| self.libraries.iter().any(|own| own == folder))
    }
}

/// `libnvrtc.so`, `libnvrtc.so.12`, `nvrtc64_120_0.dll`, but not the builtins, nor the alternative builds beside them.
fn is_nvrtc(name: &str) -> bool {
    let unix = name.strip_prefix("libnvrtc.so").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let windows = name.strip_prefix("nvrtc64_").and_then(|rest| rest.strip_suffix(".dll"));
    unix || windows.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '_'))
}

/// Every place, in the order in which they are tried.
pub fn all() -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut add = |found: Vec<Place>| {
        for place in found {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    };
    for root in toolkits() {
        add(Place::toolkit(&root).into_iter().collect());
    }
    if let Some(folder) = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)) {
        add(Place::new(&folder, &["", "lib"], &["include", "cuda/include"]).into_iter().collect());
        add(Place::python(&folder).collect());
    }
    for site in sites() {
        add(Place::python(&site).collect());
    }
    places
}

fn toolkits() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"].iter().filter_map(env::var_os).map(PathBuf::from).collect();
    if cfg!(windows) {
        let files = env::var_os("ProgramFiles").map(PathBuf::from).unwrap_or_else(|| "C:/Program Files".into());
        roots.extend(children(&files.join("NVIDIA GPU Computing Toolkit/CUDA"), "v"));
    } else {
        roots.extend(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
        roots.extend(children(Path::new("/usr/local"), "cuda-"));
        // Debian's own package spreads a toolkit over /usr.
        roots.push("/usr".into());
    }
    roots.extend(env::var_os("CONDA_PREFIX").map(PathBuf::from));
    roots
}

/// The package folders of every Python that can be found without running one.
fn sites() -> Vec<PathBuf> {
    let mut sites: Vec<PathBuf> =
        env::var_os("PYTHONPATH").map(|paths| env::split_paths(&paths).collect()).unwrap_or_default();
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(PathBuf::from).collect();
    if let Ok(here) = env::current_dir() {
        prefixes.extend([here.join(".venv"), here.join("venv")]);
    }
    // The Python that `pip` on the search path would install into.
    for folder in env::var_os("PATH").iter().flat_map(env::split_paths) {
        for name in ["python3", "python", "python.exe"] {
            if let Ok(python) = fs::canonicalize(folder.join(name)) {
                prefixes.extend(python.ancestors().skip(1).take(2).map(Path::to_path_buf));
            }
        }
    }
    if let Some(home) = env::home_dir() {
        prefixes.push(home.join(".local"));
        prefixes.extend(children(&home.join(".pyenv/versions"), ""));
        prefixes.extend(["miniconda3", "miniforge3", "anaconda3"].map(|name| home.join(name)));
    }
    prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
    for (folder, below) in [("APPDATA", "Python"), ("LOCALAPPDATA", "Programs/Python")] {
        if let Some(root) = env::var_os(folder) {
            prefixes.extend(children(&PathBuf::from(root).join(below), "Python3"));
        }
    }
    for prefix in prefixes {
        sites.extend(site_folders(&prefix));
    }
    sites
}

/// `lib/python3*/site-packages` and its like below a Python's prefix.
fn site_folders(prefix: &Path) -> Vec<PathBuf> {
    let mut found = vec![prefix.join("Lib/site-packages"), prefix.join("site-packages")];
    for python in children(&prefix.join("lib"), "python3") {
        found.extend([python.join("site-packages"), python.join("dist-packages")]);
    }
    found.retain(|folder| folder.is_dir());
    found
}

/// Folders directly below `parent` whose names start so, the last by name first, which is the newest version.
fn children(parent: &Path, start: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir() && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(start)))
        .collect();
    found.sort();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_compiler_itself_is_taken() {
        for name in ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13.0.88", "nvrtc64_120_0.dll", "nvrtc64_130_0.dll"] {
            assert!(is_nvrtc(name), "{name}");
        }
        for name in ["libnvrtc-builtins.so.12.9", "libnvrtc.alt.so.12", "nvrtc64_120_0.alt.dll", "libnvrtc_static.a"] {
            assert!(!is_nvrtc(name), "{name}");
        }
    }

    #[test]
    fn python_packages_of_both_generations_are_found_below_a_prefix() {
        let dir = tempfile::tempdir().unwrap();
        let site = dir.path().join("lib/python3.12/site-packages");
        for folder in ["cuda_nvrtc/lib", "cuda_runtime/include", "cuda_cccl/include", "cu13/lib", "cu13/include"] {
            fs::create_dir_all(site.join("nvidia").join(folder)).unwrap();
        }
        fs::write(site.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), "").unwrap();
        fs::write(site.join("nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8"), "").unwrap();

        let sites = site_folders(dir.path());
        assert_eq!(sites, std::slice::from_ref(&site));
        let places: Vec<Place> = Place::python(&site).collect();
        assert_eq!(places.len(), 2);
        assert_eq!(places[0].libraries(), [site.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12")]);
        assert_eq!(places[0].includes.len(), 2, "the missing package's folder is left out");
        assert!(places[1].libraries().is_empty() && places[1].includes.len() == 1);
    }
}
