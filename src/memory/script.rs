//! The gauge script (`--gauge-script FILE`): a card that is only told of, to drive every memory decision without one.
//!
//! A text file, one moment a line: time, total, and what other programs hold then. `#` begins a comment.
//!
//! ```text
//! clock steps        # times count the engine's looks: at step boundaries, before phases, while paused; without it,
//! seconds reserved 0.2       # kept back by the driver
//! context 0.3        # held by this program beyond its pools
//! ramp               # go evenly from line to line; without it, a line holds until the next
//! loop 20            # after this time, begin again
//! 0    8   1.5       # at 0: a card of 8 GiB, other programs hold 1.5 GiB
//! 5    8   6500MiB
//! 8    8   -         # not readable
//! ```
//!
//! Bare figures are GiB. What is free follows: total − reserved − others − what this program holds.

use super::MemoryError;
use crate::base::{Bytes, Reason};
use std::io::Read;
use std::path::Path;

/// The longest script that is read: a device that never ends is none.
const LONGEST: u64 = 1 << 20;

/// What a script says of the card at a moment. `None` is not readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub total: Option<Bytes>,
    pub others: Option<Bytes>,
}

/// In what a script's times are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptClock {
    #[default]
    Seconds,
    /// The engine's looks, each a reading on which it decides: at step boundaries, before phases, while paused.
    Steps,
}

/// A script that holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub clock: ScriptClock,
    pub reserved: Bytes,
    pub context: Bytes,
    ramp: bool,
    repeat: Option<f64>,
    /// Times rise strictly; never empty.
    lines: Vec<(f64, Moment)>,
}

impl Script {
    /// # Errors
    /// The file cannot be read, is not text, or a line does not hold.
    pub fn read(path: &Path) -> Result<Self, MemoryError> {
        let unreadable = |error: std::io::Error| MemoryError::ScriptUnreadable {
            path: path.to_owned(),
            why: Reason::io(Path::new(""), &error),
        };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            let told = format!("it is longer than {}", Bytes(LONGEST));
            return Err(unreadable(std::io::Error::new(std::io::ErrorKind::FileTooLarge, told)));
        }
        Self::parse(text.trim_start_matches('\u{feff}')).map_err(|(line, what)| MemoryError::ScriptLine {
            path: path.to_owned(),
            line,
            what,
        })
    }

    /// # Errors
    /// The number of the line, from 1, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut script = Script::default();
        let mut last = 0;
        for (number, line) in text.lines().enumerate() {
            last = number + 1;
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            script.take_line(&words).map_err(|what| (last, what))?;
        }
        let Some((end, _)) = script.lines.last() else {
            return Err((last.max(1), "no line with figures".to_owned()));
        };
        if script.repeat.is_some_and(|repeat| repeat <= *end) {
            return Err((last, format!("loop must be after the last time, {end}")));
        }
        Ok(script)
    }

    fn take_line(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            [] => {}
            ["clock", "steps"] => self.clock = ScriptClock::Steps,
            ["clock", "seconds"] => self.clock = ScriptClock::Seconds,
            ["ramp"] => self.ramp = true,
            ["loop", time] => self.repeat = Some(time_of(time)?),
            ["reserved", amount] => self.reserved = amount_of(amount)?,
            ["context", amount] => self.context = amount_of(amount)?,
            [time, total, others] => {
                let time = time_of(time)?;
                let known = |word| if word == "-" { Ok(None) } else { amount_of(word).map(Some) };
                let moment = Moment { total: known(total)?, others: known(others)? };
                if let (Some(total), Some(others)) = (moment.total, moment.others)
                    && others > total
                {
                    return Err(format!("others hold {others} of {total}"));
                }
                if self.lines.last().is_some_and(|(before, _)| time <= *before) {
                    return Err(format!("time {time} does not come after the line before"));
                }
                self.lines.push((time, moment));
            }
            _ => return Err(format!("\"{}\" is neither \"time total others\" nor a known word", words.join(" "))),
        }
        Ok(())
    }

    /// The card at a time. Before the first line the first holds, after the last the last.
    pub fn at(&self, time: f64) -> Moment {
        let time = self.repeat.map_or(time, |repeat| time.rem_euclid(repeat));
        let next = self.lines.partition_point(|(at, _)| *at <= time);
        let before = self.lines.get(next.saturating_sub(1)).copied().unwrap_or_default();
        match self.lines.get(next) {
            Some(after) if self.ramp && next > 0 => {
                let share = (time - before.0) / (after.0 - before.0);
                let between = |a: Option<Bytes>, b: Option<Bytes>| {
                    let (a, b) = (a?, b?);
                    Some(a.portion(1.0 - share) + b.portion(share))
                };
                Moment {
                    total: between(before.1.total, after.1.total),
                    others: between(before.1.others, after.1.others),
                }
            }
            _ => before.1,
        }
    }
}

fn time_of(word: &str) -> Result<f64, String> {
    let time = word.parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0);
    time.ok_or_else(|| format!("\"{word}\" is not a time"))
}

fn amount_of(word: &str) -> Result<Bytes, String> {
    let wrong = || format!("\"{word}\" is not an amount of memory");
    match word.parse::<f64>() {
        // More than a million GiB is a slip of the pen.
        Ok(gib) if (0.0..=1e6).contains(&gib) => Ok(Bytes((gib * (1u64 << 30) as f64).round() as u64)),
        Ok(_) => Err(wrong()),
        Err(_) => word.parse().map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(total: u64, others: u64) -> Moment {
        Moment { total: Some(Bytes::mib(total)), others: Some(Bytes::mib(others)) }
    }

    #[test]
    fn a_line_holds_until_the_next() {
        let script = Script::parse("\n# a card\n1 8 1.5 # first\n5 8GiB 2048MiB\n8 8 -\n").unwrap();
        let wants = [(0.0, moment(8192, 1536)), (4.9, moment(8192, 1536)), (5.0, moment(8192, 2048))];
        for (time, want) in wants {
            assert_eq!(script.at(time), want, "{time}");
        }
        assert_eq!(script.at(1e9), Moment { total: Some(Bytes::gib(8)), others: None });
        assert_eq!(script.clock, ScriptClock::Seconds);
    }

    #[test]
    fn ramps_and_loops() {
        let script = Script::parse("clock steps\nramp\nloop 4\nreserved 0.5\ncontext 256M\n0 8 0\n2 8 4\n").unwrap();
        assert_eq!((script.reserved, script.context), (Bytes::mib(512), Bytes::mib(256)));
        assert_eq!(script.clock, ScriptClock::Steps);
        for (time, others) in [(0.0, 0), (1.0, 2048), (2.0, 4096), (3.5, 4096), (4.5, 1024), (401.0, 2048)] {
            assert_eq!(script.at(time), moment(8192, others), "{time}");
        }
    }

    #[test]
    fn what_does_not_hold_is_told_by_line() {
        for (text, line) in [
            ("", 1),
            ("# nothing\n\n", 2),
            ("0 8 1\n0 8 2\n", 2),
            ("0 8 9\n", 1),
            ("0 8\n", 1),
            ("0 8 1\n1 x 1\n", 2),
            ("-1 8 1\n", 1),
            ("nan 8 1\n", 1),
            ("0 inf 1\n", 1),
            ("0 8 -1\n", 1),
            ("clock sundial\n0 8 1\n", 1),
            ("loop 1\n0 8 1\n1 8 1\n", 3),
            ("0 8 1 1\n", 1),
        ] {
            assert_eq!(Script::parse(text).map_err(|(line, _)| line), Err(line), "{text:?}");
        }
    }

    #[test]
    fn files_that_are_no_scripts_are_typed_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gauge");
        assert!(matches!(Script::read(&path), Err(MemoryError::ScriptUnreadable { .. })));
        std::fs::write(&path, b"\xff\xfe\x00").unwrap();
        assert!(matches!(Script::read(&path), Err(MemoryError::ScriptUnreadable { .. })));
        std::fs::write(&path, "0 8 1\nhello\n").unwrap();
        assert!(matches!(Script::read(&path), Err(MemoryError::ScriptLine { line: 2, .. })));
    }
}
