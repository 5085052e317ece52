//! The studio with the test at the engine's end of the channels.

use super::*;
use crate::base::choice::MemoryLimits;
use crate::base::problem::Phase;
use crate::base::request::RequestError;
use crate::base::{
    Bytes, DeviceChoice, Hint, JobError, Latest, MemoryReading, Notice, Precision, Problem, Reason, ScheduleKind,
    ShotRequest, Size, VaeChoice,
};
use crate::engine::protocol::{Command, Event, Job, PauseReason, Preview, Progress, Shot, Summary, Wish};
use crossbeam_channel::{Receiver, Sender};

/// The engine's ends.
struct Engine {
    commands: Receiver<Command>,
    events: Sender<Event>,
    previews: Latest<Preview>,
    readings: Latest<MemoryReading>,
}

impl Engine {
    /// The jobs sent since the last call.
    fn jobs(&self) -> Vec<Job> {
        self.commands.try_iter().filter_map(|c| if let Command::Run(job) = c { Some(*job) } else { None }).collect()
    }

    fn job(&self) -> Job {
        self.jobs().pop().expect("no job was sent")
    }

    fn tell(&self, studio: &mut Studio, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.events.send(event).unwrap());
        studio.poll();
    }

    fn preview(&self, studio: &mut Studio, job: JobId, image_index: u32) -> bool {
        self.previews.put(Preview { job, image_index, step: 1, image: image() });
        studio.poll()
    }
}

fn image() -> Arc<RgbImage> {
    Arc::new(RgbImage::new(2, 3, vec![9; 18]).unwrap())
}

fn shot(job: &Job, index: u32) -> Shot {
    Shot {
        job: job.id,
        index,
        request: job.request.single(index),
        image: image(),
        file: Some(format!("/out/{index}.png").into()),
        save_error: None,
        parameters: "Steps: 25".into(),
        model: "m".into(),
        seconds: 2.0,
        stopped_at: None,
    }
}

fn unsaved(job: &Job) -> Shot {
    Shot { file: None, save_error: Some(Reason::DiskFull("/pictures".into())), ..shot(job, 0) }
}

fn picture(job: &Job, index: u32) -> Event {
    Event::Picture(job.id, Box::new(shot(job, index)))
}

fn done(job: &Job) -> Event {
    let mut summary = Summary { images: job.request.count, ..Summary::default() };
    summary.seconds.steps = vec![0.2; job.request.steps as usize];
    summary.seconds.decode = 1.0;
    summary.seconds.total = 6.0;
    Event::Done(job.id, Box::new(summary))
}

fn failed(job: &Job, problem: Problem) -> Event {
    Event::Failed(job.id, Box::new(JobError::new(problem, "details")))
}

fn model() -> ModelChoice {
    ModelChoice::Path("/models/portrait.safetensors".into())
}

fn info() -> ModelInfo {
    let (name, kind) = ("portrait".into(), "SD 1.5 checkpoint".into());
    ModelInfo { name, kind, has_vae: true, suggested_vae: None, note: None }
}

fn services() -> Services {
    Services {
        count_tokens: Box::new(|_, text| TokenCount {
            tokens: text.split_whitespace().count(),
            ..TokenCount::default()
        }),
        forecast: Box::new(|draft, memory, _| {
            let total = memory.latest()?.total?;
            let peak = Bytes(draft.size.pixels() * 4096);
            Some(if peak < total { Forecast::Fits { peak, total } } else { Forecast::DoesNotFit { largest: None } })
        }),
        pictures_folder: Some("/pictures".into()),
        pocket: None,
        system_lang: Lang::En,
    }
}

fn studio_with(kept: Preferences) -> (Studio, Engine) {
    studio_of(services(), kept)
}

fn studio_of(services: Services, kept: Preferences) -> (Studio, Engine) {
    let (commands, commands_there) = crossbeam_channel::unbounded();
    let (events_there, events) = crossbeam_channel::unbounded();
    let (previews, readings) = (Latest::new(), Latest::new());
    let engine = Engine {
        commands: commands_there,
        events: events_there,
        previews: previews.clone(),
        readings: readings.clone(),
    };
    (Studio::new(EngineHandle { commands, events, previews, readings }, services, kept), engine)
}

/// A studio whose model is chosen, with a prompt.
fn ready() -> (Studio, Engine) {
    let (mut studio, engine) = studio_with(Preferences::default());
    studio.apply(Action::ModelChosen(model()));
    studio.apply(Action::ModelInspected { choice: model(), result: Ok(info()) });
    studio.apply(Action::Set(Setting::Prompt("a portrait".into())));
    (studio, engine)
}

/// A ready studio with a job that has begun.
fn running() -> (Studio, Engine, Job) {
    let (mut studio, engine) = ready();
    studio.apply(Action::Generate);
    let job = engine.job();
    engine.tell(&mut studio, [Event::Started(job.id)]);
    (studio, engine, job)
}

fn problem(studio: &Studio) -> Option<&Problem> {
    match studio.trouble() {
        Some(Trouble::Job { error, .. }) => Some(&error.problem),
        _ => None,
    }
}

#[test]
fn generate_checks_the_draft_draws_a_seed_and_sends_the_job() {
    let (mut studio, engine) = ready();
    studio.apply(Action::Set(Setting::Seed(SeedChoice::Fixed(u64::MAX))));
    studio.apply(Action::Generate);
    studio.apply(Action::Set(Setting::Seed(SeedChoice::Random)));
    studio.apply(Action::Generate);
    studio.apply(Action::Generate);
    let jobs = engine.jobs();
    assert_eq!(jobs[0].request, studio.draft().request(u64::MAX).unwrap());
    assert_eq!(jobs[0].setup.model, model());
    assert_eq!(jobs[0].output, studio.draft().output(Some(&"/pictures".into())));
    assert!(jobs[1].request.seed != jobs[2].request.seed, "two draws are the same");
    assert!(jobs[0].id != jobs[1].id && jobs[1].id != jobs[2].id);
    assert_eq!((studio.queue().waiting().count(), studio.running().is_none()), (3, true));
    assert_eq!(studio.history().pairs().len(), 1);
}

#[test]
fn a_draft_that_does_not_hold_is_a_trouble_and_no_job() {
    let (mut studio, engine) = ready();
    studio.apply(Action::Set(Setting::Sampler(crate::base::SamplerKind::Ddim)));
    studio.apply(Action::Set(Setting::Schedule(ScheduleKind::Karras)));
    studio.apply(Action::Generate);
    assert!(matches!(studio.trouble(), Some(Trouble::Draft(RequestError::Pair { .. }))));
    assert!(engine.jobs().is_empty());
    studio.apply(Action::Reset(Field::Schedule));
    studio.apply(Action::Generate);
    assert_eq!((studio.trouble(), engine.jobs().len()), (None, 1));
}

#[test]
fn without_a_model_the_way_to_one_is_shown() {
    let (mut studio, engine) = studio_with(Preferences::default());
    assert!(!studio.can_generate());
    studio.apply(Action::Generate);
    assert_eq!(problem(&studio), Some(&Problem::NoModel));
    assert_eq!(studio.trouble().unwrap().hints(), [Hint::OpenModel]);
    assert_eq!(studio.apply(Action::TakeHint(Hint::OpenModel)), [Effect::PickModelFile]);
    assert!(engine.jobs().is_empty());
    studio.apply(Action::ModelChosen(model()));
    studio.apply(Action::ModelInspected { choice: model(), result: Ok(info()) });
    assert!(studio.trouble().is_none() && studio.can_generate());
}

#[test]
fn a_job_walks_its_phases_to_a_picture() {
    let (mut studio, engine, job) = running();
    assert_eq!(studio.stage(), Stage::Loading);
    let progress = Progress {
        image: 0,
        images: 1,
        step: 3,
        steps: 25,
        steps_per_second: Some(5.0),
        left: Some(Duration::from_secs(5)),
    };
    engine.tell(
        &mut studio,
        [
            Event::Phase(job.id, Phase::Encoding),
            Event::Phase(job.id, Phase::Denoising { step: 0, of: 25 }),
            Event::Progress(job.id, progress),
        ],
    );
    let entry = studio.running().unwrap();
    assert_eq!((entry.phase(), entry.progress), (Some(Phase::Denoising { step: 3, of: 25 }), Some(progress)));
    assert!(matches!(studio.canvas(), Canvas::Empty));
    assert!(engine.preview(&mut studio, job.id, 0));
    assert!(matches!(studio.canvas(), Canvas::Preview(view) if view.version == 1));
    engine.tell(&mut studio, [Event::Phase(job.id, Phase::Decoding), picture(&job, 0), done(&job)]);
    assert!(matches!(studio.canvas(), Canvas::Shot(shot) if shot.shot.request.seed == job.request.seed));
    assert!(studio.running().is_none() && studio.queue().is_empty() && studio.preview().is_none());
    assert_eq!(studio.queue().last().map(|last| &last.state), Some(&JobState::Done));
    assert_eq!(studio.notices().newest().map(|line| &line.what), Some(&Line::Done { images: 1, seconds: 6.0 }));
    assert_eq!(studio.take_effects(), [Effect::NotifyDone]);
    assert!(!studio.poll());
    // 25 steps of 0.2 s and a second to decode; half the pixels take half of it.
    assert_eq!(studio.time_estimate(), Some(Duration::from_secs(6)));
    studio.apply(Action::Set(Setting::Size(Size::nearest(512, 384))));
    assert_eq!(studio.time_estimate(), Some(Duration::from_secs(3)));
    studio.apply(Action::Set(Setting::Precision(Precision::F32)));
    assert_eq!(studio.time_estimate(), None);
}

#[test]
fn pause_resume_stop_and_cancel_are_wishes_until_the_engine_confirms() {
    let (mut studio, engine, job) = running();
    studio.apply(Action::Pause);
    assert_eq!(job.control.wish(), Wish::Pause);
    assert!(studio.running().unwrap().pausing() && !studio.running().unwrap().paused());
    engine.readings.put(MemoryReading { at: 1.0, ..MemoryReading::default() });
    studio.poll();
    engine.tell(&mut studio, [Event::Paused(job.id, PauseReason::Asked)]);
    assert!(studio.running().unwrap().paused() && !studio.running().unwrap().pausing());
    assert_eq!(studio.stage(), Stage::Paused);
    assert_eq!(studio.memory().marks().map(|m| m.kind).collect::<Vec<_>>(), [MarkKind::PausedByHand]);
    studio.apply(Action::Resume);
    assert!(job.control.wish() == Wish::Run && job.control.take_go_anyway());
    assert!(studio.running().unwrap().resuming());
    engine.tell(&mut studio, [Event::Resumed(job.id)]);
    assert_eq!(studio.running().unwrap().state, JobState::Running { phase: Phase::Loading });
    studio.apply(Action::StopAndKeep);
    assert!(studio.running().unwrap().stopping());
    studio.apply(Action::Cancel);
    assert!(job.control.wish() == Wish::Cancel && studio.running().unwrap().cancelling());
    studio.apply(Action::Resume);
    assert_eq!(job.control.wish(), Wish::Cancel, "nothing takes a cancel back");
    engine.tell(&mut studio, [Event::Cancelled(job.id)]);
    assert!(studio.queue().is_empty());
    assert_eq!(studio.notices().newest().map(|line| &line.what), Some(&Line::Cancelled));
    assert!(studio.take_effects().is_empty());
}

#[test]
fn late_events_mean_nothing_but_a_late_picture_is_kept() {
    let (mut studio, engine, job) = running();
    engine.tell(&mut studio, [Event::Cancelled(job.id)]);
    let strange = JobId(999);
    engine.tell(
        &mut studio,
        [
            Event::Phase(job.id, Phase::Decoding),
            Event::Started(strange),
            failed(&job, Problem::PictureNotFinite),
            Event::Resumed(strange),
            done(&job),
            picture(&job, 0),
        ],
    );
    assert!(studio.trouble().is_none() && studio.queue().is_empty());
    assert_eq!(studio.queue().last().map(|last| &last.state), Some(&JobState::Cancelled));
    assert_eq!(studio.shots().len(), 1);
    assert!(!engine.preview(&mut studio, job.id, 0) && studio.preview().is_none());
}

#[test]
fn an_illegal_event_fails_the_job_and_the_next_one_runs() {
    let (mut studio, engine, job) = running();
    studio.apply(Action::Generate);
    let next = engine.job();
    engine.tell(&mut studio, [Event::Resumed(job.id), Event::Phase(job.id, Phase::Decoding)]);
    assert!(matches!(problem(&studio), Some(Problem::Internal(_))));
    assert_eq!(job.control.wish(), Wish::Cancel);
    engine.tell(&mut studio, [Event::Cancelled(job.id), Event::Started(next.id)]);
    assert_eq!(studio.running().map(|entry| entry.id), Some(next.id));
}

#[test]
fn previews_of_finished_pictures_and_other_jobs_are_dropped() {
    let (mut studio, engine, job) = running();
    engine.tell(&mut studio, [picture(&job, 0)]);
    assert!(!engine.preview(&mut studio, job.id, 0));
    assert!(engine.preview(&mut studio, job.id, 1));
    assert!(!engine.preview(&mut studio, JobId(77), 5));
    assert_eq!(studio.preview().map(|view| (view.image_index, view.version)), Some((1, 1)));
}

#[test]
fn a_picked_picture_stays_in_sight_until_the_next_generate() {
    let (mut studio, engine, job) = running();
    engine.tell(&mut studio, [picture(&job, 0)]);
    let first = studio.shots().newest().unwrap().id;
    studio.apply(Action::Select(Some(first)));
    engine.tell(&mut studio, [picture(&job, 1)]);
    engine.preview(&mut studio, job.id, 2);
    assert!(matches!(studio.canvas(), Canvas::Shot(shot) if shot.id == first));
    studio.apply(Action::Select(None));
    assert!(matches!(studio.canvas(), Canvas::Preview(_)));
    studio.apply(Action::Select(Some(first)));
    studio.apply(Action::Generate);
    assert!(studio.shots().selected().is_none());
}

#[test]
fn forever_goes_on_with_new_seeds_until_stopped() {
    let (mut studio, engine) = ready();
    studio.apply(Action::Set(Setting::Seed(SeedChoice::Fixed(u64::MAX))));
    studio.apply(Action::Set(Setting::Forever(true)));
    studio.apply(Action::Set(Setting::Count(2)));
    studio.apply(Action::Generate);
    let first = engine.job();
    engine.tell(&mut studio, [Event::Started(first.id), picture(&first, 0), picture(&first, 1), done(&first)]);
    let second = engine.job();
    assert_eq!(second.request.seed, 1, "seeds wrap and never repeat");
    studio.apply(Action::Set(Setting::Seed(SeedChoice::Random)));
    studio.apply(Action::Set(Setting::Prompt("another".into())));
    engine.tell(&mut studio, [Event::Started(second.id), done(&second)]);
    let third = engine.job();
    assert_eq!(third.request.prompt, "another");
    studio.apply(Action::Cancel);
    assert_eq!(third.control.wish(), Wish::Cancel);
    engine.tell(&mut studio, [Event::Cancelled(third.id)]);
    assert!(engine.jobs().is_empty() && !studio.draft().forever);

    studio.apply(Action::Set(Setting::Forever(true)));
    studio.apply(Action::Generate);
    let last = engine.job();
    engine.tell(&mut studio, [Event::Started(last.id), failed(&last, Problem::PictureNotFinite)]);
    assert!(engine.jobs().is_empty(), "a failure does not repeat itself");
}

#[test]
fn jobs_wait_their_turn_and_a_waiting_one_can_be_cancelled() {
    let (mut studio, engine, first) = running();
    studio.apply(Action::Generate);
    studio.apply(Action::Generate);
    let waiting = engine.jobs();
    assert_eq!(studio.queue().waiting().map(|w| w.id).collect::<Vec<_>>(), [waiting[0].id, waiting[1].id]);
    studio.apply(Action::CancelJob(waiting[0].id));
    assert_eq!((waiting[0].control.wish(), first.control.wish()), (Wish::Cancel, Wish::Run));
    engine.tell(&mut studio, [done(&first), Event::Cancelled(waiting[0].id), Event::Started(waiting[1].id)]);
    assert_eq!(studio.running().map(|entry| entry.id), Some(waiting[1].id));
    for _ in 0..2 * Queue::MOST {
        studio.apply(Action::Generate);
    }
    assert_eq!(studio.queue().jobs().len(), Queue::MOST);
    assert!(matches!(studio.notices().newest().unwrap().what, Line::QueueFull { .. }));
    studio.apply(Action::CancelAll);
    assert!(engine.jobs().iter().all(|job| job.control.wish() == Wish::Cancel));
}

#[test]
fn a_failure_shows_its_hints_and_a_hint_tries_the_same_picture_again() {
    let (mut studio, engine, job) = running();
    engine.tell(&mut studio, [failed(&job, Problem::LatentNotFinite { step: 3 })]);
    let trouble = studio.trouble().unwrap();
    assert_eq!((trouble.hints(), trouble.details()), ([Hint::UseF32].as_slice(), "details"));
    studio.apply(Action::TakeHint(Hint::UseF32));
    let again = engine.job();
    assert_eq!((again.request, again.setup.precision), (job.request.clone(), Precision::F32));
    assert!(studio.trouble().is_none() && studio.draft().precision == Precision::F32);

    let size = Size::nearest(512, 512);
    let need = Bytes::gib(9);
    let too_big = Problem::DoesNotFit { need, have: need, limit: need, fits: Some(size) };
    engine.tell(&mut studio, [Event::Started(again.id), failed(&job, Problem::NoModel)]);
    assert!(studio.trouble().is_none(), "a late failure of a job that has ended");
    engine.tell(&mut studio, [failed(&Job { id: again.id, ..job.clone() }, too_big)]);
    studio.apply(Action::TakeHint(Hint::UseSize(size)));
    let smaller = engine.job();
    assert_eq!((smaller.request.size, smaller.request.seed, studio.draft().size), (size, job.request.seed, size));
    engine
        .tell(&mut studio, [Event::Started(smaller.id), failed(&smaller, Problem::DeviceFault { device: "d".into() })]);
    studio.apply(Action::Set(Setting::Prompt("another".into())));
    studio.apply(Action::TakeHint(Hint::TryAgain));
    assert_eq!(engine.job().request, smaller.request);
}

#[test]
fn a_failed_job_can_be_tried_again_after_another_went_well() {
    let (mut studio, engine, first) = running();
    studio.apply(Action::Generate);
    let second = engine.job();
    let lost = failed(&first, Problem::DeviceLost { device: "d".into() });
    engine.tell(&mut studio, [lost, Event::Started(second.id), done(&second)]);
    studio.apply(Action::TakeHint(Hint::TryAgain));
    assert_eq!(engine.job().request, first.request);
}

#[test]
fn a_picture_that_could_not_be_saved_stays_and_closing_asks() {
    let (mut studio, engine, job) = running();
    studio.apply(Action::Set(Setting::Forever(true)));
    let notice = Event::Notice(Some(job.id), Notice::NotSaved { why: Reason::DiskFull("/pictures".into()) });
    engine.tell(&mut studio, [notice, Event::Picture(job.id, Box::new(unsaved(&job)))]);
    assert_eq!(studio.notices().iter().len(), 0, "said once");
    engine.tell(&mut studio, [done(&job)]);
    assert!(matches!(problem(&studio), Some(Problem::NotSaved { folder, .. }) if folder.as_path() == "/pictures"));
    assert!(engine.jobs().is_empty(), "pictures must not pile up unsaved");
    let id = studio.shots().newest().unwrap().id;
    assert!(studio.apply(Action::Close).is_empty() && studio.asks_to_close());
    studio.apply(Action::KeepOpen);
    assert!(!studio.asks_to_close());
    let effects = studio.apply(Action::TakeHint(Hint::SaveAs));
    assert!(matches!(&effects[..], [Effect::SaveAs { shot, request, .. }] if *shot == id && **request == job.request));
    studio.apply(Action::SaveAsDone { shot: id, result: Err(Box::new(JobError::new(Problem::NoModel, ""))) });
    assert_eq!(studio.shots().unsaved().count(), 1);
    studio.apply(Action::SaveAsDone { shot: id, result: Ok("/else/x.png".into()) });
    assert_eq!(studio.shots().unsaved().count(), 0);
    assert_eq!(studio.apply(Action::Close), [Effect::Quit]);
}

#[test]
fn closing_cancels_what_runs_and_ends_the_engine() {
    let (mut studio, engine, job) = running();
    assert_eq!(studio.apply(Action::Close), [Effect::Quit]);
    assert_eq!(job.control.wish(), Wish::Cancel);
    assert!(engine.commands.try_iter().any(|command| matches!(command, Command::Shutdown)));
    drop(engine);
    studio.poll();
    assert!(studio.trouble().is_none(), "the end was asked for");
    let (studio, _engine, job) = running();
    drop(studio);
    assert_eq!(job.control.wish(), Wish::Cancel);
}

#[test]
fn an_engine_that_is_gone_is_a_trouble_and_never_a_panic() {
    let (mut studio, engine, _job) = running();
    drop(engine);
    assert!(studio.poll());
    assert_eq!(studio.trouble(), Some(&Trouble::EngineGone));
    assert!(studio.queue().is_empty() && !studio.can_generate());
    assert!(!studio.poll());
    for action in [Action::Generate, Action::Clean, Action::Cancel, Action::Pause, Action::Start] {
        studio.apply(action);
    }
    assert_eq!(studio.trouble(), Some(&Trouble::EngineGone));
    assert!(!studio.memory().cleaning());
    assert_eq!(studio.apply(Action::Close), [Effect::Quit]);
    // Gone before the first look: found by sending.
    let (mut studio, engine) = ready();
    drop(engine);
    studio.apply(Action::Generate);
    assert_eq!(studio.trouble(), Some(&Trouble::EngineGone));
}

#[test]
fn start_tells_limits_and_device_and_looks_at_the_remembered_model() {
    let mut kept =
        Preferences { limits: MemoryLimits { pause_at: 0.8, ..MemoryLimits::default() }, ..Preferences::default() };
    kept.draft.model = Some(model());
    kept.draft.device = DeviceChoice::Cuda(1);
    let (mut studio, engine) = studio_with(kept);
    assert!(engine.commands.is_empty());
    assert_eq!(studio.apply(Action::Start), [Effect::Inspect(model())]);
    let told: Vec<_> = engine.commands.try_iter().collect();
    assert!(
        matches!(told[..], [Command::Limits(limits), Command::Probe(DeviceChoice::Cuda(1))] if limits.pause_at == 0.8)
    );
    assert_eq!(studio.inspecting(), Some(&model()));
    let error = Box::new(JobError::new(Problem::FileUnreadable { path: "/models/portrait.safetensors".into() }, ""));
    studio.apply(Action::ModelInspected { choice: model(), result: Err(error) });
    assert!(studio.draft().model.is_none() && studio.inspecting().is_none());
    assert!(matches!(problem(&studio), Some(Problem::FileUnreadable { .. })));
}

/// Services of a program with the built-in model, which counts a token for every letter.
fn with_pocket() -> Services {
    let words = r#"{"categories": [{"name": "hair", "words": ["red hair"]}], "examples": ["portrait of a woman"]}"#;
    Services {
        count_tokens: Box::new(|model, text| {
            let words = text.split_whitespace().count();
            let tokens = if model == Some(&ModelChoice::Pocket) { text.len() } else { words };
            TokenCount { tokens, ..TokenCount::default() }
        }),
        pocket: serde_json::from_str(words).unwrap(),
        ..services()
    }
}

#[test]
fn at_the_first_start_the_built_in_model_and_a_prompt_are_there_and_generate_works() {
    let (mut studio, engine) = studio_of(with_pocket(), Preferences::default());
    assert_eq!(studio.apply(Action::Start), [Effect::Inspect(ModelChoice::Pocket)]);
    assert_eq!((studio.draft().prompt.as_str(), studio.prompt_tokens().tokens), ("portrait of a woman", 19));
    assert!(studio.can_generate() && studio.vocabulary().is_some());
    studio.apply(Action::Generate);
    let job = engine.job();
    assert_eq!((job.setup.model, job.request.size), (ModelChoice::Pocket, Size::SMALL));
    studio.apply(Action::ModelInspected { choice: ModelChoice::Pocket, result: Ok(info()) });
    assert!(studio.recent_models().is_empty(), "it has a place of its own");
    // What is kept says what was chosen, and a prompt that was emptied stays empty.
    studio.apply(Action::Set(Setting::Prompt(String::new())));
    let kept = Preferences::read(&studio.preferences().write());
    let (studio, _engine) = studio_of(with_pocket(), kept.clone());
    assert_eq!((studio.draft().model.clone(), studio.draft().prompt.as_str()), (Some(ModelChoice::Pocket), ""));
    assert_eq!(studio.draft().size, Size::SMALL);
    // A program without it starts as it always did.
    let (studio, _engine) = studio_with(kept);
    assert_eq!((studio.draft().model.clone(), studio.draft().size), (None, Size::default()));
    assert!(studio.vocabulary().is_none() && !studio.has_pocket());
}

#[test]
fn a_checkpoint_brings_its_own_size_and_words_and_the_built_in_model_comes_back_by_a_click() {
    let (mut studio, _engine) = studio_of(with_pocket(), Preferences::default());
    studio.apply(Action::ModelChosen(model()));
    studio.apply(Action::ModelInspected { choice: model(), result: Ok(info()) });
    assert_eq!((studio.draft().size, studio.vocabulary().is_some()), (Size::default(), false));
    assert_eq!(studio.prompt_tokens().tokens, 4, "counted anew");
    studio.apply(Action::ModelChosen(ModelChoice::Pocket));
    studio.apply(Action::ModelInspected { choice: ModelChoice::Pocket, result: Ok(info()) });
    assert_eq!((studio.draft().size, studio.vocabulary().is_some()), (Size::SMALL, true));
    assert_eq!((studio.prompt_tokens().tokens, studio.recent_models()), (19, &[model()][..]));
}

#[test]
fn the_built_in_model_takes_the_place_of_a_lost_one_which_is_still_told() {
    let mut kept = Preferences::default();
    kept.draft.choose_model(Some(model()));
    let (mut studio, _engine) = studio_of(with_pocket(), kept);
    assert_eq!(studio.apply(Action::Start), [Effect::Inspect(model())]);
    assert!(studio.draft().prompt.is_empty(), "a prompt is only given to the built-in model");
    let error = Box::new(JobError::new(Problem::FileUnreadable { path: "/models/portrait.safetensors".into() }, ""));
    let effects = studio.apply(Action::ModelInspected { choice: model(), result: Err(error) });
    assert_eq!(effects, [Effect::Inspect(ModelChoice::Pocket)]);
    studio.apply(Action::ModelInspected { choice: ModelChoice::Pocket, result: Ok(info()) });
    assert_eq!((studio.draft().model.clone(), studio.draft().size), (Some(ModelChoice::Pocket), Size::SMALL));
    assert!(matches!(problem(&studio), Some(Problem::FileUnreadable { .. })));
    studio.apply(Action::ModelChosen(model()));
    studio.apply(Action::ModelInspected { choice: model(), result: Ok(info()) });
    assert_eq!(problem(&studio), None);
}

#[test]
fn a_refused_model_leaves_the_old_one_and_late_answers_are_dropped() {
    let (mut studio, _engine) = ready();
    let other = ModelChoice::Path("/models/sdxl.safetensors".into());
    studio.apply(Action::ModelChosen(other.clone()));
    let kind = "SDXL checkpoint".to_owned();
    let error = Box::new(JobError::new(Problem::WrongKind { path: "x".into(), kind }, ""));
    studio.apply(Action::ModelInspected { choice: other.clone(), result: Err(error) });
    assert_eq!((studio.draft().model.as_ref(), studio.model_info()), (Some(&model()), Some(&info())));
    assert!(studio.trouble().is_some());
    studio.apply(Action::ModelChosen(other.clone()));
    studio.apply(Action::ModelChosen(ModelChoice::RandomSd15));
    studio.apply(Action::ModelInspected { choice: other, result: Ok(info()) });
    assert_eq!(studio.draft().model, Some(model()));
    studio.apply(Action::ModelInspected { choice: ModelChoice::RandomSd15, result: Ok(info()) });
    assert_eq!(studio.recent_models(), [ModelChoice::RandomSd15, model()]);
}

#[test]
fn dropped_files_become_what_they_are() {
    let (mut studio, _engine) = ready();
    let effects = studio.apply(Action::FilesDropped((0..9).map(|n| format!("{n}").into()).collect()));
    assert_eq!(effects.len(), 4);
    studio.apply(Action::DropRead { path: "/v".into(), found: Dropped::Vae });
    assert_eq!(studio.draft().vae, VaeChoice::Path("/v".into()));
    let request = ShotRequest { prompt: "one two three".into(), seed: 5, ..ShotRequest::default() };
    studio.apply(Action::DropRead { path: "p".into(), found: Dropped::Settings(Box::new(request)) });
    assert_eq!((studio.draft().seed, studio.prompt_tokens().tokens), (SeedChoice::Fixed(5), 3));
    studio.apply(Action::DropRead { path: "p".into(), found: Dropped::NoSettings });
    assert_eq!(studio.notices().newest().map(|line| &line.what), Some(&Line::NoSettings));
    studio.apply(Action::DropRead { path: "/m.bin".into(), found: Dropped::Model(info()) });
    assert_eq!(studio.draft().model, Some(ModelChoice::Path("/m.bin".into())));
}

#[test]
fn tokens_are_counted_when_a_text_changes_and_only_then() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let calls = Arc::new(AtomicUsize::new(0));
    let (mut studio, _engine) = ready();
    let counter = calls.clone();
    studio.services.count_tokens = Box::new(move |_, text| {
        counter.fetch_add(1, Ordering::Relaxed);
        TokenCount { tokens: text.len(), chunks: vec![1], limit: TokenCount::LIMIT }
    });
    studio.apply(Action::Set(Setting::Prompt("abc".into())));
    studio.apply(Action::Set(Setting::Prompt("abc".into())));
    studio.apply(Action::Set(Setting::Steps(3)));
    assert_eq!((studio.prompt_tokens().tokens, calls.load(Ordering::Relaxed)), (3, 1));
    studio.apply(Action::Set(Setting::Negative("no".into())));
    assert_eq!((studio.negative_tokens().tokens, calls.load(Ordering::Relaxed)), (2, 2));
    studio.apply(Action::Reset(Field::Prompt));
    assert_eq!((studio.prompt_tokens().tokens, calls.load(Ordering::Relaxed)), (0, 3));
}

#[test]
fn prompts_come_back_from_the_history() {
    let (mut studio, _engine) = ready();
    studio.apply(Action::Generate);
    studio.apply(Action::Set(Setting::Prompt("second".into())));
    studio.apply(Action::Set(Setting::Negative("blur".into())));
    studio.apply(Action::Generate);
    studio.apply(Action::Set(Setting::Prompt("being written".into())));
    studio.apply(Action::HistoryPrevious);
    assert_eq!((studio.draft().prompt.as_str(), studio.draft().negative.as_str()), ("second", "blur"));
    assert_eq!(studio.prompt_tokens().tokens, 1);
    studio.apply(Action::HistoryPrevious);
    assert_eq!((studio.draft().prompt.as_str(), studio.draft().negative.as_str()), ("a portrait", ""));
    studio.apply(Action::HistoryNext);
    studio.apply(Action::HistoryNext);
    assert_eq!(studio.draft().prompt, "being written");
}

#[test]
fn settings_and_seeds_of_a_picture_are_used_again() {
    let (mut studio, engine, job) = running();
    engine.tell(&mut studio, [picture(&job, 0), picture(&job, 1)]);
    let id = studio.shots().newest().unwrap().id;
    studio.apply(Action::ReuseSeed);
    assert_eq!(studio.draft().seed, SeedChoice::Fixed(job.request.seed.wrapping_add(1)));
    studio.apply(Action::RollSeed);
    studio.apply(Action::Set(Setting::Steps(3)));
    studio.apply(Action::UseSeed(id));
    assert_eq!((studio.draft().seed, studio.draft().steps), (SeedChoice::Fixed(job.request.seed.wrapping_add(1)), 3));
    studio.apply(Action::UseSettings(id));
    assert_eq!(studio.draft().steps, 25);
    assert_eq!(studio.apply(Action::CopyParameters(id)), [Effect::CopyText("Steps: 25".into())]);
    assert_eq!(studio.apply(Action::OpenFolder(Some(id))), [Effect::Reveal("/out/1.png".into())]);
    assert_eq!(studio.apply(Action::OpenFolder(None)), [Effect::Reveal("/pictures".into())]);
    studio.apply(Action::Remove(id));
    for action in [Action::CopyPicture(id), Action::SaveAs(id), Action::OpenFolder(Some(id)), Action::UseSettings(id)] {
        assert!(studio.apply(action).is_empty());
    }
}

#[test]
fn cleaning_waits_for_its_report_and_the_gauge_keeps_what_it_hears() {
    let (mut studio, engine, job) = running();
    let reading =
        |at| MemoryReading { at, total: Some(Bytes::gib(8)), free: Some(Bytes::gib(1)), ..MemoryReading::default() };
    engine.readings.put(reading(0.25));
    assert!(studio.poll());
    assert_eq!(studio.forecast(), Some(Forecast::Fits { peak: Bytes::mib(1536), total: Bytes::gib(8) }));
    studio.apply(Action::Set(Setting::Size(Size::nearest(2048, 2048))));
    assert_eq!(studio.forecast(), Some(Forecast::DoesNotFit { largest: None }));
    studio.apply(Action::Clean);
    studio.apply(Action::Clean);
    assert_eq!(engine.commands.try_iter().filter(|c| matches!(c, Command::Clean)).count(), 1);
    assert!(studio.memory().cleaning());
    let low = PauseReason::LowMemory { step: 2, used: 0.93, limit: 0.9, others: None };
    engine.tell(&mut studio, [Event::Paused(job.id, low), Event::Cleaned(Box::default())]);
    engine.readings.put(reading(0.5));
    studio.poll();
    let memory = studio.memory();
    assert!(!memory.cleaning() && memory.last_report().is_some());
    assert_eq!(memory.marks().map(|m| m.kind).collect::<Vec<_>>(), [MarkKind::PausedForMemory, MarkKind::Cleaned]);
    assert_eq!(memory.samples().map(|s| s.stage).collect::<Vec<_>>(), [Stage::Loading, Stage::Paused]);
    studio.apply(Action::SetLimits(MemoryLimits { pause_at: 0.1, ..MemoryLimits::default() }));
    assert!(engine.commands.try_iter().any(|c| matches!(c, Command::Limits(limits) if limits.pause_at == 0.5)));
}

#[test]
fn notices_are_lines_and_the_device_is_known() {
    let (mut studio, engine) = ready();
    engine.tell(&mut studio, [Event::Notice(None, Notice::NoiseModel), Event::Notice(None, Notice::NoiseModel)]);
    assert_eq!(studio.notices().iter().len(), 1, "the same is said once");
    let id = studio.notices().newest().unwrap().id;
    studio.apply(Action::DismissNotice(id));
    let command = Some("pip install x".to_owned());
    let passed_over =
        vec![crate::engine::protocol::PassedOver { device: "CUDA".into(), why: Reason::NoCompiler, command }];
    let status = DeviceStatus {
        choice: DeviceChoice::Cpu,
        name: "CPU".into(),
        total: None,
        precision: Precision::F32,
        passed_over,
    };
    engine.tell(&mut studio, [Event::Device(status.clone())]);
    assert_eq!(studio.device(), Some(&status));
    let install = Hint::Install("pip install x".into());
    assert_eq!(studio.apply(Action::TakeHint(install)), [Effect::CopyText("pip install x".into())]);
    studio.apply(Action::Set(Setting::Device(DeviceChoice::Cpu)));
    studio.apply(Action::Set(Setting::Device(DeviceChoice::Cpu)));
    assert_eq!(engine.commands.try_iter().filter(|c| matches!(c, Command::Probe(_))).count(), 1);
}

#[test]
fn preferences_survive() {
    let (mut studio, _engine) = ready();
    studio.apply(Action::SetLang(Some(Lang::Zh)));
    studio.apply(Action::SetTheme(Theme::Light));
    studio.apply(Action::SetPanels(Panels { left_width: 390.0, ..Panels::default() }));
    studio.apply(Action::Set(Setting::Steps(31)));
    studio.apply(Action::Generate);
    let kept = Preferences::read(&studio.preferences().write());
    assert_eq!(kept, studio.preferences());
    let (again, _engine) = studio_with(kept);
    assert_eq!((again.lang(), again.theme(), again.draft().steps), (Lang::Zh, Theme::Light, 31));
    assert_eq!(again.history().pairs(), studio.history().pairs());
    assert_eq!(again.prompt_tokens().tokens, 2);
    let wild = Preferences { draft: Draft { steps: 0, cfg: f32::NAN, ..Draft::default() }, ..Preferences::default() };
    let (tamed, _engine) = studio_with(wild);
    assert_eq!((tamed.draft().steps, tamed.draft().cfg), (1, 7.0));
}
