//! One object of the store onto the disk: several ranges at once, each asked for again after a
//! failure, with pauses that grow. Who stops halfway leaves what is there, and the next goes on.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use core_workcoord::reconnect;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time;
use tracing::debug;
use tributary_catalog::{ObjectError, ObjectPath, Store};

use super::{SegmentFile, blocking};
use crate::config::DownloadConfig;
use crate::disk::{self, Disk, Pin};
use crate::disk_budget::{Kind, Standing};
use crate::error::{DiskError, SegmentFetchError};
use crate::segment_table::Partial;
use crate::turns::Turn;

/// Bytes read at once to hash a file.
const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Downloader {
    config: Arc<DownloadConfig>,
    requests: Arc<Semaphore>,
}

/// A download under way. Dropped before its end, what it has is kept for the next.
struct Download {
    /// Held to the very end, in the background too: nobody else writes this file.
    _turn: Turn<String>,
    disk: Arc<Disk>,
    name: String,
    partial: Option<Partial>,
}

impl Downloader {
    pub(super) fn new(config: DownloadConfig) -> Self {
        let requests = Arc::new(Semaphore::new(config.requests_at_once));
        Self { config: Arc::new(config), requests }
    }

    /// Fetches a file that nobody else fetches at the same time.
    pub(super) async fn download(
        &self,
        disk: &Arc<Disk>,
        store: &Store,
        file: &SegmentFile,
        turn: Turn<String>,
        name: String,
    ) -> Result<Pin, SegmentFetchError> {
        let begun = Instant::now();
        let part_bytes = self.config.part_bytes;
        let mut download = Download::start(disk, turn, name, file.size_bytes, part_bytes).await?;
        if let Err(error) = self.fetch_parts(&mut download, store, file).await {
            if !error.is_retryable() {
                // There is nothing to go on with.
                blocking(move || download.discard()).await;
            }
            return Err(error);
        }
        let expected = file.checksum;
        let (path, sum) = (file.path.clone(), file.size_bytes);
        let finished = blocking(move || download.finish(&path, sum, expected)).await;
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        disk.counters.segment_download_ms.add(took);
        finished
    }

    async fn fetch_parts(
        &self,
        download: &mut Download,
        store: &Store,
        file: &SegmentFile,
    ) -> Result<(), SegmentFetchError> {
        let mut missing = download.missing().into_iter();
        // Dropped with this future, and every request with it.
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.config.parts_at_once
                && let Some(part) = missing.next()
            {
                let range = part_range(part, self.config.part_bytes, file.size_bytes);
                let fetch = Part {
                    config: Arc::clone(&self.config),
                    requests: Arc::clone(&self.requests),
                    disk: Arc::clone(&download.disk),
                    store: store.clone(),
                    path: file.path.clone(),
                    range,
                };
                let local = download.partial().path.clone();
                under_way.spawn(async move { (part, fetch.onto(local).await) });
            }
            let Some(joined) = under_way.join_next().await else { return Ok(()) };
            let (part, fetched) = joined.expect("parts do not panic and are not cancelled");
            download.has(part, fetched?);
        }
    }
}

impl Download {
    /// Goes on with what is left of an earlier one, or makes room for a new one.
    async fn start(
        disk: &Arc<Disk>,
        turn: Turn<String>,
        name: String,
        size_bytes: u64,
        part_bytes: u64,
    ) -> Result<Self, SegmentFetchError> {
        let left = {
            let mut books = disk.books();
            let left = books.segments.take_partial(&name);
            if let Some(partial) = &left {
                let written = partial.written(part_bytes);
                books.budget.resume(partial.file, written);
            }
            left
        };
        let parts = part_count(size_bytes, part_bytes);
        let same = |left: &Partial| (left.size_bytes, left.done.len()) == (size_bytes, parts);
        let disk = Arc::clone(disk);
        if left.as_ref().is_some_and(same) {
            disk.counters.segment_resumes.one();
            return Ok(Self { _turn: turn, disk, name, partial: left });
        }
        blocking(move || {
            if let Some(other) = left {
                // Of another size, so of another world.
                disk.remove(other.file);
            }
            let (file, path) = disk.begin(Kind::Segment);
            let made = disk.grow(file, size_bytes).and_then(|()| allocate(&path, size_bytes));
            if let Err(error) = made {
                disk.remove(file);
                return Err(error.into());
            }
            let partial = Partial { file, path, size_bytes, done: vec![false; parts] };
            Ok(Self { _turn: turn, disk, name, partial: Some(partial) })
        })
        .await
    }

    fn partial(&self) -> &Partial {
        self.partial.as_ref().expect("taken at the end alone")
    }

    fn missing(&self) -> Vec<usize> {
        let done = &self.partial().done;
        (0..done.len()).filter(|part| !done[*part]).collect()
    }

    fn has(&mut self, part: usize, bytes: u64) {
        let partial = self.partial.as_mut().expect("taken at the end alone");
        partial.done[part] = true;
        self.disk.books().budget.wrote(partial.file, bytes);
        self.disk.counters.segment_bytes_downloaded.add(bytes);
    }

    /// Throws away what there is. Blocks.
    fn discard(mut self) {
        if let Some(partial) = self.partial.take() {
            self.disk.remove(partial.file);
        }
    }

    /// Checks the whole and gives it its name. It is not waited for until the disk itself has it:
    /// should the machine lose power the copy may be damaged, every read is checked, and a damaged
    /// copy is fetched anew. Blocks.
    fn finish(
        mut self,
        path: &ObjectPath,
        size_bytes: u64,
        expected: Option<Checksum>,
    ) -> Result<Pin, SegmentFetchError> {
        let partial = self.partial.take().expect("taken here alone");
        let checked = check(&partial.path, expected).and_then(|same| {
            if !same {
                let reason = "its checksum is not the one in the catalog".to_owned();
                return Err(SegmentFetchError::Corrupt { path: path.to_string(), reason });
            }
            Ok(self.disk.rename(partial.file, &disk::name_segment(&self.name))?)
        });
        if let Err(error) = checked {
            self.disk.remove(partial.file);
            return Err(error);
        }
        let mut books = self.disk.books();
        books.budget.settle(partial.file, size_bytes, Standing::Cached);
        books.segments.found(std::mem::take(&mut self.name), partial.file, size_bytes);
        Ok(self.disk.pin(&mut books, partial.file))
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let Some(partial) = self.partial.take() else { return };
        let mut books = self.disk.books();
        books.budget.settle(partial.file, partial.size_bytes, Standing::Cached);
        books.segments.left(std::mem::take(&mut self.name), partial);
    }
}

impl Partial {
    fn written(&self, part_bytes: u64) -> u64 {
        let done = (0..self.done.len()).filter(|part| self.done[*part]);
        let bytes = done.map(|part| {
            let range = part_range(part, part_bytes, self.size_bytes);
            range.end - range.start
        });
        bytes.sum()
    }
}

/// One range of an object on its way.
struct Part {
    config: Arc<DownloadConfig>,
    requests: Arc<Semaphore>,
    disk: Arc<Disk>,
    store: Store,
    path: ObjectPath,
    range: Range<u64>,
}

impl Part {
    /// Fetches it and writes it to its place. Gives its length.
    async fn onto(self, local: std::path::PathBuf) -> Result<u64, SegmentFetchError> {
        // The permit covers the writing: what waits for a slow disk is memory, too.
        let permit = Arc::clone(&self.requests).acquire_owned().await;
        let _permit = permit.expect("the semaphore is never closed");
        let bytes = self.fetch().await?;
        let (disk, start, length) = (Arc::clone(&self.disk), self.range.start, bytes.len() as u64);
        blocking(move || write_at(&disk, &local, start, &bytes)).await?;
        Ok(length)
    }

    async fn fetch(&self) -> Result<Bytes, SegmentFetchError> {
        let mut failures = 0;
        loop {
            let request = self.store.get_range(&self.path, self.range.clone());
            let source = match time::timeout(self.config.request_timeout, request).await {
                Ok(Ok(bytes)) if bytes.len() as u64 == self.range.end - self.range.start => {
                    return Ok(bytes);
                }
                // The object is shorter than it should be: asking again does not make it longer.
                Ok(Ok(bytes)) => return Err(self.cut_off(bytes.len() as u64)),
                Ok(Err(ObjectError::NotFound { path })) => {
                    return Err(SegmentFetchError::Missing { path });
                }
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            failures += 1;
            if failures >= self.config.attempts {
                return Err(self.give_up(source).await);
            }
            self.disk.counters.segment_retries.one();
            debug!(path = %self.path, start = self.range.start, failures, "range is asked for again");
            time::sleep(self.pause(failures)).await;
        }
    }

    fn pause(&self, failures: u32) -> Duration {
        let DownloadConfig { backoff, backoff_max, .. } = *self.config;
        reconnect::pause(self.range.start, self.path.as_str(), failures, backoff, backoff_max)
    }

    /// Some stores answer a range beyond the end with an error like any other: the size tells.
    async fn give_up(&self, source: Option<ObjectError>) -> SegmentFetchError {
        let head = self.store.head(&self.path);
        if let Ok(Ok(info)) = time::timeout(self.config.request_timeout, head).await
            && info.size_bytes < self.range.end
        {
            return self.cut_off(info.size_bytes.saturating_sub(self.range.start));
        }
        SegmentFetchError::Unreachable { path: self.path.to_string(), source }
    }

    fn cut_off(&self, got: u64) -> SegmentFetchError {
        let end = self.range.start + got;
        let reason = format!("it ends at {end}, before {}", self.range.end);
        SegmentFetchError::Corrupt { path: self.path.to_string(), reason }
    }
}

/// The file has its length from the start, so that what is booked is what is found. Blocks.
fn allocate(path: &Path, size_bytes: u64) -> Result<(), DiskError> {
    let made = File::options().write(true).create_new(true).open(path);
    made.and_then(|file| file.set_len(size_bytes)).map_err(|e| match crate::error::is_full(&e) {
        true => DiskError::Full { wanted_bytes: size_bytes },
        false => DiskError::io(path)(e),
    })
}

/// Blocks.
fn write_at(disk: &Disk, path: &Path, start: u64, bytes: &[u8]) -> Result<(), DiskError> {
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(DiskError::io(path))?;
    file.seek(SeekFrom::Start(start)).map_err(DiskError::io(path))?;
    disk::write_all(&mut file, bytes, path, |wanted| disk.relieve(wanted))
}

/// Whether the bytes are those that were written into the store. Blocks.
fn check(path: &Path, expected: Option<Checksum>) -> Result<bool, SegmentFetchError> {
    let Some(expected) = expected else { return Ok(true) };
    let mut file = File::open(path).map_err(DiskError::io(path))?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(expected.0 == <[u8; 32]>::from(hash.finalize())),
            Ok(read) => hash.update(&chunk[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(DiskError::io(path)(e).into()),
        }
    }
}

fn part_count(size_bytes: u64, part_bytes: u64) -> usize {
    usize::try_from(size_bytes.div_ceil(part_bytes)).expect("parts are kilobytes at least")
}

fn part_range(part: usize, part_bytes: u64, size_bytes: u64) -> Range<u64> {
    let start = part as u64 * part_bytes;
    start..size_bytes.min(start + part_bytes)
}
