//! Operations that burn's stock ones do not do well enough. Each falls back to plain burn operations, which are also its
//! reference.

pub mod conv;
pub mod cpu;
