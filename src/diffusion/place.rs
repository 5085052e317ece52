//! Where a model's files lie: on disk, or inside the program. Everything that opens a checkpoint goes through [`Place`], so that
//! the built-in model is read by the same code as a folder on disk, and differs only in where its bytes come from.
//!
//! A file is never mapped into memory: a mapped file that is cut short during a run kills the process, a read of it is an
//! error. [`OpenFile`] can tell whether the file is still the one that was opened.

use std::fs::{self, File, Metadata};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder whose files are part of the program.
#[derive(Debug)]
pub struct BuiltIn {
    /// How the folder is called, and the first part of every path in it.
    pub name: &'static str,
    /// Names below the folder, with `/` between parts, and contents.
    pub files: &'static [(&'static str, &'static [u8])],
}

impl PartialEq for BuiltIn {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for BuiltIn {}

impl Hash for BuiltIn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl BuiltIn {
    fn file(&self, path: &Path) -> Option<&'static [u8]> {
        let below = path.strip_prefix(self.name).ok()?;
        self.files.iter().find(|(name, _)| Path::new(name) == below).map(|(_, bytes)| *bytes)
    }
}

/// A file or folder, which need not be there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Disk(PathBuf),
    /// The path begins with the folder's name.
    BuiltIn(&'static BuiltIn, PathBuf),
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Place::Disk(path.to_owned())
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        Place::Disk(path.clone())
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}

impl From<&'static BuiltIn> for Place {
    fn from(folder: &'static BuiltIn) -> Self {
        Place::BuiltIn(folder, folder.name.into())
    }
}

impl Place {
    /// What messages call it. Only of a place on disk it is a path that others can open.
    pub fn path(&self) -> &Path {
        match self {
            Place::Disk(path) | Place::BuiltIn(_, path) => path,
        }
    }

    /// The path, of a place on disk.
    pub fn on_disk(&self) -> Option<&Path> {
        match self {
            Place::Disk(path) => Some(path),
            Place::BuiltIn(..) => None,
        }
    }

    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        self.at(self.path().join(name))
    }

    pub fn with_extension(&self, ending: &str) -> Self {
        self.at(self.path().with_extension(ending))
    }

    /// The folder that it lies in; `None` for a built-in folder itself.
    pub fn parent(&self) -> Option<Self> {
        let parent = self.path().parent()?;
        let outside = matches!(self, Place::BuiltIn(folder, _) if !parent.starts_with(folder.name));
        (!outside).then(|| self.at(parent.to_owned()))
    }

    fn at(&self, path: PathBuf) -> Self {
        match self {
            Place::Disk(_) => Place::Disk(path),
            Place::BuiltIn(folder, _) => Place::BuiltIn(folder, path),
        }
    }

    pub fn is_dir(&self) -> bool {
        match self {
            Place::Disk(path) => path.is_dir(),
            Place::BuiltIn(folder, path) => path.strip_prefix(folder.name).is_ok_and(|below| {
                folder.files.iter().any(|(name, _)| Path::new(name) != below && Path::new(name).starts_with(below))
            }),
        }
    }

    pub fn is_file(&self) -> bool {
        match self {
            Place::Disk(path) => path.is_file(),
            Place::BuiltIn(folder, path) => folder.file(path).is_some(),
        }
    }

    /// A whole text file.
    ///
    /// # Errors
    /// As `std::fs::read_to_string`.
    pub fn read_to_string(&self) -> io::Result<String> {
        match self {
            Place::Disk(path) => fs::read_to_string(path),
            Place::BuiltIn(folder, path) => {
                let bytes = folder.file(path).ok_or(io::ErrorKind::NotFound)?;
                let text = std::str::from_utf8(bytes);
                text.map(str::to_owned).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// The files in a folder, without those in folders below.
    ///
    /// # Errors
    /// As `std::fs::read_dir`.
    pub fn files(&self) -> io::Result<Vec<Place>> {
        match self {
            Place::Disk(path) => {
                let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| Place::Disk(entry.path())));
                let mut files = entries.collect::<io::Result<Vec<Place>>>()?;
                files.retain(Place::is_file);
                Ok(files)
            }
            Place::BuiltIn(folder, path) => {
                let all = folder.files.iter().map(|(name, _)| Path::new(folder.name).join(name));
                Ok(all.filter(|file| file.parent() == Some(path)).map(|file| self.at(file)).collect())
            }
        }
    }
}

/// What must not change while a file is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and inode, where the system has them: a replaced file has another one.
    node: Option<(u64, u64)>,
}

impl Identity {
    fn of(meta: &Metadata) -> Self {
        Identity { len: meta.len(), modified: meta.modified().ok(), node: node(meta) }
    }
}

#[cfg(unix)]
fn node(meta: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn node(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(unix)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// An open file, read by position.
#[derive(Debug)]
pub struct OpenFile(Source);

#[derive(Debug)]
enum Source {
    Disk { path: PathBuf, file: File, identity: Identity },
    BuiltIn(&'static [u8]),
}

impl OpenFile {
    /// # Errors
    /// `IsADirectory` for a folder, `Unsupported` for what is no regular file, and those of `File::open`.
    pub fn open(place: &Place) -> io::Result<Self> {
        let path = match place {
            Place::Disk(path) => path,
            Place::BuiltIn(folder, path) => {
                return Ok(OpenFile(Source::BuiltIn(folder.file(path).ok_or(io::ErrorKind::NotFound)?)));
            }
        };
        // A pipe would keep its reader waiting for ever, a device would never end.
        if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "no regular file"));
        }
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "a folder, not a file"));
        }
        Ok(OpenFile(Source::Disk { path: path.clone(), file, identity: Identity::of(&meta) }))
    }

    /// Its length in bytes when it was opened.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Source::Disk { identity, .. } => identity.len,
            Source::BuiltIn(bytes) => bytes.len() as u64,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset`; false where the file ends before.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_full(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<bool> {
        while !buffer.is_empty() {
            match self.read_some(buffer, offset) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    buffer = buffer.split_at_mut(n.min(buffer.len())).1;
                    offset = offset.saturating_add(n as u64);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.0 {
            Source::Disk { file, .. } => read_some(file, buffer, offset),
            Source::BuiltIn(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
                for (to, from) in buffer.iter_mut().zip(rest) {
                    *to = *from;
                }
                Ok(rest.len().min(buffer.len()))
            }
        }
    }

    /// Whether the file under its path is still the one that was opened, by length, time and identity.
    ///
    /// # Errors
    /// Where the file cannot be asked.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        let Source::Disk { path, file, identity } = &self.0 else { return Ok(true) };
        let open = file.metadata()?;
        // Asked by path as well: a file replaced by a rename leaves the open one as it was.
        let on_disk = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(e),
        };
        Ok(Identity::of(&open) == *identity && Identity::of(&on_disk) == *identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static FOLDER: BuiltIn = BuiltIn {
        name: "Inside",
        files: &[
            ("index.json", b"{}"),
            ("unet/config.json", b"{\"a\":1}"),
            ("unet/weights", &[1, 2, 3]),
            ("odd", b"\xff"),
        ],
    };

    #[test]
    fn a_built_in_folder_answers_as_one_on_disk_does() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("unet")).unwrap();
        for (name, bytes) in FOLDER.files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let (disk, inside) = (Place::from(dir.path()), Place::from(&FOLDER));
        for name in ["index.json", "unet", "unet/config.json", "unet/weights", "unet/gone", "gone/config.json", "odd"] {
            let (disk, inside) = (disk.join(name), inside.join(name));
            assert_eq!((disk.is_dir(), disk.is_file()), (inside.is_dir(), inside.is_file()), "{name}");
            assert_eq!(disk.read_to_string().ok(), inside.read_to_string().ok(), "{name}");
            let names = |place: &Place| {
                let files = place.files().unwrap_or_default();
                let mut names: Vec<_> = files.iter().map(|file| file.path().file_name().unwrap().to_owned()).collect();
                names.sort();
                names
            };
            assert_eq!(names(&disk), names(&inside), "{name}");
            let read = |place: &Place, length: usize, offset: u64| {
                let mut buffer = vec![0; length];
                let file = OpenFile::open(place).ok()?;
                Some((file.read_full(&mut buffer, offset).unwrap(), buffer, file.len(), file.is_unchanged().unwrap()))
            };
            for (length, offset) in [(2, 0), (2, 1), (2, 2), (1, 9)] {
                let (on_disk, inside) = (read(&disk, length, offset), read(&inside, length, offset));
                assert_eq!(on_disk.is_some(), inside.is_some(), "{name}");
                if on_disk.as_ref().is_some_and(|(whole, ..)| *whole) {
                    assert_eq!(on_disk, inside, "{name} {length} {offset}");
                }
            }
        }
        assert!(inside.is_dir() && !inside.is_file());
    }

    #[test]
    fn nothing_lies_outside_a_built_in_folder() {
        let inside = Place::from(&FOLDER);
        assert_eq!(inside.parent(), None);
        assert_eq!(inside.join("unet").parent(), Some(inside.clone()));
        assert!(!inside.join("/etc/hosts").is_file() && !inside.join("../Cargo.toml").is_file());
        assert!(!inside.join("/").is_dir());
        assert_eq!((inside.on_disk(), inside.path()), (None, Path::new("Inside")));
    }
}
