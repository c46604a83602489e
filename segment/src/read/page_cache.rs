//! The page in hand: fetched together with its neighbours, decompressed once, and read row by row.

use std::ops::Range;

use bytes::Bytes;

use crate::error::SegmentError;
use crate::footer::{ColumnPages, PageRef};
use crate::page::header::PageKind;
use crate::page::split::{Word, read_plain, read_split};
use crate::page::unpack::Unpacker;
use crate::page::{Layout, Malformed, hybrid};
use crate::schema::MAX_DICTIONARY;
use crate::source::ByteSource;

/// At most this much of a file is fetched at once.
const MAX_FETCH_BYTES: u64 = 4 << 20;

/// Pages this close to each other are fetched together with what lies between.
const MAX_GAP_BYTES: u64 = 16 << 10;

/// The most that a page of dictionary numbers has beyond two bytes a row: its width, the head of
/// the run, and the padding to a group of eight.
const NUMBERS_EXTRA_BYTES: usize = 1 + 10 + 16;

/// What is known of the page in hand and of the bytes fetched so far, for one column.
#[derive(Default)]
pub(super) struct PageCache {
    unpacker: Unpacker,
    /// Pages that are still wanted, in rising order; known so that they are fetched together.
    wanted: Vec<usize>,
    fetched: Bytes,
    fetched_at: u64,
    /// The page in hand, by its number.
    page: Option<usize>,
    layout: Option<Layout>,
    body: Vec<u8>,
    /// The row group whose dictionary is at hand.
    group: Option<u32>,
    dictionary: Vec<u64>,
}

/// A column of a file.
pub(super) struct ColumnOf<'a, S> {
    pub(super) source: &'a S,
    pub(super) pages: &'a ColumnPages,
}

impl PageCache {
    /// Forgets everything: another file may follow.
    pub(super) fn reset(&mut self) {
        self.wanted.clear();
        self.fetched = Bytes::new();
        self.page = None;
        self.group = None;
    }

    /// Says which pages will be read next. Numbers rise; a page may be named again.
    pub(super) fn want(&mut self, pages: impl Iterator<Item = usize>) {
        self.wanted.clear();
        self.wanted.extend(pages);
        self.wanted.dedup();
    }

    /// Appends the values of some rows.
    pub(super) fn read<S: ByteSource, T: Word>(
        &mut self,
        column: &ColumnOf<'_, S>,
        rows: Range<u64>,
        out: &mut Vec<T>,
    ) -> Result<(), SegmentError> {
        // Most series are in the page of the one before.
        let in_hand = self.page.filter(|page| column.pages.pages[*page].holds(&rows));
        let pages = match in_hand {
            Some(page) => page..page + 1,
            None => column.pages.page_numbers(rows.clone()),
        };
        for number in pages {
            let page = &column.pages.pages[number];
            if self.page != Some(number) {
                self.turn_to(column, number)?;
            }
            let from = rows.start.max(page.first_row) - page.first_row;
            let to = rows.end.min(page.end_row()) - page.first_row;
            let index = |row: u64| usize::try_from(row).expect("a page has limited rows");
            self.decode(page.rows as usize, index(from), index(to), out)
                .map_err(|e| corrupt(column.source, page, e))?;
        }
        Ok(())
    }

    /// Makes a page the one in hand.
    fn turn_to<S: ByteSource>(
        &mut self,
        column: &ColumnOf<'_, S>,
        number: usize,
    ) -> Result<(), SegmentError> {
        self.page = None;
        let page = &column.pages.pages[number];
        let stored = self.fetch(column, number)?;
        let rows = page.rows as usize;
        let header = self
            .unpacker
            .unpack(&stored, PageKind::Data, rows * 8 + NUMBERS_EXTRA_BYTES, &mut self.body)
            .map_err(|e| corrupt(column.source, page, e))?;
        let fits = match header.layout {
            Layout::Plain | Layout::Split => self.body.len() == rows * 8,
            Layout::Dictionary => self.body.len() <= rows * 2 + NUMBERS_EXTRA_BYTES,
        };
        if header.values != rows || !fits {
            let reason = Malformed::from("a page has another size than its rows");
            return Err(corrupt(column.source, page, reason));
        }
        if header.layout == Layout::Dictionary {
            self.check_numbers(rows).map_err(|e| corrupt(column.source, page, e))?;
            self.turn_to_dictionary(column, page)?;
        }
        self.layout = Some(header.layout);
        self.page = Some(number);
        Ok(())
    }

    /// Leaves in `body` just the numbers, one or two bytes each. Our pages have them that way, in
    /// a single run; any other page of numbers is rewritten.
    fn check_numbers(&mut self, rows: usize) -> Result<(), Malformed> {
        let (width, run) = self.body.split_first().ok_or("a page has no width")?;
        let width = *width;
        if !matches!(width, 8 | 16) {
            return Err("a page of numbers has another width than ours".into());
        }
        let (head, len) = hybrid::get_varint(run).ok_or("a run has no head")?;
        let groups = rows.div_ceil(8);
        let packed = groups * usize::from(width);
        if head != ((groups as u64) << 1 | 1) || run.len() - len != packed {
            return Err("a page of numbers is not a single run".into());
        }
        self.body.drain(..1 + len);
        if width == 8 {
            let narrow = std::mem::take(&mut self.body);
            self.body.reserve(narrow.len() * 2);
            self.body.extend(narrow.iter().flat_map(|number| [*number, 0]));
        }
        Ok(())
    }

    fn turn_to_dictionary<S: ByteSource>(
        &mut self,
        column: &ColumnOf<'_, S>,
        page: &PageRef,
    ) -> Result<(), SegmentError> {
        if self.group == Some(page.group) {
            return Ok(());
        }
        self.group = None;
        let missing = || corrupt(column.source, page, "a page lacks its dictionary".into());
        let range = column.pages.dictionaries[page.group as usize].clone().ok_or_else(missing)?;
        let name = column.source.name();
        let stored = column.source.read_range(range).map_err(|e| SegmentError::io(name, e))?;
        let mut body = Vec::new();
        let header = self
            .unpacker
            .unpack(&stored, PageKind::Dictionary, MAX_DICTIONARY * 8, &mut body)
            .map_err(|e| corrupt(column.source, page, e))?;
        if body.len() != header.values * 8 {
            let reason = Malformed::from("a dictionary has another size than its count");
            return Err(corrupt(column.source, page, reason));
        }
        self.dictionary.clear();
        let (words, _) = body.as_chunks::<8>();
        self.dictionary.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        self.group = Some(page.group);
        Ok(())
    }

    /// Appends the values of some rows of the page in hand.
    fn decode<T: Word>(
        &self,
        rows: usize,
        from: usize,
        to: usize,
        out: &mut Vec<T>,
    ) -> Result<(), Malformed> {
        match self.layout {
            Some(Layout::Plain) => read_plain(&self.body[from * 8..to * 8], out),
            Some(Layout::Split) => read_split(&self.body, rows, from, to, out),
            Some(Layout::Dictionary) => {
                let (numbers, _) = self.body[from * 2..to * 2].as_chunks::<2>();
                let mut outside = false;
                out.extend(numbers.iter().map(|number| {
                    let bits = self.dictionary.get(usize::from(u16::from_le_bytes(*number)));
                    outside |= bits.is_none();
                    T::from_bits(bits.copied().unwrap_or_default())
                }));
                if outside {
                    return Err("a number is outside its dictionary".into());
                }
            }
            None => return Err("no page is at hand".into()),
        }
        Ok(())
    }

    /// The stored bytes of a page, from what was fetched or together with those wanted after it.
    fn fetch<S: ByteSource>(
        &mut self,
        column: &ColumnOf<'_, S>,
        number: usize,
    ) -> Result<Bytes, SegmentError> {
        let page = column.pages.pages[number].bytes.clone();
        let fetched = self.fetched_at..self.fetched_at + self.fetched.len() as u64;
        if page.start < fetched.start || page.end > fetched.end {
            let mut end = page.end;
            let from = self.wanted.partition_point(|wanted| *wanted <= number);
            for next in &self.wanted[from..] {
                let next = &column.pages.pages[*next].bytes;
                if next.start - end > MAX_GAP_BYTES || next.end - page.start > MAX_FETCH_BYTES {
                    break;
                }
                end = next.end;
            }
            let name = column.source.name();
            let range = page.start..end;
            self.fetched_at = page.start;
            self.fetched =
                column.source.read_range(range).map_err(|e| SegmentError::io(name, e))?;
            if self.fetched.len() as u64 != end - page.start {
                let short = std::io::ErrorKind::UnexpectedEof.into();
                return Err(SegmentError::io(name, short));
            }
        }
        let start = usize::try_from(page.start - self.fetched_at).expect("fetches are limited");
        let len = usize::try_from(page.end - page.start).expect("pages are limited");
        Ok(self.fetched.slice(start..start + len))
    }
}

fn corrupt(source: &impl ByteSource, page: &PageRef, reason: Malformed) -> SegmentError {
    let Range { start, end } = page.bytes;
    SegmentError::corrupt(source.name(), format!("{} (bytes {start} to {end})", reason.0))
}
