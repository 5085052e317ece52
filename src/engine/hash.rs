//! The model hash that pictures carry: the first ten hexadecimal digits of the file's SHA-256.
//!
//! Gigabytes take seconds, so a thread of its own reads them while the first picture is made, and what was found is kept
//! by path, length and time of change, also across starts. The engine starts it at loading and asks when it saves. Of the
//! built-in model nothing is kept across starts: another build may have another one.

use crate::diffusion::place::{OpenFile, Place};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How many digits A1111-family tools write.
const DIGITS: usize = 10;

/// Whose hash it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    File(FileKey),
    BuiltIn(Place),
}

/// What a file was when it was hashed. A file that changed is another file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FileKey {
    path: PathBuf,
    bytes: u64,
    /// Nanoseconds since 1970.
    changed: u128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Working,
    Known(String),
    Failed,
}

#[derive(Debug, Default)]
struct Shared {
    states: Mutex<HashMap<Key, State>>,
    news: Condvar,
    cache: Option<PathBuf>,
}

/// Hashes known and in the making. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Arc<Shared>);

impl Hasher {
    /// Reads what earlier starts found from `cache`, where it will also be kept. `None` keeps nothing on disk.
    pub fn new(cache: Option<PathBuf>) -> Self {
        let read = cache.as_deref().and_then(|file| fs::read(file).ok());
        let known: Vec<(FileKey, String)> =
            read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let states = known.into_iter().map(|(key, hash)| (Key::File(key), State::Known(hash))).collect();
        Hasher(Arc::new(Shared { states: Mutex::new(states), news: Condvar::new(), cache }))
    }

    /// The file in the person's cache that [`new`](Self::new) is meant for.
    pub fn usual_cache() -> Option<PathBuf> {
        directories::ProjectDirs::from("", "", "Softbox").map(|dirs| dirs.cache_dir().join("hashes.json"))
    }

    /// Starts a thread for this checkpoint or VAE, unless its hash is known or on the way.
    pub fn want(&self, model: impl Into<Place>) {
        let Some(key) = key_of(&model.into()) else { return };
        let mut states = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(states.get(&key), Some(State::Working | State::Known(_))) {
            return;
        }
        states.insert(key.clone(), State::Working);
        drop(states);
        let shared = self.0.clone();
        let of = key.clone();
        let thread = std::thread::Builder::new().name("model-hash".to_owned()).spawn(move || {
            let place = of.place();
            let state = match hash_file(&place) {
                Ok(hash) => State::Known(hash),
                Err(error) => {
                    tracing::warn!("{} was not hashed: {error}", place.path().display());
                    State::Failed
                }
            };
            shared.finish(of, state);
        });
        if thread.is_err() {
            self.0.finish(key, State::Failed);
        }
    }

    /// The hash, if it is known by now.
    pub fn known(&self, model: impl Into<Place>) -> Option<String> {
        self.wait(model, Duration::ZERO)
    }

    /// The hash, waiting at most so long for one in the making.
    pub fn wait(&self, model: impl Into<Place>, at_most: Duration) -> Option<String> {
        let key = key_of(&model.into())?;
        let until = Instant::now() + at_most;
        let mut states = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match states.get(&key)? {
                State::Known(hash) => return Some(hash.clone()),
                State::Failed => return None,
                State::Working => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            states = self.0.news.wait_timeout(states, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn finish(&self, key: Key, state: State) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(key, state);
        self.keep(&states);
        drop(states);
        self.news.notify_all();
    }

    /// Writes what is known to the cache. It only saves time, so a failure is logged and no more.
    fn keep(&self, states: &HashMap<Key, State>) {
        let Some(file) = &self.cache else { return };
        let known: Vec<(&FileKey, &String)> = states
            .iter()
            .filter_map(|known| if let (Key::File(key), State::Known(hash)) = known { Some((key, hash)) } else { None })
            .collect();
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        let written = serde_json::to_vec(&known).map_err(io::Error::other).and_then(|bytes| {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&temporary, bytes)?;
            fs::rename(&temporary, file)
        });
        if let Err(error) = written {
            tracing::debug!("{} was not written: {error}", file.display());
        }
    }
}

impl Key {
    fn place(&self) -> Place {
        match self {
            Key::File(file) => Place::from(&file.path),
            Key::BuiltIn(place) => place.clone(),
        }
    }
}

/// The file whose hash stands for a model: the file itself, or of a folder the UNet's weights.
fn weights_of(model: &Place) -> Option<Place> {
    if !model.is_dir() {
        return Some(model.clone());
    }
    let folder = [model.join("unet"), model.clone()].into_iter().find(Place::is_dir)?;
    let mut files = folder.files().ok()?;
    files.retain(|file| file.path().extension().is_some_and(|ending| ending == "safetensors"));
    // The plain name before variants such as `.fp16.` or `.non_ema.`, which are longer.
    files.sort_by_key(|file| (file.path().as_os_str().len(), file.path().to_owned()));
    files.into_iter().next()
}

fn key_of(model: &Place) -> Option<Key> {
    let file = weights_of(model)?;
    let Some(path) = file.on_disk() else { return file.is_file().then_some(Key::BuiltIn(file)) };
    let path = fs::canonicalize(path).ok()?;
    let data = fs::metadata(&path).ok()?;
    let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    data.is_file().then_some(Key::File(FileKey { path, bytes: data.len(), changed }))
}

fn hash_file(place: &Place) -> io::Result<String> {
    let file = OpenFile::open(place)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < file.len() {
        let length = buffer.len().min(usize::try_from(file.len() - offset).unwrap_or(usize::MAX));
        let chunk = buffer.split_at_mut(length).0;
        if !file.read_full(chunk, offset)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(chunk);
        offset += length as u64;
    }
    let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(digits.chars().take(DIGITS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// SHA-256 of "abc" and of nothing, from FIPS 180-4.
    const ABC: &str = "ba7816bf8f";
    const EMPTY: &str = "e3b0c44298";
    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn a_file_is_hashed_in_the_background_and_again_when_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("model.safetensors");
        fs::write(&file, "abc").unwrap();
        let hashes = Hasher::default();
        assert_eq!(hashes.known(&file), None, "nobody asked for it yet");
        hashes.want(&file);
        hashes.want(&file);
        assert_eq!(hashes.wait(&file, SOON).as_deref(), Some(ABC));
        fs::write(&file, "").unwrap();
        assert_eq!(hashes.known(&file), None);
        hashes.want(&file);
        assert_eq!(hashes.wait(&file, SOON).as_deref(), Some(EMPTY));
    }

    #[test]
    fn a_later_start_knows_what_an_earlier_one_found() {
        let dir = tempfile::tempdir().unwrap();
        let (file, cache) = (dir.path().join("m.safetensors"), dir.path().join("cache/hashes.json"));
        fs::write(&file, "abc").unwrap();
        let first = Hasher::new(Some(cache.clone()));
        first.want(&file);
        assert!(first.wait(&file, SOON).is_some());
        assert_eq!(Hasher::new(Some(cache.clone())).known(&file).as_deref(), Some(ABC));
        fs::write(&cache, "rubbish").unwrap();
        assert_eq!(Hasher::new(Some(cache)).known(&file), None);
    }

    #[test]
    fn a_folder_has_the_hash_of_its_unet() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("unet")).unwrap();
        for (name, text) in
            [("diffusion_pytorch_model.fp16.safetensors", ""), ("diffusion_pytorch_model.safetensors", "abc")]
        {
            fs::write(dir.path().join("unet").join(name), text).unwrap();
        }
        let hashes = Hasher::default();
        hashes.want(dir.path());
        assert_eq!(hashes.wait(dir.path(), SOON).as_deref(), Some(ABC));
    }

    #[test]
    fn what_is_not_there_has_no_hash() {
        let hashes = Hasher::default();
        let nowhere = Path::new("/no/such/model.safetensors");
        hashes.want(nowhere);
        assert_eq!(hashes.wait(nowhere, SOON), None);
    }
}
