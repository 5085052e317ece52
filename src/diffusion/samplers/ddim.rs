//! DDIM: the deterministic step of Song et al. 2020 (arXiv:2010.02502, formula 12 with eta 0), as diffusers' `DDIMScheduler`.
//!
//! The timestep a step leads to is the next entry of the list. The last leads to the table's first entry, as SD1.5's
//! config has it (`set_alpha_to_one: false`), so a trace of noise is left, as the VAE saw it.

use super::{Ladder, Model, Noise, Sampler, denoise_vp, mix, shares};

pub(super) struct Ddim {
    ladder: Ladder,
}

impl Ddim {
    pub(super) fn new(ladder: Ladder) -> Self {
        Ddim { ladder }
    }
}

impl<E> Sampler<E> for Ddim {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        _noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let (clean, mut epsilon) = denoise_vp(latent, rung.sigma, rung.timestep, model)?;
        let (signal, noise) = shares(rung.next);
        mix(&mut epsilon, noise, &clean, signal);
        latent.copy_from_slice(&epsilon);
        Ok(clean)
    }
}
