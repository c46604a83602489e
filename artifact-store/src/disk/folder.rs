//! The worker's folder: taken by one process at a time, cleaned of what an earlier life left, and
//! measured. What is in it counts only by name, and every name is made here.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::DiskError;

/// How names of files end that are not complete. None survives a start.
pub(super) const TEMPORARY: &str = ".tmp";

/// How names of cached segment files end. They survive.
pub(crate) const SEGMENT: &str = ".segment";

/// Says that the folder is a worker's, and is locked by the one that has it.
const MARK: &str = "tributary-worker.lock";

const SPOOL: &str = "spool";
const SEGMENTS: &str = "segments";

/// The folder, for as long as this process has it.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) spool: PathBuf,
    pub(super) segments: PathBuf,
    /// Unlocked when it is closed, whichever way the process ends.
    _lock: File,
}

/// What the disk under the folder has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) total_bytes: u64,
    pub(super) free_bytes: u64,
}

/// A cached segment file of an earlier life.
#[derive(Debug)]
pub(super) struct Kept {
    /// Its name without the ending.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) size_bytes: u64,
    modified: SystemTime,
}

impl Folder {
    /// Makes the folder where there is none, and takes it.
    pub(super) fn take(top: &Path) -> Result<Self, DiskError> {
        fs::create_dir_all(top).map_err(DiskError::io(top))?;
        let mark = top.join(MARK);
        if !mark.exists() {
            // Both are emptied of what is not ours: never those of somebody else.
            for found in [SPOOL, SEGMENTS] {
                if top.join(found).symlink_metadata().is_ok() {
                    return Err(DiskError::NotOurs { folder: top.to_owned(), found });
                }
            }
        }
        let options = File::options().create(true).truncate(false).write(true).open(&mark);
        let lock = options.map_err(DiskError::io(&mark))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DiskError::InUse { folder: top.to_owned() });
            }
            Err(TryLockError::Error(e)) => return Err(DiskError::io(&mark)(e)),
        }
        let folder = Self { spool: top.join(SPOOL), segments: top.join(SEGMENTS), _lock: lock };
        for (path, found) in [(&folder.spool, SPOOL), (&folder.segments, SEGMENTS)] {
            fs::create_dir_all(path).map_err(DiskError::io(path))?;
            if !path.symlink_metadata().map_err(DiskError::io(path))?.is_dir() {
                return Err(DiskError::NotOurs { folder: top.to_owned(), found });
            }
        }
        Ok(folder)
    }

    /// Removes every artifact of an earlier life: artifacts die with their worker.
    pub(super) fn clear_spool(&self) -> Result<(), DiskError> {
        for entry in fs::read_dir(&self.spool).map_err(DiskError::io(&self.spool))? {
            remove(&entry.map_err(DiskError::io(&self.spool))?)?;
        }
        Ok(())
    }

    /// The complete segment files of an earlier life, the one that was written first first.
    /// Everything else is removed.
    pub(super) fn scan_segments(&self) -> Result<Vec<Kept>, DiskError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.segments).map_err(DiskError::io(&self.segments))? {
            let entry = entry.map_err(DiskError::io(&self.segments))?;
            let path = entry.path();
            let metadata = path.symlink_metadata().map_err(DiskError::io(&path))?;
            match segment_name(&entry.file_name()).filter(|_| metadata.is_file()) {
                Some(name) => all.push(Kept {
                    name,
                    size_bytes: metadata.len(),
                    modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    path,
                }),
                None => remove(&entry)?,
            }
        }
        all.sort_by(|a, b| (a.modified, &a.name).cmp(&(b.modified, &b.name)));
        Ok(all)
    }

    /// What the disk has.
    pub(super) fn room(&self) -> Result<Room, DiskError> {
        let stat = rustix::fs::statvfs(&self.spool)
            .map_err(|errno| DiskError::io(&self.spool)(errno.into()))?;
        Ok(Room {
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }
}

/// Every file of a folder with its length.
pub(super) fn files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        all.push((entry.path(), entry.metadata()?.len()));
    }
    Ok(all)
}

/// The name of a cached segment file, which is the hash of where it comes from.
fn segment_name(file: &OsStr) -> Option<String> {
    let name = file.to_str()?.strip_suffix(SEGMENT)?;
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (name.len() == 64 && name.bytes().all(hex)).then(|| name.to_owned())
}

fn remove(entry: &fs::DirEntry) -> Result<(), DiskError> {
    let path = entry.path();
    let kind = entry.file_type().map_err(DiskError::io(&path))?;
    let removed = if kind.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    removed.map_err(DiskError::io(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_somebody_elses_spool_is_refused_and_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let mail = top.path().join(SPOOL).join("mail");
        fs::create_dir(top.path().join(SPOOL)).unwrap();
        fs::write(&mail, "dear").unwrap();
        let refused = Folder::take(top.path());
        assert!(matches!(refused, Err(DiskError::NotOurs { found: SPOOL, .. })), "{refused:?}");
        assert_eq!(fs::read(mail).unwrap(), b"dear");
    }

    #[test]
    fn a_second_worker_in_the_same_folder_is_refused_until_the_first_is_gone() {
        let top = tempfile::tempdir().unwrap();
        let first = Folder::take(top.path()).unwrap();
        assert!(matches!(Folder::take(top.path()), Err(DiskError::InUse { .. })));
        drop(first);
        Folder::take(top.path()).unwrap();
    }

    #[test]
    fn only_complete_segments_survive_a_start() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::take(top.path()).unwrap();
        let good = format!("{}{SEGMENT}", "ab".repeat(32));
        fs::write(folder.segments.join(&good), "12345").unwrap();
        for rubbish in ["0f.tmp", "notes.txt", "ab.segment", &good.to_uppercase()] {
            fs::write(folder.segments.join(rubbish), "x").unwrap();
        }
        fs::create_dir(folder.segments.join("folder.segment")).unwrap();
        fs::write(folder.spool.join("anything"), "x").unwrap();
        folder.clear_spool().unwrap();
        let kept = folder.scan_segments().unwrap();
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].name.as_str(), kept[0].size_bytes), (&good[..64], 5));
        assert_eq!(files(&folder.segments).unwrap().len(), 1);
        assert_eq!(files(&folder.spool).unwrap(), []);
    }
}
