//! Euler: one straight step along the ODE of Karras et al. 2022 (algorithm 2 without churn), as k-diffusion's `sample_euler`.

use super::{Ladder, Model, Noise, Sampler, denoise, mix};

pub(super) struct Euler {
    ladder: Ladder,
}

impl Euler {
    pub(super) fn new(ladder: Ladder) -> Self {
        Euler { ladder }
    }
}

impl<E> Sampler<E> for Euler {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        _noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let clean = denoise(latent, rung.sigma, rung.timestep, model)?;
        // x + (x − clean) / sigma × (next − sigma), gathered by x and clean.
        let keep = rung.next / rung.sigma;
        mix(latent, keep, &clean, 1.0 - keep);
        Ok(clean)
    }
}
