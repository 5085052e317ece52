//! Reads the arguments and opens the window or does one command.

use softbox::cli::{self, Mode};
use softbox::{app, engine};
use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: this is the first thing the program does, so no other thread reads the environment yet.
    unsafe { engine::device::prepare_environment() };
    cli::start_log();
    match cli::parse(std::env::args_os()) {
        Ok(Mode::Window(arguments)) => app::run(*arguments),
        Ok(Mode::Command(command)) => cli::run(command),
        Err(code) => code,
    }
}
