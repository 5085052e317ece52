//! The names of samplers, schedules and noise families, and which go together.

use serde::{Deserialize, Serialize};

/// How the latent is taken from noise to picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerKind {
    Euler,
    EulerA,
    #[default]
    Dpmpp2m,
    Dpmpp2mSde,
    DpmppSde,
    Ddim,
    Heun,
    UniPc,
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

    /// The schedules this sampler may be paired with, its own default first.
    pub fn schedules(self) -> &'static [ScheduleKind] {
        use ScheduleKind::*;
        match self {
            SamplerKind::Ddim => &[Normal, SgmUniform, Trailing],
            SamplerKind::Lcm => &[SgmUniform, Normal, Trailing],
            _ => &[Karras, Normal, Exponential, SgmUniform, Trailing],
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
