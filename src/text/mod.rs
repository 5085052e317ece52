//! Every sentence a person reads, in English and Simplified Chinese.
//!
//! A file an area; `phrases!` gives each key both languages at once. Functions put typed problems, notices and figures of
//! `base` into words. The window and the command line call these and write no sentences of their own.

mod phrase;
pub mod window;

pub use phrase::{Lang, Phrase};
pub(crate) use phrase::phrases;
