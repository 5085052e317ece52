//! UniPC: the predictor-corrector of Zhao et al. 2023 (arXiv:2302.04867), B₂(h), order 2, predicting the clean latent, as
//! diffusers' `UniPCMultistepScheduler` with `lower_order_final`. One model call a step: the call at a new latent first
//! corrects that latent, then predicts the next.

use super::{Ladder, Model, Noise, Sampler, add, denoise_vp, mix, shares};

pub(super) struct UniPc {
    ladder: Ladder,
    before: Option<Before>,
}

/// What the corrector needs of the step before.
struct Before {
    /// The corrected latent that step started from.
    latent: Vec<f32>,
    /// The clean latent predicted there.
    clean: Vec<f32>,
    /// The one predicted a step earlier still, and its sigma.
    earlier: Option<(Vec<f32>, f64)>,
    sigma: f64,
    /// The order of that step's prediction, which is that of its correction: 1 or 2.
    order: usize,
}

impl UniPc {
    pub(super) fn new(ladder: Ladder) -> Self {
        UniPc { ladder, before: None }
    }
}

/// The step from `from` to `to` by the first order: `x` and `clean` belong to `from`, the result replaces `x`.
fn first_order(x: &mut [f32], clean: &[f32], from: f64, to: f64) {
    let ((_, noise_from), (signal, noise)) = (shares(from), shares(to));
    // −expm1(−h), with h = ln from − ln to, is 1 − to/from.
    mix(x, noise / noise_from, clean, signal * (1.0 - to / from));
}

/// The weights of the corrector of second order for a step of length `h` in ln sigma, where `ratio` is the distance of the
/// earlier prediction in units of `h` (negative): for the earlier difference and for the new one.
fn corrector_weights(h: f64, ratio: f64) -> (f64, f64) {
    let hh = -h;
    let phi_1 = hh.exp_m1();
    let first = phi_1 / hh - 1.0;
    let second = first / hh - 0.5;
    let (b1, b2) = (first / phi_1, 2.0 * second / phi_1);
    // R ρ = b with R = [[1, 1], [ratio, 1]].
    let earlier = (b1 - b2) / (1.0 - ratio);
    (earlier, b1 - earlier)
}

impl Before {
    /// The latent at `sigma`, now that the model has predicted `clean_now` there.
    fn corrected(&self, clean_now: &[f32], sigma: f64) -> Vec<f32> {
        let mut x = self.latent.clone();
        first_order(&mut x, &self.clean, self.sigma, sigma);
        let h = (self.sigma / sigma).ln();
        let strength = shares(sigma).0 * (1.0 - sigma / self.sigma);
        let now = match &self.earlier {
            Some((earlier, earlier_sigma)) if self.order == 2 => {
                let ratio = (self.sigma / earlier_sigma).ln() / h;
                let (weight, now) = corrector_weights(h, ratio);
                add(&mut x, earlier, strength * weight / ratio);
                add(&mut x, &self.clean, -strength * weight / ratio);
                now
            }
            _ => 0.5,
        };
        add(&mut x, clean_now, strength * now);
        add(&mut x, &self.clean, -strength * now);
        x
    }
}

impl<E> Sampler<E> for UniPc {
    fn step(
        &mut self,
        i: usize,
        latent: &mut [f32],
        model: &mut Model<'_, E>,
        _noise: &mut Noise<'_>,
    ) -> Result<Vec<f32>, E> {
        let Some(rung) = self.ladder.rung(i) else { return Ok(latent.to_vec()) };
        let (clean, _) = denoise_vp(latent, rung.sigma, rung.timestep, model)?;
        let before = if i == 0 { None } else { self.before.take() };
        let start = match &before {
            Some(before) => before.corrected(&clean, rung.sigma),
            None => latent.to_vec(),
        };
        let earlier = before.map(|before| (before.clean, before.sigma));
        latent.copy_from_slice(&start);
        first_order(latent, &clean, rung.sigma, rung.next);
        // The first step has nothing to look back to, and the last, to sigma 0, is kept at the first order.
        let is_last = i + 1 == self.ladder.timesteps.len();
        let order = match &earlier {
            Some((old, old_sigma)) if !is_last => {
                let ratio = (rung.sigma / old_sigma).ln() / (rung.sigma / rung.next).ln();
                let weight = 0.5 * shares(rung.next).0 * (1.0 - rung.next / rung.sigma) / ratio;
                add(latent, old, weight);
                add(latent, &clean, -weight);
                2
            }
            _ => 1,
        };
        self.before = Some(Before { latent: start, clean: clean.clone(), earlier, sigma: rung.sigma, order });
        Ok(clean)
    }
}
