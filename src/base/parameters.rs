//! The `parameters` text inside a picture, as A1111-family tools write and read it.
//!
//! Three parts: the prompt, a line starting with "Negative prompt:", and one line of "Key: value" pairs. The saver writes it,
//! the window and the command line read it from pictures of any origin. What the format cannot hold goes into a pair of our
//! own, [`EXTRA_KEY`], so that reading gives the request back exactly.

use super::{NoiseSource, SamplerKind, ScheduleKind, ShotRequest, Size};
use serde::{Deserialize, Serialize};

/// The key of what the format lacks; its value is JSON.
pub const EXTRA_KEY: &str = "Softbox";

const NEGATIVE: &str = "Negative prompt:";
/// A last line with fewer pairs than this is a part of the prompt (the rule that A1111 reads by).
const LEAST_PAIRS: usize = 3;

/// What a picture's text says of the model that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PictureFacts {
    /// The checkpoint's name without its ending.
    pub model: Option<String>,
    /// The first 10 hex digits of the file's SHA-256.
    pub model_hash: Option<String>,
    /// The name of a separate VAE.
    pub vae: Option<String>,
    pub vae_hash: Option<String>,
    /// The program and its version.
    pub version: Option<String>,
}

/// What could be read from a picture's text. `None` where it says nothing, or nothing that holds here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    pub prompt: String,
    pub negative: String,
    pub steps: Option<u32>,
    pub cfg: Option<f32>,
    pub size: Option<Size>,
    pub sampler: Option<SamplerKind>,
    /// One that pairs with the sampler.
    pub schedule: Option<ScheduleKind>,
    pub seed: Option<u64>,
    pub noise: Option<NoiseSource>,
    pub clip_skip: Option<u32>,
    pub count: Option<u32>,
    pub facts: PictureFacts,
    /// Every other pair, in order: other tools' settings, and values that do not hold here.
    pub rest: Vec<(String, String)>,
}

impl Recovered {
    /// The request that the text describes; what it does not say is taken from `base`.
    ///
    /// It holds if `base` does: where sampler, schedule and steps do not go together, the sampler's first schedule that
    /// makes so many steps takes the place of the one named.
    pub fn onto(&self, base: &ShotRequest) -> ShotRequest {
        let steps = self.steps.unwrap_or(base.steps);
        let sampler = self.sampler.unwrap_or(base.sampler);
        let named = self.schedule.unwrap_or(base.schedule);
        let makes =
            |kind: ScheduleKind| sampler.pairs_with(kind) && sampler.step_range(kind).contains(&(steps as usize));
        let fitting = || sampler.schedules().iter().copied().find(|&kind| makes(kind));
        let schedule = if makes(named) { named } else { fitting().unwrap_or(named) };
        ShotRequest {
            prompt: self.prompt.clone(),
            negative: self.negative.clone(),
            steps,
            cfg: self.cfg.unwrap_or(base.cfg),
            size: self.size.unwrap_or(base.size),
            sampler,
            schedule,
            seed: self.seed.unwrap_or(base.seed),
            noise: self.noise.unwrap_or(base.noise),
            clip_skip: self.clip_skip.unwrap_or(base.clip_skip),
            count: self.count.unwrap_or(base.count),
        }
    }
}

/// What the format itself cannot say.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Extra {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    negative: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
}

/// Writes the text for a picture. One line feed between the parts, none at the end, no NUL.
pub fn write(request: &ShotRequest, facts: &PictureFacts) -> String {
    let plain = compose(request, facts, &Extra::default());
    let back = read(&plain);
    let unless_same = |ours: &str, read: &str| (ours != read).then(|| ours.to_owned());
    let extra = Extra {
        prompt: unless_same(&request.prompt, &back.prompt),
        negative: unless_same(&request.negative, &back.negative),
        count: (request.count != 1).then_some(request.count),
    };
    if extra == Extra::default() { plain } else { compose(request, facts, &extra) }
}

fn compose(request: &ShotRequest, facts: &PictureFacts, extra: &Extra) -> String {
    let mut text = String::new();
    for (heading, body) in [("", &request.prompt), ("Negative prompt: ", &request.negative)] {
        if !body.is_empty() {
            text.push_str(heading);
            // PNG's text chunks end at a NUL.
            text.push_str(&body.replace('\0', " "));
            text.push('\n');
        }
    }
    let mut pairs: Vec<(&str, String)> = vec![
        ("Steps", request.steps.to_string()),
        ("Sampler", request.sampler.label().to_owned()),
        ("Schedule type", request.schedule.label().to_owned()),
        ("CFG scale", request.cfg.to_string()),
        ("Seed", request.seed.to_string()),
        ("Size", request.size.to_string()),
    ];
    let mut known = |key, value: &Option<String>| pairs.extend(value.clone().map(|value| (key, value)));
    known("Model hash", &facts.model_hash);
    known("Model", &facts.model);
    known("VAE hash", &facts.vae_hash);
    known("VAE", &facts.vae);
    // Their usual values are what other tools assume where the keys are absent, and leave out themselves.
    if request.clip_skip != 1 {
        pairs.push(("Clip skip", request.clip_skip.to_string()));
    }
    if request.noise == NoiseSource::Cpu {
        pairs.push(("RNG", request.noise.label().to_owned()));
    }
    pairs.extend(facts.version.clone().map(|version| ("Version", version)));
    if *extra != Extra::default() {
        pairs.extend(serde_json::to_string(extra).ok().map(|json| (EXTRA_KEY, json)));
    }
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}: {}", quoted(value))).collect();
    text.push_str(&pairs.join(", "));
    text
}

/// A value as JSON where it would be read differently as it is.
fn quoted(value: &str) -> String {
    let plain = !value.contains([',', ':', '"', '\\'])
        && !value.starts_with(['[', '{'])
        && !value.contains(char::is_control)
        && value.trim() == value
        && !value.is_empty();
    if plain { value.to_owned() } else { serde_json::Value::from(value).to_string() }
}

/// Reads the text of a picture. Any text reads as something; without a line of settings all of it is the prompt.
pub fn read(text: &str) -> Recovered {
    let text = text.trim();
    let (body, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let pairs = pairs(last);
    let has_settings = pairs.len() >= LEAST_PAIRS;
    let (prompt, negative) = prompts(if has_settings { body } else { text });
    let mut found = Recovered { prompt, negative, ..Recovered::default() };
    if !has_settings {
        return found;
    }
    // What the format leaves out where it is the usual value.
    found.clip_skip = Some(1);
    found.noise = Some(NoiseSource::Gpu);
    found.count = Some(1);
    let (mut sampler, mut schedule) = (None, None);
    for (key, value) in pairs {
        match key.as_str() {
            "Sampler" if sampler.is_none() => sampler = Some(value),
            "Schedule type" if schedule.is_none() => schedule = Some(value),
            _ => {
                if take(&mut found, &key, &value).is_none() {
                    found.rest.push((key, value));
                }
            }
        }
    }
    take_sampler(&mut found, sampler, schedule);
    found
}

/// Puts a value where it belongs; `None` if its key is not ours or it does not hold.
fn take(found: &mut Recovered, key: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u32>().ok();
    match key {
        "Steps" => found.steps = Some(number().filter(|n| ShotRequest::STEPS.contains(n))?),
        "CFG scale" => found.cfg = Some(value.parse().ok().filter(|n| ShotRequest::CFG.contains(n))?),
        "Seed" => found.seed = Some(value.parse().ok()?),
        "Size" => found.size = Some(value.parse().ok()?),
        "Clip skip" => found.clip_skip = Some(number().filter(|n| ShotRequest::CLIP_SKIP.contains(n))?),
        "RNG" => {
            found.noise = Some(match value {
                "CPU" => NoiseSource::Cpu,
                // "NV" is the same generator as "GPU", named by where it would have run.
                "GPU" | "NV" => NoiseSource::Gpu,
                _ => return None,
            });
        }
        "Model" => found.facts.model = Some(value.to_owned()),
        "Model hash" => found.facts.model_hash = Some(value.to_owned()),
        "VAE" => found.facts.vae = Some(value.to_owned()),
        "VAE hash" => found.facts.vae_hash = Some(value.to_owned()),
        "Version" => found.facts.version = Some(value.to_owned()),
        EXTRA_KEY => {
            let Extra { prompt, negative, count } = serde_json::from_str(value).ok()?;
            found.prompt = prompt.unwrap_or(std::mem::take(&mut found.prompt));
            found.negative = negative.unwrap_or(std::mem::take(&mut found.negative));
            found.count = count.filter(|n| ShotRequest::COUNT.contains(n)).or(found.count);
        }
        _ => return None,
    }
    Some(())
}

/// Reads sampler and schedule together: older tools write "DPM++ 2M Karras", newer ones name the schedule apart.
fn take_sampler(found: &mut Recovered, sampler: Option<String>, schedule: Option<String>) {
    let apart = schedule.as_deref().map(|text| (text, schedule_named(text)));
    if let Some(text) = &sampler {
        let older = ScheduleKind::ALL.iter().find_map(|kind| {
            let at = text.len().checked_sub(kind.label().len())?;
            let (name, ending) = (text.get(..at)?, text.get(at..)?);
            ending.eq_ignore_ascii_case(kind.label()).then_some((sampler_named(name)?, *kind))
        });
        found.sampler = sampler_named(text).or(older.map(|(kind, _)| kind));
        if let Some(kind) = found.sampler {
            // Before schedules had a name of their own, a bare sampler meant the model's own sigmas.
            let bare = if apart.is_none() { ScheduleKind::Normal } else { kind.default_schedule() };
            let wanted = apart.and_then(|(_, known)| known).or(older.map(|(_, kind)| kind)).unwrap_or(bare);
            found.schedule = Some(if kind.pairs_with(wanted) { wanted } else { kind.default_schedule() });
        } else {
            found.rest.push(("Sampler".to_owned(), text.clone()));
        }
    }
    let used = apart.is_none_or(|(text, known)| {
        text.eq_ignore_ascii_case("Automatic") || (known.is_some() && known == found.schedule)
    });
    if !used {
        found.rest.extend(schedule.map(|text| ("Schedule type".to_owned(), text)));
    }
}

/// Letters and digits only, lower-case, "+" as "p": "DPM++ 2M" and "dpmpp_2m" are one.
fn folded(name: &str) -> String {
    let fold = |c: char| if c == '+' { 'p' } else { c.to_ascii_lowercase() };
    name.chars().map(fold).filter(char::is_ascii_alphanumeric).collect()
}

fn sampler_named(name: &str) -> Option<SamplerKind> {
    let name = name.trim();
    let name = folded(name.strip_prefix("k_").unwrap_or(name));
    let name = if name == "eulerancestral" { "eulera".to_owned() } else { name };
    SamplerKind::ALL.into_iter().find(|kind| folded(kind.label()) == name)
}

fn schedule_named(name: &str) -> Option<ScheduleKind> {
    let name = folded(name);
    // A1111 calls k-diffusion's own sigmas "Uniform"; "Normal" came with later versions.
    let name = if name == "uniform" { "normal".to_owned() } else { name };
    ScheduleKind::ALL.into_iter().find(|kind| folded(kind.label()) == name)
}

/// Cuts what stands before the settings into prompt and negative prompt, lines trimmed.
fn prompts(body: &str) -> (String, String) {
    let (mut prompt, mut negative): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut in_negative = false;
    for line in body.split('\n') {
        let mut line = line.trim();
        if let Some(first) = line.strip_prefix(NEGATIVE) {
            in_negative = true;
            line = first.trim();
        }
        if in_negative { &mut negative } else { &mut prompt }.push(line);
    }
    let text = |lines: Vec<&str>| lines.join("\n").trim_matches('\n').to_owned();
    (text(prompt), text(negative))
}

/// The pairs in a line of settings. What is no pair is passed over.
fn pairs(line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find([':', ',']) {
        let (before, after) = rest.split_at(at);
        rest = &after[1..];
        let key = before.trim();
        if after.starts_with(':') && is_key(key) {
            let (value, length) = value(rest);
            found.push((key.to_owned(), value));
            rest = rest.get(length..).unwrap_or_default();
        }
    }
    found
}

fn is_key(text: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    text.chars().count() > 1
        && text.starts_with(in_word)
        && text.chars().all(|c| in_word(c) || matches!(c, ' ' | '-' | '/'))
}

/// The value at the start of `text`, which follows a colon, and how many bytes it takes with its comma.
fn value(text: &str) -> (String, usize) {
    let body = text.trim_start();
    // A JSON value may hold commas and colons: quoted as a string, or, by some tools, a bare list or object.
    if body.starts_with(['"', '[', '{']) {
        let mut values = serde_json::Deserializer::from_str(body).into_iter::<serde_json::Value>();
        if let Some(Ok(value)) = values.next() {
            let (json, after) = body.split_at(values.byte_offset());
            let trimmed = after.trim_start();
            if trimmed.is_empty() || trimmed.starts_with(',') {
                let value = value.as_str().map_or_else(|| json.to_owned(), str::to_owned);
                return (value, text.len() - trimmed.len() + usize::from(!trimmed.is_empty()));
            }
        }
    }
    let end = text.find(',').unwrap_or(text.len());
    (text[..end].trim().to_owned(), (end + 1).min(text.len()))
}

#[cfg(test)]
mod tests;
