//! The engine as its users have it: started with `engine::start`, told by commands and controls, heard by events. On the
//! CPU, with tiny models; nothing is faked but the card of a gauge script.

mod faults;
mod files;
mod latency;
mod lifetime;
mod memory;
mod phases;
mod real;
pub mod stage;
mod steering;
