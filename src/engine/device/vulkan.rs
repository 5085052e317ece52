//! The Vulkan adapters of this machine, told apart without opening one.
//!
//! `vulkan:n` is the n-th adapter in the driver's order. burn names adapters by kind and their place among their kind;
//! [`Adapter::kind`] is that name. Called by `probe`.

use crate::base::Reason;
use burn::tensor::DeviceKind;
use burn::tensor::wgpu::wgpu;
use cubecl::future;
use libloading::Library;
use std::sync::{Mutex, PoisonError};

#[cfg(windows)]
const LOADER: &str = "vulkan-1.dll";
#[cfg(not(windows))]
const LOADER: &str = "libvulkan.so.1";

/// One adapter, as its driver describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// Its place in the driver's order, the n of `vulkan:n`.
    pub index: usize,
    pub name: String,
    /// "0000:17:00.0", where the driver tells.
    pub pci: Option<String>,
    /// What burn calls it; `None` for kinds that burn does not open.
    pub kind: Option<DeviceKind>,
    /// A renderer on the CPU (llvmpipe and its like).
    pub software: bool,
    pub discrete: bool,
    pub f16: bool,
}

/// Why there is no adapter at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VulkanError {
    #[error("no Vulkan: {LOADER} was not found")]
    NoLoader,
    #[error("Vulkan is installed, but no driver offers a card")]
    NoAdapter,
}

impl VulkanError {
    /// The same for a person.
    pub fn reason(&self) -> Reason {
        match self {
            VulkanError::NoLoader => Reason::NoVulkan { library: LOADER },
            VulkanError::NoAdapter => Reason::NoVulkanCard,
        }
    }
}

/// Every adapter, in the driver's order.
pub fn adapters() -> Result<Vec<Adapter>, VulkanError> {
    // One instance for the whole program, one thread at a time: loaders crash when instances come and go on several.
    static INSTANCE: Mutex<Option<wgpu::Instance>> = Mutex::new(None);

    // SAFETY: loading the system's Vulkan loader runs its initialisers, as every Vulkan program does.
    if unsafe { Library::new(LOADER) }.is_err() {
        return Err(VulkanError::NoLoader);
    }
    let mut instance = INSTANCE.lock().unwrap_or_else(PoisonError::into_inner);
    let instance = instance.get_or_insert_with(|| {
        wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        })
    });
    let found = future::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    let described = found.iter().map(|adapter| {
        let f16 = adapter.features().contains(wgpu::Features::SHADER_F16);
        (adapter.get_info(), f16)
    });
    let adapters = number(described.collect());
    if adapters.is_empty() { Err(VulkanError::NoAdapter) } else { Ok(adapters) }
}

/// Gives each adapter its index among all and its index among its kind.
fn number(found: Vec<(wgpu::AdapterInfo, bool)>) -> Vec<Adapter> {
    let (mut discrete, mut integrated, mut virtuals) = (0, 0, 0);
    let next = |counter: &mut usize| std::mem::replace(counter, *counter + 1);
    let describe = |(index, (info, f16)): (usize, (wgpu::AdapterInfo, bool))| {
        let kind = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => Some(DeviceKind::DiscreteGpu(next(&mut discrete))),
            wgpu::DeviceType::IntegratedGpu => Some(DeviceKind::IntegratedGpu(next(&mut integrated))),
            wgpu::DeviceType::VirtualGpu => Some(DeviceKind::VirtualGpu(next(&mut virtuals))),
            wgpu::DeviceType::Cpu => Some(DeviceKind::Cpu),
            wgpu::DeviceType::Other => None,
        };
        Adapter {
            index,
            name: info.name,
            pci: Some(info.device_pci_bus_id).filter(|id| !id.is_empty()),
            kind,
            software: info.device_type == wgpu::DeviceType::Cpu,
            discrete: info.device_type == wgpu::DeviceType::DiscreteGpu,
            f16,
        }
    };
    found.into_iter().enumerate().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_adapters_never_panics_and_numbers_them_in_order() {
        match adapters() {
            Ok(found) => {
                assert!(found.iter().enumerate().all(|(at, adapter)| adapter.index == at));
                assert_eq!(adapters().as_ref(), Ok(&found), "a second look sees the same");
            }
            Err(error) => assert!(error.to_string().contains("Vulkan")),
        }
    }
}
