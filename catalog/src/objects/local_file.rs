//! A file of this machine on its way into a store: measured first, because a segment's name follows
//! from its content, then moved. In a folder's store moving is a rename, made durable.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use core_workcoord::artifact::Checksum;
use sha2::{Digest, Sha256};

use crate::error::ObjectError;
use crate::object_path::ObjectPath;

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// A file of this machine whose content is known and does not change any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalFile {
    pub(super) path: PathBuf,
    /// Its length.
    pub size_bytes: u64,
    /// SHA-256 of its bytes.
    pub checksum: Checksum,
}

impl LocalFile {
    /// Reads a file to its end. Blocks.
    pub fn measure(path: &Path) -> Result<Self, ObjectError> {
        let (size_bytes, checksum) = read_through(path)
            .map_err(|source| ObjectError::LocalFile { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), size_bytes, checksum })
    }

    /// Moves it to its place in a store's folder. Blocks. False where the folder is on another disk,
    /// so that it must be copied.
    pub(super) fn rename_into(&self, top: &Path, path: &ObjectPath) -> Result<bool, ObjectError> {
        let target = top.join(path.as_str());
        let moved = self.rename_to(top, &target);
        moved.map_err(|source| ObjectError::LocalFile { path: target, source })
    }

    fn rename_to(&self, top: &Path, target: &Path) -> io::Result<bool> {
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        // Its age counts from now: cleaning takes files that nobody names and that are old, and
        // this one is named soon.
        File::options().write(true).open(&self.path)?.set_modified(SystemTime::now())?;
        match fs::rename(&self.path, target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => return Ok(false),
            other => other?,
        }
        sync_folders(folder, top)?;
        Ok(true)
    }
}

fn read_through(path: &Path) -> io::Result<(u64, Checksum)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut size_bytes = 0;
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => return Ok((size_bytes, Checksum(hash.finalize().into()))),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&chunk[..read]);
        size_bytes += read as u64;
    }
}

/// A name is durable once its folder is, and that folder's name once the one above it is.
#[cfg(unix)]
fn sync_folders(folder: &Path, top: &Path) -> io::Result<()> {
    for folder in folder.ancestors().take_while(|folder| folder.starts_with(top)) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn sync_folders(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}
