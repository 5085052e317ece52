//! Noise from a seed. Both families run on the CPU, so that a seed gives one picture on every device.
//!
//! One generator belongs to one picture: it makes the first latent, then goes on to make the noise of ancestral steps.

mod mt19937;
mod philox;

use crate::base::NoiseSource;
use mt19937::Mt19937;
use philox::Philox;

/// The noise of one picture, in the order it is asked for.
#[derive(Clone, Debug)]
pub struct NoiseGenerator(Family);

#[derive(Clone, Debug)]
enum Family {
    Gpu(Philox),
    Cpu(Box<Mt19937>),
}

impl NoiseGenerator {
    /// Of the `Cpu` family only the low 32 bits of the seed count, as in torch.
    pub fn new(source: NoiseSource, seed: u64) -> Self {
        NoiseGenerator(match source {
            NoiseSource::Gpu => Family::Gpu(Philox::new(seed)),
            NoiseSource::Cpu => Family::Cpu(Box::new(Mt19937::new(seed))),
        })
    }

    /// Fills `out` with standard normal numbers, as one `randn` call of that size.
    ///
    /// What a number is depends on the size of the call as well as on its place, so a latent is filled in one call.
    pub fn fill(&mut self, out: &mut [f32]) {
        match &mut self.0 {
            Family::Gpu(generator) => generator.fill(out),
            Family::Cpu(generator) => generator.fill(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_five_and_last(source: NoiseSource, seed: u64) -> Vec<f32> {
        let mut all = vec![0.0; 4 * 64 * 64];
        NoiseGenerator::new(source, seed).fill(&mut all);
        all[..5].iter().copied().chain(all.last().copied()).collect()
    }

    #[test]
    fn published_values_of_both_families() {
        let cases: [(NoiseSource, u64, [f32; 6]); 4] = [
            (NoiseSource::Gpu, 0, [-0.924662, -0.425344, -2.643846, 0.145184, -0.120867, -2.954316]),
            (NoiseSource::Gpu, 42, [0.194019, 2.161374, -0.172051, 0.849060, -1.924399, 0.082989]),
            (NoiseSource::Cpu, 0, [-1.12584, -1.15236, -0.250579, -0.433879, 0.848710, -1.078208]),
            (NoiseSource::Cpu, 42, [1.926915, 1.487284, 0.900717, -2.105521, 0.678418, -0.293406]),
        ];
        for (source, seed, want) in cases {
            let got = first_five_and_last(source, seed);
            assert!(got.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1.5e-6), "{source:?} {seed}: {got:?}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_noise_again_and_a_second_call_gives_other() {
        for source in [NoiseSource::Gpu, NoiseSource::Cpu] {
            let run = || {
                let mut generator = NoiseGenerator::new(source, u64::MAX);
                let (mut a, mut b) = ([0.0; 64], [0.0; 64]);
                generator.fill(&mut a);
                generator.fill(&mut b);
                (a, b)
            };
            let (a, b) = run();
            assert_eq!((a, b), run());
            assert_ne!(a, b);
        }
    }

    #[test]
    fn noise_is_finite_and_standard_normal() {
        for source in [NoiseSource::Gpu, NoiseSource::Cpu] {
            let mut all = vec![0.0; 100_001];
            NoiseGenerator::new(source, 7).fill(&mut all);
            assert!(all.iter().all(|v| v.is_finite()));
            let mean = all.iter().map(|&v| v as f64).sum::<f64>() / all.len() as f64;
            let spread = all.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / all.len() as f64;
            assert!(mean.abs() < 0.015 && (spread - 1.0).abs() < 0.02, "{source:?}: {mean} {spread}");
        }
    }
}
