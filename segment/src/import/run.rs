//! A run: samples in their final order, put aside in a temporary file, with a table of where each
//! block and shard begins.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::page::split::{put_plain, read_plain};
use crate::source::{ByteSource, FileSource};

/// Series number and count of samples in front of each series.
const HEAD_BYTES: u64 = 8;

/// Bytes of one sample.
const SAMPLE_BYTES: u64 = 16;

/// Read at once.
const READ_BYTES: u64 = 1 << 20;

/// The place of a block's shard: number of the block, counted from the epoch, and the shard.
pub(super) type Section = (i64, u32);

/// A run that is complete.
pub(super) struct Run {
    source: FileSource,
    sections: BTreeMap<Section, Range<u64>>,
    /// Removed when the run is dropped, where it could not be removed before.
    path: Option<PathBuf>,
}

impl Run {
    /// The blocks and shards it has samples of.
    pub(super) fn sections(&self) -> impl Iterator<Item = Section> {
        self.sections.keys().copied()
    }

    /// Starts to read a section, if it has it.
    pub(super) fn read(&self, section: Section) -> Option<SectionReader<'_>> {
        let range = self.sections.get(&section)?.clone();
        Some(SectionReader { source: &self.source, range, chunk: Bytes::new(), chunk_at: 0 })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Litter in the place for litter, should this fail.
            let _ = fs::remove_file(path);
        }
    }
}

/// A run in the making.
pub(super) struct RunWriter {
    output: BufWriter<File>,
    path: PathBuf,
    removed: bool,
    position: u64,
    sections: BTreeMap<Section, Range<u64>>,
    scratch: Vec<u8>,
}

impl RunWriter {
    /// Creates the temporary file, whose name is gone at once where the system allows it, so that
    /// not even a killed process leaves it behind.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        // Named as unfinished files in a store's folder are, so that cleaning finds it.
        let name = format!("tributary-import-{}.run#{number}", std::process::id());
        let path = directory.join(name);
        // It may be long since the last run, and an empty folder is what cleaning takes away.
        fs::create_dir_all(directory)?;
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let removed = cfg!(unix) && fs::remove_file(&path).is_ok();
        Ok(Self {
            output: BufWriter::with_capacity(1 << 20, file),
            path,
            removed,
            position: 0,
            sections: BTreeMap::new(),
            scratch: Vec::new(),
        })
    }

    /// Adds the samples of a series. Sections rise, and series within them.
    pub(super) fn series(
        &mut self,
        section: Section,
        series: u32,
        ts: &[i64],
        values: &[f64],
    ) -> io::Result<()> {
        let count = u32::try_from(ts.len()).expect("a buffer has fewer samples than that");
        self.scratch.clear();
        self.scratch.extend_from_slice(&series.to_le_bytes());
        self.scratch.extend_from_slice(&count.to_le_bytes());
        put_plain(&mut self.scratch, ts);
        put_plain(&mut self.scratch, values);
        self.output.write_all(&self.scratch)?;
        let start = self.position;
        self.position += self.scratch.len() as u64;
        self.sections.entry(section).or_insert(start..start).end = self.position;
        Ok(())
    }

    /// Completes the run.
    pub(super) fn finish(self) -> io::Result<Run> {
        let Self { output, path, removed, sections, .. } = self;
        let file = output.into_inner().map_err(io::IntoInnerError::into_error)?;
        let source = FileSource::new(path.display().to_string(), file)?;
        Ok(Run { source, sections, path: (!removed).then_some(path) })
    }
}

/// Reads the series of a section one after the other.
pub(super) struct SectionReader<'a> {
    source: &'a FileSource,
    /// What is left of the section.
    range: Range<u64>,
    chunk: Bytes,
    chunk_at: u64,
}

impl SectionReader<'_> {
    /// The next series, or the end.
    pub(super) fn peek(&mut self) -> io::Result<Option<u32>> {
        if self.range.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.head()?.0))
    }

    /// Appends the samples of the next series and steps over it.
    pub(super) fn take(&mut self, ts: &mut Vec<i64>, values: &mut Vec<f64>) -> io::Result<()> {
        let (_, count) = self.head()?;
        let len = HEAD_BYTES + count * SAMPLE_BYTES;
        let bytes = self.bytes(len)?;
        let samples = &bytes[index(HEAD_BYTES)..];
        let (times, rest) = samples.split_at(samples.len() / 2);
        read_plain(times, ts);
        read_plain(rest, values);
        self.range.start += len;
        Ok(())
    }

    fn head(&mut self) -> io::Result<(u32, u64)> {
        let head = self.bytes(HEAD_BYTES)?;
        let (series, count) = head.split_at(4);
        let number = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four bytes"));
        Ok((number(series), u64::from(number(count))))
    }

    /// The next bytes of the section.
    fn bytes(&mut self, len: u64) -> io::Result<Bytes> {
        let wanted = self.range.start..self.range.start + len;
        let chunk_end = self.chunk_at + self.chunk.len() as u64;
        if wanted.start < self.chunk_at || wanted.end > chunk_end {
            let end = wanted.end.max((wanted.start + READ_BYTES).min(self.range.end));
            self.chunk = self.source.read_range(wanted.start..end)?;
            self.chunk_at = wanted.start;
        }
        let start = index(wanted.start - self.chunk_at);
        Ok(self.chunk.slice(start..start + index(len)))
    }
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a buffer's samples were in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_read_back_and_leave_no_file() {
        let directory = std::env::temp_dir().join(format!("tributary-run-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut writer = RunWriter::create(&directory).unwrap();
        let long: Vec<i64> = (0..100_000).collect();
        let values: Vec<f64> = long.iter().map(|ts| *ts as f64).collect();
        writer.series((1, 0), 7, &[1, 2], &[0.5, f64::from_bits(0x7ff0_0000_0000_0002)]).unwrap();
        writer.series((1, 0), 3, &long, &values).unwrap();
        writer.series((2, 1), 7, &[9], &[9.0]).unwrap();
        let run = writer.finish().unwrap();
        assert_eq!(run.sections().collect::<Vec<_>>(), [(1, 0), (2, 1)]);
        assert!(run.read((1, 1)).is_none());

        let mut section = run.read((1, 0)).unwrap();
        let (mut ts, mut back) = (Vec::new(), Vec::new());
        assert_eq!(section.peek().unwrap(), Some(7));
        section.take(&mut ts, &mut back).unwrap();
        assert_eq!((ts.as_slice(), back[1].to_bits()), (&[1, 2][..], 0x7ff0_0000_0000_0002));
        ts.clear();
        assert_eq!(section.peek().unwrap(), Some(3));
        section.take(&mut ts, &mut back).unwrap();
        assert_eq!(ts, long);
        assert_eq!(section.peek().unwrap(), None);
        drop(run);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir(&directory).unwrap();
    }
}
