//! The identity of a file, by which a change is detected: size, time, inode and footer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use offpolicy_core::number::fingerprint::{fingerprint, mix};

use crate::errors::Failure;

/// Size, time in nanoseconds, inode and fingerprint of the footer. Time and inode belong to one machine. Where another
/// machine reads a copy of the file, they are None and are not compared.
pub type Described = (u64, Option<i64>, Option<u64>, u64);

/// A file at the time it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    handle: Handle,
    footer: u64,
}

/// The attributes of an open file in the file system.
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
    /// Reads the identity of a file. The fingerprint is 0 where there is no footer.
    pub fn of(file: &mut File) -> std::io::Result<Self> {
        let handle = Handle::of(file)?;
        Ok(Self { handle, footer: footer(file, handle.size)?.as_deref().map_or(0, fingerprint) })
    }

    /// Returns one number for the content of the file, which is the same for a copy of it.
    pub fn content(&self) -> u64 {
        mix(self.footer ^ mix(self.handle.size))
    }

    /// Returns the identity in the form that Python keeps.
    pub fn describe(&self) -> Described {
        (self.handle.size, Some(self.handle.modified), Some(self.handle.inode), self.footer)
    }

    /// Refuses a file that differs from its earlier description.
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

    /// Refuses an open file that is not the one with this identity.
    pub fn check_open(&self, path: &Path, file: &File) -> Result<(), Failure> {
        let handle = Handle::of(file).map_err(|error| Failure::File(path.display().to_string(), error.to_string()))?;
        Self { handle, footer: self.footer }.check(path, self.describe())
    }
}

/// Returns the metadata at the end of a Parquet file, with its length.
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
