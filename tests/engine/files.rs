//! Files that change under the engine's hands, files of another kind, and folders that cannot be written to.

use super::stage::{Stage, data, request, setup};
use softbox::base::problem::Phase;
use softbox::base::{ImageFormat, Notice, OutputPlan, Problem, Reason, ShotRequest, VaeChoice};
use softbox::diffusion::weights::Archive;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SINGLE: &str = "tiny-single.safetensors";

/// A copy of the tiny single file in a folder of its own.
fn copied() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.safetensors");
    fs::copy(data(SINGLE), &file).unwrap();
    (folder, file)
}

/// The single file with only the tensors that `keep` names.
fn with_only(file: &Path, keep: impl Fn(&str) -> bool) {
    let archive = Archive::open(&data(SINGLE)).unwrap();
    let mut header = BTreeMap::new();
    let mut bytes = Vec::new();
    for (name, info) in archive.tensors().iter().filter(|(name, _)| keep(name)) {
        let start = bytes.len();
        bytes.extend(archive.read(name).unwrap());
        let entry = serde_json::json!({
            "dtype": info.dtype.to_string(), "shape": info.shape, "data_offsets": [start, bytes.len()],
        });
        header.insert(name.clone(), entry);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let whole = [&(header.len() as u64).to_le_bytes()[..], &header, &bytes].concat();
    fs::write(file, whole).unwrap();
}

type Damage = (&'static str, fn(&Path));

fn damages() -> [Damage; 3] {
    [
        ("cut", |file| fs::File::options().write(true).open(file).unwrap().set_len(100_000).unwrap()),
        ("replaced", |file| {
            let other = file.with_extension("new");
            fs::copy(data("vae-bare.safetensors"), &other).unwrap();
            fs::rename(other, file).unwrap();
        }),
        ("deleted", |file| fs::remove_file(file).unwrap()),
    ]
}

#[test]
fn a_file_that_changes_between_opening_and_loading_is_an_error_and_its_return_heals() {
    let mut stage = Stage::new();
    let steps = Phase::Denoising { step: 0, of: 4 };
    for (what, damage) in damages() {
        // At the first tensor, when the UNet is to be loaded, and when the VAE is.
        for (phase, nth) in [(Phase::Loading, 2), (Phase::Encoding, 1), (steps, 1)] {
            let (_folder, file) = copied();
            let mut job = stage.job(request());
            job.setup = setup(&file);
            let (mut seen, damaged) = (0, file.clone());
            let told = stage.run_acting(job, move |now, _| {
                seen += usize::from(now == phase);
                if now == phase && seen == nth {
                    damage(&damaged);
                }
            });
            assert_eq!(told.problem(), &Problem::FileChanged { path: file.clone() }, "{what} in {phase:?}");
            // The same path with a whole file again: opened anew, not remembered as changed.
            fs::copy(data(SINGLE), &file).unwrap();
            let mut job = stage.job(request());
            job.setup = setup(&file);
            assert!(stage.run(job).summary.is_some(), "{what} in {phase:?}");
        }
    }
    stage.picture(request());
}

#[test]
fn a_file_that_changes_while_the_weights_are_off_the_card_is_an_error() {
    for (what, damage) in damages() {
        let (_folder, file) = copied();
        let script = "clock steps\n0 1 0.1\n7 1 0.91\n11 1 0.1\n";
        let mut stage = Stage::scripted(script, Default::default());
        let mut job = stage.job(request());
        job.setup = setup(&file);
        let id = stage.send_acting(job, |_, _| ());
        let told = stage.hear(id, |event| {
            if let softbox::engine::protocol::Event::Paused(..) = event {
                damage(&file);
            }
            false
        });
        assert_eq!(told.pauses.len(), 1);
        assert_eq!(told.problem(), &Problem::FileChanged { path: file.clone() }, "{what}");
    }
}

#[test]
fn a_checkpoint_that_was_replaced_between_two_jobs_is_opened_anew() {
    let (_folder, file) = copied();
    let mut stage = Stage::new();
    let run = |stage: &mut Stage| {
        let mut job = stage.job(request());
        job.setup = setup(&file);
        stage.run(job)
    };
    let first = run(&mut stage);
    with_only(&file, |name| !name.starts_with("first_stage_model."));
    assert_eq!(run(&mut stage).problem(), &Problem::NoVae { path: file.clone() });
    fs::copy(data(SINGLE), &file).unwrap();
    assert_eq!(run(&mut stage).pixels(), first.pixels());
}

#[test]
fn files_of_another_kind_are_named_before_anything_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        file
    };
    let header =
        |json: &str, rest: usize| [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), &vec![0; rest]].concat();
    let lora = r#"{"lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.lora_down.weight":{"dtype":"F16","shape":[1,1],"data_offsets":[0,2]},"lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.lora_up.weight":{"dtype":"F16","shape":[1,1],"data_offsets":[2,4]}}"#;
    let whole = fs::read(data(SINGLE)).unwrap();
    let kind = |problem: &Problem| matches!(problem, Problem::WrongKind { .. });
    let damaged = |problem: &Problem| matches!(problem, Problem::FileDamaged { .. });
    let incomplete = |problem: &Problem| matches!(problem, Problem::FileIncomplete { have, need, .. } if have < need);
    let unreadable = |problem: &Problem| matches!(problem, Problem::FileUnreadable { .. });
    type Right = fn(&Problem) -> bool;
    let cases: [(PathBuf, Right); 8] = [
        (data("vae-ldm.safetensors"), kind),
        (write("lora.safetensors", &header(lora, 4)), kind),
        (write("page.safetensors", b"<!DOCTYPE html><html></html>"), kind),
        (write("pickle.safetensors", b"PK\x03\x04aaaaaaaaaaaaaaaa"), kind),
        (write("empty.safetensors", b""), damaged),
        (write("noise.safetensors", &[0xff; 64]), damaged),
        (write("half.safetensors", &whole[..whole.len() / 2]), incomplete),
        (folder.path().join("nothing.safetensors"), unreadable),
    ];
    let mut stage = Stage::new();
    for (file, right) in cases {
        let mut job = stage.job(request());
        job.setup = setup(&file);
        let told = stage.run(job);
        assert!(right(told.problem()), "{}: {:?}", file.display(), told.problem());
        assert_eq!(told.phases, [Phase::Loading]);
    }
    // As a VAE.
    for file in [write("vae.safetensors", &header(lora, 4)), data("tiny-a").join("unet")] {
        let mut job = stage.job(request());
        job.setup.vae = VaeChoice::Path(file);
        let told = stage.run(job);
        assert!(!told.error().details.is_empty() && told.shots.is_empty(), "{:?}", told.problem());
    }
    stage.picture(request());
}

#[test]
fn without_a_vae_nothing_is_begun_and_one_beside_or_chosen_is_taken() {
    let (folder, file) = copied();
    with_only(&file, |name| !name.starts_with("first_stage_model."));
    let mut stage = Stage::new();
    let mut run = |vae: Option<PathBuf>| {
        let mut job = stage.job(request());
        job.setup = setup(&file);
        job.setup.vae = vae.map_or(VaeChoice::Automatic, VaeChoice::Path);
        stage.run(job)
    };
    let none = run(None);
    assert_eq!(none.problem(), &Problem::NoVae { path: file.clone() });
    assert_eq!(none.phases, [Phase::Loading]);
    let chosen = run(Some(data("vae-bare.safetensors")));
    assert!(chosen.summary.is_some());
    // Put beside it while the program runs.
    let beside = folder.path().join("vae-ft-mse-840000-ema-pruned.safetensors");
    fs::copy(data("vae-bare.safetensors"), &beside).unwrap();
    let taken = run(None);
    assert!(taken.notices.contains(&Notice::VaeTaken(beside)), "{:?}", taken.notices);
    assert_eq!(taken.pixels(), chosen.pixels());
}

#[test]
fn the_switch_for_v_prediction_changes_the_picture_and_is_told() {
    let mut stage = Stage::new();
    let mut run = |v_prediction| {
        let mut job = stage.job(request());
        job.setup.v_prediction = v_prediction;
        stage.run(job)
    };
    let (usual, off, on) = (run(None), run(Some(false)), run(Some(true)));
    assert_eq!(usual.pixels(), off.pixels());
    assert_ne!(usual.pixels(), on.pixels());
    assert!(on.notices.contains(&Notice::VPrediction) && !usual.notices.contains(&Notice::VPrediction));
}

#[test]
fn a_picture_that_cannot_be_written_is_told_and_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "a file where a folder should be").unwrap();
    let into = |folder: &Path| OutputPlan::Folder {
        folder: folder.to_owned(),
        pattern: "[seed]".to_owned(),
        format: ImageFormat::Png,
    };
    let mut stage = Stage::new();
    let mut places = vec![into(&blocked), into(&blocked.join("below")), OutputPlan::File(blocked.join("x.png"))];
    if cfg!(target_os = "linux") {
        // No file can be made there, whoever asks.
        places.push(into(Path::new("/proc/softbox")));
    }
    for plan in places {
        let mut job = stage.job(ShotRequest { count: 2, ..request() });
        job.output = plan.clone();
        let told = stage.run(job);
        assert_eq!(told.summary.as_ref().unwrap().images, 2, "the run goes on: {plan:?}");
        assert!(told.shots.iter().all(|shot| shot.file.is_none() && shot.save_error.is_some()), "{plan:?}");
        assert_eq!(told.notices.iter().filter(|notice| matches!(notice, Notice::NotSaved { .. })).count(), 2);
        assert!(told.shots[0].image.pixels() != told.shots[1].image.pixels());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

/// A disk of 16 KB, where the system lets us have one.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_no_file_and_the_picture_on_screen() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        std::process::Command::new(arguments[0]).args(&arguments[1..]).arg(folder.path()).output().map(|o| o.status)
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs"]).is_ok_and(|status| status.success()) {
        return eprintln!("not tried: no small disk can be mounted here");
    }
    let mut stage = Stage::new();
    let mut job = stage.job(ShotRequest { size: "256x256".parse().unwrap(), steps: 1, ..request() });
    job.output = OutputPlan::File(folder.path().join("picture.png"));
    let told = stage.run(job);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    mount(&["umount"]).unwrap();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(told.shots[0].file, None);
    assert_eq!(told.shots[0].save_error, Some(Reason::DiskFull(folder.path().to_owned())));
}
