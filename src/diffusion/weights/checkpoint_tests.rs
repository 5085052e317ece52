//! Whole checkpoints: the small reference models of `tests/data`, and made ones for the faults.

use super::*;
use crate::diffusion::weights::layout;
use crate::diffusion::weights::{DType, testfile};
use std::fs;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("data").join(name)
}

fn open(path: &Path) -> Result<Checkpoint, WeightError> {
    Checkpoint::open(&ModelChoice::Path(path.to_owned()), &VaeChoice::Automatic, false)
}

/// Reads every tensor of a part in every type and holds their sizes against their shapes.
fn read_all<C>(part: &Part<C>) {
    for name in part.tensors.names() {
        let shape = part.tensors.shape(&name).unwrap();
        let count: usize = shape.iter().product();
        for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
            let tensor = part.tensors.read(&name, precision).unwrap();
            assert_eq!((tensor.shape.as_slice(), tensor.bytes.len()), (shape.as_slice(), count * precision.size()));
        }
        let values = part.tensors.read(&name, Precision::F32).unwrap().to_f32();
        assert!(values.iter().all(|v| v.is_finite()), "{name}");
    }
}

#[test]
fn the_reference_models_load_whole() {
    for name in ["tiny-a", "tiny-b", "tiny-single.safetensors"] {
        let path = data(name);
        let checkpoint = open(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(checkpoint.unknown(), &KeyList::default(), "{name}");
        read_all(checkpoint.text_encoder());
        read_all(checkpoint.unet());
        read_all(checkpoint.vae().unwrap());
        assert_eq!(checkpoint.tokenizer().is_some(), path.is_dir());
        assert_eq!(checkpoint.vae_origin(), Some(&VaeOrigin::Checkpoint));
        let found = inspect::inspect(&path).unwrap();
        assert_eq!(found.family, Family::Sd15);
        assert!(found.parts.iter().all(|p| p.missing.count == 0 && p.misshapen.count == 0), "{:?}", found.parts);
        let projection = "mid_block.attentions.0.proj_in.weight";
        assert_eq!(checkpoint.unet().tensors.shape(projection).unwrap().len(), 2, "{name}");
        let query = "decoder.mid_block.attentions.0.to_q.weight";
        assert_eq!(checkpoint.vae().unwrap().tensors.shape(query).unwrap().len(), 2, "{name}");
    }
    let b = open(&data("tiny-b")).unwrap();
    assert_eq!((b.text_encoder().config.heads, b.unet().config.heads.as_slice()), (3, &[2, 4, 6][..]));
    assert_eq!(b.vae().unwrap().config.scaling_factor, 0.25);
    let index = open(&data("tiny-a").join("model_index.json")).unwrap();
    assert_eq!(index.path(), Some(data("tiny-a").as_path()));
}

#[test]
fn separate_vaes_of_every_naming_override_the_checkpoints_own() {
    for name in ["vae-bare.safetensors", "vae-ldm.safetensors", "vae-prefixed.safetensors"] {
        let path = data(name);
        let part = open_vae(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        read_all(&part);
        let found = inspect::inspect(&path).unwrap();
        assert_eq!((found.family, found.unknown.count), (Family::Vae, 0), "{name}: {:?}", found.unknown);
        let model = ModelChoice::Path(data("tiny-single.safetensors"));
        let checkpoint = Checkpoint::open(&model, &VaeChoice::Path(path.clone()), false).unwrap();
        assert_eq!(checkpoint.vae_origin(), Some(&VaeOrigin::Chosen(path)));
    }
    assert_eq!(open_vae(&data("tiny-b").join("vae")).unwrap().config, open_vae(&data("tiny-b")).unwrap().config);
    let wrong = open_vae(&data("tiny-a").join("text_encoder"));
    assert!(matches!(wrong, Err(WeightError::NotVae { .. })), "{wrong:?}");
}

#[test]
fn the_averaged_unet_is_read_on_request_only() {
    let model = ModelChoice::Path(data("tiny-single.safetensors"));
    let name = "conv_in.weight";
    let read = |ema| {
        let checkpoint = Checkpoint::open(&model, &VaeChoice::Automatic, ema).unwrap();
        checkpoint.unet().tensors.read(name, Precision::F32).unwrap().to_f32()
    };
    let found = inspect::inspect(&data("tiny-single.safetensors")).unwrap();
    assert_eq!(read(false) != read(true), found.part(PartKind::UNetEma).is_some());
}

/// Copies a folder, files and folders below it included.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).map(drop).unwrap()
        }
    }
}

#[test]
fn parts_that_are_missing_cut_or_misshapen_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("model");
    copy(&data("tiny-a"), &root);
    fs::remove_dir_all(root.join("vae")).unwrap();
    let none = open(&root).unwrap();
    assert!(matches!(none.vae(), Err(WeightError::NoVae { .. })));
    assert_eq!(none.vae_origin(), None);

    fs::rename(root.join("text_encoder"), root.join("away")).unwrap();
    assert!(matches!(open(&root), Err(WeightError::MissingPart { part: PartKind::TextEncoder, .. })));
    fs::rename(root.join("away"), root.join("text_encoder")).unwrap();

    let weights = root.join("unet").join("diffusion_pytorch_model.safetensors");
    let whole = fs::read(&weights).unwrap();
    fs::write(&weights, &whole[..whole.len() - 10]).unwrap();
    assert!(matches!(open(&root), Err(WeightError::Incomplete { .. })));
    fs::write(&weights, &whole).unwrap();

    let config = root.join("unet").join("config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"layers_per_block\": 2", "\"layers_per_block\": 3")).unwrap();
    match open(&root) {
        Err(WeightError::MissingTensors { tensor, part: PartKind::UNet, .. }) => {
            assert!(tensor.starts_with("down_blocks.0.resnets.2."), "{tensor}")
        }
        // One more layer also makes other skips narrower.
        Err(WeightError::Shape { .. }) => {}
        other => panic!("{other:?}"),
    }
    fs::write(&config, text.replace("\"cross_attention_dim\": 32", "\"cross_attention_dim\": 48")).unwrap();
    assert!(matches!(open(&root), Err(WeightError::Config { .. })));
    fs::remove_file(&config).unwrap();
    assert!(matches!(open(&root), Err(WeightError::NotFound { .. })));
    fs::write(&config, &text).unwrap();

    fs::rename(&weights, root.join("unet").join("diffusion_pytorch_model.fp16.safetensors")).unwrap();
    assert!(open(&root).is_ok(), "a variant in one part, plain names in the other");
    let only = root.join("unet").join("diffusion_pytorch_model.bin");
    fs::rename(root.join("unet").join("diffusion_pytorch_model.fp16.safetensors"), only).unwrap();
    assert!(matches!(open(&root), Err(WeightError::OnlyPickle { .. })));
}

#[test]
fn a_file_replaced_after_opening_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("single.safetensors");
    fs::copy(data("tiny-single.safetensors"), &path).unwrap();
    let checkpoint = open(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(4000).unwrap();
    let error = checkpoint.unet().tensors.read("conv_in.weight", Precision::F16);
    assert!(matches!(error, Err(WeightError::Changed { .. })), "{error:?}");
}

#[test]
fn other_families_are_refused_before_loading() {
    let dir = tempfile::tempdir().unwrap();
    for (family, name) in [
        (Family::Lora, "lora_unet_x.lora_down.weight"),
        (Family::Sdxl, "model.diffusion_model.label_emb.0.0.weight"),
        (Family::ControlNet, "control_model.x"),
        (Family::Unknown, "x"),
    ] {
        let path = dir.path().join("file.safetensors");
        testfile::write(&path, DType::F16, &[(name.to_owned(), vec![2])]);
        match open(&path) {
            Err(WeightError::Refused { family: found, .. }) => assert_eq!(found, family),
            other => panic!("{other:?}"),
        }
    }
    let vae = open(&data("vae-bare.safetensors"));
    assert!(matches!(vae, Err(WeightError::Refused { family: Family::Vae, .. })));
    assert!(matches!(open(Path::new("/no/such")), Err(WeightError::NotFound { .. })));
}

#[test]
fn attention_and_projections_come_with_two_dimensions_however_they_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let config = VaeConfig { block_out_channels: vec![32, 32], ..VaeConfig::sd15() };
    let variants =
        [["q", "k", "v", "proj_out"], ["query", "key", "value", "proj_attn"], ["to_q", "to_k", "to_v", "to_out.0"]];
    for (names, rank) in variants.into_iter().flat_map(|names| [2, 3, 4].map(|rank| (names, rank))) {
        let mut tensors = Vec::new();
        for spec in [layout::vae_decoder(&config), layout::vae_encoder(&config)].concat() {
            let (mut name, mut shape) = (spec.name, spec.shape);
            if name.contains("mid_block.attentions") && shape.len() == 2 {
                shape.resize(rank, 1);
            }
            for (ours, theirs) in ["to_q", "to_k", "to_v", "to_out.0"].into_iter().zip(names) {
                name = name.replace(&format!("attentions.0.{ours}."), &format!("attentions.0.{theirs}."));
            }
            tensors.push((name, shape));
        }
        let path = dir.path().join("vae.safetensors");
        testfile::write(&path, DType::Bf16, &tensors);
        let part = open_vae(&path).unwrap_or_else(|e| panic!("{names:?} {rank}: {e}"));
        let read = part.tensors.read("decoder.mid_block.attentions.0.to_out.0.weight", Precision::F32).unwrap();
        assert_eq!(read.shape, [32, 32]);
        assert!(read.to_f32().iter().all(|v| *v == 0.5));
    }
}

#[test]
fn the_random_model_opens_like_any_other() {
    let checkpoint = Checkpoint::open(&ModelChoice::RandomSd15, &VaeChoice::Automatic, false).unwrap();
    assert_eq!(checkpoint.path(), None);
    assert_eq!(checkpoint.unet().tensors.values(), 859_520_964);
    assert_eq!(checkpoint.text_encoder().tensors.values(), 123_060_480);
    assert!(checkpoint.vae().is_ok());
    let read = checkpoint.unet().tensors.read("conv_out.bias", Precision::Bf16).unwrap();
    assert_eq!((read.shape, read.bytes.len()), (vec![4], 8));
}
