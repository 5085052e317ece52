//! The GPU's copies of pictures: made when a picture is first drawn, remade when it changes, dropped when it is not drawn.
//!
//! Each pass converts at most one large picture and one thumbnail, so that many pictures at once never make a slow frame.

use crate::base::RgbImage;
use crate::studio::{ShotId, Shots};
use egui::{Color32, ColorImage, Context, TextureFilter, TextureHandle, TextureId, TextureOptions, TextureWrapMode};
use std::collections::HashMap;

/// Large pictures kept beside each other: the one on the canvas and its neighbours.
const LARGE: usize = 3;
/// The longest side of a thumbnail, in pixels.
const THUMB: usize = 320;

/// All textures of the window.
#[derive(Default)]
pub struct Textures {
    preview: Option<(u64, TextureHandle)>,
    large: Vec<(ShotId, TextureHandle)>,
    thumbs: HashMap<ShotId, TextureHandle>,
    hatch: Option<TextureHandle>,
    made_large: bool,
    made_thumb: bool,
}

impl Textures {
    /// Once a pass, before anything is drawn: drops the textures of pictures that are gone.
    pub fn begin(&mut self, shots: &Shots) {
        (self.made_large, self.made_thumb) = (false, false);
        self.large.retain(|(id, _)| shots.get(*id).is_some());
        self.thumbs.retain(|id, _| shots.get(*id).is_some());
    }

    /// The preview, uploaded anew when `version` changed.
    pub fn preview(&mut self, ctx: &Context, version: u64, image: &RgbImage) -> TextureId {
        if let Some((have, texture)) = &mut self.preview {
            if *have != version {
                texture.set(whole(image, ctx), smooth());
                *have = version;
            }
            return texture.id();
        }
        let texture = ctx.load_texture("preview", whole(image, ctx), smooth());
        let id = texture.id();
        self.preview = Some((version, texture));
        id
    }

    /// The last preview that was drawn, for the fade into the picture.
    pub fn last_preview(&self) -> Option<TextureId> {
        self.preview.as_ref().map(|(_, texture)| texture.id())
    }

    pub fn forget_preview(&mut self) {
        self.preview = None;
    }

    /// The whole picture; its thumbnail, if there is one, where another large picture was already made in this pass.
    pub fn large(&mut self, ctx: &Context, id: ShotId, image: &RgbImage) -> Option<TextureId> {
        if let Some(at) = self.large.iter().position(|(have, _)| *have == id) {
            // Most recently drawn last.
            let entry = self.large.remove(at);
            let texture = entry.1.id();
            self.large.push(entry);
            return Some(texture);
        }
        if self.made_large {
            ctx.request_repaint();
            return self.thumbs.get(&id).map(TextureHandle::id);
        }
        self.made_large = true;
        if self.large.len() >= LARGE {
            drop(self.large.remove(0));
        }
        let texture = ctx.load_texture(format!("picture {}", id.0), whole(image, ctx), sharp_when_large());
        let made = texture.id();
        self.large.push((id, texture));
        Some(made)
    }

    /// A small copy; `None` until its turn comes.
    pub fn thumb(&mut self, ctx: &Context, id: ShotId, image: &RgbImage) -> Option<TextureId> {
        if let Some(texture) = self.thumbs.get(&id) {
            return Some(texture.id());
        }
        if self.made_thumb {
            ctx.request_repaint();
            return None;
        }
        self.made_thumb = true;
        let texture = ctx.load_texture(format!("thumbnail {}", id.0), shrunk(image, THUMB), smooth());
        let made = texture.id();
        self.thumbs.insert(id, texture);
        Some(made)
    }

    /// White diagonal lines on nothing, to be tiled.
    pub fn hatch(&mut self, ctx: &Context) -> TextureId {
        let options = TextureOptions { wrap_mode: TextureWrapMode::Repeat, ..TextureOptions::LINEAR };
        self.hatch.get_or_insert_with(|| ctx.load_texture("hatching", hatch_tile(), options)).id()
    }
}

/// For pictures larger than their texels on screen: the preview is a latent's few pixels.
fn smooth() -> TextureOptions {
    TextureOptions { mipmap_mode: Some(TextureFilter::Linear), ..TextureOptions::LINEAR }
}

/// Smooth when fitted, true pixels when zoomed in.
fn sharp_when_large() -> TextureOptions {
    TextureOptions { magnification: TextureFilter::Nearest, ..smooth() }
}

/// The picture in full, or as large as the graphics card takes.
fn whole(image: &RgbImage, ctx: &Context) -> ColorImage {
    let most = ctx.input(|i| i.max_texture_side);
    if image.width().max(image.height()) > most {
        return shrunk(image, most);
    }
    ColorImage::from_rgb([image.width(), image.height()], image.pixels())
}

/// The picture with its longest side at `most` pixels, each the mean of those it stands for.
fn shrunk(image: &RgbImage, most: usize) -> ColorImage {
    let (width, height) = (image.width(), image.height());
    let longest = width.max(height);
    if longest <= most {
        return ColorImage::from_rgb([width, height], image.pixels());
    }
    let small = |side: usize| (side * most / longest).max(1);
    let (w, h) = (small(width), small(height));
    let mut pixels = Vec::with_capacity(w * h);
    for y in 0..h {
        let rows = y * height / h..((y + 1) * height / h).max(y * height / h + 1);
        for x in 0..w {
            let (left, right) = (x * width / w, ((x + 1) * width / w).max(x * width / w + 1));
            let mut sum = [0u32; 3];
            for row in rows.clone() {
                let from = (row * width + left) * 3;
                let to = (row * width + right) * 3;
                for pixel in image.pixels().get(from..to).unwrap_or_default().chunks_exact(3) {
                    for (total, value) in sum.iter_mut().zip(pixel) {
                        *total += u32::from(*value);
                    }
                }
            }
            let n = ((right - left) * rows.len()).max(1) as u32;
            let [r, g, b] = sum.map(|total| (total / n) as u8);
            pixels.push(Color32::from_rgb(r, g, b));
        }
    }
    ColorImage::new([w, h], pixels)
}

/// One tile of hatching: a diagonal, soft-edged line on nothing, that meets itself at the tile's edges.
fn hatch_tile() -> ColorImage {
    const SIDE: usize = 24;
    let pixels = (0..SIDE * SIDE)
        .map(|i| {
            let along = (i % SIDE + i / SIDE) % SIDE;
            // The line is a quarter of the tile wide; its edges fade over two texels.
            let from_middle = (along as f32 - SIDE as f32 / 2.0).abs();
            let cover = ((SIDE as f32 / 7.0 - from_middle) / 2.0 + 0.5).clamp(0.0, 1.0);
            Color32::WHITE.gamma_multiply(cover)
        })
        .collect();
    ColorImage::new([SIDE, SIDE], pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(width: usize, height: usize) -> RgbImage {
        let pixels = (0..width * height).flat_map(|i| [(i % width) as u8, 100, 7]).collect();
        RgbImage::new(width, height, pixels).unwrap()
    }

    #[test]
    fn shrinking_keeps_shape_and_mean() {
        let small = shrunk(&gradient(200, 100), 50);
        assert_eq!(small.size, [50, 25]);
        assert!(small.pixels.iter().all(|p| p.g() == 100 && p.b() == 7));
        // Columns 0 to 3 have the mean 1.5.
        assert_eq!(small.pixels[0].r(), 1);
        // A line of one pixel stays one.
        assert_eq!(shrunk(&gradient(3000, 1), 100).size, [100, 1]);
        assert_eq!(shrunk(&gradient(10, 20), 100).size, [10, 20]);
    }

    #[test]
    fn a_preview_is_uploaded_once_a_version() {
        let ctx = Context::default();
        let mut textures = Textures::default();
        let first = textures.preview(&ctx, 1, &gradient(8, 8));
        let manager = ctx.tex_manager();
        let uploads = || {
            let mut delta = manager.write().take_delta();
            let count = delta.set.len();
            delta.clear();
            count
        };
        uploads();
        assert_eq!(textures.preview(&ctx, 1, &gradient(8, 8)), first);
        assert_eq!(uploads(), 0);
        assert_eq!(textures.preview(&ctx, 2, &gradient(8, 8)), first);
        assert_eq!(uploads(), 1);
    }

    #[test]
    fn one_large_picture_a_pass_and_three_in_all() {
        let ctx = Context::default();
        let mut textures = Textures::default();
        for id in 0..5 {
            textures.made_large = false;
            assert!(textures.large(&ctx, ShotId(id), &gradient(16, 16)).is_some());
            assert!(textures.large(&ctx, ShotId(id + 100), &gradient(16, 16)).is_none());
        }
        assert_eq!(textures.large.len(), LARGE);
    }
}
