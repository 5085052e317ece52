//! `softbox memory`: one reading of the device's memory, part by part.

use super::args::MemoryArgs;
use super::{Exit, Voice, follow, report};
use crate::base::{Bytes, JobError, MemoryReading, Notice, Problem, Reason};
use crate::engine::EngineSettings;
use crate::engine::device;
use crate::engine::protocol::{Command, DeviceStatus, EngineHandle, Event};
use crate::text::{figures, memory, notices};
use serde_json::json;
use std::time::{Duration, Instant};

/// Opening a device compiles its first kernels, which takes a while where none are kept yet.
const LONGEST_START: Duration = Duration::from_secs(60);
/// A reading comes four times a second; a gauge that says nothing for so long says nothing.
const LONGEST_READING: Duration = Duration::from_secs(5);

pub fn run(args: &MemoryArgs) -> Exit {
    let voice = Voice::new(&args.say);
    let probe = device::probe();
    if probe.find(args.device).is_none() {
        return voice.fail(&device::not_offered(args.device, &probe).into());
    }
    let settings = EngineSettings {
        device: args.device,
        limits: args.limits.limits(),
        gauge_script: args.limits.gauge_script.clone(),
        at_checkpoint: None,
    };
    let engine = match follow::start(settings, voice) {
        Ok(engine) => engine,
        Err(exit) => return exit,
    };
    let status = wait_for_device(&engine, voice);
    let read = status.as_ref().and_then(|_| wait_for_reading(&engine));
    // The engine may have ended by itself; then there is nobody left to tell.
    drop(engine.commands.send(Command::Shutdown));
    let (Some(status), Some(reading)) = (status, read) else {
        let (device, why) = (follow::device_name(args.device), Reason::NoReading);
        return voice.fail(&JobError::new(Problem::DeviceUnavailable { device, why }, ""));
    };
    say(&reading, &status, voice);
    let mut object = report::reading(&reading);
    object["device"] = json!(status.name);
    object["limit"] = json!(args.limits.pause_at);
    voice.object(&object);
    Exit::Done
}

fn wait_for_device(engine: &EngineHandle, voice: Voice) -> Option<DeviceStatus> {
    let until = Instant::now() + LONGEST_START;
    loop {
        match engine.events.recv_deadline(until).ok()? {
            Event::Device(status) => return Some(status),
            Event::Notice(_, notice @ Notice::GaugeUnknown(_)) => voice.note(&notices::notice(voice.lang, &notice)),
            _ => {}
        }
    }
}

fn wait_for_reading(engine: &EngineHandle) -> Option<MemoryReading> {
    let until = Instant::now() + LONGEST_READING;
    loop {
        if let Some(reading) = engine.readings.take() {
            return Some(reading);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn say(reading: &MemoryReading, status: &DeviceStatus, voice: Voice) {
    let lang = voice.lang;
    voice.line(&status.name);
    let line = |name: crate::text::Phrase, amount: Option<Bytes>| {
        voice.line(&figures::pair(lang, name.get(lang), memory::amount(lang, amount)));
    };
    line(memory::TOTAL, reading.total);
    line(memory::IN_USE, reading.ours_in_use);
    line(memory::POOLED, reading.ours_pooled);
    line(memory::CONTEXT, reading.ours_context);
    line(memory::OTHERS, reading.others);
    line(memory::RESERVED, reading.reserved);
    line(memory::FREE, reading.free);
    if let Some(share) = reading.share_used() {
        voice.line(&memory::SHARE_USED.with(lang, &[("share", &figures::percent(share))]));
    }
    if let Some(share) = reading.share_active() {
        voice.line(&memory::SHARE_ACTIVE.with(lang, &[("share", &figures::percent(share))]));
    }
    for why in &reading.unknown_because {
        voice.note(&notices::notice(lang, &Notice::GaugeUnknown(why.clone())));
    }
}
