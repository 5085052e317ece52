//! Reads the tokenizer files of a diffusers checkpoint's `tokenizer` folder.
//!
//! Nothing about the vocabulary is assumed. Where no file names a special token, the names are those that transformers'
//! `CLIPTokenizer` gives by default.

use super::SpecialTokens;
use crate::diffusion::place::Place;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Why a tokenizer folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not valid JSON: {source}", path.display())]
    NotJson { path: PathBuf, source: serde_json::Error },
    #[error("{}: {what}", path.display())]
    Form { path: PathBuf, what: String },
    #[error("{}: the {role} token \"{token}\" is not in the vocabulary", folder.display())]
    NoSpecialToken { folder: PathBuf, role: &'static str, token: String },
}

/// What a folder holds, before it becomes a tokenizer.
pub(super) struct Parts {
    pub vocabulary: HashMap<String, u32>,
    /// Best first.
    pub merges: Vec<(String, String)>,
    pub special: SpecialTokens,
    /// Tokens to find in the text as they are, without the special ones.
    pub added: Vec<(String, u32)>,
    /// One more than the highest id.
    pub size: usize,
}

/// The merges in the text of a `merges.txt`, best first. Its first line may name a version.
pub(super) fn merges(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let body = if text.starts_with("#version") { text.split_once('\n').map_or("", |(_, body)| body) } else { text };
    body.lines().filter_map(|line| line.trim().split_once(' '))
}

pub(super) fn read(folder: &Place) -> Result<Parts, TokenizerError> {
    let whole = optional_json(folder, "tokenizer.json")?;
    let (vocabulary, merges) = if folder.join("vocab.json").is_file() || whole.is_none() {
        let place = folder.join("vocab.json");
        let vocabulary = vocabulary(place.path(), &parse(place.path(), &text(&place)?)?)?;
        let text = text(&folder.join("merges.txt"))?;
        (vocabulary, merges(&text).map(|(left, right)| (left.to_owned(), right.to_owned())).collect())
    } else {
        let place = folder.join("tokenizer.json");
        let path = place.path();
        let model = whole.as_ref().and_then(|whole| whole.get("model")).unwrap_or(&Value::Null);
        (vocabulary(path, model.get("vocab").unwrap_or(&Value::Null))?, listed_merges(path, model.get("merges"))?)
    };

    let config = optional_json(folder, "tokenizer_config.json")?.unwrap_or_default();
    let map = optional_json(folder, "special_tokens_map.json")?.unwrap_or_default();
    let mut added = HashMap::new();
    if let Some(list) = whole.as_ref().and_then(|whole| whole.get("added_tokens")).and_then(Value::as_array) {
        added.extend(
            list.iter().filter_map(|token| Some((content(token)?, (id(token.get("id")?)?, is_special(token))))),
        );
    }
    if let Some(Value::Object(tokens)) = optional_json(folder, "added_tokens.json")? {
        added.extend(tokens.iter().filter_map(|(text, value)| Some((text.clone(), (id(value)?, false)))));
    }
    if let Some(tokens) = config.get("added_tokens_decoder").and_then(Value::as_object) {
        let pair = |(key, token): (&String, &Value)| Some((content(token)?, (key.parse().ok()?, is_special(token))));
        added.extend(tokens.iter().filter_map(pair));
    }

    // transformers lets the map override the configuration until the latter lists the added tokens itself.
    let order = if config.get("added_tokens_decoder").is_some() { [&config, &map] } else { [&map, &config] };
    let find = |role: &'static str, default: &str| {
        let named = order.iter().find_map(|file| content(file.get(role)?));
        let token = named.unwrap_or_else(|| default.to_owned());
        let found = added.get(&token).map(|(id, _)| *id).or_else(|| vocabulary.get(&token).copied());
        found.ok_or_else(|| TokenizerError::NoSpecialToken { folder: folder.path().to_owned(), role, token })
    };
    let start = find("bos_token", "<|startoftext|>")?;
    let end = find("eos_token", "<|endoftext|>")?;
    let pad = find("pad_token", "<|endoftext|>")?;
    let unknown = find("unk_token", "<|endoftext|>")?;
    let special = SpecialTokens { start, end, pad, unknown };

    let highest = vocabulary.values().copied().chain(added.values().map(|(id, _)| *id)).max().unwrap_or(0);
    let reserved = [start, end, pad, unknown];
    let added =
        added.into_iter().filter(|(text, (id, special))| !special && !reserved.contains(id) && !text.is_empty());
    let added = added.map(|(text, (id, _))| (text, id)).collect();
    Ok(Parts { vocabulary, merges, special, added, size: highest as usize + 1 })
}

fn text(place: &Place) -> Result<String, TokenizerError> {
    place.read_to_string().map_err(|source| TokenizerError::Unreadable { path: place.path().to_owned(), source })
}

fn parse(path: &Path, text: &str) -> Result<Value, TokenizerError> {
    serde_json::from_str(text).map_err(|source| TokenizerError::NotJson { path: path.to_owned(), source })
}

/// The JSON in a file that need not be there.
fn optional_json(folder: &Place, name: &str) -> Result<Option<Value>, TokenizerError> {
    let place = folder.join(name);
    if place.is_file() { parse(place.path(), &text(&place)?).map(Some) } else { Ok(None) }
}

fn vocabulary(path: &Path, value: &Value) -> Result<HashMap<String, u32>, TokenizerError> {
    let wrong = |what: String| TokenizerError::Form { path: path.to_owned(), what };
    let object = value.as_object().ok_or_else(|| wrong("the vocabulary is no JSON object".to_owned()))?;
    let pairs = object.iter().map(|(token, value)| {
        id(value).map(|id| (token.clone(), id)).ok_or_else(|| wrong(format!("the id of \"{token}\" is {value}")))
    });
    pairs.collect()
}

/// The merges of a `tokenizer.json`, written either as "a b" or as ["a", "b"].
fn listed_merges(path: &Path, value: Option<&Value>) -> Result<Vec<(String, String)>, TokenizerError> {
    let wrong = |what: &str| TokenizerError::Form { path: path.to_owned(), what: what.to_owned() };
    let list = value.and_then(Value::as_array).ok_or_else(|| wrong("the merges are no JSON list"))?;
    let pairs = list.iter().map(|merge| {
        let pair = match merge {
            Value::String(line) => line.split_once(' '),
            Value::Array(two) => match two.as_slice() {
                [Value::String(left), Value::String(right)] => Some((left.as_str(), right.as_str())),
                _ => None,
            },
            _ => None,
        };
        pair.map(|(left, right)| (left.to_owned(), right.to_owned())).ok_or_else(|| wrong("a merge is no pair"))
    });
    pairs.collect()
}

/// A token's spelling, which files give as a string or as an object.
fn content(token: &Value) -> Option<String> {
    token.as_str().or_else(|| token.get("content")?.as_str()).map(str::to_owned)
}

fn id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}

fn is_special(token: &Value) -> bool {
    token.get("special").and_then(Value::as_bool).unwrap_or(false)
}
