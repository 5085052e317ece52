//! What is done to the UNet's outputs before a sampler sees them: classifier-free guidance and the change of prediction.

use super::{ModelInput, shares};

/// Classifier-free guidance (arXiv:2207.12598): `conditional` becomes `unconditional + cfg (conditional − unconditional)`.
///
/// With `cfg` 1 the unconditional pass is not needed and neither is this.
pub fn combine(conditional: &mut [f32], unconditional: &[f32], cfg: f32) {
    for (cond, uncond) in conditional.iter_mut().zip(unconditional) {
        *cond = uncond + cfg * (*cond - uncond);
    }
}

/// Turns a velocity into the epsilon samplers work with: `sqrt(ᾱ) v + sqrt(1 − ᾱ) x`, where `x` is what the UNet saw.
pub fn epsilon_from_v(prediction: &mut [f32], input: &ModelInput<'_>) {
    let (signal, noise) = shares(input.sigma);
    super::mix(prediction, signal, input.latent, noise);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guidance_goes_beyond_the_conditional() {
        let mut cond = [1.0, -1.0];
        combine(&mut cond, &[0.5, 0.0], 7.0);
        assert_eq!(cond, [4.0, -7.0]);
        combine(&mut cond, &[9.0, 9.0], 1.0);
        assert_eq!(cond, [4.0, -7.0]);
    }

    #[test]
    fn a_velocity_and_its_epsilon_describe_the_same_picture() {
        let (clean, noise, sigma) = (0.7f32, -1.3f32, 1.7f64);
        let (a, s) = shares(sigma);
        let seen = [a as f32 * clean + s as f32 * noise];
        let mut v = [a as f32 * noise - s as f32 * clean];
        epsilon_from_v(&mut v, &ModelInput { latent: &seen, timestep: 0.0, sigma });
        assert!((v[0] - noise).abs() < 1e-6);
    }
}
