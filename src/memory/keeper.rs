//! The one owner of everything on the device: the engine says what it is about to do, the keeper makes room, loads, lets
//! go, and says when to wait.
//!
//! It carries out what [`Policy`] decides and asks again, until the verdict is one that only the engine can carry out:
//! go on, wait, or end the job.

use super::account::{Account, Hold};
use super::cleanup::{CleanPlan, CleanRule};
use super::forecast::{Forecast, Part, RunShape, nearest_fit};
use super::gauge::{Gauge, Peaks, Pools, Rates};
use super::model::{Model, ModelKey};
use super::policy::{Need, Policy, Verdict, Waiting};
use super::reading::{self, Target, UnknownSource};
use super::report::clean_report;
use super::residency::{PartError, Place, Residency};
use super::{MemoryError, Script};
use crate::base::choice::MemoryLimits;
use crate::base::{Bytes, CleanReport, Latest, MemoryReading, Notice, Precision, Reason, ShotRequest, Size};
use crate::diffusion::prompt::{Piece, PromptChunks};
use crate::diffusion::text_encoder::TextEncoder;
use crate::diffusion::unet::UNet;
use crate::diffusion::vae::VaeDecoder;
use crate::diffusion::{DiffusionError, Watch};
use burn::backend::DispatchDevice;
use burn::tensor::Device;
use std::sync::Arc;
use std::time::Instant;

/// Why a run has to wait: the share of the card in use, the limit, and what other programs hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    pub used: f64,
    pub limit: f64,
    pub others: Option<Bytes>,
}

/// What the engine does after a step boundary.
#[derive(Clone, Debug, PartialEq)]
pub enum Boundary {
    GoOn,
    /// Let the weights go and wait.
    Pause(Pressure),
}

/// What cannot be had now.
#[derive(Debug)]
pub enum Refused {
    /// Not before there is room: wait, and ask again.
    Wait(Pressure),
    Memory(MemoryError),
    Diffusion(DiffusionError),
}

impl From<PartError> for Refused {
    fn from(error: PartError) -> Self {
        match error {
            PartError::Memory(error) => Refused::Memory(error),
            PartError::Diffusion(error) => Refused::Diffusion(error),
        }
    }
}

impl From<DiffusionError> for Refused {
    fn from(error: DiffusionError) -> Self {
        Refused::Diffusion(error)
    }
}

/// See the module.
pub struct Keeper {
    device: Option<Device>,
    account: Account,
    gauge: Gauge,
    policy: Policy,
    model: Option<Model>,
    parts: Residency,
    run: Option<Run>,
    idle_since: Instant,
    clean_rule: CleanRule,
}

/// What is known of the job that runs.
struct Run {
    forecast: Forecast,
    at_work: Part,
}

impl Keeper {
    /// Starts the gauge; nothing is opened yet. With a script its figures stand in for the device's.
    pub fn new(
        limits: MemoryLimits,
        script: Option<Script>,
        readings: Latest<MemoryReading>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let account = script.map_or_else(Account::real, Account::scripted);
        let source = account.source().unwrap_or_else(|| Box::new(UnknownSource(vec![Reason::NoDevice])));
        Keeper {
            device: None,
            account,
            gauge: Gauge::start(source, Rates::default(), readings, move || wake()),
            policy: Policy::new(limits),
            model: None,
            parts: Residency::default(),
            run: None,
            idle_since: Instant::now(),
            clean_rule: CleanRule::default(),
        }
    }

    // The device.

    /// Just before a device is opened: the gauge looks, so that what the context costs can be told.
    pub fn device_opens(&mut self, target: &Target) {
        if self.account.source().is_none() {
            self.gauge.watch(reading::open(target));
        }
        self.gauge.context_opens();
    }

    pub fn device_opened(&mut self, device: Device) {
        self.device = Some(device);
        self.gauge.context_opened(self.pools());
        self.gauge.now();
    }

    /// Lets the device go with all that lies on it.
    pub fn close(&mut self) {
        // In this order, so that a device whose code panics is gone all the same.
        let device = self.device.take();
        self.run = None;
        self.parts.drop_all();
        self.account.empty_pools();
        self.look();
        if let Some(device) = device.filter(is_gpu) {
            device.memory_cleanup();
        }
    }

    /// The open device.
    ///
    /// # Errors
    /// While none is open.
    pub fn device(&self) -> Result<&Device, DiffusionError> {
        self.device.as_ref().ok_or_else(|| DiffusionError::Device("no device is open".to_owned()))
    }

    fn is_gpu(&self) -> bool {
        self.device.as_ref().is_some_and(is_gpu)
    }

    // The model.

    /// Whether this checkpoint is in use, and its files are still those that were opened.
    pub fn holds(&self, key: &ModelKey) -> bool {
        self.model.as_ref().is_some_and(|model| model.key() == key && model.is_current())
    }

    /// Takes another checkpoint in place of the one in use, whose weights go.
    pub fn set_model(&mut self, model: Model) {
        self.parts.drop_all();
        self.empty_pools();
        self.model = Some(model);
    }

    /// The checkpoint in use.
    ///
    /// # Errors
    /// While none is chosen.
    pub fn model(&self) -> Result<&Model, DiffusionError> {
        self.model.as_ref().ok_or_else(|| DiffusionError::Device("no checkpoint is open".to_owned()))
    }

    pub fn tokenize(&self, pieces: &[Piece]) -> Result<PromptChunks, DiffusionError> {
        Ok(self.model()?.tokenize(pieces))
    }

    // A job, in the order in which it asks.

    pub fn job_begins(&mut self) {
        self.gauge.job_begins();
        self.clean_rule.work();
    }

    /// Before anything is loaded: does the run fit, one part at a time? Makes room if that helps.
    ///
    /// # Errors
    /// [`MemoryError::DoesNotFit`] with the nearest size that does.
    pub fn before_run(&mut self, request: &ShotRequest, precision: Precision) -> Result<Option<Notice>, Refused> {
        let forecast = self.forecast(request, request.size, precision)?;
        self.run = Some(Run { forecast, at_work: Part::TextEncoder });
        loop {
            let reading = self.look();
            let loaded = self.parts.loaded();
            let most = Part::ALL.into_iter().max_by_key(|part| forecast.phase(*part)).unwrap_or(Part::Unet);
            let kept = loaded.iter().filter(|(part, _)| *part == most).map(|(_, bytes)| *bytes).sum();
            let need = Need { most: forecast.least(), loaded: kept };
            let spare = self.spare(Some(most));
            let fit = |have: Bytes| {
                let need_of = |size| self.forecast(request, size, precision).map_or(Bytes(u64::MAX), |f| f.least());
                nearest_fit(need_of, request.size, have)
            };
            let mut policy = self.policy.clone();
            let verdict = policy.before_run(&reading, &need, &spare, fit);
            self.policy = policy;
            match verdict {
                Verdict::Refuse(refusal) => return Err(Refused::Memory(MemoryError::DoesNotFit(refusal))),
                Verdict::Warn { used, limit } => return Ok(Some(Notice::OverLimit { used, limit })),
                Verdict::EmptyPools => self.empty_pools(),
                Verdict::DropParts(parts) => self.drop_parts(&parts),
                Verdict::GoOn | Verdict::PauseLowMemory { .. } => return Ok(None),
            }
        }
    }

    /// Whether a part lies on the device in this type.
    pub fn has(&self, part: Part, precision: Precision) -> bool {
        self.parts.has(part, precision)
    }

    /// The text encoder, loaded if it is not there.
    pub fn text_encoder(&mut self, precision: Precision, watch: Watch) -> Result<Arc<TextEncoder>, Refused> {
        self.make_room(Part::TextEncoder)?;
        let (device, model) = (self.device()?.clone(), self.model.as_ref());
        let model = model.ok_or_else(|| DiffusionError::Device("no checkpoint is open".to_owned()))?;
        let place = Place { device: &device, precision, account: &self.account, watch };
        Ok(self.parts.text_encoder(model, place)?)
    }

    /// The UNet, loaded if it is not there.
    pub fn unet(&mut self, precision: Precision, watch: Watch) -> Result<Arc<UNet>, Refused> {
        self.make_room(Part::Unet)?;
        let (device, model) = (self.device()?.clone(), self.model.as_ref());
        let model = model.ok_or_else(|| DiffusionError::Device("no checkpoint is open".to_owned()))?;
        let place = Place { device: &device, precision, account: &self.account, watch };
        Ok(self.parts.unet(model, place)?)
    }

    /// The VAE's decoder, loaded if it is not there in this type.
    pub fn vae(&mut self, precision: Precision, watch: Watch) -> Result<Arc<VaeDecoder>, Refused> {
        self.make_room(Part::VaeDecoder)?;
        let (device, model) = (self.device()?.clone(), self.model.as_ref());
        let model = model.ok_or_else(|| DiffusionError::Device("no checkpoint is open".to_owned()))?;
        let place = Place { device: &device, precision, account: &self.account, watch };
        Ok(self.parts.vae(model, place)?)
    }

    /// Asks for what the phase of `part` takes beside its weights, for as long as the answer is held. A real device is the
    /// judge itself; a scripted one refuses here.
    pub fn activations(&mut self, part: Part) -> Result<Hold, Refused> {
        let bytes = self.run.as_ref().map_or(Bytes::ZERO, |run| run.forecast.activations.get(part));
        let first = self.account.take("activations", bytes);
        let Err(error) = first else { return first.map_err(Refused::Memory) };
        tracing::debug!(%error, "making room");
        self.drop_parts(&self.spare(Some(part)).iter().map(|(part, _)| *part).collect::<Vec<_>>());
        let second = self.account.take("activations", bytes);
        second.map_err(|error| self.pressure().map_or(Refused::Memory(error), Refused::Wait))
    }

    /// A step boundary: the queue is empty, so every figure is true.
    ///
    /// # Errors
    /// Where the budget is passed and nothing of ours is left to give.
    pub fn at_boundary(&mut self) -> Result<Boundary, MemoryError> {
        loop {
            let reading = self.look();
            match self.policy.at_boundary(&reading, &self.spare(Some(Part::Unet))) {
                Verdict::GoOn | Verdict::Warn { .. } => return Ok(Boundary::GoOn),
                Verdict::EmptyPools => self.empty_pools(),
                Verdict::DropParts(parts) => self.drop_parts(&parts),
                Verdict::PauseLowMemory { used, limit, others } => {
                    return Ok(Boundary::Pause(Pressure { used, limit, others }));
                }
                Verdict::Refuse(refusal) => return Err(MemoryError::DoesNotFit(refusal)),
            }
        }
    }

    /// While paused for memory, about four times a second: is there room for what is left of the run?
    pub fn has_room_again(&mut self, go_anyway: bool) -> bool {
        let rest = self.run.as_ref().map_or(Bytes::ZERO, |run| run.forecast.rest(run.at_work));
        let reading = self.look();
        if go_anyway {
            self.policy.person_resumes(&reading, rest);
            return true;
        }
        self.policy.while_paused(&reading, rest) == Waiting::Resume
    }

    /// Takes every weight off the device, for a pause. Whoever else holds a part lets go of it first.
    pub fn let_weights_go(&mut self) {
        self.parts.drop_all();
        self.empty_pools();
    }

    /// Whether UNet and VAE may lie side by side while decoding.
    pub fn keeps_unet_while_decoding(&self) -> bool {
        let Some(run) = &self.run else { return true };
        let reading = self.gauge.now();
        let vae_loaded = self.parts.loaded().iter().any(|(part, _)| *part == Part::VaeDecoder);
        let weights = if vae_loaded { Bytes::ZERO } else { run.forecast.weights.vae };
        // What the pools keep from the steps serves the decoder.
        let new = weights + (run.forecast.activations.vae - reading.ours_pooled.unwrap_or_default());
        let limits = self.policy.limits();
        let card = match (reading.total, reading.used()) {
            (Some(total), Some(used)) => used + new <= total.portion(limits.pause_at),
            _ => true,
        };
        let budget = match (limits.budget, reading.ours()) {
            (Some(budget), Some(ours)) => ours + new <= budget,
            (Some(budget), None) => run.forecast.comfortable() <= budget,
            (None, _) => true,
        };
        card && budget
    }

    /// Lets the UNet go before decoding, where both do not fit.
    pub fn drop_unet(&mut self) {
        self.drop_parts(&[Part::Unet, Part::TextEncoder]);
    }

    /// The types to decode in, one after the other until the picture is finite.
    pub fn decode_precisions(&self, precision: Precision) -> Vec<Precision> {
        match precision {
            Precision::F16 => vec![Precision::F16, Precision::F32],
            Precision::Bf16 => vec![Precision::Bf16, Precision::F32],
            Precision::F32 | Precision::Auto => vec![Precision::F32],
        }
    }

    /// A picture is done: after every n of them comes a clean-up, if the person wants so. With `more` to come the UNet
    /// and the VAE stay.
    pub fn after_image(&mut self, more: bool) {
        self.look();
        if self.clean_rule.after_image(self.policy.limits()).is_some() {
            self.clean_but(if more { &[Part::Unet, Part::VaeDecoder] } else { &[] });
        }
    }

    pub fn job_ends(&mut self) {
        self.run = None;
        self.idle_since = Instant::now();
        self.look();
        self.gauge.job_ends();
    }

    /// The job's peaks up to now.
    pub fn peaks(&self) -> Peaks {
        self.gauge.peaks()
    }

    // Cleaning.

    /// Drops what is not needed, empties the pools, and reports. Without a job nothing is needed.
    pub fn clean(&mut self) -> CleanReport {
        let needed = self.run.as_ref().map(|run| run.at_work);
        self.clean_but(needed.as_slice())
    }

    fn clean_but(&mut self, needed: &[Part]) -> CleanReport {
        let before = self.look();
        let plan = CleanPlan::new(&self.parts.loaded(), needed);
        self.drop_parts(&plan.drop);
        self.clean_rule.cleaned();
        let after = self.look();
        clean_report(before, after, &plan.keep)
    }

    /// Called about once a second while nothing runs.
    pub fn while_idle(&mut self) {
        let reading = self.gauge.now();
        if self.clean_rule.when_idle(self.idle_since.elapsed(), &reading, self.policy.limits()).is_some() {
            self.clean();
        }
    }

    /// Drops the parts that no job needs, after one that failed or was cancelled.
    pub fn tidy(&mut self) {
        self.empty_pools();
        self.look();
    }

    /// Everything of ours leaves the device, after memory ran out or the device failed.
    pub fn let_everything_go(&mut self) {
        self.parts.drop_all();
        self.empty_pools();
        self.run = None;
        self.look();
    }

    pub fn set_limits(&mut self, limits: MemoryLimits) {
        self.policy.set_limits(limits);
    }

    // Below the surface.

    /// What a run of this request takes.
    fn forecast(&self, request: &ShotRequest, size: Size, precision: Precision) -> Result<Forecast, DiffusionError> {
        let model = self.model()?;
        let longest = request.prompt.len().max(request.negative.len());
        let run = RunShape::new(size, request.cfg, longest, precision);
        Ok(Forecast::of_run(&model.shape(), model.values(), &run, self.is_gpu()))
    }

    /// Makes room for a part and its phase.
    fn make_room(&mut self, part: Part) -> Result<(), Refused> {
        let Some(run) = &mut self.run else { return Ok(()) };
        run.at_work = part;
        let most = run.forecast.phase(part);
        loop {
            let reading = self.look();
            let loaded = self.parts.loaded().iter().filter(|(p, _)| *p == part).map(|(_, bytes)| *bytes).sum();
            let pooled = reading.ours_pooled.unwrap_or_default();
            // What the pools keep is allocated from first.
            let need = Need { most, loaded: loaded + pooled.min(most - loaded) };
            match self.policy.before_phase(&reading, &need, &self.spare(Some(part))) {
                Verdict::EmptyPools => self.empty_pools(),
                Verdict::DropParts(parts) => self.drop_parts(&parts),
                Verdict::PauseLowMemory { used, limit, others } => {
                    return Err(Refused::Wait(Pressure { used, limit, others }));
                }
                Verdict::Refuse(refusal) => return Err(Refused::Memory(MemoryError::DoesNotFit(refusal))),
                Verdict::GoOn | Verdict::Warn { .. } => return Ok(()),
            }
        }
    }

    /// Loaded parts other than the one at work.
    fn spare(&self, at_work: Option<Part>) -> Vec<(Part, Bytes)> {
        self.parts.loaded().into_iter().filter(|(part, _)| Some(*part) != at_work).collect()
    }

    fn drop_parts(&mut self, parts: &[Part]) {
        for part in parts {
            self.parts.drop_part(*part);
        }
        self.empty_pools();
    }

    fn empty_pools(&mut self) {
        self.account.empty_pools();
        if let Some(device) = &self.device
            && self.is_gpu()
        {
            device.memory_cleanup();
        }
    }

    fn pools(&self) -> Option<Pools> {
        if let Some(pools) = self.account.pools() {
            return Some(pools);
        }
        let usage = self.device.as_ref().filter(|_| self.is_gpu())?.memory_pool_usage()?;
        let in_use = Bytes(usage.bytes_in_use) + Bytes(usage.bytes_padding);
        Some(Pools { in_use, reserved: Bytes(usage.bytes_reserved) })
    }

    /// A fresh reading with the pools' figures as of now.
    fn look(&mut self) -> MemoryReading {
        self.account.look();
        self.gauge.boundary(self.pools())
    }

    fn pressure(&self) -> Option<Pressure> {
        let reading = self.gauge.now();
        let used = reading.share_used()?;
        Some(Pressure { used, limit: self.policy.limits().pause_at, others: reading.others })
    }
}

fn is_gpu(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Cube(_))
}
