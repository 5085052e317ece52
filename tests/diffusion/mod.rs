//! Tests of the pipeline, by folder as in `src/diffusion`.

mod parity;
mod samplers;
