//! Decides when the picture in the making is shown: at most five times a second, and never for more than 2 % of the time.

use std::time::{Duration, Instant};

/// The shortest time between two previews.
const INTERVAL: Duration = Duration::from_millis(200);

/// A preview may cost this share of the time since the one before it.
const SHARE: f64 = 0.02;

/// Keeps the pace of previews.
#[derive(Debug, Default)]
pub struct PreviewPace {
    last: Option<Instant>,
    cost: Duration,
}

impl PreviewPace {
    /// Makes a preview with `make` if one is due at `now`, and remembers what it took.
    pub fn make<T>(&mut self, now: Instant, make: impl FnOnce() -> T) -> Option<T> {
        let rest = INTERVAL.max(self.cost.div_f64(SHARE));
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < rest) {
            return None;
        }
        let started = Instant::now();
        let made = make();
        self.cost = started.elapsed();
        self.last = Some(now);
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_five_a_second() {
        let mut pace = PreviewPace::default();
        let start = Instant::now();
        let made = (0..1000).filter(|ms| pace.make(start + Duration::from_millis(*ms), || ()).is_some()).count();
        assert_eq!(made, 5);
    }

    #[test]
    fn a_costly_preview_comes_rarely() {
        let mut pace = PreviewPace::default();
        let start = Instant::now();
        assert!(pace.make(start, || std::thread::sleep(Duration::from_millis(20))).is_some());
        assert!(pace.make(start + Duration::from_millis(900), || ()).is_none());
        assert!(pace.make(start + Duration::from_millis(3000), || ()).is_some());
    }
}
