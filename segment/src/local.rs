//! Segments on the local disk: written under a temporary name, made durable, then renamed, so that
//! a file with its final name is complete. That both files of a segment count only together is the
//! catalog's promise.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tributary_promql::Labels;

use crate::error::{SegmentError, WriteError};
use crate::read::Segment;
use crate::schema::{Family, SAMPLES_SUFFIX, SERIES_SUFFIX};
use crate::series_index::SeriesIndex;
use crate::source::FileSource;
use crate::write::{SegmentStats, SegmentWriter, WriteOptions};

/// Paths of the two files of a segment in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPaths {
    /// The file of series.
    pub series: PathBuf,
    /// The file of samples.
    pub samples: PathBuf,
}

impl SegmentPaths {
    /// The files of the segment with this name.
    pub fn new(directory: &Path, id: &str) -> Self {
        Self {
            series: directory.join(format!("{id}{SERIES_SUFFIX}")),
            samples: directory.join(format!("{id}{SAMPLES_SUFFIX}")),
        }
    }

    /// Opens the segment.
    pub fn open(&self) -> Result<Segment<FileSource>, SegmentError> {
        let source = |path: &Path| {
            FileSource::open(path).map_err(|e| SegmentError::io(&path.display().to_string(), e))
        };
        let index = SeriesIndex::open(&source(&self.series)?)?;
        Segment::open(Arc::new(index), source(&self.samples)?)
    }

    /// Removes both files, as far as they are there.
    pub fn remove(&self) -> io::Result<()> {
        for path in [&self.series, &self.samples] {
            match fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes a segment into a directory. Dropped before it is finished, it leaves nothing behind.
pub struct LocalWriter {
    paths: SegmentPaths,
    samples: PendingFile,
    writer: SegmentWriter<BufWriter<File>>,
}

impl LocalWriter {
    /// Starts a segment with this name.
    pub fn new(directory: &Path, id: &str, options: &WriteOptions) -> Result<Self, WriteError> {
        let paths = SegmentPaths::new(directory, id);
        let samples = PendingFile::create(&paths.samples)?;
        let file = samples.file.try_clone()?;
        let writer = SegmentWriter::new(BufWriter::with_capacity(1 << 20, file), options)?;
        Ok(Self { paths, samples, writer })
    }

    /// Adds the next series; see [`SegmentWriter::series`].
    pub fn series(
        &mut self,
        labels: &Labels,
        family: &Arc<Family>,
        ts: &[i64],
        values: &[f64],
    ) -> Result<(), WriteError> {
        self.writer.series(labels, family, ts, values)
    }

    /// Completes both files, makes them durable and gives them their names.
    pub fn finish(self) -> Result<(SegmentPaths, SegmentStats), WriteError> {
        let series = PendingFile::create(&self.paths.series)?;
        let stats = self.writer.finish(BufWriter::new(series.file.try_clone()?))?;
        let published = self.samples.publish().and_then(|()| series.publish());
        if let Err(error) = published {
            // One of the two would be found without the other. The first error says more.
            let _ = fs::remove_file(&self.paths.samples);
            return Err(error.into());
        }
        Ok((self.paths, stats))
    }
}

/// Writes bytes to a path so that the file is there completely or not at all.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut pending = PendingFile::create(path)?;
    pending.file.write_all(bytes)?;
    pending.publish()
}

/// A file under a temporary name, beside the place it is meant for.
struct PendingFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    published: bool,
}

impl PendingFile {
    fn create(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        // As unfinished files in a store's folder are named, so that cleaning finds them.
        name.push(format!("#{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary)?;
        Ok(Self { file, temporary, path: path.to_owned(), published: false })
    }

    fn publish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.published = true;
        // The new name is durable once its directory is.
        match self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => sync_directory(parent),
            None => sync_directory(Path::new(".")),
        }
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.published {
            // It has no name that anyone looks for; should this fail it is litter, not damage.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
