//! What a run visits: which pairs of sampler and schedule exist, their noise levels, and how often the model is called.

use super::ddim::Ddim;
use super::dpmpp_2m::Dpmpp2m;
use super::dpmpp_2m_sde::Dpmpp2mSde;
use super::dpmpp_sde::DpmppSde;
use super::euler::Euler;
use super::euler_ancestral::EulerAncestral;
use super::heun::Heun;
use super::lcm::Lcm;
use super::unipc::UniPc;
use super::{Ladder, NoiseSchedule, Sampler};
use crate::base::{SamplerKind, ScheduleKind};

/// Why there is no such run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplerError {
    #[error("{} does not go with the {} schedule", sampler.label(), schedule.label())]
    Pair { sampler: SamplerKind, schedule: ScheduleKind },
    #[error("{} with the {} schedule makes {least} to {most} steps, not {steps}", sampler.label(), schedule.label())]
    Steps { sampler: SamplerKind, schedule: ScheduleKind, steps: usize, least: usize, most: usize },
}

/// The noise levels of one run, in order, and the sampler that walks them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    sampler: SamplerKind,
    schedule: ScheduleKind,
    ladder: Ladder,
    /// Timesteps of the noise levels halfway through each step, for samplers that stop there.
    halfway: Vec<f64>,
}

impl Plan {
    /// Refuses pairs that do not exist and step counts the pair cannot make.
    ///
    /// DDIM and LCM visit whole trained timesteps; the others the float timesteps of k-diffusion, with a last sigma of 0.
    pub fn new(
        sampler: SamplerKind,
        schedule: ScheduleKind,
        steps: usize,
        noise: &NoiseSchedule,
    ) -> Result<Self, SamplerError> {
        if !sampler.pairs_with(schedule) {
            return Err(SamplerError::Pair { sampler, schedule });
        }
        let (least, most) = sampler.step_range(schedule).into_inner();
        let most = match sampler {
            SamplerKind::Lcm if schedule == ScheduleKind::Normal => most.min(noise.lcm_grid()),
            SamplerKind::Ddim | SamplerKind::Lcm => most.min(noise.len()),
            _ if schedule == ScheduleKind::Trailing => most.min(noise.len()),
            _ => most,
        };
        if !(least..=most).contains(&steps) {
            return Err(SamplerError::Steps { sampler, schedule, steps, least, most });
        }
        let ladder = match sampler {
            SamplerKind::Ddim | SamplerKind::Lcm => {
                let timesteps = match (sampler, schedule) {
                    (SamplerKind::Ddim, ScheduleKind::Normal) => noise.leading(steps),
                    (SamplerKind::Lcm, ScheduleKind::Normal) => noise.lcm(steps),
                    _ => noise.discrete(schedule, steps),
                };
                let mut sigmas: Vec<f64> = timesteps.iter().map(|&t| noise.sigma(t)).collect();
                sigmas.push(if sampler == SamplerKind::Ddim { noise.ddim_final_sigma() } else { 0.0 });
                Ladder { timesteps, sigmas }
            }
            _ => {
                let mut sigmas = noise.continuous(schedule, steps);
                let timesteps = sigmas.iter().map(|&sigma| noise.timestep(sigma)).collect();
                sigmas.push(0.0);
                Ladder { timesteps, sigmas }
            }
        };
        let halfway = match sampler {
            SamplerKind::DpmppSde => {
                ladder.sigmas.windows(2).map(|pair| noise.timestep(pair.iter().product::<f64>().sqrt())).collect()
            }
            _ => Vec::new(),
        };
        Ok(Plan { sampler, schedule, ladder, halfway })
    }

    pub fn sampler_kind(&self) -> SamplerKind {
        self.sampler
    }

    pub fn schedule_kind(&self) -> ScheduleKind {
        self.schedule
    }

    pub fn steps(&self) -> usize {
        self.ladder.timesteps.len()
    }

    /// Training timesteps, one a step, falling; not necessarily whole.
    pub fn timesteps(&self) -> &[f64] {
        &self.ladder.timesteps
    }

    /// Noise over signal at each step and after the last: one more than steps.
    pub fn sigmas(&self) -> &[f64] {
        &self.ladder.sigmas
    }

    /// What unit noise is multiplied by to be the latent step 0 starts from.
    pub fn init_noise_sigma(&self) -> f32 {
        match self.sampler {
            SamplerKind::Ddim | SamplerKind::UniPc | SamplerKind::Lcm => 1.0,
            _ => self.ladder.sigmas.first().copied().unwrap_or(1.0) as f32,
        }
    }

    /// How often step `i` calls the model: 1, or 2 for Heun and DPM++ SDE before their last step; 0 past the end.
    pub fn calls_in_step(&self, i: usize) -> usize {
        match (self.ladder.rung(i), self.sampler) {
            (None, _) => 0,
            (Some(rung), SamplerKind::Heun | SamplerKind::DpmppSde) if rung.next > 0.0 => 2,
            _ => 1,
        }
    }

    /// How often the whole run calls the model.
    pub fn model_calls(&self) -> usize {
        (0..self.steps()).map(|i| self.calls_in_step(i)).sum()
    }

    /// A fresh sampler for one run of this plan. `E` is the error of the caller's model.
    pub fn sampler<E>(&self) -> Box<dyn Sampler<E>> {
        let ladder = self.ladder.clone();
        match self.sampler {
            SamplerKind::Euler => Box::new(Euler::new(ladder)),
            SamplerKind::EulerA => Box::new(EulerAncestral::new(ladder)),
            SamplerKind::Dpmpp2m => Box::new(Dpmpp2m::new(ladder)),
            SamplerKind::Dpmpp2mSde => Box::new(Dpmpp2mSde::new(ladder)),
            SamplerKind::DpmppSde => Box::new(DpmppSde::new(ladder, self.halfway.clone())),
            SamplerKind::Ddim => Box::new(Ddim::new(ladder)),
            SamplerKind::Heun => Box::new(Heun::new(ladder)),
            SamplerKind::UniPc => Box::new(UniPc::new(ladder)),
            SamplerKind::Lcm => Box::new(Lcm::new(ladder)),
        }
    }
}
