//! NVIDIA's driver, asked directly: is it there, which CUDA version it serves, which cards it drives.
//!
//! The CUDA backend panics where the driver is missing or too old, so the probe asks first. Functions and constants are
//! those of the CUDA Driver API reference manual. Called by `probe`, and by `toolchain` for the version.

use crate::base::{Bytes, Reason};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;

#[cfg(windows)]
const NAMES: &[&str] = &["nvcuda.dll"];
#[cfg(not(windows))]
const NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];

/// `cudaError_enum` values that mean something of their own here.
const CUDA_ERROR_NO_DEVICE: c_int = 100;
const CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: c_int = 803;

/// `CUdevice_attribute` values.
const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
const COMPUTE_CAPABILITY_MINOR: c_int = 76;

/// A version of CUDA, of its compiler, or of its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// CUDA writes 12.8 as 12080, in its headers and in `cuDriverGetVersion`.
    pub fn from_number(number: u32) -> Self {
        Version { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why the driver is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    #[error("no NVIDIA driver: {} was not found", NAMES[0])]
    Missing,
    #[error("the NVIDIA driver lacks {0}; it is too old")]
    Symbol(&'static str),
    #[error("no NVIDIA card answers")]
    NoDevice,
    #[error("the NVIDIA driver and its library differ in version (error 803); a restart after a driver update helps")]
    Mismatch,
    #[error("{call} failed with CUDA error {code}")]
    Call { call: &'static str, code: i32 },
}

impl DriverError {
    /// The same for a person.
    pub fn reason(&self) -> Reason {
        match *self {
            DriverError::Missing => Reason::NoDriver { library: NAMES[0] },
            DriverError::Symbol(name) => Reason::DriverLacks(name),
            DriverError::NoDevice => Reason::NoCard,
            DriverError::Mismatch => Reason::DriverMismatch,
            DriverError::Call { call, code } => Reason::DriverCall { call, code },
        }
    }
}

/// One card, as the driver describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    pub name: String,
    /// "GPU-01234567-89ab-…", as NVML and nvidia-smi write it.
    pub uuid: Option<String>,
    /// "00000000:17:00.0", domain, bus and device in hexadecimal.
    pub pci: Option<String>,
    pub total: Option<Bytes>,
    /// Compute capability, 9.0 on Hopper.
    pub capability: Version,
}

/// The loaded driver library.
#[derive(Debug)]
pub struct Driver(Library);

impl Driver {
    /// Loads the library; nothing is initialised yet.
    pub fn load() -> Result<Self, DriverError> {
        NAMES
            .iter()
            // SAFETY: loading NVIDIA's driver runs its initialisers, as every CUDA program does; the names are fixed.
            .find_map(|name| unsafe { Library::new(*name) }.ok())
            .map(Driver)
            .ok_or(DriverError::Missing)
    }

    /// The newest CUDA whose programs this driver runs.
    pub fn version(&self) -> Result<Version, DriverError> {
        let mut number: c_int = 0;
        // SAFETY: `CUresult cuDriverGetVersion(int*)`; the pointer is valid for the call.
        unsafe {
            let get = self.function::<unsafe extern "system" fn(*mut c_int) -> c_int>("cuDriverGetVersion")?;
            check("cuDriverGetVersion", get(&mut number))?;
        }
        Ok(Version::from_number(u32::try_from(number).unwrap_or(0)))
    }

    /// Every card, in CUDA's order (which `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` change).
    pub fn cards(&self) -> Result<Vec<Card>, DriverError> {
        let mut count: c_int = 0;
        // SAFETY: `cuInit(unsigned)` and `cuDeviceGetCount(int*)`; the pointer is valid for the call.
        unsafe {
            let init = self.function::<unsafe extern "system" fn(u32) -> c_int>("cuInit")?;
            check("cuInit", init(0))?;
            let get = self.function::<unsafe extern "system" fn(*mut c_int) -> c_int>("cuDeviceGetCount")?;
            check("cuDeviceGetCount", get(&mut count))?;
        }
        if count <= 0 {
            return Err(DriverError::NoDevice);
        }
        (0..count).map(|ordinal| self.card(ordinal)).collect()
    }

    fn card(&self, ordinal: c_int) -> Result<Card, DriverError> {
        type ToText = unsafe extern "system" fn(*mut c_char, c_int, c_int) -> c_int;
        let mut device: c_int = 0;
        let mut text = [0 as c_char; 256];
        let mut uuid = [0u8; 16];
        let mut total: usize = 0;
        // SAFETY: the signatures are the manual's; every buffer outlives its call and is as long as the call is told.
        unsafe {
            let get = self.function::<unsafe extern "system" fn(*mut c_int, c_int) -> c_int>("cuDeviceGet")?;
            check("cuDeviceGet", get(&mut device, ordinal))?;
            let name = self.function::<ToText>("cuDeviceGetName")?;
            check("cuDeviceGetName", name(text.as_mut_ptr(), text.len() as c_int, device))?;
            let name = text_of(&text);

            // A MIG slice has a UUID of its own, which only the second version of the call gives.
            type GetUuid = unsafe extern "system" fn(*mut u8, c_int) -> c_int;
            let get =
                self.function::<GetUuid>("cuDeviceGetUuid_v2").or_else(|_| self.function::<GetUuid>("cuDeviceGetUuid"));
            let uuid = match get {
                Ok(get) if get(uuid.as_mut_ptr(), device) == 0 => Some(uuid_text(&uuid)),
                _ => None,
            };
            let pci = match self.function::<ToText>("cuDeviceGetPCIBusId") {
                Ok(get) if get(text.as_mut_ptr(), text.len() as c_int, device) == 0 => Some(text_of(&text)),
                _ => None,
            };
            let size = self.function::<unsafe extern "system" fn(*mut usize, c_int) -> c_int>("cuDeviceTotalMem_v2");
            let total = match size {
                Ok(get) if get(&mut total, device) == 0 => Some(Bytes(total as u64)),
                _ => None,
            };
            let capability = Version {
                major: self.attribute(COMPUTE_CAPABILITY_MAJOR, device)?,
                minor: self.attribute(COMPUTE_CAPABILITY_MINOR, device)?,
            };
            Ok(Card { name, uuid, pci, total, capability })
        }
    }

    fn attribute(&self, which: c_int, device: c_int) -> Result<u32, DriverError> {
        type Get = unsafe extern "system" fn(*mut c_int, c_int, c_int) -> c_int;
        let mut value: c_int = 0;
        // SAFETY: `cuDeviceGetAttribute(int*, CUdevice_attribute, CUdevice)`; the pointer is valid for the call.
        unsafe {
            let get = self.function::<Get>("cuDeviceGetAttribute")?;
            check("cuDeviceGetAttribute", get(&mut value, which, device))?;
        }
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// # Safety
    /// `F` must be the type of the function that the CUDA manual gives under this name.
    unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, DriverError> {
        // SAFETY: passed on to the caller.
        unsafe { self.0.get::<F>(name.as_bytes()) }.map(|f| *f).map_err(|_| DriverError::Symbol(name))
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), DriverError> {
    match code {
        0 => Ok(()),
        CUDA_ERROR_NO_DEVICE => Err(DriverError::NoDevice),
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => Err(DriverError::Mismatch),
        code => Err(DriverError::Call { call, code }),
    }
}

fn text_of(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Sixteen bytes as NVML writes them: "GPU-" and groups of 8, 4, 4, 4 and 12 digits.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (at, byte) in bytes.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_cuda_writes_them_and_compare() {
        assert_eq!(Version::from_number(12080).to_string(), "12.8");
        assert_eq!(Version::from_number(13000), Version { major: 13, minor: 0 });
        assert!(Version::from_number(12090) < Version::from_number(13000));
    }

    #[test]
    fn a_uuid_is_written_as_nvml_does() {
        let bytes = [1, 35, 69, 103, 137, 171, 205, 239, 0, 1, 2, 3, 4, 5, 6, 255];
        assert_eq!(uuid_text(&bytes), "GPU-01234567-89ab-cdef-0001-0203040506ff");
    }

    #[test]
    fn error_codes_keep_their_meaning() {
        assert_eq!(check("cuInit", 0), Ok(()));
        assert_eq!(check("cuInit", 100), Err(DriverError::NoDevice));
        assert_eq!(check("cuInit", 803), Err(DriverError::Mismatch));
        assert_eq!(check("cuInit", 999), Err(DriverError::Call { call: "cuInit", code: 999 }));
    }

    #[test]
    fn loading_without_a_driver_is_an_error_and_with_one_it_answers() {
        match Driver::load() {
            Err(error) => assert_eq!(error, DriverError::Missing),
            Ok(driver) => assert!(driver.version().is_ok_and(|version| version.major >= 11)),
        }
    }
}
