//! Opens either file of a segment: finds the footer, checks the seal, says what the file is and
//! where its pages are. Decodes no page.

use std::ops::Range;
use std::panic;

use bytes::Bytes;
use parquet::basic::CompressionCodec;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};

use crate::error::SegmentError;
use crate::page::Malformed;
use crate::page::header::decode_offset_index;
use crate::schema::{FORMAT_VERSION, FileKind, MAX_FOOTER_BYTES, MAX_WHOLE_BYTES, key};
use crate::seal::{self, Seal};
use crate::source::ByteSource;

/// How much of a file's end is read at first: enough for the footer and indexes of most.
const FIRST_READ: u64 = 64 << 10;

const MAGIC: &[u8; 4] = b"PAR1";

/// Bytes behind the footer: its length and the magic.
const TRAILER: u64 = 8;

/// The checked end of a file: the seal holds, the kind and the version are the expected ones.
pub(crate) struct Footer {
    name: String,
    metadata: ParquetMetaData,
    /// Everything from the seal's start to the end.
    pub(crate) sealed: Bytes,
    pub(crate) seal: Seal,
    pub(crate) size_bytes: u64,
}

/// A page of a column and the rows it has, counted over the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRef {
    pub(crate) first_row: u64,
    pub(crate) rows: u32,
    pub(crate) bytes: Range<u64>,
    /// The row group it belongs to, whose dictionary it may use.
    pub(crate) group: u32,
}

/// All pages of one column, and the dictionary of each row group that has one.
#[derive(Clone, Debug)]
pub(crate) struct ColumnPages {
    pub(crate) pages: Vec<PageRef>,
    pub(crate) dictionaries: Vec<Option<Range<u64>>>,
}

impl Footer {
    /// Reads and checks the end of a file.
    pub(crate) fn open(source: &impl ByteSource, kind: FileKind) -> Result<Self, SegmentError> {
        let name = source.name();
        let size_bytes = source.size_bytes();
        let read = |range| source.read_range(range).map_err(|e| SegmentError::io(name, e));
        if size_bytes < TRAILER + MAGIC.len() as u64 {
            return Err(SegmentError::corrupt(name, format!("it has only {size_bytes} bytes")));
        }
        let mut end = read(size_bytes - FIRST_READ.min(size_bytes)..size_bytes)?;
        let (length, magic) = end[end.len() - 8..].split_at(4);
        if magic != MAGIC {
            let reason = "it does not end as a Parquet file does, or is cut off";
            return Err(SegmentError::foreign(name, reason));
        }
        let length: [u8; 4] = length.try_into().expect("half of eight bytes");
        let footer_bytes = u64::from(u32::from_le_bytes(length)) + TRAILER;
        check_limit(name, "the footer", footer_bytes, MAX_FOOTER_BYTES)?;
        if footer_bytes > size_bytes {
            return Err(SegmentError::corrupt(name, "the footer is longer than the file"));
        }
        if footer_bytes > end.len() as u64 {
            end = read(size_bytes - footer_bytes..size_bytes)?;
        }
        let no_seal = || SegmentError::foreign(name, "it has no seal");
        let from = seal::sealed_from(&end).ok_or_else(no_seal)?;
        if from > size_bytes - footer_bytes {
            return Err(SegmentError::corrupt(name, "the seal starts beyond the footer"));
        }
        check_limit(name, "what is read as a whole", size_bytes - from, MAX_WHOLE_BYTES)?;
        let unread = (size_bytes - from).checked_sub(end.len() as u64);
        let sealed = match unread {
            Some(0) => end,
            None => end.slice(end.len() - index(size_bytes - from)..),
            Some(_) => read(from..size_bytes)?,
        };
        let broken = || SegmentError::corrupt(name, "the seal is broken");
        let seal = seal::check(&sealed, from).ok_or_else(broken)?;
        let footer = &sealed[sealed.len() - index(footer_bytes)..sealed.len() - 8];
        let metadata = decode_metadata(footer).map_err(|e| SegmentError::corrupt(name, e.0))?;
        let footer = Self { name: name.to_owned(), metadata, sealed, seal, size_bytes };
        footer.check_kind(kind)?;
        Ok(footer)
    }

    fn check_kind(&self, kind: FileKind) -> Result<(), SegmentError> {
        let foreign = |reason: &str| SegmentError::foreign(&self.name, reason);
        let version = self.value(key::VERSION).and_then(|version| version.parse().ok());
        let version: u32 = version.ok_or_else(|| foreign("it has no format version"))?;
        if version > FORMAT_VERSION {
            return Err(SegmentError::Newer {
                file: self.name.clone(),
                found: version,
                known: FORMAT_VERSION,
            });
        }
        if self.value(key::FILE) != Some(kind.as_str()) {
            return Err(foreign(&format!("it is not a file of {}", kind.as_str())));
        }
        let schema = self.metadata.file_metadata().schema_descr();
        if schema.root_schema() != kind.schema().root_schema() {
            return Err(SegmentError::corrupt(&self.name, "its columns are not those of its kind"));
        }
        Ok(())
    }

    /// A text of the key-value metadata.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// Rows of the file.
    pub(crate) fn rows(&self) -> Result<u64, SegmentError> {
        u64::try_from(self.metadata.file_metadata().num_rows())
            .map_err(|_| SegmentError::corrupt(&self.name, "it has a negative number of rows"))
    }

    /// What the file says of its row groups.
    pub(crate) fn row_groups(&self) -> &[RowGroupMetaData] {
        self.metadata.row_groups()
    }

    /// Where the pages of a column are, checked against each other and the file's size.
    pub(crate) fn pages(
        &self,
        column: usize,
        max_page_rows: u64,
    ) -> Result<ColumnPages, SegmentError> {
        let mut all = ColumnPages { pages: Vec::new(), dictionaries: Vec::new() };
        let mut rows = 0;
        for group in self.metadata.row_groups() {
            let chunk = group.columns().get(column);
            let group_rows = u64::try_from(group.num_rows()).ok();
            let (chunk, group_rows) = chunk
                .zip(group_rows)
                .ok_or_else(|| SegmentError::corrupt(&self.name, "a row group is incomplete"))?;
            self.add_chunk(&mut all, chunk, rows, group_rows, max_page_rows)
                .map_err(|e| SegmentError::corrupt(&self.name, e.0))?;
            rows += group_rows;
        }
        if rows != self.rows()? {
            let reason = "the row groups have another number of rows than the file";
            return Err(SegmentError::corrupt(&self.name, reason));
        }
        Ok(all)
    }

    fn add_chunk(
        &self,
        all: &mut ColumnPages,
        chunk: &ColumnChunkMetaData,
        first_row: u64,
        group_rows: u64,
        max_page_rows: u64,
    ) -> Result<(), Malformed> {
        if chunk.compression_codec() != CompressionCodec::ZSTD {
            return Err("a column is not compressed with zstd".into());
        }
        // Pages stand between the magic at the start and what is sealed; where everything is
        // sealed, between the magic and the footer.
        let pages_end = if self.seal.from == 0 { self.size_bytes } else { self.seal.from };
        let group = u32::try_from(all.dictionaries.len()).map_err(|_| "too many row groups")?;
        let locations = decode_offset_index(self.offset_index(chunk)?)?;
        // The pages of a column stand in the order of their rows, over all row groups.
        let mut next_byte = all.pages.last().map_or(MAGIC.len() as u64, |page| page.bytes.end);
        let dictionary = match chunk.dictionary_page_offset().map(u64::try_from) {
            Some(Ok(at)) if at >= next_byte => Some(at),
            Some(_) => return Err("a dictionary is not in front of its pages".into()),
            None => None,
        };
        let mut next_row = 0;
        for (i, page) in locations.iter().enumerate() {
            let row_end = locations.get(i + 1).map_or(group_rows, |next| next.first_row);
            let rows = row_end.checked_sub(page.first_row).filter(|rows| *rows > 0);
            let rows = rows.filter(|rows| *rows <= max_page_rows).ok_or("a page has bad rows")?;
            let end = page.offset.checked_add(u64::from(page.bytes));
            let end = end.filter(|end| *end <= pages_end).ok_or("a page is outside the file")?;
            if page.first_row != next_row || page.offset < next_byte {
                return Err("pages are not one after the other".into());
            }
            next_row = row_end;
            next_byte = end;
            all.pages.push(PageRef {
                first_row: first_row + page.first_row,
                rows: u32::try_from(rows).map_err(|_| "a page has bad rows")?,
                bytes: page.offset..end,
                group,
            });
        }
        if next_row != group_rows {
            return Err("the pages have another number of rows than their row group".into());
        }
        all.dictionaries.push(match (dictionary, locations.first()) {
            (Some(start), Some(first)) if start < first.offset => Some(start..first.offset),
            (Some(_), _) => return Err("a dictionary is not in front of its pages".into()),
            (None, _) => None,
        });
        Ok(())
    }

    fn offset_index(&self, chunk: &ColumnChunkMetaData) -> Result<&[u8], Malformed> {
        let start = chunk.offset_index_offset().and_then(|at| u64::try_from(at).ok());
        let len = chunk.offset_index_length().and_then(|len| usize::try_from(len).ok());
        let start = start.and_then(|at| at.checked_sub(self.seal.from));
        let start = start.and_then(|at| usize::try_from(at).ok());
        let range = start.zip(len).and_then(|(at, len)| Some(at..at.checked_add(len)?));
        let bytes = range.and_then(|range| self.sealed.get(range));
        bytes.ok_or_else(|| "a column has no offset index".into())
    }
}

fn check_limit(file: &str, what: &'static str, found: u64, limit: u64) -> Result<(), SegmentError> {
    if found <= limit {
        return Ok(());
    }
    Err(SegmentError::TooLarge { file: file.to_owned(), what, found, limit })
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("what is read as a whole is limited to a part of memory")
}

/// The seal has been checked, so these are bytes that some writer meant. Should that writer have
/// been a hostile one, a panic of the library is an error here and not the end of the process.
fn decode_metadata(footer: &[u8]) -> Result<ParquetMetaData, Malformed> {
    match panic::catch_unwind(|| ParquetMetaDataReader::decode_metadata(footer)) {
        Ok(Ok(metadata)) => Ok(metadata),
        Ok(Err(error)) => Err(Malformed(format!("the footer can't be read: {error}"))),
        Err(_) => Err("the footer can't be read".into()),
    }
}
