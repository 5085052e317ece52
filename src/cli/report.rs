//! The JSON that the commands print: one object each, with names that scripts can hold on to. Bytes are whole numbers,
//! times are seconds, unknown is `null`.

use super::Exit;
use super::follow::{Outcome, device_name};
use crate::base::{Bytes, JobError, Lang, MemoryReading, ModelChoice, ShotRequest, VaeChoice};
use crate::engine::protocol::{PassedOver, PauseReason, Setup, Summary};
use crate::text::notices;
use crate::text::reasons::reason;
use serde_json::{Value, json};
use std::path::Path;

/// What `generate` made.
pub fn generated(outcome: &Outcome, request: &ShotRequest, setup: &Setup, latents: Option<&Path>) -> Value {
    let files: Vec<Value> = outcome.shots.iter().map(|shot| shot.file.as_deref().map_or(Value::Null, path)).collect();
    let seeds: Vec<u64> = outcome.shots.iter().map(|shot| shot.request.seed).collect();
    let said: Vec<String> = outcome.notices.iter().map(|notice| notices::notice(Lang::En, notice)).collect();
    let mut object = json!({
        "files": files,
        "seeds": seeds,
        "model": setup.model.name(),
        "noise": setup.model == ModelChoice::RandomSd15,
        "vae": if let VaeChoice::Path(file) = &setup.vae { path(file) } else { Value::Null },
        "device": outcome.device.as_ref().map(|status| status.name.clone()),
        "device_choice": outcome.device.as_ref().map(|status| device_name(status.choice)),
        "width": request.size.width(),
        "height": request.size.height(),
        "steps": request.steps,
        "cfg": request.cfg,
        "sampler": request.sampler.cli_name(),
        "schedule": request.schedule.cli_name(),
        "rng": request.noise,
        "clip_skip": request.clip_skip,
        "latents": latents.map(path),
        "start_seconds": rounded(outcome.start_seconds),
        "interrupted": outcome.interrupted,
        "notices": said,
    });
    let errors = outcome.shots.iter().filter_map(|shot| shot.save_error.as_ref());
    let errors: Vec<String> = errors.map(|why| reason(Lang::En, why)).collect();
    if !errors.is_empty() {
        object["save_errors"] = json!(errors);
    }
    if let Some(summary) = &outcome.summary {
        object["device"] = json!(summary.device);
        object["dtype"] = json!(summary.precision.label());
        object["seconds"] = seconds(summary);
        object["peak_memory"] = peaks(summary);
        object["pauses"] = summary.pauses.iter().map(|(reason, seconds)| pause(reason, *seconds)).collect();
    }
    object
}

/// Where the time of a job went. `load`, `encode`, the `steps`, `decode`, `save` and `paused` make up `total`.
pub fn seconds(summary: &Summary) -> Value {
    let seconds = &summary.seconds;
    json!({
        "load": rounded(seconds.load),
        "encode": rounded(seconds.encode),
        "steps": seconds.steps.iter().copied().map(rounded).collect::<Vec<f64>>(),
        "decode": rounded(seconds.decode),
        "save": rounded(seconds.save),
        "paused": rounded(seconds.paused),
        "total": rounded(seconds.total),
    })
}

/// `ours` is what the driver counts as this program's, `pools` the part of it that our tensors and pools held, `device`
/// the whole card with all programs.
pub fn peaks(summary: &Summary) -> Value {
    json!({
        "ours": bytes(summary.peak_process.or(summary.peak_ours)),
        "pools": bytes(summary.peak_ours),
        "device": bytes(summary.peak_device),
    })
}

fn pause(reason: &PauseReason, seconds: f64) -> Value {
    match reason {
        PauseReason::Asked => json!({ "reason": "asked", "seconds": rounded(seconds) }),
        PauseReason::LowMemory { step, used, limit, others } => json!({
            "reason": "low-memory",
            "step": step,
            "used": used,
            "limit": limit,
            "others": bytes(*others),
            "seconds": rounded(seconds),
        }),
    }
}

/// What went wrong, in place of a result.
pub fn failure(headline: &str, error: &JobError, exit: Exit) -> Value {
    json!({ "error": { "message": headline, "details": error.details, "exit_code": exit as u8 } })
}

/// A reading of the device's memory.
pub fn reading(reading: &MemoryReading) -> Value {
    json!({
        "total": bytes(reading.total),
        "in_use": bytes(reading.ours_in_use),
        "pooled": bytes(reading.ours_pooled),
        "context": bytes(reading.ours_context),
        "others": bytes(reading.others),
        "reserved": bytes(reading.reserved),
        "free": bytes(reading.free),
        "share_used": reading.share_used(),
        "share_active": reading.share_active(),
        "unknown_because": reading.unknown_because.iter().map(|why| reason(Lang::En, why)).collect::<Vec<_>>(),
    })
}

pub fn passed_over(passed: &PassedOver) -> Value {
    json!({ "device": passed.device, "why": reason(Lang::En, &passed.why), "command": passed.command })
}

/// A path as text. JSON has no other, so what of it is not UTF-8 is shown as U+FFFD.
pub fn path(path: &Path) -> Value {
    json!(path.to_string_lossy())
}

pub fn bytes(amount: Option<Bytes>) -> Value {
    amount.map_or(Value::Null, |amount| json!(amount.0))
}

/// To the microsecond: more digits are noise. Never "-0.0".
pub fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{DeviceChoice, Precision};
    use crate::engine::protocol::Seconds;

    fn setup() -> Setup {
        Setup {
            model: ModelChoice::RandomSd15,
            vae: VaeChoice::Automatic,
            device: DeviceChoice::Auto,
            precision: Precision::Auto,
            v_prediction: None,
            ema: false,
        }
    }

    #[test]
    fn the_object_holds_figures_and_nulls_never_zeros_for_unknown() {
        let seconds = Seconds { load: 1.0, steps: vec![0.25, 0.5], total: 1.8, ..Seconds::default() };
        let reason = PauseReason::LowMemory { step: 3, used: 0.95, limit: 0.9, others: None };
        let summary = Summary {
            device: "CPU".to_owned(),
            precision: Precision::F32,
            images: 1,
            seconds,
            peak_ours: Some(Bytes::mib(1)),
            pauses: vec![(reason, 2.0)],
            ..Summary::default()
        };
        let outcome = Outcome { summary: Some(summary), ..Outcome::default() };
        let object = generated(&outcome, &ShotRequest::default(), &setup(), None);
        assert_eq!(object["noise"], json!(true));
        assert_eq!(object["seconds"]["steps"], json!([0.25, 0.5]));
        assert_eq!(object["peak_memory"], json!({ "ours": 1 << 20, "pools": 1 << 20, "device": null }));
        assert_eq!(object["pauses"][0]["reason"], json!("low-memory"));
        assert_eq!((&object["dtype"], &object["latents"]), (&json!("f32"), &Value::Null));
    }

    #[test]
    fn seeds_stay_whole_numbers_of_64_bits() {
        let text = json!({ "seeds": [u64::MAX] }).to_string();
        assert_eq!(text, r#"{"seeds":[18446744073709551615]}"#);
    }

    #[test]
    #[cfg(unix)]
    fn a_path_that_is_not_utf8_is_told_as_far_as_it_is() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(path(Path::new(std::ffi::OsStr::from_bytes(b"caf\xff.png"))), json!("caf\u{fffd}.png"));
    }

    #[test]
    fn an_unknown_reading_is_null() {
        let object = reading(&MemoryReading { free: Some(Bytes(5)), ..MemoryReading::default() });
        assert_eq!((&object["free"], &object["total"], &object["share_used"]), (&json!(5), &Value::Null, &Value::Null));
    }
}
