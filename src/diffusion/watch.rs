//! How long computations notice that they are no longer wanted.

use super::DiffusionError;

/// A question that is asked between layers: go on? The caller may also wait inside it, which is how a pause takes effect
/// within a step on a slow device.
#[derive(Clone, Copy)]
pub struct Watch<'a>(&'a dyn Fn() -> bool);

impl<'a> Watch<'a> {
    /// `go_on` returns false to stop. It is called often, so it should cost no more than an atomic read.
    pub fn new(go_on: &'a dyn Fn() -> bool) -> Self {
        Watch(go_on)
    }

    /// A watch that never stops anything.
    pub fn never() -> Watch<'static> {
        Watch(&|| true)
    }

    pub fn check(self) -> Result<(), DiffusionError> {
        if (self.0)() { Ok(()) } else { Err(DiffusionError::Stopped) }
    }
}
