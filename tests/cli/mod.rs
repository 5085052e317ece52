//! The program itself, run as a script would run it: exit codes, the one JSON object on standard output, and files.

use crate::engine::stage::data;
use serde_json::Value;
use softbox::diffusion::weights::Archive;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn softbox(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softbox"));
    command.args(arguments).env("LC_ALL", "C").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (i32, Output) {
    let output = softbox(arguments).output().unwrap();
    (output.status.code().expect("ended by itself"), output)
}

/// Runs with `--json`; standard output holds one object and nothing else.
fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, output) = run(&[arguments, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}")))
}

/// `generate` with the tiny model on the CPU, in `folder`.
fn generate(folder: &Path, more: &[&str]) -> (i32, Value) {
    json(&[&tiny(folder).iter().map(String::as_str).collect::<Vec<_>>(), more].concat())
}

fn tiny(folder: &Path) -> Vec<String> {
    let (model, out) = (data("tiny-a"), folder.to_owned());
    let words = ["generate", "--device", "cpu", "--prompt", "a photo of a cat", "--seed", "3", "--model"];
    let paths = [model.display().to_string(), "--out".to_owned(), out.display().to_string()];
    words.iter().map(|word| (*word).to_owned()).chain(paths).collect()
}

#[test]
fn generate_makes_files_and_says_where_the_time_went() {
    let folder = tempfile::tempdir().unwrap();
    let latents = folder.path().join("latents.safetensors");
    let more = ["--steps", "60", "--size", "128x136", "--count", "2", "--save-latents", latents.to_str().unwrap()];
    let (code, object) = generate(folder.path(), &more);
    assert_eq!(code, 0, "{object}");
    assert_eq!(object["seeds"], serde_json::json!([3, 4]));
    for file in object["files"].as_array().unwrap() {
        let picture = image::open(file.as_str().unwrap()).unwrap();
        assert_eq!((picture.width(), picture.height()), (128, 136));
    }
    let archive = Archive::open(&latents).unwrap();
    assert_eq!(archive.get("latents").unwrap().shape, [2, 4, 17, 16]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);

    let seconds = &object["seconds"];
    let part = |name: &str| seconds[name].as_f64().unwrap();
    let steps: Vec<f64> = seconds["steps"].as_array().unwrap().iter().map(|step| step.as_f64().unwrap()).collect();
    assert_eq!(steps.len(), 120);
    let parts =
        ["load", "encode", "decode", "save", "paused"].map(part).iter().sum::<f64>() + steps.iter().sum::<f64>();
    let total = part("total");
    assert!(total > 0.5, "too short to say anything: {total}");
    assert!((parts / total - 1.0).abs() < 0.1, "{parts} of {total}");
    assert!(object["peak_memory"]["ours"].as_u64() > Some(0) && object["pauses"] == serde_json::json!([]));
    assert_eq!((&object["device"], &object["dtype"]), (&"CPU".into(), &"f32".into()));
}

#[test]
fn out_is_a_file_or_a_folder_and_the_picture_tells_its_settings_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cat.jpg");
    let small = ["--steps", "2", "--size", "64x64", "--sampler", "euler-a", "--rng", "cpu"];
    let (code, object) = generate(&file, &small);
    assert_eq!((code, &object["files"][0]), (0, &file.to_str().unwrap().into()));
    let (code, seen) = json(&["inspect", file.to_str().unwrap()]);
    assert_eq!((code, &seen["kind"]), (0, &"picture".into()));
    let settings = &seen["settings"];
    assert_eq!(
        (&settings["seed"], &settings["sampler"], &settings["steps"]),
        (&3.into(), &"euler-a".into(), &2.into())
    );
    assert_eq!((&settings["prompt"], &settings["rng"]), (&"a photo of a cat".into(), &object["rng"]));
    // A folder is made, and nothing in it is overwritten.
    let below = folder.path().join("new/folder");
    for count in 1..=2 {
        assert_eq!(generate(&below, &small).0, 0);
        assert_eq!(fs::read_dir(&below).unwrap().count(), count);
    }
}

#[test]
fn exit_codes_tell_what_kind_of_thing_went_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--steps", "2", "--size", "64x64"];
    let with = |more: &[&str]| generate(folder.path(), &[&small[..], more].concat());
    let object = |(code, object): (i32, Value)| {
        assert!(!object["error"]["message"].as_str().unwrap_or_default().is_empty(), "{object}");
        assert_eq!(object["error"]["exit_code"], code);
        code
    };
    // Wrong usage: by itself, and in what goes with what.
    assert_eq!(run(&["generate", "--model", "x", "--size", "65x64"]).0, 2);
    assert_eq!(run(&["paint"]).0, 2);
    assert_eq!(object(with(&["--sampler", "ddim", "--schedule", "karras"])), 2);
    // Bad input: a model that is not there or another kind of file, a script that is none.
    assert_eq!(object(with(&["--vae", "/nothing.safetensors"])), 3);
    let vae = data("vae-ldm.safetensors");
    let other = ["generate", "--device", "cpu", "--model", vae.to_str().unwrap()];
    assert_eq!(object(json(&other)), 3);
    let script = folder.path().join("script");
    fs::write(&script, "hello\n").unwrap();
    let script = script.to_str().unwrap();
    assert_eq!(object(with(&["--gauge-script", script])), 3);
    // Memory.
    assert_eq!(object(with(&["--memory-budget", "8MiB"])), 4);
    // Editors may begin a file with a mark.
    fs::write(script, "\u{feff}0 0.25 0.24\n").unwrap();
    assert_eq!(object(with(&["--gauge-script", script])), 4);
    // No such device. The last of two words for the same option would be refused as usage.
    let model = data("tiny-a");
    assert_eq!(object(json(&["generate", "--device", "cuda:77", "--model", model.to_str().unwrap()])), 5);
    // A place that cannot be written to is found before the run.
    let blocked = folder.path().join("script").join("below");
    assert_eq!(object(generate(&blocked, &small)), 3);
    // What clap refuses is an object too.
    assert_eq!(object(with(&["--size", "8x8"])), 2);
    assert_eq!(object(with(&["--count", "-1"])), 2);
    assert_eq!(object(with(&["--clip-skip", "12"])), 2);
}

/// The tiny single file with its bytes changed, in `folder`.
fn changed(folder: &Path, name: &str, change: impl FnOnce(&Archive, &mut Vec<u8>)) -> String {
    let whole = data("tiny-single.safetensors");
    let mut bytes = fs::read(&whole).unwrap();
    change(&Archive::open(&whole).unwrap(), &mut bytes);
    let file = folder.join(name);
    fs::write(&file, bytes).unwrap();
    file.display().to_string()
}

fn picture_of(model: &str, folder: &Path) -> (Value, image::RgbImage) {
    let file = folder.join("picture.png").display().to_string();
    let arguments = ["generate", "--device", "cpu", "--model", model, "--steps", "2", "--size", "64x64", "--seed", "1"];
    let (code, object) = json(&[&arguments[..], &["--out", &file]].concat());
    assert_eq!(code, 0, "{object}");
    (object, image::open(file).unwrap().to_rgb8())
}

#[test]
fn no_slip_of_an_option_costs_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let model = changed(folder.path(), "m.safetensors", |_, _| {});
    let as_picture = changed(folder.path(), "m.png", |_, _| {});
    let before = fs::read(&model).unwrap();
    let arguments = ["generate", "--device", "cpu", "--model", &model, "--steps", "1", "--size", "64x64"];
    let out = folder.path().join("out").display().to_string();
    for more in [
        ["--save-latents", model.as_str(), "--out", out.as_str()],
        ["--save-latents", &out, "--out", &as_picture],
        ["--save-latents", &folder.path().display().to_string(), "--out", &out],
    ] {
        let (code, object) = json(&[&arguments[..], &more].concat());
        assert_eq!(code, 2, "{object}");
    }
    assert_eq!((fs::read(&model).unwrap(), fs::read(&as_picture).unwrap()), (before.clone(), before));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_picture_of_one_colour_is_not_saved_silently() {
    let folder = tempfile::tempdir().unwrap();
    let model = changed(folder.path(), "black.safetensors", |archive, bytes| {
        let bias = archive.get("first_stage_model.decoder.conv_out.bias").unwrap();
        let value = match bias.dtype.to_string().as_str() {
            "F16" => half::f16::from_f32(-60000.0).to_le_bytes().to_vec(),
            _ => (-60000f32).to_le_bytes().to_vec(),
        };
        let (start, end) = (bias.start as usize, bias.end as usize);
        bytes[start..end].chunks_exact_mut(value.len()).for_each(|slot| slot.copy_from_slice(&value));
    });
    let (object, picture) = picture_of(&model, folder.path());
    assert!(picture.as_raw().iter().all(|value| *value == 0));
    let notices = object["notices"].to_string();
    assert!(notices.contains("black"), "{notices}");
    let whole = data("tiny-single.safetensors").display().to_string();
    assert!(!picture_of(&whole, folder.path()).0["notices"].to_string().contains("colour"));
}

#[test]
fn a_checkpoint_of_averaged_weights_alone_makes_the_same_picture() {
    let folder = tempfile::tempdir().unwrap();
    let model = changed(folder.path(), "ema.safetensors", |_, bytes| {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: serde_json::Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let averaged = |name: String| match name.strip_prefix("model.diffusion_model.") {
            Some(rest) => format!("model_ema.diffusion_model{}", rest.replace('.', "")),
            None => name,
        };
        let renamed: serde_json::Map<String, Value> =
            header.into_iter().map(|(name, entry)| (averaged(name), entry)).collect();
        let text = serde_json::to_vec(&renamed).unwrap();
        let rest = bytes.split_off(8 + length);
        *bytes = [&(text.len() as u64).to_le_bytes()[..], &text, &rest].concat();
    });
    let whole = data("tiny-single.safetensors").display().to_string();
    assert_eq!(picture_of(&model, folder.path()).1, picture_of(&whole, folder.path()).1);
    let (code, seen) = json(&["inspect", &model]);
    assert_eq!((code, &seen["kind"]), (0, &"SD1.5 checkpoint".into()));
    assert!(seen["parts"].to_string().contains("UNet (EMA)"), "{seen}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_stream_that_takes_nothing_ends_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut command = softbox(&["generate", "--device", "cpu", "--steps", "1", "--size", "64x64", "--out", "x.png"]);
    command.arg("--model").arg(data("tiny-a")).env("RUST_LOG", "debug").current_dir(folder.path());
    assert_eq!(command.stderr(full()).stdout(Stdio::null()).status().unwrap().code(), Some(0));
    assert!(folder.path().join("x.png").is_file());
    // A result that somebody wanted and did not get is a failure.
    let mut command = softbox(&["devices", "--quick", "--json"]);
    assert_eq!(command.stdout(full()).stderr(Stdio::null()).status().unwrap().code(), Some(3));
}

#[test]
#[cfg(target_os = "linux")]
fn files_need_no_name_in_utf8_and_are_files() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"caf\xff.safetensors"));
    fs::copy(data("tiny-single.safetensors"), &odd).unwrap();
    let seen = softbox(&["inspect", "--json"]).arg(&odd).output().unwrap();
    assert_eq!((seen.status.code(), seen.stdout.is_empty()), (Some(0), false));
    let mut command = softbox(&["generate", "--device", "cpu", "--steps", "1", "--size", "64x64", "--json", "--out"]);
    let made = command.arg(folder.path()).arg("--model").arg(&odd).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(json(&["inspect", "/dev/zero"]).0, 3);
}

#[test]
fn a_place_that_is_lost_during_the_run_costs_no_picture() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let (out, here) = (folder.path().join("out"), folder.path().join("here"));
    fs::create_dir(&here).unwrap();
    let arguments = tiny(&out);
    let mut command = softbox(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.args(["--steps", "100", "--size", "64x64", "--json"]).current_dir(&here);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("1/100"))).expect("a first step").unwrap();
    // A file takes the place of the folder to be.
    fs::write(&out, "in the way").unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{object}");
    assert_eq!(object["save_errors"].as_array().map(Vec::len), Some(1));
    let file = object["files"][0].as_str().unwrap();
    assert!(image::open(file).is_ok() && file.starts_with(fs::canonicalize(&here).unwrap().to_str().unwrap()));
    assert!(rest.iter().any(|line| line.contains(file)), "{rest:?}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_the_job_cleanly() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let arguments = tiny(folder.path());
    let mut command = softbox(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.args(["--steps", "1000", "--size", "128x128", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // A step is done, so the job is in its midst.
    lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("1/1000"))).expect("a first step").unwrap();
    let asked = std::time::Instant::now();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed().as_secs_f64() < 2.0, "{:?}", asked.elapsed());
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["interrupted"], &object["files"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing half done is left");
}

#[test]
fn inspect_names_what_a_file_is() {
    for (name, kind_has_vae) in [("tiny-a", true), ("tiny-single.safetensors", true), ("vae-bare.safetensors", true)] {
        let (code, object) = json(&["inspect", data(name).to_str().unwrap()]);
        assert_eq!((code, &object["has_vae"]), (0, &kind_has_vae.into()), "{name}: {object}");
        assert!(object["kind"].is_string() && object["tensors"].as_u64() > Some(0));
    }
    assert_eq!(json(&["inspect", "/nothing/at/all"]).0, 3);
    let text = tempfile::NamedTempFile::new().unwrap();
    fs::write(text.path(), "hello").unwrap();
    assert_eq!(json(&["inspect", text.path().to_str().unwrap()]).0, 3);
}

#[test]
fn devices_and_memory_answer_without_a_gpu() {
    let (code, object) = json(&["devices", "--quick"]);
    assert_eq!(code, 0);
    let devices = object["devices"].as_array().unwrap();
    assert!(devices.iter().any(|device| device["device"] == "cpu" && device["usable"] == true), "{object}");

    let (code, object) = json(&["memory", "--device", "cpu"]);
    assert_eq!((code, &object["device"]), (0, &"CPU".into()));
    let parts = ["in_use", "pooled", "context", "others", "reserved", "free"].map(|part| object[part].as_u64());
    if parts.iter().all(Option::is_some) {
        assert_eq!(parts.iter().flatten().sum::<u64>(), object["total"].as_u64().unwrap(), "{object}");
    }
    assert_eq!(json(&["memory", "--device", "cuda:77"]).0, 5);
}

#[test]
fn bench_goes_the_way_of_a_picture_and_gives_medians() {
    let model = data("tiny-a");
    let arguments = ["bench", "--device", "cpu", "--model", model.to_str().unwrap(), "--steps", "3", "--size", "64x64"];
    let (code, object) = json(&[&arguments[..], &["--runs", "2"]].concat());
    assert_eq!((code, &object["runs"]), (0, &2.into()), "{object}");
    for part in ["step", "decode", "total", "encode"] {
        assert!(object["median"][part].as_f64() > Some(0.0), "{part}: {object}");
    }
    assert_eq!(object["first"]["steps"].as_array().map(Vec::len), Some(3));
}

#[test]
#[cfg(feature = "pocket")]
fn without_a_model_the_built_in_one_makes_a_picture_of_its_own_size_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("portrait.png");
    let words = ["generate", "--device", "cpu", "--steps", "3", "--seed", "9", "--prompt", "a woman, red background"];
    let (code, output) = run(&[&words[..], &["--out", file.to_str().unwrap(), "--lang", "en"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Pocket, a small demonstration") && said.contains("--model FILE"), "{said}");
    let picture = image::open(&file).unwrap();
    assert_eq!((picture.width(), picture.height()), (256, 256));

    // The picture names the model and its hash, and gives its settings back.
    let (_, object) = json(&["inspect", file.to_str().unwrap()]);
    let settings = &object["settings"];
    assert_eq!((&settings["model"], &settings["seed"]), (&Value::from("Pocket"), &Value::from(9)));
    assert_eq!((&settings["width"], &settings["height"]), (&Value::from(256), &Value::from(256)));
    let unet = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/pocket/unet/diffusion_pytorch_model.safetensors");
    let hasher = softbox::engine::hash::Hasher::new(None);
    hasher.want(&unet);
    let hash = hasher.wait(&unet, std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(settings["model_hash"], Value::from(hash));

    // By name it is the same, and can be asked what it is.
    let again = folder.path().join("again.png");
    let (code, _) = json(&[&words[..], &["--model", "pocket", "--out", again.to_str().unwrap()]].concat());
    assert_eq!(code, 0);
    assert_eq!(image::open(&again).unwrap().as_bytes(), picture.as_bytes());
    let (code, object) = json(&["inspect", "pocket"]);
    assert_eq!((code, &object["file"], &object["has_vae"]), (0, &Value::from("Pocket"), &Value::from(true)));
}
