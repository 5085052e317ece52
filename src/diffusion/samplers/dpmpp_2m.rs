//! DPM++ 2M: the multistep solver of second order of Lu et al. 2022 (arXiv:2211.01095, algorithm 2), as k-diffusion's
//! `sample_dpmpp_2m`. One model call a step; the second order comes from the prediction of the step before.

use super::{Ladder, Model, Noise, Sampler, denoise, mix};

pub(super) struct Dpmpp2m {
    ladder: Ladder,
    /// The prediction of the step before, and that step's length in ln sigma.
    before: Option<(Vec<f32>, f64)>,
}

impl Dpmpp2m {
    pub(super) fn new(ladder: Ladder) -> Self {
        Dpmpp2m { ladder, before: None }
    }
}

impl<E> Sampler<E> for Dpmpp2m {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        _noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let clean = denoise(latent, rung.sigma, rung.timestep, model)?;
        if i == 0 {
            self.before = None;
        }
        let h = (rung.sigma / rung.next).ln();
        let keep = rung.next / rung.sigma;
        match &self.before {
            // To sigma 0 the step is endless in ln sigma, and only the first order is defined.
            Some((old, h_last)) if rung.next > 0.0 => {
                let lean = 0.5 * h / h_last;
                let mut straight = clean.clone();
                mix(&mut straight, 1.0 + lean, old, -lean);
                mix(latent, keep, &straight, 1.0 - keep);
            }
            _ => mix(latent, keep, &clean, 1.0 - keep),
        }
        self.before = Some((clean.clone(), h));
        Ok(clean)
    }
}
