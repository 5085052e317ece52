//! Every control has a name, in every state and both languages, and the keyboard reaches what the pointer does.

use super::stage::{Stage, Window, reading};
use egui_kittest::kittest::{NodeT, Queryable};
use softbox::base::{Bytes, JobError, Lang, Problem, Size};
use softbox::studio::{Action, Panels};

/// One window for each state a person can meet.
pub fn every_state(lang: Lang) -> Vec<(&'static str, Stage)> {
    let mut running = Stage::ready(lang);
    let id = running.start();
    running.read(reading(1.0, 2000, 900));
    running.step(id, 12, 25);

    let mut paused = Stage::ready(lang);
    let id = paused.start();
    paused.step(id, 12, 25);
    paused.pause_for_memory(id, 12);

    let mut finished = Stage::ready(lang);
    let id = finished.start();
    finished.step(id, 25, 25);
    finished.finish(id, 7, true);
    let id = finished.start();
    finished.finish(id, 8, false);

    let mut failed = Stage::ready(lang);
    let id = failed.start();
    let fits = Some(Size::nearest(832, 1216));
    let problem = Problem::DoesNotFit { need: Bytes::gib(11), have: Bytes::gib(8), limit: Bytes::gib(7), fits };
    failed.fail(id, JobError::new(problem, "2048×2048, f16"));

    let mut closing = Stage::ready(lang);
    let id = closing.start();
    closing.finish(id, 8, false);
    closing.studio.apply(Action::Close);

    let mut advanced = Stage::ready(lang);
    advanced.studio.apply(Action::SetPanels(Panels { advanced_open: true, ..Panels::default() }));

    vec![
        ("no checkpoint", Stage::bare(lang)),
        ("first start", Stage::pocket(lang)),
        ("ready", Stage::ready(lang)),
        ("running", running),
        ("paused", paused),
        ("finished", finished),
        ("failed", failed),
        ("closing", closing),
        ("advanced", advanced),
    ]
}

#[test]
fn no_control_is_nameless() {
    for lang in Lang::ALL {
        for (state, stage) in every_state(lang) {
            let window = Window::open(stage, 1280.0, 800.0);
            let nameless = window.harness.unnamed_widgets();
            assert!(nameless.is_empty(), "{state}, {lang:?}: {nameless:#?}");
        }
    }
}

#[test]
fn menus_have_no_nameless_control_either() {
    for name in
        ["Checkpoint: portrait_v5", "VAE: VAE · Automatic", "Device: NVIDIA RTX 3060 (CUDA)", "Language", "Theme"]
    {
        let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
        let before = window.harness.root().children_recursive().count();
        window.harness.get_by_label(name).click();
        window.take();
        let after = window.harness.root().children_recursive().count();
        assert!(after > before, "{name} opens");
        let nameless = window.harness.unnamed_widgets();
        assert!(nameless.is_empty(), "{name}: {nameless:#?}");
    }
}

#[test]
fn no_sentence_of_the_other_language_is_left() {
    // Names and units may be Latin in a Chinese window; the reverse is a mistake.
    for (state, stage) in every_state(Lang::En) {
        let window = Window::open(stage, 1280.0, 800.0);
        for node in window.harness.root().children_recursive() {
            let said = node.accesskit_node().label().unwrap_or_default();
            assert!(!said.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c)), "{state}: {said}");
        }
    }
}

#[test]
fn the_tab_key_walks_every_line_as_one_reads() {
    for lang in Lang::ALL {
        let mut window = Window::open(Stage::ready(lang), 1280.0, 800.0);
        let mut places: Vec<(String, egui::Rect)> = Vec::new();
        for _ in 0..60 {
            window.harness.key_press(egui::Key::Tab);
            window.take();
            let Some(node) = window.harness.root().children_recursive().find(|node| node.is_focused()) else {
                continue;
            };
            let name = node.accesskit_node().label().unwrap_or_default();
            places.push((name, node.rect()));
        }
        assert!(places.len() > 30, "the focus moves: {places:?}");
        let mut in_line = 0;
        for pair in places.windows(2) {
            let [(from, a), (to, b)] = pair else { continue };
            // Neighbours on one line; a jump across the window is another panel.
            let one_line = (a.center().y - b.center().y).abs() < 6.0 && (a.center().x - b.center().x).abs() < 320.0;
            if one_line && from != to {
                in_line += 1;
                assert!(a.left() < b.left(), "{lang:?}: from {from} at {a:?} back to {to} at {b:?}");
            }
        }
        assert!(in_line > 10, "{places:?}");
    }
}

#[test]
fn the_tab_key_reaches_generate_and_enter_presses_it() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    let mut reached = false;
    for _ in 0..80 {
        window.harness.key_press(egui::Key::Tab);
        window.take();
        if window.harness.get_by_label("Generate").is_focused() {
            reached = true;
            break;
        }
    }
    assert!(reached, "Generate gets the focus");
    window.harness.key_press(egui::Key::Enter);
    assert!(window.take().contains(&Action::Generate));
}
