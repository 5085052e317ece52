//! Where the device-wide figures come from: NVML for NVIDIA, the amdgpu files on Linux, the machine for the CPU device.
//!
//! A source says what it can read and why not the rest; it never fails and never panics. The gauge owns it and combines
//! its figures with those of our pools.

mod amdgpu;
mod host;
mod nvml;

pub use amdgpu::AmdgpuSource;
pub use host::HostSource;
pub use nvml::NvmlSource;

use crate::base::{Bytes, Reason};
use std::fmt;
use std::str::FromStr;

/// One look at the whole device. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceFigures {
    pub total: Option<Bytes>,
    pub free: Option<Bytes>,
    /// Kept back by the driver for itself.
    pub reserved: Option<Bytes>,
    /// All that is counted as this program's, pools and context together.
    pub ours: Option<Bytes>,
    /// Other programs on the device, as far as they can be told apart.
    pub programs: Vec<Program>,
    /// Why something above is unknown.
    pub unknown_because: Vec<Reason>,
}

impl DeviceFigures {
    /// Figures of a device of which nothing can be read.
    pub fn unknown(why: Reason) -> Self {
        DeviceFigures { unknown_because: vec![why], ..DeviceFigures::default() }
    }

    /// All that is not free, by whomever.
    pub fn used(&self) -> Option<Bytes> {
        Some(self.total? - self.free?)
    }
}

/// Another program that holds memory of the device.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Program {
    pub pid: u32,
    /// The file name of the program, where it may be read.
    pub name: Option<String>,
    pub used: Option<Bytes>,
}

/// A reader of device-wide figures. One thread reads at a time.
pub trait Source: Send {
    /// A full look. May take some milliseconds; never waits for queued work of ours.
    fn read(&mut self) -> DeviceFigures;

    /// Only total, free and reserved, for the peak between two full looks. The default is a full look.
    fn glance(&mut self) -> DeviceFigures {
        self.read()
    }

    /// Called just before and just after this program opens the device, so that a source may learn which of the listed
    /// programs is this one where process numbers differ (containers).
    fn context_opens(&mut self) {}
    fn context_opened(&mut self) {}

    /// Whether this program holds the device's memory through pools. Not so on the CPU device.
    fn has_pools(&self) -> bool {
        true
    }
}

/// A source that can read nothing, and says why.
pub struct UnknownSource(pub Vec<Reason>);

impl Source for UnknownSource {
    fn read(&mut self) -> DeviceFigures {
        DeviceFigures { unknown_because: self.0.clone(), ..DeviceFigures::default() }
    }
}

/// Which device the gauge is to watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The machine's own memory.
    Cpu,
    Card(CardId),
}

/// By what a card is found again in another library's numbering. The first that is known and matches wins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardId {
    pub uuid: Option<Uuid>,
    pub pci: Option<PciAddress>,
    /// The card's name, taken only where exactly one card has it.
    pub name: Option<String>,
}

/// Opens the best source for a device. Call it before the device itself is opened, so that what our context costs can
/// be told from what was there before.
pub fn open(target: &Target) -> Box<dyn Source> {
    let card = match target {
        Target::Cpu => return Box::new(HostSource::new()),
        Target::Card(card) => card,
    };
    let mut reasons = Vec::new();
    match NvmlSource::open(card) {
        Ok(source) => return Box::new(source),
        Err(why) => reasons.push(why),
    }
    match AmdgpuSource::open(card) {
        Ok(source) => return Box::new(source),
        Err(why) => reasons.push(why),
    }
    Box::new(UnknownSource(reasons))
}

/// A card's UUID: the one key that CUDA and NVML share. Prints as NVML writes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU")?;
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 0 | 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no UUID or PCI address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" names no card")]
pub struct ParseCardError(pub String);

impl FromStr for Uuid {
    type Err = ParseCardError;

    /// Reads "GPU-01234567-89ab-cdef-0123-456789abcdef", with or without the prefix and dashes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseCardError(text.to_owned());
        let bare = text.trim().strip_prefix("GPU-").unwrap_or(text.trim());
        let digits: Vec<u32> =
            bare.chars().filter(|c| *c != '-').map(|c| c.to_digit(16).ok_or_else(wrong)).collect::<Result<_, _>>()?;
        let bytes: Vec<u8> =
            digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8)).collect();
        if digits.len() != 32 {
            return Err(wrong());
        }
        bytes.try_into().map(Uuid).map_err(|_| wrong())
    }
}

/// A card's place on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub function: u32,
}

impl FromStr for PciAddress {
    type Err = ParseCardError;

    /// Reads "0000:01:00.0", NVML's "00000000:01:00.0", or "01:00.0". Hexadecimal, as everywhere.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseCardError(text.to_owned());
        let hex = |part: &str| u32::from_str_radix(part, 16).map_err(|_| wrong());
        let (place, function) = text.trim().rsplit_once('.').ok_or_else(wrong)?;
        let (front, device) = place.rsplit_once(':').ok_or_else(wrong)?;
        let (domain, bus) = front.rsplit_once(':').unwrap_or(("0", front));
        Ok(PciAddress { domain: hex(domain)?, bus: hex(bus)?, device: hex(device)?, function: hex(function)? })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// The file name of a running program, from /proc. Elsewhere, or where it may not be read, `None`.
pub(crate) fn program_name(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_reads_back_as_nvml_writes_it() {
        let text = "GPU-01234567-89ab-cdef-0123-456789abcdef";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.0[..4], [0x01, 0x23, 0x45, 0x67]);
        assert_eq!(uuid.to_string(), text);
        assert_eq!("0123456789ABCDEF0123456789ABCDEF".parse(), Ok(uuid));
        for wrong in ["", "GPU-", "GPU-0123", "GPU-01234567-89ab-cdef-0123-456789abcdeg", "中文"] {
            assert!(wrong.parse::<Uuid>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn pci_addresses_of_both_widths_are_one() {
        let short: PciAddress = "0000:0a:00.1".parse().unwrap();
        assert_eq!("00000000:0A:00.1".parse(), Ok(short));
        assert_eq!("0a:00.1".parse(), Ok(short));
        assert_eq!(short.to_string(), "0000:0a:00.1");
        for wrong in ["", "0a", "zz:00.0", "0000:0a:00", "fffffffff:0a:00.0"] {
            assert!(wrong.parse::<PciAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_card_that_no_library_knows_is_unknown_with_every_reason() {
        let nowhere = CardId { name: Some("no such card".into()), ..CardId::default() };
        let figures = open(&Target::Card(nowhere)).read();
        assert_eq!((figures.total, figures.free, figures.ours), (None, None, None));
        assert!(figures.unknown_because.len() >= 2, "{:?}", figures.unknown_because);
    }
}
