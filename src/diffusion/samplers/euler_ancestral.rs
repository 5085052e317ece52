//! Euler a: an Euler step below the next noise level, then fresh noise up to it, as k-diffusion's `sample_euler_ancestral`
//! with eta 1. The last step adds no noise and draws none.

use super::{Ladder, Model, Noise, Sampler, add, ancestral_step, denoise, draw, mix};

pub(super) struct EulerAncestral {
    ladder: Ladder,
}

impl EulerAncestral {
    pub(super) fn new(ladder: Ladder) -> Self {
        EulerAncestral { ladder }
    }
}

impl<E> Sampler<E> for EulerAncestral {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let clean = denoise(latent, rung.sigma, rung.timestep, model)?;
        let (down, up) = ancestral_step(rung.sigma, rung.next);
        let keep = down / rung.sigma;
        mix(latent, keep, &clean, 1.0 - keep);
        if rung.next > 0.0 {
            add(latent, &draw(latent, noise), up);
        }
        Ok(clean)
    }
}
