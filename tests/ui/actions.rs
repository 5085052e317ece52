//! Press by name, and the action that was meant comes out.

use super::stage::{Stage, Window, reading};
use egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT, Queryable};
use softbox::base::{Hint, JobError, Lang, ModelChoice, Precision, Problem, Reason, SamplerKind, Size};
use softbox::studio::{Action, Canvas, Panels, SeedChoice, Setting, Theme};

fn pressed(stage: Stage, name: &str) -> Vec<Action> {
    let mut window = Window::open(stage, 1280.0, 800.0);
    window.harness.get_by_label(name).click();
    window.take()
}

fn running() -> Stage {
    let mut stage = Stage::ready(Lang::En);
    let id = stage.start();
    stage.step(id, 3, 25);
    stage
}

fn paused_for_memory() -> Stage {
    let mut stage = Stage::ready(Lang::En);
    let id = stage.start();
    stage.step(id, 12, 25);
    stage.pause_for_memory(id, 12);
    stage
}

fn with_shots() -> Stage {
    let mut stage = Stage::ready(Lang::En);
    for seed in [41, 42] {
        let id = stage.start();
        stage.finish(id, seed, true);
    }
    stage
}

fn newest(stage: &Stage) -> softbox::studio::ShotId {
    stage.studio.shots().newest().expect("a picture").id
}

#[test]
fn the_foot_of_the_column() {
    assert_eq!(pressed(Stage::ready(Lang::En), "Generate"), [Action::Generate]);
    for (name, action) in [
        ("Pause", Action::Pause),
        ("Stop and keep", Action::StopAndKeep),
        ("Cancel", Action::Cancel),
        ("Generate", Action::Generate),
    ] {
        assert_eq!(pressed(running(), name), [action], "{name}");
    }
}

#[test]
fn generate_waits_for_a_checkpoint() {
    let mut window = Window::open(Stage::bare(Lang::En), 1280.0, 800.0);
    assert!(window.harness.get_by_label("Generate").accesskit_node().is_disabled());
    window.harness.get_by_label("Generate").click();
    assert_eq!(window.take(), []);
}

#[test]
fn a_pause_offers_what_can_be_done() {
    assert_eq!(pressed(paused_for_memory(), "Resume anyway"), [Action::Resume]);
    let mut window = Window::open(paused_for_memory(), 1280.0, 800.0);
    // In the bar at the top and on the card.
    let cleans: Vec<_> = window.harness.get_all_by_label("Clean memory").collect();
    assert_eq!(cleans.len(), 2);
    cleans.into_iter().for_each(|button| button.click());
    let taken = window.take();
    assert!(!taken.is_empty() && taken.iter().all(|action| *action == Action::Clean));
}

#[test]
fn the_empty_canvas_opens_a_checkpoint() {
    assert_eq!(pressed(Stage::bare(Lang::En), "Open a checkpoint"), [Action::OpenModelFile]);
    assert_eq!(pressed(Stage::bare(Lang::En), "Open a diffusers folder…"), [Action::OpenModelFolder]);
}

#[test]
fn choices_of_the_column() {
    let size = Size::nearest(768, 512);
    for (name, action) in [
        ("768×512", Action::Set(Setting::Size(size))),
        ("Swap width and height", Action::SwapSize),
        ("A new seed for every picture", Action::RollSeed),
        ("Generate forever", Action::Set(Setting::Forever(true))),
        ("Advanced", Action::SetPanels(Panels { advanced_open: true, ..Panels::default() })),
    ] {
        assert_eq!(pressed(Stage::ready(Lang::En), name), [action], "{name}");
    }
    assert_eq!(pressed(with_shots(), "Use the newest picture's seed again"), [Action::ReuseSeed]);
}

#[test]
fn a_sampler_is_chosen_from_its_list() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    window.harness.get_by_role_and_label(egui::accesskit::Role::ComboBox, "Sampler").click();
    window.take();
    window.harness.get_by_label("Euler a").click();
    assert_eq!(window.take(), [Action::Set(Setting::Sampler(SamplerKind::EulerA))]);
}

#[test]
fn a_schedule_that_does_not_go_with_the_sampler_cannot_be_pressed() {
    let mut stage = Stage::ready(Lang::En);
    stage.studio.apply(Action::Set(Setting::Sampler(SamplerKind::Ddim)));
    let mut window = Window::open(stage, 1280.0, 800.0);
    window.harness.get_by_role_and_label(egui::accesskit::Role::ComboBox, "Schedule").click();
    window.take();
    window.harness.get_by_label("Karras").click();
    assert_eq!(window.take(), []);
}

#[test]
fn the_bar_at_the_top() {
    let open = |menu: &str, item: &str| {
        let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
        window.harness.get_by_label(menu).click();
        window.take();
        window.harness.get_by_label(item).click();
        window.take()
    };
    let checkpoint = "Checkpoint: portrait_v5";
    assert_eq!(open(checkpoint, "Open a checkpoint file…"), [Action::OpenModelFile]);
    assert_eq!(open(checkpoint, "Open a diffusers folder…"), [Action::OpenModelFolder]);
    let random = open(checkpoint, "Random weights (noise, for tests)");
    assert_eq!(random, [Action::ModelChosen(ModelChoice::RandomSd15)]);
    assert_eq!(open("VAE: VAE · Automatic", "Choose a VAE file…"), [Action::ChooseVae]);
    let device = "Device: NVIDIA RTX 3060 (CUDA)";
    assert_eq!(open(device, "CPU"), [Action::Set(Setting::Device(softbox::base::DeviceChoice::Cpu))]);
    assert_eq!(open(device, "f32"), [Action::Set(Setting::Precision(Precision::F32))]);
    assert_eq!(open("Language", "简体中文"), [Action::SetLang(Some(Lang::Zh))]);
    assert_eq!(open("Theme", "Light"), [Action::SetTheme(Theme::Light)]);
    let panels = Panels { strip_open: false, ..Panels::default() };
    assert_eq!(
        pressed(Stage::ready(Lang::En), "Memory gauge"),
        [Action::SetPanels(Panels { band_open: false, ..Panels::default() })]
    );
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    window.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Finished pictures").click();
    assert_eq!(window.take(), [Action::SetPanels(panels)]);
    assert_eq!(pressed(Stage::ready(Lang::En), "Clean memory"), [Action::Clean]);
}

#[test]
fn a_finished_picture() {
    for (name, action) in [
        ("Save as…", Action::SaveAs as fn(_) -> _),
        ("Copy picture", Action::CopyPicture as fn(_) -> _),
        ("Use this seed", Action::UseSeed as fn(_) -> _),
        ("Use these settings", Action::UseSettings as fn(_) -> _),
    ] {
        let stage = with_shots();
        let id = newest(&stage);
        assert_eq!(pressed(stage, name), [action(id)], "{name}");
    }
    let stage = with_shots();
    let id = newest(&stage);
    assert_eq!(pressed(stage, "Open folder"), [Action::OpenFolder(Some(id))]);
}

#[test]
fn the_strip_selects_what_is_pressed() {
    let stage = with_shots();
    let older = stage.studio.shots().iter().last().expect("two").id;
    let mut window = Window::open(stage, 1280.0, 800.0);
    window.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Picture with seed 41").click();
    assert_eq!(window.take(), [Action::Select(Some(older))]);
    let Canvas::Shot(shown) = window.harness.state().0.studio.canvas() else { panic!("no picture") };
    assert_eq!(shown.id, older);
}

#[test]
fn an_error_has_its_next_step_as_a_button() {
    let mut stage = Stage::ready(Lang::En);
    let id = stage.start();
    let problem = Problem::NoVae { path: "/models/portrait_noVAE.safetensors".into() };
    stage.fail(id, JobError::new(problem, "no first_stage_model.* tensors"));
    let hint = softbox::text::problems::hint(Lang::En, &Hint::ChooseVae);
    assert_eq!(pressed(stage, &hint), [Action::TakeHint(Hint::ChooseVae)]);
}

#[test]
fn details_unfold_without_an_action() {
    let mut stage = Stage::ready(Lang::En);
    let id = stage.start();
    stage.fail(id, JobError::new(Problem::Internal("x".into()), "tensor to_q has shape [1, 2]"));
    let mut window = Window::open(stage, 1280.0, 800.0);
    assert!(window.harness.query_by_label("tensor to_q has shape [1, 2]").is_none());
    window.harness.get_by_label("Details").click();
    assert_eq!(window.take(), []);
    assert!(window.harness.query_by_label("tensor to_q has shape [1, 2]").is_some());
    window.harness.get_by_label("Dismiss").click();
    assert_eq!(window.take(), [Action::DismissTrouble]);
}

#[test]
fn closing_with_unsaved_pictures_asks() {
    let closing = || {
        let mut stage = Stage::ready(Lang::En);
        let id = stage.start();
        stage.finish(id, 5, false);
        stage.studio.apply(Action::Close);
        stage
    };
    assert_eq!(pressed(closing(), "Keep open"), [Action::KeepOpen]);
    assert_eq!(pressed(closing(), "Close anyway"), [Action::CloseAnyway]);
}

#[test]
fn keys_work_anywhere() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::Enter);
    assert_eq!(window.take(), [Action::Generate]);

    let mut window = Window::open(running(), 1280.0, 800.0);
    window.harness.key_press(Key::Escape);
    assert_eq!(window.take(), [Action::Cancel]);

    let stage = with_shots();
    let id = newest(&stage);
    let mut window = Window::open(stage, 1280.0, 800.0);
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    assert_eq!(window.take(), [Action::SaveAs(id)]);
}

#[test]
fn typing_in_the_prompt_sets_it_and_ctrl_up_weighs_the_word() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    let prompt = || egui_kittest::kittest::by().label("Prompt").role(egui::accesskit::Role::MultilineTextInput);
    window.harness.get(prompt()).focus();
    window.take();
    window.harness.get(prompt()).type_text("portrait");
    window.take();
    assert_eq!(window.harness.state().0.studio.draft().prompt, "portrait");
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::ArrowUp);
    window.take();
    assert_eq!(window.harness.state().0.studio.draft().prompt, "(portrait:1.1)");
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::ArrowDown);
    window.take();
    assert_eq!(window.harness.state().0.studio.draft().prompt, "portrait");
}

#[test]
fn ctrl_z_takes_back_a_weight_and_a_prompt_from_the_history() {
    let mut stage = Stage::ready(Lang::En);
    for prompt in ["an older prompt", "hat"] {
        stage.studio.apply(Action::Set(Setting::Prompt(prompt.into())));
        stage.studio.apply(Action::Generate);
    }
    let mut window = Window::open(stage, 1280.0, 800.0);
    let prompt = |window: &Window<'_>| window.harness.state().0.studio.draft().prompt.clone();
    let undo_until = |window: &mut Window<'_>, wanted: &str| {
        // A step may only move the cursor, as egui's own do.
        for _ in 0..3 {
            window.harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
            window.take();
            if prompt(window) == wanted {
                return;
            }
        }
        panic!("{wanted} does not come back: {}", prompt(window));
    };
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::ArrowUp);
    window.take();
    assert_eq!(prompt(&window), "(hat:1.1)");
    undo_until(&mut window, "hat");
    window.harness.get_by_label("Previous prompt").click();
    window.take();
    assert_eq!(prompt(&window), "an older prompt");
    let field = || egui_kittest::kittest::by().label("Prompt").role(egui::accesskit::Role::MultilineTextInput);
    window.harness.get(field()).focus();
    window.take();
    undo_until(&mut window, "hat");
}

#[test]
fn what_was_typed_before_ctrl_enter_is_generated() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    window.harness.run_ok();
    let enter = |pressed| egui::Event::Key {
        key: Key::Enter,
        physical_key: None,
        pressed,
        repeat: false,
        modifiers: Modifiers::COMMAND,
    };
    // All in one pass, as on a slow machine. The prompt has the focus from the start.
    window.harness.input_mut().events.extend([egui::Event::Text("hat".into()), enter(true), enter(false)]);
    assert_eq!(window.take(), [Action::Set(Setting::Prompt("hat".into())), Action::Generate]);
}

#[test]
fn the_seed_field_takes_all_sixty_four_bits_and_nothing_else() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    let seed = || egui_kittest::kittest::by().label("Seed").role(egui::accesskit::Role::TextInput);
    for (typed, meant) in
        [("18446744073709551615", SeedChoice::Fixed(u64::MAX)), ("-1", SeedChoice::Random), ("7", SeedChoice::Fixed(7))]
    {
        window.harness.get(seed()).focus();
        window.take();
        window.harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
        window.harness.get(seed()).type_text(typed);
        window.take();
        assert_eq!(window.harness.state().0.studio.draft().seed, meant, "{typed}");
    }
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.harness.get(seed()).type_text("seven");
    window.take();
    assert_eq!(window.harness.state().0.studio.draft().seed, SeedChoice::Fixed(7));
}

#[test]
fn a_double_click_on_a_label_resets_its_value() {
    let mut stage = Stage::ready(Lang::En);
    stage.studio.apply(Action::Set(Setting::Steps(60)));
    let mut window = Window::open(stage, 1280.0, 800.0);
    let at = window.harness.get_by_role_and_label(egui::accesskit::Role::Label, "Steps").rect().center();
    for _ in 0..2 {
        window.harness.drag_at(at);
        window.harness.drop_at(at);
    }
    assert!(window.take().contains(&Action::Reset(softbox::studio::Field::Steps)));
}

#[derive(Debug)]
struct Dropped(std::path::PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &std::path::Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("the window reads no files".into())
    }
}

#[test]
fn dropped_files_are_handed_on() {
    let mut window = Window::open(Stage::ready(Lang::En), 1280.0, 800.0);
    let path = std::path::PathBuf::from("/models/other.safetensors");
    window.harness.input_mut().dropped_files.push(std::sync::Arc::new(Dropped(path.clone())));
    assert_eq!(window.take(), [Action::FilesDropped(vec![path])]);
}

#[test]
fn a_command_that_helps_can_be_copied() {
    let mut stage = Stage::ready(Lang::En);
    let notice = softbox::base::Notice::BetterDevice {
        device: "NVIDIA RTX 3060".into(),
        why: Reason::NoCompiler,
        command: Some("pip install nvidia-cuda-nvrtc".into()),
    };
    stage.read(reading(1.0, 100, 100));
    stage.tell(softbox::engine::protocol::Event::Notice(None, notice));
    let mut window = Window::open(stage, 1280.0, 800.0);
    window.harness.get_by_label("Copy the command that helps").click();
    let copied = (0..6).any(|_| {
        window.harness.step();
        let commands = &window.harness.output().platform_output.commands;
        commands
            .iter()
            .any(|c| matches!(c, egui::OutputCommand::CopyText(text) if text == "pip install nvidia-cuda-nvrtc"))
    });
    assert!(copied);
}

#[test]
fn the_first_start_has_a_model_a_prompt_and_its_words_and_generates() {
    let mut window = Window::open(Stage::pocket(Lang::En), 1280.0, 800.0);
    assert!(window.harness.query_by_label("Checkpoint: Pocket · demonstration").is_some());
    assert_eq!(window.harness.state().0.studio.draft().prompt, "portrait photo of a woman");
    window.harness.get_by_label("256×384").click();
    assert_eq!(window.take(), [Action::Set(Setting::Size(Size::nearest(256, 384)))]);
    window.harness.get_by_label("Open a checkpoint file…").click();
    assert_eq!(window.take(), [Action::OpenModelFile]);
    window.harness.get_by_label("Generate").click();
    assert_eq!(window.take(), [Action::Generate]);
}

#[test]
fn a_word_goes_into_the_prompt_at_the_cursor_by_pointer_and_by_keyboard() {
    let mut window = Window::open(Stage::pocket(Lang::En), 1280.0, 800.0);
    let asked = |prompt: &str| [Action::Set(Setting::Prompt(prompt.into()))];
    window.harness.get_by_label("Hair").click();
    window.take();
    // The menu stays for the next word.
    window.harness.get_by_label("red hair").click();
    assert_eq!(window.take(), asked("portrait photo of a woman, red hair"));
    window.harness.get_by_label("long hair").click();
    assert_eq!(window.take(), asked("portrait photo of a woman, red hair, long hair"));
    window.harness.key_press(Key::Escape);
    window.take();
    assert!(window.harness.query_by_label("long hair").is_none());

    // A colour of clothes is one menu further.
    window.harness.get_by_label("Clothing").click();
    window.take();
    window.harness.get_by_label("t-shirt").click();
    window.take();
    window.harness.get_by_label("blue t-shirt").click();
    assert_eq!(window.take(), asked("portrait photo of a woman, red hair, long hair, blue t-shirt"));
    for _ in 0..2 {
        window.harness.key_press(Key::Escape);
        window.take();
    }

    let hair = window.harness.get_by_label("Hair");
    hair.focus();
    window.take();
    window.harness.key_press(Key::Enter);
    window.take();
    window.harness.get_by_label("black hair").focus();
    window.take();
    window.harness.key_press(Key::Enter);
    assert_eq!(window.take(), asked("portrait photo of a woman, red hair, long hair, blue t-shirt, black hair"));
}

#[test]
fn the_words_are_offered_only_for_the_model_that_needs_them_and_it_comes_back_by_the_menu() {
    let mut window = Window::open(Stage::pocket(Lang::Zh), 1280.0, 800.0);
    window.harness.get_by_label("头发").click();
    window.take();
    assert!(window.harness.query_by_label("red hair  红发").is_some());
    window.harness.key_press(Key::Escape);
    window.take();
    window.harness.get_by_label("换一个示例").click();
    assert_eq!(window.take(), [Action::Set(Setting::Prompt("portrait photo of a man".into()))]);

    let choice = ModelChoice::Path("/models/portrait_v5.safetensors".into());
    let studio = &mut window.harness.state_mut().0.studio;
    let info = softbox::studio::ModelInfo { name: "portrait_v5".into(), ..Default::default() };
    studio.apply(Action::ModelChosen(choice.clone()));
    studio.apply(Action::ModelInspected { choice, result: Ok(info) });
    window.take();
    assert!(window.harness.query_by_label("头发").is_none() && window.harness.query_by_label("256×384").is_none());
    window.harness.get_by_label("模型: portrait_v5").click();
    window.take();
    window.harness.get_by_label("内置小模型 Pocket").click();
    assert_eq!(window.take(), [Action::ModelChosen(ModelChoice::Pocket)]);
}
