//! Diffusers folders: which of a part's files to read.
//!
//! A part's folder may hold its weights several times, in variants (`.fp16.safetensors`), or cut into shards listed by
//! an index; each part chooses for itself.

use super::assemble::TensorFiles;
use super::error::WeightError;
use super::inspect::PartKind;
use crate::diffusion::place::Place;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A file name's stem as diffusers or transformers write it; any other name comes after these.
const STEMS: [&str; 2] = ["diffusion_pytorch_model", "model"];
/// Variants in the order they are taken: the full one, half ones, then any other.
const VARIANTS: [&str; 3] = ["", "fp16", "bf16"];
/// Endings of pickled or foreign weights that a folder may hold instead.
const OTHER_WEIGHTS: [&str; 5] = ["bin", "ckpt", "pt", "pth", "msgpack"];

/// Whether this is a folder that holds a UNet in the manner of diffusers, or a whole pipeline of another family.
pub fn is_pipeline(place: &Place) -> bool {
    place.is_dir()
        && (place.join("model_index.json").is_file()
            || place.join("unet").is_dir()
            || place.join("transformer").is_dir())
}

/// The folder that a choice of `model_index.json` means, or the place itself.
pub fn resolve(place: impl Into<Place>) -> Place {
    let place = place.into();
    let index = place.path().file_name().is_some_and(|n| n == "model_index.json");
    place.parent().filter(|_| index).unwrap_or(place)
}

/// Opens the weights in a part's folder.
///
/// # Errors
/// `MissingPart` where the folder or any weights in it are missing, `OnlyPickle`, `MissingShard`, `Config` for an index
/// that does not hold, and all of [`super::Archive::open`].
pub fn open_part(folder: impl Into<Place>, part: PartKind) -> Result<TensorFiles, WeightError> {
    let folder = folder.into();
    let missing = || WeightError::MissingPart { path: folder.path().to_owned(), part };
    if !folder.is_dir() {
        return Err(missing());
    }
    let files = list(&folder)?;
    let ranked = files.iter().filter_map(|(name, place)| Some((rank(name)?, name, place)));
    let best = ranked.min_by(|(a, one, _), (b, other, _)| (a, one).cmp(&(b, other)));
    match best {
        Some((_, name, place)) if name.ends_with(".json") => open_shards(place),
        Some((_, _, place)) => TensorFiles::open(place),
        None => {
            let pickled =
                files.iter().find(|(name, _)| OTHER_WEIGHTS.iter().any(|ending| name.ends_with(&format!(".{ending}"))));
            Err(pickled.map_or_else(missing, |(name, _)| WeightError::OnlyPickle {
                folder: folder.path().to_owned(),
                found: name.into(),
            }))
        }
    }
}

/// The files in a folder, sorted: their names as far as they are text, and where they really lie.
fn list(folder: &Place) -> Result<Vec<(String, Place)>, WeightError> {
    let files = folder.files().map_err(|e| WeightError::io(folder.path(), e))?;
    let name = |file: &Place| file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<(String, Place)> = files.into_iter().map(|file| (name(&file), file)).collect();
    names.sort_by(|(a, at_a), (b, at_b)| (a, at_a.path()).cmp(&(b, at_b.path())));
    Ok(names)
}

/// How early a file is taken, smaller first: by stem, by variant, whole before sharded. `None` for what is no weights
/// file and for a shard, which its index names.
fn rank(name: &str) -> Option<(usize, usize, bool)> {
    let (base, sharded) = if let Some(base) = name.strip_suffix(".safetensors") {
        if base.contains("-of-") {
            return None;
        }
        (base.to_owned(), false)
    } else {
        // Both orders are written: `model.fp16.safetensors.index.json`, `model.safetensors.index.fp16.json`.
        let base = name.strip_suffix(".json")?;
        let (stem, variant) = base.split_once(".safetensors.index")?;
        (format!("{stem}{variant}"), true)
    };
    let (stem, variant) = base.split_once('.').unwrap_or((&base, ""));
    let place = |list: &[&str], item: &str| list.iter().position(|x| *x == item).unwrap_or(list.len());
    Some((place(&STEMS, stem), place(&VARIANTS, variant), sharded))
}

/// Opens all shards that an index lists.
fn open_shards(place: &Place) -> Result<TensorFiles, WeightError> {
    let index = place.path();
    let text = place.read_to_string().map_err(|e| WeightError::io(index, e))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| WeightError::config(index, "JSON", e.to_string()))?;
    let map = json.get("weight_map").and_then(Value::as_object);
    let map = map.ok_or_else(|| WeightError::config(index, "weight_map", "no map"))?;
    let mut shards = BTreeSet::new();
    for (tensor, shard) in map {
        // A plain name: an index must not reach outside its folder.
        let name = shard.as_str().filter(|s| Path::new(s).file_name().is_some_and(|n| n == *s));
        shards.insert(name.ok_or_else(|| WeightError::config(index, tensor, shard.to_string()))?);
    }
    let folder = place.parent().unwrap_or_else(|| Place::from(Path::new("")));
    let shards: Vec<Place> = shards.into_iter().map(|s| folder.join(s)).collect();
    if let Some(gone) = shards.iter().find(|s| !s.is_file()) {
        return Err(WeightError::MissingShard { index: index.to_owned(), shard: gone.path().to_owned() });
    }
    let files = TensorFiles::from_shards(index, &shards)?;
    match map.keys().find(|tensor| !files.has(tensor)) {
        Some(tensor) => Err(WeightError::NoTensor { file: index.to_owned(), tensor: tensor.clone() }),
        None => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diffusion::weights::{DType, testfile};
    use std::path::PathBuf;

    fn part(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("unet");
        std::fs::create_dir(&folder).unwrap();
        for name in names {
            testfile::write(&folder.join(name), DType::F16, &[(format!("in {name}"), vec![2])]);
        }
        (dir, folder)
    }

    fn taken(folder: &Path) -> String {
        open_part(folder, PartKind::UNet).unwrap().names().next().unwrap().to_owned()
    }

    #[test]
    fn the_full_variant_comes_before_half_ones_and_those_before_others() {
        let all = ["x.safetensors", "diffusion_pytorch_model.non_ema.safetensors"];
        let (_dir, folder) = part(&all);
        assert_eq!(taken(&folder), "in diffusion_pytorch_model.non_ema.safetensors");
        for name in ["diffusion_pytorch_model.fp16.safetensors", "diffusion_pytorch_model.safetensors"] {
            testfile::write(&folder.join(name), DType::F16, &[(format!("in {name}"), vec![2])]);
            assert_eq!(taken(&folder), format!("in {name}"));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_files_name_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let (_dir, folder) = part(&[]);
        let name = std::ffi::OsStr::from_bytes(b"caf\xff.safetensors");
        testfile::write(&folder.join(name), DType::F16, &[("x".to_owned(), vec![2])]);
        assert_eq!(taken(&folder), "x");
    }

    #[test]
    fn shards_are_one_set_of_tensors() {
        let (_dir, folder) = part(&["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]);
        let map = serde_json::json!({
            "in model-00001-of-00002.safetensors": "model-00001-of-00002.safetensors",
            "in model-00002-of-00002.safetensors": "model-00002-of-00002.safetensors",
        });
        let index = folder.join("model.safetensors.index.json");
        std::fs::write(&index, serde_json::json!({"weight_map": map}).to_string()).unwrap();
        assert_eq!(open_part(&folder, PartKind::UNet).unwrap().len(), 2);
        std::fs::remove_file(folder.join("model-00002-of-00002.safetensors")).unwrap();
        assert!(matches!(open_part(&folder, PartKind::UNet), Err(WeightError::MissingShard { .. })));
        std::fs::write(&index, r#"{"weight_map": {"a": "../secret.safetensors"}}"#).unwrap();
        assert!(matches!(open_part(&folder, PartKind::UNet), Err(WeightError::Config { .. })));
        std::fs::write(&index, "[]").unwrap();
        assert!(matches!(open_part(&folder, PartKind::UNet), Err(WeightError::Config { .. })));
    }

    #[test]
    fn only_pickles_is_an_error_of_its_own() {
        let (_dir, folder) = part(&[]);
        assert!(matches!(open_part(&folder, PartKind::UNet), Err(WeightError::MissingPart { .. })));
        std::fs::write(folder.join("diffusion_pytorch_model.bin"), b"PK").unwrap();
        match open_part(&folder, PartKind::UNet) {
            Err(WeightError::OnlyPickle { found, .. }) => assert_eq!(found, Path::new("diffusion_pytorch_model.bin")),
            other => panic!("{other:?}"),
        }
        let gone = folder.join("not there");
        assert!(matches!(open_part(&gone, PartKind::UNet), Err(WeightError::MissingPart { .. })));
    }
}
