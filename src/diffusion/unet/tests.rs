//! The random model at full size: is it one that memory tests and benchmarks can trust?

use super::*;
use crate::base::{ModelChoice, NoiseSource, Precision, VaeChoice};
use crate::diffusion::noise::NoiseGenerator;
use crate::diffusion::pipeline::{self, Denoiser};
use crate::diffusion::prompt;
use crate::diffusion::samplers::{ModelInput, NoiseSchedule, Plan};
use crate::diffusion::text_encoder::TextEncoder;
use crate::diffusion::tokenizer::Tokenizer;
use crate::diffusion::vae::VaeDecoder;
use crate::diffusion::weights::Checkpoint;
use burn::tensor::{DType, Device, TensorData};
use std::sync::Arc;

/// The standard deviation of all values, and the largest of them.
fn spread<const D: usize>(name: &str, x: &Tensor<D>) -> (f32, f32) {
    let values: Vec<f32> = x.clone().cast(DType::F32).into_data().try_into_vec().unwrap();
    let n = values.len() as f32;
    let mean = values.iter().sum::<f32>() / n;
    let std = (values.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / n).sqrt();
    let most = values.iter().fold(0f32, |most, v| most.max(v.abs()));
    println!("{name:<12} std {std:.3}, largest {most:.2}");
    (std, most)
}

fn unit(values: usize) -> Vec<f32> {
    let mut noise = vec![0.0; values];
    NoiseGenerator::new(NoiseSource::Cpu, 7).fill(&mut noise);
    noise
}

#[test]
#[ignore = "loads 4 GB of random weights and takes a minute on two cores"]
fn random_sd15_is_lively_in_every_block_and_listens_to_the_prompt() {
    let device = Device::flex();
    let checkpoint = Checkpoint::open(&ModelChoice::RandomSd15, &VaeChoice::Automatic, false).unwrap();
    let watch = Watch::never();
    let (text, unet, vae) = (checkpoint.text_encoder(), checkpoint.unet(), checkpoint.vae().unwrap());
    let encoder = TextEncoder::load(&text.config, &Loader::new(&text.tensors, &device, Precision::F32, watch)).unwrap();
    let tokenizer = Tokenizer::clip();
    let encode = |text: &str| {
        let chunks = prompt::chunk(&tokenizer, &prompt::read(text).pieces, 77);
        pipeline::encode(&encoder, &chunks, 1, watch).unwrap()
    };
    let (one, other, none) = (encode("portrait of a woman, soft light"), encode("a red car in the rain"), encode(""));
    let within = |name: &str, (std, _): (f32, f32)| assert!((0.3..=3.0).contains(&std), "{name}: {std}");

    let network =
        Arc::new(UNet::load(&unet.config, &Loader::new(&unet.tensors, &device, Precision::F32, watch)).unwrap());
    let shape = [4, 16, 16];
    let tensor = |values: Vec<f32>, shape: [usize; 4]| {
        let row =
            Tensor::<1>::from_data(TensorData::new(values, [shape.iter().product::<usize>()]), (&device, DType::F32));
        row.reshape(shape)
    };
    let context = {
        let values = one.values().to_vec();
        let n = values.len();
        Tensor::<1>::from_data(TensorData::new(values, [n]), (&device, DType::F32)).reshape([1, 77, 768])
    };
    within("text", spread("text", &context));

    // The walk of `UNet::forward`, looking at what each block gives.
    let latent = tensor(unit(4 * 16 * 16), [1, 4, 16, 16]);
    for timestep in [999.0, 500.0, 20.0] {
        println!("timestep {timestep}");
        let time = network.time_embedding.forward(timestep, &latent);
        let mut x = network.conv_in.forward(latent.clone());
        within("conv_in", spread("conv_in", &x));
        let mut skips = vec![x.clone()];
        for (i, block) in network.down_blocks.iter().enumerate() {
            x = block.forward(x, &time, &context, &mut skips, watch).unwrap();
            within("down", spread(&format!("down {i}"), &x));
        }
        x = network.mid_block.forward(x, &time, &context, watch).unwrap();
        within("mid", spread("mid", &x));
        for (i, block) in network.up_blocks.iter().enumerate() {
            x = block.forward(x, &time, &context, &mut skips, watch).unwrap();
            within("up", spread(&format!("up {i}"), &x));
        }
        let out = network.conv_out.forward(network.conv_act.apply(network.conv_norm_out.forward(x)));
        within("out", spread("out", &out));
    }

    // Another prompt, the same noise.
    let schedule = NoiseSchedule::new(checkpoint.scheduler()).unwrap();
    let latents = [&one, &other].map(|prompt| {
        let kind = crate::base::SamplerKind::Dpmpp2m;
        let plan = Plan::new(kind, kind.default_schedule(), 8, &schedule).unwrap();
        let prediction = checkpoint.scheduler().prediction;
        let denoiser = Denoiser::new(network.clone(), &device, Precision::F32, prompt, &none, 7.0, prediction, shape);
        let mut latent: Vec<f32> = unit(4 * 16 * 16).iter().map(|v| v * plan.init_noise_sigma()).collect();
        let mut sampler = plan.sampler::<DiffusionError>();
        for step in 0..plan.steps() {
            let mut model = |input: &ModelInput<'_>| denoiser.predict(input, watch);
            sampler.step(step, &mut latent, &mut model, &mut |_| ()).unwrap();
        }
        latent
    });
    let norm = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>().sqrt();
    let apart: Vec<f32> = latents[0].iter().zip(&latents[1]).map(|(a, b)| a - b).collect();
    let moved = norm(&apart) / norm(&latents[0]);
    println!("another prompt moves the final latents by {:.1} %", 100.0 * moved);
    let final_latent = tensor(latents[0].clone(), [1, 4, 16, 16]);
    spread("latent", &final_latent);

    let decoder = VaeDecoder::load(&vae.config, &Loader::new(&vae.tensors, &device, Precision::F32, watch)).unwrap();
    let picture = decoder.forward(final_latent, watch).unwrap();
    let (std, most) = spread("picture", &picture);
    assert!(moved >= 0.05, "{moved}");
    assert!(std > 0.05 && most.is_finite(), "the picture is not flat: {std}");
}

/// The full-size UNet at 512×768, block by block, on the GPU in f16 against the CPU in f32.
#[test]
#[ignore = "needs an NVIDIA GPU, 8 GB of host memory and a minute"]
fn cuda_blocks_equal_the_cpu() {
    let probe = crate::engine::device::probe();
    let found = probe.devices.iter().find(|c| matches!(c.choice, crate::base::DeviceChoice::Cuda(_)));
    let gpu = crate::engine::device::open_candidate(found.expect("an NVIDIA GPU")).expect("it opens");
    let cpu = Device::flex();
    let checkpoint = Checkpoint::open(&ModelChoice::RandomSd15, &VaeChoice::Automatic, false).unwrap();
    let unet = checkpoint.unet();
    let walk = |device: &Device, precision: Precision| {
        let loader = Loader::new(&unet.tensors, device, precision, Watch::never());
        let network = UNet::load(&unet.config, &loader).unwrap();
        let dtype = crate::diffusion::layers::float_type(precision);
        let on = |values: Vec<f32>| {
            let n = values.len();
            Tensor::<1>::from_data(TensorData::new(values, [n]), (device, DType::F32)).cast(dtype)
        };
        let latent = on(unit(2 * 4 * 96 * 64)).reshape([2, 4, 96, 64]);
        let context = on(unit(2 * 77 * 768)).reshape([2, 77, 768]);
        let watch = Watch::never();
        let mut outputs = Vec::new();
        let mut keep = |name: String, x: &Tensor<4>| {
            let values: Vec<f32> = x.clone().cast(DType::F32).into_data().try_into_vec().unwrap();
            outputs.push((name, values));
        };
        let time = network.time_embedding.forward(500.0, &latent);
        let mut x = network.conv_in.forward(latent);
        keep("conv_in".into(), &x);
        let mut skips = vec![x.clone()];
        for (i, block) in network.down_blocks.iter().enumerate() {
            x = block.forward(x, &time, &context, &mut skips, watch).unwrap();
            keep(format!("down {i}"), &x);
        }
        x = network.mid_block.forward(x, &time, &context, watch).unwrap();
        keep("mid".into(), &x);
        for (i, block) in network.up_blocks.iter().enumerate() {
            x = block.forward(x, &time, &context, &mut skips, watch).unwrap();
            keep(format!("up {i}"), &x);
        }
        let x = network.conv_out.forward(network.conv_act.apply(network.conv_norm_out.forward(x)));
        keep("out".into(), &x);
        outputs
    };
    let want = walk(&cpu, Precision::F32);
    let mut worst = 0f32;
    for precision in [Precision::F32, Precision::F16] {
        for ((name, got), (_, want)) in walk(&gpu, precision).iter().zip(&want) {
            let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>().sqrt();
            let apart = norm(&mut got.iter().zip(want).map(|(g, w)| g - w)) / norm(&mut want.iter().copied());
            println!("{} {name}: {apart:.2e}", precision.label());
            worst = worst.max(apart);
        }
    }
    assert!(worst < 1e-2, "{worst}");
}
