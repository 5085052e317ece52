//! A golden picture for every sampler, so that nothing between the prompt and the pixels changes unnoticed.
//!
//! What is kept is each picture at a quarter of its size, in `tests/data/pocket-golden`. Another processor sums in another order,
//! which moves a pixel here and there by a level or two: the mean difference may be [`MEAN`] levels of 255, and no pixel may be
//! off by more than [`MOST`]. Two samplers' pictures of the same seed are further apart than that.
//!
//! After a change that is meant, or with other weights: `SOFTBOX_RENEW_GOLDEN=1 cargo test --release pocket::golden`, then look at
//! the pictures and commit them with the reason.

use super::{picture, request};
use softbox::base::{RgbImage, SamplerKind, ShotRequest};
use std::path::PathBuf;

const MEAN: f64 = 0.75;
const MOST: u8 = 24;
/// Pixels of the picture to a side of a kept one.
const SCALE: usize = 4;

fn file(sampler: SamplerKind) -> PathBuf {
    crate::engine::stage::data("pocket-golden").join(format!("{}.png", sampler.cli_name()))
}

fn asked(sampler: SamplerKind) -> ShotRequest {
    let prompt = "portrait photo of a woman with long red hair, green turtleneck, smiling, teal background, soft light";
    let plain = ShotRequest { steps: 10, sampler, schedule: sampler.default_schedule(), ..request(prompt, 21) };
    // Its own way: few steps, little guidance. Pocket was not trained for it, so this is for the arithmetic alone.
    if sampler == SamplerKind::Lcm { ShotRequest { cfg: 1.5, ..plain } } else { plain }
}

/// The means of squares of [`SCALE`] pixels.
fn small(image: &RgbImage) -> Vec<u8> {
    let (width, height) = (image.width() / SCALE, image.height() / SCALE);
    let mean = |x: usize, y: usize, channel: usize| {
        let at = |i: usize| {
            let (x, y) = (x * SCALE + i % SCALE, y * SCALE + i / SCALE);
            usize::from(image.pixels()[(y * image.width() + x) * 3 + channel])
        };
        let sum: usize = (0..SCALE * SCALE).map(at).sum();
        ((sum + SCALE * SCALE / 2) / (SCALE * SCALE)) as u8
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| mean(x, y, c)))).collect()
}

/// Mean and largest difference.
fn apart(a: &[u8], b: &[u8]) -> (f64, u8) {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    let sum: u64 = differences.clone().map(u64::from).sum();
    (sum as f64 / a.len() as f64, differences.max().unwrap_or(0))
}

#[test]
fn every_sampler_makes_the_picture_it_made() {
    let renew = std::env::var_os("SOFTBOX_RENEW_GOLDEN").is_some();
    let mut kept: Vec<(SamplerKind, Vec<u8>)> = Vec::new();
    for sampler in SamplerKind::ALL {
        let image = picture(&asked(sampler));
        let now = small(&image);
        if renew {
            let (width, height) = ((image.width() / SCALE) as u32, (image.height() / SCALE) as u32);
            std::fs::create_dir_all(file(sampler).parent().unwrap()).unwrap();
            image::save_buffer(file(sampler), &now, width, height, image::ColorType::Rgb8).unwrap();
        }
        let golden = image::open(file(sampler)).unwrap_or_else(|error| panic!("{sampler:?}: {error}")).to_rgb8();
        let (mean, most) = apart(&now, golden.as_raw());
        assert!(mean <= MEAN && most <= MOST, "{sampler:?} is {mean:.2} levels off in the mean, {most} at most");
        kept.push((sampler, golden.into_raw()));
    }
    for (at, (one, picture)) in kept.iter().enumerate() {
        for (other, another) in kept.iter().skip(at + 1) {
            let (mean, _) = apart(picture, another);
            assert!(
                mean > MEAN,
                "{one:?} and {other:?} are only {mean:.2} levels apart: the golden pictures tell nothing"
            );
        }
    }
}
