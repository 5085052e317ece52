//! Every state shows the right words and the right buttons, in both languages.

use super::accessibility::every_state;
use super::stage::{Stage, Window, reading};
use egui_kittest::kittest::{NodeT, Queryable};
use softbox::base::{JobError, Lang, MemoryReading, Notice, Problem, Reason};
use softbox::engine::protocol::Event;
use softbox::studio::Action;

/// Everything that is said in the window.
fn said(window: &Window<'_>) -> Vec<String> {
    let nodes = window.harness.root().children_recursive();
    nodes
        .flat_map(|node| {
            let node = node.accesskit_node();
            [node.label(), node.value()]
        })
        .flatten()
        .collect()
}

fn shows(window: &Window<'_>, words: &str) -> bool {
    said(window).iter().any(|said| said.contains(words))
}

#[test]
fn each_state_says_what_it_is_and_what_can_be_done() {
    let expected: [(&str, [&[&str]; 2]); 6] = [
        (
            "no checkpoint",
            [
                &["No checkpoint yet", "Open a checkpoint", "Looking for a device…", "Generate"],
                &["还没有模型", "打开模型", "正在寻找设备…", "生成"],
            ],
        ),
        (
            "ready",
            [
                &["Ready", "portrait_v5", "NVIDIA RTX 3060 (CUDA)", "Negative prompt", "Pictures appear here."],
                &["准备就绪", "portrait_v5", "NVIDIA RTX 3060 (CUDA)", "反向提示词", "完成的图片会出现在这里。"],
            ],
        ),
        (
            "running",
            [
                &[
                    "Step 12 of 25",
                    "6.8 it/s",
                    "about 2 s left",
                    "Pause",
                    "Stop and keep",
                    "Cancel",
                    "Preview of step 12",
                ],
                &["第 12 步，共 25 步", "6.8 it/s", "剩余 约 2 秒", "暂停", "停止并保留", "取消", "第 12 步预览"],
            ],
        ),
        (
            "paused",
            [
                &[
                    "Paused at step 12: the card is 93 % full. Another program holds 5.1 GiB.",
                    "Resume anyway",
                    "Clean memory",
                    "well below 90 %",
                ],
                &["已在第 12 步暂停：显存已用 93%。另一程序占用 5.1 GiB。", "仍然继续", "清理显存", "明显低于 90%"],
            ],
        ),
        (
            "finished",
            [
                &["Picture with seed 7", "Picture with seed 8", "Seed 8, 6.2 s", "Not saved", "Done: 1 picture in"],
                &["种子 7 的图片", "种子 8 的图片", "用时 6.2 秒", "未保存", "完成：1 张图片"],
            ],
        ),
        ("failed", [&["832×1216", "Details", "Dismiss"], &["832×1216", "详细信息", "关闭"]]),
    ];
    for (index, lang) in Lang::ALL.into_iter().enumerate() {
        for (state, stage) in every_state(lang) {
            let Some((_, words)) = expected.iter().find(|(name, _)| *name == state) else { continue };
            let window = Window::open(stage, 1280.0, 800.0);
            for words in words[index] {
                assert!(shows(&window, words), "{state}, {lang:?}: \"{words}\" is missing in {:#?}", said(&window));
            }
        }
    }
}

#[test]
fn idle_shows_no_job_buttons_and_a_job_no_empty_canvas() {
    let idle = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    for name in ["Pause", "Resume", "Stop and keep", "Cancel"] {
        assert!(idle.harness.query_by_label(name).is_none(), "{name}");
    }
    let mut stage = Stage::ready(Lang::En);
    let id = stage.start();
    stage.step(id, 1, 25);
    let running = Window::open(stage, 1280.0, 800.0);
    assert!(!shows(&running, "Write a prompt and press Generate."));
}

#[test]
fn a_wish_is_said_until_the_engine_confirms_it() {
    let mut stage = Stage::ready(Lang::En);
    let id = stage.start();
    stage.step(id, 3, 25);
    stage.studio.apply(Action::Pause);
    let mut window = Window::open(stage, 1280.0, 800.0);
    assert!(shows(&window, "Pausing after this step…"));
    window.harness.state_mut().0.studio.apply(Action::Cancel);
    window.harness.run_ok();
    assert!(shows(&window, "Cancelling…"));
    assert!(window.harness.get_by_label("Cancel").accesskit_node().is_disabled());
    window.harness.state_mut().0.tell(Event::Cancelled(id));
    window.harness.run_ok();
    assert!(window.harness.query_by_label("Cancel").is_none());
}

#[test]
fn the_gauge_names_every_part_and_never_says_zero_for_unknown() {
    let mut stage = Stage::ready(Lang::En);
    stage.read(reading(1.0, 3174, 900));
    let window = Window::open(stage, 1280.0, 800.0);
    for words in [
        "In use",
        "3.1 GiB",
        "Kept in our pool",
        "430 MiB",
        "Driver context",
        "Other programs",
        "Free",
        "Limit",
        "7.2 GiB",
    ] {
        assert!(shows(&window, words), "{words}");
    }
    let mut stage = Stage::ready(Lang::En);
    stage.read(MemoryReading { at: 1.0, ..MemoryReading::default() });
    let window = Window::open(stage, 1280.0, 800.0);
    assert!(shows(&window, "Unknown") && !shows(&window, "0 B"), "{:#?}", said(&window));
}

#[test]
fn notices_are_dismissed_one_by_one() {
    let mut stage = Stage::ready(Lang::En);
    stage.tell(Event::Notice(None, Notice::NoiseModel));
    stage.tell(Event::Notice(None, Notice::PromptComposition));
    let mut window = Window::open(stage, 1280.0, 800.0);
    assert!(shows(&window, "random weights") && shows(&window, "AND between prompts"));
    let first = window.harness.get_all_by_label("Dismiss").next().expect("a button for each");
    first.click();
    let taken = window.take();
    assert!(matches!(taken.as_slice(), [Action::DismissNotice(_)]), "{taken:?}");
    assert_eq!(window.harness.get_all_by_label("Dismiss").count(), 1);
}

#[test]
fn a_confirmation_goes_by_itself_and_what_one_should_read_stays() {
    let mut stage = Stage::ready(Lang::En);
    stage.tell(Event::Notice(None, Notice::NoiseModel));
    stage.studio.apply(Action::CopyDone(Ok(())));
    let mut window = Window::open(stage, 1280.0, 800.0);
    assert!(shows(&window, "Copied."));
    // At fifty passes a second: nine seconds.
    window.harness.run_steps(450);
    assert!(matches!(window.take().as_slice(), [Action::DismissNotice(_)]));
    assert!(!shows(&window, "Copied.") && shows(&window, "random weights"));
}

#[test]
fn every_problem_fits_its_card() {
    let path = std::path::PathBuf::from("/models/a-rather-long-name-of-a-checkpoint-with-many-words.safetensors");
    for lang in Lang::ALL {
        for problem in [
            Problem::NoModel,
            Problem::WrongKind { path: path.clone(), kind: "SDXL checkpoint".into() },
            Problem::NotSaved { folder: path.clone(), why: Reason::DiskFull(path.clone()) },
            Problem::PictureNotFinite,
        ] {
            let headline = softbox::text::problems::headline(lang, &problem);
            let mut stage = Stage::ready(lang);
            let id = stage.start();
            stage.fail(id, JobError::new(problem, "details"));
            let window = Window::open(stage, 1280.0, 800.0);
            let card = window.harness.get_by_label(&headline).rect();
            assert!(card.left() > 320.0 && card.right() < 1280.0 - 168.0, "{headline}: {card:?}");
        }
    }
}
