//! The program as a window: `logic` lets the studio catch up, `ui` draws it and applies what was clicked.
//!
//! What the studio may not do itself (dialogs, the clipboard, files) comes back from it as effects, which `effects` does on
//! threads of their own; their answers are actions, so the window never waits.

mod effects;
mod forecast;
mod frame_times;
mod services;

use crate::base::choice::MemoryLimits;
use crate::base::{Latest, VaeChoice};
use crate::cli::{WindowArgs, language, say_on_stderr, start_error};
use crate::engine::protocol::{Command, Event};
use crate::engine::{self, EngineSettings};
use crate::studio::{Action, Preferences, Setting, Studio};
use crate::text::cli as words;
use crate::ui::{self, ViewState};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use effects::Effects;
use eframe::{CreationContext, Frame, NativeOptions, Storage};
use egui::{Context, ViewportBuilder, ViewportCommand};
use frame_times::{FrameTimes, Pass, cpu_time};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Under this key the preferences lie in the window's storage.
const KEPT: &str = "studio";

/// How long closing waits for the engine to write what it holds.
const FAREWELL: Duration = Duration::from_secs(5);

/// The Han glyphs that the window's own sentences need, for systems without a CJK font.
const HAN: &[u8] = include_bytes!("../../assets/fonts/NotoSansCJKsc-Softbox.otf");

/// Opens the window and stays until it is closed.
pub fn run(arguments: WindowArgs) -> ExitCode {
    let lang = language(arguments.lang);
    let viewport = ViewportBuilder::default()
        .with_title("Softbox")
        .with_app_id("softbox")
        .with_inner_size([1280.0, 800.0])
        .with_min_inner_size([480.0, 360.0])
        .with_drag_and_drop(true);
    let options = NativeOptions { viewport, renderer: eframe::Renderer::Glow, ..NativeOptions::default() };
    let opened = eframe::run_native(
        "softbox",
        options,
        Box::new(move |cc| match App::new(cc, &arguments) {
            Ok(app) => Ok(Box::new(app) as Box<dyn eframe::App>),
            Err(error) => Err(error.into()),
        }),
    );
    match opened {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::debug!("the window did not open: {error}");
            let said = match &error {
                // What the window was to open with does not hold, such as a script of figures.
                eframe::Error::AppCreation(why) => match why.downcast_ref::<engine::StartError>() {
                    Some(error) => start_error(lang, error),
                    None => why.to_string(),
                },
                _ if has_display() => words::NO_WINDOW.get(lang).to_owned(),
                _ => words::NO_DISPLAY.get(lang).to_owned(),
            };
            say_on_stderr(&words::error(lang, &said, ""));
            ExitCode::from(1)
        }
    }
}

/// Whether there is a display to open a window on. Systems other than Linux always have one.
fn has_display() -> bool {
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(is_set)
}

/// Whether an environment variable is there and not empty.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

struct App {
    studio: Studio,
    view: ViewState,
    effects: Effects,
    /// The engine's ends that are needed once more while closing.
    commands: Sender<Command>,
    events: Receiver<Event>,
    quitting: bool,
    x11: bool,
    frame_times: Option<FrameTimes>,
}

impl App {
    fn new(cc: &CreationContext, arguments: &WindowArgs) -> Result<Self, engine::StartError> {
        let ctx = cc.egui_ctx.clone();
        ui::fonts::install(&ctx, Some(HAN));
        ui::theme::install(&ctx, true);

        let kept = cc.storage.and_then(|storage| storage.get_string(KEPT)).unwrap_or_default();
        let mut kept = Preferences::read(&kept);
        take_arguments(&mut kept, arguments);

        let wake = ctx.clone();
        let settings = EngineSettings {
            device: kept.draft.device,
            limits: kept.limits,
            gauge_script: arguments.gauge_script.clone(),
            at_checkpoint: None,
        };
        let engine = engine::start(settings, move || wake.request_repaint())?;
        let (commands, events) = (engine.commands.clone(), engine.events.clone());
        let costs = Latest::new();
        let mut studio = Studio::new(engine, services::services(costs.clone()), kept);
        let mut effects = Effects::new(ctx, costs);
        effects.perform(studio.apply(Action::Start), &studio);
        if let Some(model) = arguments.model.clone() {
            effects.perform(studio.apply(Action::ModelChosen(model)), &studio);
        }
        let frame_times = arguments.frame_times.as_deref().and_then(|path| {
            let made = FrameTimes::create(path);
            made.inspect_err(|error| tracing::warn!("{}: {error}", path.display())).ok()
        });
        Ok(App {
            studio,
            view: ViewState::default(),
            effects,
            commands,
            events,
            quitting: false,
            x11: is_x11(),
            frame_times,
        })
    }

    fn measure(&mut self, pass: Pass, start: Duration) {
        if let Some(times) = &mut self.frame_times {
            times.add(pass, start, self.studio.running().is_some());
        }
    }

    fn apply(&mut self, action: Action) {
        let effects = self.studio.apply(action);
        self.quitting |= self.effects.perform(effects, &self.studio);
    }
}

/// Whether the window is on X11: winit's own rule for choosing between it and Wayland.
fn is_x11() -> bool {
    cfg!(target_os = "linux") && !["WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(is_set)
}

/// On X11 an input method is told one point only, the cursor's upper left corner, and lays its candidates over the line
/// that is being written. It is told the lower corner instead. Elsewhere it is told the whole cursor.
fn place_candidates_below(ctx: &Context) {
    ctx.output_mut(|output| {
        if let Some(ime) = &mut output.ime {
            ime.cursor_rect = ime.cursor_rect.translate(egui::vec2(0.0, ime.cursor_rect.height()));
        }
    });
}

/// What was given on the command line goes before what was kept.
fn take_arguments(kept: &mut Preferences, arguments: &WindowArgs) {
    let WindowArgs { model, vae, out, device, dtype, memory_budget, pause_at, lang, .. } = arguments;
    // One that was used before stays chosen until this one has been looked at.
    if kept.draft.model.is_none() {
        kept.draft.choose_model(model.clone());
    }
    if let Some(vae) = vae {
        kept.draft.set(Setting::Vae(VaeChoice::Path(vae.clone())));
    }
    if let Some(folder) = out {
        kept.draft.set(Setting::Folder(Some(folder.clone())));
    }
    if let Some(device) = device {
        kept.draft.set(Setting::Device(*device));
    }
    if let Some(precision) = dtype {
        kept.draft.set(Setting::Precision(*precision));
    }
    if let Some(lang) = lang {
        kept.lang = Some(language(Some(*lang)));
    }
    let MemoryLimits { pause_at: kept_pause_at, budget, .. } = &mut kept.limits;
    *budget = memory_budget.or(*budget);
    *kept_pause_at = pause_at.unwrap_or(*kept_pause_at);
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &Context, _frame: &mut Frame) {
        let start = cpu_time();
        self.studio.poll();
        let effects = self.studio.take_effects();
        self.quitting |= self.effects.perform(effects, &self.studio);
        while let Some(answer) = self.effects.answer() {
            self.apply(answer);
        }
        if ctx.input(|input| input.viewport().close_requested()) && !self.quitting {
            self.apply(Action::Close);
            if !self.quitting {
                ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            }
        } else if self.quitting {
            ctx.send_viewport_cmd(ViewportCommand::Close);
        }
        self.measure(Pass::Logic, start);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut Frame) {
        let start = cpu_time();
        for action in ui::show(ui, &self.studio, &mut self.view) {
            self.apply(action);
        }
        if self.quitting {
            ui.ctx().send_viewport_cmd(ViewportCommand::Close);
        }
        if self.x11 {
            place_candidates_below(ui.ctx());
        }
        self.measure(Pass::Ui, start);
    }

    fn save(&mut self, storage: &mut dyn Storage) {
        storage.set_string(KEPT, self.studio.preferences().write());
    }

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        self.apply(Action::CancelAll);
        if self.commands.send(Command::Shutdown).is_err() {
            return;
        }
        // A picture that is being written is finished first; the thread's end closes the channel.
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            match self.events.recv_timeout(Duration::from_millis(100)) {
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}
