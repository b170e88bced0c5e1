//! What tells whether a file is still the one that it was: size, time, inode and footer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use offpolicy_core::number::fingerprint::{fingerprint, mix};

use crate::errors::Failure;

/// Size, time in nanoseconds, inode and fingerprint of the footer. Time and inode are those of one machine: where another one
/// reads a copy of the file, they are None and not compared.
pub type Described = (u64, Option<i64>, Option<u64>, u64);

/// A file at the time it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    handle: Handle,
    footer: u64,
}

/// What the system knows of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handle {
    size: u64,
    modified: i64,
    inode: u64,
}

impl Handle {
    fn of(file: &File) -> std::io::Result<Self> {
        let found = file.metadata()?;
        let since = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let inode = 0;
        Ok(Self { size: found.len(), modified, inode })
    }
}

impl Identity {
    /// Reads it; a file without a footer has none.
    pub fn of(file: &mut File) -> std::io::Result<Self> {
        let handle = Handle::of(file)?;
        Ok(Self { handle, footer: footer(file, handle.size)?.as_deref().map_or(0, fingerprint) })
    }

    /// One number for what is in the file, which a copy of it has too.
    pub fn content(&self) -> u64 {
        mix(self.footer ^ mix(self.handle.size))
    }

    /// For Python.
    pub fn describe(&self) -> Described {
        (self.handle.size, Some(self.handle.modified), Some(self.handle.inode), self.footer)
    }

    /// Refuses a file that is not as it was described before.
    pub fn check(&self, path: &Path, before: Described) -> Result<(), Failure> {
        let (size, modified, inode, footer) = before;
        let Handle { size: now, .. } = self.handle;
        let why = if size != now {
            format!("it had {size} bytes and has {now}")
        } else if footer != self.footer {
            "its footer is another".to_owned()
        } else if inode.is_some_and(|inode| inode != self.handle.inode) {
            "another file has taken its place".to_owned()
        } else if modified.is_some_and(|modified| modified != self.handle.modified) {
            "it was written to in between".to_owned()
        } else {
            return Ok(());
        };
        Err(Failure::Changed(path.display().to_string(), why))
    }

    /// Refuses an open file that is not the one that this was read of.
    pub fn check_open(&self, path: &Path, file: &File) -> Result<(), Failure> {
        let handle = Handle::of(file).map_err(|error| Failure::File(path.display().to_string(), error.to_string()))?;
        Self { handle, footer: self.footer }.check(path, self.describe())
    }
}

/// The metadata at the end of a Parquet file, and its length.
fn footer(file: &mut File, size: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut end = [0; 8];
    if size < end.len() as u64 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(size - 8))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, ..] = end;
    let length = u64::from(u32::from_le_bytes([a, b, c, d])) + 8;
    if length > size {
        return Ok(None);
    }
    let mut footer = vec![];
    file.seek(SeekFrom::Start(size - length))?;
    file.take(length).read_to_end(&mut footer)?;
    Ok(Some(footer))
}
