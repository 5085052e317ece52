//! Pocket, the model inside the program, at work: what end-to-end tests ask of a model that follows its prompt.
//!
//! All pictures come from one engine on the CPU, which keeps the model loaded between them, and each is made once.

mod colors;
mod follows;
mod golden;
mod same;

use crate::engine::stage::Stage;
use colors::Patch;
use softbox::base::{ModelChoice, RgbImage, SamplerKind, ShotRequest, Size};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Steps of a picture that is to follow its prompt.
const STEPS: u32 = 16;

static STUDIO: LazyLock<Mutex<Shared>> = LazyLock::new(|| {
    let mut stage = Stage::new();
    stage.patience = Duration::from_secs(300);
    Mutex::new(Shared { stage, made: HashMap::new() })
});

struct Shared {
    stage: Stage,
    made: HashMap<String, Arc<RgbImage>>,
}

/// A picture of Pocket's own size in [`STEPS`] steps.
fn request(prompt: &str, seed: u64) -> ShotRequest {
    ShotRequest { prompt: prompt.to_owned(), steps: STEPS, size: Size::SMALL, seed, ..ShotRequest::default() }
}

/// The picture of this request, made now or before.
fn picture(request: &ShotRequest) -> Arc<RgbImage> {
    picture_of(ModelChoice::Pocket, request)
}

fn picture_of(model: ModelChoice, request: &ShotRequest) -> Arc<RgbImage> {
    let key = format!("{model:?} {request:?}");
    // A test that failed while it held the lock has left nothing half done.
    let mut shared = STUDIO.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = shared.made.get(&key) {
        return made.clone();
    }
    let mut job = shared.stage.job(request.clone());
    job.setup.model = model;
    job.keep_latents = false;
    let mut told = shared.stage.run(job);
    assert_eq!(told.shots.len(), 1, "{told:?}");
    let image = told.shots.remove(0).image;
    if let Some(folder) = std::env::var_os("SOFTBOX_KEEP_PICTURES") {
        keep(folder.as_ref(), request, &image);
    }
    shared.made.insert(key, image.clone());
    image
}

/// For a person who wants to see what a test saw.
fn keep(folder: &std::path::Path, request: &ShotRequest, image: &RgbImage) {
    let words: String = request.prompt.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let sampler = if request.sampler == SamplerKind::default() { "" } else { request.sampler.cli_name() };
    let negative = if request.negative.is_empty() { "" } else { "-negative" };
    let name = format!("{words}-{}-cfg{}{sampler}{negative}.png", request.seed, request.cfg);
    std::fs::create_dir_all(folder).unwrap();
    let (width, height) = (image.width() as u32, image.height() as u32);
    image::save_buffer(folder.join(name), image.pixels(), width, height, image::ColorType::Rgb8).unwrap();
}

/// The middle colour of a part of a picture, sides in percent of the picture's.
fn middle(image: &RgbImage, patch: Patch) -> [f32; 3] {
    colors::middle(image, patch)
}
