//! The machine's own memory, for the CPU device: this process, and what is available within a container's limit.

use super::{DeviceFigures, Source};
use crate::base::{Bytes, Reason};
use std::fs;
use std::path::{Path, PathBuf};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

/// Figures of the machine. On Linux from /proc and the control groups, elsewhere through sysinfo.
///
/// File pages are nobody's: the kernel gives them back when memory is short. So a checkpoint that is mapped from disk
/// counts neither as ours nor as used.
pub struct HostSource {
    proc_root: PathBuf,
    cgroup_root: PathBuf,
    /// Only made where /proc is missing.
    system: Option<System>,
}

impl HostSource {
    pub fn new() -> Self {
        Self::at(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
    }

    /// Like [`new`](Self::new), with other folders in place of `/proc` and `/sys/fs/cgroup`.
    pub fn at(proc_root: &Path, cgroup_root: &Path) -> Self {
        HostSource { proc_root: proc_root.to_owned(), cgroup_root: cgroup_root.to_owned(), system: None }
    }

    /// Total, available and ours from /proc; `None` where it is not there.
    fn read_proc(&self) -> Option<(Bytes, Bytes, Option<Bytes>)> {
        let info = fs::read_to_string(self.proc_root.join("meminfo")).ok()?;
        let total = kib_field(&info, "MemTotal")?;
        // Kernels before 3.14 and some containers do not estimate it.
        let rough = || Some(kib_field(&info, "MemFree")? + kib_field(&info, "Cached").unwrap_or_default());
        let available = kib_field(&info, "MemAvailable").or_else(rough)?;
        let ours = fs::read_to_string(self.proc_root.join("self/status")).ok().and_then(|status| {
            let parts = [kib_field(&status, "RssAnon"), kib_field(&status, "RssShmem")];
            match parts {
                [Some(anonymous), shared] => Some(anonymous + shared.unwrap_or_default()),
                _ => kib_field(&status, "VmRSS"),
            }
        });
        Some((total, available, ours))
    }

    fn read_sysinfo(&mut self) -> Option<(Bytes, Bytes, Option<Bytes>)> {
        if self.system.is_none() {
            self.system = System::new().ok();
        }
        let system = self.system.as_mut()?;
        system.refresh_memory();
        let total = system.total_memory();
        if total == 0 {
            return None;
        }
        let ours = sysinfo::get_current_pid().ok().and_then(|pid| {
            let only = ProcessesToUpdate::Some(&[pid]);
            system.refresh_processes_specifics(only, true, ProcessRefreshKind::nothing().with_memory());
            system.process(pid).map(|process| Bytes(process.memory()))
        });
        Some((Bytes(total), Bytes(system.available_memory()), ours))
    }

    /// The limits of the control groups that this process is in, with what is used below each.
    fn container_limits(&self) -> Vec<Limit> {
        let Ok(groups) = fs::read_to_string(self.proc_root.join("self/cgroup")) else { return Vec::new() };
        let mut limits = Vec::new();
        for line in groups.lines() {
            // "0::/path" is version 2; "4:cpu,memory:/path" is version 1.
            let mut fields = line.splitn(3, ':');
            let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            if number == "0" && controllers.is_empty() {
                limits.extend(self.walk(&self.cgroup_root, path, &VERSION_2));
            } else if controllers.split(',').any(|name| name == "memory") {
                limits.extend(self.walk(&self.cgroup_root.join("memory"), path, &VERSION_1));
            }
        }
        limits
    }

    /// Reads a group and all above it: each limits what is below. Inside a container the path may be the host's, of
    /// which only the root is visible; what is not there is passed over.
    fn walk(&self, root: &Path, path: &str, names: &Names) -> Vec<Limit> {
        let inner = Path::new(path.trim_start_matches('/'));
        // ".." names what lies outside of a container's own view.
        let inner = if inner.components().all(|c| matches!(c, std::path::Component::Normal(_))) {
            inner
        } else {
            Path::new("")
        };
        inner.ancestors().filter_map(|group| read_group(&root.join(group), names)).collect()
    }
}

impl Default for HostSource {
    fn default() -> Self {
        Self::new()
    }
}

impl Source for HostSource {
    fn read(&mut self) -> DeviceFigures {
        let Some((total, available, ours)) = self.read_proc().or_else(|| self.read_sysinfo()) else {
            return DeviceFigures::unknown(Reason::NoMemoryFigures);
        };
        let limits = self.container_limits();
        let total = limits.iter().map(|limit| limit.most).fold(total, Bytes::min);
        let available = limits.iter().map(|limit| limit.most - limit.used).fold(available.min(total), Bytes::min);
        let unknown_because = if ours.is_none() { vec![Reason::NoMemoryFigures] } else { vec![] };
        DeviceFigures {
            total: Some(total),
            free: Some(available),
            reserved: Some(Bytes::ZERO),
            ours,
            programs: Vec::new(),
            unknown_because,
        }
    }

    fn has_pools(&self) -> bool {
        false
    }
}

/// A ceiling and what counts against it.
struct Limit {
    most: Bytes,
    used: Bytes,
}

/// The files of one version of the control groups.
struct Names {
    most: &'static str,
    used: &'static str,
    /// File pages in `memory.stat`, which are given back under pressure.
    cache: [&'static str; 2],
}

const VERSION_2: Names = Names { most: "memory.max", used: "memory.current", cache: ["active_file", "inactive_file"] };
const VERSION_1: Names = Names {
    most: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: ["total_active_file", "total_inactive_file"],
};

/// One group's limit; `None` where it has none ("max" in version 2, a number near 2^63 in version 1).
fn read_group(folder: &Path, names: &Names) -> Option<Limit> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let most = number(names.most).filter(|most| *most < 1 << 62)?;
    let used = number(names.used)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache: u64 = stat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(key, _)| names.cache.contains(key))
        .filter_map(|(_, value)| value.trim().parse::<u64>().ok())
        .fold(0, u64::saturating_add);
    Some(Limit { most: Bytes(most), used: Bytes(used) - Bytes(cache) })
}

/// "MemTotal:  16 kB" of a file of such lines.
fn kib_field(text: &str, key: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Bytes(number.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Tree(tempfile::tempdir().unwrap());
            tree.put("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1024 kB\nMemAvailable:    8388608 kB\n");
            tree.put(
                "proc/self/status",
                "VmRSS:\t 3145728 kB\nRssAnon:\t 1048576 kB\nRssFile:\t 2096128 kB\nRssShmem:\t 1024 kB\n",
            );
            files.iter().for_each(|(path, text)| tree.put(path, text));
            tree
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn read(&self) -> DeviceFigures {
            HostSource::at(&self.0.path().join("proc"), &self.0.path().join("cgroup")).read()
        }
    }

    #[test]
    fn without_a_container_the_machine_counts() {
        let figures = Tree::new(&[("proc/self/cgroup", "0::/user.slice\n")]).read();
        assert_eq!((figures.total, figures.free), (Some(Bytes::gib(16)), Some(Bytes::gib(8))));
        assert_eq!(figures.ours, Some(Bytes::gib(1) + Bytes::mib(1)), "file pages are not ours");
        let old = Tree::new(&[("proc/self/status", "VmRSS:\t 3145728 kB\n")]).read();
        assert_eq!(old.ours, Some(Bytes::gib(3)));
    }

    #[test]
    fn version_2_limits_of_all_groups_above_hold() {
        let figures = Tree::new(&[
            ("proc/self/cgroup", "0::/kube/pod/box\n"),
            ("cgroup/kube/pod/box/memory.max", "max\n"),
            ("cgroup/kube/pod/box/memory.current", "1\n"),
            ("cgroup/kube/pod/memory.max", "4294967296\n"),
            ("cgroup/kube/pod/memory.current", "3221225472\n"),
            ("cgroup/kube/pod/memory.stat", "anon 5\nactive_file 536870912\ninactive_file 536870912\nslab 9\n"),
        ])
        .read();
        assert_eq!(figures.total, Some(Bytes::gib(4)));
        assert_eq!(figures.free, Some(Bytes::gib(2)), "cache of 1 GiB is given back");
    }

    #[test]
    fn version_1_and_a_path_of_the_host_hold() {
        let files = [
            ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/0123\n0::/\n"),
            ("cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
            ("cgroup/memory/memory.usage_in_bytes", "1073741824\n"),
            ("cgroup/memory/memory.stat", "active_file 7\ntotal_active_file 268435456\ntotal_inactive_file 0\n"),
        ];
        let figures = Tree::new(&files).read();
        assert_eq!((figures.total, figures.free), (Some(Bytes::gib(2)), Some(Bytes::gib(1) + Bytes::mib(256))));
        let unlimited =
            Tree::new(&[files[0], ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), files[2]]);
        assert_eq!(unlimited.read().total, Some(Bytes::gib(16)));
    }

    #[test]
    fn a_limit_above_the_machine_and_broken_files_change_nothing() {
        let figures = Tree::new(&[
            ("proc/self/cgroup", "0::/../../outside\nnonsense\n"),
            ("cgroup/memory.max", "99999999999999\n"),
            ("cgroup/memory.current", "soon\n"),
        ])
        .read();
        assert_eq!((figures.total, figures.free), (Some(Bytes::gib(16)), Some(Bytes::gib(8))));
    }

    #[test]
    fn this_very_machine_can_be_read() {
        let figures = HostSource::new().read();
        let (total, free, ours) = (figures.total.unwrap(), figures.free.unwrap(), figures.ours.unwrap());
        assert!(ours > Bytes::ZERO && free <= total && ours < total, "{figures:?}");
    }
}
