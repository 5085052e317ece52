//! What one press of Generate asks for.

use super::{NoiseSource, SamplerKind, ScheduleKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names a job for as long as the program runs. Events of another job are told apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// A picture size in pixels; both sides are multiples of 8, from 64 to 8192.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32)", into = "(u32, u32)")]
pub struct Size {
    width: u32,
    height: u32,
}

impl Size {
    pub const STEP: u32 = 8;
    pub const LEAST: u32 = 64;
    pub const MOST: u32 = 8192;
    /// The sizes the window offers as frames.
    pub const PRESETS: [Size; 6] = [
        Size { width: 512, height: 512 },
        Size { width: 512, height: 768 },
        Size { width: 768, height: 512 },
        Size { width: 640, height: 960 },
        Size { width: 768, height: 768 },
        Size { width: 1024, height: 1024 },
    ];
    /// What Pocket was trained on, in the main and beside.
    pub const SMALL: Size = Size { width: 256, height: 256 };
    pub const SMALL_PRESETS: [Size; 3] =
        [Size::SMALL, Size { width: 256, height: 384 }, Size { width: 384, height: 256 }];

    pub fn new(width: u32, height: u32) -> Result<Self, RequestError> {
        let holds = |side: u32| side.is_multiple_of(Self::STEP) && (Self::LEAST..=Self::MOST).contains(&side);
        if holds(width) && holds(height) {
            Ok(Size { width, height })
        } else {
            Err(RequestError::Size { width, height })
        }
    }

    /// The nearest size that holds: each side rounded to a multiple of 8 and kept within bounds.
    pub fn nearest(width: u32, height: u32) -> Self {
        let near = |side: u32| {
            let side = side.clamp(Self::LEAST, Self::MOST);
            (side + Self::STEP / 2) / Self::STEP * Self::STEP
        };
        Size { width: near(width), height: near(height) }
    }

    pub fn width(self) -> u32 {
        self.width
    }

    pub fn height(self) -> u32 {
        self.height
    }

    pub fn swapped(self) -> Self {
        Size { width: self.height, height: self.width }
    }

    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

impl Default for Size {
    fn default() -> Self {
        Size { width: 512, height: 768 }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for Size {
    type Err = RequestError;

    /// Reads "512x768", "512×768" or "512 * 768".
    fn from_str(text: &str) -> Result<Self, RequestError> {
        let wrong = || RequestError::SizeText(text.to_owned());
        let (width, height) = text.split_once(['x', 'X', '×', '*']).ok_or_else(wrong)?;
        Size::new(width.trim().parse().map_err(|_| wrong())?, height.trim().parse().map_err(|_| wrong())?)
    }
}

impl TryFrom<(u32, u32)> for Size {
    type Error = RequestError;
    fn try_from((width, height): (u32, u32)) -> Result<Self, RequestError> {
        Size::new(width, height)
    }
}

impl From<Size> for (u32, u32) {
    fn from(size: Size) -> (u32, u32) {
        (size.width, size.height)
    }
}

/// Everything that decides the pixels of a picture, besides the model. Made by [`ShotRequest::check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShotRequest {
    /// In A1111's syntax, as typed.
    pub prompt: String,
    pub negative: String,
    /// 1 to 1000.
    pub steps: u32,
    /// 1.0 (no guidance, one UNet pass) to 30.0.
    pub cfg: f32,
    pub size: Size,
    pub sampler: SamplerKind,
    pub schedule: ScheduleKind,
    /// The seed of the first picture; picture k takes `seed + k`, wrapping.
    pub seed: u64,
    pub noise: NoiseSource,
    /// 1 takes the text encoder's last layer, 2 the one before, and so on.
    pub clip_skip: u32,
    /// How many pictures, 1 to 1000.
    pub count: u32,
}

impl Default for ShotRequest {
    fn default() -> Self {
        ShotRequest {
            prompt: String::new(),
            negative: String::new(),
            steps: 25,
            cfg: 7.0,
            size: Size::default(),
            sampler: SamplerKind::default(),
            schedule: ScheduleKind::default(),
            seed: 0,
            noise: NoiseSource::default(),
            clip_skip: 1,
            count: 1,
        }
    }
}

impl ShotRequest {
    pub const STEPS: std::ops::RangeInclusive<u32> = 1..=1000;
    pub const CFG: std::ops::RangeInclusive<f32> = 1.0..=30.0;
    pub const CLIP_SKIP: std::ops::RangeInclusive<u32> = 1..=12;
    pub const COUNT: std::ops::RangeInclusive<u32> = 1..=1000;

    /// Passes the request on if every field holds, and names the first that does not.
    pub fn check(self) -> Result<Self, RequestError> {
        Size::new(self.size.width, self.size.height)?;
        if !Self::STEPS.contains(&self.steps) {
            return Err(RequestError::Steps(self.steps));
        }
        let (least, most) = self.sampler.step_range(self.schedule).into_inner();
        if self.sampler.pairs_with(self.schedule) && !(least..=most).contains(&(self.steps as usize)) {
            let (sampler, schedule, steps) = (self.sampler, self.schedule, self.steps);
            return Err(RequestError::PairSteps { sampler, schedule, steps, least, most });
        }
        if !Self::CFG.contains(&self.cfg) {
            return Err(RequestError::Cfg(self.cfg));
        }
        if !Self::CLIP_SKIP.contains(&self.clip_skip) {
            return Err(RequestError::ClipSkip(self.clip_skip));
        }
        if !Self::COUNT.contains(&self.count) {
            return Err(RequestError::Count(self.count));
        }
        if !self.sampler.pairs_with(self.schedule) {
            return Err(RequestError::Pair { sampler: self.sampler, schedule: self.schedule });
        }
        Ok(self)
    }

    /// The same request for picture `index` of the batch alone.
    pub fn single(&self, index: u32) -> Self {
        ShotRequest { seed: self.seed.wrapping_add(u64::from(index)), count: 1, ..self.clone() }
    }
}

/// Draws a seed from the operating system's entropy. 32 bits, since that is what other tools show and accept.
pub fn draw_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) & u64::from(u32::MAX)
}

/// Which field of a request does not hold.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("size {width}x{height}: both sides must be multiples of 8 from 64 to 8192")]
    Size { width: u32, height: u32 },
    #[error("\"{0}\" is not a size; write it like 512x768")]
    SizeText(String),
    #[error("{0} steps: 1 to 1000 are possible")]
    Steps(u32),
    #[error("{} with the {} schedule makes {least} to {most} steps, not {steps}", sampler.label(), schedule.label())]
    PairSteps { sampler: SamplerKind, schedule: ScheduleKind, steps: u32, least: usize, most: usize },
    #[error("CFG {0}: 1 to 30 is possible")]
    Cfg(f32),
    #[error("clip skip {0}: 1 to 12 is possible")]
    ClipSkip(u32),
    /// A checkpoint's text encoder has fewer layers than are to be skipped.
    #[error("clip skip {skip}: this checkpoint's text encoder has {layers} layers")]
    Layers { skip: u32, layers: usize },
    /// A VAE's factor does not divide the size.
    #[error("{size} is not a multiple of {factor}, as this VAE needs")]
    Factor { size: Size, factor: usize },
    #[error("{0} pictures: 1 to 1000 are possible")]
    Count(u32),
    #[error("{} does not work with the {} schedule", sampler.label(), schedule.label())]
    Pair { sampler: SamplerKind, schedule: ScheduleKind },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_multiples_of_eight_within_bounds() {
        assert_eq!("512x768".parse(), Size::new(512, 768));
        for text in ["512x500", "0x512", "512x99999", "512", "x", "-8x64", "8x8", "4294967296x8"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        for (w, h) in [(0, 0), (515, 517), (u32::MAX, 1)] {
            let near = Size::nearest(w, h);
            assert_eq!(Size::new(near.width(), near.height()), Ok(near));
        }
        assert!(Size::PRESETS.iter().all(|s| Size::new(s.width, s.height).is_ok()));
    }

    #[test]
    fn the_default_request_holds_and_each_wrong_field_is_named() {
        let good = ShotRequest::default();
        assert!(good.clone().check().is_ok());
        let wrong = [
            ShotRequest { steps: 0, ..good.clone() },
            ShotRequest { steps: 1001, ..good.clone() },
            ShotRequest { cfg: f32::NAN, ..good.clone() },
            ShotRequest { clip_skip: 0, ..good.clone() },
            ShotRequest { count: 0, ..good.clone() },
            ShotRequest { sampler: SamplerKind::Ddim, ..good.clone() },
        ];
        assert!(wrong.into_iter().all(|request| request.check().is_err()));
    }

    #[test]
    fn seeds_wrap_instead_of_overflowing() {
        let last = ShotRequest { seed: u64::MAX, ..ShotRequest::default() };
        assert_eq!((last.single(0).seed, last.single(1).seed), (u64::MAX, 0));
    }
}
