//! Chooses how the values of a row group are laid out, page by page, by trying.
//!
//! Split bytes are best for counters and smooth gauges, a dictionary for gauges with few distinct
//! values such as percentages, plain values for decimals that repeat but are too many for a
//! dictionary. The figures behind this are in `docs/decisions/0007-segment-encoding.md`.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::error::WriteError;
use crate::page::Layout;
use crate::page::chunk::{Chunk, Packer};
use crate::page::hybrid;
use crate::page::split::{put_plain, put_split};
use crate::schema::{MAX_DICTIONARY, VALUE_PAGE_ROWS};

/// At most this many stored bytes a value are good enough not to try anything else.
const GOOD_BYTES_PER_VALUE: usize = 1;

/// Above this many stored bytes a value, plain values may be smaller than split ones.
const POOR_BYTES_PER_VALUE: usize = 2;

/// A dictionary is tried where at most one value in this many is new to its page.
const MIN_REPEATS: usize = 2;

/// The values of one row group.
pub(crate) struct ValueChunk<'a> {
    values: &'a [f64],
    packer: &'a mut Packer,
    body: Vec<u8>,
}

/// A page with the best layout found for it so far.
struct Page<'a> {
    values: &'a [f64],
    layout: Layout,
    plain_bytes: usize,
    stored: Vec<u8>,
    /// All its values are in the dictionary.
    in_dictionary: bool,
}

impl<'a> ValueChunk<'a> {
    /// Takes the values of a row group.
    pub(crate) fn new(values: &'a [f64], packer: &'a mut Packer) -> Self {
        Self { values, packer, body: Vec::new() }
    }

    /// Encodes all pages, each in its best layout.
    pub(crate) fn write(mut self) -> Result<Chunk, WriteError> {
        let mut distinct = Distinct::default();
        let mut pages = Vec::with_capacity(self.values.len().div_ceil(VALUE_PAGE_ROWS));
        for values in self.values.chunks(VALUE_PAGE_ROWS) {
            pages.push(self.without_dictionary(values, &mut distinct)?);
        }
        let mut chunk = Chunk::new();
        self.with_dictionary(&mut pages, distinct, &mut chunk)?;
        for page in pages {
            let rows = page.values.len();
            chunk.page(page.layout, rows, rows, page.plain_bytes, &page.stored)?;
        }
        Ok(chunk)
    }

    fn without_dictionary<'v>(
        &mut self,
        values: &'v [f64],
        distinct: &mut Distinct,
    ) -> Result<Page<'v>, WriteError> {
        self.body.clear();
        put_split(&mut self.body, values);
        let mut page = Page {
            values,
            layout: Layout::Split,
            plain_bytes: self.body.len(),
            stored: self.packer.pack(&self.body)?,
            in_dictionary: false,
        };
        if page.stored.len() > values.len() * GOOD_BYTES_PER_VALUE {
            page.in_dictionary = distinct.add(values);
        }
        if page.stored.len() > values.len() * POOR_BYTES_PER_VALUE && !page.in_dictionary {
            self.body.clear();
            put_plain(&mut self.body, values);
            let stored = self.packer.pack(&self.body)?;
            if stored.len() < page.stored.len() {
                page.layout = Layout::Plain;
                page.stored = stored;
            }
        }
        Ok(page)
    }

    /// Moves pages to the dictionary where that pays for the dictionary itself.
    fn with_dictionary(
        &mut self,
        pages: &mut [Page<'_>],
        distinct: Distinct,
        chunk: &mut Chunk,
    ) -> Result<(), WriteError> {
        if distinct.values.is_empty() {
            return Ok(());
        }
        let (sorted, numbers) = distinct.rank();
        let mut dictionary = Vec::with_capacity(sorted.len() * 8);
        put_plain(&mut dictionary, &sorted);
        let cost = self.packer.pack(&dictionary)?.len();
        let width = hybrid::byte_width(u32::try_from(sorted.len() - 1).expect("16 bits"));

        let mut gain = 0;
        let mut better = Vec::new();
        let mut page_numbers = Vec::new();
        for (i, page) in pages.iter().enumerate().filter(|(_, page)| page.in_dictionary) {
            page_numbers.clear();
            page_numbers.extend(page.values.iter().map(|value| numbers[&value.to_bits()]));
            self.body.clear();
            self.body.push(width);
            hybrid::put_bytes_run(&mut self.body, &page_numbers, width);
            let stored = self.packer.pack(&self.body)?;
            if stored.len() < page.stored.len() {
                gain += page.stored.len() - stored.len();
                better.push((i, self.body.len(), stored));
            }
        }
        if gain <= cost {
            return Ok(());
        }
        chunk.dictionary(self.packer, &dictionary, sorted.len())?;
        for (i, plain_bytes, stored) in better {
            let page = &mut pages[i];
            (page.layout, page.plain_bytes, page.stored) =
                (Layout::Dictionary, plain_bytes, stored);
        }
        Ok(())
    }
}

/// The distinct values of those pages that have few.
#[derive(Default)]
struct Distinct {
    values: HashSet<u64, BuildHasherDefault<BitsHasher>>,
}

impl Distinct {
    /// Adds a page's values, unless it has too many new ones.
    fn add(&mut self, values: &[f64]) -> bool {
        let limit = (values.len() / MIN_REPEATS).min(MAX_DICTIONARY - self.values.len());
        let mut new = HashSet::<u64, BuildHasherDefault<BitsHasher>>::default();
        for value in values {
            let bits = value.to_bits();
            if !self.values.contains(&bits) && new.insert(bits) && new.len() > limit {
                return false;
            }
        }
        self.values.extend(new);
        true
    }

    /// The values in rising order, and each one's place. The order is total and by bits, so that
    /// equal content gives equal files.
    fn rank(self) -> (Vec<f64>, HashMap<u64, u32, BuildHasherDefault<BitsHasher>>) {
        let mut sorted: Vec<f64> = self.values.into_iter().map(f64::from_bits).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let numbers = sorted.iter().map(|value| value.to_bits()).zip(0..).collect();
        (sorted, numbers)
    }
}

/// Mixes the bits of a value. The standard hasher is made for keys that an enemy chooses, and
/// takes several times as long; here the worst an enemy gains is a slower import of his data.
#[derive(Default)]
struct BitsHasher(u64);

impl Hasher for BitsHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, bits: u64) {
        let mixed = (bits ^ (bits >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::header::{PageHeader, PageKind};
    use parquet::basic::BoundaryOrder;

    fn layouts(values: &[f64]) -> Vec<Layout> {
        let mut packer = Packer::new(3, 1 << 20).unwrap();
        let chunk = ValueChunk::new(values, &mut packer).write().unwrap();
        let column = crate::schema::FileKind::Samples.schema().column(2);
        let (bytes, close) = chunk.finish(&column, None, BoundaryOrder::UNORDERED).unwrap();
        let mut found = Vec::new();
        for page in close.offset_index.unwrap().page_locations() {
            let at = usize::try_from(page.offset).unwrap();
            let (header, _) = PageHeader::decode(&bytes[at..]).unwrap();
            assert_eq!(header.kind, PageKind::Data);
            found.push(header.layout);
        }
        found
    }

    /// Numbers that look like chance but are the same in every run.
    fn noise(i: u64) -> u64 {
        (i ^ 0x55).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    #[test]
    fn each_nature_of_values_gets_its_own_layout_even_within_a_row_group() {
        let page = VALUE_PAGE_ROWS as u64;
        let counter = (0..page).map(|i| (i * 30 + noise(i) % 20) as f64);
        let percent = (0..page).map(|i| (noise(i) % 10_001) as f64 / 100.0);
        let constant = (0..page).map(|_| 1.0);
        let all: Vec<f64> = counter.chain(percent).chain(constant).collect();
        assert_eq!(layouts(&all), [Layout::Split, Layout::Dictionary, Layout::Split]);
    }

    #[test]
    fn a_dictionary_never_outgrows_its_numbers() {
        // Each page has few distinct values, but each page others.
        let values: Vec<f64> =
            (0..GROUP).map(|i| ((i / 32_768) * 8_000 + noise(i) % 8_000) as f64 / 7.0).collect();
        const GROUP: u64 = 1 << 20;
        let layouts = layouts(&values);
        assert!(layouts.contains(&Layout::Dictionary));
        assert!(layouts.iter().any(|layout| *layout != Layout::Dictionary));
    }
}
