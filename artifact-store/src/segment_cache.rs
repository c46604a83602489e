//! Segments on local disk: fetched from the object store when first wanted, shared by all who want
//! them, pinned while in use, and dropped when artifacts need the room. Only objects of the
//! configured store are ever read. How bytes come is `download`'s business, what they mean
//! `tributary_segment`'s.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use sha2::{Digest, Sha256};
use tributary_catalog::{ObjectPath, Store, StoredFile};
use tributary_segment::{ByteSource, FileSource, SamplePages, Segment, SegmentError, SeriesIndex};

use crate::config::DiskConfig;
use crate::disk::{Disk, Pin};
use crate::error::{DiskError, SegmentFetchError};
use crate::index_memory::IndexMemory;
use crate::secret::hex;
use crate::turns::Turns;

mod download;

#[cfg(test)]
mod tests;

use download::Downloader;

/// One file of a segment, as the work names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Where it is, within the configured store.
    pub path: ObjectPath,
    /// Its length, which the object must have.
    pub size_bytes: u64,
    /// SHA-256 of its bytes, checked after a download where it is known. Segments have seals and
    /// checksums of their own, which are always checked.
    pub checksum: Option<Checksum>,
}

/// The segments of one worker. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SegmentCache {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    disk: Arc<Disk>,
    store: Store,
    read_in_place: bool,
    downloader: Downloader,
    /// Who fetches which file.
    fetching: Turns<String>,
    /// Who reads the index or the pages of which file.
    reading: Turns<ObjectPath>,
    memory: Mutex<IndexMemory<ObjectPath, Known>>,
}

/// What is kept of a file in memory.
#[derive(Clone, Debug)]
enum Known {
    Series(Arc<SeriesIndex>),
    Samples(Arc<SamplePages>),
}

/// A segment's file on this machine. It stays there until this is dropped.
#[derive(Debug)]
pub struct PinnedFile {
    path: ObjectPath,
    source: FileSource,
    disk: Arc<Disk>,
    /// Nothing where it is read in place.
    pin: Option<Pin>,
}

impl From<&StoredFile> for SegmentFile {
    fn from(file: &StoredFile) -> Self {
        let StoredFile { path, size_bytes, checksum } = file;
        Self { path: path.clone(), size_bytes: *size_bytes, checksum: Some(*checksum) }
    }
}

impl SegmentCache {
    pub(crate) fn new(disk: Arc<Disk>, store: Store, config: &DiskConfig) -> Self {
        let shared = Shared {
            downloader: Downloader::new(config.download.clone()),
            disk,
            store,
            read_in_place: config.read_in_place,
            fetching: Turns::new(),
            reading: Turns::new(),
            memory: Mutex::new(IndexMemory::new(config.index_memory_bytes)),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A segment, ready to be read: its index and pages from memory where they are known, its
    /// samples on this machine. Of two good files that do not belong together nobody knows which is
    /// the wrong one: both are thrown away and fetched anew, once.
    pub async fn segment(
        &self,
        series: &SegmentFile,
        samples: &SegmentFile,
    ) -> Result<Segment<PinnedFile>, SegmentFetchError> {
        match self.segment_as_known(series, samples).await {
            Err(SegmentFetchError::Unreadable(SegmentError::Mismatched { .. })) => {
                self.forget(series).await;
                self.forget(samples).await;
                self.segment_as_known(series, samples).await
            }
            other => other,
        }
    }

    async fn segment_as_known(
        &self,
        series: &SegmentFile,
        samples: &SegmentFile,
    ) -> Result<Segment<PinnedFile>, SegmentFetchError> {
        let index = self.index(series).await?;
        let (pages, file) = self.pages(&index, samples).await?;
        Segment::with_pages(index, pages, file).map_err(|e| unreadable(&samples.path, e))
    }

    /// The series of a segment, from memory where they are known.
    pub async fn index(&self, series: &SegmentFile) -> Result<Arc<SeriesIndex>, SegmentFetchError> {
        let known = |known| match known {
            Known::Series(index) => Some(index),
            Known::Samples(_) => None,
        };
        if let Some(index) = self.remembered(&series.path).and_then(known) {
            return Ok(index);
        }
        let _turn = self.shared.reading.turn(&series.path).await;
        if let Some(index) = self.remembered(&series.path).and_then(known) {
            return Ok(index);
        }
        let read = |file: &PinnedFile| SeriesIndex::open(file);
        let (index, _) = self.read_checked(series, read).await?;
        let index = Arc::new(index);
        let bytes = index.memory_bytes() as u64;
        self.remember(&series.path, Known::Series(Arc::clone(&index)), bytes);
        Ok(index)
    }

    /// A file of the store on this machine, of the size that was asked for.
    pub async fn file(&self, file: &SegmentFile) -> Result<PinnedFile, SegmentFetchError> {
        if self.shared.read_in_place
            && let Some(local) = self.shared.store.local_path(&file.path)
        {
            return self.in_place(file, local).await;
        }
        let name = self.name(&file.path);
        if let Some(pin) = self.pin_whole(&name, file).await {
            self.shared.disk.counters.segment_hits.one();
            return self.open(file, pin).await;
        }
        let turn = self.shared.fetching.turn(&name).await;
        if let Some(pin) = self.pin_whole(&name, file).await {
            self.shared.disk.counters.segment_hits.one();
            return self.open(file, pin).await;
        }
        self.shared.disk.counters.segment_misses.one();
        let (disk, store) = (&self.shared.disk, &self.shared.store);
        let pin = self.shared.downloader.download(disk, store, file, turn, name).await?;
        self.open(file, pin).await
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory().bytes()
    }

    async fn pages(
        &self,
        index: &Arc<SeriesIndex>,
        samples: &SegmentFile,
    ) -> Result<(Arc<SamplePages>, PinnedFile), SegmentFetchError> {
        let known = |known| match known {
            Known::Samples(pages) => Some(pages),
            Known::Series(_) => None,
        };
        if let Some(pages) = self.remembered(&samples.path).and_then(known) {
            return Ok((pages, self.file(samples).await?));
        }
        let _turn = self.shared.reading.turn(&samples.path).await;
        if let Some(pages) = self.remembered(&samples.path).and_then(known) {
            return Ok((pages, self.file(samples).await?));
        }
        let index = Arc::clone(index);
        let read = move |file: &PinnedFile| SamplePages::open(&index, file);
        let (pages, file) = self.read_checked(samples, read).await?;
        let pages = Arc::new(pages);
        let bytes = pages.memory_bytes() as u64;
        self.remember(&samples.path, Known::Samples(Arc::clone(&pages)), bytes);
        Ok((pages, file))
    }

    /// Reads something of a file, off the threads that must not block. A copy that is damaged is
    /// thrown away and fetched anew, once.
    async fn read_checked<T: Send + 'static>(
        &self,
        file: &SegmentFile,
        read: impl Fn(&PinnedFile) -> Result<T, SegmentError> + Clone + Send + 'static,
    ) -> Result<(T, PinnedFile), SegmentFetchError> {
        self.shared.disk.counters.index_misses.one();
        let mut again = true;
        loop {
            let pinned = self.file(file).await?;
            let read = read.clone();
            let (result, pinned) = blocking(move || (read(&pinned), pinned)).await;
            match result {
                Ok(value) => return Ok((value, pinned)),
                Err(SegmentError::Corrupt { .. } | SegmentError::Foreign { .. })
                    if again && pinned.pin.is_some() =>
                {
                    again = false;
                    blocking(move || pinned.distrust()).await;
                }
                Err(error) => return Err(unreadable(&file.path, error)),
            }
        }
    }

    async fn in_place(
        &self,
        file: &SegmentFile,
        local: std::path::PathBuf,
    ) -> Result<PinnedFile, SegmentFetchError> {
        let opened =
            blocking(move || FileSource::open(&local).map_err(DiskError::io(&local))).await;
        let source = match opened {
            Err(DiskError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(SegmentFetchError::Missing { path: file.path.to_string() });
            }
            other => other?,
        };
        check_size(file, source.size_bytes())?;
        self.shared.disk.counters.segment_hits.one();
        let disk = Arc::clone(&self.shared.disk);
        Ok(PinnedFile { path: file.path.clone(), source, disk, pin: None })
    }

    async fn open(&self, file: &SegmentFile, pin: Pin) -> Result<PinnedFile, SegmentFetchError> {
        let local = pin.path();
        let source =
            blocking(move || FileSource::open(&local).map_err(DiskError::io(&local))).await?;
        check_size(file, source.size_bytes())?;
        let disk = Arc::clone(&self.shared.disk);
        Ok(PinnedFile { path: file.path.clone(), source, disk, pin: Some(pin) })
    }

    /// Whoever wants this file next has it fetched anew; those who read it keep what they have.
    async fn forget(&self, file: &SegmentFile) {
        self.memory().remove(&file.path);
        let (disk, name) = (Arc::clone(&self.shared.disk), self.name(&file.path));
        let copy = {
            let mut books = disk.books();
            let Some((id, _)) = books.segments.whole(&name) else { return };
            books.segments.forget(id);
            id
        };
        disk.counters.segments_distrusted.one();
        blocking(move || disk.remove(copy)).await;
    }

    /// A whole copy of the right size. One of another size is from another world, and goes.
    async fn pin_whole(&self, name: &str, file: &SegmentFile) -> Option<Pin> {
        let disk = Arc::clone(&self.shared.disk);
        let wrong = {
            let mut books = disk.books();
            let (id, size_bytes) = books.segments.whole(name)?;
            if size_bytes == file.size_bytes {
                return Some(disk.pin(&mut books, id));
            }
            books.segments.forget(id);
            id
        };
        disk.counters.segments_distrusted.one();
        blocking(move || disk.remove(wrong)).await;
        None
    }

    /// A file's name on disk: a hash of the store and the path, so that no name of a peer's making
    /// ever gets there, and two stores do not meet.
    fn name(&self, path: &ObjectPath) -> String {
        let mut hash = Sha256::new();
        hash.update(self.shared.store.to_string());
        hash.update([0]);
        hash.update(path.as_str());
        hex(&hash.finalize())
    }

    fn remembered(&self, path: &ObjectPath) -> Option<Known> {
        let known = self.memory().get(path);
        if known.is_some() {
            self.shared.disk.counters.index_hits.one();
        }
        known
    }

    fn remember(&self, path: &ObjectPath, known: Known, bytes: u64) {
        self.memory().insert(path.clone(), known, bytes);
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, IndexMemory<ObjectPath, Known>> {
        self.shared.memory.lock().expect("nobody panics while looking something up")
    }
}

impl PinnedFile {
    /// What was read of it is damaged: nobody else is given this copy, and the next who wants the
    /// file has it fetched anew. False for a file that is read in place, which stays as it is.
    /// Blocks.
    pub fn distrust(&self) -> bool {
        let Some(pin) = &self.pin else { return false };
        if self.disk.books().segments.forget(pin.file()) {
            self.disk.counters.segments_distrusted.one();
            self.disk.remove(pin.file());
        }
        true
    }
}

impl ByteSource for PinnedFile {
    /// Where it is in the store: that is what a user knows it by.
    fn name(&self) -> &str {
        self.path.as_str()
    }

    fn size_bytes(&self) -> u64 {
        self.source.size_bytes()
    }

    fn read_range(&self, range: std::ops::Range<u64>) -> std::io::Result<Bytes> {
        self.source.read_range(range)
    }
}

fn check_size(file: &SegmentFile, found: u64) -> Result<(), SegmentFetchError> {
    if found == file.size_bytes {
        return Ok(());
    }
    let reason = format!("it has {found} bytes instead of {}", file.size_bytes);
    Err(SegmentFetchError::Corrupt { path: file.path.to_string(), reason })
}

fn unreadable(path: &ObjectPath, error: SegmentError) -> SegmentFetchError {
    match error {
        SegmentError::Io { source, .. } => {
            SegmentFetchError::Disk(DiskError::Io { path: path.as_str().into(), source })
        }
        SegmentError::Corrupt { reason, .. } | SegmentError::Foreign { reason, .. } => {
            SegmentFetchError::Corrupt { path: path.to_string(), reason }
        }
        error => SegmentFetchError::Unreadable(error),
    }
}

/// Runs what blocks where that does no harm.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Nobody cancels it: the runtime ends, and with it the process. Nobody hears an answer.
            Err(_) => std::future::pending().await,
        },
    }
}
