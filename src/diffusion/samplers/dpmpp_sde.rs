//! DPM++ SDE: the single-step solver of second order on the SDE, as k-diffusion's `sample_dpmpp_sde` with eta 1 and r ½.
//! Two model calls a step, the second halfway in ln sigma; the last step, to sigma 0, is an Euler step.
//!
//! Noise is drawn fresh, twice a step, from the picture's own generator instead of one Brownian path (see `dpmpp_2m_sde`).

use super::{Ladder, Model, Noise, Sampler, add, ancestral_step, denoise, draw, mix};

pub(super) struct DpmppSde {
    ladder: Ladder,
    /// The timestep halfway through each step.
    halfway: Vec<f64>,
    /// The noise of a step whose second model call failed: made again, the step must not draw anew.
    drawn: Option<(usize, Vec<f32>)>,
}

impl DpmppSde {
    pub(super) fn new(ladder: Ladder, halfway: Vec<f64>) -> Self {
        DpmppSde { ladder, halfway, drawn: None }
    }
}

impl<E> Sampler<E> for DpmppSde {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let clean = denoise(latent, rung.sigma, rung.timestep, model)?;
        let halfway = match self.halfway.get(i) {
            Some(&halfway) if rung.next > 0.0 => halfway,
            _ => {
                let keep = rung.next / rung.sigma;
                mix(latent, keep, &clean, 1.0 - keep);
                return Ok(clean);
            }
        };
        let middle = (rung.sigma * rung.next).sqrt();
        let (down, up) = ancestral_step(rung.sigma, middle);
        let keep = down / rung.sigma;
        let first = match self.drawn.take() {
            Some((step, drawn)) if step == i && drawn.len() == latent.len() => drawn,
            _ => draw(latent, noise),
        };
        let mut there = latent.to_vec();
        mix(&mut there, keep, &clean, 1.0 - keep);
        add(&mut there, &first, up);
        let clean = match denoise(&there, middle, halfway, model) {
            Ok(clean) => clean,
            Err(error) => {
                self.drawn = Some((i, first));
                return Err(error);
            }
        };
        // With r = ½ the second prediction alone carries the step.
        let (down, up) = ancestral_step(rung.sigma, rung.next);
        let keep = down / rung.sigma;
        mix(latent, keep, &clean, 1.0 - keep);
        add(latent, &draw(latent, noise), up);
        Ok(clean)
    }
}
