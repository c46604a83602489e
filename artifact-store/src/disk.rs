//! The folder on disk and the books about it, kept together: who takes room has what yields removed
//! first, who removes a file has it taken off the books. Knows files, not what is in them: `spool`
//! and `segment_cache` keep their tables here, under the same lock, so that nothing is ever handed
//! out that is being removed.

mod folder;

pub(crate) use folder::name_segment;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::{fs, io};

use core_workcoord::moment::Moment;
use tokio::sync::mpsc;
use tracing::{error, warn};

use crate::artifact_table::{ArtifactTable, LostArtifact};
use crate::config::DiskConfig;
use crate::disk_budget::{Budget, FileId, Kind, Limits, Refused};
use crate::error::DiskError;
use crate::metrics::Counters;
use crate::retention::Retention;
use crate::secret;
use crate::segment_table::SegmentTable;
use folder::Folder;

/// The disk of one worker.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: Folder,
    books: Mutex<Books>,
    free_bytes: AtomicU64,
    lost: mpsc::UnboundedSender<LostArtifact>,
    pub(crate) counters: Counters,
}

/// Everything that is known of the files.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) budget: Budget,
    pub(crate) artifacts: ArtifactTable,
    pub(crate) segments: SegmentTable,
    paths: BTreeMap<FileId, PathBuf>,
    /// Files that could not be removed; tried again with every sweep.
    stuck: Vec<(FileId, PathBuf)>,
}

/// A file that is open for somebody, and therefore stays.
#[derive(Debug)]
pub(crate) struct Pin {
    disk: Arc<Disk>,
    file: FileId,
}

impl Disk {
    /// Takes the folder: removes what an earlier life left, and books what it keeps. Blocks.
    pub(crate) fn open(
        config: &DiskConfig,
        lost: mpsc::UnboundedSender<LostArtifact>,
    ) -> Result<Arc<Self>, DiskError> {
        config.check()?;
        let folder = Folder::take(&config.folder)?;
        let room = folder.room()?;
        let limits = Limits {
            capacity_bytes: config.capacity_bytes.unwrap_or(room.total_bytes),
            high_percent: config.high_percent,
            low_percent: config.low_percent,
            floor_percent: config.artifact_floor_percent,
            keep_free_bytes: config.keep_free_bytes,
        };
        let retention =
            Retention { ttl: config.artifact_ttl, ttl_after_ack: config.artifact_ttl_after_ack };
        folder.clear_spool()?;
        let mut books = Books {
            budget: Budget::new(limits),
            artifacts: ArtifactTable::new(retention),
            segments: SegmentTable::default(),
            paths: BTreeMap::new(),
            stuck: Vec::new(),
        };
        for kept in folder.scan_segments()? {
            let file = books.budget.found(kept.size_bytes);
            books.segments.found(kept.source, file, kept.size_bytes);
            books.paths.insert(file, kept.path);
        }
        let disk = Arc::new(Self {
            folder,
            books: Mutex::new(books),
            free_bytes: AtomicU64::new(0),
            lost,
            counters: Counters::default(),
        });
        disk.look_at_free_space();
        Ok(disk)
    }

    /// The books, for a moment. Nothing that waits or touches the disk belongs under this lock.
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("nobody panics while keeping the books")
    }

    /// A new file that is about to be written: it is not on disk yet.
    pub(crate) fn begin(&self, kind: Kind) -> (FileId, PathBuf) {
        let path = match kind {
            Kind::Artifact => self.folder.spool.join(secret::file_name(folder::TEMPORARY)),
            Kind::Segment => self.folder.segments.join(secret::file_name(folder::TEMPORARY)),
        };
        let mut books = self.books();
        let file = books.budget.begin(kind);
        books.paths.insert(file, path.clone());
        (file, path)
    }

    /// Room for so many more bytes of a file that is being written; what yields is gone when this
    /// returns. Blocks.
    pub(crate) fn grow(&self, file: FileId, by: u64) -> Result<(), DiskError> {
        let mut books = self.books();
        match books.budget.grow(file, by) {
            Ok(victims) => {
                self.evict(books, &victims);
                Ok(())
            }
            Err(Refused) => {
                drop(books);
                self.counters.budget_full.one();
                Err(DiskError::Full { wanted_bytes: by })
            }
        }
    }

    /// The disk itself is full: whatever costs no work yields. True where something did, so that
    /// trying again makes sense. Blocks.
    pub(crate) fn relieve(&self, wanted_bytes: u64) -> bool {
        /// Small steps would only meet the next full disk.
        const STEP_BYTES: u64 = 8 << 20;
        self.counters.disk_full.one();
        let mut books = self.books();
        let victims = books.budget.relieve(wanted_bytes.max(STEP_BYTES));
        self.evict(books, &victims);
        self.look_at_free_space();
        !victims.is_empty()
    }

    /// Moves a file that was begun to its final name. Blocks.
    pub(crate) fn rename(&self, file: FileId, name: &str) -> Result<PathBuf, DiskError> {
        let from = self.books().paths.get(&file).cloned().expect("the caller writes it");
        let to = from.with_file_name(name);
        fs::rename(&from, &to).map_err(DiskError::io(&from))?;
        self.books().paths.insert(file, to.clone());
        Ok(to)
    }

    /// Takes a file off the books and off the disk; one that is open goes when it is closed. Its
    /// owner has forgotten it already. Blocks.
    pub(crate) fn remove(&self, file: FileId) {
        let mut books = self.books();
        if books.budget.remove(file) {
            let path = books.paths.remove(&file);
            drop(books);
            self.unlink(path.map(|path| (file, path)).into_iter().collect());
        }
    }

    /// Keeps a file from yielding, under the lock that found it.
    pub(crate) fn pin(self: &Arc<Self>, books: &mut Books, file: FileId) -> Pin {
        books.budget.pin(file);
        Pin { disk: Arc::clone(self), file }
    }

    /// Removes what expired, tries again what could not be removed, and looks at the disk. To be
    /// called every second or so. Blocks.
    pub(crate) fn sweep(&self, now: Moment) {
        let mut books = self.books();
        books.budget.advance(now);
        let due = books.artifacts.expire(now);
        let stuck = std::mem::take(&mut books.stuck);
        for (file, standing) in &due.restand {
            books.budget.stand(*file, *standing);
        }
        drop(books);
        self.counters.artifacts_expired.add(due.expired);
        due.unclaimed.into_iter().for_each(|file| self.remove(file));
        self.unlink(stuck);
        self.tell(due.lost);
        self.look_at_free_space();
    }

    /// What the disk had free when it was last asked.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Compares the books with what is on disk, file by file. For tests and doubts: nothing may
    /// be written meanwhile. Blocks.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let books = self.books();
        let mut on_disk = BTreeMap::new();
        for path in [&self.folder.spool, &self.folder.segments] {
            on_disk.extend(folder::files(path).map_err(|e| e.to_string())?);
        }
        let believed = books.paths.values().chain(books.stuck.iter().map(|(_, path)| path));
        let believed: Vec<_> = believed.collect();
        if let Some(path) = on_disk.keys().find(|path| !believed.contains(path)) {
            return Err(format!("{} is on no book", path.display()));
        }
        if let Some(path) = believed.iter().find(|path| !on_disk.contains_key(**path)) {
            return Err(format!("{} is not on disk", path.display()));
        }
        let usage = books.budget.usage();
        let believed = usage.spool_bytes + usage.cache_bytes + usage.leaving_bytes;
        let found: u64 = on_disk.values().sum();
        if believed != found {
            return Err(format!("{believed} bytes believed, {found} found"));
        }
        Ok(())
    }

    /// Removes victims that the budget has let go: their owners forget them under the lock that
    /// chose them, then the files go.
    fn evict(&self, mut books: MutexGuard<'_, Books>, victims: &[FileId]) {
        let mut files = Vec::new();
        let mut lost = Vec::new();
        for file in victims {
            let forgotten = books.artifacts.forget(*file);
            if forgotten.is_empty() && books.segments.forget(*file) {
                self.counters.segments_evicted.one();
            }
            for (artifact, was_waited_for) in forgotten {
                if was_waited_for {
                    self.counters.artifacts_lost.one();
                    lost.push(artifact);
                } else {
                    self.counters.artifacts_evicted.one();
                }
            }
            files.extend(books.paths.remove(file).map(|path| (*file, path)));
        }
        drop(books);
        self.unlink(files);
        self.tell(lost);
    }

    fn unlink(&self, files: Vec<(FileId, PathBuf)>) {
        for (file, path) in files {
            match fs::remove_file(&path) {
                Ok(()) => self.books().budget.gone(file),
                Err(e) if e.kind() == io::ErrorKind::NotFound => self.books().budget.gone(file),
                Err(e) => {
                    warn!(path = %path.display(), error = %e, "file can't be removed");
                    self.books().stuck.push((file, path));
                }
            }
        }
    }

    fn tell(&self, lost: Vec<LostArtifact>) {
        for artifact in lost {
            // Nobody listens any more once the worker is on its way out.
            _ = self.lost.send(artifact);
        }
    }

    fn look_at_free_space(&self) {
        match self.folder.room() {
            Ok(room) => {
                self.free_bytes.store(room.free_bytes, Ordering::Relaxed);
                let mut books = self.books();
                let victims = books.budget.disk_has_free(room.free_bytes);
                self.evict(books, &victims);
            }
            Err(e) => error!(error = %e, "the disk does not say what is free"),
        }
    }
}

impl Pin {
    /// Which file.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Where it is. It stays there for as long as it is pinned.
    pub(crate) fn path(&self) -> PathBuf {
        self.disk.books().paths.get(&self.file).cloned().expect("a pinned file stays")
    }
}

impl Drop for Pin {
    /// Removes the file where its owner wanted that already: rare, and one file only, so that it
    /// is done right here.
    fn drop(&mut self) {
        let mut books = self.disk.books();
        if books.budget.unpin(self.file) {
            let path = books.paths.remove(&self.file);
            drop(books);
            self.disk.unlink(path.map(|path| (self.file, path)).into_iter().collect());
        }
    }
}

/// Writes all bytes, and where the disk is full asks for relief as long as that helps. Blocks.
pub(crate) fn write_all(
    to: &mut impl io::Write,
    mut bytes: &[u8],
    path: &Path,
    mut relieve: impl FnMut(u64) -> bool,
) -> Result<(), DiskError> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(DiskError::io(path)(io::ErrorKind::WriteZero.into())),
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if crate::error::is_full(&e) => {
                let wanted_bytes = bytes.len() as u64;
                if !relieve(wanted_bytes) {
                    return Err(DiskError::Full { wanted_bytes });
                }
            }
            Err(e) => return Err(DiskError::io(path)(e)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one byte at a time, and is full now and then.
    struct Tight {
        taken: Vec<u8>,
        room: usize,
    }

    impl io::Write for Tight {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= 1;
            self.taken.push(bytes[0]);
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own_and_says_how_much_was_missing() {
        let mut disk = Tight { taken: Vec::new(), room: 3 };
        let mut asked = 0;
        let failed = write_all(&mut disk, b"abcdef", Path::new("x"), |_| {
            asked += 1;
            false
        });
        assert!(matches!(failed, Err(DiskError::Full { wanted_bytes: 3 })), "{failed:?}");
        assert_eq!((asked, disk.taken.as_slice()), (1, &b"abc"[..]));
    }
}
