//! Pocket, the small model inside the program: Stable Diffusion 1.5's architecture at small width, trained on drawn portraits.
//!
//! `assets/pocket` is a diffusers folder like any other; its files are compiled in, and `weights` opens them through
//! [`folder`] as it opens a folder on disk. The feature `pocket` leaves it out. `assets/pocket/MODEL_CARD.md` says how it was
//! trained, on what, and what it cannot do.

use super::place::Place;

/// `pocket_files!("a", "b")` is a table of names and contents from `assets/pocket`. A file that is not there stops the compiler,
/// which names it.
#[cfg(feature = "pocket")]
macro_rules! pocket_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/pocket/", $name)))),*]
    };
}

#[cfg(feature = "pocket")]
static POCKET: super::place::BuiltIn = super::place::BuiltIn {
    name: "Pocket",
    files: pocket_files![
        "model_index.json",
        "scheduler/scheduler_config.json",
        "text_encoder/config.json",
        "text_encoder/model.safetensors",
        "tokenizer/merges.txt",
        "tokenizer/special_tokens_map.json",
        "tokenizer/tokenizer_config.json",
        "tokenizer/vocab.json",
        "unet/config.json",
        "unet/diffusion_pytorch_model.safetensors",
        "vae/config.json",
        "vae/diffusion_pytorch_model.safetensors",
        "words.json",
    ],
};

/// The model's folder; `None` where it was left out of the build.
pub fn folder() -> Option<Place> {
    #[cfg(feature = "pocket")]
    return Some(Place::from(&POCKET));
    #[cfg(not(feature = "pocket"))]
    None
}
