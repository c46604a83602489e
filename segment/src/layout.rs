//! How the samples of a segment are laid out in its file: pages, bytes and encodings of each
//! column. For people who look at a segment; reading needs none of it.

use parquet::basic::Encoding;

use crate::error::SegmentError;
use crate::footer::Footer;
use crate::schema::{FileKind, MAX_PAGE_ROWS};
use crate::source::ByteSource;

/// One column of the file of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Its name.
    pub name: String,
    /// Number of its pages, dictionaries aside.
    pub pages: usize,
    /// Bytes in the file, dictionaries included.
    pub stored_bytes: u64,
    /// The encodings its pages have, as Parquet names them, sorted.
    pub encodings: Vec<String>,
}

impl ColumnLayout {
    /// The columns of a file of samples, in their order.
    pub fn of_samples(source: &impl ByteSource) -> Result<Vec<Self>, SegmentError> {
        let footer = Footer::open(source, FileKind::Samples)?;
        let names = FileKind::Samples.schema().columns().iter().map(|column| column.name());
        let mut columns = Vec::new();
        for (at, name) in names.enumerate() {
            let pages = footer.pages(at, MAX_PAGE_ROWS)?;
            let dictionaries = pages.dictionaries.iter().flatten();
            let ranges = pages.pages.iter().map(|page| &page.bytes).chain(dictionaries);
            columns.push(Self {
                name: name.to_owned(),
                pages: pages.pages.len(),
                stored_bytes: ranges.map(|range| range.end - range.start).sum(),
                encodings: encodings(&footer, at),
            });
        }
        Ok(columns)
    }
}

fn encodings(footer: &Footer, column: usize) -> Vec<String> {
    let groups = footer.row_groups().iter();
    let chunks = groups.filter_map(|group| group.columns().get(column));
    let mut encodings: Vec<String> = chunks
        .flat_map(|chunk| chunk.encodings())
        // Of the levels, which these columns do not have.
        .filter(|encoding| *encoding != Encoding::RLE)
        .map(|encoding| encoding.to_string())
        .collect();
    encodings.sort();
    encodings.dedup();
    encodings
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_promql::Labels;

    use super::*;
    use crate::source::MemorySource;
    use crate::write::{SegmentWriter, WriteOptions};

    #[test]
    fn the_columns_tell_their_pages_and_encodings() {
        let (mut series, mut samples) = (Vec::new(), Vec::new());
        let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
        let ts: Vec<i64> = (0..100_000).collect();
        let values: Vec<f64> = ts.iter().map(|ts| (ts % 97) as f64 / 10.0).collect();
        let labels = Labels::new([("__name__", "up")]).unwrap();
        writer.series(&labels, &Arc::default(), &ts, &values).unwrap();
        writer.finish(&mut series).unwrap();
        let size = samples.len() as u64;
        let columns = ColumnLayout::of_samples(&MemorySource::new("s", samples)).unwrap();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["series", "ts", "value"]);
        assert_eq!(columns.iter().map(|column| column.pages).collect::<Vec<_>>(), [1, 1, 4]);
        assert!(columns.iter().map(|column| column.stored_bytes).sum::<u64>() < size);
        assert_eq!(columns[1].encodings, ["BYTE_STREAM_SPLIT"]);
        assert!(ColumnLayout::of_samples(&MemorySource::new("s", series)).is_err());
    }
}
