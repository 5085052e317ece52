//! Full-size files by their names and shapes (holes in place of the weights), and one of every other kind.

use super::*;
use crate::diffusion::weights::keys::{Naming, UNetNaming};
use crate::diffusion::weights::layout::TensorSpec;
use crate::diffusion::weights::testfile;

type Named = Vec<(String, Vec<usize>)>;

/// Specs under the names of a file, with a linear layer's shape changed by `shape`.
fn named(specs: &[TensorSpec], naming: &dyn Naming) -> Named {
    specs.iter().map(|s| (naming.candidates(&s.name).swap_remove(0), s.shape.clone())).collect()
}

/// The UNet of a single file: projections as 1×1 convolutions, upsamplers behind the attention where there is one.
fn unet(config: &UNetConfig, prefix: &'static str) -> Named {
    let depth = config.layers_per_block;
    let mut all = named(&layout::unet(config), &UNetNaming::Original { prefix, layers_per_block: depth });
    for (name, shape) in &mut all {
        if (name.ends_with(".1.proj_in.weight") || name.ends_with(".1.proj_out.weight"))
            && !config.use_linear_projection
        {
            shape.extend([1, 1]);
        }
        if !config.up_attention.first().copied().unwrap_or(false) {
            *name = name.replace(&format!("output_blocks.{depth}.2.conv"), &format!("output_blocks.{depth}.1.conv"));
        }
    }
    all
}

fn text(prefix: &'static str) -> Named {
    let mut all = named(&layout::text_encoder(&TextEncoderConfig::sd15()), &TextNaming { prefix });
    all.push((format!("{prefix}embeddings.position_ids"), vec![1, 77]));
    all
}

fn vae(prefix: &'static str, latent: usize) -> Named {
    let config = VaeConfig { latent_channels: latent, ..VaeConfig::sd15() };
    let specs = [layout::vae_decoder(&config), layout::vae_encoder(&config)].concat();
    // The original attention: the last of each list of names.
    let naming = VaeNaming::Original { prefix, levels: 4 };
    let original = |s: &TensorSpec| {
        let mut names = naming.candidates(&s.name);
        let attention = s.name.contains("mid_block.attentions");
        let norm = s.name.contains("group_norm");
        let name = if norm {
            names.swap_remove(1)
        } else if attention {
            names.pop().unwrap()
        } else {
            names.swap_remove(0)
        };
        let conv = attention && s.shape.len() == 2;
        (name, if conv { [s.shape.as_slice(), &[1, 1]].concat() } else { s.shape.clone() })
    };
    specs.iter().map(original).collect()
}

fn sd15() -> Named {
    let unet = unet(&UNetConfig::sd15(), "model.diffusion_model.");
    [unet, text("cond_stage_model.transformer.text_model."), vae("first_stage_model.", 4)].concat()
}

struct Shelf(tempfile::TempDir);

impl Shelf {
    fn new() -> Self {
        Shelf(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, tensors: &Named) -> PathBuf {
        let path = self.0.path().join(name);
        testfile::write_sparse(&path, DType::F16, tensors);
        path
    }

    fn family(&self, tensors: &Named) -> Family {
        inspect(&self.put("some.safetensors", tensors)).unwrap().family
    }
}

fn few(names: &[&str]) -> Named {
    names.iter().map(|n| ((*n).to_owned(), vec![4, 4])).collect()
}

#[test]
fn all_of_a_full_sd15_file_is_used_and_nothing_left_over() {
    let shelf = Shelf::new();
    let path = shelf.put("sd15.safetensors", &sd15());
    let found = inspect(&path).unwrap();
    assert_eq!((found.family, found.is_folder, found.has_vae), (Family::Sd15, false, true));
    let counts: Vec<(PartKind, usize)> = found.parts.iter().map(|p| (p.kind, p.tensors)).collect();
    let want =
        [(PartKind::TextEncoder, 196), (PartKind::UNet, 686), (PartKind::VaeDecoder, 140), (PartKind::VaeEncoder, 108)];
    assert_eq!(counts, want);
    assert!(found.parts.iter().all(|p| p.missing.count == 0 && p.misshapen.count == 0), "{:?}", found.parts);
    assert_eq!((found.unknown.count, found.ignored, found.tensors), (0, 1, 1131));
    assert_eq!(found.part(PartKind::UNet).unwrap().half(), Bytes(859_520_964 * 2));
    assert_eq!(found.part(PartKind::UNet).unwrap().stored, Bytes(859_520_964 * 2));
    assert_eq!(found.dtypes, BTreeMap::from([(DType::F16, 1131)]));
    assert_eq!(found.unet.unwrap(), UNetConfig { sample_size: None, ..UNetConfig::sd15() });
    assert_eq!(found.text_encoder.unwrap(), TextEncoderConfig::sd15());
    assert_eq!(found.vae.unwrap(), VaeConfig::sd15());
}

#[test]
fn leftovers_ema_and_unknown_names_are_kept_apart() {
    let shelf = Shelf::new();
    let config = UNetConfig::sd15();
    let ema = named(&layout::unet(&config), &UNetNaming::OriginalEma { layers_per_block: 2 });
    let mut all = [sd15(), ema].concat();
    all.extend(few(&["betas", "sqrt_alphas_cumprod", "model_ema.decay", "cond_stage_model.logit_scale"]));
    all.extend(few(&["safety_checker.x", "model.diffusion_model.extra.weight", "strange"]));
    let found = inspect(&shelf.put("ema.safetensors", &all)).unwrap();
    assert_eq!(found.part(PartKind::UNetEma).unwrap().tensors, 686);
    assert_eq!(found.part(PartKind::SafetyChecker).unwrap().tensors, 1);
    assert_eq!(found.unknown.count, 2);
    assert_eq!(found.unknown.first, ["model.diffusion_model.extra.weight", "strange"]);
    assert_eq!(found.ignored, 5);
}

#[test]
fn what_is_missing_is_named() {
    let shelf = Shelf::new();
    let mut all = sd15();
    all.retain(|(n, _)| !n.contains("input_blocks.4.0.emb_layers") && !n.starts_with("first_stage_model.encoder"));
    let found = inspect(&shelf.put("cut.safetensors", &all)).unwrap();
    let missing = &found.part(PartKind::UNet).unwrap().missing;
    assert_eq!(missing.count, 2);
    assert_eq!(missing.first[0], "down_blocks.1.resnets.0.time_emb_proj.weight");
}

#[test]
fn absurd_sizes_and_missing_measures_are_errors_naming_them() {
    let shelf = Shelf::new();
    let mut all = sd15();
    all.retain(|(n, _)| n != "model.diffusion_model.out.2.weight");
    match inspect(&shelf.put("cut.safetensors", &all)) {
        Err(WeightError::NoTensor { tensor, .. }) => assert_eq!(tensor, "model.diffusion_model.out.2.weight"),
        other => panic!("{other:?}"),
    }
    let mut all = sd15();
    for (name, shape) in &mut all {
        if name == "model.diffusion_model.input_blocks.1.0.in_layers.2.weight" {
            *shape = vec![1 << 60, 0];
        }
    }
    assert!(matches!(inspect(&shelf.put("huge.safetensors", &all)), Err(WeightError::Config { .. })));
}

#[test]
fn text_encoders_of_all_ages() {
    let shelf = Shelf::new();
    for prefix in ["cond_stage_model.transformer.text_model.", "cond_stage_model.transformer.", "text_model.", ""] {
        let unet = unet(&UNetConfig::sd15(), "model.diffusion_model.");
        let found = inspect(&shelf.put("some.safetensors", &[unet, text(prefix)].concat())).unwrap();
        assert_eq!(found.part(PartKind::TextEncoder).unwrap().tensors, 196, "{prefix}");
        assert_eq!((found.unknown.count, found.has_vae), (0, false), "{prefix}");
        assert_eq!(shelf.family(&text(prefix)), Family::TextEncoder);
    }
}

#[test]
fn small_models_of_the_same_make_are_sd15_too() {
    let shelf = Shelf::new();
    let small = UNetConfig {
        block_out_channels: vec![32, 64],
        down_attention: vec![true, false],
        up_attention: vec![false, true],
        layers_per_block: 1,
        heads: vec![8; 2],
        transformer_layers: vec![1; 2],
        cross_attention_dim: 40,
        use_linear_projection: true,
        ..UNetConfig::sd15()
    };
    let found = inspect(&shelf.put("small.safetensors", &unet(&small, "model.diffusion_model."))).unwrap();
    assert_eq!((found.family, found.unknown.count), (Family::Sd15, 0));
    assert_eq!(found.unet.unwrap(), UNetConfig { sample_size: None, ..small });
}

#[test]
fn relatives_of_sd15_are_told_by_shape() {
    let shelf = Shelf::new();
    let with = |channels: usize, cross: usize| {
        let config = UNetConfig { in_channels: channels, cross_attention_dim: cross, ..UNetConfig::sd15() };
        unet(&config, "model.diffusion_model.")
    };
    assert_eq!(shelf.family(&with(9, 768)), Family::Sd15Inpainting);
    assert_eq!(shelf.family(&with(8, 768)), Family::Sd15Edit);
    assert_eq!(shelf.family(&with(4, 1024)), Family::Sd2);
    assert_eq!(shelf.family(&with(4, 2048)), Family::Sdxl);
    assert_eq!(shelf.family(&with(5, 768)), Family::Unknown);
    let open_clip = few(&["cond_stage_model.model.transformer.resblocks.0.ln_1.weight"]);
    assert_eq!(shelf.family(&[with(4, 1024), open_clip].concat()), Family::Sd2);
    let labels = few(&["model.diffusion_model.label_emb.0.0.weight", "conditioner.embedders.0.transformer.x"]);
    let second = few(&["conditioner.embedders.1.model.ln_final.weight"]);
    assert_eq!(shelf.family(&[with(4, 2048), labels, second].concat()), Family::Sdxl);
    assert_eq!(shelf.family(&few(&["conditioner.embedders.0.model.ln_final.weight"])), Family::SdxlRefiner);
}

#[test]
fn other_kinds_are_named() {
    let shelf = Shelf::new();
    for (family, names) in [
        (Family::Sd3, vec!["model.diffusion_model.joint_blocks.0.x_block.attn.qkv.weight"]),
        (Family::Flux, vec!["double_blocks.0.img_attn.qkv.weight", "single_blocks.0.linear1.weight"]),
        (Family::ControlNet, vec!["control_model.input_hint_block.0.weight", "model.diffusion_model.x"]),
        (Family::ControlNet, vec!["controlnet_cond_embedding.conv_in.weight", "conv_in.weight"]),
        (Family::Lora, vec!["lora_unet_down_blocks_0_attentions_0_proj_in.lora_down.weight"]),
        (Family::Lora, vec!["lora_unet_x.hada_w1_a"]),
        (Family::Lora, vec!["unet.down_blocks.0.attn1.to_q.lora_A.weight"]),
        (Family::Adapter, vec!["image_proj.proj.weight", "ip_adapter.1.to_k_ip.weight"]),
        (Family::MotionModule, vec!["down_blocks.0.motion_modules.0.temporal_transformer.norm.weight"]),
        (Family::TextEncoder, vec!["encoder.block.0.layer.0.SelfAttention.q.weight", "shared.weight"]),
        (Family::Upscaler, vec!["model.0.weight", "model.1.sub.0.RDB1.conv1.0.weight"]),
        (Family::Upscaler, vec!["conv_first.weight", "body.0.rdb1.conv1.weight"]),
        (Family::Embedding, vec!["emb_params"]),
        (Family::Embedding, vec!["string_to_param.*"]),
        (Family::Unknown, vec!["a", "b"]),
        (Family::Unknown, vec![]),
    ] {
        assert_eq!(shelf.family(&few(&names)), family, "{names:?}");
    }
    assert_eq!(shelf.family(&vec![("<cat-toy>".to_owned(), vec![768])]), Family::Embedding);
    assert_eq!(shelf.family(&vae("", 4)), Family::Vae);
    assert_eq!(shelf.family(&vae("first_stage_model.", 4)), Family::Vae);
    assert_eq!(shelf.family(&vae("", 16)), Family::OtherVae);
}

#[test]
fn a_vae_beside_a_checkpoint_without_one_is_suggested() {
    let shelf = Shelf::new();
    let mut bare = sd15();
    bare.retain(|(n, _)| !n.starts_with("first_stage_model."));
    let path = shelf.put("Stable-diffusion/realisticVisionV60B1_v51NoVAE.safetensors", &bare);
    assert_eq!(inspect(&path).unwrap().suggested_vae, None);
    // The right name, and something else inside.
    shelf.put("Stable-diffusion/ft-mse-lora.safetensors", &few(&["x.lora_up.weight"]));
    assert_eq!(inspect(&path).unwrap().suggested_vae, None);
    shelf.put("VAE/vae-ft-mse-840000-ema-pruned.safetensors", &vae("", 4));
    let found = inspect(&path).unwrap();
    assert!(!found.has_vae);
    assert!(found.suggested_vae.unwrap().ends_with("VAE/vae-ft-mse-840000-ema-pruned.safetensors"));
    let near = shelf.put("Stable-diffusion/sd_vae_ft_mse.safetensors", &vae("", 4));
    assert_eq!(inspect(&path).unwrap().suggested_vae, Some(near));
    // A checkpoint that has one needs none.
    let whole = shelf.put("Stable-diffusion/whole.safetensors", &sd15());
    assert_eq!(inspect(&whole).unwrap().suggested_vae, None);
}

#[test]
fn a_side_file_says_that_the_model_predicts_v() {
    let shelf = Shelf::new();
    let path = shelf.put("v.safetensors", &unet(&UNetConfig::sd15(), "model.diffusion_model."));
    assert_eq!(inspect(&path).unwrap().prediction, PredictionType::Epsilon);
    let side = path.with_extension("yaml");
    for (text, want) in [
        ("model:\n  params:\n    parameterization: \"v\"\n", PredictionType::V),
        ("    parameterization: v  # zero SNR", PredictionType::V),
        ("model: {params: {parameterization: \"v\"}}", PredictionType::V),
        ("model: {params: {parameterization: eps, note: v}}", PredictionType::Epsilon),
        ("    parameterization: 'eps'", PredictionType::Epsilon),
    ] {
        std::fs::write(&side, text).unwrap();
        let found = inspect(&path).unwrap();
        assert_eq!((found.prediction, found.prediction_source), (want, PredictionSource::File(side.clone())));
    }
    std::fs::write(&side, "parameterization: x0").unwrap();
    assert!(matches!(inspect(&path), Err(WeightError::ConfigUnsupported { .. })));
    std::fs::remove_file(&side).unwrap();
    let marked = [unet(&UNetConfig::sd15(), "model.diffusion_model."), vec![("v_pred".to_owned(), vec![])]].concat();
    let found = inspect(&shelf.put("v.safetensors", &marked)).unwrap();
    assert_eq!((found.prediction, found.prediction_source), (PredictionType::V, PredictionSource::Mark));
}

#[test]
fn folders_of_other_families_are_named_by_their_configs() {
    let shelf = Shelf::new();
    let root = shelf.0.path();
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("xl/unet/config.json", r#"{"addition_embed_type":"text_time","cross_attention_dim":2048}"#);
    put("xl/text_encoder/config.json", "{}");
    put("sd2/unet/config.json", r#"{"cross_attention_dim":1024}"#);
    put("inpaint/unet/config.json", r#"{"cross_attention_dim":768,"in_channels":9}"#);
    put("sd3/transformer/config.json", r#"{"_class_name":"SD3Transformer2DModel"}"#);
    put("flux/transformer/config.json", r#"{"_class_name":"FluxTransformer2DModel"}"#);
    put("other/transformer/config.json", "{}");
    for (name, family) in [
        ("xl", Family::Sdxl),
        ("sd2", Family::Sd2),
        ("sd3", Family::Sd3),
        ("flux", Family::Flux),
        ("other", Family::Unknown),
    ] {
        assert_eq!(inspect(&root.join(name)).unwrap().family, family, "{name}");
    }
    assert_eq!(pipeline_family(&Place::from(&root.join("inpaint"))), Family::Sd15Inpainting);
    assert!(matches!(inspect(&root.join("inpaint")), Err(WeightError::MissingPart { part: PartKind::UNet, .. })));
}
