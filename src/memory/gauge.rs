//! The gauge: a thread that reads the device four times a second and says where every byte is.
//!
//! It joins two kinds of figures: what the device's source says now, and what our pools held at the last step boundary,
//! which only the engine's thread may ask. It draws nothing and decides nothing. The engine asks it for a fresh reading
//! whenever a decision is due.

use super::reading::{DeviceFigures, Program, Source};
use crate::base::{Bytes, Latest, MemoryReading, Reason};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What our pools hold, as the allocator tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// Held by live tensors, their padding included.
    pub in_use: Bytes,
    /// Taken from the driver: in use and kept.
    pub reserved: Bytes,
}

/// How often the gauge reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Between two readings that are shown.
    pub reading: Duration,
    /// Between two looks for the peak while a job runs. Where a full look takes more than a tenth of this, only the
    /// device's own figures are looked at so often.
    pub peak: Duration,
}

impl Default for Rates {
    fn default() -> Self {
        Rates { reading: Duration::from_millis(250), peak: Duration::from_millis(20) }
    }
}

/// The most that was held during a job. Sampled: a shorter spike can be missed between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Our pools, in use and reserved, at step boundaries.
    pub pools_in_use: Option<Bytes>,
    pub pools_reserved: Option<Bytes>,
    /// All that the driver counts as ours.
    pub process: Option<Bytes>,
    /// All that was not free on the device, by whomever.
    pub device: Option<Bytes>,
}

/// What [`combine`] knows besides the device's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The device has no pools of ours: the CPU.
    pub no_pools: bool,
    /// As of the last step boundary.
    pub pools: Option<Pools>,
    /// What is ours beyond the pools, as of the last moment when both kinds of figures were fresh.
    pub context: Option<Bytes>,
    /// What others held at the last step boundary, while a job runs. Only used where the driver does not count by
    /// program.
    pub others: Option<Bytes>,
}

/// Joins the two kinds of figures into parts that add up to the total.
///
/// They are of different times, so they can disagree. Nothing is ever negative, since each part is cut from what is
/// left of the whole: first free, then reserved, then ours, and others are the rest. Within ours the driver's figure is
/// the newer one and wins. What ours has grown by since the boundary is counted as in use (tensors of the running
/// step); what it has shrunk by is taken from the pools.
///
/// Where the driver does not count by program, ours is pools + context. Then growth since the boundary could be
/// anybody's; during a job it is taken as ours, else as others'.
pub fn combine(figures: &DeviceFigures, known: &Known) -> MemoryReading {
    let mut reading = MemoryReading {
        total: figures.total,
        free: figures.free,
        reserved: figures.reserved,
        unknown_because: figures.unknown_because.clone(),
        ..MemoryReading::default()
    };
    let reserved_by_pools = known.pools.map(|pools| pools.reserved);
    // The driver lists nothing of ours although our pools hold something: it does not show us.
    let counted =
        figures.ours.filter(|ours| *ours > Bytes::ZERO || reserved_by_pools.unwrap_or_default() == Bytes::ZERO);
    if figures.ours.is_some() && counted.is_none() {
        reading.unknown_because.push(Reason::NotListed);
    }
    let (Some(total), Some(free)) = (figures.total, figures.free) else {
        // Without the whole nothing can be cut from it: what is known of ours stands alone.
        if let Some(pools) = known.pools {
            reading.ours_in_use = Some(pools.in_use.min(pools.reserved));
            reading.ours_pooled = Some(pools.reserved - pools.in_use);
            reading.ours_context = counted.map(|ours| ours - pools.reserved).or(known.context);
        }
        return reading;
    };
    let free = free.min(total);
    let reserved = figures.reserved.map(|reserved| reserved.min(total - free));
    let occupied = total - free - reserved.unwrap_or_default();
    reading.free = Some(free);
    reading.reserved = reserved;

    let derived = || {
        let held = reserved_by_pools? + known.context?;
        let grown = known.others.map(|others| occupied - others);
        Some(grown.map_or(held, |grown| grown.max(held)))
    };
    let Some(ours) = counted.or_else(derived).map(|ours| ours.min(occupied)) else {
        if let Some(pools) = known.pools {
            let held = pools.reserved.min(occupied);
            reading.ours_in_use = Some(pools.in_use.min(held));
            reading.ours_pooled = Some(held - pools.in_use);
        }
        return reading;
    };
    reading.others = Some(occupied - ours);
    if ours == Bytes::ZERO {
        (reading.ours_in_use, reading.ours_pooled, reading.ours_context) = (Some(ours), Some(ours), Some(ours));
    } else if known.no_pools {
        let context = known.context.unwrap_or(ours).min(ours);
        reading.ours_context = Some(context);
        reading.ours_in_use = Some(ours - context);
        reading.ours_pooled = Some(Bytes::ZERO);
    } else if let Some(pools) = known.pools {
        let context = known.context.unwrap_or(ours - pools.reserved).min(ours);
        let held = ours - context;
        let in_use = pools.in_use.min(pools.reserved) + (held - pools.reserved);
        let in_use = in_use.min(held);
        reading.ours_context = Some(context);
        reading.ours_in_use = Some(in_use);
        reading.ours_pooled = Some(held - in_use);
    }
    reading
}

/// Whether a person would see the difference: a part became known or unknown, or moved by a thousandth of the whole.
pub fn visibly_differs(old: &MemoryReading, new: &MemoryReading) -> bool {
    let least = new.total.map_or(Bytes::mib(1), |total| total.portion(0.001).max(Bytes::mib(1)));
    let parts = |r: &MemoryReading| {
        [r.total, r.ours_in_use, r.ours_pooled, r.ours_context, r.others, r.reserved, r.free, r.peak]
    };
    let moved = |pair: (Option<Bytes>, Option<Bytes>)| match pair {
        (Some(a), Some(b)) => (a - b).max(b - a) >= least,
        (None, None) => false,
        _ => true,
    };
    old.unknown_because != new.unknown_because || parts(old).into_iter().zip(parts(new)).any(moved)
}

/// The running gauge. Dropping it ends its thread.
pub struct Gauge {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    source: Mutex<Box<dyn Source>>,
    state: Mutex<State>,
    stop: Condvar,
    out: Latest<MemoryReading>,
    wake: Box<dyn Fn() + Send + Sync>,
    started: Instant,
    rates: Rates,
}

#[derive(Default)]
struct State {
    stopped: bool,
    known: Known,
    in_job: bool,
    peaks: Peaks,
    /// Used by anybody just before this program opened the device.
    before_context: Option<Bytes>,
    programs: Vec<Program>,
    last: MemoryReading,
    /// The reading that the last wake told of.
    told: Option<MemoryReading>,
}

impl Gauge {
    /// Starts reading `source`. Each reading goes into `out`; `wake` is called from the gauge's and the engine's
    /// thread, and only when a reading differs visibly from the one told of before.
    pub fn start(
        source: Box<dyn Source>,
        rates: Rates,
        out: Latest<MemoryReading>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let known = Known { no_pools: !source.has_pools(), ..Known::default() };
        let shared = Arc::new(Shared {
            source: Mutex::new(source),
            state: Mutex::new(State { known, ..State::default() }),
            stop: Condvar::new(),
            out,
            wake: Box::new(wake),
            started: Instant::now(),
            rates,
        });
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("gauge".to_owned()).spawn(move || for_thread.run());
        if let Err(error) = &thread {
            // Readings on demand still work: memory decisions do not depend on the thread.
            tracing::warn!("the gauge has no thread: {error}");
        }
        Gauge { shared, thread: thread.ok() }
    }

    /// Watches another device from now on. What was known of the old one is forgotten.
    pub fn watch(&self, source: Box<dyn Source>) {
        let known = Known { no_pools: !source.has_pools(), ..Known::default() };
        let mut slot = lock(&self.shared.source);
        let mut state = lock(&self.shared.state);
        *slot = source;
        *state = State { known, in_job: state.in_job, told: state.told.take(), ..State::default() };
    }

    /// Just before this program opens the device.
    pub fn context_opens(&self) {
        let mut source = lock(&self.shared.source);
        source.context_opens();
        let used = source.read().used();
        lock(&self.shared.state).before_context = used;
    }

    /// Just after the device was opened: what the card lost meanwhile, beyond our pools, is our context. On the CPU
    /// device, what the program holds before any tensor counts as its context.
    pub fn context_opened(&self, pools: Option<Pools>) {
        let mut source = lock(&self.shared.source);
        source.context_opened();
        let figures = source.read();
        let mut state = lock(&self.shared.state);
        let reserved = pools.map_or(Bytes::ZERO, |pools| pools.reserved);
        state.known.pools = pools;
        state.known.context = match (figures.ours, state.before_context.take(), figures.used()) {
            (Some(ours), ..) if ours > Bytes::ZERO => Some(ours - reserved),
            (_, Some(before), Some(after)) => Some(after - before - reserved),
            _ => None,
        };
    }

    /// A step boundary: the pools' figures as they are now, and a fresh reading with them. `None` where the device has
    /// no pools or does not tell.
    pub fn boundary(&self, pools: Option<Pools>) -> MemoryReading {
        let figures = lock(&self.shared.source).read();
        {
            let mut state = lock(&self.shared.state);
            state.known.pools = pools;
            state.known.others = None;
            if let (Some(pools), Some(ours)) = (pools, figures.ours)
                && ours > Bytes::ZERO
            {
                state.known.context = Some(ours - pools.reserved);
            }
            if let Some(pools) = pools {
                state.peaks.pools_in_use = state.peaks.pools_in_use.max(Some(pools.in_use));
                state.peaks.pools_reserved = state.peaks.pools_reserved.max(Some(pools.reserved));
            }
        }
        let reading = self.shared.publish(figures);
        let mut state = lock(&self.shared.state);
        if state.in_job {
            state.known.others = reading.others;
        }
        reading
    }

    /// A fresh reading, with the pools as of the last boundary.
    pub fn now(&self) -> MemoryReading {
        let figures = lock(&self.shared.source).read();
        self.shared.publish(figures)
    }

    /// Other programs on the device, as of the last reading.
    pub fn programs(&self) -> Vec<Program> {
        lock(&self.shared.state).programs.clone()
    }

    /// A job begins: peaks start anew and are looked for often.
    pub fn job_begins(&self) {
        {
            let mut state = lock(&self.shared.state);
            state.in_job = true;
            state.peaks = Peaks::default();
        }
        self.now();
        self.shared.stop.notify_all();
    }

    /// The job's peaks up to now.
    pub fn peaks(&self) -> Peaks {
        lock(&self.shared.state).peaks
    }

    /// The job ended. Its peak stays in the readings until the next one begins.
    pub fn job_ends(&self) -> Peaks {
        self.now();
        let mut state = lock(&self.shared.state);
        state.in_job = false;
        state.known.others = None;
        state.peaks
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        lock(&self.shared.state).stopped = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked in a way that matters here: there is nothing left to tell.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut due = Instant::now();
        let mut cost = Duration::ZERO;
        loop {
            let now = Instant::now();
            if now >= due {
                let figures = lock(&self.source).read();
                cost = now.elapsed();
                self.publish(figures);
                due = now + self.rates.reading;
            } else {
                let full = cost * 10 < self.rates.peak;
                let mut source = lock(&self.source);
                let figures = if full { source.read() } else { source.glance() };
                drop(source);
                let mut state = lock(&self.state);
                if full {
                    let reading = combine(&figures, &state.known);
                    note_peaks(&mut state.peaks, &reading);
                } else {
                    glance_peaks(&mut state, &figures);
                }
            }
            let mut state = lock(&self.state);
            loop {
                if state.stopped {
                    return;
                }
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let in_job = state.in_job;
                let wait = if in_job { self.rates.peak.min(left) } else { left };
                let (guard, woken) = self.stop.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
                state = guard;
                if in_job && woken.timed_out() {
                    break;
                }
            }
        }
    }

    /// Combines, remembers, puts out, and wakes whoever draws.
    fn publish(&self, figures: DeviceFigures) -> MemoryReading {
        let mut state = lock(&self.state);
        if state.known.no_pools && state.known.context.is_none() {
            state.known.context = figures.ours;
        }
        let mut reading = combine(&figures, &state.known);
        reading.at = self.started.elapsed().as_secs_f64();
        if state.in_job {
            note_peaks(&mut state.peaks, &reading);
        }
        reading.peak = state.peaks.process;
        state.programs = figures.programs;
        state.last = reading.clone();
        self.out.put(reading.clone());
        let tell = state.told.as_ref().is_none_or(|told| visibly_differs(told, &reading));
        if tell {
            state.told = Some(reading.clone());
        }
        drop(state);
        if tell {
            (self.wake)();
        }
        reading
    }
}

fn note_peaks(peaks: &mut Peaks, reading: &MemoryReading) {
    peaks.process = peaks.process.max(reading.ours());
    peaks.device = peaks.device.max(reading.used());
}

/// A glance knows the whole device only: what is beyond the last known others is ours.
fn glance_peaks(state: &mut State, figures: &DeviceFigures) {
    let Some(used) = figures.used() else { return };
    state.peaks.device = state.peaks.device.max(Some(used));
    if let (Some(others), Some(_)) = (state.last.others, state.last.ours()) {
        state.peaks.process = state.peaks.process.max(Some(used - others - figures.reserved.unwrap_or_default()));
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "gauge_tests.rs"]
pub(super) mod tests;
