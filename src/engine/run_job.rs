//! One job from its first sign of life to its last picture: load, encode, denoise, decode, save.
//!
//! The phases stand in this order in [`run`]. What happens between two steps is in `checkpoint`; where weights lie and
//! whether they fit is asked of `memory`.

use super::checkpoint::{After, Checkpoint};
use super::error::{Ended, from_diffusion};
use super::preview::PreviewPace;
use super::protocol::{Event, Job, Shot, Summary, Wish};
use super::save::{self, Facts};
use super::steering::Steering;
use super::worker::Worker;
use crate::base::problem::Phase;
use crate::base::{Notice, Precision, Problem, RgbImage, ShotRequest};
use crate::diffusion::noise::NoiseGenerator;
use crate::diffusion::pipeline::{self, Conditioning, Denoiser};
use crate::diffusion::prompt;
use crate::diffusion::samplers::{NoiseSchedule, Plan};
use crate::diffusion::{DiffusionError, Watch};
use std::sync::Arc;
use std::time::Instant;

/// Makes the job's pictures. Every finished one has been told by the time this returns, also if a later one fails.
pub fn run(worker: &mut Worker, job: &Job) -> Result<Summary, Ended> {
    let started = Instant::now();
    let link = worker.link.clone();
    let status = worker.use_device(job.setup.device)?;
    let on_cpu = status.choice == crate::base::DeviceChoice::Cpu;
    let steering = Steering::new(job.id, &job.control, &link, on_cpu);
    let go_on = || steering.go_on();
    let watch = Watch::new(&go_on);
    let failed = |error: DiffusionError| from_diffusion(error, steering.phase(), &status.name);
    link.tell(Event::Phase(job.id, Phase::Loading));

    // Loading: what the model is, and whether this job can be done with it at all, before the first weight moves.
    let mut summary = Summary { device: status.name.clone(), latent_shape: [0; 3], ..Summary::default() };
    let precision = match job.setup.precision {
        Precision::Auto => status.precision,
        chosen => chosen,
    };
    summary.precision = precision;
    for notice in worker.use_model(&job.setup, precision)? {
        link.tell(Event::Notice(Some(job.id), notice));
    }
    let request = &job.request;
    let facts = worker.memory.model_facts();
    let schedule = NoiseSchedule::new(&facts.scheduler).map_err(|error| {
        Ended::failed(Problem::BadCheckpoint { path: facts.path.clone(), what: error.to_string() }, error.to_string())
    })?;
    let steps = request.steps as usize;
    let plan = Plan::new(request.sampler, request.schedule, steps, &schedule).map_err(|e| failed(e.into()))?;
    let shape = facts.latent_shape(request.size).map_err(|problem| Ended::failed(problem, facts.path.display().to_string()))?;
    summary.latent_shape = shape;
    if let Some(notice) = worker.memory.before_job(request, precision)? {
        link.tell(Event::Notice(Some(job.id), notice));
    }
    worker.tell_hash_wanted(&job.setup);

    // Encoding
    let before = steering.seconds_paused();
    let encode_started = Instant::now();
    summary.seconds.load += encode_started.duration_since(started).as_secs_f64();
    let (positive, negative, load_seconds) = encode(worker, job, &steering, watch).map_err(failed)?;
    summary.seconds.load += load_seconds;
    let paused = steering.seconds_paused() - before;
    summary.seconds.encode = encode_started.elapsed().as_secs_f64() - load_seconds - paused;

    let mut made = Making {
        job,
        steering: &steering,
        plan: &plan,
        shape,
        precision,
        conditioning: (positive, negative),
        denoiser: None,
        pace: PreviewPace::default(),
        summary,
        device: status.name.clone(),
    };
    for index in 0..request.count {
        if steering.wish() == Wish::StopAndKeep && index > 0 {
            break;
        }
        made.picture(worker, index, watch)?;
        if steering.wish() == Wish::Cancel {
            return Err(Ended::Cancelled);
        }
    }
    let mut summary = made.summary;
    summary.pauses = steering.pauses();
    summary.seconds.paused = steering.seconds_paused();
    let peaks = worker.memory.peaks();
    (summary.peak_ours, summary.peak_process, summary.peak_device) = (peaks.pools, peaks.process, peaks.device);
    summary.seconds.total = started.elapsed().as_secs_f64();
    Ok(summary)
}

/// Both prompts, from the cache where nothing that changes them has changed; and the seconds that loading took.
fn encode(
    worker: &mut Worker,
    job: &Job,
    steering: &Steering,
    watch: Watch,
) -> Result<(Conditioning, Conditioning, f64), DiffusionError> {
    let mut load = 0.0;
    let mut one = |text: &str| {
        let read = prompt::read(text);
        for notice in read.notices {
            worker.link.tell(Event::Notice(Some(job.id), notice));
        }
        let chunks = worker.memory.tokenize(&read.pieces)?;
        let clip_skip = job.request.clip_skip;
        if let Some(known) = worker.encodings.get(&chunks, clip_skip) {
            return Ok(known);
        }
        let started = Instant::now();
        let encoder = worker.memory.text_encoder(watch)?;
        load += started.elapsed().as_secs_f64();
        steering.enter(Phase::Encoding);
        let encoded = pipeline::encode(&encoder, &chunks, clip_skip, watch)?;
        worker.encodings.put(chunks, clip_skip, encoded.clone());
        Ok(encoded)
    };
    let positive = one(&job.request.prompt)?;
    // CFG 1 has no negative pass, so its prompt need not be encoded; the positive one stands in.
    let negative = if job.request.cfg == 1.0 { positive.clone() } else { one(&job.request.negative)? };
    Ok((positive, negative, load))
}

/// What the pictures of a job share.
struct Making<'a> {
    job: &'a Job,
    steering: &'a Steering<'a>,
    plan: &'a Plan,
    /// `[channels, height, width]` of the latent.
    shape: [usize; 3],
    precision: Precision,
    conditioning: (Conditioning, Conditioning),
    /// Let go whenever the weights have to leave the card.
    denoiser: Option<Denoiser>,
    pace: PreviewPace,
    summary: Summary,
    device: String,
}

impl Making<'_> {
    /// Makes picture `index`, tells it, and keeps what the summary needs of it.
    fn picture(&mut self, worker: &mut Worker, index: u32, watch: Watch) -> Result<(), Ended> {
        let request = self.job.request.single(index);
        let started = Instant::now();
        let paused_before = self.steering.seconds_paused();

        let Denoised { latent, stopped_at } = self.denoise(worker, &request, index, watch)?;

        self.steering.enter(Phase::Decoding);
        // The latent is what counts from here on, and cancelling still works.
        self.steering.set_can_keep(false);
        let decoding = Instant::now();
        let image = self.decode(worker, &latent, watch)?;
        self.summary.seconds.decode += decoding.elapsed().as_secs_f64();

        self.steering.enter(Phase::Saving);
        let saving = Instant::now();
        let paused = self.steering.seconds_paused() - paused_before;
        let seconds = started.elapsed().as_secs_f64() - paused;
        let model = self.job.setup.model.name();
        let facts = Facts { hashes: worker.hashes(&self.job.setup), setup: &self.job.setup, index, stopped_at };
        let saved = save::save(&image, &request, &facts, &self.job.output);
        self.summary.seconds.save += saving.elapsed().as_secs_f64();
        if let Some(why) = saved.error.clone() {
            worker.link.tell(Event::Notice(Some(self.job.id), Notice::NotSaved { why }));
        }
        let shot = Shot {
            job: self.job.id,
            index,
            request,
            image: Arc::new(image),
            file: saved.file,
            save_error: saved.error,
            parameters: saved.parameters,
            model,
            seconds,
            stopped_at,
        };
        worker.link.tell(Event::Picture(self.job.id, Box::new(shot)));
        if self.job.keep_latents {
            self.summary.latents.push(latent);
        }
        self.summary.images += 1;
        worker.memory.after_image();
        Ok(())
    }

    /// The denoising loop.
    fn denoise(
        &mut self,
        worker: &mut Worker,
        request: &ShotRequest,
        index: u32,
        watch: Watch,
    ) -> Result<Denoised, Ended> {
        let [c, h, w] = self.shape;
        let mut noise = NoiseGenerator::new(request.noise, request.seed);
        let mut latent = vec![0.0; c * h * w];
        noise.fill(&mut latent);
        let sigma = self.plan.init_noise_sigma();
        latent.iter_mut().for_each(|value| *value *= sigma);

        let mut sampler = self.plan.sampler::<DiffusionError>();
        let mut clean: Option<Vec<f32>> = None;
        let mut checkpoint = Checkpoint::new(self.job, self.steering, index, self.plan.steps());
        let mut step = 0;
        while step < self.plan.steps() {
            self.steering.set_can_keep(clean.is_some());
            self.load_unet(worker, watch)?;
            let of = self.plan.steps() as u32;
            self.steering.enter(Phase::Denoising { step: step as u32, of });
            let Some(denoiser) = &self.denoiser else { return Err(Ended::Cancelled) };
            let started = Instant::now();
            let paused_before = self.steering.seconds_paused();
            let made = sampler.step(
                step,
                &mut latent,
                &mut |input| denoiser.predict(input, watch),
                &mut |out| noise.fill(out),
            );
            match made {
                Ok(predicted) => clean = Some(predicted),
                Err(DiffusionError::Stopped) if self.steering.wish() == Wish::StopAndKeep => break,
                Err(error) => return Err(from_diffusion(error, self.steering.phase(), &self.device)),
            }
            if latent.iter().any(|value| !value.is_finite()) {
                let error = DiffusionError::LatentNotFinite { step: step + 1 };
                return Err(from_diffusion(error, self.steering.phase(), &self.device));
            }
            step += 1;
            let seconds =
                started.elapsed().as_secs_f64() - (self.steering.seconds_paused() - paused_before);
            self.summary.seconds.steps.push(seconds);
            self.show_preview(worker, clean.as_deref(), index, step as u32);
            match checkpoint.after_step(worker, step, seconds, &self.summary.seconds)? {
                After::GoOn => {}
                After::Keep => break,
                After::WeightsLeave(pause) => {
                    // Both holders of the weights let go: this one, and memory's.
                    self.denoiser = None;
                    if let After::Keep = checkpoint.wait_for_room(worker, step, pause)? {
                        break;
                    }
                }
            }
        }
        let finished = step == self.plan.steps();
        match clean {
            // A run that was stopped still has noise in its latent; what it predicted does not.
            Some(clean) if !finished => Ok(Denoised { latent: clean, stopped_at: Some(step as u32) }),
            _ => Ok(Denoised { latent, stopped_at: None }),
        }
    }

    /// Makes sure that the UNet is on the device, with the prompts beside it.
    fn load_unet(&mut self, worker: &mut Worker, watch: Watch) -> Result<(), Ended> {
        if self.denoiser.is_some() {
            return Ok(());
        }
        let loading = Instant::now();
        let paused_before = self.steering.seconds_paused();
        self.steering.enter(Phase::Loading);
        let unet = worker
            .memory
            .unet(watch)
            .map_err(|error| from_diffusion(error, self.steering.phase(), &self.device))?;
        let (positive, negative) = &self.conditioning;
        self.denoiser = Some(Denoiser::new(
            unet,
            worker.memory.device(),
            self.precision,
            positive,
            negative,
            self.job.request.cfg,
            worker.memory.model_facts().scheduler.prediction,
            self.shape,
        ));
        self.summary.seconds.load +=
            loading.elapsed().as_secs_f64() - (self.steering.seconds_paused() - paused_before);
        Ok(())
    }

    /// Decodes, in a wider type if the picture is not finite in the run's own.
    fn decode(&mut self, worker: &mut Worker, latent: &[f32], watch: Watch) -> Result<RgbImage, Ended> {
        if !worker.memory.keeps_unet_while_decoding(self.job.request.size) {
            self.denoiser = None;
        }
        let mut last = DiffusionError::PictureNotFinite;
        for precision in worker.memory.decode_precisions(self.precision) {
            if precision != self.precision {
                let label = precision.label();
                worker.link.tell(Event::Notice(Some(self.job.id), Notice::DecodedAgain(label)));
            }
            let decoded = worker.memory.vae(precision, watch).and_then(|vae| {
                pipeline::decode(&vae, latent, self.shape, worker.memory.device(), precision, watch)
            });
            match decoded {
                Ok(image) => return Ok(image),
                Err(error @ DiffusionError::PictureNotFinite) => last = error,
                Err(error) => return Err(from_diffusion(error, self.steering.phase(), &self.device)),
            }
        }
        Err(from_diffusion(last, self.steering.phase(), &self.device))
    }

    fn show_preview(&mut self, worker: &Worker, clean: Option<&[f32]>, index: u32, step: u32) {
        let Some(clean) = clean else { return };
        let made = self.pace.make(Instant::now(), || pipeline::preview(clean, self.shape));
        if let Some(Some(image)) = made {
            let job = self.job.id;
            worker.link.show(super::protocol::Preview { job, image_index: index, step, image: Arc::new(image) });
        }
    }
}

/// What the loop leaves for the decoder.
struct Denoised {
    latent: Vec<f32>,
    /// After how many steps the person stopped it.
    stopped_at: Option<u32>,
}
