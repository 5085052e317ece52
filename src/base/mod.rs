//! Plain checked types that every other folder may use: what a shot asks for, pictures, bytes, memory readings, problems.
//!
//! Nothing here knows a thread, a device, a file format or a sentence. A value that exists is a value that holds.

pub mod bytes;
pub mod choice;
pub mod emphasis;
pub mod lang;
pub mod latest;
pub mod memory;
pub mod parameters;
pub mod picture;
pub mod problem;
pub mod reason;
pub mod request;
pub mod sampling;
pub mod vocabulary;

pub use bytes::Bytes;
pub use choice::{DeviceChoice, ImageFormat, ModelChoice, OutputPlan, Precision, VaeChoice};
pub use lang::Lang;
pub use latest::Latest;
pub use memory::{CleanReport, MemoryReading};
pub use picture::RgbImage;
pub use problem::{Hint, JobError, Notice, Problem};
pub use reason::{Flaw, Reason};
pub use request::{JobId, ShotRequest, Size};
pub use sampling::{NoiseSource, SamplerKind, ScheduleKind};
pub use vocabulary::Vocabulary;
