//! Why a device is not used, a figure not known, a file not read or not written: as data. `text/reasons.rs` has the words.
//!
//! Whoever meets the fault makes the value. A `String` in one holds what the system, a library or a driver said about
//! it, which has no other language.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why something is not as one would wish.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    // A device is not used.
    NoDriver {
        library: &'static str,
    },
    /// The driver has no function of this name.
    DriverLacks(&'static str),
    /// The driver in the kernel and its library are of two versions.
    DriverMismatch,
    DriverTooOld {
        serves: String,
        needs: String,
    },
    NoCard,
    DriverCall {
        call: &'static str,
        code: i32,
    },
    NoCompiler,
    CompilerTooNew {
        compiler: String,
        serves: String,
    },
    NoHeaders {
        compiler: String,
        missing: String,
    },
    NoVulkan {
        library: &'static str,
    },
    NoVulkanCard,
    UnknownAdapter,
    /// Draws on the CPU.
    Software,
    NotThere,
    WrongResult {
        what: &'static str,
        got: f32,
        want: f32,
    },
    DidNotStart(String),
    NoReading,

    // A figure of the memory is not known.
    NoDevice,
    NoNvml(String),
    Nvml(String),
    NoSuchNvmlCard,
    NoAmdgpuCard,
    ProgramsUnread(String),
    NotByProgram,
    OtherProcessNumbers,
    NotListed,
    NoMemoryFigures,
    Scripted,

    // A file is not read or not written.
    Io {
        path: PathBuf,
        kind: ErrorKind,
        told: String,
    },
    DiskFull(PathBuf),
    ReadOnly(PathBuf),
    NotAFolder(PathBuf),
    NotAFile(PathBuf),
    /// Another kind of file lies there, and is not replaced.
    OtherKind(PathBuf),
    NotANumber(PathBuf),
    Unreadable(PathBuf),
    NotAPicture,
    PictureDamaged(String),
    NotEncoded(String),
}

impl Reason {
    /// An error of the system, with the file or folder that it is about.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        Reason::Io { path: path.to_owned(), kind: error.kind(), told: error.to_string() }
    }

    /// Whether it only says that a kind of device is not there. Then there is nothing to mend, and it stands in the list of
    /// devices without a notice.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            Reason::NoDriver { .. }
                | Reason::NoCard
                | Reason::NoVulkan { .. }
                | Reason::NoVulkanCard
                | Reason::Software
        )
    }

    /// What the system or a library said about it; empty where nothing more is known than the variant tells.
    pub fn told(&self) -> &str {
        match self {
            Reason::DidNotStart(told)
            | Reason::NoNvml(told)
            | Reason::Nvml(told)
            | Reason::ProgramsUnread(told)
            | Reason::Io { told, .. }
            | Reason::PictureDamaged(told)
            | Reason::NotEncoded(told) => told,
            _ => "",
        }
    }
}

/// What is wrong with a checkpoint or one of its files. The file itself is named beside it.
#[derive(Clone, Debug, PartialEq)]
pub enum Flaw {
    // The file is no sound safetensors file.
    TooShort {
        have: u64,
    },
    HeaderTooLarge {
        length: u64,
    },
    HeaderNoText,
    HeaderNoJson(String),
    Entry {
        tensor: String,
        told: String,
    },
    Duplicate {
        tensor: String,
    },
    /// Shape and type need another number of bytes than the offsets hold.
    Offsets {
        tensor: String,
        need: u64,
        have: u64,
    },
    Overflow {
        tensor: String,
    },
    Overlap {
        tensor: String,
        other: String,
    },
    Gap {
        tensor: String,
        bytes: u64,
    },
    ExtraBytes {
        bytes: u64,
    },

    // The parts do not make a model.
    NoTensor {
        tensor: String,
    },
    NoWeights {
        tensor: String,
        dtype: String,
    },
    Shape {
        tensor: String,
        found: String,
        expected: String,
    },
    /// `part` as inspection calls it; `text::problems::part` has the word.
    MissingTensors {
        part: String,
        count: usize,
        first: String,
    },
    MissingPart {
        part: String,
    },
    MissingShard {
        shard: PathBuf,
    },
    Setting {
        field: String,
        told: String,
    },
    SettingUnsupported {
        field: String,
        value: String,
    },
    Unsupported {
        part: String,
        told: String,
    },
    Tokenizer(String),
    Betas(String),
    /// The built-in model, in a program that was built without it.
    LeftOut,

    /// A line of a gauge script, from 1.
    ScriptLine {
        line: usize,
        told: String,
    },
}
