//! The account of what this program takes. On a real device the allocator is the judge and the account only passes;
//! under a gauge script it plays the card: it holds what is taken, keeps in a pool what is given back, and refuses what
//! the script leaves no room for.

use super::reading::{DeviceFigures, Source};
use super::{MemoryError, Pools, Script, ScriptClock};
use crate::base::{Bytes, Reason};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Asked before everything that takes memory: a part's weights, a step, a decode.
#[derive(Clone, Debug, Default)]
pub struct Account(Option<Arc<Card>>);

/// A card that exists only in a script.
#[derive(Debug)]
struct Card {
    script: Script,
    started: Instant,
    state: Mutex<CardState>,
}

#[derive(Debug, Default)]
struct CardState {
    /// Time in looks, for scripts that count so.
    looks: f64,
    in_use: Bytes,
    pooled: Bytes,
}

/// Memory that was taken. Dropping it gives it back to the pool, as dropping tensors does.
#[derive(Debug, Default)]
pub struct Hold {
    card: Option<Arc<Card>>,
    bytes: Bytes,
}

impl Account {
    /// For a device that judges by itself.
    pub fn real() -> Self {
        Account(None)
    }

    /// For a card as the script tells it. Its time starts now.
    pub fn scripted(script: Script) -> Self {
        Account(Some(Arc::new(Card { script, started: Instant::now(), state: Mutex::default() })))
    }

    /// The source with which the gauge watches a scripted card; `None` on a real device.
    pub fn source(&self) -> Option<Box<dyn Source>> {
        let card = self.0.clone()?;
        Some(Box::new(ScriptSource(card)))
    }

    /// What a new allocation may take, our pool included. `None`: not known here.
    pub fn allowance(&self) -> Option<Bytes> {
        let card = self.0.as_ref()?;
        let state = card.lock();
        Some(card.free(&state)? + state.pooled)
    }

    /// Takes memory for something.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] where the script leaves no room for it.
    pub fn take(&self, what: &str, bytes: Bytes) -> Result<Hold, MemoryError> {
        let Some(card) = &self.0 else { return Ok(Hold::default()) };
        let mut state = card.lock();
        if let Some(free) = card.free(&state) {
            let have = free + state.pooled;
            if bytes > have {
                return Err(MemoryError::OutOfMemory { what: what.to_owned(), need: bytes, have });
            }
        }
        state.pooled = state.pooled - bytes;
        state.in_use += bytes;
        Ok(Hold { card: Some(card.clone()), bytes })
    }

    /// Gives the pool back to the card.
    pub fn empty_pools(&self) {
        if let Some(card) = &self.0 {
            card.lock().pooled = Bytes::ZERO;
        }
    }

    /// The pools of a scripted card, in place of the allocator's figures; `None` on a real device.
    pub fn pools(&self) -> Option<Pools> {
        let card = self.0.as_ref()?;
        let state = card.lock();
        Some(Pools { in_use: state.in_use, reserved: state.in_use + state.pooled })
    }

    /// The engine looks: a reading on which it decides. Scripts that count in steps go on by one.
    pub fn look(&self) {
        if let Some(card) = &self.0 {
            card.lock().looks += 1.0;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(card) = &self.card {
            let mut state = card.lock();
            state.in_use = state.in_use - self.bytes;
            state.pooled += self.bytes;
        }
    }
}

impl Hold {
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}

impl Card {
    fn lock(&self) -> MutexGuard<'_, CardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self, state: &CardState) -> f64 {
        match self.script.clock {
            ScriptClock::Steps => state.looks,
            ScriptClock::Seconds => self.started.elapsed().as_secs_f64(),
        }
    }

    /// What nobody holds. `None` where the script says that it cannot be read.
    fn free(&self, state: &CardState) -> Option<Bytes> {
        let moment = self.script.at(self.time(state));
        let ours = state.in_use + state.pooled + self.script.context;
        Some(moment.total? - self.script.reserved - moment.others? - ours)
    }
}

struct ScriptSource(Arc<Card>);

impl Source for ScriptSource {
    fn read(&mut self) -> DeviceFigures {
        let card = &self.0;
        let state = card.lock();
        let moment = card.script.at(card.time(&state));
        let unknown = moment.total.is_none() || moment.others.is_none();
        DeviceFigures {
            total: moment.total,
            free: card.free(&state),
            reserved: Some(card.script.reserved),
            ours: Some(state.in_use + state.pooled + card.script.context),
            programs: Vec::new(),
            unknown_because: if unknown { vec![Reason::Scripted] } else { vec![] },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Latest;
    use crate::memory::{Gauge, Rates};

    fn account() -> Account {
        Account::scripted(Script::parse("clock steps\ncontext 0.5\n0 8 1\n1 8 6\n2 - -\n").unwrap())
    }

    #[test]
    fn what_the_script_leaves_no_room_for_fails_and_what_was_freed_is_taken_again() {
        let account = account();
        assert_eq!(account.allowance(), Some(Bytes::mib(6656)));
        let weights = account.take("UNet", Bytes::gib(2)).unwrap();
        let step = account.take("step", Bytes::gib(4)).unwrap();
        let error = account.take("VAE", Bytes::gib(1)).unwrap_err();
        let want = MemoryError::OutOfMemory { what: "VAE".into(), need: Bytes::gib(1), have: Bytes::mib(512) };
        assert_eq!(error, want);
        drop(step);
        let pools = |in_use, reserved| Some(Pools { in_use: Bytes::gib(in_use), reserved: Bytes::gib(reserved) });
        assert_eq!(account.pools(), pools(2, 6));
        assert_eq!(account.allowance(), Some(Bytes::mib(4608)));
        let again = account.take("step", Bytes::gib(3)).unwrap();
        assert_eq!(account.pools(), pools(5, 6));
        drop((again, weights));
        account.empty_pools();
        assert_eq!(account.pools(), pools(0, 0));
    }

    #[test]
    fn others_rise_with_the_engines_looks_and_unknown_refuses_nothing() {
        let account = account();
        account.look();
        assert_eq!(account.allowance(), Some(Bytes::mib(1536)));
        account.look();
        assert_eq!(account.allowance(), None);
        assert!(account.take("anything", Bytes::gib(100)).is_ok());
    }

    #[test]
    fn the_gauge_sees_the_scripted_card_and_its_parts_add_up() {
        let account = account();
        let rates = Rates { reading: std::time::Duration::from_secs(3600), ..Rates::default() };
        let gauge = Gauge::start(account.source().unwrap(), rates, Latest::new(), || ());
        let _weights = account.take("UNet", Bytes::gib(2)).unwrap();
        drop(account.take("step", Bytes::gib(1)).unwrap());
        let reading = gauge.boundary(account.pools());
        assert_eq!((reading.ours_in_use, reading.ours_pooled), (Some(Bytes::gib(2)), Some(Bytes::gib(1))));
        assert_eq!((reading.ours_context, reading.others), (Some(Bytes::mib(512)), Some(Bytes::gib(1))));
        assert_eq!(reading.free, Some(Bytes::mib(3584)));
        account.look();
        account.empty_pools();
        let reading = gauge.boundary(account.pools());
        assert_eq!((reading.free, reading.others), (Some(Bytes::ZERO), Some(Bytes::mib(5632))), "the card is overfull");
    }

    #[test]
    fn a_real_device_judges_by_itself() {
        let account = Account::real();
        assert!(account.take("UNet", Bytes(u64::MAX)).is_ok());
        assert_eq!((account.allowance(), account.pools()), (None, None));
        assert!(account.source().is_none());
    }
}
