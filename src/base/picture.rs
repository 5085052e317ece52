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

    /// The colour of every pixel, if they all have the same.
    pub fn only_colour(&self) -> Option<[u8; 3]> {
        let first = self.pixels.first_chunk::<3>()?;
        self.pixels.chunks_exact(3).all(|pixel| pixel == first).then_some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_one_colour_is_told_from_all_others() {
        let picture = |pixels: &[u8]| RgbImage::new(2, 1, pixels.to_vec()).unwrap().only_colour();
        assert_eq!(picture(&[0; 6]), Some([0; 3]));
        assert_eq!(picture(&[7, 8, 9, 7, 8, 9]), Some([7, 8, 9]));
        assert_eq!(picture(&[0, 0, 0, 0, 0, 1]), None);
    }
}
