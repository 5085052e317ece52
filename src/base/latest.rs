//! A mailbox with one slot, in which the newest value wins.

use std::sync::{Arc, Mutex, PoisonError};

/// Hands the newest value from one thread to another in constant memory, however long nobody looks.
///
/// Both sides hold a clone. The lock is held only while a value is moved in or out.
#[derive(Debug)]
pub struct Latest<T>(Arc<Mutex<Option<T>>>);

impl<T> Latest<T> {
    pub fn new() -> Self {
        Latest(Arc::new(Mutex::new(None)))
    }

    /// Puts a value in, in place of one that nobody took.
    pub fn put(&self, value: T) {
        let old = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(value);
        // Dropped after the lock is gone: a picture takes a while to free.
        drop(old);
    }

    /// Takes the newest value out, if one came since the last call.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Latest<T> {
    fn clone(&self) -> Self {
        Latest(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::Latest;

    #[test]
    fn the_newest_wins_and_is_taken_once() {
        let (here, there) = {
            let l = Latest::new();
            (l.clone(), l)
        };
        here.put(1);
        here.put(2);
        assert_eq!((there.take(), there.take()), (Some(2), None));
    }
}
