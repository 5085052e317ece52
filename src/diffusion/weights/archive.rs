//! One safetensors file: its header, checked to the letter, and positioned reads of its tensors.
//!
//! Each read checks that length, time, identity and header are still those seen when the file was opened.

use super::convert::{DType, convert};
use super::error::WeightError;
use crate::base::Precision;
use crate::diffusion::place::{OpenFile, Place};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

/// The largest header the format's own reader accepts.
const MAX_HEADER: u64 = 100_000_000;
/// Bytes of the length field in front of the header.
const LENGTH_FIELD: u64 = 8;
/// Bytes read and converted at once, so that one tensor's f32 source and f16 result are never both whole in memory.
const CHUNK: usize = 1 << 20;
/// How much of a file is looked at to tell other formats.
const SNIFF: usize = 512;

/// What a file that is no safetensors file turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    /// The stand-in that git keeps in place of a large file, and the size of the real one where it says so.
    GitLfsPointer {
        size: Option<u64>,
    },
    /// A web page, most often a login or error page saved by a download.
    Html,
    /// A JSON text, most often a server's error message saved by a download.
    Json,
    /// A zip, which is how torch saves `.ckpt`, `.pt` and `.bin`.
    Zip,
    /// A bare pickle, as older torch saved.
    Pickle,
    Gguf,
    Hdf5,
    Picture,
    /// A packed archive: gzip, 7z or rar.
    Packed,
}

impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForeignFormat::GitLfsPointer { size: Some(size) } => {
                write!(f, "a Git LFS pointer to a file of {size} bytes")
            }
            ForeignFormat::GitLfsPointer { size: None } => f.write_str("a Git LFS pointer"),
            ForeignFormat::Html => f.write_str("an HTML page"),
            ForeignFormat::Json => f.write_str("a JSON text"),
            ForeignFormat::Zip => f.write_str("a zip archive (a pickled torch checkpoint)"),
            ForeignFormat::Pickle => f.write_str("a pickle (an old torch checkpoint)"),
            ForeignFormat::Gguf => f.write_str("a GGUF file"),
            ForeignFormat::Hdf5 => f.write_str("an HDF5 file"),
            ForeignFormat::Picture => f.write_str("a picture"),
            ForeignFormat::Packed => f.write_str("a packed archive"),
        }
    }
}

/// One entry of the header; `start..end` are bytes of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub start: u64,
    pub end: u64,
}

impl TensorInfo {
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1u64, |n, d| n.saturating_mul(*d as u64))
    }
}

/// An open safetensors file whose header holds.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    file: OpenFile,
    header: Vec<u8>,
    tensors: BTreeMap<String, TensorInfo>,
    metadata: BTreeMap<String, String>,
}

impl Archive {
    /// Opens a file and checks all of its header; no weights are read.
    ///
    /// # Errors
    /// Every variant of [`WeightError`] from `Io` to `ExtraBytes`.
    pub fn open(place: impl Into<Place>) -> Result<Archive, WeightError> {
        let place = place.into();
        let path = place.path();
        let file = OpenFile::open(&place).map_err(|e| WeightError::io(path, e))?;
        let header = read_header(path, &file)?;
        let text =
            std::str::from_utf8(&header).map_err(|source| WeightError::HeaderUtf8 { file: path.to_owned(), source })?;
        let entries: Entries = serde_json::from_str(text)
            .map_err(|e| WeightError::HeaderJson { file: path.to_owned(), detail: e.to_string() })?;
        let data_start = LENGTH_FIELD + header.len() as u64;
        let (tensors, metadata) = check_entries(path, entries, data_start, file.len())?;
        Ok(Archive { path: path.to_owned(), file, header, tensors, metadata })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.file.len()
    }

    /// All entries, sorted by name.
    pub fn tensors(&self) -> &BTreeMap<String, TensorInfo> {
        &self.tensors
    }

    pub fn get(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// The header's free texts (`__metadata__`).
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The stored bytes of one tensor.
    ///
    /// # Errors
    /// `NoTensor`, `Changed`, `Io`.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, WeightError> {
        let mut out = Vec::new();
        self.read_chunks(name, |chunk, _| out.extend_from_slice(chunk))?;
        Ok(out)
    }

    /// One tensor's values as elements of `precision`, replacing what `out` held. Reads and converts a megabyte at a
    /// time.
    ///
    /// # Errors
    /// `NoTensor`, `NotFloat`, `PrecisionUndecided`, `Changed`, `Io`.
    pub fn read_as(&self, name: &str, precision: Precision, out: &mut Vec<u8>) -> Result<(), WeightError> {
        let info = self.get(name).ok_or_else(|| self.no_tensor(name))?;
        if precision == Precision::Auto {
            return Err(WeightError::PrecisionUndecided);
        }
        if !info.dtype.is_weight() {
            return Err(WeightError::NotFloat { file: self.path.clone(), tensor: name.to_owned(), dtype: info.dtype });
        }
        out.clear();
        out.reserve_exact((info.elements() as usize).saturating_mul(precision.size()));
        self.read_chunks(name, |chunk, dtype| {
            convert(chunk, dtype, precision, out);
        })
    }

    /// Checks that the file on disk is still the one that was opened: length, time, identity, header.
    ///
    /// # Errors
    /// `Changed`, or `Io` where the file cannot be asked.
    pub fn verify(&self) -> Result<(), WeightError> {
        self.verify_identity()?;
        let mut buffer = vec![0u8; self.header.len().min(CHUNK)];
        let mut offset = LENGTH_FIELD;
        for expected in self.header.chunks(CHUNK) {
            let now = buffer.split_at_mut(expected.len().min(CHUNK)).0;
            let whole = self.file.read_full(now, offset).map_err(|e| WeightError::io(&self.path, e))?;
            if !whole || now != expected {
                return Err(self.changed());
            }
            offset = offset.saturating_add(expected.len() as u64);
        }
        Ok(())
    }

    /// Whether the file under its path is still the one that was opened, by length, time and identity.
    pub fn is_unchanged(&self) -> bool {
        self.verify_identity().is_ok()
    }

    fn verify_identity(&self) -> Result<(), WeightError> {
        let same = self.file.is_unchanged().map_err(|e| WeightError::io(&self.path, e))?;
        if same { Ok(()) } else { Err(self.changed()) }
    }

    /// Hands over a tensor's bytes in order, in chunks of whole elements.
    fn read_chunks(&self, name: &str, mut each: impl FnMut(&[u8], DType)) -> Result<(), WeightError> {
        let info = self.get(name).ok_or_else(|| self.no_tensor(name))?;
        self.verify()?;
        let total = info.end.saturating_sub(info.start);
        let mut buffer = vec![0u8; CHUNK.min(usize::try_from(total).unwrap_or(CHUNK))];
        let mut offset = info.start;
        while offset < info.end {
            let n = usize::try_from(info.end - offset).unwrap_or(CHUNK).min(buffer.len());
            let chunk = buffer.split_at_mut(n).0;
            if !self.file.read_full(chunk, offset).map_err(|e| WeightError::io(&self.path, e))? {
                return Err(self.changed());
            }
            each(chunk, info.dtype);
            offset += n as u64;
        }
        // Again afterwards: what was read while the file was being rewritten is not to be trusted.
        self.verify_identity()
    }

    fn changed(&self) -> WeightError {
        WeightError::Changed { file: self.path.clone() }
    }

    fn no_tensor(&self, name: &str) -> WeightError {
        WeightError::NoTensor { file: self.path.clone(), tensor: name.to_owned() }
    }
}

/// The header's bytes, or what is wrong with the start of the file.
fn read_header(path: &Path, file: &OpenFile) -> Result<Vec<u8>, WeightError> {
    let owned = || path.to_owned();
    let len = file.len();
    let io = |e| WeightError::io(path, e);
    let mut start = vec![0u8; usize::try_from(len).unwrap_or(SNIFF).min(SNIFF)];
    if !file.read_full(&mut start, 0).map_err(io)? {
        return Err(WeightError::Changed { file: owned() });
    }
    let foreign = |start: &[u8]| sniff(start).map(|format| WeightError::Foreign { file: owned(), format });
    let Some(field) = start.first_chunk::<8>() else {
        return Err(foreign(&start).unwrap_or(WeightError::HeaderTooSmall { file: owned(), have: len }));
    };
    let length = u64::from_le_bytes(*field);
    if length > MAX_HEADER {
        return Err(foreign(&start).unwrap_or(WeightError::HeaderTooLarge { file: owned(), length }));
    }
    // Headers begin with a brace; another beginning is told as another format before anything else, since some magic
    // numbers are also small lengths.
    if start.get(8).is_some_and(|b| *b != b'{')
        && let Some(error) = foreign(&start)
    {
        return Err(error);
    }
    let need = length + LENGTH_FIELD;
    if need > len {
        return Err(WeightError::InvalidHeaderLength { file: owned(), have: len, need });
    }
    let mut header = vec![0u8; usize::try_from(length).unwrap_or(0)];
    if !file.read_full(&mut header, LENGTH_FIELD).map_err(io)? {
        return Err(WeightError::Changed { file: owned() });
    }
    Ok(header)
}

/// Tells other formats by their first bytes.
fn sniff(start: &[u8]) -> Option<ForeignFormat> {
    const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";
    if start.starts_with(LFS) {
        let text = String::from_utf8_lossy(start);
        let size = text.lines().find_map(|l| l.strip_prefix("size ")).and_then(|n| n.trim().parse().ok());
        return Some(ForeignFormat::GitLfsPointer { size });
    }
    const MAGIC: [(&[u8], ForeignFormat); 20] = [
        (b"PK\x03\x04", ForeignFormat::Zip),
        (b"PK\x05\x06", ForeignFormat::Zip),
        (b"\x80\x02", ForeignFormat::Pickle),
        (b"\x80\x03", ForeignFormat::Pickle),
        (b"\x80\x04", ForeignFormat::Pickle),
        (b"\x80\x05", ForeignFormat::Pickle),
        (b"GGUF", ForeignFormat::Gguf),
        (b"GGML", ForeignFormat::Gguf),
        (b"\x89HDF", ForeignFormat::Hdf5),
        (b"\x89PNG", ForeignFormat::Picture),
        (b"\xFF\xD8\xFF", ForeignFormat::Picture),
        (b"RIFF", ForeignFormat::Picture),
        (b"GIF8", ForeignFormat::Picture),
        (b"BM", ForeignFormat::Picture),
        (b"II*\0", ForeignFormat::Picture),
        (b"MM\0*", ForeignFormat::Picture),
        (b"\x1F\x8B", ForeignFormat::Packed),
        (b"7z\xBC\xAF", ForeignFormat::Packed),
        (b"Rar!", ForeignFormat::Packed),
        (b"\xFD7zXZ", ForeignFormat::Packed),
    ];
    if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(format.clone());
    }
    let text = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    let lower: Vec<u8> = text.iter().take(16).map(u8::to_ascii_lowercase).collect();
    if [&b"<!doctype"[..], b"<html", b"<head", b"<body", b"<?xml", b"<!--"].iter().any(|t| lower.starts_with(t)) {
        return Some(ForeignFormat::Html);
    }
    (lower.starts_with(b"{\"") || lower.starts_with(b"{\n")).then_some(ForeignFormat::Json)
}

/// The header's map in its written order, doubles included.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a map of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Entries(all))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

type Checked = (BTreeMap<String, TensorInfo>, BTreeMap<String, String>);

/// One entry before its offsets are moved to where the data starts.
struct RawEntry {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    begin: u64,
    end: u64,
}

/// Checks every entry and that together they cover the rest of the file exactly.
fn check_entries(path: &Path, entries: Entries, data_start: u64, file_len: u64) -> Result<Checked, WeightError> {
    let mut metadata = BTreeMap::new();
    let mut raw = Vec::with_capacity(entries.0.len());
    let mut seen = HashMap::with_capacity(entries.0.len());
    for (name, value) in entries.0 {
        if name == "__metadata__" {
            metadata = metadata_texts(path, &value)?;
            continue;
        }
        if seen.insert(name.clone(), ()).is_some() {
            return Err(WeightError::Duplicate { file: path.to_owned(), tensor: name });
        }
        raw.push(parse_entry(path, name, &value)?);
    }
    raw.sort_by(|a, b| (a.begin, a.end, &a.name).cmp(&(b.begin, b.end, &b.name)));

    let have = file_len.saturating_sub(data_start);
    let mut tensors = BTreeMap::new();
    let (mut covered, mut last, mut cut) = (0u64, String::new(), None);
    for entry in raw {
        check_size(path, &entry)?;
        if entry.begin < covered {
            return Err(WeightError::Overlap { file: path.to_owned(), tensor: entry.name, other: last });
        }
        if entry.begin > covered {
            return Err(WeightError::Gap { file: path.to_owned(), tensor: entry.name, gap: entry.begin - covered });
        }
        covered = entry.end;
        last.clone_from(&entry.name);
        if covered > have && cut.is_none() {
            cut = Some(entry.name.clone());
        }
        let too_big = || overflow(path, &entry);
        let shape: Result<Vec<usize>, _> = entry.shape.iter().map(|d| usize::try_from(*d)).collect();
        let info = TensorInfo {
            dtype: entry.dtype,
            shape: shape.map_err(|_| too_big())?,
            start: entry.begin.checked_add(data_start).ok_or_else(too_big)?,
            end: entry.end.checked_add(data_start).ok_or_else(too_big)?,
        };
        tensors.insert(entry.name, info);
    }
    if let Some(tensor) = cut {
        let need = covered.saturating_add(data_start);
        return Err(WeightError::Incomplete { file: path.to_owned(), tensor, have: file_len, need });
    }
    if have > covered {
        return Err(WeightError::ExtraBytes { file: path.to_owned(), tensor: last, extra: have - covered });
    }
    Ok((tensors, metadata))
}

fn overflow(path: &Path, entry: &RawEntry) -> WeightError {
    WeightError::Overflow { file: path.to_owned(), tensor: entry.name.clone(), shape: entry.shape.clone() }
}

/// The offsets of one entry against its shape and type.
fn check_size(path: &Path, entry: &RawEntry) -> Result<(), WeightError> {
    let elements = entry.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let bits = elements.and_then(|n| n.checked_mul(entry.dtype.bits())).ok_or_else(|| overflow(path, entry))?;
    let have = entry.end.saturating_sub(entry.begin);
    if bits % 8 != 0 || bits / 8 != have || entry.end < entry.begin {
        return Err(WeightError::OffsetMismatch {
            file: path.to_owned(),
            tensor: entry.name.clone(),
            dtype: entry.dtype,
            shape: entry.shape.clone(),
            need: bits.div_ceil(8),
            have,
        });
    }
    Ok(())
}

fn metadata_texts(path: &Path, value: &Value) -> Result<BTreeMap<String, String>, WeightError> {
    let wrong =
        || WeightError::HeaderJson { file: path.to_owned(), detail: "__metadata__ is not a map of texts".to_owned() };
    match value {
        Value::Null => Ok(BTreeMap::new()),
        Value::Object(map) => {
            map.iter().map(|(k, v)| v.as_str().map(|v| (k.clone(), v.to_owned())).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

fn parse_entry(path: &Path, name: String, value: &Value) -> Result<RawEntry, WeightError> {
    let wrong = |detail: String| WeightError::TensorEntry { file: path.to_owned(), tensor: name.clone(), detail };
    let numbers = |field: &str| -> Result<Vec<u64>, WeightError> {
        let list = value.get(field).and_then(Value::as_array).ok_or_else(|| wrong(format!("{field} is no list")))?;
        let number = |v: &Value| v.as_u64().ok_or_else(|| wrong(format!("{field} holds {v}")));
        list.iter().map(number).collect()
    };
    let dtype = value.get("dtype").and_then(Value::as_str).ok_or_else(|| wrong("no dtype".to_owned()))?;
    let dtype = DType::from_name(dtype).ok_or_else(|| wrong(format!("unknown dtype {dtype}")))?;
    let shape = numbers("shape")?;
    let &[begin, end] = numbers("data_offsets")?.as_slice() else {
        return Err(wrong("data_offsets are not two numbers".to_owned()));
    };
    Ok(RawEntry { dtype, shape, begin, end, name })
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
