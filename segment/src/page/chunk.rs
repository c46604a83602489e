//! One column of one row group in the making: pages are compressed, given a checksum and put one
//! after the other, and described for the footer.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{BoundaryOrder, CompressionCodec, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use super::Layout;
use super::header::{PageHeader, PageKind};
use crate::error::WriteError;

/// Compresses page bodies at one level.
pub(crate) struct Packer {
    zstd: Compressor<'static>,
}

impl Packer {
    /// A packer of the given zstd level that looks back over `window_bytes` at most.
    pub(crate) fn new(level: i32, window_bytes: usize) -> std::io::Result<Self> {
        let mut zstd = Compressor::new(level)?;
        let window_log = window_bytes.next_power_of_two().trailing_zeros().clamp(17, 27);
        zstd.set_parameter(zstd::zstd_safe::CParameter::WindowLog(window_log))?;
        Ok(Self { zstd })
    }

    /// The compressed form of a page body.
    pub(crate) fn pack(&mut self, body: &[u8]) -> std::io::Result<Vec<u8>> {
        self.zstd.compress(body)
    }
}

/// The smallest and the largest value of a page or a chunk, as Parquet stores them.
pub(crate) type Bounds<T> = (T, T);

/// Pages of one column chunk.
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    offsets: OffsetIndexBuilder,
    plain_bytes: usize,
    dictionary_bytes: usize,
    values: usize,
    rows: u64,
    layouts: Vec<Layout>,
    page_bounds: Vec<Bounds<Vec<u8>>>,
}

impl Chunk {
    /// No pages yet.
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: OffsetIndexBuilder::new(),
            plain_bytes: 0,
            dictionary_bytes: 0,
            values: 0,
            rows: 0,
            layouts: Vec::new(),
            page_bounds: Vec::new(),
        }
    }

    /// Puts the dictionary in front of all pages.
    pub(crate) fn dictionary(
        &mut self,
        packer: &mut Packer,
        body: &[u8],
        values: usize,
    ) -> Result<(), WriteError> {
        debug_assert!(self.bytes.is_empty(), "a dictionary comes before the pages");
        let stored = packer.pack(body)?;
        self.put(PageKind::Dictionary, Layout::Plain, values, body.len(), &stored)?;
        self.dictionary_bytes = self.bytes.len();
        Ok(())
    }

    /// Adds a page whose body is packed already.
    pub(crate) fn page(
        &mut self,
        layout: Layout,
        rows: usize,
        values: usize,
        plain_bytes: usize,
        stored: &[u8],
    ) -> Result<(), WriteError> {
        let offset = self.bytes.len();
        self.put(PageKind::Data, layout, values, plain_bytes, stored)?;
        let size = i32::try_from(self.bytes.len() - offset).map_err(|_| too_large())?;
        let offset = i64::try_from(offset).map_err(|_| too_large())?;
        self.offsets.append_offset_and_size(offset, size);
        self.offsets.append_row_count(i64::try_from(rows).map_err(|_| too_large())?);
        self.values += values;
        self.rows += rows as u64;
        if !self.layouts.contains(&layout) {
            self.layouts.push(layout);
        }
        Ok(())
    }

    /// Notes the bounds of the page just added. All pages of a chunk have them, or none.
    pub(crate) fn page_bounds(&mut self, min: Vec<u8>, max: Vec<u8>) {
        self.page_bounds.push((min, max));
    }

    fn put(
        &mut self,
        kind: PageKind,
        layout: Layout,
        values: usize,
        plain_bytes: usize,
        stored: &[u8],
    ) -> Result<(), WriteError> {
        let crc = crc32fast::hash(stored);
        let header =
            PageHeader { kind, layout, values, plain_bytes, stored_bytes: stored.len(), crc };
        let header = header.encode().ok_or_else(too_large)?;
        self.plain_bytes += header.len() + plain_bytes;
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(stored);
        Ok(())
    }

    /// The chunk's bytes and what the footer says of them.
    pub(crate) fn finish(
        self,
        column: &ColumnDescPtr,
        statistics: Option<Statistics>,
        order: BoundaryOrder,
    ) -> Result<(Bytes, ColumnCloseResult), WriteError> {
        let int = |size: usize| i64::try_from(size).map_err(|_| too_large());
        let mut encodings = vec![Encoding::RLE];
        if self.dictionary_bytes > 0 {
            encodings.push(Encoding::PLAIN);
        }
        encodings.extend(self.layouts.iter().map(|layout| layout.encoding()));
        let mut metadata = ColumnChunkMetaData::builder(Arc::clone(column))
            .set_compression_codec(CompressionCodec::ZSTD)
            .set_encodings(encodings)
            .set_num_values(int(self.values)?)
            .set_total_compressed_size(int(self.bytes.len())?)
            .set_total_uncompressed_size(int(self.plain_bytes)?)
            .set_data_page_offset(int(self.dictionary_bytes)?);
        if self.dictionary_bytes > 0 {
            metadata = metadata.set_dictionary_page_offset(Some(0));
        }
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let column_index = if self.page_bounds.is_empty() {
            None
        } else {
            let mut index = ColumnIndexBuilder::new(column.physical_type());
            for (min, max) in self.page_bounds {
                index.append(false, min, max, 0, None);
            }
            index.set_boundary_order(order);
            Some(index.build()?)
        };
        let close = ColumnCloseResult {
            bytes_written: self.bytes.len() as u64,
            rows_written: self.rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index,
            offset_index: Some(self.offsets.build()),
        };
        Ok((self.bytes.into(), close))
    }
}

fn too_large() -> WriteError {
    WriteError::Full { what: "bytes in one column of one row group", limit: i32::MAX as u64 }
}
