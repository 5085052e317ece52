//! What a checkpoint is, told by its content, and its tensors under diffusers' names.
//!
//! `archive` reads one safetensors file, `convert` its number types, `keys` and `layout` know the names and shapes of
//! SD1.5's parts, `shapes` reads sizes off them, `assemble` brings the two together, `inspect` says what a file is before
//! a byte of weights is read, and `checkpoint` hands the parts to the model. `random` stands in for a file. Nothing here
//! knows a device: the model asks for one tensor at a time as host bytes. The pipeline and the command line call it.

pub mod archive;
pub mod assemble;
pub mod checkpoint;
pub mod convert;
pub mod error;
pub mod family;
pub mod folder;
pub mod inspect;
pub mod keys;
pub mod layout;
pub mod random;
pub mod shapes;
mod side_file;

pub use archive::{Archive, ForeignFormat, TensorInfo};
pub use checkpoint::{Checkpoint, Part, PartTensors};
pub use convert::DType;
pub use error::WeightError;
pub use inspect::{Family, Inspection, PartKind, inspect};
pub use random::RandomSd15;

use crate::base::Precision;

/// One tensor in host memory, row-major, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    pub shape: Vec<usize>,
    /// F32, F16 or Bf16, never Auto.
    pub precision: Precision,
    pub bytes: Vec<u8>,
}

impl HostTensor {
    /// The values as f32, for the few a caller needs on the host.
    pub fn to_f32(&self) -> Vec<f32> {
        match self.precision {
            Precision::F32 | Precision::Auto => {
                self.bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
            }
            Precision::F16 => {
                self.bytes.as_chunks::<2>().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()
            }
            Precision::Bf16 => {
                self.bytes.as_chunks::<2>().0.iter().map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect()
            }
        }
    }
}

/// Where a part of the model gets its weights, by their diffusers names.
///
/// Shapes are those the layer needs: attention and projection weights are always `[out, in]`, however the file keeps
/// them (1×1 convolution or linear).
pub trait TensorSource {
    /// Shape of a tensor by its diffusers name, `None` if absent.
    fn shape(&self, name: &str) -> Option<Vec<usize>>;

    /// Its values, row-major, converted to `precision`.
    ///
    /// # Errors
    /// `NoTensor` for an unknown name, `Changed` where the file is not what it was when opened, `Io`, and
    /// `PrecisionUndecided` for `Auto`.
    fn read(&self, name: &str, precision: Precision) -> Result<HostTensor, WeightError>;

    /// All names, sorted.
    fn names(&self) -> Vec<String>;
}

#[cfg(test)]
pub(crate) mod testfile;
