//! Stable Diffusion 1.5 in burn: from a checkpoint's bytes and a prompt to pixels.
//!
//! Reading order: [`pipeline`] is the whole in plain functions; [`text_encoder`], [`unet`] and [`vae`] are the networks,
//! built of [`layers`]; [`samplers`] and [`noise`] are arithmetic on the host; [`weights`] and [`config`] say what a file
//! holds, wherever its [`place`] is ([`pocket`] is inside the program); [`tokenizer`] and [`prompt`] read words. No threads, no clocks, no byte budgets: whoever calls decides.

pub mod config;
mod error;
pub mod layers;
pub mod noise;
pub mod pipeline;
pub mod place;
pub mod pocket;
pub mod prompt;
pub mod samplers;
pub mod text_encoder;
pub mod tokenizer;
pub mod unet;
pub mod vae;
mod watch;
pub mod weights;

pub use error::DiffusionError;
pub use watch::Watch;
