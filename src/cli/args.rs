//! What the command line accepts: commands, options, their words of help, and their checks.
//!
//! Everything that can be wrong with an option by itself is found here, before anything is opened; clap then ends the
//! program with code 2. Help texts stand here in English and in `text/help.rs` in Chinese; what is said while running is in
//! `text` altogether.

use crate::base::choice::MemoryLimits;
use crate::base::request::draw_seed;
use crate::base::{
    Bytes, DeviceChoice, ImageFormat, Lang, ModelChoice, NoiseSource, OutputPlan, Precision, SamplerKind, ScheduleKind,
    ShotRequest, Size, VaeChoice,
};
use crate::engine::names::DEFAULT_PATTERN;
use crate::engine::protocol::Setup;
use crate::engine::save::format_of;
use crate::text::help::EXAMPLES;
use crate::text::{Phrase, cli};
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// A virtual photo studio: Stable Diffusion 1.5 portraits on your own card, with every byte of memory in sight.
///
/// Without a command the window opens.
#[derive(Clone, Debug, Parser)]
#[command(name = "softbox", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = EXAMPLES.en)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub window: WindowArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make pictures without a window
    Generate(Box<GenerateArgs>),
    /// Say what a checkpoint, a VAE or a picture holds, without loading it
    Inspect(InspectArgs),
    /// List the devices, which can be used, and what the others lack
    Devices(DevicesArgs),
    /// Say what of the device's memory is used, and by whom
    Memory(MemoryArgs),
    /// Make the same picture several times and say where the time goes
    Bench(Box<BenchArgs>),
}

/// What the window opens with. Whatever is not given is as it was last time.
#[derive(Clone, Debug, Default, Args)]
pub struct WindowArgs {
    #[cfg_attr(
        feature = "pocket",
        doc = "Checkpoint: a .safetensors file, a diffusers folder, pocket (the small model inside), or random-sd15"
    )]
    #[cfg_attr(not(feature = "pocket"), doc = "Checkpoint: a .safetensors file, a diffusers folder, or random-sd15")]
    #[arg(long, value_name = "PATH", value_parser = models())]
    pub model: Option<ModelChoice>,
    /// Separate VAE, in place of the checkpoint's own
    #[arg(long, value_name = "PATH")]
    pub vae: Option<PathBuf>,
    /// Folder for finished pictures
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// auto, cuda, cuda:N, vulkan, vulkan:N or cpu
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<DeviceChoice>,
    /// Type of weights and activations
    #[arg(long, value_name = "TYPE", value_parser = dtypes())]
    pub dtype: Option<Precision>,
    /// Ceiling for this program's memory, such as 4GiB
    #[arg(long, value_name = "SIZE")]
    pub memory_budget: Option<Bytes>,
    /// Pause when the card is this full, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub pause_at: Option<f64>,
    /// Times and figures to use in place of the device's own memory readings, for tests
    #[arg(long, value_name = "FILE")]
    pub gauge_script: Option<PathBuf>,
    /// Write what each frame costs the window's thread, for tests
    #[arg(long, value_name = "FILE", hide = true)]
    pub frame_times: Option<PathBuf>,
    /// Language of the window
    #[arg(long, value_enum)]
    pub lang: Option<LangArg>,
}

/// The model, and where and how it runs.
#[derive(Clone, Debug, Args)]
pub struct SetupArgs {
    #[cfg_attr(
        feature = "pocket",
        doc = "Checkpoint: a .safetensors file, a diffusers folder, pocket (the small demonstration model inside), or random-sd15 (random weights at full size: noise)"
    )]
    #[cfg_attr(
        not(feature = "pocket"),
        doc = "Checkpoint: a .safetensors file, a diffusers folder, or random-sd15 (random weights at full size: noise)"
    )]
    #[arg(long, value_name = "PATH", value_parser = models())]
    #[cfg_attr(feature = "pocket", arg(default_value = POCKET))]
    pub model: ModelChoice,
    /// Separate VAE, in place of the checkpoint's own
    #[arg(long, value_name = "PATH")]
    pub vae: Option<PathBuf>,
    /// auto, cuda, cuda:N, vulkan, vulkan:N or cpu
    #[arg(long, value_name = "DEVICE", value_parser = device, default_value = "auto")]
    pub device: DeviceChoice,
    /// Type of weights and activations; auto is f16 on a card that has it, else f32
    #[arg(long, value_name = "TYPE", value_parser = dtypes(), default_value = "auto")]
    pub dtype: Precision,
    /// Take the checkpoint's averaged (EMA) weights where it has both
    #[arg(long)]
    pub ema: bool,
    /// The checkpoint predicts v, whatever its files say; --v-prediction=false says it does not
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub v_prediction: Option<bool>,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Limits on memory, and the script for tests.
#[derive(Clone, Debug, Args)]
pub struct LimitArgs {
    /// Ceiling for this program's memory, such as 4GiB
    #[arg(long, value_name = "SIZE")]
    pub memory_budget: Option<Bytes>,
    /// Pause when the card is this full, in percent (50 to 98)
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "90")]
    pub pause_at: f64,
    /// Times and figures to use in place of the device's own memory readings, for tests
    #[arg(long, value_name = "FILE")]
    pub gauge_script: Option<PathBuf>,
}

/// What one picture is made from.
#[derive(Clone, Debug, Args)]
pub struct RequestArgs {
    /// What to see, with weights such as (soft light:1.2)
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub prompt: String,
    /// What not to see
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub negative: String,
    /// Steps from noise to picture, 1 to 1000
    #[arg(long, value_name = "N", value_parser = whole, default_value = "25", allow_hyphen_values = true)]
    pub steps: u32,
    /// How closely to follow the prompt, 1 to 30; 1 is without guidance, in half the time
    #[arg(long, value_name = "X", value_parser = number, default_value = "7", allow_hyphen_values = true)]
    pub cfg: f32,
    #[cfg_attr(
        feature = "pocket",
        doc = "Width and height, multiples of 8; without it 512x768, or 256x256 with pocket"
    )]
    #[cfg_attr(not(feature = "pocket"), doc = "Width and height, multiples of 8; without it 512x768")]
    #[arg(long, value_name = "WxH")]
    pub size: Option<Size>,
    /// Seed of the first picture; -1 draws one
    #[arg(long, value_name = "N", value_parser = seed, default_value = "-1", allow_hyphen_values = true)]
    pub seed: Seed,
    /// Family of noise: gpu as A1111's default, cpu as diffusers and ComfyUI
    #[arg(long, value_name = "FAMILY", value_parser = rngs(), default_value = "gpu")]
    pub rng: NoiseSource,
    #[arg(long, value_name = "NAME", value_parser = samplers(), default_value = "dpmpp-2m")]
    /// How the noise is taken away
    pub sampler: SamplerKind,
    /// Which noise levels are visited; without it the sampler's own
    #[arg(long, value_name = "NAME", value_parser = schedules())]
    pub schedule: Option<ScheduleKind>,
    /// Text encoder's layer, counted from the last; 2 for many illustration models
    #[arg(long, value_name = "N", value_parser = whole, default_value = "1", allow_hyphen_values = true)]
    pub clip_skip: u32,
}

#[derive(Clone, Debug, Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub request: RequestArgs,
    /// How many pictures; each has the next seed
    #[arg(long, value_name = "N", value_parser = whole, default_value = "1", allow_hyphen_values = true)]
    pub count: u32,
    /// A file to write to, or a folder, where no file is ever overwritten
    #[arg(long, value_name = "FILE|DIR", default_value = ".")]
    pub out: PathBuf,
    /// Format of pictures written to a folder
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub output_format: Option<FormatArg>,
    /// Also write the final latents, f32 [n, 4, h, w]
    #[arg(long, value_name = "FILE.safetensors")]
    pub save_latents: Option<PathBuf>,
    #[command(flatten)]
    pub say: SayArgs,
}

#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub request: RequestArgs,
    /// How many runs after the first, which also loads
    #[arg(long, value_name = "N", value_parser = runs, default_value = "3", allow_hyphen_values = true)]
    pub runs: u32,
    #[command(flatten)]
    pub say: SayArgs,
}

#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    #[cfg_attr(
        feature = "pocket",
        doc = "A .safetensors file, a diffusers folder, a picture with its settings inside, or pocket"
    )]
    #[cfg_attr(
        not(feature = "pocket"),
        doc = "A .safetensors file, a diffusers folder, or a picture with its settings inside"
    )]
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub say: SayArgs,
}

#[derive(Clone, Debug, Args)]
pub struct DevicesArgs {
    /// Only look; do not open each device for a first small product
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub say: SayArgs,
}

#[derive(Clone, Debug, Args)]
pub struct MemoryArgs {
    /// auto, cuda, cuda:N, vulkan, vulkan:N or cpu
    #[arg(long, value_name = "DEVICE", value_parser = device, default_value = "auto")]
    pub device: DeviceChoice,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub say: SayArgs,
}

/// How to say it.
#[derive(Clone, Debug, Args)]
pub struct SayArgs {
    /// One JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// No progress and no notes, only results and errors
    #[arg(long)]
    pub quiet: bool,
    /// Language of what is said; without it the system's
    #[arg(long, value_enum)]
    pub lang: Option<LangArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LangArg {
    /// English
    En,
    /// Simplified Chinese
    Zh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    Png,
    #[value(alias = "jpg")]
    Jpeg,
    Webp,
}

impl From<FormatArg> for ImageFormat {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Png => ImageFormat::Png,
            FormatArg::Jpeg => ImageFormat::Jpeg,
            FormatArg::Webp => ImageFormat::Webp,
        }
    }
}

/// Why an option's value does not hold. Clap carries it; `usage` says it in the person's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.en)]
pub struct Unfit(pub Phrase);

/// A seed as typed: `None` is to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub Option<u64>);

impl SetupArgs {
    pub fn setup(&self) -> Setup {
        Setup {
            model: self.model.clone(),
            vae: self.vae.clone().map_or(VaeChoice::Automatic, VaeChoice::Path),
            device: self.device,
            precision: self.dtype,
            v_prediction: self.v_prediction,
            ema: self.ema,
        }
    }
}

impl LimitArgs {
    pub fn limits(&self) -> MemoryLimits {
        MemoryLimits { pause_at: self.pause_at, budget: self.memory_budget, ..MemoryLimits::default() }
    }
}

impl RequestArgs {
    /// The request for this model, not yet checked as a whole. A seed of −1 is drawn here.
    pub fn request(&self, model: &ModelChoice, count: u32) -> ShotRequest {
        ShotRequest {
            prompt: self.prompt.clone(),
            negative: self.negative.clone(),
            steps: self.steps,
            cfg: self.cfg,
            size: self.size.unwrap_or_else(|| model.usual_size()),
            sampler: self.sampler,
            schedule: self.schedule.unwrap_or_else(|| self.sampler.default_schedule()),
            seed: self.seed.0.unwrap_or_else(draw_seed),
            noise: self.rng,
            clip_skip: self.clip_skip,
            count,
        }
    }
}

impl GenerateArgs {
    /// Where pictures go: a folder if it is one, ends like one, or has no ending; else a file, by its ending.
    ///
    /// # Errors
    /// Why the two options do not go together, in words.
    pub fn output(&self, lang: Lang) -> Result<OutputPlan, String> {
        let format = self.output_format.map(ImageFormat::from);
        let looks_like_folder = self.out.to_string_lossy().ends_with(['/', '\\']) || self.out.extension().is_none();
        if self.out.is_dir() || looks_like_folder {
            let format = format.unwrap_or_default();
            return Ok(OutputPlan::Folder { folder: self.out.clone(), pattern: DEFAULT_PATTERN.to_owned(), format });
        }
        let shown = self.out.display();
        match (format_of(&self.out), format) {
            (None, _) => Err(cli::OUT_ENDING.with(lang, &[("path", &shown)])),
            (Some(by_name), Some(asked)) if by_name != asked => {
                Err(cli::OUT_CONTRADICTS.with(lang, &[("path", &shown), ("format", &asked.extension())]))
            }
            _ => Ok(OutputPlan::File(self.out.clone())),
        }
    }
}

/// Names of files need not be UTF-8, so this one is read as the system gives it.
fn models() -> impl TypedValueParser<Value = ModelChoice> {
    OsStringValueParser::new().try_map(model)
}

/// The built-in model, as `--model` and `softbox inspect` call it. A file of that name is `./pocket`.
pub const POCKET: &str = "pocket";

fn model(name: OsString) -> Result<ModelChoice, Unfit> {
    match name.to_str() {
        Some("") => Err(Unfit(cli::UNFIT_NO_PATH)),
        Some(POCKET) => ModelChoice::BUILT_IN.ok_or(Unfit(cli::UNFIT_LEFT_OUT)),
        Some("random-sd15") => Ok(ModelChoice::RandomSd15),
        _ => Ok(ModelChoice::Path(name.into())),
    }
}

fn whole(text: &str) -> Result<u32, Unfit> {
    text.parse().map_err(|_| Unfit(cli::UNFIT_WHOLE))
}

fn runs(text: &str) -> Result<u32, Unfit> {
    text.parse().ok().filter(|runs| (1..=100).contains(runs)).ok_or(Unfit(cli::UNFIT_RUNS))
}

fn number(text: &str) -> Result<f32, Unfit> {
    text.parse().ok().filter(|number: &f32| number.is_finite() && *number >= 0.0).ok_or(Unfit(cli::UNFIT_NUMBER))
}

fn device(text: &str) -> Result<DeviceChoice, Unfit> {
    let wrong = || Unfit(cli::UNFIT_DEVICE);
    let (name, number) = text.split_once(':').map_or((text, None), |(name, number)| (name, Some(number)));
    let number: Option<usize> = number.map(|number| number.parse().map_err(|_| wrong())).transpose()?;
    match (name.to_ascii_lowercase().as_str(), number) {
        ("auto", None) => Ok(DeviceChoice::Auto),
        ("cpu", None) => Ok(DeviceChoice::Cpu),
        ("cuda", number) => Ok(DeviceChoice::Cuda(number.unwrap_or(0))),
        ("vulkan", number) => Ok(DeviceChoice::Vulkan(number.unwrap_or(0))),
        _ => Err(wrong()),
    }
}

/// Unsigned 64-bit, never through a float. Any other negative number than −1 is refused.
fn seed(text: &str) -> Result<Seed, Unfit> {
    match text {
        "-1" => Ok(Seed(None)),
        text => text.parse().map(|seed| Seed(Some(seed))).map_err(|_| Unfit(cli::UNFIT_SEED)),
    }
}

/// "90", "90%" or "0.9" → 0.9.
fn percent(text: &str) -> Result<f64, Unfit> {
    let wrong = || Unfit(cli::UNFIT_PERCENT);
    let number: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| wrong())?;
    let share = if number <= 1.0 { number } else { number / 100.0 };
    if (0.5..=0.98).contains(&share) { Ok(share) } else { Err(wrong()) }
}

/// A parser for one of these names, listed in the help and in the error.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&one| name(one))).try_map(move |text| {
        let found = all.iter().copied().find(|&one| name(one) == text);
        found.ok_or_else(|| std::io::Error::other(text))
    })
}

fn samplers() -> impl TypedValueParser<Value = SamplerKind> {
    one_of(&SamplerKind::ALL, SamplerKind::cli_name)
}

fn schedules() -> impl TypedValueParser<Value = ScheduleKind> {
    one_of(&ScheduleKind::ALL, ScheduleKind::cli_name)
}

fn dtypes() -> impl TypedValueParser<Value = Precision> {
    one_of(&[Precision::Auto, Precision::F32, Precision::F16, Precision::Bf16], Precision::label)
}

fn rngs() -> impl TypedValueParser<Value = NoiseSource> {
    one_of(&[NoiseSource::Gpu, NoiseSource::Cpu], |source| match source {
        NoiseSource::Gpu => "gpu",
        NoiseSource::Cpu => "cpu",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn generate(extra: &[&str]) -> Result<GenerateArgs, clap::Error> {
        let words = ["softbox", "generate", "--model", "m.safetensors"].iter().chain(extra);
        Cli::try_parse_from(words).map(|cli| match cli.command {
            Some(Command::Generate(args)) => *args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_definitions_hold() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_the_window_opens_with_what_is_given() {
        let cli = Cli::try_parse_from(["softbox"]).unwrap();
        assert!(cli.command.is_none() && cli.window.model.is_none());
        let words = ["softbox", "--model", "m", "--out", "o", "--lang", "zh", "--device", "cpu"];
        let window = Cli::try_parse_from(words).unwrap().window;
        assert_eq!(window.model, Some(ModelChoice::Path("m".into())));
        assert_eq!((window.lang, window.device), (Some(LangArg::Zh), Some(DeviceChoice::Cpu)));
    }

    #[test]
    fn the_defaults_are_the_studios() {
        let args = generate(&["--seed", "7"]).unwrap();
        let request = args.request.request(&args.setup.model, args.count);
        assert_eq!(request, ShotRequest { seed: 7, ..ShotRequest::default() });
        assert_eq!(args.setup.limits.limits(), MemoryLimits::default());
        let setup = args.setup.setup();
        assert_eq!(
            (setup.vae, setup.device, setup.precision),
            (VaeChoice::Automatic, DeviceChoice::Auto, Precision::Auto)
        );
        assert_eq!((setup.v_prediction, setup.ema), (None, false));
    }

    #[test]
    fn every_option_reaches_the_request() {
        let args = generate(&[
            "--prompt",
            "-a cat",
            "--negative",
            "--no",
            "--steps",
            "3",
            "--cfg",
            "1.5",
            "--size",
            "64x128",
            "--seed",
            "18446744073709551615",
            "--rng",
            "cpu",
            "--sampler",
            "dpmpp-2m-sde",
            "--schedule",
            "exponential",
            "--clip-skip",
            "2",
            "--count",
            "4",
            "--device",
            "vulkan:1",
            "--dtype",
            "bf16",
            "--memory-budget",
            "4GiB",
            "--pause-at",
            "80%",
            "--ema",
            "--v-prediction",
            "--vae",
            "v.safetensors",
        ])
        .unwrap();
        let request = args.request.request(&args.setup.model, args.count);
        assert_eq!((request.prompt.as_str(), request.negative.as_str()), ("-a cat", "--no"));
        assert_eq!((request.steps, request.cfg, request.seed, request.count), (3, 1.5, u64::MAX, 4));
        assert_eq!((request.sampler, request.schedule), (SamplerKind::Dpmpp2mSde, ScheduleKind::Exponential));
        assert_eq!((request.noise, request.clip_skip), (NoiseSource::Cpu, 2));
        let setup = args.setup.setup();
        assert_eq!((setup.device, setup.precision), (DeviceChoice::Vulkan(1), Precision::Bf16));
        assert_eq!((setup.ema, setup.v_prediction), (true, Some(true)));
        let limits = args.setup.limits.limits();
        assert_eq!((limits.budget, limits.pause_at), (Some(Bytes::gib(4)), 0.8));
    }

    #[test]
    fn a_sampler_without_a_schedule_takes_its_own() {
        for sampler in SamplerKind::ALL {
            let args = generate(&["--sampler", sampler.cli_name(), "--steps", "20"]).unwrap();
            assert!(args.request.request(&args.setup.model, 1).check().is_ok(), "{sampler:?}");
        }
    }

    #[test]
    fn what_does_not_hold_is_refused_with_code_2_and_says_what_would() {
        for (words, says) in [
            (vec!["--seed", "-2"], "-1"),
            (vec!["--seed", "1.5"], "seed"),
            (vec!["--size", "500x500"], "multiples of 8"),
            (vec!["--device", "tpu"], "vulkan:N"),
            (vec!["--device", "cuda:x"], "cuda:N"),
            (vec!["--sampler", "euler_a"], "euler-a"),
            (vec!["--dtype", "f64"], "bf16"),
            (vec!["--memory-budget", "lots"], "4GiB"),
            (vec!["--pause-at", "20"], "50 to 98"),
            (vec!["--nonsense"], "--nonsense"),
        ] {
            let error = generate(&words).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words:?}");
            assert!(error.to_string().contains(says), "{words:?} says {error}");
        }
    }

    #[test]
    fn without_a_model_the_built_in_one_is_taken_at_its_own_size() {
        let read = |words: &[&str]| {
            let words = ["softbox", "generate"].iter().chain(words);
            Cli::try_parse_from(words).map(|cli| match cli.command {
                Some(Command::Generate(args)) => (args.setup.model.clone(), args.request.request(&args.setup.model, 1)),
                other => panic!("{other:?}"),
            })
        };
        let Some(built_in) = ModelChoice::BUILT_IN else {
            assert!(read(&[]).unwrap_err().to_string().contains("--model"));
            assert!(read(&["--model", "pocket"]).is_err());
            return;
        };
        for words in [&[][..], &["--model", "pocket"]] {
            let (model, request) = read(words).unwrap();
            assert_eq!((model, request.size), (built_in.clone(), Size::SMALL));
        }
        assert_eq!(read(&["--size", "256x384"]).unwrap().1.size, Size::SMALL_PRESETS[1]);
        assert_eq!(read(&["--model", "./pocket"]).unwrap().0, ModelChoice::Path("./pocket".into()));
        assert_eq!(read(&["--model", "m"]).unwrap().1.size, Size::default());
    }

    #[test]
    fn files_and_folders_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let dotted = dir.path().join("v1.5");
        std::fs::create_dir(&dotted).unwrap();
        let plan = |out: &str, more: &[&str]| generate(&[&["--out", out], more].concat()).unwrap().output(Lang::En);
        assert_eq!(plan("a.PNG", &[]), Ok(OutputPlan::File("a.PNG".into())));
        assert_eq!(plan("a.jpg", &["--output-format", "jpeg"]), Ok(OutputPlan::File("a.jpg".into())));
        assert!(plan("a.png", &["--output-format", "webp"]).is_err());
        assert!(plan("a.tiff", &[]).is_err_and(|error| error.contains(".webp")));
        for folder in ["pictures", "v2.1/", ".", dotted.to_str().unwrap()] {
            let made = plan(folder, &["--output-format", "webp"]).unwrap();
            let OutputPlan::Folder { format, .. } = made else { panic!("{folder} became {made:?}") };
            assert_eq!(format, ImageFormat::Webp);
        }
    }

    #[test]
    fn v_prediction_is_a_switch_with_both_ways() {
        let read = |words: &[&str]| generate(words).unwrap().setup.v_prediction;
        assert_eq!(read(&["--v-prediction", "--ema"]), Some(true));
        assert_eq!(read(&["--v-prediction=false"]), Some(false));
    }
}
