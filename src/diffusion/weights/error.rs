//! What can be wrong with a checkpoint: each kind of fault by itself, naming file and tensor.
//!
//! The texts are technical detail. The sentence a person reads is chosen by the caller from the variant.

use super::archive::ForeignFormat;
use super::convert::DType;
use super::inspect::{Family, PartKind};
use std::io;
use std::path::{Path, PathBuf};

/// A fault in a checkpoint, or in one of its files.
#[derive(Debug, thiserror::Error)]
pub enum WeightError {
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("{}: no such file or folder", path.display())]
    NotFound { path: PathBuf },
    /// The file is something else under a `.safetensors` name.
    #[error("{}: {format}, not a safetensors file", file.display())]
    Foreign { file: PathBuf, format: ForeignFormat },

    /// The file ends before the eight bytes of the header's length.
    #[error("{}: HeaderTooSmall, have {have} of 8 bytes", file.display())]
    HeaderTooSmall { file: PathBuf, have: u64 },
    /// The file ends inside its header.
    #[error("{}: InvalidHeaderLength, have {have} of at least {need} bytes", file.display())]
    InvalidHeaderLength { file: PathBuf, have: u64, need: u64 },
    #[error("{}: HeaderTooLarge, the length field says {length} bytes", file.display())]
    HeaderTooLarge { file: PathBuf, length: u64 },
    #[error("{}: invalid UTF-8 in the header, {source}", file.display())]
    HeaderUtf8 { file: PathBuf, source: std::str::Utf8Error },
    #[error("{}: invalid JSON in the header, {detail}", file.display())]
    HeaderJson { file: PathBuf, detail: String },

    /// The header's entry of one tensor lacks a field or has one of the wrong kind.
    #[error("{}: tensor {tensor}: {detail}", file.display())]
    TensorEntry { file: PathBuf, tensor: String, detail: String },
    #[error("{}: tensor {tensor} is listed twice", file.display())]
    Duplicate { file: PathBuf, tensor: String },
    #[error("{}: tensor {tensor}: shape {shape:?} of {dtype} needs {need} bytes, its offsets hold {have}", file.display())]
    OffsetMismatch { file: PathBuf, tensor: String, dtype: DType, shape: Vec<u64>, need: u64, have: u64 },
    #[error("{}: tensor {tensor}: the size of shape {shape:?} overflows", file.display())]
    Overflow { file: PathBuf, tensor: String, shape: Vec<u64> },
    #[error("{}: tensor {tensor} overlaps {other}", file.display())]
    Overlap { file: PathBuf, tensor: String, other: String },
    #[error("{}: {gap} bytes before tensor {tensor} belong to no tensor", file.display())]
    Gap { file: PathBuf, tensor: String, gap: u64 },
    /// A half-finished download; `tensor` is the first that is not wholly there.
    #[error("{}: incomplete, have {have} of {need} bytes; tensor {tensor} is cut short", file.display())]
    Incomplete { file: PathBuf, tensor: String, have: u64, need: u64 },
    #[error("{}: {extra} extra bytes after the last tensor {tensor}", file.display())]
    ExtraBytes { file: PathBuf, tensor: String, extra: u64 },
    /// The file was cut, rewritten, replaced or removed after it was opened.
    #[error("{}: the file changed while it was in use", file.display())]
    Changed { file: PathBuf },

    #[error("{}: no tensor {tensor}", file.display())]
    NoTensor { file: PathBuf, tensor: String },
    #[error("{}: tensor {tensor} is {dtype}, which holds no weights this program reads", file.display())]
    NotFloat { file: PathBuf, tensor: String, dtype: DType },
    #[error("{}: tensor {tensor} has shape {found:?}, expected {expected:?}", file.display())]
    Shape { file: PathBuf, tensor: String, expected: Vec<usize>, found: Vec<usize> },
    #[error("{}: the {part} lacks {count} tensor{}, the first is {tensor}", file.display(), if *count == 1 { "" } else { "s" })]
    MissingTensors { file: PathBuf, part: PartKind, tensor: String, count: usize },
    #[error("{}: there is no {part}", path.display())]
    MissingPart { path: PathBuf, part: PartKind },
    #[error("{}: only pickled weights ({}), no safetensors", folder.display(), found.display())]
    OnlyPickle { folder: PathBuf, found: PathBuf },
    #[error("{}: lists {}, which is not there", index.display(), shard.display())]
    MissingShard { index: PathBuf, shard: PathBuf },

    /// The file is sound, and another kind of model than the one asked for.
    #[error("{}: {family}", path.display())]
    Refused { path: PathBuf, family: Family },
    /// What was to be a VAE holds none.
    #[error("{}: {kind}, not a VAE", path.display())]
    NotVae { path: PathBuf, kind: String },
    /// No VAE in the checkpoint and none chosen.
    #[error("{}: holds no VAE", path.display())]
    NoVae { path: PathBuf },
    #[error("{}: {field}: {detail}", file.display())]
    Config { file: PathBuf, field: String, detail: String },
    /// A setting that is understood and not supported.
    #[error("{}: {field} = {value} is not supported", file.display())]
    ConfigUnsupported { file: PathBuf, field: String, value: String },
    /// The built-in model was asked for in a program that was built without it.
    #[error("Pocket was left out when this program was built")]
    NotBuiltIn,
    /// `Auto` was handed to a function that needs a real type.
    #[error("the precision must be decided before weights are read")]
    PrecisionUndecided,
}

impl WeightError {
    /// Wraps an I/O error with the file it happened on; "not found" gets its own variant.
    pub fn io(file: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            WeightError::NotFound { path: file.to_owned() }
        } else {
            WeightError::Io { file: file.to_owned(), source }
        }
    }

    pub(crate) fn config(file: &Path, field: &str, detail: impl Into<String>) -> Self {
        WeightError::Config { file: file.to_owned(), field: field.to_owned(), detail: detail.into() }
    }

    pub(crate) fn unsupported(file: &Path, field: &str, value: impl ToString) -> Self {
        WeightError::ConfigUnsupported { file: file.to_owned(), field: field.to_owned(), value: value.to_string() }
    }
}
