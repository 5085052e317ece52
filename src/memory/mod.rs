//! Every decision about memory, and no others: what is read, what a run will need, what is kept, when to wait or refuse.

pub mod account;
pub mod error;
pub mod gauge;
pub mod reading;
pub mod script;

pub use account::{Account, Hold};
pub use error::{MemoryError, Refusal};
pub use gauge::{Gauge, Peaks, Pools, Rates};
pub use reading::{CardId, PciAddress, Target, Uuid};
pub use script::{Script, ScriptClock};
