//! Brings a part's list of tensors and the names in its files together.
//!
//! `TensorFiles` is one file, or the shards of one part, as one set of names; `collect` finds every tensor of a part in
//! it and says what is missing or has another shape. `inspect` reports the result, `checkpoint` demands that it is whole.

use super::archive::{Archive, TensorInfo};
use super::error::WeightError;
use super::inspect::PartKind;
use super::keys::Naming;
use super::layout::TensorSpec;
use crate::diffusion::place::Place;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One or several archives with all their tensors under one roof.
#[derive(Clone, Debug)]
pub struct TensorFiles {
    /// The file, or the index of the shards.
    path: PathBuf,
    archives: Vec<Arc<Archive>>,
    index: BTreeMap<String, usize>,
}

impl TensorFiles {
    /// # Errors
    /// As [`Archive::open`].
    pub fn open(place: impl Into<Place>) -> Result<Self, WeightError> {
        let place = place.into();
        Self::from_shards(place.path(), std::slice::from_ref(&place))
    }

    /// Opens all shards; `path` is what errors about the whole set name.
    ///
    /// # Errors
    /// As [`Archive::open`], and `Duplicate` where two shards have a tensor of the same name.
    pub fn from_shards(path: &Path, shards: &[Place]) -> Result<Self, WeightError> {
        let mut files = TensorFiles { path: path.to_owned(), archives: Vec::new(), index: BTreeMap::new() };
        for shard in shards {
            let archive = Archive::open(shard)?;
            for name in archive.tensors().keys() {
                if files.index.insert(name.clone(), files.archives.len()).is_some() {
                    return Err(WeightError::Duplicate { file: shard.path().to_owned(), tensor: name.clone() });
                }
            }
            files.archives.push(Arc::new(archive));
        }
        Ok(files)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn archives(&self) -> &[Arc<Archive>] {
        &self.archives
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.index.keys().map(String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Whether any name starts so.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        let start = std::ops::Bound::Included(prefix);
        self.index
            .range::<str, _>((start, std::ops::Bound::Unbounded))
            .next()
            .is_some_and(|(n, _)| n.starts_with(prefix))
    }

    /// Whether any name contains this.
    pub fn has_part(&self, part: &str) -> bool {
        self.index.keys().any(|n| n.contains(part))
    }

    pub fn get(&self, name: &str) -> Option<&TensorInfo> {
        self.archives.get(*self.index.get(name)?)?.get(name)
    }

    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.get(name).map(|info| info.shape.as_slice())
    }

    /// Entry of a tensor by its name of ours.
    pub fn find(&self, naming: &dyn Naming, name: &str) -> Option<&TensorInfo> {
        naming.candidates(name).iter().find_map(|n| self.get(n))
    }

    fn archive_of(&self, name: &str) -> Option<&Arc<Archive>> {
        self.archives.get(*self.index.get(name)?)
    }
}

/// Where one tensor of a part lies.
#[derive(Clone, Debug)]
pub struct Entry {
    pub archive: Arc<Archive>,
    /// Its name in the archive.
    pub file_name: String,
    /// The shape its layer needs.
    pub shape: Vec<usize>,
}

/// A tensor whose shape is not what the config asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misshapen {
    pub file_name: String,
    pub expected: Vec<usize>,
    pub found: Vec<usize>,
}

/// What of a part was found.
#[derive(Clone, Debug)]
pub struct Collected {
    pub part: PartKind,
    pub path: PathBuf,
    pub entries: BTreeMap<String, Entry>,
    /// Names of ours that the files lack.
    pub missing: Vec<String>,
    pub misshapen: Vec<Misshapen>,
}

impl Collected {
    pub fn values(&self) -> u64 {
        self.entries.values().map(|e| e.shape.iter().fold(1u64, |n, d| n.saturating_mul(*d as u64))).sum()
    }

    /// Bytes that the part's tensors take in their files.
    pub fn stored_bytes(&self) -> u64 {
        let size = |e: &Entry| e.archive.get(&e.file_name).map_or(0, |info| info.end.saturating_sub(info.start));
        self.entries.values().map(size).sum()
    }

    /// # Errors
    /// `Shape` or `MissingTensors`, naming the first, where the part is not whole; `NotFloat` for a tensor of a type
    /// that holds no weights.
    pub fn require_whole(&self) -> Result<(), WeightError> {
        if let Some(wrong) = self.misshapen.first() {
            return Err(WeightError::Shape {
                file: self.path.clone(),
                tensor: wrong.file_name.clone(),
                expected: wrong.expected.clone(),
                found: wrong.found.clone(),
            });
        }
        if let Some(first) = self.missing.first() {
            return Err(WeightError::MissingTensors {
                file: self.path.clone(),
                part: self.part,
                tensor: first.clone(),
                count: self.missing.len(),
            });
        }
        for entry in self.entries.values() {
            if let Some(info) = entry.archive.get(&entry.file_name)
                && !info.dtype.is_weight()
            {
                return Err(WeightError::NotFloat {
                    file: entry.archive.path().to_owned(),
                    tensor: entry.file_name.clone(),
                    dtype: info.dtype,
                });
            }
        }
        Ok(())
    }
}

/// Finds every tensor of `specs`. A shape may differ by trailing ones: a linear layer kept as a 1×1 convolution.
pub fn collect(part: PartKind, files: &TensorFiles, specs: &[TensorSpec], naming: &dyn Naming) -> Collected {
    let mut out = Collected {
        part,
        path: files.path().to_owned(),
        entries: BTreeMap::new(),
        missing: Vec::new(),
        misshapen: Vec::new(),
    };
    for spec in specs {
        let found = naming.candidates(&spec.name).into_iter().find_map(|n| Some((files.archive_of(&n)?, n)));
        let Some((archive, file_name)) = found else {
            out.missing.push(spec.name.clone());
            continue;
        };
        let shape = archive.get(&file_name).map(|info| info.shape.as_slice()).unwrap_or_default();
        if without_trailing_ones(shape) != without_trailing_ones(&spec.shape) {
            let found = shape.to_vec();
            out.misshapen.push(Misshapen { file_name: file_name.clone(), expected: spec.shape.clone(), found });
        }
        let entry = Entry { archive: archive.clone(), file_name, shape: spec.shape.clone() };
        out.entries.insert(spec.name.clone(), entry);
    }
    out
}

fn without_trailing_ones(shape: &[usize]) -> &[usize] {
    let n = shape.iter().rposition(|d| *d != 1).map_or(0, |last| last + 1);
    shape.get(..n).unwrap_or(shape)
}
