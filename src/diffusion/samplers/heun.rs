//! Heun: an Euler step, a second look from where it ends, and the mean of both slopes (Karras et al. 2022, algorithm 2
//! without churn), as k-diffusion's `sample_heun`. Two model calls a step; the last, to sigma 0, is an Euler step.

use super::{Ladder, Model, Noise, Sampler, denoise, mix};

pub(super) struct Heun {
    ladder: Ladder,
}

impl Heun {
    pub(super) fn new(ladder: Ladder) -> Self {
        Heun { ladder }
    }
}

impl<E> Sampler<E> for Heun {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        _noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let clean = denoise(latent, rung.sigma, rung.timestep, model)?;
        let keep = rung.next / rung.sigma;
        let mut ahead = latent.to_vec();
        mix(&mut ahead, keep, &clean, 1.0 - keep);
        let Some(next) = self.ladder.rung(i + 1) else {
            latent.copy_from_slice(&ahead);
            return Ok(clean);
        };
        let clean_ahead = denoise(&ahead, next.sigma, next.timestep, model)?;
        let (here, there) = (rung.sigma.recip() as f32, next.sigma.recip() as f32);
        let half_step = (0.5 * (rung.next - rung.sigma)) as f32;
        for (((x, clean), ahead), clean_ahead) in latent.iter_mut().zip(&clean).zip(&ahead).zip(&clean_ahead) {
            *x += half_step * ((*x - clean) * here + (ahead - clean_ahead) * there);
        }
        Ok(clean_ahead)
    }
}
