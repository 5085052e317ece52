//! Pictures in memory.

/// An 8-bit RGB picture, rows from top to bottom, three bytes a pixel, no padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RgbImage {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl RgbImage {
    /// `None` unless `pixels` holds exactly `3 × width × height` bytes and neither side is 0.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Option<Self> {
        let fits = width.checked_mul(height).and_then(|n| n.checked_mul(3)) == Some(pixels.len());
        (fits && !pixels.is_empty()).then_some(RgbImage { width, height, pixels })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }
}
