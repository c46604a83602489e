//! One Parquet file on its way out: row groups go straight through, the end is held back until it
//! is sealed.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::error::WriteError;
use crate::schema::{FORMAT_VERSION, FileKind, key, root};
use crate::seal::{self, Seal};

/// A column chunk, encoded and described.
pub(crate) type Column = (Bytes, ColumnCloseResult);

/// A file that is being written.
pub(crate) struct Output<W: Write + Send> {
    file: SerializedFileWriter<Held<W>>,
}

impl<W: Write + Send> Output<W> {
    /// Starts a file of the given kind.
    pub(crate) fn new(inner: W, kind: FileKind) -> Result<Self, WriteError> {
        let sorted =
            |column| SortingColumn { column_idx: column, descending: false, nulls_first: false };
        let sorting = match kind {
            FileKind::Series => vec![sorted(0)],
            FileKind::Samples => vec![sorted(0), sorted(1)],
        };
        let properties = WriterProperties::builder()
            .set_created_by(format!("tributary version {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_sorting_columns(Some(sorting))
            .build();
        let tail = (kind == FileKind::Series).then(Vec::new);
        let held = Held { inner, tail };
        let file = SerializedFileWriter::new(held, root(kind.schema()), Arc::new(properties))?;
        let mut output = Self { file };
        output.value(key::FILE, kind.as_str().to_owned());
        output.value(key::VERSION, FORMAT_VERSION.to_string());
        Ok(output)
    }

    /// Adds a text to the metadata.
    pub(crate) fn value(&mut self, key: &str, value: String) {
        self.file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    /// Adds a row group with these columns.
    pub(crate) fn row_group(
        &mut self,
        columns: impl IntoIterator<Item = Column>,
    ) -> Result<(), WriteError> {
        let mut group = self.file.next_row_group()?;
        for (bytes, close) in columns {
            group.append_column(&bytes, close)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer, seals the file and says how long it is. A file of samples is sealed
    /// behind its pages, which have checksums of their own; a file of series is as a whole.
    pub(crate) fn finish(mut self) -> Result<(u64, Seal), WriteError> {
        self.file.flush()?;
        let position = self.file.bytes_written() as u64;
        let held = self.file.inner_mut();
        let from = if held.tail.is_some() { 0 } else { position };
        held.tail.get_or_insert_default();
        self.value(key::SEAL, seal::blank(from));
        let Held { mut inner, tail } = self.file.into_inner()?;
        let mut tail = tail.expect("the end has been held back");
        let seal = seal::close(&mut tail, from);
        inner.write_all(&tail)?;
        inner.flush()?;
        Ok((from + tail.len() as u64, seal))
    }
}

/// Passes bytes on, or holds them where a tail is being made.
pub(crate) struct Held<W> {
    inner: W,
    tail: Option<Vec<u8>>,
}

impl<W: Write> Write for Held<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tail {
            Some(tail) => tail.write(bytes),
            None => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.tail.is_some() { Ok(()) } else { self.inner.flush() }
    }
}
