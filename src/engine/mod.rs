//! The background thread that makes pictures: it takes jobs, walks their phases, and tells what happens.
//!
//! It never names egui, and never waits for the other side.

pub mod protocol;
