//! Config files: defaults, obeyed fields, and refusals by name.

use super::*;
use std::path::PathBuf;

/// Writes `json` into a fresh folder and gives the file.
fn file(json: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.json");
    std::fs::write(&path, json).unwrap();
    (dir, path)
}

fn unet(json: &str) -> Result<UNetConfig, WeightError> {
    let (_dir, path) = file(json);
    UNetConfig::from_file(&path)
}

fn vae(json: &str) -> Result<VaeConfig, WeightError> {
    let (_dir, path) = file(json);
    VaeConfig::from_file(&path)
}

fn scheduler(json: &str) -> Result<SchedulerConfig, WeightError> {
    let (_dir, path) = file(json);
    SchedulerConfig::from_file(&path)
}

#[test]
fn an_empty_unet_config_is_diffusers_default() {
    let (_dir, path) = file("{}");
    let config = UNetConfig::from_file(&path).unwrap();
    let want = UNetConfig { cross_attention_dim: 1280, sample_size: None, ..UNetConfig::sd15() };
    assert_eq!(config, want);
}

#[test]
fn unet_fields_are_obeyed() {
    let (_dir, path) = file(
        r#"{"block_out_channels":[12,24,36],"down_block_types":["DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D"],
        "up_block_types":["CrossAttnUpBlock2D","CrossAttnUpBlock2D","UpBlock2D"],"layers_per_block":1,
        "attention_head_dim":[2,4,6],"transformer_layers_per_block":[1,2,1],"cross_attention_dim":24,"norm_num_groups":6,
        "norm_eps":1e-4,"act_fn":"gelu","use_linear_projection":true,"downsample_padding":0,"flip_sin_to_cos":false,
        "freq_shift":1,"in_channels":9,"num_attention_heads":null,"only_cross_attention":[false,false,false]}"#,
    );
    let config = UNetConfig::from_file(&path).unwrap();
    assert_eq!(config.heads, [2, 4, 6]);
    assert_eq!(config.transformer_layers, [1, 2, 1]);
    assert_eq!(config.down_attention, [false, true, true]);
    assert_eq!(config.up_attention, [true, true, false]);
    assert_eq!((config.layers_per_block, config.downsample_padding, config.in_channels), (1, 0, 9));
    assert_eq!((config.norm_eps, config.freq_shift, config.activation), (1e-4, 1.0, Activation::Gelu));
    assert!(config.use_linear_projection && !config.flip_sin_to_cos);
    assert_eq!(config.time_embed_dim(), 48);
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (field, value) in [
        ("center_input_sample", "true"),
        ("dual_cross_attention", "true"),
        ("only_cross_attention", "true"),
        ("num_attention_heads", "8"),
        ("time_cond_proj_dim", "256"),
        ("addition_embed_type", "\"text_time\""),
        ("mid_block_type", "null"),
        ("layers_per_block", "[1,2,2,2]"),
        ("act_fn", "\"mish\""),
        ("down_block_types", "[\"AttnDownBlock2D\"]"),
        ("transformer_layers_per_block", "[1,1,[1,2],1]"),
    ] {
        match unet(&format!("{{\"{field}\":{value}}}")) {
            Err(WeightError::ConfigUnsupported { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    for (json, field) in
        [(r#"{"prediction_type":"sample"}"#, "prediction_type"), (r#"{"beta_schedule":"sigmoid"}"#, "beta_schedule")]
    {
        assert!(matches!(scheduler(json), Err(WeightError::ConfigUnsupported { field: named, .. }) if named == field));
    }
    assert!(matches!(vae(r#"{"latents_mean":[0,0,0,0]}"#), Err(WeightError::ConfigUnsupported { .. })));
}

#[test]
fn values_that_cannot_be_are_errors_not_crashes() {
    for json in [
        "",
        "[]",
        "{",
        r#"{"in_channels":0}"#,
        r#"{"in_channels":-4}"#,
        r#"{"in_channels":1e30}"#,
        r#"{"block_out_channels":[]}"#,
        r#"{"block_out_channels":[320,640]}"#,
        r#"{"norm_num_groups":7}"#,
        r#"{"norm_num_groups":0}"#,
        r#"{"attention_head_dim":3}"#,
        r#"{"attention_head_dim":[8,8]}"#,
        r#"{"layers_per_block":99999999}"#,
        r#"{"cross_attention_dim":18446744073709551615}"#,
        r#"{"block_out_channels":[9223372036854775808,640,1280,1280]}"#,
        r#"{"norm_eps":"small"}"#,
        r#"{"norm_eps":-1}"#,
        r#"{"flip_sin_to_cos":1}"#,
    ] {
        assert!(matches!(unet(json), Err(WeightError::Config { .. })), "{json}");
    }
    assert!(matches!(vae(r#"{"scaling_factor":0}"#), Err(WeightError::Config { .. })));
    assert!(matches!(scheduler(r#"{"beta_start":2}"#), Err(WeightError::Config { .. })));
    assert!(matches!(scheduler(r#"{"trained_betas":[0.1]}"#), Err(WeightError::Config { .. })));
    let gone = UNetConfig::from_file(Path::new("/no/such/config.json"));
    assert!(matches!(gone, Err(WeightError::NotFound { .. })));
}

#[test]
fn text_encoder_defaults_and_fields() {
    let (_dir, path) = file("{}");
    let config = TextEncoderConfig::from_file(&path).unwrap();
    assert_eq!((config.hidden_size, config.heads, config.layers), (512, 8, 12));
    assert_eq!((config.bos_id, config.eos_id, config.pad_id), (49406, 49407, 1));
    assert_eq!(config.activation, Activation::QuickGelu);
    let (_dir, path) = file(
        r#"{"text_config":{"hidden_size":24,"num_attention_heads":3,"hidden_act":"gelu","layer_norm_eps":1e-4,
        "num_hidden_layers":4,"intermediate_size":80,"vocab_size":635,"eos_token_id":[1,2],"pad_token_id":null}}"#,
    );
    let config = TextEncoderConfig::from_file(&path).unwrap();
    assert_eq!((config.hidden_size, config.heads, config.eos_id, config.pad_id), (24, 3, 1, 1));
    assert_eq!((config.activation, config.layer_norm_eps), (Activation::Gelu, 1e-4));
}

#[test]
fn vae_defaults_and_fields() {
    let config = vae("{}").unwrap();
    assert_eq!((config.block_out_channels.as_slice(), config.layers_per_block), (&[64][..], 1));
    assert_eq!((config.scaling_factor, config.shift_factor, config.factor()), (0.18215, 0.0, 1));
    let json = r#"{"block_out_channels":[6,12,18],"down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D",
        "DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"],
        "norm_num_groups":3,"scaling_factor":0.25,"shift_factor":0.1,"use_post_quant_conv":false}"#;
    let config = vae(json).unwrap();
    assert_eq!((config.factor(), config.scaling_factor, config.shift_factor), (4, 0.25, 0.1));
    assert!(!config.use_post_quant_conv && config.use_quant_conv);
    assert_eq!(VaeConfig::sd15().factor(), 8);
}

#[test]
fn scheduler_defaults_differ_by_class() {
    let json = r#"{"_class_name":"PNDMScheduler","beta_start":0.00085,"beta_end":0.012,"beta_schedule":"scaled_linear",
        "num_train_timesteps":1000,"set_alpha_to_one":false,"skip_prk_steps":true,"steps_offset":1,"trained_betas":null}"#;
    assert_eq!(scheduler(json).unwrap(), SchedulerConfig::sd15());
    let ddim = scheduler(r#"{"_class_name":"DDIMScheduler"}"#).unwrap();
    assert!(ddim.set_alpha_to_one && ddim.timestep_spacing == TimestepSpacing::Leading);
    assert_eq!((ddim.beta_start, ddim.beta_end, ddim.beta_schedule), (0.0001, 0.02, BetaSchedule::Linear));
    let euler = scheduler(r#"{"_class_name":"EulerDiscreteScheduler","prediction_type":"v_prediction"}"#).unwrap();
    assert_eq!((euler.timestep_spacing, euler.prediction), (TimestepSpacing::Linspace, PredictionType::V));
}
