//! Which devices this machine has, which of them can be used, and the opening of one.
//!
//! Everything is looked at before a backend is touched, since the GPU backends panic where a library is missing:
//! `driver` and `toolchain` for CUDA (with `places` and `environment` around them), `vulkan` for Vulkan. `open` opens
//! what passed and checks a first small product. The engine's thread calls [`probe`] and [`open::open`]; `main` calls
//! [`prepare_environment`] first of all.

mod driver;
mod environment;
mod open;
mod places;
mod toolchain;
mod vulkan;

pub use driver::{Card, DriverError, Version};
pub use environment::prepare_environment;
pub use open::{OpenError, is_device_lost, not_offered, open, open_candidate};
pub use toolchain::{Headers, ToolchainError, install_command};
pub use vulkan::VulkanError;

use crate::base::{Bytes, DeviceChoice, Precision, Reason};
use crate::engine::protocol::PassedOver;
use burn::tensor::DeviceKind;
use driver::Driver;

/// A device whose probe passed. It may still fail to open.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Never `Auto`.
    pub choice: DeviceChoice,
    /// The card's own name, without the backend's.
    pub name: String,
    /// As NVML writes it, for matching a CUDA card with its gauge.
    pub uuid: Option<String>,
    /// PCI address, "domain:bus:device.function" in hexadecimal.
    pub pci: Option<String>,
    /// Unknown on Vulkan, and for the CPU left to the gauge.
    pub total: Option<Bytes>,
    pub f16: bool,
    pub bf16: bool,
    /// Draws on the CPU. Used when asked for by name, never by itself.
    pub software: bool,
    kind: Option<DeviceKind>,
}

impl Candidate {
    /// "NVIDIA H200 (CUDA)", "CPU".
    pub fn label(&self) -> String {
        match self.choice {
            DeviceChoice::Cuda(_) => format!("{} (CUDA)", self.name),
            DeviceChoice::Vulkan(_) => format!("{} (Vulkan)", self.name),
            DeviceChoice::Cpu | DeviceChoice::Auto => self.name.clone(),
        }
    }

    /// What `Precision::Auto` means here.
    pub fn precision(&self) -> Precision {
        let gpu = self.choice != DeviceChoice::Cpu && !self.software;
        if gpu && self.f16 { Precision::F16 } else { Precision::F32 }
    }

    fn cpu() -> Self {
        Candidate {
            choice: DeviceChoice::Cpu,
            name: "CPU".to_owned(),
            uuid: None,
            pci: None,
            total: None,
            f16: true,
            bf16: true,
            software: false,
            kind: None,
        }
    }
}

/// What the machine offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// In the order in which `auto` tries them; the CPU is always last.
    pub devices: Vec<Candidate>,
    /// What cannot be used, and why.
    pub passed_over: Vec<PassedOver>,
}

impl Probe {
    /// The candidate that a choice names; the first that may be taken by itself for `Auto`.
    pub fn find(&self, choice: DeviceChoice) -> Option<&Candidate> {
        self.devices.iter().find(|device| match choice {
            DeviceChoice::Auto => !device.software,
            choice => device.choice == choice,
        })
    }
}

/// Looks at every device of this machine. Touches no backend and never panics; takes some ten milliseconds.
pub fn probe() -> Probe {
    let mut found = Probe { devices: Vec::new(), passed_over: Vec::new() };
    probe_cuda(&mut found);
    probe_vulkan(&mut found);
    found.devices.push(Candidate::cpu());
    found
}

/// Driver, cards, compiler against the driver, headers, in this order; the first that lacks ends it.
fn probe_cuda(found: &mut Probe) {
    let pass = |why: Reason, command| PassedOver { device: "CUDA".to_owned(), why, command };
    let looked = Driver::load().and_then(|driver| Ok((driver.version()?, driver.cards()?)));
    let (version, cards) = match looked {
        Ok(looked) => looked,
        Err(error) => return found.passed_over.push(pass(error.reason(), None)),
    };
    if let Err(error) = environment::toolchain(version) {
        for card in &cards {
            let device = format!("{} (CUDA)", card.name);
            found.passed_over.push(PassedOver { device, why: error.reason(), command: error.command() });
        }
        return;
    }
    for (ordinal, card) in cards.into_iter().enumerate() {
        // CUDA C Programming Guide, arithmetic by compute capability: half from 5.3, bfloat16 from 8.0.
        let at_least = |major, minor| card.capability >= Version { major, minor };
        found.devices.push(Candidate {
            choice: DeviceChoice::Cuda(ordinal),
            f16: at_least(5, 3),
            bf16: at_least(8, 0),
            name: card.name,
            uuid: card.uuid,
            pci: card.pci,
            total: card.total,
            software: false,
            kind: None,
        });
    }
}

fn probe_vulkan(found: &mut Probe) {
    let mut adapters = match vulkan::adapters() {
        Ok(adapters) => adapters,
        Err(error) => {
            let device = "Vulkan".to_owned();
            return found.passed_over.push(PassedOver { device, why: error.reason(), command: None });
        }
    };
    // A card of its own before one that shares the CPU's memory; `vulkan:n` keeps the driver's order.
    adapters.sort_by_key(|adapter| (adapter.software, !adapter.discrete));
    for adapter in adapters {
        let device = format!("{} (Vulkan)", adapter.name);
        if adapter.kind.is_none() {
            found.passed_over.push(PassedOver { device, why: Reason::UnknownAdapter, command: None });
            continue;
        }
        if adapter.software {
            found.passed_over.push(PassedOver { device, why: Reason::Software, command: None });
        }
        found.devices.push(Candidate {
            choice: DeviceChoice::Vulkan(adapter.index),
            name: adapter.name,
            uuid: None,
            pci: adapter.pci,
            total: None,
            // Some software renderers offer f16 and crash in it.
            f16: adapter.f16 && !adapter.software,
            // Vulkan converts bfloat16 at most; it does not calculate in it.
            bf16: false,
            software: adapter.software,
            kind: adapter.kind,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_always_there_and_last() {
        let probe = probe();
        assert_eq!(probe.devices.last().map(|device| device.choice), Some(DeviceChoice::Cpu));
        assert!(probe.find(DeviceChoice::Auto).is_some_and(|device| !device.software));
        assert_eq!(probe.find(DeviceChoice::Cuda(99)), None);
        let cuda = probe.devices.iter().any(|device| matches!(device.choice, DeviceChoice::Cuda(_)));
        let told = probe.passed_over.iter().any(|passed| passed.device.contains("CUDA"));
        assert!(cuda || told, "CUDA is either offered or explained");
    }

    #[test]
    fn a_software_renderer_is_never_taken_by_itself() {
        let software = Candidate {
            choice: DeviceChoice::Vulkan(0),
            name: "llvmpipe".to_owned(),
            software: true,
            kind: Some(DeviceKind::Cpu),
            ..Candidate::cpu()
        };
        let probe = Probe { devices: vec![software, Candidate::cpu()], passed_over: Vec::new() };
        assert_eq!(probe.find(DeviceChoice::Auto).map(|device| device.choice), Some(DeviceChoice::Cpu));
        assert_eq!(probe.find(DeviceChoice::Vulkan(0)).map(Candidate::label), Some("llvmpipe (Vulkan)".to_owned()));
    }
}
