//! DPM++ 2M SDE: DPM++ 2M on the SDE instead of the ODE, as k-diffusion's `sample_dpmpp_2m_sde` with eta 1 and the
//! midpoint form.
//!
//! Its noise is drawn fresh each step from the picture's own generator, where k-diffusion by default takes increments of
//! one Brownian path. Both are the same process; only how a seed maps to a picture differs.

use super::{Ladder, Model, Noise, Sampler, add, denoise, draw, mix};

pub(super) struct Dpmpp2mSde {
    ladder: Ladder,
    /// The prediction of the step before, and that step's length in ln sigma.
    before: Option<(Vec<f32>, f64)>,
}

impl Dpmpp2mSde {
    pub(super) fn new(ladder: Ladder) -> Self {
        Dpmpp2mSde { ladder, before: None }
    }
}

impl<E> Sampler<E> for Dpmpp2mSde {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let clean = denoise(latent, rung.sigma, rung.timestep, model)?;
        if i == 0 {
            self.before = None;
        }
        if rung.next <= 0.0 {
            mix(latent, 0.0, &clean, 1.0);
            return Ok(clean);
        }
        let h = (rung.sigma / rung.next).ln();
        // With eta 1 the noise decays twice as fast as on the ODE: e^(−2h) of the old latent stays.
        let keep = (-2.0 * h).exp();
        mix(latent, keep, &clean, 1.0 - keep);
        if let Some((old, h_last)) = &self.before {
            let lean = 0.5 * (1.0 - keep) * h / h_last;
            add(latent, &clean, lean);
            add(latent, old, -lean);
        }
        add(latent, &draw(latent, noise), rung.next * (1.0 - keep).sqrt());
        self.before = Some((clean.clone(), h));
        Ok(clean)
    }
}
