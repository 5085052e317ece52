//! The engine's end of the command channel. A job listens between layers, so that the end of the program is noticed at
//! once; everything else that was commanded waits for the next step boundary.

use super::protocol::Command;
use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

/// What was commanded and is not obeyed yet. Shared by the worker and the steering of its job, on one thread.
pub struct Inbox {
    commands: Receiver<Command>,
    heard: RefCell<VecDeque<Command>>,
    ending: Cell<bool>,
    abandoned: Cell<bool>,
}

impl Inbox {
    pub fn new(commands: Receiver<Command>) -> Self {
        Inbox { commands, heard: RefCell::default(), ending: Cell::new(false), abandoned: Cell::new(false) }
    }

    /// Takes in what was commanded since the last time. Costs next to nothing where nothing was.
    pub fn listen(&self) {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.hear(command),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.abandoned.set(true),
            }
        }
    }

    /// Listens, for at most so long if nothing comes. False after silence.
    pub fn wait(&self, at_most: Duration) -> bool {
        match self.commands.recv_timeout(at_most) {
            Ok(command) => self.hear(command),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => self.abandoned.set(true),
        }
        true
    }

    /// The next command to obey, in the order in which they were given. The shutdown is none of them.
    pub fn next(&self) -> Option<Command> {
        self.heard.borrow_mut().pop_front()
    }

    /// The thread was told to end.
    pub fn ending(&self) -> bool {
        self.ending.get()
    }

    /// Nobody can command any more, and all that was commanded has been heard.
    pub fn abandoned(&self) -> bool {
        self.abandoned.get()
    }

    fn hear(&self, command: Command) {
        match command {
            Command::Shutdown => self.ending.set(true),
            command => self.heard.borrow_mut().push_back(command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_is_noticed_before_what_was_commanded_earlier_is_obeyed() {
        let (sender, commands) = crossbeam_channel::unbounded();
        let inbox = Inbox::new(commands);
        sender.send(Command::Clean).unwrap();
        sender.send(Command::Shutdown).unwrap();
        assert!(!inbox.ending());
        inbox.listen();
        assert!(inbox.ending() && !inbox.abandoned());
        assert!(matches!(inbox.next(), Some(Command::Clean)));
        assert!(inbox.next().is_none());
        assert!(!inbox.wait(Duration::ZERO), "silence");
        sender.send(Command::Clean).unwrap();
        drop(sender);
        inbox.listen();
        assert!(inbox.abandoned() && inbox.next().is_some());
    }
}
