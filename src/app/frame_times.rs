//! What `logic` and `ui` cost the window's thread, frame by frame (`--frame-times FILE`): how it is shown that a running job
//! leaves the window light. The window test reads the file.
//!
//! One line a frame: whether a job ran, then microseconds of this thread's CPU time in `logic` and in `ui`. What egui does
//! with what it was told (tessellation, the graphics driver) is not in them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// The file, and the frame that is not finished.
pub struct FrameTimes {
    file: BufWriter<File>,
    frame: Option<Frame>,
}

#[derive(Clone, Copy, Default)]
struct Frame {
    running: bool,
    logic: Duration,
    ui: Duration,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Begins a frame.
    Logic,
    /// Once a frame, or twice where the first drawing was discarded.
    Ui,
}

impl FrameTimes {
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "running logic_us ui_us")?;
        Ok(FrameTimes { file, frame: None })
    }

    /// Adds what a pass took that began at `start`.
    pub fn add(&mut self, pass: Pass, start: Duration, running: bool) {
        let took = cpu_time().saturating_sub(start);
        if pass == Pass::Logic {
            self.finish();
            self.frame = Some(Frame { running, logic: took, ui: Duration::ZERO });
        } else if let Some(frame) = &mut self.frame {
            frame.ui += took;
        }
    }

    fn finish(&mut self) {
        let Some(Frame { running, logic, ui }) = self.frame.take() else { return };
        let line = writeln!(self.file, "{} {} {}", u8::from(running), logic.as_micros(), ui.as_micros());
        if let Err(error) = line {
            tracing::warn!("the frame times cannot be written: {error}");
        }
    }
}

impl Drop for FrameTimes {
    fn drop(&mut self) {
        self.finish();
    }
}

/// CPU time of the calling thread; only differences mean something.
#[cfg(unix)]
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, to the one it is given, and keeps no pointer to it.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if failed != 0 {
        return Duration::ZERO;
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Elsewhere the clock on the wall, which is never less.
#[cfg(not(unix))]
pub fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_line_and_a_discarded_drawing_counts_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        let mut times = FrameTimes::create(&path).unwrap();
        let work = || {
            let start = cpu_time();
            while cpu_time() - start < Duration::from_millis(2) {}
            start
        };
        times.add(Pass::Logic, cpu_time(), false);
        times.add(Pass::Ui, work(), false);
        times.add(Pass::Ui, work(), false);
        times.add(Pass::Logic, work(), true);
        drop(times);
        let text = std::fs::read_to_string(path).unwrap();
        let frames: Vec<Vec<u64>> =
            text.lines().skip(1).map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect()).collect();
        assert_eq!(frames.len(), 2, "{text}");
        assert!(frames[0][0] == 0 && frames[0][2] >= 4000, "{text}");
        assert!(frames[1][0] == 1 && frames[1][1] >= 2000 && frames[1][2] == 0, "{text}");
    }
}
