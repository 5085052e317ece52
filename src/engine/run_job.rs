//! One job from its first sign of life to its last picture: load, encode, denoise, decode, save.
//!
//! The phases stand in this order in [`run`]. What happens between two steps is in `checkpoint`; where weights lie and
//! whether they fit is asked of `memory`.

use super::checkpoint::{After, Checkpoint, wait_for_room};
use super::error::{Ended, Scene, from_diffusion, from_refused};
use super::preview::PreviewPace;
use super::protocol::{Event, Job, Preview, Shot, Summary, Wish};
use super::save::{self, Facts, Saved};
use super::steering::Steering;
use super::worker::Worker;
use crate::base::problem::Phase;
use crate::base::request::RequestError;
use crate::base::{DeviceChoice, Flaw, ModelChoice, Notice, Precision, Problem, RgbImage, ShotRequest};
use crate::diffusion::config::PredictionType;
use crate::diffusion::noise::NoiseGenerator;
use crate::diffusion::pipeline::{self, Conditioning, Denoiser};
use crate::diffusion::prompt;
use crate::diffusion::samplers::{ModelInput, NoiseSchedule, Plan};
use crate::diffusion::{DiffusionError, Watch};
use crate::memory::{Keeper, Part, Refused};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Makes the job's pictures. Every finished one has been told by the time this returns, also if a later one fails.
pub fn run(worker: &mut Worker, job: &Job, steering: &Steering) -> Result<Summary, Ended> {
    let started = Instant::now();
    let link = worker.link.clone();
    link.tell(Event::Phase(job.id, Phase::Loading));
    let status = worker.use_device(job.setup.device)?;
    steering.set_waits_between_layers(status.choice == DeviceChoice::Cpu);
    let go_on = || steering.go_on();
    let watch = Watch::new(&go_on);
    watch.check().map_err(|_| Ended::Cancelled)?;
    let path = match &job.setup.model {
        ModelChoice::Path(path) => path.as_path(),
        ModelChoice::Pocket => Path::new("Pocket"),
        ModelChoice::RandomSd15 => Path::new(""),
    };
    let precision = match job.setup.precision {
        Precision::Auto => status.precision,
        chosen => chosen,
    };
    let scene = || Scene { phase: steering.phase(), device: &status.name, model: path, precision };
    let failed = |error: DiffusionError| from_diffusion(error, scene());

    // What the model is, and whether this job can be done with it at all, before the first weight moves.
    for notice in worker.use_model(&job.setup, precision).map_err(failed)? {
        link.tell(Event::Notice(Some(job.id), notice));
    }
    let request = &job.request;
    let model = worker.memory.model().map_err(failed)?;
    let prediction = model.scheduler().prediction;
    let schedule = NoiseSchedule::new(model.scheduler()).map_err(|error| {
        Ended::failed(
            Problem::BadCheckpoint { path: path.to_owned(), what: Flaw::Betas(error.to_string()) },
            error.to_string(),
        )
    })?;
    let shape =
        model.latent_shape(request.size).map_err(|problem| Ended::failed(problem, path.display().to_string()))?;
    let layers = model.text_layers();
    if request.clip_skip as usize > layers {
        let error = RequestError::Layers { skip: request.clip_skip, layers };
        return Err(Ended::failed(Problem::Request(error), path.display().to_string()));
    }
    let plan = Plan::new(request.sampler, request.schedule, request.steps as usize, &schedule);
    let plan = plan.map_err(|error| failed(error.into()))?;
    let before_run = worker.memory.before_run(request, precision);
    if let Some(notice) = before_run.map_err(|refused| from_refused(refused, scene()))? {
        link.tell(Event::Notice(Some(job.id), notice));
    }
    worker.want_hashes(&job.setup);

    let mut making = Making {
        job,
        steering,
        watch,
        plan: &plan,
        shape,
        precision,
        prediction,
        denoiser: None,
        step: 0,
        pace: PreviewPace::default(),
        summary: Summary { device: status.name.clone(), precision, latent_shape: shape, ..Summary::default() },
        device: &status.name,
        model: path,
    };
    making.summary.seconds.load = started.elapsed().as_secs_f64() - steering.seconds_paused();
    let conditioning = making.encode(worker)?;
    for index in 0..request.count {
        if steering.wish() == Wish::StopAndKeep && index > 0 {
            break;
        }
        making.picture(worker, &conditioning, index)?;
        if index + 1 < request.count {
            // Between pictures there is nothing to break off, so a pause waits here on every device.
            steering.wait_while_paused(|| worker.serve_commands());
        }
        if steering.wish() == Wish::Cancel {
            return Err(Ended::Cancelled);
        }
    }
    let mut summary = making.summary;
    summary.pauses = steering.pauses();
    summary.seconds.paused = steering.seconds_paused();
    let peaks = worker.memory.peaks();
    (summary.peak_ours, summary.peak_process, summary.peak_device) =
        (peaks.pools_reserved, peaks.process, peaks.device);
    summary.seconds.total = started.elapsed().as_secs_f64();
    Ok(summary)
}

/// What the pictures of a job share.
struct Making<'a> {
    job: &'a Job,
    steering: &'a Steering<'a>,
    watch: Watch<'a>,
    plan: &'a Plan,
    /// `[channels, height, width]` of the latent.
    shape: [usize; 3],
    precision: Precision,
    prediction: PredictionType,
    /// Let go whenever the weights have to leave the card.
    denoiser: Option<Denoiser>,
    /// Steps done of the picture in the making.
    step: u32,
    pace: PreviewPace,
    summary: Summary,
    device: &'a str,
    model: &'a Path,
}

/// The prompt and the negative prompt, encoded.
type Prompts = (Conditioning, Conditioning);

impl Making<'_> {
    /// Both prompts, from the cache where nothing that changes them has changed.
    fn encode(&mut self, worker: &mut Worker) -> Result<Prompts, Ended> {
        let request = &self.job.request;
        let positive = self.encode_one(worker, &request.prompt)?;
        // CFG 1 has no negative pass, so its prompt is not encoded; the positive one stands in.
        let negative = if request.cfg == 1.0 { positive.clone() } else { self.encode_one(worker, &request.negative)? };
        Ok((positive, negative))
    }

    fn encode_one(&mut self, worker: &mut Worker, text: &str) -> Result<Conditioning, Ended> {
        let read = prompt::read(text);
        for notice in read.notices {
            worker.link.tell(Event::Notice(Some(self.job.id), notice));
        }
        let chunks = worker.memory.tokenize(&read.pieces).map_err(|error| self.failed(error))?;
        let clip_skip = self.job.request.clip_skip;
        if let Some(known) = worker.encodings.get(&chunks, clip_skip) {
            return Ok(known);
        }
        let (precision, watch) = (self.precision, self.watch);
        let encoder =
            self.load(worker, Part::TextEncoder, precision, |memory| memory.text_encoder(precision, watch))?;
        self.steering.enter(Phase::Encoding);
        let clock = self.clock();
        let hold = self.with_room(worker, |memory| memory.activations(Part::TextEncoder))?;
        let encoded = pipeline::encode(&encoder, &chunks, clip_skip, watch).map_err(|error| self.failed(error))?;
        drop(hold);
        self.summary.seconds.encode += self.seconds_since(clock);
        worker.encodings.put(chunks, clip_skip, encoded.clone());
        Ok(encoded)
    }

    /// Makes picture `index`, tells it, and keeps what the summary needs of it.
    fn picture(&mut self, worker: &mut Worker, prompts: &Prompts, index: u32) -> Result<(), Ended> {
        let request = self.job.request.single(index);
        let picture_clock = self.clock();
        let Denoised { latent, stopped_at } = self.denoise(worker, prompts, &request, index)?;
        let image = self.decode(worker, &latent)?;
        let seconds = self.seconds_since(picture_clock);
        if let Some([red, green, blue]) = image.only_colour() {
            let notice = Notice::OneColour { black: red.max(green).max(blue) == 0 };
            worker.link.tell(Event::Notice(Some(self.job.id), notice));
        }

        self.steering.enter(Phase::Saving);
        let clock = self.clock();
        let setup = &self.job.setup;
        let facts = Facts { hashes: worker.hashes(setup), setup, index, stopped_at };
        let Saved { file, error: save_error, parameters } = save::save(&image, &request, &facts, &self.job.output);
        self.summary.seconds.save += self.seconds_since(clock);
        if let Some(why) = save_error.clone() {
            worker.link.tell(Event::Notice(Some(self.job.id), Notice::NotSaved { why }));
        }
        let (job, image, model) = (self.job.id, Arc::new(image), setup.model.name());
        let shot = Shot { job, index, request, image, file, save_error, parameters, model, seconds, stopped_at };
        worker.link.tell(Event::Picture(job, Box::new(shot)));
        if self.job.keep_latents {
            self.summary.latents.push(latent);
        }
        self.summary.images += 1;
        worker.memory.after_image(index + 1 < self.job.request.count);
        Ok(())
    }

    /// The denoising loop.
    fn denoise(
        &mut self,
        worker: &mut Worker,
        prompts: &Prompts,
        request: &ShotRequest,
        index: u32,
    ) -> Result<Denoised, Ended> {
        let [c, h, w] = self.shape;
        let mut noise = NoiseGenerator::new(request.noise, request.seed);
        let mut latent = vec![0.0; c * h * w];
        noise.fill(&mut latent);
        let sigma = self.plan.init_noise_sigma();
        latent.iter_mut().for_each(|value| *value *= sigma);

        let steps = self.plan.steps();
        let mut sampler = self.plan.sampler::<DiffusionError>();
        // What the last step predicted the picture to be.
        let mut clean: Option<Vec<f32>> = None;
        let mut checkpoint = Checkpoint::new(self.job, self.steering, index, steps);
        let mut step = 0;
        while step < steps {
            self.steering.set_can_keep(clean.is_some());
            self.step = step as u32;
            let ready = self.load_unet(worker, prompts).and_then(|()| {
                self.steering.enter(Phase::Denoising { step: step as u32, of: steps as u32 });
                self.with_room(worker, |memory| memory.activations(Part::Unet))
            });
            let (hold, denoiser) = match (ready, &self.denoiser) {
                (Ok(hold), Some(denoiser)) => (hold, denoiser),
                (Err(Ended::Cancelled), _) if self.keeps(&clean) => break,
                (Err(ended), _) => return Err(ended),
                // Waiting for room took the weights away again.
                (Ok(_), None) => continue,
            };
            let clock = self.clock();
            let mut model = |input: &ModelInput<'_>| denoiser.predict(input, self.watch);
            let predicted = sampler.step(step, &mut latent, &mut model, &mut |out| noise.fill(out));
            drop(hold);
            match predicted {
                Ok(predicted) => clean = Some(predicted),
                Err(DiffusionError::Stopped) if self.keeps(&clean) => break,
                Err(error) => return Err(self.failed(error)),
            }
            if latent.iter().any(|value| !value.is_finite()) {
                return Err(self.failed(DiffusionError::LatentNotFinite { step: step + 1 }));
            }
            step += 1;
            let seconds = self.seconds_since(clock);
            self.summary.seconds.steps.push(seconds);
            self.show_preview(worker, clean.as_deref(), index, step as u32);
            match checkpoint.after_step(worker, step, seconds, &self.summary.seconds)? {
                After::GoOn => {}
                After::Keep => break,
                After::Wait(pressure) => {
                    // Both holders of the weights let go: this one, and memory's.
                    self.denoiser = None;
                    if let After::Keep = checkpoint.wait_for_room(worker, step, pressure)? {
                        break;
                    }
                }
            }
        }
        self.steering.set_can_keep(false);
        self.step = step as u32;
        match clean {
            // A run that was stopped still has noise in its latent; what it predicted does not.
            Some(clean) if step < steps => Ok(Denoised { latent: clean, stopped_at: Some(step as u32) }),
            _ => Ok(Denoised { latent, stopped_at: None }),
        }
    }

    /// Whether the person stopped the run and there is something to keep of it.
    fn keeps(&self, clean: &Option<Vec<f32>>) -> bool {
        clean.is_some() && self.steering.wish() == Wish::StopAndKeep
    }

    /// Makes sure that the UNet is on the device, with the prompts beside it.
    fn load_unet(&mut self, worker: &mut Worker, (positive, negative): &Prompts) -> Result<(), Ended> {
        if self.denoiser.is_some() {
            return Ok(());
        }
        let (precision, watch) = (self.precision, self.watch);
        let unet = self.load(worker, Part::Unet, precision, |memory| memory.unet(precision, watch))?;
        let device = worker.memory.device().map_err(|error| self.failed(error))?;
        let cfg = self.job.request.cfg;
        let prediction = self.prediction;
        self.denoiser = Some(Denoiser::new(unet, device, precision, positive, negative, cfg, prediction, self.shape));
        Ok(())
    }

    /// Decodes, in a wider type if the picture is not finite in the run's own.
    fn decode(&mut self, worker: &mut Worker, latent: &[f32]) -> Result<RgbImage, Ended> {
        // From here on memory alone holds the UNet, so that it can go whenever the decoder needs its room.
        self.denoiser = None;
        if !worker.memory.keeps_unet_while_decoding() {
            worker.memory.drop_unet();
        }
        let mut last = DiffusionError::PictureNotFinite;
        for precision in worker.memory.decode_precisions(self.precision) {
            if precision != self.precision {
                let notice = Notice::DecodedAgain(precision.label());
                worker.link.tell(Event::Notice(Some(self.job.id), notice));
            }
            let watch = self.watch;
            let vae = self.load(worker, Part::VaeDecoder, precision, |memory| memory.vae(precision, watch))?;
            self.steering.enter(Phase::Decoding);
            let clock = self.clock();
            let hold = self.with_room(worker, |memory| memory.activations(Part::VaeDecoder))?;
            let device = worker.memory.device().map_err(|error| self.failed(error))?;
            let decoded = pipeline::decode(&vae, latent, self.shape, device, precision, watch);
            drop(hold);
            self.summary.seconds.decode += self.seconds_since(clock);
            match decoded {
                Ok(image) => return Ok(image),
                Err(error @ DiffusionError::PictureNotFinite) => last = error,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Err(self.failed(last))
    }

    /// Asks memory for a part; the time it takes counts as loading.
    fn load<T>(
        &mut self,
        worker: &mut Worker,
        part: Part,
        precision: Precision,
        get: impl FnMut(&mut Keeper) -> Result<T, Refused>,
    ) -> Result<T, Ended> {
        if !worker.memory.has(part, precision) {
            self.steering.enter(Phase::Loading);
        }
        let clock = self.clock();
        let loaded = self.with_room(worker, get);
        self.summary.seconds.load += self.seconds_since(clock);
        loaded
    }

    /// Asks memory for something, and waits for room as often as it takes.
    fn with_room<T>(
        &mut self,
        worker: &mut Worker,
        mut ask: impl FnMut(&mut Keeper) -> Result<T, Refused>,
    ) -> Result<T, Ended> {
        loop {
            match ask(&mut worker.memory) {
                Ok(given) => return Ok(given),
                Err(Refused::Wait(pressure)) => {
                    self.denoiser = None;
                    wait_for_room(worker, self.steering, self.step, pressure);
                    if self.steering.breaks_off() {
                        return Err(Ended::Cancelled);
                    }
                }
                Err(refused) => return Err(from_refused(refused, self.scene())),
            }
        }
    }

    fn failed(&self, error: DiffusionError) -> Ended {
        from_diffusion(error, self.scene())
    }

    fn scene(&self) -> Scene<'_> {
        Scene { phase: self.steering.phase(), device: self.device, model: self.model, precision: self.precision }
    }

    /// A moment on a clock that stands still while the job is paused.
    fn clock(&self) -> (Instant, f64) {
        (Instant::now(), self.steering.seconds_paused())
    }

    fn seconds_since(&self, (moment, paused): (Instant, f64)) -> f64 {
        moment.elapsed().as_secs_f64() - (self.steering.seconds_paused() - paused)
    }

    fn show_preview(&mut self, worker: &Worker, clean: Option<&[f32]>, index: u32, step: u32) {
        let Some(clean) = clean else { return };
        let made = self.pace.make(Instant::now(), || pipeline::preview(clean, self.shape));
        if let Some(Some(image)) = made {
            let job = self.job.id;
            worker.link.show(Preview { job, image_index: index, step, image: Arc::new(image) });
        }
    }
}

/// What the loop leaves for the decoder.
struct Denoised {
    latent: Vec<f32>,
    /// After how many steps the person stopped it.
    stopped_at: Option<u32>,
}
