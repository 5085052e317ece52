//! The window without a window: panels drawn through egui_kittest, the engine's far ends held by the test.

mod accessibility;
mod actions;
mod graph;
mod small_windows;
mod stage;
mod states;
