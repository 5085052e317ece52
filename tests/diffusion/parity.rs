//! The networks and the whole pipeline give what diffusers, transformers and k-diffusion give, on tiny models with random
//! weights: two folders of different shape and one single file. `data/make_reference.py` made models and vectors.
//!
//! Tolerances are relative to the largest element: 1e-4 for a network, 1e-3 for the final latents of twenty steps.

use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::Value;
use softbox::base::{DeviceChoice, ModelChoice, NoiseSource, Precision, SamplerKind, ScheduleKind, VaeChoice};
use softbox::diffusion::config::PredictionType;
use softbox::diffusion::layers::Loader;
use softbox::diffusion::noise::NoiseGenerator;
use softbox::diffusion::pipeline::{self, Conditioning, Denoiser};
use softbox::diffusion::prompt;
use softbox::diffusion::samplers::{ModelInput, NoiseSchedule, Plan};
use softbox::diffusion::text_encoder::TextEncoder;
use softbox::diffusion::tokenizer::Tokenizer;
use softbox::diffusion::unet::UNet;
use softbox::diffusion::vae::VaeDecoder;
use softbox::diffusion::weights::checkpoint::open_vae;
use softbox::diffusion::weights::{Archive, Checkpoint};
use softbox::diffusion::{DiffusionError, Watch};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NETWORK: f32 = 1e-4;
const WHOLE: f32 = 1e-3;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A tiny model, loaded on the CPU, with its reference.
struct Tiny {
    checkpoint: Checkpoint,
    text_encoder: TextEncoder,
    unet: Arc<UNet>,
    vae: VaeDecoder,
    tokenizer: Tokenizer,
    facts: Value,
    vectors: Archive,
    device: Device,
}

impl Tiny {
    fn open(name: &str) -> Self {
        Tiny::open_on(name, Device::flex())
    }

    fn open_on(name: &str, device: Device) -> Self {
        let file = data(&format!("{name}.safetensors"));
        let path = if file.exists() { file } else { data(name) };
        let checkpoint = Checkpoint::open(&ModelChoice::Path(path), &VaeChoice::Automatic, false).unwrap();
        assert_eq!(checkpoint.unknown().count, 0, "every tensor is known");
        let (text, unet, vae) = (checkpoint.text_encoder(), checkpoint.unet(), checkpoint.vae().unwrap());
        let loader = |tensors| Loader::new(tensors, &device, Precision::F32, Watch::never());
        let tokenizer = match checkpoint.tokenizer() {
            Some(files) => Tokenizer::from_folder(&files.folder).unwrap(),
            None => Tokenizer::clip(),
        };
        let facts = std::fs::read_to_string(data(&format!("reference-{name}.json"))).unwrap();
        Tiny {
            text_encoder: TextEncoder::load(&text.config, &loader(&text.tensors)).unwrap(),
            unet: Arc::new(UNet::load(&unet.config, &loader(&unet.tensors)).unwrap()),
            vae: VaeDecoder::load(&vae.config, &loader(&vae.tensors)).unwrap(),
            tokenizer,
            facts: serde_json::from_str(&facts).unwrap(),
            vectors: Archive::open(&data(&format!("reference-{name}.safetensors"))).unwrap(),
            checkpoint,
            device,
        }
    }

    /// The values of a vector, and its shape.
    fn vector(&self, name: &str) -> (Vec<f32>, Vec<usize>) {
        let mut bytes = Vec::new();
        self.vectors.read_as(name, Precision::F32, &mut bytes).unwrap();
        let values = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let shape = self.vectors.tensors().get(name).unwrap().shape.clone();
        (values, shape)
    }

    fn tensor<const D: usize>(&self, name: &str) -> Tensor<D> {
        let (values, shape) = self.vector(name);
        let shape: [usize; D] = shape.try_into().unwrap();
        let row = Tensor::<1>::from_data(
            TensorData::new(values, [shape.iter().product::<usize>()]),
            (&self.device, DType::F32),
        );
        row.reshape(shape)
    }

    /// The text that the reference encoded under this name.
    fn encode(&self, key: &str) -> Conditioning {
        let read = prompt::read(self.facts[key].as_str().unwrap());
        let chunks = prompt::chunk(&self.tokenizer, &read.pieces, self.positions());
        pipeline::encode(&self.text_encoder, &chunks, 1, Watch::never()).unwrap()
    }

    fn positions(&self) -> usize {
        self.checkpoint.text_encoder().config.max_positions
    }
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// The largest difference over the largest element.
fn error(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(0f32, |most, v| most.max(v.abs()));
    let worst =
        got.iter().zip(want).fold(0f32, |most, (g, w)| if g.is_nan() { f32::NAN } else { most.max((g - w).abs()) });
    worst / scale
}

fn assert_near(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    let error = error(got, want);
    println!("parity: {what}: {error:.2e}");
    assert!(error <= tolerance, "{what}: {error:.2e}, at most {tolerance:.0e}");
}

fn for_each_model(test: impl Fn(&str, &Tiny)) {
    for name in ["tiny-a", "tiny-b", "tiny-single"] {
        test(name, &Tiny::open(name));
    }
}

/// The first Vulkan device, opened as the program opens it.
fn vulkan() -> Device {
    let probe = softbox::engine::device::probe();
    let found = probe.devices.iter().find(|candidate| matches!(candidate.choice, DeviceChoice::Vulkan(_)));
    softbox::engine::device::open_candidate(found.expect("a Vulkan device")).expect("it opens")
}

/// The code that GPUs run, on whatever Vulkan there is (a software renderer in CI): each network against its vectors.
#[test]
#[ignore = "needs a Vulkan device, a software renderer will do"]
fn vulkan_networks_equal_the_reference() {
    for name in ["tiny-a", "tiny-b", "tiny-single"] {
        let tiny = Tiny::open_on(name, vulkan());
        let (ids, shape) = tiny.vector_of_ids();
        let (want, _) = tiny.vector("text.clip_skip_1");
        let got = host(tiny.text_encoder.forward(&ids[..shape[1]], 1, Watch::never()).unwrap());
        assert_near(&got, &want[..got.len()], WHOLE, &format!("{name} text encoder on Vulkan"));
        check_decode(&tiny, &tiny.vae, 1, &format!("{name} on Vulkan"));
        let latent = tiny.tensor::<4>("unet.0.latent");
        let got = host(tiny.unet.forward(latent, 519.3, tiny.tensor("unet.0.context"), Watch::never()).unwrap());
        assert_near(&got, &tiny.vector("unet.0.out").0, WHOLE, &format!("{name} UNet on Vulkan"));
    }
}

#[test]
fn token_ids_and_text_encoder() {
    for_each_model(|name, tiny| {
        let prompts = tiny.facts["prompts"].as_array().unwrap();
        let (ids, shape) = tiny.vector_of_ids();
        let width = tiny.checkpoint.text_encoder().config.hidden_size;
        for entry in prompts {
            let text = entry["text"].as_str().unwrap();
            let want: Vec<u32> =
                entry["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
            assert_eq!(tiny.tokenizer.encode(text), want, "{name}: {text}");
        }
        for clip_skip in [1, 2] {
            let (want, _) = tiny.vector(&format!("text.clip_skip_{clip_skip}"));
            for (row, chunk) in ids.chunks(shape[1]).enumerate() {
                let got = host(tiny.text_encoder.forward(chunk, clip_skip, Watch::never()).unwrap());
                let want = &want[row * shape[1] * width..][..shape[1] * width];
                assert_near(&got, want, NETWORK, &format!("{name} text encoder, clip skip {clip_skip}, row {row}"));
            }
        }
    });
}

impl Tiny {
    fn vector_of_ids(&self) -> (Vec<u32>, Vec<usize>) {
        let info = self.vectors.tensors().get("text.ids").unwrap();
        let shape = info.shape.clone();
        let bytes = self.vectors.read("text.ids").unwrap();
        (bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b) as u32).collect(), shape)
    }
}

#[test]
fn one_unet_call_at_even_and_odd_sizes() {
    for_each_model(|name, tiny| {
        for (index, call) in tiny.facts["unet"].as_array().unwrap().iter().enumerate() {
            let timestep = call["timestep"].as_f64().unwrap() as f32;
            let latent = tiny.tensor::<4>(&format!("unet.{index}.latent"));
            let context = tiny.tensor::<3>(&format!("unet.{index}.context"));
            let got = host(tiny.unet.forward(latent, timestep, context, Watch::never()).unwrap());
            let (want, shape) = tiny.vector(&format!("unet.{index}.out"));
            assert_near(&got, &want, NETWORK, &format!("{name} UNet {shape:?} at t = {timestep}"));
        }
    });
}

#[test]
fn vae_decode() {
    for_each_model(|name, tiny| {
        for index in 0..2 {
            check_decode(tiny, &tiny.vae, index, name);
        }
    });
}

fn check_decode(tiny: &Tiny, vae: &VaeDecoder, index: usize, what: &str) {
    let latent = tiny.tensor::<4>(&format!("vae.{index}.latent"));
    let got = host(vae.forward(latent, Watch::never()).unwrap());
    let (want, shape) = tiny.vector(&format!("vae.{index}.image"));
    assert_near(&got, &want, NETWORK, &format!("{what} VAE {shape:?}"));
}

/// Bare and prefixed keys, three ways to name and shape the attention, four number types.
#[test]
fn vae_files_by_themselves() {
    let tiny = Tiny::open("tiny-single");
    for file in ["vae-bare.safetensors", "vae-prefixed.safetensors", "vae-ldm.safetensors"] {
        let part = open_vae(&data(file)).unwrap();
        let loader = Loader::new(&part.tensors, &tiny.device, Precision::F32, Watch::never());
        let vae = VaeDecoder::load(&part.config, &loader).unwrap();
        (0..2).for_each(|index| check_decode(&tiny, &vae, index, file));
    }
}

#[test]
fn emphasis() {
    for_each_model(|name, tiny| {
        let fact = &tiny.facts["emphasis"];
        let read = prompt::read(fact["prompt"].as_str().unwrap());
        let chunks = prompt::chunk(&tiny.tokenizer, &read.pieces, tiny.positions());
        let encoded = pipeline::encode(&tiny.text_encoder, &chunks, 1, Watch::never()).unwrap();
        let (want, _) = tiny.vector("emphasis.out");
        assert_near(encoded.values(), &want, NETWORK, &format!("{name} emphasis"));
    });
}

/// The pairs of sampler and schedule that the reference ran, by their names there.
fn pairs() -> Vec<(&'static str, SamplerKind, ScheduleKind, PredictionType)> {
    use PredictionType::{Epsilon, V};
    use SamplerKind::*;
    use ScheduleKind::{Karras, Normal};
    vec![
        ("euler.normal", Euler, Normal, Epsilon),
        ("euler.karras", Euler, Karras, Epsilon),
        ("euler-a.normal", EulerA, Normal, Epsilon),
        ("euler-a.karras", EulerA, Karras, Epsilon),
        ("dpmpp-2m.normal", Dpmpp2m, Normal, Epsilon),
        ("dpmpp-2m.karras", Dpmpp2m, Karras, Epsilon),
        ("dpmpp-2m-sde.normal", Dpmpp2mSde, Normal, Epsilon),
        ("dpmpp-2m-sde.karras", Dpmpp2mSde, Karras, Epsilon),
        ("dpmpp-sde.normal", DpmppSde, Normal, Epsilon),
        ("dpmpp-sde.karras", DpmppSde, Karras, Epsilon),
        ("heun.normal", Heun, Normal, Epsilon),
        ("heun.karras", Heun, Karras, Epsilon),
        ("unipc.normal", UniPc, Normal, Epsilon),
        ("unipc.karras", UniPc, Karras, Epsilon),
        ("ddim.leading", Ddim, Normal, Epsilon),
        ("lcm.lcm-origin", Lcm, Normal, Epsilon),
        ("v.euler.normal", Euler, Normal, V),
        ("v.dpmpp-2m.karras", Dpmpp2m, Karras, V),
        ("v.ddim.leading", Ddim, Normal, V),
        ("v.unipc.karras", UniPc, Karras, V),
    ]
}

/// Twenty steps at CFG 7 from the reference's noise.
fn twenty_steps(
    tiny: &Tiny,
    positive: &Conditioning,
    negative: &Conditioning,
    sampler: SamplerKind,
    schedule: ScheduleKind,
    prediction: PredictionType,
) -> Vec<f32> {
    let (first, shape) = tiny.vector("run.noise");
    let shape = [shape[1], shape[2], shape[3]];
    let table = NoiseSchedule::new(tiny.checkpoint.scheduler()).unwrap();
    let plan = Plan::new(sampler, schedule, 20, &table).unwrap();
    let unet = tiny.unet.clone();
    let denoiser = Denoiser::new(unet, &tiny.device, Precision::F32, positive, negative, 7.0, prediction, shape);
    let mut noise = NoiseGenerator::new(NoiseSource::Cpu, 42);
    let mut latent = vec![0.0; first.len()];
    noise.fill(&mut latent);
    assert_near(&latent, &first, 1e-6, "first noise");
    latent.iter_mut().for_each(|v| *v *= plan.init_noise_sigma());
    let mut sampler = plan.sampler::<DiffusionError>();
    for step in 0..plan.steps() {
        let mut model = |input: &ModelInput<'_>| denoiser.predict(input, Watch::never());
        sampler.step(step, &mut latent, &mut model, &mut |out| noise.fill(out)).unwrap();
    }
    latent
}

/// The whole pipeline on a GPU's code: a picture on Vulkan and on the CPU from the same words and noise.
#[test]
#[ignore = "needs a Vulkan device, a software renderer will do"]
fn vulkan_picture_equals_the_cpu() {
    let pictures = [Device::flex(), vulkan()].map(|device| {
        let tiny = Tiny::open_on("tiny-a", device);
        let (positive, negative) = (tiny.encode("prompt"), tiny.encode("negative"));
        let (sampler, schedule) = (SamplerKind::Dpmpp2m, ScheduleKind::Karras);
        let latent = twenty_steps(&tiny, &positive, &negative, sampler, schedule, PredictionType::Epsilon);
        assert_near(&latent, &tiny.vector("run.dpmpp-2m.karras").0, WHOLE, "latents on either device");
        let shape = [4, tiny.vector("run.noise").1[2], tiny.vector("run.noise").1[3]];
        let device = &tiny.device;
        pipeline::decode(&tiny.vae, &latent, shape, device, Precision::F32, Watch::never()).unwrap()
    });
    let [cpu, gpu] = pictures;
    let apart = cpu.pixels().iter().zip(gpu.pixels()).map(|(a, b)| a.abs_diff(*b)).max();
    // A thousandth of the range is a quarter of an 8-bit step, so rounding may go either way once in a while.
    assert!(apart <= Some(1), "{apart:?}");
}

#[test]
fn twenty_steps_of_every_sampler() {
    for_each_model(|name, tiny| {
        let (positive, negative) = (tiny.encode("prompt"), tiny.encode("negative"));
        assert_near(positive.values(), &tiny.vector("run.cond").0, NETWORK, &format!("{name} prompt"));
        assert_near(negative.values(), &tiny.vector("run.uncond").0, NETWORK, &format!("{name} negative"));
        for (run, sampler, kind, prediction) in pairs() {
            let key = format!("run.{run}");
            if !tiny.vectors.tensors().contains_key(&key) {
                assert!(run.starts_with("v."), "{name} lacks {run}");
                continue;
            }
            let latent = twenty_steps(tiny, &positive, &negative, sampler, kind, prediction);
            assert_near(&latent, &tiny.vector(&key).0, WHOLE, &format!("{name} {run}"));
        }
    });
}
