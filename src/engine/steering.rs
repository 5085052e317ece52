//! How a running job heeds the person: the question that is asked between layers, and the waiting when they paused.

use super::link::Link;
use super::protocol::{Event, JobControl, PauseReason, Wish};
use crate::base::JobId;
use crate::base::problem::Phase;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// How long a paused engine sleeps between two looks at what it may have missed.
pub const NAP: Duration = Duration::from_millis(250);

/// One job's steering, on the engine's side.
pub struct Steering<'a> {
    job: JobId,
    control: &'a JobControl,
    link: &'a Link,
    /// On the CPU a layer takes long, so a pause waits between layers; a GPU has the whole step queued within moments, and
    /// waits at the step's end.
    waits_between_layers: bool,
    phase: Cell<Phase>,
    /// Whether there is a predicted picture, so that stop-and-keep may break off the step that runs.
    can_keep: Cell<bool>,
    pauses: RefCell<Vec<(PauseReason, f64)>>,
}

impl<'a> Steering<'a> {
    pub fn new(job: JobId, control: &'a JobControl, link: &'a Link, waits_between_layers: bool) -> Self {
        Steering {
            job,
            control,
            link,
            waits_between_layers,
            phase: Cell::new(Phase::Loading),
            can_keep: Cell::new(false),
            pauses: RefCell::default(),
        }
    }

    /// Enters a phase and tells so, unless the job is in it already.
    pub fn enter(&self, phase: Phase) {
        if self.phase.replace(phase) != phase {
            self.link.tell(Event::Phase(self.job, phase));
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub fn wish(&self) -> Wish {
        self.control.wish()
    }

    /// From now on stop-and-keep has something to keep, or no longer has.
    pub fn set_can_keep(&self, can: bool) {
        self.can_keep.set(can);
    }

    /// The question between layers. False breaks off what runs.
    pub fn go_on(&self) -> bool {
        if self.waits_between_layers && self.control.wish() == Wish::Pause {
            self.wait_while_paused(|| ());
        }
        match self.control.wish() {
            Wish::Run | Wish::Pause => true,
            Wish::StopAndKeep => !self.can_keep.get(),
            Wish::Cancel => false,
        }
    }

    /// Waits as long as the person keeps the job paused; `meanwhile` is called four times a second.
    pub fn wait_while_paused(&self, mut meanwhile: impl FnMut()) {
        self.wait(PauseReason::Asked, || {
            meanwhile();
            self.control.wish() != Wish::Pause
        });
    }

    /// Tells of a pause, waits until `over` says so, and tells that the job goes on if it does.
    pub fn wait(&self, reason: PauseReason, mut over: impl FnMut() -> bool) {
        let started = Instant::now();
        self.link.tell(Event::Paused(self.job, reason.clone()));
        while !over() {
            self.control.wait(NAP);
        }
        self.pauses.borrow_mut().push((reason, started.elapsed().as_secs_f64()));
        if matches!(self.control.wish(), Wish::Run | Wish::Pause) {
            self.link.tell(Event::Resumed(self.job));
        }
    }

    /// True once after each time the person said to go on.
    pub fn take_go_anyway(&self) -> bool {
        self.control.take_go_anyway()
    }

    pub fn seconds_paused(&self) -> f64 {
        self.pauses.borrow().iter().map(|(_, seconds)| seconds).sum()
    }

    pub fn pauses(&self) -> Vec<(PauseReason, f64)> {
        self.pauses.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Latest;
    use std::sync::Arc;

    fn with(test: impl FnOnce(&JobControl, &Steering, &crossbeam_channel::Receiver<Event>)) {
        let (events, seen) = crossbeam_channel::unbounded();
        let link = Link::new(events, Latest::new(), Arc::new(|| ()));
        let control = JobControl::default();
        test(&control, &Steering::new(JobId(1), &control, &link, true), &seen);
    }

    #[test]
    fn stop_and_keep_waits_for_something_to_keep() {
        with(|control, steering, _| {
            control.stop_and_keep();
            assert!(steering.go_on());
            steering.set_can_keep(true);
            assert!(!steering.go_on());
        });
    }

    #[test]
    fn a_pause_between_layers_is_told_and_ends_with_a_cancel() {
        with(|control, steering, seen| {
            control.pause();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    control.cancel();
                });
                assert!(!steering.go_on());
            });
            assert!(matches!(seen.try_recv(), Ok(Event::Paused(_, PauseReason::Asked))));
            assert!(seen.try_recv().is_err(), "a cancelled job does not say that it goes on");
            assert!(steering.seconds_paused() > 0.02);
        });
    }

    #[test]
    fn a_phase_is_told_once() {
        with(|_, steering, seen| {
            steering.enter(Phase::Encoding);
            steering.enter(Phase::Encoding);
            assert_eq!(seen.try_iter().count(), 1);
        });
    }
}
