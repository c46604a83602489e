//! Writes the file of series: one row each, texts as numbers in sorted dictionaries.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::BoundaryOrder;
use tributary_promql::Labels;

use crate::error::WriteError;
use crate::page::chunk::{Chunk, Packer};
use crate::page::split::put_plain;
use crate::page::{Layout, hybrid, text};
use crate::schema::{Family, FileKind, SERIES_PAGE_ROWS, key, series_column as column};
use crate::write::output::{Column, Output};

/// Level of zstd for the file of series. It is small and read often.
const LEVEL: i32 = 9;

/// Compression looks back over this much of a page.
const WINDOW_BYTES: usize = 1 << 20;

/// One series, as its row says it.
pub(crate) struct SeriesRow {
    pub(crate) labels: Labels,
    pub(crate) family: Arc<Family>,
    pub(crate) first_row: u64,
    pub(crate) row_count: u64,
    pub(crate) min_ts: i64,
    pub(crate) max_ts: i64,
    /// The first series with the same timestamps, perhaps this one.
    pub(crate) times: u32,
}

/// Writes the rows and the name of the partner file, and says how long the file is.
pub(crate) fn write_series(
    to: impl Write + Send,
    rows: &[SeriesRow],
    partner: String,
) -> Result<u64, WriteError> {
    let mut output = Output::new(to, FileKind::Series)?;
    output.value(key::SAMPLES, partner);
    if !rows.is_empty() {
        let packer = Packer::new(LEVEL, WINDOW_BYTES)?;
        output.row_group(Columns { rows, packer }.write()?)?;
    }
    let (length, _) = output.finish()?;
    Ok(length)
}

struct Columns<'a> {
    rows: &'a [SeriesRow],
    packer: Packer,
}

impl<'a> Columns<'a> {
    fn write(&mut self) -> Result<Vec<Column>, WriteError> {
        let signed = |row: u64| i64::try_from(row).expect("samples are limited");
        let columns = [
            (column::SERIES, self.numbers(|i, _| i)?),
            (column::METRIC, self.texts(|row| row.labels.metric())?),
            (column::LABEL_NAME, self.labels(|(name, _)| name)?),
            (column::LABEL_VALUE, self.labels(|(_, value)| value)?),
            (column::FIRST_ROW, self.words(|row| signed(row.first_row))?),
            (column::ROW_COUNT, self.words(|row| signed(row.row_count))?),
            (column::MIN_TS, self.words(|row| row.min_ts)?),
            (column::MAX_TS, self.words(|row| row.max_ts)?),
            (column::KIND, self.texts(|row| row.family.kind.as_str())?),
            (column::TIMES, self.numbers(|_, row| row.times)?),
            (column::FAMILY, self.texts(|row| &row.family.name)?),
            (column::UNIT, self.texts(|row| &row.family.unit)?),
            (column::HELP, self.texts(|row| &row.family.help)?),
        ];
        let schema = FileKind::Series.schema();
        columns
            .into_iter()
            .map(|(at, chunk)| chunk.finish(&schema.column(at), None, BoundaryOrder::UNORDERED))
            .collect()
    }

    fn numbers(&mut self, of: impl Fn(u32, &SeriesRow) -> u32) -> Result<Chunk, WriteError> {
        let mut chunk = Chunk::new();
        let mut numbered = (0..).zip(self.rows);
        for page in self.rows.chunks(SERIES_PAGE_ROWS) {
            let numbers = numbered.by_ref().take(page.len()).map(|(i, row)| of(i, row));
            let body: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
            let stored = self.packer.pack(&body)?;
            chunk.page(Layout::Plain, page.len(), page.len(), body.len(), &stored)?;
        }
        Ok(chunk)
    }

    fn words(&mut self, of: impl Fn(&SeriesRow) -> i64) -> Result<Chunk, WriteError> {
        let mut chunk = Chunk::new();
        for page in self.rows.chunks(SERIES_PAGE_ROWS) {
            let words: Vec<i64> = page.iter().map(&of).collect();
            let mut body = Vec::with_capacity(words.len() * 8);
            put_plain(&mut body, &words);
            let stored = self.packer.pack(&body)?;
            chunk.page(Layout::Plain, page.len(), page.len(), body.len(), &stored)?;
        }
        Ok(chunk)
    }

    fn texts(&mut self, of: impl Fn(&'a SeriesRow) -> &'a str) -> Result<Chunk, WriteError> {
        let dictionary = Dictionary::new(self.rows.iter().map(&of));
        let mut chunk = dictionary.chunk(&mut self.packer)?;
        for page in self.rows.chunks(SERIES_PAGE_ROWS) {
            let numbers: Vec<u32> = page.iter().map(|row| dictionary.numbers[of(row)]).collect();
            let mut body = Vec::new();
            text::put_numbers(&mut body, &numbers, dictionary.len());
            let stored = self.packer.pack(&body)?;
            chunk.page(Layout::Dictionary, page.len(), page.len(), body.len(), &stored)?;
        }
        Ok(chunk)
    }

    fn labels(&mut self, of: impl Fn((&'a str, &'a str)) -> &'a str) -> Result<Chunk, WriteError> {
        let rows = self.rows;
        let pairs = rows.iter().flat_map(|row| row.labels.without_metric());
        let dictionary = Dictionary::new(pairs.map(&of));
        let mut chunk = dictionary.chunk(&mut self.packer)?;
        for page in rows.chunks(SERIES_PAGE_ROWS) {
            // A label is repeated where it is not the first of its series, and defined where the
            // series has any.
            let (mut repeated, mut defined) = (Vec::new(), Vec::new());
            let mut numbers = Vec::new();
            for row in page {
                let start = numbers.len();
                for pair in row.labels.without_metric() {
                    repeated.push(numbers.len() > start);
                    defined.push(true);
                    numbers.push(dictionary.numbers[of(pair)]);
                }
                if numbers.len() == start {
                    repeated.push(false);
                    defined.push(false);
                }
            }
            let mut body = Vec::new();
            for levels in [&repeated, &defined] {
                let mut bits = Vec::new();
                hybrid::put_bits(&mut bits, levels);
                let len = u32::try_from(bits.len()).expect("a page has limited rows");
                body.extend_from_slice(&len.to_le_bytes());
                body.extend_from_slice(&bits);
            }
            text::put_numbers(&mut body, &numbers, dictionary.len());
            let stored = self.packer.pack(&body)?;
            chunk.page(Layout::Dictionary, page.len(), repeated.len(), body.len(), &stored)?;
        }
        Ok(chunk)
    }
}

/// The distinct texts of a column in rising order.
struct Dictionary<'a> {
    sorted: Vec<&'a str>,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> Dictionary<'a> {
    fn new(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for text in texts {
            numbers.entry(text).or_default();
        }
        let mut sorted: Vec<&str> = numbers.keys().copied().collect();
        sorted.sort_unstable();
        for (number, text) in (0..).zip(&sorted) {
            numbers.insert(text, number);
        }
        Self { sorted, numbers }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.sorted.len()).expect("series are limited")
    }

    fn chunk(&self, packer: &mut Packer) -> Result<Chunk, WriteError> {
        let mut body = Vec::new();
        text::put_dictionary(&mut body, self.sorted.iter().copied());
        let mut chunk = Chunk::new();
        chunk.dictionary(packer, &body, self.sorted.len())?;
        Ok(chunk)
    }
}
