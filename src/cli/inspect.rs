//! `softbox inspect`: what a checkpoint, a VAE or a picture holds, told by its content before anything is loaded.

use super::args::{InspectArgs, POCKET};
use super::{Exit, Voice, report};
use crate::base::{JobError, Notice, Problem, parameters};
use crate::diffusion::config::PredictionType;
use crate::diffusion::place::Place;
use crate::diffusion::pocket;
use crate::diffusion::weights::inspect::KeyList;
use crate::diffusion::weights::{Inspection, inspect};
use crate::engine::metadata::{self, ReadError};
use crate::engine::problem_of_weights;
use crate::text::reasons::reason;
use crate::text::{cli, figures, notices, problems};
use serde_json::{Map, Value, json};
use std::path::Path;

pub fn run(args: &InspectArgs) -> Exit {
    let voice = Voice::new(&args.say);
    if let Some(folder) = pocket::folder().filter(|_| args.file.as_os_str() == POCKET) {
        return model(folder, voice);
    }
    if !args.file.exists() {
        return voice.fail(&JobError::new(Problem::FileUnreadable { path: args.file.clone() }, ""));
    }
    if args.file.is_file() {
        match metadata::read_parameters(&args.file) {
            Ok(text) => return picture(text.as_deref(), args, voice),
            Err(ReadError::NotAPicture) => {}
            Err(error) => {
                let why = reason(voice.lang, &error.reason(Path::new("")));
                let values: [(&str, &dyn std::fmt::Display); 2] = [("file", &args.file.display()), ("why", &why)];
                return voice.refuse(Exit::Input, &cli::CANNOT_READ.with(voice.lang, &values));
            }
        }
    }
    model(Place::from(&args.file), voice)
}

fn model(place: Place, voice: Voice) -> Exit {
    match inspect(&place) {
        Ok(found) => {
            say(&found, voice);
            voice.object(&described(&found));
            Exit::Done
        }
        Err(error) => voice.fail(&JobError::new(problem_of_weights(&error), error.to_string())),
    }
}

/// A picture shows its settings as they are written; as JSON also field by field.
fn picture(text: Option<&str>, args: &InspectArgs, voice: Voice) -> Exit {
    match text {
        Some(text) => voice.text(text),
        None => voice.line(&cli::NO_SETTINGS_IN.with(voice.lang, &[("file", &args.file.display())])),
    }
    let read = text.map(parameters::read);
    let settings = read.map(|read| {
        json!({
            "prompt": read.prompt,
            "negative": read.negative,
            "steps": read.steps,
            "cfg": read.cfg,
            "width": read.size.map(|size| size.width()),
            "height": read.size.map(|size| size.height()),
            "sampler": read.sampler.map(|sampler| sampler.cli_name()),
            "schedule": read.schedule.map(|schedule| schedule.cli_name()),
            "seed": read.seed,
            "rng": read.noise,
            "clip_skip": read.clip_skip,
            "model": read.facts.model,
            "model_hash": read.facts.model_hash,
            "other": read.rest.into_iter().map(|(key, value)| (key, json!(value))).collect::<Map<String, Value>>(),
        })
    });
    voice.object(
        &json!({ "file": report::path(&args.file), "kind": "picture", "parameters": text, "settings": settings }),
    );
    Exit::Done
}

fn say(found: &Inspection, voice: Voice) {
    let lang = voice.lang;
    voice.line(&problems::kind_name(lang, found.family.label()));
    voice.line(&cli::tensors(lang, found.tensors, found.stored));
    for part in &found.parts {
        let counted = cli::tensors(lang, part.tensors, part.stored);
        voice.line(&format!("  {}", figures::pair(lang, problems::part(lang, part.kind.label()), counted)));
        for (what, names) in [(cli::TENSORS_MISSING, &part.missing), (cli::TENSORS_MISSHAPEN, &part.misshapen)] {
            for name in &names.first {
                voice.line(&format!("    ! {}", figures::pair(lang, what.get(lang), name)));
            }
            if names.count > names.first.len() {
                let more = names.count - names.first.len();
                voice.line(&format!(
                    "    ! {}",
                    cli::AND_MORE.with(lang, &[("what", &what.get(lang)), ("count", &more)])
                ));
            }
        }
    }
    if found.family.is_sd1() && found.unet.is_some() {
        voice.line(if found.has_vae { cli::HAS_VAE } else { cli::CLI_NO_VAE }.get(lang));
        if found.text_encoder.is_none() {
            voice.line(cli::CLI_NO_TEXT_ENCODER.get(lang));
        }
    }
    if let Some(vae) = &found.suggested_vae {
        voice.line(&notices::notice(lang, &Notice::VaeTaken(vae.clone())));
    }
    if found.prediction == PredictionType::V {
        voice.line(&notices::notice(lang, &Notice::VPrediction));
    }
    if let Some(first) = found.unknown.first.first() {
        let notice = Notice::UnknownTensors { count: found.unknown.count, first: first.clone() };
        voice.line(&notices::notice(lang, &notice));
    }
}

fn described(found: &Inspection) -> Value {
    let keys = |list: &KeyList| json!({ "count": list.count, "first": list.first });
    let parts: Vec<Value> = found
        .parts
        .iter()
        .map(|part| {
            json!({
                "part": part.kind.label(),
                "tensors": part.tensors,
                "values": part.values,
                "bytes": part.stored.0,
                "missing": keys(&part.missing),
                "misshapen": keys(&part.misshapen),
            })
        })
        .collect();
    let types: Map<String, Value> =
        found.dtypes.iter().map(|(dtype, count)| (dtype.to_string(), json!(count))).collect();
    json!({
        "file": report::path(&found.path),
        "kind": found.family.label(),
        "folder": found.is_folder,
        "tensors": found.tensors,
        "bytes": found.stored.0,
        "types": types,
        "parts": parts,
        "has_vae": found.has_vae,
        "suggested_vae": found.suggested_vae.as_deref().map(report::path),
        "prediction": match found.prediction {
            PredictionType::Epsilon => "epsilon",
            PredictionType::V => "v",
        },
        "ignored": found.ignored,
        "unknown": keys(&found.unknown),
        "metadata": found.metadata,
    })
}
