//! What the left column shows: everything a person may set before pressing Generate.
//!
//! A draft may be wrong for a moment (a schedule that does not go with the sampler); [`Draft::request`] checks it into a
//! [`ShotRequest`]. Values out of bounds are brought back when they are set.

use crate::base::request::RequestError;
use crate::base::{
    DeviceChoice, ImageFormat, ModelChoice, NoiseSource, OutputPlan, Precision, SamplerKind, ScheduleKind, ShotRequest,
    Size, VaeChoice,
};
use crate::engine::protocol::Setup;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The seed as the person sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeedChoice {
    /// Draw a new one for every press of Generate; shown and typed as −1.
    #[default]
    Random,
    Fixed(u64),
}

impl SeedChoice {
    /// Reads the seed field: empty or "-1" draws, digits up to 2⁶⁴ − 1 are taken, anything else is `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        match text.trim() {
            "" | "-1" | "\u{2212}1" => Some(SeedChoice::Random),
            digits => digits.parse().ok().map(SeedChoice::Fixed),
        }
    }
}

impl fmt::Display for SeedChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeedChoice::Random => f.write_str("-1"),
            SeedChoice::Fixed(seed) => write!(f, "{seed}"),
        }
    }
}

/// The settings of the next picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    pub prompt: String,
    pub negative: String,
    pub size: Size,
    /// The size to come back to when the model changes from the built-in one to another, or the other way.
    pub parked_size: Size,
    pub steps: u32,
    pub cfg: f32,
    pub sampler: SamplerKind,
    pub schedule: ScheduleKind,
    pub seed: SeedChoice,
    pub count: u32,
    /// Go on with new seeds until stopped. Not kept over a restart.
    #[serde(skip)]
    pub forever: bool,
    pub clip_skip: u32,
    pub noise: NoiseSource,
    /// Chosen with [`Draft::choose_model`].
    pub model: Option<ModelChoice>,
    pub vae: VaeChoice,
    pub device: DeviceChoice,
    pub precision: Precision,
    /// `None` follows what the checkpoint says.
    pub v_prediction: Option<bool>,
    /// Take the checkpoint's EMA weights where it has both.
    pub ema: bool,
    /// Where pictures go; `None` is the folder that the app offers (see [`Draft::output`]).
    pub folder: Option<PathBuf>,
    pub pattern: String,
    pub format: ImageFormat,
}

impl Default for Draft {
    fn default() -> Self {
        let shot = ShotRequest::default();
        Draft {
            prompt: shot.prompt,
            negative: shot.negative,
            size: shot.size,
            parked_size: ModelChoice::Pocket.usual_size(),
            steps: shot.steps,
            cfg: shot.cfg,
            sampler: shot.sampler,
            schedule: shot.schedule,
            seed: SeedChoice::Random,
            count: shot.count,
            forever: false,
            clip_skip: shot.clip_skip,
            noise: shot.noise,
            model: None,
            vae: VaeChoice::Automatic,
            device: DeviceChoice::Auto,
            precision: Precision::Auto,
            v_prediction: None,
            ema: false,
            folder: None,
            pattern: Draft::PATTERN.to_owned(),
            format: ImageFormat::Png,
        }
    }
}

/// One value a person set.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    Prompt(String),
    Negative(String),
    Size(Size),
    Steps(u32),
    Cfg(f32),
    Sampler(SamplerKind),
    Schedule(ScheduleKind),
    Seed(SeedChoice),
    Count(u32),
    Forever(bool),
    ClipSkip(u32),
    Noise(NoiseSource),
    Vae(VaeChoice),
    Device(DeviceChoice),
    Precision(Precision),
    VPrediction(Option<bool>),
    Ema(bool),
    Folder(Option<PathBuf>),
    Pattern(String),
    Format(ImageFormat),
}

/// Names a field of the draft, to reset it or to ask whether it differs from its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    Prompt,
    Negative,
    Size,
    Steps,
    Cfg,
    Sampler,
    Schedule,
    Seed,
    Count,
    Forever,
    ClipSkip,
    Noise,
    Vae,
    Device,
    Precision,
    VPrediction,
    Ema,
    Folder,
    Pattern,
    Format,
}

impl Field {
    /// The fields under the advanced fold.
    pub const ADVANCED: [Field; 7] =
        [Field::ClipSkip, Field::Noise, Field::VPrediction, Field::Ema, Field::Folder, Field::Pattern, Field::Format];
}

impl Draft {
    /// The default name of a picture, before its ending.
    pub const PATTERN: &'static str = "[number]-[seed]-[prompt]";

    /// Takes one value, brought within bounds. A sampler brings its own default schedule where the old one does not go
    /// with it.
    pub fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Prompt(text) => self.prompt = text,
            Setting::Negative(text) => self.negative = text,
            Setting::Size(size) => self.size = size,
            Setting::Steps(steps) => self.steps = within(steps, &ShotRequest::STEPS),
            Setting::Cfg(cfg) => self.cfg = cfg_within(cfg, self.cfg),
            Setting::Sampler(sampler) => {
                self.sampler = sampler;
                if !sampler.pairs_with(self.schedule) {
                    self.schedule = sampler.default_schedule();
                }
            }
            Setting::Schedule(schedule) => self.schedule = schedule,
            Setting::Seed(seed) => self.seed = seed,
            Setting::Count(count) => self.count = within(count, &ShotRequest::COUNT),
            Setting::Forever(forever) => self.forever = forever,
            Setting::ClipSkip(skip) => self.clip_skip = within(skip, &ShotRequest::CLIP_SKIP),
            Setting::Noise(noise) => self.noise = noise,
            Setting::Vae(vae) => self.vae = vae,
            Setting::Device(device) => self.device = device,
            Setting::Precision(precision) => self.precision = precision,
            Setting::VPrediction(choice) => self.v_prediction = choice,
            Setting::Ema(ema) => self.ema = ema,
            Setting::Folder(folder) => self.folder = folder,
            Setting::Pattern(pattern) => self.pattern = pattern,
            Setting::Format(format) => self.format = format,
        }
    }

    /// Takes another model. The built-in one is for small pictures and the others are for large ones, so each kind has a size
    /// of its own.
    pub fn choose_model(&mut self, model: Option<ModelChoice>) {
        let small = |model: &Option<ModelChoice>| *model == Some(ModelChoice::Pocket);
        if small(&self.model) != small(&model) {
            std::mem::swap(&mut self.size, &mut self.parked_size);
        }
        self.model = model;
    }

    /// The sizes to offer.
    pub fn sizes(&self) -> &'static [Size] {
        self.model.as_ref().map_or(&Size::PRESETS, ModelChoice::sizes)
    }

    /// Puts one field back to its default.
    pub fn reset(&mut self, field: Field) {
        let default = Draft::default();
        self.set(match field {
            Field::Prompt => Setting::Prompt(default.prompt),
            Field::Negative => Setting::Negative(default.negative),
            Field::Size => Setting::Size(self.model.as_ref().map_or(default.size, ModelChoice::usual_size)),
            Field::Steps => Setting::Steps(default.steps),
            Field::Cfg => Setting::Cfg(default.cfg),
            Field::Sampler => Setting::Sampler(default.sampler),
            Field::Schedule => Setting::Schedule(self.sampler.default_schedule()),
            Field::Seed => Setting::Seed(default.seed),
            Field::Count => Setting::Count(default.count),
            Field::Forever => Setting::Forever(default.forever),
            Field::ClipSkip => Setting::ClipSkip(default.clip_skip),
            Field::Noise => Setting::Noise(default.noise),
            Field::Vae => Setting::Vae(default.vae),
            Field::Device => Setting::Device(default.device),
            Field::Precision => Setting::Precision(default.precision),
            Field::VPrediction => Setting::VPrediction(default.v_prediction),
            Field::Ema => Setting::Ema(default.ema),
            Field::Folder => Setting::Folder(default.folder),
            Field::Pattern => Setting::Pattern(default.pattern),
            Field::Format => Setting::Format(default.format),
        });
    }

    /// Whether the field holds another value than [`Draft::reset`] would give it.
    pub fn differs(&self, field: Field) -> bool {
        let mut reset = self.clone();
        reset.reset(field);
        reset != *self
    }

    /// The fields under the advanced fold that differ from their defaults.
    pub fn advanced_differing(&self) -> Vec<Field> {
        Field::ADVANCED.into_iter().filter(|field| self.differs(*field)).collect()
    }

    /// The draft as a request that holds, with this seed.
    pub fn request(&self, seed: u64) -> Result<ShotRequest, RequestError> {
        ShotRequest {
            prompt: self.prompt.clone(),
            negative: self.negative.clone(),
            steps: self.steps,
            cfg: self.cfg,
            size: self.size,
            sampler: self.sampler,
            schedule: self.schedule,
            seed,
            noise: self.noise,
            clip_skip: self.clip_skip,
            count: self.count,
        }
        .check()
    }

    /// The model and how it runs; `None` while no model is chosen.
    pub fn setup(&self) -> Option<Setup> {
        Some(Setup {
            model: self.model.clone()?,
            vae: self.vae.clone(),
            device: self.device,
            precision: self.precision,
            v_prediction: self.v_prediction,
            ema: self.ema,
        })
    }

    /// Where pictures go: the chosen folder, else `fallback`, else they are only shown.
    pub fn output(&self, fallback: Option<&PathBuf>) -> OutputPlan {
        match self.folder.as_ref().or(fallback) {
            Some(folder) => {
                let pattern = if self.pattern.trim().is_empty() { Draft::PATTERN } else { &self.pattern };
                OutputPlan::Folder { folder: folder.clone(), pattern: pattern.to_owned(), format: self.format }
            }
            None => OutputPlan::Keep,
        }
    }

    /// Takes over all that a picture's request says; the count stays, since a picture is one.
    pub fn take(&mut self, request: &ShotRequest) {
        self.prompt = request.prompt.clone();
        self.negative = request.negative.clone();
        self.size = request.size;
        self.set(Setting::Steps(request.steps));
        self.set(Setting::Cfg(request.cfg));
        self.sampler = request.sampler;
        self.schedule = request.schedule;
        self.seed = SeedChoice::Fixed(request.seed);
        self.set(Setting::ClipSkip(request.clip_skip));
        self.noise = request.noise;
    }

    /// Brings values that a settings file may hold out of bounds back within them.
    pub fn tidy(&mut self) {
        for setting in [
            Setting::Steps(self.steps),
            Setting::Cfg(self.cfg),
            Setting::Count(self.count),
            Setting::ClipSkip(self.clip_skip),
            Setting::Sampler(self.sampler),
        ] {
            self.set(setting);
        }
        if !self.cfg.is_finite() {
            self.reset(Field::Cfg);
        }
    }
}

fn within(value: u32, bounds: &std::ops::RangeInclusive<u32>) -> u32 {
    value.clamp(*bounds.start(), *bounds.end())
}

/// A CFG within bounds; what is no number leaves the old one.
fn cfg_within(cfg: f32, old: f32) -> f32 {
    if cfg.is_nan() { old } else { cfg.clamp(*ShotRequest::CFG.start(), *ShotRequest::CFG.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_whole_numbers_of_64_bits_or_minus_one() {
        for (text, seed) in [
            ("", Some(SeedChoice::Random)),
            ("-1", Some(SeedChoice::Random)),
            ("\u{2212}1", Some(SeedChoice::Random)),
            (" 42 ", Some(SeedChoice::Fixed(42))),
            ("18446744073709551615", Some(SeedChoice::Fixed(u64::MAX))),
            ("9007199254740993", Some(SeedChoice::Fixed(9_007_199_254_740_993))),
            ("18446744073709551616", None),
            ("-2", None),
            ("4.0", None),
            ("seed", None),
        ] {
            assert_eq!(SeedChoice::from_text(text), seed, "{text}");
            if let Some(seed) = seed {
                assert_eq!(SeedChoice::from_text(&seed.to_string()), Some(seed));
            }
        }
    }

    #[test]
    fn values_are_brought_within_bounds_when_set() {
        let mut draft = Draft::default();
        for setting in [Setting::Steps(0), Setting::Cfg(f32::NAN), Setting::Count(0), Setting::ClipSkip(99)] {
            draft.set(setting);
        }
        assert_eq!((draft.steps, draft.cfg, draft.count, draft.clip_skip), (1, 7.0, 1, 12));
        draft.set(Setting::Cfg(f32::INFINITY));
        assert_eq!(draft.cfg, 30.0);
        assert!(draft.request(1).is_ok());
    }

    #[test]
    fn a_sampler_keeps_the_schedule_only_where_they_pair() {
        let mut draft = Draft::default();
        draft.set(Setting::Sampler(SamplerKind::Euler));
        assert_eq!(draft.schedule, ScheduleKind::Karras);
        draft.set(Setting::Sampler(SamplerKind::Ddim));
        assert!(draft.sampler.pairs_with(draft.schedule));
        assert!(!draft.differs(Field::Schedule));
        draft.set(Setting::Schedule(ScheduleKind::Karras));
        assert!(draft.differs(Field::Schedule));
        assert!(matches!(draft.request(0), Err(RequestError::Pair { .. })));
    }

    #[test]
    fn every_field_can_differ_and_be_reset() {
        let changes = [
            (Field::Prompt, Setting::Prompt("a".into())),
            (Field::Negative, Setting::Negative("b".into())),
            (Field::Size, Setting::Size(Size::nearest(64, 64))),
            (Field::Steps, Setting::Steps(3)),
            (Field::Cfg, Setting::Cfg(2.0)),
            (Field::Sampler, Setting::Sampler(SamplerKind::Heun)),
            (Field::Schedule, Setting::Schedule(ScheduleKind::Trailing)),
            (Field::Seed, Setting::Seed(SeedChoice::Fixed(0))),
            (Field::Count, Setting::Count(4)),
            (Field::Forever, Setting::Forever(true)),
            (Field::ClipSkip, Setting::ClipSkip(2)),
            (Field::Noise, Setting::Noise(NoiseSource::Cpu)),
            (Field::Vae, Setting::Vae(VaeChoice::Path("v".into()))),
            (Field::Device, Setting::Device(DeviceChoice::Cpu)),
            (Field::Precision, Setting::Precision(Precision::F32)),
            (Field::VPrediction, Setting::VPrediction(Some(true))),
            (Field::Ema, Setting::Ema(true)),
            (Field::Folder, Setting::Folder(Some("f".into()))),
            (Field::Pattern, Setting::Pattern("p".into())),
            (Field::Format, Setting::Format(ImageFormat::Webp)),
        ];
        let mut draft = Draft::default();
        for (field, setting) in changes {
            assert!(!draft.differs(field), "{field:?}");
            draft.set(setting);
            assert!(draft.differs(field), "{field:?}");
            let advanced = Field::ADVANCED.contains(&field);
            assert_eq!(draft.advanced_differing(), if advanced { vec![field] } else { vec![] });
            draft.reset(field);
            assert_eq!(draft, Draft::default(), "{field:?}");
        }
    }

    #[test]
    fn a_pictures_request_fills_the_draft_so_that_it_asks_for_the_same() {
        let request = ShotRequest {
            prompt: "portrait".into(),
            steps: 12,
            sampler: SamplerKind::Ddim,
            schedule: ScheduleKind::Trailing,
            seed: 77,
            noise: NoiseSource::Cpu,
            clip_skip: 2,
            ..ShotRequest::default()
        };
        let mut draft = Draft { count: 3, ..Draft::default() };
        draft.take(&request);
        assert_eq!(draft.seed, SeedChoice::Fixed(77));
        assert_eq!(draft.request(77), Ok(ShotRequest { count: 3, ..request }));
    }

    #[test]
    fn the_built_in_model_has_a_size_of_its_own_and_the_others_share_one() {
        let mut draft = Draft::default();
        let mine = Size::nearest(640, 960);
        draft.set(Setting::Size(mine));
        draft.choose_model(Some(ModelChoice::Pocket));
        assert_eq!((draft.size, draft.differs(Field::Size)), (Size::SMALL, false));
        let tall = Size::nearest(256, 384);
        assert!(draft.sizes().contains(&tall));
        draft.set(Setting::Size(tall));
        draft.choose_model(Some(ModelChoice::Path("m".into())));
        assert_eq!((draft.size, draft.sizes()), (mine, &Size::PRESETS[..]));
        draft.choose_model(Some(ModelChoice::RandomSd15));
        assert_eq!(draft.size, mine);
        draft.choose_model(Some(ModelChoice::Pocket));
        assert_eq!(draft.size, tall);
        draft.reset(Field::Size);
        assert_eq!(draft.size, Size::SMALL);
    }

    #[test]
    fn an_empty_pattern_still_names_files() {
        let draft = Draft { pattern: "  ".into(), ..Draft::default() };
        let folder = PathBuf::from("out");
        let OutputPlan::Folder { pattern, .. } = draft.output(Some(&folder)) else { panic!("no folder") };
        assert_eq!(pattern, Draft::PATTERN);
        assert_eq!(draft.output(None), OutputPlan::Keep);
    }
}
