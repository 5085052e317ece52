//! The noise a model was trained with, and the noise levels a run visits.
//!
//! `NoiseSchedule` is the table a `SchedulerConfig` describes: how much signal and noise a training timestep holds. The
//! functions below pick from it the list each `ScheduleKind` stands for. Everything is f64 and made once a run.
//! Sigma is noise over signal, `sqrt((1 − ᾱ) / ᾱ)`, as in Karras et al. 2022 (arXiv:2206.00364).

use crate::base::ScheduleKind;
use crate::diffusion::config::{BetaSchedule, SchedulerConfig};

/// More timesteps than this in a config are a broken file, not a model.
const MOST_TIMESTEPS: usize = 100_000;

/// The timesteps LCM was distilled on: `original_inference_steps` of diffusers' `LCMScheduler`.
const LCM_GRID: usize = 50;

/// The exponent of the Karras schedule, from the paper's table 1.
const KARRAS_RHO: f64 = 7.0;

/// Why a scheduler config describes no noise schedule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoiseScheduleError {
    #[error("a noise schedule has 2 to {MOST_TIMESTEPS} timesteps, not {0}")]
    Timesteps(usize),
    #[error("beta {index} is {value}; betas lie between 0 and 1")]
    Beta { index: usize, value: f64 },
    #[error(
        "the signal left at timestep {index} is {value}; it has to fall from timestep to timestep and stay above 0"
    )]
    Signal { index: usize, value: f64 },
}

/// The trained timesteps: `ᾱ` and sigma of each, with everything between them found by interpolation.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseSchedule {
    /// ᾱ by timestep, falling from almost 1.
    alphas_cumprod: Vec<f64>,
    /// ln sigma by timestep, rising.
    log_sigmas: Vec<f64>,
    steps_offset: usize,
    set_alpha_to_one: bool,
}

impl NoiseSchedule {
    pub fn new(config: &SchedulerConfig) -> Result<Self, NoiseScheduleError> {
        let betas = betas(config)?;
        for (index, &value) in betas.iter().enumerate() {
            if !(value > 0.0 && value < 1.0) {
                return Err(NoiseScheduleError::Beta { index, value });
            }
        }
        let mut signal = 1.0;
        let mut alphas_cumprod: Vec<f64> = betas
            .iter()
            .map(|beta| {
                signal *= 1.0 - beta;
                signal
            })
            .collect();
        if config.rescale_betas_zero_snr {
            remove_last_signal(&mut alphas_cumprod);
        }
        let mut before = 1.0;
        for (index, &value) in alphas_cumprod.iter().enumerate() {
            if !(value > 0.0 && value < before) {
                return Err(NoiseScheduleError::Signal { index, value });
            }
            before = value;
        }
        let log_sigmas = alphas_cumprod.iter().map(|a| 0.5 * ((1.0 - a) / a).ln()).collect();
        Ok(NoiseSchedule {
            alphas_cumprod,
            log_sigmas,
            steps_offset: config.steps_offset,
            set_alpha_to_one: config.set_alpha_to_one,
        })
    }

    /// The number of trained timesteps, at least 2.
    pub fn len(&self) -> usize {
        self.alphas_cumprod.len()
    }

    /// Never: a schedule has at least 2 timesteps.
    pub fn is_empty(&self) -> bool {
        self.alphas_cumprod.is_empty()
    }

    /// ᾱ of each trained timestep.
    pub fn alphas_cumprod(&self) -> &[f64] {
        &self.alphas_cumprod
    }

    pub fn sigma_min(&self) -> f64 {
        self.sigma(0.0)
    }

    pub fn sigma_max(&self) -> f64 {
        self.sigma(self.last_timestep())
    }

    /// Sigma at a timestep; between two entries its logarithm is interpolated. `t` outside the table takes its end.
    pub fn sigma(&self, t: f64) -> f64 {
        let t = t.clamp(0.0, self.last_timestep());
        let low = t.floor();
        let at = |index: f64| self.log_sigmas.get(index as usize).copied().unwrap_or(f64::NAN);
        let share = t - low;
        let log_sigma = if share > 0.0 { (1.0 - share) * at(low) + share * at(low + 1.0) } else { at(low) };
        log_sigma.exp()
    }

    /// The timestep of a sigma, the inverse of [`Self::sigma`]; sigmas outside the table take its end.
    pub fn timestep(&self, sigma: f64) -> f64 {
        let log_sigma = sigma.ln();
        let above = self.log_sigmas.partition_point(|&entry| entry <= log_sigma);
        let low = above.saturating_sub(1).min(self.len().saturating_sub(2));
        match self.log_sigmas.get(low..low + 2) {
            Some(&[left, right]) => low as f64 + ((log_sigma - left) / (right - left)).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }

    /// The sigma DDIM's last step goes to.
    pub(super) fn ddim_final_sigma(&self) -> f64 {
        if self.set_alpha_to_one { 0.0 } else { self.sigma_min() }
    }

    fn last_timestep(&self) -> f64 {
        self.len().saturating_sub(1) as f64
    }

    /// The `steps` noise levels of a k-diffusion run, largest first, without the 0 that ends it.
    pub(super) fn continuous(&self, kind: ScheduleKind, steps: usize) -> Vec<f64> {
        let (max, min) = (self.sigma_max(), self.sigma_min());
        match kind {
            ScheduleKind::Normal => {
                linspace(self.last_timestep(), 0.0, steps).take(steps).map(|t| self.sigma(t)).collect()
            }
            ScheduleKind::SgmUniform => {
                linspace(self.last_timestep(), 0.0, steps + 1).take(steps).map(|t| self.sigma(t)).collect()
            }
            ScheduleKind::Trailing => self.trailing(steps).map(|t| self.sigma(t)).collect(),
            ScheduleKind::Exponential => linspace(max.ln(), min.ln(), steps).map(f64::exp).collect(),
            ScheduleKind::Karras => linspace(max.powf(KARRAS_RHO.recip()), min.powf(KARRAS_RHO.recip()), steps)
                .map(|root| root.powf(KARRAS_RHO))
                .collect(),
        }
    }

    /// The timesteps of DDIM and LCM for the schedules they share: whole numbers, largest first.
    pub(super) fn discrete(&self, kind: ScheduleKind, steps: usize) -> Vec<f64> {
        match kind {
            ScheduleKind::Trailing => self.trailing(steps).collect(),
            _ => linspace(self.last_timestep(), 0.0, steps + 1).take(steps).map(f64::round_ties_even).collect(),
        }
    }

    /// SD1.5's own list: multiples of ⌊T/n⌋ plus the config's offset. Where the offset would lead past the table (1000
    /// steps of 1000) it is made smaller.
    pub(super) fn leading(&self, steps: usize) -> Vec<f64> {
        let stride = self.len() / steps.max(1);
        let top = steps.saturating_sub(1) * stride;
        let offset = self.steps_offset.min(self.len().saturating_sub(1).saturating_sub(top));
        (0..steps).rev().map(|k| (k * stride + offset) as f64).collect()
    }

    /// LCM's own list: evenly spaced entries of the timesteps it was distilled on.
    pub(super) fn lcm(&self, steps: usize) -> Vec<f64> {
        let grid = self.lcm_grid();
        let stride = self.len() / grid;
        (0..steps).map(|k| ((grid - (k * grid / steps).min(grid - 1)) * stride - 1) as f64).collect()
    }

    /// How many timesteps LCM's own list can hold.
    pub(super) fn lcm_grid(&self) -> usize {
        LCM_GRID.min(self.len())
    }

    /// T − 1, then down by T/n, halves to the even number, as numpy rounds.
    fn trailing(&self, steps: usize) -> impl Iterator<Item = f64> {
        let all = self.len() as f64;
        let stride = all / steps as f64;
        (0..steps).map(move |k| ((all - k as f64 * stride).round_ties_even() - 1.0).max(0.0))
    }
}

fn betas(config: &SchedulerConfig) -> Result<Vec<f64>, NoiseScheduleError> {
    let count = config.trained_betas.as_ref().map_or(config.train_timesteps, Vec::len);
    if !(2..=MOST_TIMESTEPS).contains(&count) {
        return Err(NoiseScheduleError::Timesteps(count));
    }
    if let Some(betas) = &config.trained_betas {
        return Ok(betas.clone());
    }
    let (start, end) = (config.beta_start, config.beta_end);
    Ok(match config.beta_schedule {
        BetaSchedule::Linear => linspace(start, end, count).collect(),
        BetaSchedule::ScaledLinear => linspace(start.sqrt(), end.sqrt(), count).map(|root| root * root).collect(),
        // The cosine of Nichol and Dhariwal (arXiv:2102.09672), no beta above 0.999.
        BetaSchedule::SquaredCosCapV2 => {
            let signal =
                |k: usize| ((k as f64 / count as f64 + 0.008) / 1.008 * std::f64::consts::FRAC_PI_2).cos().powi(2);
            (0..count).map(|k| (1.0 - signal(k + 1) / signal(k)).min(0.999)).collect()
        }
    })
}

/// Stretches `sqrt(ᾱ)` linearly so that its first entry stays and its last becomes 0, then sets the last ᾱ to 2⁻²⁴, as
/// diffusers does, so that its sigma is finite.
fn remove_last_signal(alphas_cumprod: &mut [f64]) {
    let (Some(first), Some(last)) = (alphas_cumprod.first().map(|a| a.sqrt()), alphas_cumprod.last().map(|a| a.sqrt()))
    else {
        return;
    };
    for alpha in alphas_cumprod.iter_mut() {
        *alpha = ((alpha.sqrt() - last) * first / (first - last)).powi(2);
    }
    if let Some(end) = alphas_cumprod.last_mut() {
        *end = 2f64.powi(-24);
    }
}

/// `count` numbers from `start` to `end`, both included; a single one is `start`.
fn linspace(start: f64, end: f64, count: usize) -> impl Iterator<Item = f64> {
    let gaps = count.saturating_sub(1).max(1);
    (0..count).map(move |k| {
        // Each end is met exactly.
        if k == gaps { end } else { start + (end - start) * (k as f64 / gaps as f64) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sd15() -> NoiseSchedule {
        NoiseSchedule::new(&SchedulerConfig::sd15()).unwrap()
    }

    fn close(got: &[f64], want: &[f64], tolerance: f64) {
        assert_eq!(got.len(), want.len(), "{got:?}");
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() <= tolerance, "{got:?} is not {want:?}");
        }
    }

    #[test]
    fn the_table_is_sd15s() {
        let table = sd15();
        close(&[table.alphas_cumprod()[0], table.alphas_cumprod()[999]], &[0.99915, 0.00466010], 5e-9);
        close(&[table.sigma(0.0), table.sigma(999.0)], &[0.0291672, 14.614641], 5e-7);
        close(&[table.sigma(-3.0), table.sigma(1e9)], &[table.sigma_min(), table.sigma_max()], 0.0);
    }

    #[test]
    fn sigma_and_timestep_are_inverse_and_interpolate_in_log_space() {
        let table = sd15();
        assert!(
            (table.sigma(10.25).ln() - (0.75 * table.sigma(10.0).ln() + 0.25 * table.sigma(11.0).ln())).abs() < 1e-12
        );
        for t in [0.0, 0.5, 52.58, 946.42, 998.999, 999.0] {
            assert!((table.timestep(table.sigma(t)) - t).abs() < 1e-8, "{t}");
        }
        close(&[table.timestep(0.0), table.timestep(1e-9), table.timestep(1e9)], &[0.0, 0.0, 999.0], 0.0);
    }

    #[test]
    fn timesteps_of_twenty_steps() {
        let table = sd15();
        let ends = |list: &[f64]| [list[0], list[1], list[18], list[19]];
        assert_eq!(ends(&table.leading(20)), [951.0, 901.0, 51.0, 1.0]);
        assert_eq!(ends(&table.discrete(ScheduleKind::Trailing, 20)), [999.0, 949.0, 99.0, 49.0]);
        let normal: Vec<f64> =
            table.continuous(ScheduleKind::Normal, 20).into_iter().map(|sigma| table.timestep(sigma)).collect();
        close(&normal[..4], &[999.0, 946.42, 893.84, 841.26], 0.005);
        close(&normal[18..], &[52.58, 0.0], 0.005);
    }

    #[test]
    fn sigmas_of_ten_steps() {
        let table = sd15();
        close(
            &table.continuous(ScheduleKind::Karras, 10),
            &[14.614641, 9.102928, 5.478392, 3.168603, 1.749417, 0.914072, 0.446918, 0.201398, 0.081910, 0.029167],
            2e-6,
        );
        close(
            &table.continuous(ScheduleKind::Normal, 10),
            &[14.614641, 7.839883, 4.609174, 2.918307, 1.950161, 1.344928, 0.932358, 0.624977, 0.368658, 0.029167],
            2e-6,
        );
        let exponential = table.continuous(ScheduleKind::Exponential, 3);
        close(&exponential, &[14.614641, (14.614641f64 * 0.0291672).sqrt(), 0.0291672], 2e-6);
        close(&table.continuous(ScheduleKind::SgmUniform, 2), &[14.614641, table.sigma(499.5)], 1e-6);
    }

    #[test]
    fn lcm_takes_its_list_from_the_grid_it_was_distilled_on() {
        assert_eq!(sd15().lcm(4), [999.0, 759.0, 499.0, 259.0]);
        assert_eq!(sd15().lcm(1), [999.0]);
        assert_eq!(sd15().lcm(50)[49], 19.0);
    }

    #[test]
    fn no_list_leaves_the_table() {
        let table = sd15();
        for steps in 1..=1000 {
            let mut lists = vec![table.leading(steps)];
            lists.extend([ScheduleKind::SgmUniform, ScheduleKind::Trailing].map(|kind| table.discrete(kind, steps)));
            if steps <= 50 {
                lists.push(table.lcm(steps));
            }
            for list in lists {
                assert_eq!(list.len(), steps);
                assert!(list.iter().all(|&t| (0.0..=999.0).contains(&t) && t.fract() == 0.0), "{steps}: {list:?}");
                assert!(list.windows(2).all(|pair| pair[0] >= pair[1]), "{steps}: {list:?}");
            }
            for kind in ScheduleKind::ALL {
                let sigmas = table.continuous(kind, steps);
                assert!(sigmas.len() == steps && sigmas.windows(2).all(|pair| pair[0] > pair[1]), "{kind:?} {steps}");
                assert!(sigmas.iter().all(|s| *s > 0.029 && *s < 14.62), "{kind:?} {steps}");
            }
        }
    }

    #[test]
    fn broken_configs_are_refused() {
        let with = |betas: &[f64]| {
            NoiseSchedule::new(&SchedulerConfig { trained_betas: Some(betas.to_vec()), ..SchedulerConfig::sd15() })
        };
        assert!(with(&[0.1, 0.2]).is_ok());
        assert_eq!(with(&[0.1]), Err(NoiseScheduleError::Timesteps(1)));
        assert_eq!(with(&[0.1, 1.0]), Err(NoiseScheduleError::Beta { index: 1, value: 1.0 }));
        assert!(matches!(with(&[0.1, f64::NAN]), Err(NoiseScheduleError::Beta { index: 1, .. })));
        let endless = SchedulerConfig { train_timesteps: usize::MAX, ..SchedulerConfig::sd15() };
        assert_eq!(NoiseSchedule::new(&endless), Err(NoiseScheduleError::Timesteps(usize::MAX)));
    }

    #[test]
    fn every_way_to_space_betas_gives_a_schedule() {
        for beta_schedule in [BetaSchedule::Linear, BetaSchedule::ScaledLinear, BetaSchedule::SquaredCosCapV2] {
            let table = NoiseSchedule::new(&SchedulerConfig { beta_schedule, ..SchedulerConfig::sd15() }).unwrap();
            assert!(table.len() == 1000 && table.sigma_min() < 0.05 && table.sigma_max() > 5.0, "{beta_schedule:?}");
        }
    }

    #[test]
    fn zero_terminal_snr_keeps_the_first_entry_and_a_finite_last() {
        let config = SchedulerConfig { rescale_betas_zero_snr: true, ..SchedulerConfig::sd15() };
        let table = NoiseSchedule::new(&config).unwrap();
        assert!((table.alphas_cumprod()[0] - 0.99915).abs() < 1e-9);
        assert!((table.sigma_max() - 4096.0).abs() < 1e-3);
    }
}
