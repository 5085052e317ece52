//! Every decision about memory, and no others: what is read, what a run will need, what is kept,
//! when to wait or refuse.

pub mod account;
pub mod cleanup;
pub mod error;
pub mod forecast;
pub mod gauge;
pub mod keeper;
pub mod model;
pub mod policy;
pub mod reading;
pub mod report;
pub mod residency;
pub mod script;

pub use account::{Account, Hold};
pub use cleanup::{CleanPlan, CleanReason, CleanRule};
pub use error::{MemoryError, Refusal};
pub use forecast::{Constants, Correction, Forecast, ModelShape, Part, PerPart, RunShape, nearest_fit};
pub use gauge::{Gauge, Peaks, Pools, Rates};
pub use keeper::{Boundary, Keeper, Pressure, Refused};
pub use model::{Model, ModelKey};
pub use policy::{Need, Policy, Verdict, Waiting};
pub use reading::{CardId, PciAddress, Target, Uuid};
pub use report::clean_report;
pub use script::{Script, ScriptClock};

#[cfg(test)]
mod trace_tests;
