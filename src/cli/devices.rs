//! `softbox devices`: what can calculate here, checked by a first small product, and what the others lack.

use super::args::DevicesArgs;
use super::follow::device_name;
use super::{Exit, Voice, report};
use crate::base::{DeviceChoice, Lang};
use crate::engine::device::{self, Candidate, OpenError};
use crate::text::cli;
use crate::text::reasons::reason;
use serde_json::{Value, json};
use std::panic;

pub fn run(args: &DevicesArgs) -> Exit {
    let voice = Voice::new(&args.say);
    let probe = device::probe();
    let checked: Vec<(&Candidate, Result<(), OpenError>)> =
        probe.devices.iter().map(|candidate| (candidate, if args.quick { Ok(()) } else { check(candidate) })).collect();
    let automatic = checked.iter().find(|(candidate, opened)| opened.is_ok() && !candidate.software);

    for (candidate, opened) in &checked {
        let device = format!("{}  {}", device_name(candidate.choice), candidate.label());
        voice.line(&match (opened, candidate.total) {
            (Err(error), _) => cli::DEVICE_NOT_USABLE
                .with(voice.lang, &[("device", &device), ("why", &reason(voice.lang, &error.reason()))]),
            (Ok(()), Some(total)) => {
                cli::DEVICE_USABLE_MEMORY.with(voice.lang, &[("device", &device), ("memory", &total)])
            }
            (Ok(()), None) => cli::DEVICE_USABLE.with(voice.lang, &[("device", &device)]),
        });
    }
    // A software renderer is usable when named, and passed over by itself; once is enough.
    let listed = |name: &str| probe.devices.iter().any(|candidate| candidate.label() == name);
    for passed in probe.passed_over.iter().filter(|passed| !listed(&passed.device)) {
        voice.line(
            &cli::DEVICE_NOT_USABLE
                .with(voice.lang, &[("device", &passed.device), ("why", &reason(voice.lang, &passed.why))]),
        );
        if let Some(command) = &passed.command {
            voice.line(&cli::DEVICE_COMMAND.with(voice.lang, &[("command", command)]));
        }
    }
    if let Some((candidate, _)) = automatic {
        voice.line(&cli::DEVICE_TAKEN.with(voice.lang, &[("device", &candidate.label())]));
    }
    voice.object(&json!({
        "devices": checked.iter().map(|(candidate, opened)| described(candidate, opened)).collect::<Vec<Value>>(),
        "passed_over": probe.passed_over.iter().map(report::passed_over).collect::<Vec<Value>>(),
        "auto": automatic.map(|(candidate, _)| device_name(candidate.choice)),
    }));
    if automatic.is_some() { Exit::Done } else { Exit::Device }
}

/// Opens a device for a moment. What the GPU stack prints when it panics is in the error already.
fn check(candidate: &Candidate) -> Result<(), OpenError> {
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let opened = device::open_candidate(candidate).map(drop);
    panic::set_hook(before);
    opened
}

fn described(candidate: &Candidate, opened: &Result<(), OpenError>) -> Value {
    json!({
        "device": device_name(candidate.choice),
        "name": candidate.name,
        "usable": opened.is_ok(),
        "why_not": opened.as_ref().err().map(|error| reason(Lang::En, &error.reason())),
        "backend": match candidate.choice {
            DeviceChoice::Cuda(_) => "cuda",
            DeviceChoice::Vulkan(_) => "vulkan",
            DeviceChoice::Cpu | DeviceChoice::Auto => "cpu",
        },
        "total": report::bytes(candidate.total),
        "f16": candidate.f16,
        "bf16": candidate.bf16,
        "software": candidate.software,
        "uuid": candidate.uuid,
        "pci": candidate.pci,
    })
}
