//! NVIDIA's management library, loaded at run time. Missing, too old, or at odds with the driver, it becomes a reason.

use super::{CardId, DeviceFigures, PciAddress, Program, Source, program_name};
use crate::base::{Bytes, Reason};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Where the library may be. Packages without development files only install the `.so.1`; Windows Subsystem for Linux
/// keeps it off the usual path, and old Windows drivers beside nvidia-smi.
#[cfg(not(windows))]
const LIBRARIES: &[&str] = &["libnvidia-ml.so.1", "libnvidia-ml.so", "/usr/lib/wsl/lib/libnvidia-ml.so.1"];
#[cfg(windows)]
const LIBRARIES: &[&str] = &["nvml.dll", "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvml.dll"];

/// Figures of one NVIDIA card.
#[derive(Debug)]
pub struct NvmlSource {
    nvml: Nvml,
    /// NVML's own number of the card.
    index: u32,
    /// Our process number as the driver sees it, once it is sure. In a container it is another than our own.
    pid: Option<u32>,
    /// The programs on the card just before our context came.
    before: Option<Vec<u32>>,
    /// Names of other programs, asked for once each.
    names: BTreeMap<u32, Option<String>>,
}

impl NvmlSource {
    /// Loads the library and finds the card.
    ///
    /// # Errors
    /// The library is missing, does not start (driver not loaded, driver/library version mismatch), or knows no such card.
    pub fn open(card: &CardId) -> Result<Self, Reason> {
        Self::open_from(LIBRARIES, card)
    }

    /// Like [`open`](Self::open), with other places to look.
    pub fn open_from<S: AsRef<OsStr>>(libraries: &[S], card: &CardId) -> Result<Self, Reason> {
        let nvml = load(libraries)?;
        let index = find(&nvml, card)?;
        let pid = in_first_pid_namespace().then(std::process::id);
        Ok(NvmlSource { nvml, index, pid, before: None, names: BTreeMap::new() })
    }

    fn device(&self) -> Result<Device<'_>, NvmlError> {
        self.nvml.device_by_index(self.index)
    }

    /// Every program on the card with what it holds; a program that both computes and draws is listed once.
    fn programs(&self) -> Result<BTreeMap<u32, Option<u64>>, NvmlError> {
        let device = self.device()?;
        let mut all = BTreeMap::new();
        // Graphics is not supported by every driver model: then what computes is what there is.
        let graphics = device.running_graphics_processes().unwrap_or_default();
        for process in device.running_compute_processes()?.into_iter().chain(graphics) {
            let used = match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            };
            let known: &mut Option<u64> = all.entry(process.pid).or_default();
            *known = (*known).max(used);
        }
        Ok(all)
    }

    /// Fills in what single programs hold.
    fn read_programs(&mut self, figures: &mut DeviceFigures) {
        let mut all = match self.programs() {
            Ok(all) => all,
            Err(error) => {
                figures.unknown_because.push(Reason::ProgramsUnread(error.to_string()));
                return;
            }
        };
        let mine = self.pid.map(|pid| all.remove(&pid));
        match mine {
            Some(Some(Some(bytes))) => figures.ours = Some(Bytes(bytes)),
            Some(Some(None)) => figures.unknown_because.push(Reason::NotByProgram),
            // Not listed although its number is known: it holds nothing, or the driver hides programs. The gauge, which
            // knows whether we hold something, tells the two apart.
            Some(None) => figures.ours = Some(Bytes::ZERO),
            None => figures.unknown_because.push(Reason::OtherProcessNumbers),
        }
        let names_hold = in_first_pid_namespace();
        for (pid, used) in all {
            let nvml = &self.nvml;
            let name = self.names.entry(pid).or_insert_with(|| {
                let asked = || nvml.sys_process_name(pid, 256).ok().filter(|name| !name.is_empty());
                let name = if names_hold { program_name(pid).or_else(asked) } else { asked() }?;
                Some(name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned())
            });
            figures.programs.push(Program { pid, name: name.clone(), used: used.map(Bytes) });
        }
    }
}

impl Source for NvmlSource {
    fn read(&mut self) -> DeviceFigures {
        let mut figures = self.glance();
        if figures.total.is_some() {
            self.read_programs(&mut figures);
        }
        figures
    }

    fn glance(&mut self) -> DeviceFigures {
        match self.device().and_then(|device| device.memory_info()) {
            // In version 2 of this call, which the wrapper makes, "used" does not hold what is reserved.
            Ok(info) => DeviceFigures {
                total: Some(Bytes(info.total)),
                free: Some(Bytes(info.free)),
                reserved: Some(Bytes(info.reserved)),
                ..DeviceFigures::default()
            },
            Err(error) => DeviceFigures::unknown(Reason::Nvml(error.to_string())),
        }
    }

    fn context_opens(&mut self) {
        self.before = self.programs().ok().map(|all| all.into_keys().collect());
    }

    fn context_opened(&mut self) {
        let (Some(before), Ok(after)) = (self.before.take(), self.programs()) else { return };
        if self.pid.is_some_and(|pid| after.contains_key(&pid)) {
            return;
        }
        // Exactly one program appeared while we opened the device: that is us under another number.
        let mut new = after.into_keys().filter(|pid| !before.contains(pid));
        if let (Some(pid), None) = (new.next(), new.next()) {
            self.pid = Some(pid);
        }
    }
}

/// Loads the first library that is there and starts it.
fn load<S: AsRef<OsStr>>(libraries: &[S]) -> Result<Nvml, Reason> {
    let mut first = None;
    for library in libraries {
        match Nvml::builder().lib_path(library.as_ref()).init() {
            Ok(nvml) => return Ok(nvml),
            Err(NvmlError::LibloadingError(error)) => {
                first.get_or_insert_with(|| error.to_string());
            }
            // The library is there and says no (driver not loaded, version mismatch): another copy says the same.
            Err(error) => return Err(Reason::Nvml(error.to_string())),
        }
    }
    Err(Reason::NoNvml(first.unwrap_or_default()))
}

/// NVML's number of the card.
fn find(nvml: &Nvml, card: &CardId) -> Result<u32, Reason> {
    let count = nvml.device_count().map_err(|error| Reason::Nvml(error.to_string()))?;
    let mut named = Vec::new();
    for index in 0..count {
        // A card that is broken or not ours to see does not hide the others.
        let Ok(device) = nvml.device_by_index(index) else { continue };
        if let (Some(wanted), Ok(uuid)) = (card.uuid, device.uuid())
            && uuid.parse() == Ok(wanted)
        {
            return Ok(index);
        }
        if let (Some(wanted), Ok(info)) = (card.pci, device.pci_info()) {
            let place = PciAddress { domain: info.domain, bus: info.bus, device: info.device, function: 0 };
            if place == (PciAddress { function: 0, ..wanted }) {
                return Ok(index);
            }
        }
        if card.name.is_some() && device.name().ok() == card.name {
            named.push(index);
        }
    }
    match named.as_slice() {
        [only] if card.uuid.is_none() && card.pci.is_none() => Ok(*only),
        // Nothing is known of the card, and there is but one.
        [] if *card == CardId::default() && count == 1 => Ok(0),
        _ => Err(Reason::NoSuchNvmlCard),
    }
}

/// Whether our process number is the one that the driver sees: always, but in a Linux container with a numbering of its
/// own. The kernel gives its first namespace this fixed number (`PROC_PID_INIT_INO` in linux/proc_ns.h).
fn in_first_pid_namespace() -> bool {
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(link) => link.to_string_lossy() == "pid:[4026531836]",
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_a_reason() {
        let error = NvmlSource::open_from(&["/nonexistent/libnvidia-ml.so.1"], &CardId::default()).unwrap_err();
        assert!(matches!(error, Reason::NoNvml(_)), "{error:?}");
        assert!(NvmlSource::open_from::<&str>(&[], &CardId::default()).is_err());
    }

    #[test]
    fn a_file_that_is_no_library_is_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvidia-ml.so.1");
        std::fs::write(&path, b"\x7fELF not really").unwrap();
        let error = NvmlSource::open_from(&[&path], &CardId::default()).unwrap_err();
        assert!(matches!(error, Reason::NoNvml(_)), "{error:?}");
    }
}
