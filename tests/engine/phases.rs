//! What a job tells from its first sign of life to its last, and what it leaves.

use super::stage::{Stage, data, request, setup};
use softbox::base::parameters;
use softbox::base::problem::Phase;
use softbox::base::{ImageFormat, OutputPlan, SamplerKind, ScheduleKind, ShotRequest, Size};
use softbox::engine::metadata::read_parameters;
use softbox::engine::protocol::{Command, Event};
use softbox::studio::job::JobState;
use std::time::Duration;

fn pictures(folder: &std::path::Path) -> OutputPlan {
    OutputPlan::Folder { folder: folder.to_owned(), pattern: "[seed]".to_owned(), format: ImageFormat::Png }
}

#[test]
fn a_job_walks_its_phases_in_order_and_counts_its_steps() {
    let mut stage = Stage::new();
    let told = stage.picture(request());
    assert_eq!(told.state, JobState::Done);
    let step = |step| Phase::Denoising { step, of: 4 };
    let wanted = [
        Phase::Loading,
        Phase::Encoding,
        Phase::Loading,
        step(0),
        step(1),
        step(2),
        step(3),
        Phase::Loading,
        Phase::Decoding,
        Phase::Saving,
    ];
    assert_eq!(told.phases, wanted);
    let counted: Vec<(u32, u32)> = told.progress.iter().map(|p| (p.step, p.steps)).collect();
    assert_eq!(counted, [(1, 4), (2, 4), (3, 4), (4, 4)]);
    assert!(told.progress.iter().all(|p| p.steps_per_second.is_some_and(|pace| pace > 0.0) && p.left.is_some()));
    for progress in &told.progress {
        // Until a picture was decoded, decoding counts as two steps.
        let steps_left = progress.left.unwrap().as_secs_f64() * progress.steps_per_second.unwrap();
        assert!((steps_left - f64::from(4 - progress.step + 2)).abs() < 0.01, "{progress:?}");
    }

    let summary = told.summary.as_ref().unwrap();
    assert_eq!((summary.images, summary.seconds.steps.len()), (1, 4));
    assert_eq!((summary.latent_shape, told.latent().len()), ([4, 8, 8], 4 * 8 * 8));
    assert_eq!((summary.seconds.paused.to_bits(), summary.pauses.len()), (0, 0), "0 and not -0");
    let shot = &told.shots[0];
    assert_eq!((shot.file.as_ref(), shot.save_error.as_ref()), (None, None), "Keep writes nothing");
    assert_eq!((shot.image.width(), shot.image.height()), (64, 64));
    let (least, most) = (shot.image.pixels().iter().min(), shot.image.pixels().iter().max());
    assert!(least < most, "a picture is not one colour");

    // What is loaded and encoded is loaded and encoded once.
    let again = stage.picture(request());
    let wanted = [Phase::Loading, step(0), step(1), step(2), step(3), Phase::Decoding, Phase::Saving];
    assert_eq!(again.phases, wanted);
    assert_eq!(again.pixels(), told.pixels(), "the same seed gives the same pixels");
    let other = stage.picture(ShotRequest { seed: 8, ..request() });
    assert_ne!(other.pixels(), told.pixels());
    let other = stage.picture(ShotRequest { prompt: "a dog".to_owned(), ..request() });
    assert_ne!(other.pixels(), told.pixels());
}

#[test]
fn a_saved_picture_carries_the_request_it_was_made_from() {
    let mut stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let request = ShotRequest { prompt: "猫, (soft light:1.2): \"x\"".to_owned(), clip_skip: 2, ..request() };
    let mut job = stage.job(ShotRequest { count: 2, ..request.clone() });
    job.output = pictures(folder.path());
    let told = stage.run(job);
    for (index, shot) in told.shots.iter().enumerate() {
        let file = shot.file.as_ref().expect("saved");
        assert_eq!(file, &folder.path().join(format!("{}.png", request.seed + index as u64)));
        let text = read_parameters(file).unwrap().unwrap();
        assert_eq!(text, shot.parameters);
        assert_eq!(shot.request, request.single(index as u32));
        assert_eq!(parameters::read(&text).onto(&ShotRequest::default()), shot.request);
        assert_eq!(image::open(file).unwrap().into_rgb8().as_raw(), shot.image.pixels());
    }
    assert_eq!((told.shots.len(), std::fs::read_dir(folder.path()).unwrap().count()), (2, 2));
}

#[test]
fn picture_k_of_a_batch_is_the_picture_of_seed_plus_k() {
    let mut stage = Stage::new();
    // Ancestral noise goes on drawing from the generator of the first latent.
    let batch = ShotRequest { count: 3, sampler: SamplerKind::EulerA, ..request() };
    let told = stage.picture(batch.clone());
    assert_eq!(told.progress.len(), 12);
    assert!(told.progress.windows(2).all(|pair| (pair[0].image, pair[0].step) < (pair[1].image, pair[1].step)));
    for index in 0..3u32 {
        let alone = stage.picture(ShotRequest { seed: 7 + u64::from(index), count: 1, ..batch.clone() });
        let index = index as usize;
        assert_eq!(alone.pixels(), told.shots[index].image.pixels(), "picture {index}");
        assert_eq!(alone.latent(), told.summary.as_ref().unwrap().latents[index], "latent {index}");
    }
}

#[test]
fn previews_come_at_most_five_times_a_second_and_show_the_latent() {
    let mut stage = Stage::new();
    let job = stage.job(ShotRequest { steps: 60, ..request() });
    let previews = stage.engine.previews.clone();
    let (sender, seen) = std::sync::mpsc::channel();
    let started = std::time::Instant::now();
    let told = stage.run_acting(job, move |_, _| {
        if let Some(preview) = previews.take() {
            sender.send(preview).unwrap();
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let previews: Vec<_> = seen.try_iter().chain(stage.engine.previews.take()).collect();
    assert!(told.summary.is_some() && !previews.is_empty());
    assert!(previews.len() as f64 <= seconds * 5.0 + 1.0, "{} in {seconds:.2} s", previews.len());
    assert!(previews.iter().all(|p| (p.image.width(), p.image.height()) == (8, 8) && p.step >= 1));
}

#[test]
fn every_sampler_makes_a_picture_and_a_cfg_of_one_takes_a_single_pass() {
    let mut stage = Stage::new();
    for sampler in SamplerKind::ALL {
        let schedule = sampler.default_schedule();
        let told = stage.picture(ShotRequest { sampler, schedule, ..request() });
        assert!(told.latent().iter().all(|value| value.is_finite()), "{sampler:?}");
        assert!(told.progress.windows(2).all(|pair| pair[0].step < pair[1].step), "{sampler:?}");
    }
    let negative = |negative: &str, cfg| ShotRequest { negative: negative.to_owned(), cfg, ..request() };
    let one = stage.picture(negative("x", 1.0));
    assert_eq!(one.pixels(), stage.picture(negative("another", 1.0)).pixels());
    assert_ne!(one.pixels(), stage.picture(negative("x", 2.0)).pixels());
}

#[test]
fn other_models_sizes_and_single_files_go_the_same_way() {
    let mut stage = Stage::new();
    for (model, sides) in [("tiny-b", (72, 64)), ("tiny-single.safetensors", (64, 88)), ("tiny-a", (72, 104))] {
        let mut job = stage.job(ShotRequest { size: Size::new(sides.0, sides.1).unwrap(), ..request() });
        job.setup = setup(data(model));
        let told = stage.run(job);
        let image = &told.shots[0].image;
        assert_eq!((image.width() as u32, image.height() as u32), sides, "{model}");
    }
    let (sampler, schedule) = (SamplerKind::Ddim, ScheduleKind::Karras);
    let told = {
        let job = stage.job(ShotRequest { sampler, schedule, ..request() });
        stage.run(job)
    };
    assert!(told.phases.iter().all(|phase| *phase == Phase::Loading), "refused before anything is loaded");
    assert!(told.error().hints.is_empty());
}

#[test]
fn jobs_sent_at_once_are_made_one_after_another() {
    let mut stage = Stage::new();
    let jobs: Vec<_> = (0..3).map(|k| stage.job(ShotRequest { seed: k, ..request() })).collect();
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let dropped = jobs[1].control.clone();
    for job in jobs {
        stage.send(Command::Run(Box::new(job)));
    }
    dropped.cancel();
    let mut ends = Vec::new();
    while ends.len() < 3 {
        match stage.engine.events.recv_timeout(Duration::from_secs(60)).unwrap() {
            Event::Done(id, _) => ends.push((id, true)),
            Event::Cancelled(id) => ends.push((id, false)),
            Event::Started(id) => assert_eq!(id, ids[ends.len()], "one at a time, in their order"),
            other => assert!(!matches!(other, Event::Failed(..)), "{other:?}"),
        }
    }
    assert_eq!(ends, [(ids[0], true), (ids[1], false), (ids[2], true)]);
}
