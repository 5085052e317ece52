//! The integration tests, in one binary. Folders mirror `src`.

mod cli;
mod diffusion;
mod engine;
mod structure;
mod text;
mod ui;
