//! Opens a device that passed its probe, and believes it only after a first small product came out right.
//!
//! The GPU stack panics as well as it returns errors, so all of it runs inside `catch_unwind`. Called on the engine's
//! thread at start, on a change of device, and after one was lost.

use super::{Candidate, Probe};
use crate::base::{DeviceChoice, Hint, JobError, Problem, Reason};
use crate::engine::protocol::{DeviceStatus, PassedOver};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::wgpu::{WgpuBackend, WgpuInitError};
use burn::tensor::{DType, Device, Tensor, TensorData};
use cubecl::config::streaming::StreamPriority;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// Why a device did not open.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error("{device} is not there")]
    NotThere { device: String },
    #[error("{device} cannot be used")]
    Unusable { device: String, why: Reason, command: Option<String> },
    #[error("{device} did not start: {why}")]
    Start { device: String, why: String },
    #[error("{device} calculates wrongly: {what} gave {got}, not {want}")]
    WrongResult { device: String, what: &'static str, got: f32, want: f32 },
}

impl OpenError {
    /// The device's name.
    pub fn device(&self) -> &str {
        match self {
            OpenError::NotThere { device }
            | OpenError::Unusable { device, .. }
            | OpenError::Start { device, .. }
            | OpenError::WrongResult { device, .. } => device,
        }
    }

    /// The same for a person, without the device's name.
    pub fn reason(&self) -> Reason {
        match self {
            OpenError::NotThere { .. } => Reason::NotThere,
            OpenError::Unusable { why, .. } => why.clone(),
            OpenError::Start { why, .. } => Reason::DidNotStart(first_line(why)),
            OpenError::WrongResult { what, got, want, .. } => Reason::WrongResult { what, got: *got, want: *want },
        }
    }

    fn passed_over(self) -> PassedOver {
        let (device, why) = (self.device().to_owned(), self.reason());
        let command = if let OpenError::Unusable { command, .. } = self { command } else { None };
        PassedOver { device, why, command }
    }
}

impl From<OpenError> for JobError {
    fn from(error: OpenError) -> Self {
        let mut problem = JobError::new(
            Problem::DeviceUnavailable { device: error.device().to_owned(), why: error.reason() },
            error.to_string(),
        );
        if let OpenError::Unusable { command: Some(command), .. } = &error {
            problem.details = format!("{error}\n{command}");
            problem.hints.insert(0, Hint::Install(command.clone()));
        }
        problem
    }
}

/// Opens the device that was chosen; for `Auto` the first that opens and calculates rightly.
///
/// The status names the devices that come before the one used and why they are not. The CPU always opens, so `Auto`
/// only fails where even that calculates wrongly.
pub fn open(choice: DeviceChoice, probe: &Probe) -> Result<(Device, DeviceStatus), OpenError> {
    if choice != DeviceChoice::Auto {
        let candidate = probe.find(choice).ok_or_else(|| not_offered(choice, probe))?;
        return open_candidate(candidate).map(|device| (device, status(candidate, Vec::new())));
    }
    let mut passed_over = probe.passed_over.clone();
    let mut last = OpenError::NotThere { device: "CPU".to_owned() };
    for candidate in probe.devices.iter().filter(|candidate| !candidate.software) {
        match open_candidate(candidate) {
            Ok(device) => return Ok((device, status(candidate, passed_over))),
            Err(error) => {
                tracing::warn!("{error}");
                passed_over.push(error.clone().passed_over());
                last = error;
            }
        }
    }
    Err(last)
}

/// Opens this one and checks its first product.
pub fn open_candidate(candidate: &Candidate) -> Result<Device, OpenError> {
    configure();
    let start = |why: String| OpenError::Start { device: candidate.label(), why };
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let device = match (&candidate.choice, &candidate.kind) {
            (DeviceChoice::Cuda(ordinal), _) => Device::cuda(*ordinal),
            (DeviceChoice::Vulkan(_), Some(_)) => open_vulkan(candidate).map_err(|error| start(error.to_string()))?,
            _ => Device::flex(),
        };
        first_product(&device, candidate)?;
        Ok(device)
    }));
    opened.unwrap_or_else(|panic| Err(start(panic_text(panic.as_ref()))))
}

/// A Vulkan device with an error instead of a panic. One that this program opened before is handed out again.
fn open_vulkan(candidate: &Candidate) -> Result<Device, WgpuInitError> {
    static OPENED: Mutex<Vec<(DeviceChoice, Device)>> = Mutex::new(Vec::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = opened.iter().find(|(choice, _)| *choice == candidate.choice) {
        return Ok(device.clone());
    }
    let kind = candidate.kind.clone().unwrap_or_default();
    let device = Device::wgpu_options().device_kind(kind).graphics_api(WgpuBackend::Vulkan).init()?;
    opened.push((candidate.choice, device.clone()));
    Ok(device)
}

/// Settings of the GPU stack for the whole program, made before its first use; later calls change nothing.
///
/// Low stream priority lets the desktop draw between our kernels. Set in code, so that a stray configuration file in the
/// current folder does not change what the program does.
fn configure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut config = CubeClRuntimeConfig::default().override_from_env();
        config.streaming.priority = StreamPriority::Low;
        if !CubeClRuntimeConfig::try_set(config) {
            tracing::warn!("the GPU stack was in use before it was configured");
        }
    });
}

/// A matrix product in f32, and on a GPU with f16 also one and a convolution in f16, against the plain sums.
///
/// Software renderers get the convolution in f32 alone: Mesa 22.3's crashes, the whole program with it, when it compiles
/// CubeCL's matrix product. All values are small integers, so every type holds the exact result.
fn first_product(device: &Device, candidate: &Candidate) -> Result<(), OpenError> {
    const N: usize = 32;
    let value = |at: usize| (at * 7 % 5) as f32 - 2.0;
    let a: Vec<f32> = (0..N * N).map(value).collect();
    let b: Vec<f32> = (0..N * N).map(|at| value(at * 3 + 1)).collect();
    let product: Vec<f32> = (0..N * N).map(|at| (0..N).map(|k| a[at / N * N + k] * b[k * N + at % N]).sum()).collect();

    let gpu = candidate.choice != DeviceChoice::Cpu;
    for dtype in [DType::F32, DType::F16] {
        if dtype == DType::F16 && !(gpu && candidate.f16) {
            continue;
        }
        let load = |data: &[f32]| {
            let data = TensorData::new(data.to_vec(), [N, N]);
            Tensor::<2>::from_data(data, (device, DType::F32)).cast(dtype)
        };
        if !candidate.software {
            compare("a matrix product", load(&a).matmul(load(&b)).cast(DType::F32), &product, candidate)?;
        }
        if dtype == DType::F16 || candidate.software {
            // [1, 16, 8, 8] by [4, 16, 3, 3], padded by 1 → [1, 4, 8, 8]
            let load = |data: &[f32], shape: [usize; 4]| {
                let data = TensorData::new(data.to_vec(), shape);
                Tensor::<4>::from_data(data, (device, DType::F32)).cast(dtype)
            };
            let (image, weights) = (&a[..16 * 64], &b[..4 * 16 * 9]);
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            let out = conv2d(load(image, [1, 16, 8, 8]), load(weights, [4, 16, 3, 3]), None, options);
            compare("a convolution", out.cast(DType::F32), &convolution(image, weights), candidate)?;
        }
    }
    Ok(())
}

/// The plain sums of a 3×3 convolution, [16, 8, 8] by [4, 16, 3, 3] → [4, 8, 8], zeros around.
fn convolution(image: &[f32], weights: &[f32]) -> Vec<f32> {
    let mut out = Vec::with_capacity(4 * 64);
    for (channel, y, x) in (0..4 * 64).map(|at| (at / 64, at / 8 % 8, at % 8)) {
        let mut sum = 0.0;
        for (input, dy, dx) in (0..16 * 9).map(|at| (at / 9, at / 3 % 3, at % 3)) {
            let (row, column) = (y + dy, x + dx);
            if (1..=8).contains(&row) && (1..=8).contains(&column) {
                sum +=
                    image[input * 64 + (row - 1) * 8 + column - 1] * weights[(channel * 16 + input) * 9 + dy * 3 + dx];
            }
        }
        out.push(sum);
    }
    out
}

fn compare<const D: usize>(
    what: &'static str,
    got: Tensor<D>,
    want: &[f32],
    candidate: &Candidate,
) -> Result<(), OpenError> {
    let device = candidate.label();
    let read = got.try_into_data().map_err(|error| error.to_string());
    let got = read.and_then(|data| data.try_to_vec::<f32>().map_err(|error| format!("{error:?}")));
    let got = got.map_err(|why| OpenError::Start { device: device.clone(), why })?;
    let wrong = got.iter().zip(want).find(|(got, want)| got.is_nan() || (**got - **want).abs() >= 0.25);
    match wrong {
        Some((&got, &want)) => Err(OpenError::WrongResult { device, what, got, want }),
        None if got.len() != want.len() => {
            let why = format!("{what} gave {} values, not {}", got.len(), want.len());
            Err(OpenError::Start { device, why })
        }
        None => Ok(()),
    }
}

fn status(candidate: &Candidate, passed_over: Vec<PassedOver>) -> DeviceStatus {
    DeviceStatus {
        choice: candidate.choice,
        name: candidate.label(),
        total: candidate.total,
        precision: candidate.precision(),
        passed_over,
    }
}

/// Why a device that was asked for by name is not among the candidates.
pub fn not_offered(choice: DeviceChoice, probe: &Probe) -> OpenError {
    let (device, family) = match choice {
        DeviceChoice::Cuda(n) => (format!("CUDA {n}"), "CUDA"),
        DeviceChoice::Vulkan(n) => (format!("Vulkan {n}"), "Vulkan"),
        DeviceChoice::Cpu | DeviceChoice::Auto => ("CPU".to_owned(), "CPU"),
    };
    let offered = probe.devices.iter().any(|candidate| candidate.label().contains(family));
    match probe.passed_over.iter().find(|passed| passed.device.contains(family)) {
        Some(passed) if !offered => {
            OpenError::Unusable { device, why: passed.why.clone(), command: passed.command.clone() }
        }
        _ => OpenError::NotThere { device },
    }
}

/// What a caught panic says.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Whether an error's or a panic's text tells that the device itself is gone or beyond use, so that the next job needs
/// it opened anew or replaced. Out of memory and kernels that do not compile are not of this kind.
pub fn is_device_lost(text: &str) -> bool {
    // The names are CUDA's and Vulkan's own; "poisoned" is what CubeCL calls a device after an error that stays.
    const SIGNS: [&str; 16] = [
        "poisoned",
        "device was lost",
        "device lost",
        "device is lost",
        "error_device_lost",
        "cuda_error_ecc_uncorrectable",
        "cuda_error_illegal_address",
        "cuda_error_launch_failed",
        "cuda_error_launch_timeout",
        "cuda_error_context_is_destroyed",
        "cuda_error_device_unavailable",
        "cuda_error_deinitialized",
        "cuda_error_no_device",
        "cuda_error_system_driver_mismatch",
        "cuda_error_system_not_ready",
        "cuda_error_unknown",
    ];
    // CubeCL reports a driver call as "cuEventQuery failed with status 700"; the numbers are `cudaError_enum`'s.
    const STATUSES: [u32; 18] = [3, 4, 46, 100, 101, 201, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999];
    let text = text.to_lowercase();
    let status = text.split("failed with status ").skip(1).any(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().is_ok_and(|status| STATUSES.contains(&status))
    });
    status || SIGNS.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_opens_and_is_what_it_says() {
        let probe = super::super::probe();
        let (device, status) = open(DeviceChoice::Cpu, &probe).unwrap();
        assert_eq!((status.choice, status.name.as_str()), (DeviceChoice::Cpu, "CPU"));
        assert_eq!(device, Device::flex());
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_with_the_reason() {
        let why = Reason::NoCompiler;
        let command = Some("pip install x".to_owned());
        let passed = PassedOver { device: "NVIDIA X (CUDA)".to_owned(), why, command };
        let probe = Probe { devices: vec![Candidate::cpu()], passed_over: vec![passed] };
        let error = open(DeviceChoice::Cuda(0), &probe).unwrap_err();
        assert_eq!(error.reason(), Reason::NoCompiler);
        let job: JobError = error.into();
        assert!(job.hints.contains(&Hint::Install("pip install x".into())) && job.details.contains("pip install x"));
        let error = open(DeviceChoice::Vulkan(7), &probe).unwrap_err();
        assert_eq!(error, OpenError::NotThere { device: "Vulkan 7".to_owned() });
    }

    #[test]
    fn auto_falls_through_to_the_cpu_and_says_what_it_passed() {
        let broken = Candidate {
            choice: DeviceChoice::Vulkan(4096),
            name: "No such card".to_owned(),
            kind: Some(burn::tensor::DeviceKind::DiscreteGpu(4096)),
            ..Candidate::cpu()
        };
        let probe = Probe { devices: vec![broken, Candidate::cpu()], passed_over: Vec::new() };
        let (_, status) = open(DeviceChoice::Auto, &probe).unwrap();
        assert_eq!(status.choice, DeviceChoice::Cpu);
        assert_eq!(status.passed_over.len(), 1);
        assert_eq!(status.passed_over[0].device, "No such card (Vulkan)");
    }

    #[test]
    fn a_wrong_product_is_found() {
        let wrong = Tensor::<1>::from_data(TensorData::new(vec![1.0f32, 2.0], [2]), (&Device::flex(), DType::F32));
        let error = compare("a matrix product", wrong.clone(), &[1.0, 3.0], &Candidate::cpu()).unwrap_err();
        assert!(matches!(error, OpenError::WrongResult { got: 2.0, want: 3.0, .. }), "{error}");
        let nan = Tensor::<1>::from_data(TensorData::new(vec![f32::NAN], [1]), (&Device::flex(), DType::F32));
        assert!(compare("a matrix product", nan, &[1.0], &Candidate::cpu()).is_err());
    }

    #[test]
    fn a_lost_device_is_told_from_other_failures() {
        for text in [
            "The device was poisoned during launch\nCaused by: CUDA_ERROR_ILLEGAL_ADDRESS",
            "Parent device is lost",
            "cuStreamSynchronize failed with status 719",
            "DriverError(CUDA_ERROR_UNKNOWN, \"unknown error\")",
        ] {
            assert!(is_device_lost(text), "{text}");
        }
        for text in [
            "CUDA_ERROR_OUT_OF_MEMORY",
            "[Compilation Error] mma.h",
            "cuMemAlloc failed with status 2",
            "index out of bounds",
        ] {
            assert!(!is_device_lost(text), "{text}");
        }
    }
}
