//! The integration tests, in one binary. Folders mirror `src`.

mod cli;
mod diffusion;
mod engine;
#[cfg(feature = "pocket")]
mod pocket;
mod structure;
mod text;
mod ui;
