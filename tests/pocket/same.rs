//! Pocket from its folder equals Pocket from the binary, and is a checkpoint like any other.

use super::{picture, picture_of, request};
use softbox::base::vocabulary::Vocabulary;
use softbox::base::{ModelChoice, Precision, ShotRequest, Size, VaeChoice};
use softbox::diffusion::place::Place;
use softbox::diffusion::pocket;
use softbox::diffusion::weights::{Checkpoint, Family, PartTensors, TensorSource, inspect};
use softbox::text::{Lang, pocket as words};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/pocket")
}

/// Every file below a folder, as paths from there.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] });
    all.collect()
}

#[test]
fn every_file_of_the_folder_is_in_the_binary() {
    let inside = pocket::folder().unwrap();
    let mut bytes = 0;
    for file in files_below(&folder()) {
        bytes += std::fs::metadata(&file).unwrap().len();
        let name = file.strip_prefix(folder()).unwrap();
        // What a person reads about the model is not part of it.
        let read = name.extension().is_some_and(|ending| ending == "md");
        assert_eq!(inside.join(name).is_file(), !read, "{}", name.display());
    }
    assert!(bytes <= 20_000_000, "Pocket takes {bytes} bytes");
}

#[test]
fn both_have_the_same_weights_bit_for_bit() {
    let open = |model: &ModelChoice| Checkpoint::open(model, &VaeChoice::Automatic, false).unwrap();
    let (disk, inside) = (open(&ModelChoice::Path(folder())), open(&ModelChoice::Pocket));
    let same = |a: &PartTensors, b: &PartTensors| {
        assert_eq!(a.names(), b.names());
        for name in a.names() {
            let (a, b) = (a.read(&name, Precision::F16).unwrap(), b.read(&name, Precision::F16).unwrap());
            assert!(a == b, "{name}");
            assert!(a.to_f32().iter().all(|value| value.is_finite()), "{name}");
        }
    };
    same(&disk.text_encoder().tensors, &inside.text_encoder().tensors);
    same(&disk.unet().tensors, &inside.unet().tensors);
    same(&disk.vae().unwrap().tensors, &inside.vae().unwrap().tensors);
    assert_eq!(disk.unet().config, inside.unet().config);
    assert_eq!((disk.scheduler(), disk.unknown()), (inside.scheduler(), inside.unknown()));
    assert_eq!((inside.unknown().count, inside.is_unchanged()), (0, true));
}

#[test]
fn both_make_the_same_picture_bit_for_bit() {
    let size = Size::nearest(128, 128);
    let request = ShotRequest { steps: 3, size, ..request("portrait of a man with a beard, glasses", 5) };
    assert!(picture(&request) == picture_of(ModelChoice::Path(folder()), &request));
}

#[test]
fn it_is_told_as_a_checkpoint_of_the_usual_family() {
    let found = inspect(&pocket::folder().unwrap()).unwrap();
    assert_eq!((found.family, found.is_folder, found.has_vae), (Family::Sd15, true, true));
    assert!(found.parts.iter().all(|part| part.missing.count == 0 && part.misshapen.count == 0));
    // All but where it lies.
    let on_disk = inspect(&folder()).unwrap();
    let (path, prediction_source) = (found.path.clone(), found.prediction_source.clone());
    assert_eq!(found, softbox::diffusion::weights::Inspection { path, prediction_source, ..on_disk });
}

/// The words offered beside the prompt.
fn vocabulary() -> Vocabulary {
    let text = Place::from(&folder()).join("words.json").read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_word_it_offers_is_told_in_chinese() {
    let vocabulary = vocabulary();
    assert!(vocabulary.categories.len() >= 5 && !vocabulary.examples.is_empty());
    for category in &vocabulary.categories {
        assert_ne!(words::kind(Lang::Zh, &category.name), category.name);
        assert!(!category.words.is_empty(), "{}", category.name);
        for phrase in category.words.iter().chain(&category.colors) {
            assert!(words::meaning(Lang::Zh, phrase).is_some(), "{phrase}");
        }
    }
}
