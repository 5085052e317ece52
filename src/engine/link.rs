//! The engine's end of the channels.

use super::protocol::{Event, Preview};
use crate::base::Latest;
use crossbeam_channel::Sender;
use std::sync::Arc;

/// Tells the other side what happens. A side that is gone is no reason to stop: finished pictures are still written.
#[derive(Clone)]
pub struct Link {
    events: Sender<Event>,
    previews: Latest<Preview>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Link {
    pub fn new(events: Sender<Event>, previews: Latest<Preview>, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Link { events, previews, wake }
    }

    pub fn tell(&self, event: Event) {
        if self.events.send(event).is_ok() {
            (self.wake)();
        }
    }

    pub fn show(&self, preview: Preview) {
        self.previews.put(preview);
        (self.wake)();
    }
}
