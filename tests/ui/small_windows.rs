//! No window size breaks anything, and no word is cut at the size the studio is made for.

use super::accessibility::every_state;
use super::stage::{Stage, Window};
use egui_kittest::kittest::{NodeT, Queryable};
use softbox::base::Lang;

#[test]
fn tiny_and_huge_windows_draw_without_a_panic() {
    for (width, height) in [(300.0, 200.0), (1.0, 1.0), (800.0, 600.0), (500.0, 1200.0), (2560.0, 1440.0)] {
        for (_, stage) in every_state(Lang::Zh) {
            let mut window = Window::open(stage, width, height);
            window.take();
        }
    }
}

#[test]
fn scales_of_fine_screens_draw_without_a_panic() {
    for scale in [1.0, 1.25, 1.5, 2.0] {
        for (_, stage) in every_state(Lang::En) {
            let mut window = Window::open(stage, 1280.0, 800.0);
            window.harness.set_pixels_per_point(scale);
            window.take();
        }
    }
}

#[test]
fn the_strip_and_the_band_fold_in_a_small_window() {
    let large = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    assert!(large.harness.query_by_label("Pictures appear here.").is_some());
    let small = Window::open(Stage::ready(Lang::En), 800.0, 600.0);
    assert!(small.harness.query_by_label("Pictures appear here.").is_none());
    assert!(small.harness.query_by_label_contains("Memory gauge:").is_none());
}

/// Every control lies within the window, and Generate at the foot of the column is among them.
#[test]
fn nothing_sticks_out_at_the_size_it_is_made_for() {
    for lang in Lang::ALL {
        for (width, height) in [(1280.0, 800.0), (800.0, 600.0)] {
            for (state, stage) in every_state(lang) {
                let window = Window::open(stage, width, height);
                let generate = softbox::text::window::GENERATE.get(lang);
                let rect = window.harness.get_by_label(generate).rect();
                let whole = egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(width, height));
                assert!(whole.contains_rect(rect), "{state}: {generate} at {rect:?}");
                for node in window.harness.root().children_recursive() {
                    let role = node.accesskit_node().role();
                    if role != egui::accesskit::Role::Button {
                        continue;
                    }
                    let rect = node.rect();
                    // Below the fold of the column's scroll is fine; beside the window is not.
                    let name = node.accesskit_node().label().unwrap_or_default();
                    assert!(
                        rect.left() >= -0.5 && rect.right() <= width + 0.5,
                        "{state}, {lang:?}: {name} at {rect:?}"
                    );
                }
            }
        }
    }
}

/// At the size the window opens with, no setting goes out of sight when a job starts: the last row stands above the foot.
#[test]
fn the_settings_need_no_scrolling_while_a_job_runs() {
    for lang in Lang::ALL {
        for (state, stage) in every_state(lang).into_iter().filter(|(state, _)| ["running", "paused"].contains(state)) {
            let window = Window::open(stage, 1280.0, 800.0);
            let last = window.harness.get_by_label(softbox::text::window::ADVANCED.get(lang)).rect();
            // A pause shows its buttons on its card too; those of the column are meant.
            let keep = window.harness.query_all_by_label(softbox::text::window::STOP_AND_KEEP.get(lang));
            let foot = keep.map(|node| node.rect()).find(|rect| rect.left() < 344.0).expect("the foot").top();
            // The line that says where the job stands lies between.
            assert!(last.bottom() + 28.0 <= foot, "{state}, {lang:?}: {last:?} and the foot at {foot}");
        }
    }
}
