//! Reads the samples of chosen series: only the pages that hold them, only the columns that are
//! needed, into memory that is used again. Which series to read is the index's business.

mod page_cache;
mod scan;

use std::ops::Range;
use std::sync::Arc;

pub use scan::{Batch, Scan, ScanBuffers, SeriesSamples};

use crate::error::SegmentError;
use crate::footer::{ColumnPages, Footer, PageRef};
use crate::schema::{FileKind, MAX_PAGE_ROWS, samples_column};
use crate::series_index::{SeriesIndex, TimeRange};
use crate::source::ByteSource;

/// A segment that can be read: its series and its samples, known to belong together.
///
/// Threads may share it; each scan brings its own [`ScanBuffers`].
pub struct Segment<S> {
    index: Arc<SeriesIndex>,
    samples: Samples<S>,
}

/// The file of samples and where its pages are.
pub(crate) struct Samples<S> {
    source: S,
    pages: Arc<SamplePages>,
}

/// Where the pages of a file of samples are: what its footer says, without the file. Opening the
/// same segment again needs no second look at the footer.
pub struct SamplePages {
    size_bytes: u64,
    times: ColumnPages,
    values: ColumnPages,
}

impl SamplePages {
    /// Reads and checks the footer of the file of samples that belongs to an index.
    pub fn open(index: &SeriesIndex, source: &impl ByteSource) -> Result<Self, SegmentError> {
        let footer = Footer::open(source, FileKind::Samples)?;
        let partner = index.partner();
        if (footer.size_bytes, &footer.seal.sum) != (partner.size_bytes, &partner.seal) {
            return Err(SegmentError::Mismatched {
                series: index.name().to_owned(),
                samples: source.name().to_owned(),
            });
        }
        if footer.rows()? != index.samples() {
            let reason =
                format!("it has {} rows, and its series have {}", footer.rows()?, index.samples());
            return Err(SegmentError::corrupt(source.name(), reason));
        }
        let times = footer.pages(samples_column::TS, MAX_PAGE_ROWS)?;
        let values = footer.pages(samples_column::VALUE, MAX_PAGE_ROWS)?;
        Ok(Self { size_bytes: footer.size_bytes, times, values })
    }

    /// Bytes of memory this takes, near enough for a cache that counts them.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.times.memory_bytes() + self.values.memory_bytes()
    }
}

impl std::fmt::Debug for SamplePages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} and {} pages", self.times.pages.len(), self.values.pages.len())
    }
}

impl<S: ByteSource> Segment<S> {
    /// Opens the file of samples that belongs to an index.
    pub fn open(index: Arc<SeriesIndex>, source: S) -> Result<Self, SegmentError> {
        let pages = Arc::new(SamplePages::open(&index, &source)?);
        Ok(Self { index, samples: Samples { source, pages } })
    }

    /// Opens a file of samples whose pages are known from an earlier time, with the same index.
    pub fn with_pages(
        index: Arc<SeriesIndex>,
        pages: Arc<SamplePages>,
        source: S,
    ) -> Result<Self, SegmentError> {
        if source.size_bytes() != pages.size_bytes {
            let (found, known) = (source.size_bytes(), pages.size_bytes);
            let reason = format!("it has {found} bytes, and had {known}");
            return Err(SegmentError::corrupt(source.name(), reason));
        }
        Ok(Self { index, samples: Samples { source, pages } })
    }

    /// Where the samples are read from.
    pub fn source(&self) -> &S {
        &self.samples.source
    }

    /// The series.
    pub fn index(&self) -> &Arc<SeriesIndex> {
        &self.index
    }

    /// Starts to read the samples of some series, in rising order, within a range of time.
    pub fn scan<'a>(
        &'a self,
        series: &'a [u32],
        range: TimeRange,
        buffers: &'a mut ScanBuffers,
    ) -> Scan<'a, S> {
        Scan::new(self, series, range, buffers)
    }

    /// Hands each of some series that has samples in the range to `each`, in rising order.
    pub fn for_each<E: From<SegmentError>>(
        &self,
        series: &[u32],
        range: TimeRange,
        buffers: &mut ScanBuffers,
        mut each: impl FnMut(SeriesSamples<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut scan = self.scan(series, range, buffers);
        while let Some(samples) = scan.next()? {
            each(samples)?;
        }
        Ok(())
    }

    /// All samples of some series in the range at once.
    pub fn read(&self, series: &[u32], range: TimeRange) -> Result<Batch, SegmentError> {
        let mut batch = Batch::default();
        self.for_each(series, range, &mut ScanBuffers::default(), |samples| {
            batch.push(&samples);
            Ok::<(), SegmentError>(())
        })?;
        Ok(batch)
    }

    /// Ranges of the file of samples that a scan of these series reads at most, in rising order
    /// and without overlap: what to fetch ahead where the file is far away.
    pub fn byte_ranges(&self, series: &[u32]) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        for series in series {
            let times = self.index.rows(self.index.times_of(*series));
            let pages = self.samples.pages.times.pages_of(times);
            ranges.extend(pages.iter().map(|page| page.bytes.clone()));
            let pages = self.samples.pages.values.pages_of(self.index.rows(*series));
            ranges.extend(pages.iter().map(|page| page.bytes.clone()));
            let dictionaries = pages.iter().map(|page| page.group);
            ranges.extend(
                dictionaries
                    .filter_map(|g| self.samples.pages.values.dictionaries[g as usize].clone()),
            );
        }
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
        ranges
    }
}

impl ColumnPages {
    fn memory_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<PageRef>()
            + self.dictionaries.capacity() * size_of::<Option<Range<u64>>>()
    }

    /// The pages that hold some of these rows. The rows lie within the file.
    pub(crate) fn pages_of(&self, rows: Range<u64>) -> &[PageRef] {
        &self.pages[self.page_numbers(rows)]
    }

    /// The numbers of the pages that hold some of these rows.
    pub(crate) fn page_numbers(&self, rows: Range<u64>) -> Range<usize> {
        let from = self.pages.partition_point(|page| page.end_row() <= rows.start);
        let to = self.pages.partition_point(|page| page.first_row < rows.end);
        from..to.max(from)
    }
}

impl PageRef {
    /// True where all of these rows are in it.
    pub(crate) fn holds(&self, rows: &Range<u64>) -> bool {
        self.first_row <= rows.start && rows.end <= self.end_row()
    }

    /// The row behind its last one.
    pub(crate) fn end_row(&self) -> u64 {
        self.first_row + u64::from(self.rows)
    }
}

impl<S: ByteSource> std::fmt::Debug for Segment<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {}", self.index, self.samples.source.name())
    }
}
