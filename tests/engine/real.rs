//! A picture from a real checkpoint, by hand: `SOFTBOX_CHECKPOINT=/models/x.safetensors cargo test --release real_checkpoint
//! -- --ignored --nocapture`. It is written where the test says, to be looked at.

use std::process::Command;

#[test]
#[ignore = "takes the path of a real checkpoint in SOFTBOX_CHECKPOINT"]
fn real_checkpoint_makes_a_picture() {
    let model = std::env::var("SOFTBOX_CHECKPOINT").expect("SOFTBOX_CHECKPOINT names a checkpoint");
    let file = std::env::temp_dir().join("softbox-real.png");
    let prompt = "portrait photo of a woman by a window, soft light, 85mm";
    let out = Command::new(env!("CARGO_BIN_EXE_softbox"))
        .args([
            "generate",
            "--model",
            &model,
            "--prompt",
            prompt,
            "--negative",
            "blurry, lowres",
            "--seed",
            "1",
            "--json",
        ])
        .arg("--out")
        .arg(&file)
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let picture = image::open(&file).unwrap().to_rgb8();
    let n = picture.as_raw().len() as f64;
    let mean = picture.as_raw().iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let std = (picture.as_raw().iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / n).sqrt();
    println!("{}: mean {mean:.0}, standard deviation {std:.0}", file.display());
    assert!(std > 10.0 && (20.0..235.0).contains(&mean), "a portrait is neither flat nor black");
}
