//! Texts of other tools, and that no request is lost on the way into a picture and back.

use super::*;

fn facts() -> PictureFacts {
    PictureFacts {
        model: Some("realisticVisionV60B1".into()),
        model_hash: Some("e9d3cedc4b".into()),
        vae: Some("vae-ft-mse-840000".into()),
        vae_hash: Some("735e4c3a44".into()),
        version: Some("Softbox 0.1.0".into()),
    }
}

/// A base that differs from every default, so that a value which was not read shows.
fn elsewhere() -> ShotRequest {
    ShotRequest {
        prompt: "x".into(),
        negative: "y".into(),
        steps: 99,
        cfg: 29.0,
        size: Size::nearest(64, 64),
        sampler: SamplerKind::Heun,
        schedule: ScheduleKind::Trailing,
        seed: 12345,
        noise: NoiseSource::Cpu,
        clip_skip: 9,
        count: 77,
    }
}

fn assert_comes_back(request: &ShotRequest, facts: &PictureFacts) {
    let text = write(request, facts);
    let back = read(&text);
    assert_eq!(&back.onto(&elsewhere()), request, "{text}");
    assert_eq!(&back.facts, facts, "{text}");
    assert_eq!(back.rest, [], "{text}");
    assert!(!text.contains('\0'));
}

#[test]
fn the_text_is_what_other_tools_expect() {
    let request = ShotRequest {
        prompt: "portrait, (soft light:1.2)\nfilm".into(),
        negative: "blurry, lowres".into(),
        seed: u64::MAX,
        noise: NoiseSource::Cpu,
        clip_skip: 2,
        cfg: 7.5,
        ..ShotRequest::default()
    };
    let expected = "portrait, (soft light:1.2)\nfilm\nNegative prompt: blurry, lowres\n\
        Steps: 25, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 7.5, Seed: 18446744073709551615, Size: 512x768, \
        Model hash: e9d3cedc4b, Model: realisticVisionV60B1, VAE hash: 735e4c3a44, VAE: vae-ft-mse-840000, Clip skip: 2, \
        RNG: CPU, Version: Softbox 0.1.0";
    assert_eq!(write(&request, &facts()), expected);
    assert_comes_back(&request, &facts());
}

#[test]
fn usual_values_are_left_out_and_come_back() {
    let text = write(&ShotRequest::default(), &PictureFacts::default());
    assert_eq!(text, "Steps: 25, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 7, Seed: 0, Size: 512x768");
    assert_comes_back(&ShotRequest::default(), &PictureFacts::default());
}

#[test]
fn every_sampler_and_schedule_comes_back() {
    for sampler in SamplerKind::ALL {
        for &schedule in sampler.schedules() {
            assert_comes_back(&ShotRequest { sampler, schedule, ..ShotRequest::default() }, &facts());
        }
    }
}

#[test]
fn prompts_that_look_like_the_format_come_back() {
    let nasty = [
        "Negative prompt: not yet",
        "a\nNegative prompt: b\nc",
        "a\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 5, Size: 512x512",
        "Steps: 20, Sampler: Euler",
        "  leading and trailing  ",
        "\n\n",
        "\r\nlines\rof all\n\r kinds\u{2028}\u{85}",
        "nul\0 and \u{1b}[31m",
        "\"quoted\", {json: [1, 2]} \\ \\n",
        "Softbox: \"{}\"",
        "中文，提示词：一个女孩 🙂",
        " ",
        "Negative prompt:",
    ];
    for prompt in nasty {
        for negative in nasty {
            let request = ShotRequest { prompt: prompt.into(), negative: negative.into(), ..ShotRequest::default() };
            assert_comes_back(&request, &facts());
        }
        assert_comes_back(&ShotRequest { negative: prompt.into(), count: 3, ..ShotRequest::default() }, &facts());
    }
}

#[test]
fn any_request_and_any_name_comes_back() {
    let words = [
        "Negative prompt:",
        "Steps: 1",
        ", ",
        ": ",
        "\n",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        "a",
        "Seed",
        " ",
        "é",
        "中",
        "🙂",
        "\r",
        "\t",
        "\0",
        "Softbox: ",
        "\u{a0}",
        "\u{2028}",
        "\u{7f}",
    ];
    let mut state = 11u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for _ in 0..4000 {
        let mut text = |most: u64| {
            let count = draw(most);
            (0..count).map(|_| words[draw(words.len() as u64) as usize]).collect::<String>()
        };
        let (prompt, negative, junk) = (text(9), text(9), text(40));
        let facts = PictureFacts {
            model: Some(text(6)),
            model_hash: Some(text(3)),
            vae: Some(text(6)),
            vae_hash: None,
            version: Some(text(4)),
        };
        let sampler = SamplerKind::ALL[draw(9) as usize];
        let schedule = sampler.schedules()[draw(sampler.schedules().len() as u64) as usize];
        let (least, most) = sampler.step_range(schedule).into_inner();
        let request = ShotRequest {
            prompt,
            negative,
            steps: (least as u64 + draw((most - least + 1) as u64)) as u32,
            cfg: 1.0 + draw(u64::from(u32::MAX)) as f32 / u32::MAX as f32 * 29.0,
            size: Size::nearest(draw(9000) as u32, draw(9000) as u32),
            sampler,
            schedule,
            seed: draw(1 << 31) << 33 | draw(1 << 31) << 2 | draw(4),
            noise: if draw(2) == 0 { NoiseSource::Gpu } else { NoiseSource::Cpu },
            clip_skip: 1 + draw(12) as u32,
            count: 1 + draw(1000) as u32,
        };
        assert_comes_back(&request.check().unwrap(), &facts);
        // Reading never fails, whatever it is given.
        read(&junk).onto(&elsewhere()).check().unwrap();
    }
}

#[test]
fn texts_of_older_and_other_tools_are_read() {
    let older = read(
        "a cat\nNegative prompt: dog\nbird\nSteps: 20, Sampler: DPM++ 2M Karras, CFG scale: 7, Seed: 42, Size: 512x512, \
         Model hash: abc, Denoising strength: 0.7, Hires upscale: 2, Lora hashes: \"a: 1, b: 2\", ENSD: 31337",
    );
    assert_eq!((older.prompt.as_str(), older.negative.as_str()), ("a cat", "dog\nbird"));
    assert_eq!((older.sampler, older.schedule), (Some(SamplerKind::Dpmpp2m), Some(ScheduleKind::Karras)));
    assert_eq!((older.seed, older.clip_skip, older.noise), (Some(42), Some(1), Some(NoiseSource::Gpu)));
    let rest: Vec<_> = older.rest.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let expected =
        [("Denoising strength", "0.7"), ("Hires upscale", "2"), ("Lora hashes", "a: 1, b: 2"), ("ENSD", "31337")];
    assert_eq!(rest, expected);

    let names = [
        ("DPM++ 2M SDE Karras", None, Some((SamplerKind::Dpmpp2mSde, ScheduleKind::Karras))),
        ("DPM++ 2M SDE Exponential", None, Some((SamplerKind::Dpmpp2mSde, ScheduleKind::Exponential))),
        ("DPM++ SDE Karras", None, Some((SamplerKind::DpmppSde, ScheduleKind::Karras))),
        ("Euler a", None, Some((SamplerKind::EulerA, ScheduleKind::Normal))),
        ("k_euler_ancestral", None, Some((SamplerKind::EulerA, ScheduleKind::Normal))),
        ("Euler a", Some("Automatic"), Some((SamplerKind::EulerA, ScheduleKind::Normal))),
        ("DPM++ 2M", Some("Automatic"), Some((SamplerKind::Dpmpp2m, ScheduleKind::Karras))),
        ("DPM++ 2M", Some("Uniform"), Some((SamplerKind::Dpmpp2m, ScheduleKind::Normal))),
        ("DPM++ 2M", Some("SGM Uniform"), Some((SamplerKind::Dpmpp2m, ScheduleKind::SgmUniform))),
        ("DDIM", None, Some((SamplerKind::Ddim, ScheduleKind::Normal))),
        ("Restart", None, None),
    ];
    for (sampler, schedule, expected) in names {
        let schedule = schedule.map(|s| format!("Schedule type: {s}, ")).unwrap_or_default();
        let back = read(&format!("Steps: 20, Sampler: {sampler}, {schedule}CFG scale: 7"));
        assert_eq!(back.sampler.zip(back.schedule), expected, "{sampler} {schedule}");
        assert_eq!(back.rest.len(), usize::from(expected.is_none()), "{sampler} {schedule}");
    }
}

#[test]
fn values_that_do_not_hold_are_left_over() {
    let back = read(
        "Steps: 0, Sampler: DDIM, Schedule type: Karras, CFG scale: 99, Seed: -1, Size: 500x500, Clip skip: 40, RNG: dice",
    );
    let keys: Vec<_> = back.rest.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["Steps", "CFG scale", "Seed", "Size", "Clip skip", "RNG", "Schedule type"]);
    assert_eq!(back.schedule, Some(ScheduleKind::Normal));
    assert!(back.onto(&ShotRequest::default()).check().is_ok());
    for text in ["Steps: 60, Sampler: LCM, CFG scale: 1", "Steps: 1, Sampler: DDIM, CFG scale: 7"] {
        let request = read(text).onto(&ShotRequest::default()).check().unwrap();
        assert_ne!(request.schedule, ScheduleKind::Normal, "{text}");
    }
}

#[test]
fn without_settings_all_is_prompt() {
    for text in ["", "just words, and: more", "Steps: 1, Seed: 2"] {
        let back = read(text);
        assert_eq!((back.prompt.as_str(), back.steps, back.noise), (text, None, None));
    }
    let resources = read(
        "a\nSteps: 9, Seed: 1, Size: 64x64, Civitai resources: [{\"name\":\"Seed: 7, x\",\"weight\":1}], Clip skip: 2",
    );
    assert_eq!((resources.seed, resources.clip_skip, resources.rest.len()), (Some(1), Some(2), 1));
}
