//! Names of files that pictures are written under: patterns filled in, made safe for every file system, numbered.
//!
//! A name made here holds on Linux, macOS and Windows alike, since pictures travel. Called by `save`.

use crate::base::ShotRequest;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest name that ext4, APFS and NTFS all take, in bytes of UTF-8, with its ending.
const LONGEST: usize = 255;
/// Room kept for "-" and a number, should the name be taken.
const NUMBER_ROOM: usize = 8;
/// A name that nothing is left of after cleaning.
const NAMELESS: &str = "picture";
/// Names that Windows keeps for devices, with any ending.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The pattern that is offered first.
pub const DEFAULT_PATTERN: &str = "[date]-[time]-[seed]-[prompt]";

/// What a pattern may speak of besides the request.
#[derive(Clone, Debug)]
pub struct NameParts<'a> {
    pub request: &'a ShotRequest,
    /// The model's name as [`crate::base::ModelChoice::name`] gives it.
    pub model: &'a str,
    /// Which picture of the job, from 0.
    pub index: u32,
    pub at: SystemTime,
}

/// Fills a pattern and makes a safe name of it, without ending, at least one character long.
///
/// Unknown brackets stay as they are: `[` is allowed in names.
pub fn fill(pattern: &str, parts: &NameParts) -> String {
    let request = parts.request;
    let (date, time) = date_and_time(parts.at);
    let mut name = String::new();
    let mut rest = pattern;
    while let Some(open) = rest.find('[') {
        let (before, tail) = rest.split_at(open);
        name.push_str(before);
        let Some((key, after)) = tail.strip_prefix('[').and_then(|tail| tail.split_once(']')) else {
            rest = tail;
            break;
        };
        match key {
            "seed" => name.push_str(&request.seed.to_string()),
            "prompt" => name.push_str(&prompt_part(&request.prompt)),
            "date" => name.push_str(&date),
            "time" => name.push_str(&time),
            "model" => name.push_str(parts.model),
            "sampler" => name.push_str(request.sampler.label()),
            "steps" => name.push_str(&request.steps.to_string()),
            "cfg" => name.push_str(&request.cfg.to_string()),
            "width" => name.push_str(&request.size.width().to_string()),
            "height" => name.push_str(&request.size.height().to_string()),
            "number" => name.push_str(&format!("{:04}", u64::from(parts.index) + 1)),
            _ => {
                name.push_str(&format!("[{key}]"));
            }
        }
        rest = after;
    }
    name.push_str(rest);
    safe(&name)
}

/// The start of a prompt, short enough that other parts of the name and the folder's view keep their place.
fn prompt_part(prompt: &str) -> String {
    const BYTES: usize = 100;
    let one_line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&one_line, BYTES).trim_end().to_owned()
}

/// Turns any text into a name without ending that every common file system takes.
///
/// `# < > : " / \ | ? *` and control characters become `_`; leading and trailing dots, spaces and runs of `_` go; names
/// that Windows reserves get a `_` before them; the rest is cut on a character boundary so that ending and number still fit.
pub fn safe(text: &str) -> String {
    let replace = |c: char| match c {
        '#' | '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*' => '_',
        c if c.is_control() => '_',
        // Marks that turn the direction of what follows: a name would read as another one.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '_',
        c => c,
    };
    let replaced: String = text.chars().map(replace).collect();
    let edge = |c: char| c == '.' || c == '_' || c == '-' || c.is_whitespace();
    let longest = LONGEST - NUMBER_ROOM - ".webp".len();
    let name = cut(replaced.trim_matches(edge), longest).trim_end_matches(edge);
    if name.is_empty() {
        return NAMELESS.to_owned();
    }
    if is_reserved(name) { format!("_{name}") } else { name.to_owned() }
}

/// CON, PRN, AUX, NUL, COM1 to LPT9, also with an ending of their own.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    // The superscript digits count as digits here, says Microsoft's page on naming files.
    let numbered = port.is_some_and(|n| n.chars().count() == 1 && n.chars().all(|c| "0123456789¹²³".contains(c)));
    RESERVED.contains(&stem.as_str()) || numbered
}

/// `name.ending`, or `name-2.ending` and so on from the second try.
pub fn numbered(name: &str, number: u32, ending: &str) -> String {
    let tail = if number <= 1 { format!(".{ending}") } else { format!("-{number}.{ending}") };
    format!("{}{tail}", cut(name, LONGEST - tail.len()))
}

/// The longest start of `text` that has at most so many bytes and ends between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// "2026-03-01" and "142320", in UTC, since the standard library knows no time zone.
fn date_and_time(at: SystemTime) -> (String, String) {
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    let time = format!("{:02}{:02}{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    (format!("{year:04}-{month:02}-{day:02}"), time)
}

/// Year, month and day of a number of days since 1970-01-01, by counting in years that start with March, so that the
/// leap day is the last (the days-to-civil method of H. Hinnant's "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn name(pattern: &str, prompt: &str) -> String {
        let request = ShotRequest { prompt: prompt.to_owned(), seed: u64::MAX, ..ShotRequest::default() };
        let at = UNIX_EPOCH + Duration::from_secs(1_772_375_000);
        fill(pattern, &NameParts { request: &request, model: "epic/real", index: 0, at })
    }

    #[test]
    fn every_key_is_filled_and_unknown_ones_stay() {
        let all = "[number] [seed] [date] [time] [model] [sampler] [steps] [cfg] [width]x[height] [what] [open";
        let want = "0001 18446744073709551615 2026-03-01 142320 epic_real DPM++ 2M 25 7 512x768 [what] [open";
        assert_eq!(name(all, ""), want);
    }

    #[test]
    fn a_prompt_of_nothing_still_makes_a_name() {
        for prompt in ["", "...", "/", "   ", "\u{0}\n", "???"] {
            assert_eq!(name("[prompt]", prompt), "picture", "{prompt:?}");
            assert_eq!(name("[prompt]-[seed]", prompt), "18446744073709551615", "{prompt:?}");
        }
        assert_eq!(name("", "a cat"), "picture");
    }

    #[test]
    fn what_a_file_system_refuses_is_replaced() {
        assert_eq!(safe("a#b<c>d:e\"f/g\\h|i?j*k\u{7}l"), "a_b_c_d_e_f_g_h_i_j_k_l");
        assert_eq!(safe("..\\..\\etc/passwd"), "etc_passwd");
        assert_eq!(safe("中文 prompt"), "中文 prompt");
        for text in ["con", "NUL.txt", "Com7", "lpt¹", "aux "] {
            let made = safe(text);
            assert!(!is_reserved(&made), "{text} became {made}");
        }
        assert_eq!(safe("console"), "console");
    }

    #[test]
    fn long_names_are_cut_between_characters_with_room_for_number_and_ending() {
        for character in ["a", "é", "中", "🙂"] {
            let long = safe(&character.repeat(400));
            let full = numbered(&long, 4_000_000, "webp");
            assert!(full.len() <= LONGEST && full.len() > 200, "{character}: {}", full.len());
            assert!(full.ends_with("-4000000.webp"));
            let prompt = name("[prompt]", &character.repeat(400));
            assert!(prompt.len() <= 100 && prompt.chars().all(|c| c.to_string() == character));
        }
    }

    #[test]
    fn days_become_dates() {
        for (days, date) in
            [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (20_787, (2026, 11, 30)), (47_541, (2100, 3, 1))]
        {
            assert_eq!(civil(days), date, "{days}");
        }
    }
}
