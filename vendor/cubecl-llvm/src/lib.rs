//! Stand-in for cubecl's LLVM compiler.
//!
//! cubecl-cuda links both of its compilers whichever one is chosen, and the LLVM one downloads a toolchain while it
//! builds. Softbox selects the C++ one (feature `cuda-cpp`), so this crate carries only the names that cubecl-cuda's
//! sources mention. Should its compiler ever be asked for, it answers with an error that says so.

pub mod nvptx {
    pub mod ptx_version {
        use std::fmt;

        /// A PTX language version. None is ever emitted here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct PtxVersion;

        impl PtxVersion {
            /// Always `None`: nothing here writes PTX for any driver.
            pub fn for_driver<D>(_driver_version: D) -> Option<Self> {
                None
            }
        }

        impl fmt::Display for PtxVersion {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("none")
            }
        }
    }
}

pub mod shared {
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;

        /// The kind of machine that kernels would be lowered for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            Nvptx,
        }

        /// Leaves the properties as they are: no kernel is lowered here, so nothing needs to be taken back.
        pub fn restrict_features(_properties: &mut DeviceProperties, _target: GpuTarget) {}
    }
}

use cubecl_environment::backtrace::BackTrace;
use cubecl_core::ir::nvidia::SmArch;
use cubecl_core::prelude::KernelDefinition;
use cubecl_server::compiler::{CompilationError, Compiler};
use cubecl_server::kernel::BufferIOAttr;
use std::fmt;

/// What the compiler would produce code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlvmTarget {
    Nvptx,
}

/// A compiler that refuses every kernel.
#[derive(Clone, Debug)]
pub struct PlironCompiler {
    pub target: LlvmTarget,
}

/// The options cubecl-cuda fills in.
#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    pub arch: Option<String>,
    pub sm_arch: Option<SmArch>,
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    pub grid_constants: bool,
}

/// A compiled module. Never made.
#[derive(Clone, Debug)]
pub struct NvptxModule {
    pub ptx: Vec<std::ffi::c_char>,
    pub entrypoint: String,
    pub ir: String,
    pub shared_memory_size: usize,
    pub io: Vec<BufferIOAttr>,
}

/// What a compilation would give. `Refused` only keeps the match in cubecl-cuda honest.
#[derive(Clone, Debug)]
pub enum PlironArtifact {
    NvptxCode(NvptxModule),
    Refused,
}

impl fmt::Display for PlironArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlironArtifact::NvptxCode(module) => f.write_str(&module.ir),
            PlironArtifact::Refused => f.write_str("no code"),
        }
    }
}

impl Compiler for PlironCompiler {
    type Representation = PlironArtifact;
    type CompilationOptions = PlironOptions;

    fn compile(
        &mut self,
        _kernel: KernelDefinition,
        _options: &Self::CompilationOptions,
    ) -> Result<Self::Representation, CompilationError> {
        Err(CompilationError::Generic {
            reason: "this build carries no LLVM compiler; CUDA kernels go through NVRTC".to_owned(),
            backtrace: BackTrace::capture(),
        })
    }

    fn extension(&self) -> &'static str {
        "ll"
    }

    fn lang_tag(&self) -> &'static str {
        "llvm"
    }
}
