//! Everything that the command line writes goes through here: to a terminal, a file, a pipe that ends, or a full disk.
//!
//! Writing never panics, as the standard macros do where the other end is gone. Texts for people may hold names out of
//! files, which get no power over the terminal.

use crate::text::{cli, reasons};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest line in characters: names of tensors and files are read from files, and may be of any length.
const LONGEST_LINE: usize = 4096;

/// Whether a result could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Lines for people on standard error. Where nobody can read them, the work goes on all the same.
pub fn say(text: &str) {
    drop(writeln!(io::stderr(), "{}", shortened(&plain(text))));
}

/// A result on standard output, as it is. A reader that has seen enough (`softbox … | head`) is no fault.
pub(super) fn result(text: &str) {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            LOST.store(true, Ordering::Release);
            let lang = super::language(None);
            let why = reasons::io(lang, error.kind(), &error.to_string());
            say(&cli::error(lang, &cli::OUTPUT_LOST.with(lang, &[("why", &why)]), ""));
        }
        Ok(()) | Err(_) => {}
    }
}

/// Whether some result was not written, though somebody wanted it.
pub(super) fn lost() -> bool {
    LOST.load(Ordering::Acquire)
}

/// Control characters but line ends and tabs written out, so that they are seen and do nothing: `\u{1b}`. The same for
/// marks that turn the direction of the text around them.
pub(super) fn plain(text: &str) -> String {
    let harmless = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || turns_direction(c));
    if text.chars().all(harmless) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if harmless(c) { vec![c] } else { c.escape_unicode().collect() }).collect()
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Every line at most so long.
pub(super) fn shortened(text: &str) -> String {
    let line = |line: &str| match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_has_no_power_over_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mred\r\n\tb 中"), "a\\u{1b}[31mred\\u{d}\n\tb 中");
        assert_eq!(plain("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(plain("plain"), "plain");
    }

    #[test]
    fn a_line_has_an_end() {
        let long = format!("{}\nshort", "é".repeat(100_000));
        let cut = shortened(&long);
        assert_eq!(cut.lines().next().unwrap().chars().count(), LONGEST_LINE + 1);
        assert!(cut.ends_with("…\nshort"));
    }
}
