//! The integration tests, in one binary. Folders mirror `src`.

mod diffusion;
