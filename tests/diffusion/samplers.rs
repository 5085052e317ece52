//! Every sampler against its reference, over a toy model that `tests/data/make_sampler_reference.py` writes down the same
//! way; and what holds for every pair of sampler and schedule, whatever the model.

use serde_json::Value;
use softbox::base::{NoiseSource, SamplerKind, ScheduleKind};
use softbox::diffusion::config::SchedulerConfig;
use softbox::diffusion::noise::NoiseGenerator;
use softbox::diffusion::samplers::{ModelInput, NoiseSchedule, Plan, SamplerError};
use std::convert::Infallible;

fn reference() -> Value {
    serde_json::from_str(include_str!("../data/samplers.json")).unwrap()
}

fn sd15() -> NoiseSchedule {
    NoiseSchedule::new(&SchedulerConfig::sd15()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The toy model of the script: bounded in its input's change, so that errors do not grow by themselves.
fn toy(input: &ModelInput<'_>) -> Vec<f32> {
    let z = input.latent;
    let epsilon = |i: usize| {
        let (here, beside) = (z[i] as f64, z[(i + 1) % z.len()] as f64);
        0.9 * here + 0.2 * (1.7 * beside).sin() + 0.1 * (0.01 * input.timestep as f64 + i as f64).cos()
    };
    (0..z.len()).map(|i| epsilon(i) as f32).collect()
}

struct Run {
    latent: Vec<f32>,
    last_preview: Vec<f32>,
    calls: usize,
    draws: usize,
}

/// The denoising loop as the pipeline writes it.
fn run(plan: &Plan, size: usize, source: NoiseSource, seed: u64) -> Run {
    let mut generator = NoiseGenerator::new(source, seed);
    let mut latent = vec![0.0; size];
    generator.fill(&mut latent);
    latent.iter_mut().for_each(|v| *v *= plan.init_noise_sigma());
    let (mut calls, mut draws, mut last_preview) = (0, 0, Vec::new());
    let mut sampler = plan.sampler::<Infallible>();
    for i in 0..plan.steps() {
        let before = calls;
        let mut model = |input: &ModelInput<'_>| {
            calls += 1;
            assert!((0.0..=999.0).contains(&input.timestep) && input.latent.len() == size);
            Ok(toy(input))
        };
        let mut noise = |out: &mut [f32]| {
            draws += 1;
            generator.fill(out);
        };
        last_preview = sampler.step(i, &mut latent, &mut model, &mut noise).unwrap();
        assert_eq!(calls - before, plan.calls_in_step(i));
    }
    Run { latent, last_preview, calls, draws }
}

#[test]
fn every_sampler_ends_where_its_reference_does() {
    let reference = reference();
    let (seed, size) = (reference["seed"].as_u64().unwrap(), reference["size"].as_u64().unwrap() as usize);
    let table = sd15();
    let mut worst = std::collections::BTreeMap::<&str, f64>::new();
    let runs = reference["runs"].as_array().unwrap();
    for given in runs {
        let sampler = SamplerKind::from_cli_name(given["sampler"].as_str().unwrap()).unwrap();
        let schedule = ScheduleKind::from_cli_name(given["schedule"].as_str().unwrap()).unwrap();
        let steps = given["steps"].as_u64().unwrap() as usize;
        let plan = Plan::new(sampler, schedule, steps, &table).unwrap();
        let want = numbers(&given["latent"]);
        let got = run(&plan, size, NoiseSource::Cpu, seed).latent;
        let scale = want.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let error = got.iter().zip(&want).fold(0.0, |m: f64, (g, w)| m.max((*g as f64 - w).abs())) / scale;
        assert!(error < 1e-5, "{sampler:?} {schedule:?} {steps}: off by {error:e}");
        let entry = worst.entry(sampler.cli_name()).or_default();
        *entry = entry.max(error);
    }
    println!("worst error relative to the largest element: {worst:?}");
    // Each pair that is offered, at five step counts; one leading step is not offered.
    let pairs: usize = SamplerKind::ALL.iter().map(|kind| kind.schedules().len()).sum();
    assert_eq!(runs.len(), pairs * 5 - 1);
}

#[test]
fn cpu_noise_is_torchs_over_one_generator_call_after_call() {
    let reference = &reference()["torch_noise"];
    let mut generator = NoiseGenerator::new(NoiseSource::Cpu, reference["seed"].as_u64().unwrap());
    for call in reference["calls"].as_array().unwrap() {
        let mut drawn = vec![0.0; call["size"].as_u64().unwrap() as usize];
        generator.fill(&mut drawn);
        let picked = drawn.iter().step_by(call["every"].as_u64().unwrap() as usize);
        let (values, tail) = (numbers(&call["values"]), numbers(&call["tail"]));
        for (got, want) in picked.zip(&values).chain(drawn[drawn.len() - 3..].iter().zip(&tail)) {
            assert!((*got as f64 - want).abs() < 2e-6, "{got} is not {want} in a call of {}", drawn.len());
        }
    }
}

#[test]
fn every_pair_stays_finite_repeats_itself_and_calls_the_model_as_planned() {
    let table = sd15();
    for sampler in SamplerKind::ALL {
        for &schedule in sampler.schedules() {
            let range = sampler.step_range(schedule);
            for steps in (1..=60).chain([999, 1000]).filter(|steps| range.contains(steps)) {
                let plan = Plan::new(sampler, schedule, steps, &table).unwrap();
                assert_eq!((plan.steps(), plan.timesteps().len(), plan.sigmas().len()), (steps, steps, steps + 1));
                let first = run(&plan, 17, NoiseSource::Gpu, 5);
                let name = format!("{sampler:?} {schedule:?} {steps}");
                assert!(first.latent.iter().chain(&first.last_preview).all(|v| v.is_finite()), "{name}");
                assert_eq!(first.calls, plan.model_calls(), "{name}");
                assert_eq!(first.latent, run(&plan, 17, NoiseSource::Gpu, 5).latent, "{name}");
                // The last step draws no noise, and ends at its own prediction, except DDIM's, which leaves a trace.
                let a_step = match sampler {
                    SamplerKind::EulerA | SamplerKind::Dpmpp2mSde | SamplerKind::Lcm => 1,
                    SamplerKind::DpmppSde => 2,
                    _ => 0,
                };
                assert_eq!(first.draws, a_step * (steps - 1), "{name}");
                if sampler != SamplerKind::Ddim {
                    assert_eq!(first.latent, first.last_preview, "{name}");
                }
            }
        }
    }
}

#[test]
fn unknown_pairs_and_step_counts_are_refused() {
    let table = sd15();
    for sampler in SamplerKind::ALL {
        for schedule in ScheduleKind::ALL {
            if !sampler.pairs_with(schedule) {
                let refused = Plan::new(sampler, schedule, 20, &table);
                assert_eq!(refused, Err(SamplerError::Pair { sampler, schedule }));
                continue;
            }
            for steps in [0, 1001, usize::MAX] {
                let refused = Plan::new(sampler, schedule, steps, &table);
                assert!(matches!(refused, Err(SamplerError::Steps { steps: s, .. }) if s == steps), "{refused:?}");
            }
        }
    }
    let refused = |sampler, steps| Plan::new(sampler, ScheduleKind::Normal, steps, &table).is_err();
    assert!(refused(SamplerKind::Ddim, 1) && !refused(SamplerKind::Ddim, 2));
    assert!(refused(SamplerKind::Lcm, 51) && !refused(SamplerKind::Lcm, 50));
    // A model with fewer trained timesteps has fewer whole ones to visit.
    let small = NoiseSchedule::new(&SchedulerConfig { train_timesteps: 30, ..SchedulerConfig::sd15() }).unwrap();
    assert!(Plan::new(SamplerKind::Ddim, ScheduleKind::Normal, 31, &small).is_err());
    assert!(Plan::new(SamplerKind::Lcm, ScheduleKind::Normal, 30, &small).is_ok());
    assert!(Plan::new(SamplerKind::Euler, ScheduleKind::Karras, 40, &small).is_ok());
}

#[test]
fn an_error_of_the_model_passes_through_and_the_step_can_be_made_again() {
    let table = sd15();
    let (size, steps) = (17, 6);
    for sampler in SamplerKind::ALL {
        let plan = Plan::new(sampler, sampler.default_schedule(), steps, &table).unwrap();
        let undisturbed = run(&plan, size, NoiseSource::Gpu, 9).latent;
        // One run for each model call that may fail; the failing step is repeated.
        for fails_at in 0..plan.model_calls() {
            let mut generator = NoiseGenerator::new(NoiseSource::Gpu, 9);
            let mut latent = vec![0.0; size];
            generator.fill(&mut latent);
            latent.iter_mut().for_each(|v| *v *= plan.init_noise_sigma());
            let mut run = plan.sampler::<&str>();
            let (mut calls, mut failures, mut i) = (0, 0, 0);
            while i < plan.steps() {
                let before = latent.clone();
                let mut model = |input: &ModelInput<'_>| {
                    calls += 1;
                    if calls == fails_at + 1 { Err("cancelled") } else { Ok(toy(input)) }
                };
                match run.step(i, &mut latent, &mut model, &mut |out: &mut [f32]| generator.fill(out)) {
                    Ok(_) => i += 1,
                    Err(error) => {
                        assert_eq!((error, &latent), ("cancelled", &before), "{sampler:?}");
                        failures += 1;
                    }
                }
            }
            assert_eq!(failures, 1);
            assert_eq!(latent, undisturbed, "{sampler:?} after a failure at call {fails_at}");
        }
    }
}

#[test]
fn pictures_behind_one_another_come_out_as_alone() {
    let plan = Plan::new(SamplerKind::Euler, ScheduleKind::Karras, 8, &sd15()).unwrap();
    // A model that looks at one element only, as the UNet looks at one picture only.
    let mut model = |input: &ModelInput<'_>| Ok::<_, Infallible>(input.latent.iter().map(|v| v.sin()).collect());
    let mut both = vec![3.0f32, -8.0];
    let (mut one, mut two) = (vec![3.0f32], vec![-8.0f32]);
    for latent in [&mut both, &mut one, &mut two] {
        let mut sampler = plan.sampler();
        for i in 0..plan.steps() {
            sampler.step(i, latent, &mut model, &mut |_: &mut [f32]| ()).unwrap();
        }
    }
    assert_eq!(both, [one[0], two[0]]);
}

#[test]
fn a_step_past_the_end_changes_nothing() {
    let table = sd15();
    for sampler in SamplerKind::ALL {
        let plan = Plan::new(sampler, sampler.default_schedule(), 4, &table).unwrap();
        let mut latent = vec![1.0f32, 2.0];
        let mut model = |_: &ModelInput<'_>| Err("called");
        let mut noise = |_: &mut [f32]| panic!("drawn");
        assert_eq!(plan.sampler().step(4, &mut latent, &mut model, &mut noise), Ok(vec![1.0, 2.0]));
        assert_eq!((latent, plan.calls_in_step(4)), (vec![1.0, 2.0], 0));
    }
}
