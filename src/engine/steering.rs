//! How a running job heeds the person: the question that is asked between layers, and the waiting when they paused.

use super::AtCheckpoint;
use super::inbox::Inbox;
use super::link::Link;
use super::protocol::{Event, Job, JobControl, PauseReason, Wish};
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
    inbox: &'a Inbox,
    at_checkpoint: Option<&'a AtCheckpoint>,
    /// On the CPU a layer takes long, so a pause waits between layers; a GPU has the whole step queued within moments, and
    /// waits at the step's end. While loading, both wait between tensors.
    waits_between_layers: Cell<bool>,
    phase: Cell<Phase>,
    /// Whether there is a predicted picture, so that stop-and-keep may break off the step that runs.
    can_keep: Cell<bool>,
    pauses: RefCell<Vec<(PauseReason, f64)>>,
}

impl<'a> Steering<'a> {
    pub fn new(job: &'a Job, link: &'a Link, inbox: &'a Inbox, at_checkpoint: Option<&'a AtCheckpoint>) -> Self {
        Steering {
            job: job.id,
            control: &job.control,
            link,
            inbox,
            at_checkpoint,
            waits_between_layers: Cell::new(false),
            phase: Cell::new(Phase::Loading),
            can_keep: Cell::new(false),
            pauses: RefCell::default(),
        }
    }

    /// Whether a pause may wait in the middle of a step.
    pub fn set_waits_between_layers(&self, waits: bool) {
        self.waits_between_layers.set(waits);
    }

    /// Enters a phase and tells so, unless the job is in it already.
    pub fn enter(&self, phase: Phase) {
        if self.phase.replace(phase) != phase {
            self.link.tell(Event::Phase(self.job, phase));
        }
        self.checkpoint();
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

    /// A place where a job may be steered: lets whoever watches act, and notices the end of the program.
    pub fn checkpoint(&self) {
        if let Some(hook) = self.at_checkpoint {
            hook.call(self.phase.get());
        }
        self.listen();
    }

    /// The question between layers. False breaks off what runs.
    pub fn go_on(&self) -> bool {
        self.checkpoint();
        let waits = self.waits_between_layers.get() || self.phase.get() == Phase::Loading;
        if waits && self.control.wish() == Wish::Pause {
            self.wait_while_paused(|| ());
        }
        !self.breaks_off()
    }

    /// Whether what runs or waits is no longer wanted: after a cancel, and after a stop-and-keep if there is something to
    /// keep. Without that the run goes on until there is.
    pub fn breaks_off(&self) -> bool {
        match self.control.wish() {
            Wish::Run | Wish::Pause => false,
            Wish::StopAndKeep => self.can_keep.get(),
            Wish::Cancel => true,
        }
    }

    /// Waits as long as the person keeps the job paused; `meanwhile` is called four times a second.
    pub fn wait_while_paused(&self, mut meanwhile: impl FnMut()) {
        if self.control.wish() != Wish::Pause {
            return;
        }
        self.wait(PauseReason::Asked, || {
            meanwhile();
            self.control.wish() != Wish::Pause
        });
        // Going on after this pause says nothing about one for memory.
        self.take_go_anyway();
    }

    /// Tells of a pause, waits until `over` says so, and tells that the job goes on unless it was cancelled.
    pub fn wait(&self, reason: PauseReason, mut over: impl FnMut() -> bool) {
        let started = Instant::now();
        self.link.tell(Event::Paused(self.job, reason.clone()));
        loop {
            self.listen();
            if self.inbox.abandoned() {
                // Nobody is left to end the pause.
                self.control.cancel();
            }
            if over() {
                break;
            }
            self.control.wait(NAP);
        }
        self.pauses.borrow_mut().push((reason, started.elapsed().as_secs_f64()));
        if self.control.wish() != Wish::Cancel {
            self.link.tell(Event::Resumed(self.job));
        }
    }

    /// True once after each time the person said to go on.
    pub fn take_go_anyway(&self) -> bool {
        self.control.take_go_anyway()
    }

    /// 0 without a pause, and never the −0 that an empty sum is.
    pub fn seconds_paused(&self) -> f64 {
        self.pauses.borrow().iter().fold(0.0, |sum, (_, seconds)| sum + seconds)
    }

    pub fn pauses(&self) -> Vec<(PauseReason, f64)> {
        self.pauses.borrow().clone()
    }

    fn listen(&self) {
        self.inbox.listen();
        if self.inbox.ending() {
            self.control.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{DeviceChoice, Latest, ModelChoice, OutputPlan, Precision, ShotRequest, VaeChoice};
    use crate::engine::protocol::{Command, Setup};
    use crossbeam_channel::{Receiver, Sender};
    use std::sync::Arc;

    fn with(test: impl FnOnce(&JobControl, &Steering, &Receiver<Event>, Sender<Command>)) {
        let (events, seen) = crossbeam_channel::unbounded();
        let (commander, commands) = crossbeam_channel::unbounded();
        let link = Link::new(events, Latest::new(), Arc::new(|| ()));
        let setup = Setup {
            model: ModelChoice::RandomSd15,
            vae: VaeChoice::Automatic,
            device: DeviceChoice::Cpu,
            precision: Precision::F32,
            v_prediction: None,
            ema: false,
        };
        let job = Job {
            id: JobId(1),
            request: ShotRequest::default(),
            setup,
            output: OutputPlan::Keep,
            keep_latents: false,
            control: Arc::default(),
        };
        let inbox = Inbox::new(commands);
        let steering = Steering::new(&job, &link, &inbox, None);
        steering.set_waits_between_layers(true);
        test(&job.control, &steering, &seen, commander);
    }

    #[test]
    fn stop_and_keep_waits_for_something_to_keep() {
        with(|control, steering, _, _commander| {
            control.stop_and_keep();
            assert!(steering.go_on());
            steering.set_can_keep(true);
            assert!(!steering.go_on());
        });
    }

    #[test]
    fn a_pause_between_layers_is_told_and_ends_with_a_cancel() {
        with(|control, steering, seen, _commander| {
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
        with(|_, steering, seen, _commander| {
            steering.enter(Phase::Encoding);
            steering.enter(Phase::Encoding);
            assert_eq!(seen.try_iter().count(), 1);
        });
    }

    #[test]
    fn a_pause_that_nobody_can_end_is_a_cancel() {
        for told in [true, false] {
            with(|control, steering, _, commander| {
                control.pause();
                if told {
                    commander.send(Command::Shutdown).unwrap();
                } else {
                    drop(commander);
                }
                assert!(!steering.go_on());
                assert_eq!(control.wish(), Wish::Cancel);
            });
        }
    }

    #[test]
    fn going_on_after_a_pause_allows_nothing_about_memory() {
        with(|control, steering, _, _commander| {
            control.pause();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    control.resume();
                });
                assert!(steering.go_on());
            });
            assert!(!steering.take_go_anyway());
        });
    }

    #[test]
    fn without_a_pause_no_time_is_paused() {
        with(|_, steering, _, _commander| assert!(steering.seconds_paused().is_sign_positive()));
    }
}
