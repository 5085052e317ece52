//! Softbox, a virtual photo studio: Stable Diffusion 1.5 portraits on your own card.
//!
//! A newcomer reads in this order: [`base`] (the plain types), [`diffusion`] (the model), [`memory`] (what is kept on the
//! card), [`engine`] (the thread that makes pictures), [`studio`] (the state of the window), [`ui`] (drawing), [`app`] and
//! [`cli`] (the entry points). Knowledge runs one way; ARCHITECTURE.md says which folder may use which.

pub mod app;
pub mod base;
pub mod cli;
pub mod diffusion;
pub mod engine;
pub mod kernels;
pub mod memory;
pub mod studio;
pub mod text;
pub mod ui;
