//! Samplers: from unit noise to a clean latent, one file a sampler.
//!
//! All arithmetic is on the host, over f32 slices with f64 coefficients; only the model call between two steps touches a
//! device. The denoising loop itself is written out by the caller: a [`Plan`] says what a run visits, its [`Sampler`] makes
//! one step at a time. To add a sampler: one file here, one variant of `SamplerKind`, one reference vector.

mod ddim;
mod dpmpp_2m;
mod dpmpp_2m_sde;
mod dpmpp_sde;
mod euler;
mod euler_ancestral;
pub mod guidance;
mod heun;
mod lcm;
mod plan;
pub mod schedule;
mod unipc;

pub use plan::{Plan, SamplerError};
pub use schedule::{NoiseSchedule, NoiseScheduleError};

/// What the UNet is asked in one call.
#[derive(Clone, Copy, Debug)]
pub struct ModelInput<'a> {
    /// The latent as the UNet was trained to see it, signal and noise adding up to variance 1.
    pub latent: &'a [f32],
    /// The training timestep, not necessarily whole.
    pub timestep: f32,
    /// Noise over signal at that timestep.
    pub sigma: f64,
}

/// The model as a sampler sees it: returns the predicted noise (epsilon), as many numbers as `latent` has.
pub type Model<'a, E> = dyn FnMut(&ModelInput<'_>) -> Result<Vec<f32>, E> + 'a;

/// Fills a slice with standard normal numbers, continuing the generator that made the first latent.
pub type Noise<'a> = dyn FnMut(&mut [f32]) + 'a;

/// One run of one sampler: what it keeps from step to step.
///
/// After the last step `latent` is what the VAE decodes. A run that is stopped earlier decodes what its last `step`
/// returned, since the latent itself still holds noise. The latents of several pictures may lie behind one another in one
/// slice, where the model and the noise take care of each: the arithmetic is element by element.
pub trait Sampler<E>: Send {
    /// Makes step `i` of the plan: calls the model once or twice, moves `latent` on, and returns the predicted clean
    /// latent, which is the preview.
    ///
    /// Steps are made in order, and step 0 starts over. A step past the plan's end changes nothing. An error of the model
    /// (a cancellation is one) comes back as it is, with `latent` and the sampler as they were before, so the step may be
    /// made again.
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E>;
}

/// The timesteps and noise levels of a run.
#[derive(Clone, Debug, PartialEq)]
struct Ladder {
    /// One a step, falling.
    timesteps: Vec<f64>,
    /// One a step and the one the last step leads to, falling.
    sigmas: Vec<f64>,
}

/// Where one step starts and ends.
#[derive(Clone, Copy, Debug)]
struct Rung {
    timestep: f64,
    sigma: f64,
    /// The sigma it leads to.
    next: f64,
}

impl Ladder {
    fn rung(&self, i: usize) -> Option<Rung> {
        match (self.timesteps.get(i), self.sigmas.get(i), self.sigmas.get(i + 1)) {
            (Some(&timestep), Some(&sigma), Some(&next)) => Some(Rung { timestep, sigma, next }),
            _ => None,
        }
    }
}

/// The clean latent a model predicts for `x` = clean + sigma × noise (the scale of k-diffusion).
fn denoise<E>(x: &[f32], sigma: f64, timestep: f64, model: &mut Model<'_, E>) -> Result<Vec<f32>, E> {
    let shrink = (1.0 + sigma * sigma).sqrt().recip() as f32;
    let seen: Vec<f32> = x.iter().map(|v| v * shrink).collect();
    let mut clean = model(&ModelInput { latent: &seen, timestep: timestep as f32, sigma })?;
    mix(&mut clean, -sigma, x, 1.0);
    Ok(clean)
}

/// The clean latent a model predicts for `x` = signal × clean + noise_share × noise with their squares adding up to 1 (the
/// scale of DDIM), and the epsilon it was predicted from.
fn denoise_vp<E>(x: &[f32], sigma: f64, timestep: f64, model: &mut Model<'_, E>) -> Result<(Vec<f32>, Vec<f32>), E> {
    let epsilon = model(&ModelInput { latent: x, timestep: timestep as f32, sigma })?;
    let (signal, noise) = shares(sigma);
    let mut clean = x.to_vec();
    mix(&mut clean, signal.recip(), &epsilon, -noise / signal);
    Ok((clean, epsilon))
}

/// `(sqrt(ᾱ), sqrt(1 − ᾱ))` of a sigma.
fn shares(sigma: f64) -> (f64, f64) {
    let signal = (1.0 + sigma * sigma).sqrt().recip();
    (signal, sigma * signal)
}

/// `x = a x + b y`
fn mix(x: &mut [f32], a: f64, y: &[f32], b: f64) {
    let (a, b) = (a as f32, b as f32);
    for (x, y) in x.iter_mut().zip(y) {
        *x = a * *x + b * y;
    }
}

/// `x += b y`
fn add(x: &mut [f32], y: &[f32], b: f64) {
    let b = b as f32;
    for (x, y) in x.iter_mut().zip(y) {
        *x += b * y;
    }
}

/// Unit noise in the shape of `x`.
fn draw(x: &[f32], noise: &mut Noise<'_>) -> Vec<f32> {
    let mut drawn = vec![0.0; x.len()];
    noise(&mut drawn);
    drawn
}

/// Splits a step from sigma `from` to `to` into a deterministic step down to the first number returned and fresh noise of
/// the second's strength (k-diffusion's ancestral step with eta 1).
fn ancestral_step(from: f64, to: f64) -> (f64, f64) {
    let up = (to * to * (from * from - to * to) / (from * from)).max(0.0).sqrt().min(to);
    ((to * to - up * up).max(0.0).sqrt(), up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ancestral_step_keeps_the_variance() {
        let (down, up) = ancestral_step(14.6146, 7.0);
        assert!((down - 3.352812).abs() < 1e-5 && (up - 6.144807).abs() < 1e-5, "{down} {up}");
        assert_eq!(ancestral_step(0.03, 0.0), (0.0, 0.0));
    }

    #[test]
    fn a_right_prediction_is_denoised_to_what_was_there() {
        let (clean, noise) = ([0.5f32, -1.0], [1.0f32, 2.0]);
        let sigma = 2.0;
        let k: Vec<f32> = clean.iter().zip(&noise).map(|(c, n)| c + sigma as f32 * n).collect();
        let mut model = |input: &ModelInput<'_>| {
            assert!((input.latent[0] - 2.5 / 5f32.sqrt()).abs() < 1e-6 && input.timestep == 7.5);
            Ok::<_, ()>(noise.to_vec())
        };
        assert_eq!(denoise(&k, sigma, 7.5, &mut model), Ok(clean.to_vec()));
        let vp: Vec<f32> = k.iter().map(|v| v / 5f32.sqrt()).collect();
        let (got, _) = denoise_vp(&vp, sigma, 7.5, &mut model).unwrap();
        assert!(got.iter().zip(&clean).all(|(g, c)| (g - c).abs() < 1e-6), "{got:?}");
    }
}
