//! The worker's folder: taken by one process at a time, cleaned of what an earlier life left, and
//! measured. What is in it counts only by name, and every name is made here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::DiskError;
use crate::secret;

/// How names of files end that are not complete. None survives a start.
pub(super) const TEMPORARY: &str = ".tmp";

/// How names of cached segment files end. They survive.
const SEGMENT: &str = ".segment";

/// Length of the hash that says where a cached file comes from.
const SOURCE_DIGITS: usize = 64;

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
    /// The hash of where it comes from.
    pub(super) source: String,
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
            let entry = entry.map_err(DiskError::io(&self.spool))?;
            let kind = entry.file_type().map_err(DiskError::io(&entry.path()))?;
            remove(&entry.path(), kind.is_dir())?;
        }
        Ok(())
    }

    /// The complete segment files of an earlier life, one of each, the one that was written first
    /// first. Everything else is removed.
    pub(super) fn scan_segments(&self) -> Result<Vec<Kept>, DiskError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.segments).map_err(DiskError::io(&self.segments))? {
            let entry = entry.map_err(DiskError::io(&self.segments))?;
            let path = entry.path();
            let metadata = path.symlink_metadata().map_err(DiskError::io(&path))?;
            match segment_source(&entry.file_name()).filter(|_| metadata.is_file()) {
                Some(source) => all.push(Kept {
                    source,
                    size_bytes: metadata.len(),
                    modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    path,
                }),
                None => remove(&path, metadata.is_dir())?,
            }
        }
        // Of two copies the older one was given up, and somebody had it open to the end.
        all.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        let mut newest = BTreeSet::new();
        let mut kept = Vec::new();
        for copy in all.into_iter().rev() {
            if newest.insert(copy.source.clone()) {
                kept.push(copy);
            } else {
                remove(&copy.path, false)?;
            }
        }
        kept.reverse();
        Ok(kept)
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

/// A name for a cached file: where it comes from, and something that no other copy has.
pub(crate) fn name_segment(source: &str) -> String {
    format!("{source}-{}", secret::file_name(SEGMENT))
}

/// Where a cached file comes from, by its name.
fn segment_source(file: &OsStr) -> Option<String> {
    let (source, copy) = file.to_str()?.strip_suffix(SEGMENT)?.split_once('-')?;
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let named = source.len() == SOURCE_DIGITS && copy.len() == 32;
    (named && source.bytes().chain(copy.bytes()).all(hex)).then(|| source.to_owned())
}

fn remove(path: &Path, is_folder: bool) -> Result<(), DiskError> {
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(DiskError::io(path))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn only_one_complete_copy_of_each_segment_survives_a_start() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::take(top.path()).unwrap();
        let source = "ab".repeat(32);
        let (older, newer) = (name_segment(&source), name_segment(&source));
        let put = |name: &str, text: &str, age: u64| {
            let path = folder.segments.join(name);
            fs::write(&path, text).unwrap();
            let modified = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        };
        put(&older, "123", 10);
        put(&newer, "12345", 5);
        put(&name_segment(&"cd".repeat(32)), "1", 20);
        for rubbish in ["0f.tmp", "notes.txt", "ab.segment", &newer.to_uppercase()] {
            put(rubbish, "x", 0);
        }
        fs::create_dir(folder.segments.join(name_segment(&source))).unwrap();
        fs::write(folder.spool.join("anything"), "x").unwrap();
        folder.clear_spool().unwrap();
        let kept = folder.scan_segments().unwrap();
        let kept: Vec<_> = kept.iter().map(|kept| (&kept.source[..2], kept.size_bytes)).collect();
        assert_eq!(kept, [("cd", 1), ("ab", 5)], "the older first");
        assert_eq!(files(&folder.segments).unwrap().len(), 2);
        assert_eq!(files(&folder.spool).unwrap(), []);
    }
}
