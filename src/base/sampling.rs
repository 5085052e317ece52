//! The names of samplers, schedules and noise families, which of them go together, and for how many steps.
//!
//! The arithmetic behind the names is in `diffusion::samplers`; the window, the command line and the text inside a picture
//! only need this table.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// How the latent is taken from noise to picture. Stored under its command-line name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SamplerKind {
    #[serde(rename = "euler")]
    Euler,
    #[serde(rename = "euler-a")]
    EulerA,
    #[default]
    #[serde(rename = "dpmpp-2m")]
    Dpmpp2m,
    #[serde(rename = "dpmpp-2m-sde")]
    Dpmpp2mSde,
    #[serde(rename = "dpmpp-sde")]
    DpmppSde,
    #[serde(rename = "ddim")]
    Ddim,
    #[serde(rename = "heun")]
    Heun,
    #[serde(rename = "unipc")]
    UniPc,
    #[serde(rename = "lcm")]
    Lcm,
}

impl SamplerKind {
    pub const ALL: [SamplerKind; 9] = [
        SamplerKind::Euler,
        SamplerKind::EulerA,
        SamplerKind::Dpmpp2m,
        SamplerKind::Dpmpp2mSde,
        SamplerKind::DpmppSde,
        SamplerKind::Ddim,
        SamplerKind::Heun,
        SamplerKind::UniPc,
        SamplerKind::Lcm,
    ];

    /// As A1111-family tools write it.
    pub fn label(self) -> &'static str {
        match self {
            SamplerKind::Euler => "Euler",
            SamplerKind::EulerA => "Euler a",
            SamplerKind::Dpmpp2m => "DPM++ 2M",
            SamplerKind::Dpmpp2mSde => "DPM++ 2M SDE",
            SamplerKind::DpmppSde => "DPM++ SDE",
            SamplerKind::Ddim => "DDIM",
            SamplerKind::Heun => "Heun",
            SamplerKind::UniPc => "UniPC",
            SamplerKind::Lcm => "LCM",
        }
    }

    /// As the command line spells it.
    pub fn cli_name(self) -> &'static str {
        match self {
            SamplerKind::Euler => "euler",
            SamplerKind::EulerA => "euler-a",
            SamplerKind::Dpmpp2m => "dpmpp-2m",
            SamplerKind::Dpmpp2mSde => "dpmpp-2m-sde",
            SamplerKind::DpmppSde => "dpmpp-sde",
            SamplerKind::Ddim => "ddim",
            SamplerKind::Heun => "heun",
            SamplerKind::UniPc => "unipc",
            SamplerKind::Lcm => "lcm",
        }
    }

    /// The sampler the command line calls `name`.
    pub fn from_cli_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.cli_name() == name)
    }

    /// The sampler A1111-family tools call `label`, in any case.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label().eq_ignore_ascii_case(label.trim()))
    }

    /// The schedules this sampler may be paired with, its own default (as A1111's "Automatic" takes it) first.
    ///
    /// DDIM and LCM are defined on whole trained timesteps, so schedules that place noise levels between them are not
    /// offered; their `Normal` is the list each was published with (SD1.5's leading one, LCM's distillation grid).
    pub fn schedules(self) -> &'static [ScheduleKind] {
        use ScheduleKind::*;
        match self {
            SamplerKind::Euler | SamplerKind::EulerA | SamplerKind::Heun => {
                &[Normal, Karras, Exponential, SgmUniform, Trailing]
            }
            SamplerKind::Dpmpp2m | SamplerKind::DpmppSde => &[Karras, Normal, Exponential, SgmUniform, Trailing],
            SamplerKind::Dpmpp2mSde => &[Exponential, Karras, Normal, SgmUniform, Trailing],
            SamplerKind::UniPc => &[SgmUniform, Normal, Karras, Exponential, Trailing],
            SamplerKind::Ddim | SamplerKind::Lcm => &[Normal, SgmUniform, Trailing],
        }
    }

    /// The schedule taken where none is named.
    pub fn default_schedule(self) -> ScheduleKind {
        self.schedules().first().copied().unwrap_or(ScheduleKind::Normal)
    }

    /// How many steps the pair can make with a model of 1000 trained timesteps.
    pub fn step_range(self, schedule: ScheduleKind) -> RangeInclusive<usize> {
        match (self, schedule) {
            // A leading list of one entry starts at t = 1, where pure noise is not what the model was trained on.
            (SamplerKind::Ddim, ScheduleKind::Normal) => 2..=1000,
            // LCM's list is a part of the 50 timesteps it was distilled on.
            (SamplerKind::Lcm, ScheduleKind::Normal) => 1..=50,
            _ => 1..=1000,
        }
    }

    pub fn pairs_with(self, schedule: ScheduleKind) -> bool {
        self.schedules().contains(&schedule)
    }
}

/// Which noise levels a run visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    Normal,
    #[default]
    Karras,
    Exponential,
    SgmUniform,
    Trailing,
}

impl ScheduleKind {
    pub const ALL: [ScheduleKind; 5] = [
        ScheduleKind::Normal,
        ScheduleKind::Karras,
        ScheduleKind::Exponential,
        ScheduleKind::SgmUniform,
        ScheduleKind::Trailing,
    ];

    /// As A1111-family tools write it.
    pub fn label(self) -> &'static str {
        match self {
            ScheduleKind::Normal => "Normal",
            ScheduleKind::Karras => "Karras",
            ScheduleKind::Exponential => "Exponential",
            ScheduleKind::SgmUniform => "SGM Uniform",
            ScheduleKind::Trailing => "Trailing",
        }
    }

    pub fn cli_name(self) -> &'static str {
        match self {
            ScheduleKind::Normal => "normal",
            ScheduleKind::Karras => "karras",
            ScheduleKind::Exponential => "exponential",
            ScheduleKind::SgmUniform => "sgm-uniform",
            ScheduleKind::Trailing => "trailing",
        }
    }

    /// The schedule the command line calls `name`.
    pub fn from_cli_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.cli_name() == name)
    }

    /// The schedule A1111-family tools call `label`, in any case.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label().eq_ignore_ascii_case(label.trim()))
    }
}

/// Which generator turns a seed into noise. Both run on the CPU, so a seed gives one picture on every device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseSource {
    /// Counter-based Philox, which A1111 uses by default.
    #[default]
    Gpu,
    /// mt19937 as torch's CPU generator, which diffusers and ComfyUI use.
    Cpu,
}

impl NoiseSource {
    /// As the picture's text writes it.
    pub fn label(self) -> &'static str {
        match self {
            NoiseSource::Gpu => "GPU",
            NoiseSource::Cpu => "CPU",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for kind in SamplerKind::ALL {
            assert_eq!(SamplerKind::from_cli_name(kind.cli_name()), Some(kind));
            assert_eq!(SamplerKind::from_label(&kind.label().to_uppercase()), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.cli_name()));
        }
        for kind in ScheduleKind::ALL {
            assert_eq!(ScheduleKind::from_cli_name(kind.cli_name()), Some(kind));
            assert_eq!(ScheduleKind::from_label(kind.label()), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.cli_name()));
        }
        assert_eq!(SamplerKind::from_cli_name("plms"), None);
    }

    #[test]
    fn the_default_pair_exists_and_discrete_samplers_refuse_karras() {
        assert!(SamplerKind::default().pairs_with(ScheduleKind::default()));
        for kind in SamplerKind::ALL {
            assert!(kind.pairs_with(kind.default_schedule()));
        }
        for kind in [SamplerKind::Ddim, SamplerKind::Lcm] {
            assert!(!kind.pairs_with(ScheduleKind::Karras) && !kind.pairs_with(ScheduleKind::Exponential));
        }
    }
}
