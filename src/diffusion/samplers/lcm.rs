//! LCM: the consistency sampler of Luo et al. 2023 (arXiv:2310.04378), as diffusers' `LCMScheduler`: jump to the clean
//! latent, add noise of the next level, again. For LCM checkpoints; one to eight steps are usual, with CFG near 1.

use super::{Ladder, Model, Noise, Sampler, add, denoise_vp, draw, mix, shares};

/// How much the boundary condition stretches timesteps (`timestep_scaling`).
const TIMESTEP_SCALING: f64 = 10.0;
/// The standard deviation of data the boundary condition assumes (`sigma_data`).
const SIGMA_DATA: f64 = 0.5;

pub(super) struct Lcm {
    ladder: Ladder,
}

impl Lcm {
    pub(super) fn new(ladder: Ladder) -> Self {
        Lcm { ladder }
    }
}

/// How much of the latent and of the predicted clean latent the consistency function returns: `(c_skip, c_out)`. At
/// timestep 0 it returns the latent itself.
fn boundary(timestep: f64) -> (f64, f64) {
    let scaled = timestep * TIMESTEP_SCALING;
    let square = scaled * scaled + SIGMA_DATA * SIGMA_DATA;
    (SIGMA_DATA * SIGMA_DATA / square, scaled / square.sqrt())
}

impl<E> Sampler<E> for Lcm {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let (mut clean, _) = denoise_vp(latent, rung.sigma, rung.timestep, model)?;
        let (skip, out) = boundary(rung.timestep);
        mix(&mut clean, out, latent, skip);
        let (signal, level) = shares(rung.next);
        mix(latent, 0.0, &clean, signal);
        if rung.next > 0.0 {
            add(latent, &draw(latent, noise), level);
        }
        Ok(clean)
    }
}

#[cfg(test)]
mod tests {
    use super::boundary;

    #[test]
    fn the_boundary_condition_is_the_identity_at_zero_and_the_prediction_far_from_it() {
        assert_eq!(boundary(0.0), (1.0, 0.0));
        let (skip, out) = boundary(999.0);
        assert!(skip < 1e-8 && (out - 1.0).abs() < 1e-8);
    }
}
