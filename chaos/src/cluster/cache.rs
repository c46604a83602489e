//! A worker's cache directory: on a small disk of its own in memory where the machine permits, so that
//! it can be filled up without harm to anybody else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::error::ChaosError;

/// The size of the disk: what a worker always leaves free, and something to work with.
const SIZE: &str = "size=160m";

/// What fills the disk up.
const FILLER: &str = "somebody-else";

/// A cache directory. Gone, its disk is too.
#[derive(Debug)]
pub struct CacheDir {
    disk: PathBuf,
    is_mounted: bool,
}

impl CacheDir {
    /// Makes it.
    pub(super) fn new(disk: PathBuf) -> Result<Self, ChaosError> {
        fs::create_dir_all(&disk).map_err(ChaosError::file(&disk))?;
        let size = std::ffi::CString::new(SIZE).ok();
        let mounted = mount("tmpfs", &disk, "tmpfs", MountFlags::empty(), size.as_deref());
        Ok(Self { disk, is_mounted: mounted.is_ok() })
    }

    /// The folder that the worker is given.
    pub fn path(&self) -> PathBuf {
        self.disk.join("cache")
    }

    /// Whether it has a disk of its own, which can be filled.
    pub fn can_be_filled(&self) -> bool {
        self.is_mounted
    }

    /// Leaves no more than this free on its disk. Gives whether that could be done.
    pub fn fill(&self, leave_bytes: u64) -> bool {
        let Ok(room) = rustix::fs::statvfs(&self.disk) else { return false };
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let Some(size) = free.checked_sub(leave_bytes).filter(|size| *size > 0) else {
            return true;
        };
        let path = self.disk.join(FILLER);
        let filled = File::options().create(true).append(true).open(path).and_then(|file| {
            let at = file.metadata()?.len();
            Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), at, size)?)
        });
        self.is_mounted && filled.is_ok()
    }

    /// Gives back what was taken.
    pub fn empty(&self) {
        // There may be none.
        drop(fs::remove_file(self.disk.join(FILLER)));
    }

    /// All files in it, with their sizes.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        walk(&self.path(), &mut files);
        files
    }
}

impl Drop for CacheDir {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = unmount(&self.disk, UnmountFlags::DETACH);
        }
    }
}

fn walk(folder: &Path, files: &mut Vec<(PathBuf, u64)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(about) if about.is_dir() => walk(&entry.path(), files),
            Ok(about) => files.push((entry.path(), about.len())),
            // It was removed at this moment.
            Err(_) => {}
        }
    }
}
