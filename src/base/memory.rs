//! What is known of the device's memory at a moment.

use super::{Bytes, Reason};

/// One reading. `None` is unknown, and is shown as unknown, never as zero.
///
/// Where everything is known the parts add up: in use + pooled + context + others + reserved + free = total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryReading {
    /// Seconds since the gauge started.
    pub at: f64,
    /// The whole memory of the card; on the CPU device that of the machine or the container.
    pub total: Option<Bytes>,
    /// Held by tensors of this program, as of the last step boundary.
    pub ours_in_use: Option<Bytes>,
    /// Free inside this program's pools, kept for the next allocation, as of the last step boundary.
    pub ours_pooled: Option<Bytes>,
    /// What the driver counts as ours beyond the pools: context, kernels, driver buffers.
    pub ours_context: Option<Bytes>,
    /// Other programs.
    pub others: Option<Bytes>,
    /// Kept back by the driver for itself.
    pub reserved: Option<Bytes>,
    pub free: Option<Bytes>,
    /// The most this program has held during the running job, as the driver counts it.
    pub peak: Option<Bytes>,
    /// Why something above is unknown.
    pub unknown_because: Vec<Reason>,
}

impl MemoryReading {
    /// All that is not free, by whomever.
    pub fn used(&self) -> Option<Bytes> {
        Some(self.total? - self.free?)
    }

    /// Share of the total that is in use by whomever, 0 to 1: what the limit is held against.
    pub fn share_used(&self) -> Option<f64> {
        Some(self.used()?.share_of(self.total?))
    }

    /// Like [`share_used`](Self::share_used), without what our pools merely keep.
    pub fn share_active(&self) -> Option<f64> {
        Some((self.used()? - self.ours_pooled?).share_of(self.total?))
    }

    /// All that the driver counts as ours.
    pub fn ours(&self) -> Option<Bytes> {
        Some(self.ours_in_use? + self.ours_pooled? + self.ours_context?)
    }
}

/// What a clean-up gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CleanReport {
    pub before: MemoryReading,
    pub after: MemoryReading,
    /// What stays, and why: part and size ("UNet", 1.7 GiB).
    pub kept: Vec<(String, Bytes)>,
    /// What the device gave back, by the device-wide figure where it is known, else by the pools'.
    pub freed: Option<Bytes>,
}
