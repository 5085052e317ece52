//! Finds what A1111's prompts may hold and this program does not honour, so that it can be said.

use super::parse::word_positions;
use crate::base::Notice;

/// How many different places a notice of one kind names; a prompt may hold thousands.
const MOST_OF_A_KIND: usize = 3;
/// How many characters of the prompt a notice quotes.
const MOST_QUOTED: usize = 60;

/// Networks that `<name:…>` calls in A1111 and its common extensions.
const EXTRA_NETWORKS: [&str; 4] = ["lora:", "lyco:", "hypernet:", "lyca:"];

/// The prompt without `<lora:…>` and its like, and these, as written.
pub(super) fn without_extra_networks(prompt: &str) -> (String, Vec<String>) {
    let mut text = String::with_capacity(prompt.len());
    let mut networks = Vec::new();
    let mut rest = prompt;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let known = EXTRA_NETWORKS
            .iter()
            .find(|name| tag.get(1..1 + name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
        // A tag that is never closed, or is closed only beyond another one's start, is text.
        let length = known.and_then(|_| tag[1..].find(['<', '>'])).filter(|end| tag[1 + end..].starts_with('>'));
        let (skipped, after) = tag.split_at(length.map_or(1, |end| end + 2));
        match length {
            Some(_) => networks.push(skipped.to_owned()),
            None => text.push_str(skipped),
        }
        rest = after;
    }
    text.push_str(rest);
    (text, networks)
}

/// The notices on a prompt whose extra networks are already taken out.
pub(super) fn notices(text: &str, networks: Vec<String>) -> Vec<Notice> {
    let (scheduled, alternating) = square_syntax(text);
    let mut notices = Vec::new();
    notices.extend(some(scheduled).map(Notice::PromptScheduling));
    notices.extend(some(alternating).map(Notice::PromptAlternation));
    if word_positions(text, "AND").next().is_some() {
        notices.push(Notice::PromptComposition);
    }
    notices.extend(some(networks.iter().map(String::as_str)).map(Notice::PromptExtraNetwork));
    if is_foreign(text) {
        notices.push(Notice::PromptNotEnglish);
    }
    notices
}

/// The first few different ones, each cut to a length that can be shown.
fn some<'a>(found: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = String> {
    let mut kept: Vec<String> = Vec::new();
    for quoted in found {
        let mut short: String = quoted.chars().take(MOST_QUOTED).collect();
        if short.len() < quoted.len() {
            short.push('…');
        }
        if !kept.contains(&short) {
            kept.push(short);
        }
        if kept.len() == MOST_OF_A_KIND {
            break;
        }
    }
    kept.into_iter()
}

/// A square bracket that is open.
struct Open {
    at: usize,
    /// Round brackets open within it: what they hold is theirs.
    round: usize,
    colon: Option<usize>,
    bar: bool,
}

/// The places that A1111 reads as scheduling (`[from:to:when]`, `[to:when]`, `[from::when]`) and as alternation (`[a|b]`).
fn square_syntax(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut scheduled, mut alternating) = (Vec::new(), Vec::new());
    let mut open: Vec<Open> = Vec::new();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (c, open.last_mut()) {
            ('\\', _) => escaped = true,
            ('[', _) => open.push(Open { at, round: 0, colon: None, bar: false }),
            (']', Some(_)) => {
                let Some(Open { at: from, colon, bar, .. }) = open.pop() else { continue };
                let number = colon.map(|colon| text[colon + 1..at].trim());
                if bar {
                    alternating.push(&text[from..=at]);
                } else if number.is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)))
                    && number.is_some_and(|n| n.parse::<f64>().is_ok())
                {
                    scheduled.push(&text[from..=at]);
                }
            }
            ('(', Some(inner)) => inner.round += 1,
            (')', Some(inner)) => inner.round = inner.round.saturating_sub(1),
            (':', Some(inner)) if inner.round == 0 => inner.colon = Some(at),
            ('|', Some(inner)) if inner.round == 0 => inner.bar = true,
            _ => {}
        }
    }
    (scheduled, alternating)
}

/// Whether most of the text is in a script that SD1.5's text encoder was hardly trained on.
///
/// Counted in words; in scripts that write no spaces each character counts as one.
fn is_foreign(text: &str) -> bool {
    let (mut foreign, mut latin) = (0usize, 0usize);
    let mut before = Script::None;
    for c in text.chars() {
        let script = script(c);
        match script {
            Script::Ideographic => foreign += 1,
            Script::Foreign if before != Script::Foreign => foreign += 1,
            Script::Latin if before != Script::Latin => latin += 1,
            _ => {}
        }
        before = script;
    }
    foreign > latin
}

#[derive(Clone, Copy, PartialEq)]
enum Script {
    /// Digits, punctuation, spaces, symbols.
    None,
    Latin,
    /// Han, kana, hangul and Thai: words without spaces, or with few.
    Ideographic,
    /// Any other alphabet.
    Foreign,
}

fn script(c: char) -> Script {
    match c {
        _ if !c.is_alphabetic() => Script::None,
        '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{ff21}'..='\u{ff5a}' => Script::Latin,
        '\u{e00}'..='\u{eff}' | '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' => {
            Script::Ideographic
        }
        '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ffdc}' | '\u{20000}'..='\u{3ffff}' => Script::Ideographic,
        '\u{370}'..='\u{10ff}' | '\u{1200}'..='\u{1dff}' | '\u{1f00}'..='\u{1fff}' => Script::Foreign,
        _ => Script::None,
    }
}
