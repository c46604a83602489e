//! The columns of the file of series, decoded and checked: afterwards every number lies within what
//! it points into, and every order that was promised holds.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tributary_promql::matcher::METRIC_NAME;

use crate::error::SegmentError;
use crate::footer::{ColumnPages, Footer, PageRef};
use crate::page::header::{PageHeader, PageKind};
use crate::page::split::read_plain;
use crate::page::text::{Strings, read_numbers};
use crate::page::unpack::Unpacker;
use crate::page::{Layout, Malformed, hybrid};
use crate::schema::{Family, Kind, MAX_SAMPLES, MAX_SERIES, SERIES_PAGE_ROWS, series_column as at};

/// Largest body of a page with texts or labels.
const MAX_TEXT_BYTES: usize = 256 << 20;

/// Most labels in one page: more than five hundred a series.
const MAX_PAGE_LABELS: usize = 1 << 26;

/// One entry a series in each list, but for those that say otherwise.
pub(super) struct Columns {
    pub(super) metrics: Strings,
    pub(super) metric: Vec<u32>,
    pub(super) names: Strings,
    pub(super) values: Strings,
    /// Where the pairs of each series end.
    label_ends: Vec<u32>,
    /// Names of all pairs of all series.
    pub(super) label_names: Vec<u32>,
    /// Values of all pairs of all series.
    label_values: Vec<u32>,
    /// Where the rows of each series end.
    pub(super) row_ends: Vec<u64>,
    pub(super) min_ts: Vec<i64>,
    pub(super) max_ts: Vec<i64>,
    pub(super) times: Vec<u32>,
    /// Distinct families, and each series' number among them.
    pub(super) families: Vec<Arc<Family>>,
    pub(super) family: Vec<u32>,
}

impl Columns {
    /// Decodes and checks all columns.
    pub(super) fn decode(footer: &Footer, name: &str) -> Result<Self, SegmentError> {
        if footer.seal.from != 0 {
            return Err(SegmentError::corrupt(name, "it is not sealed as a whole"));
        }
        let rows = footer.rows()?;
        if rows > u64::from(MAX_SERIES) {
            let (file, limit) = (name.to_owned(), u64::from(MAX_SERIES));
            return Err(SegmentError::TooLarge {
                file,
                what: "the number of series",
                found: rows,
                limit,
            });
        }
        let mut pages = Vec::with_capacity(at::HELP + 1);
        for column in 0..=at::HELP {
            pages.push(footer.pages(column, SERIES_PAGE_ROWS as u64)?);
        }
        let mut decoder = Decoder {
            file: &footer.sealed,
            pages,
            unpacker: Unpacker::default(),
            body: Vec::new(),
        };
        let columns = decoder.decode().and_then(|columns| columns.check(rows).map(|()| columns));
        columns.map_err(|e| SegmentError::corrupt(name, e.0))
    }

    /// Number of series.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.metric.len()).expect("series are limited")
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let texts = [&self.metrics, &self.names, &self.values];
        let words = [
            &self.metric,
            &self.label_ends,
            &self.label_names,
            &self.label_values,
            &self.times,
            &self.family,
        ];
        let family = |family: &Arc<Family>| {
            size_of::<Family>() + family.name.len() + family.unit.len() + family.help.len()
        };
        texts.iter().map(|strings| strings.memory_bytes()).sum::<usize>()
            + words.iter().map(|column| column.capacity() * size_of::<u32>()).sum::<usize>()
            + self.row_ends.capacity() * size_of::<u64>()
            + (self.min_ts.capacity() + self.max_ts.capacity()) * size_of::<i64>()
            + self.families.iter().map(family).sum::<usize>()
    }

    /// Numbers of the names and values of a series' pairs.
    pub(super) fn pairs(&self, series: u32) -> impl Iterator<Item = (u32, u32)> {
        let series = series as usize;
        let start = series.checked_sub(1).map_or(0, |before| self.label_ends[before]) as usize;
        let range = start..self.label_ends[series] as usize;
        let values = self.label_values[range.clone()].iter().copied();
        self.label_names[range].iter().copied().zip(values)
    }

    /// The first series of each metric, and the end.
    pub(super) fn metric_starts(&self) -> Vec<u32> {
        let mut starts = vec![0; self.metrics.len() as usize + 1];
        for metric in &self.metric {
            starts[*metric as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        starts
    }

    fn check(&self, rows: u64) -> Result<(), Malformed> {
        let len = self.metric.len();
        let same_length = [
            self.label_ends.len(),
            self.row_ends.len(),
            self.min_ts.len(),
            self.max_ts.len(),
            self.times.len(),
            self.family.len(),
        ];
        if len as u64 != rows || same_length.iter().any(|other| *other != len) {
            return Err("its columns have different lengths".into());
        }
        let reserved = [self.names.find(""), self.names.find(METRIC_NAME), self.values.find("")];
        if reserved.iter().any(Option::is_some) {
            return Err("a label is empty or names the metric".into());
        }
        for series in 0..self.len() {
            let mut names = self.pairs(series).map(|pair| pair.0);
            let mut last = names.next();
            for name in names {
                if last.replace(name).is_some_and(|last| last >= name) {
                    return Err("the labels of a series are not sorted".into());
                }
            }
            if series > 0 && self.order(series - 1).cmp(self.order(series)).is_ge() {
                return Err("its series are not sorted".into());
            }
            self.check_times(series as usize)?;
        }
        Ok(())
    }

    /// What the order of the series is by. Dictionaries are sorted, so numbers stand for texts.
    fn order(&self, series: u32) -> impl Iterator<Item = (u32, u32)> {
        std::iter::once((self.metric[series as usize], 0)).chain(self.pairs(series))
    }

    fn check_times(&self, series: usize) -> Result<(), Malformed> {
        if self.min_ts[series] > self.max_ts[series] {
            return Err("a series ends before it starts".into());
        }
        let count = |series: usize| {
            let start = series.checked_sub(1).map_or(0, |before| self.row_ends[before]);
            self.row_ends[series] - start
        };
        let first = self.times[series] as usize;
        let same = first <= series
            && self.times[first] as usize == first
            && count(first) == count(series)
            && self.min_ts[first] == self.min_ts[series]
            && self.max_ts[first] == self.max_ts[series];
        if same { Ok(()) } else { Err("a series shares its times with another one's".into()) }
    }
}

struct Decoder<'a> {
    file: &'a Bytes,
    pages: Vec<ColumnPages>,
    unpacker: Unpacker,
    body: Vec<u8>,
}

impl Decoder<'_> {
    fn decode(&mut self) -> Result<Columns, Malformed> {
        let numbers = self.numbers(at::SERIES)?;
        if !numbers.iter().copied().eq(0..u32::try_from(numbers.len()).expect("limited")) {
            return Err("its series are not numbered from zero".into());
        }
        let (metrics, metric) = self.texts(at::METRIC)?;
        let (names, label_names, label_ends) = self.labels(at::LABEL_NAME)?;
        let (values, label_values, value_ends) = self.labels(at::LABEL_VALUE)?;
        if label_ends != value_ends {
            return Err("its labels have more names than values, or fewer".into());
        }
        let row_ends = row_ends(&self.words(at::FIRST_ROW)?, &self.words(at::ROW_COUNT)?)?;
        let (families, family) = self.families()?;
        Ok(Columns {
            metrics,
            metric,
            names,
            values,
            label_ends,
            label_names,
            label_values,
            row_ends,
            min_ts: self.words(at::MIN_TS)?,
            max_ts: self.words(at::MAX_TS)?,
            times: self.numbers(at::TIMES)?,
            families,
            family,
        })
    }

    fn unpack(
        &mut self,
        page: std::ops::Range<u64>,
        kind: PageKind,
        limit: usize,
    ) -> Result<PageHeader, Malformed> {
        let index = |at: u64| usize::try_from(at).expect("the file is in memory");
        let bytes = &self.file[index(page.start)..index(page.end)];
        self.unpacker.unpack(bytes, kind, limit, &mut self.body)
    }

    /// Decompresses each page of a column of fixed width and hands it on.
    fn plain(
        &mut self,
        column: usize,
        width: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        for PageRef { rows, bytes, .. } in self.pages[column].pages.clone() {
            let (rows, size) = (rows as usize, rows as usize * width);
            let header = self.unpack(bytes, PageKind::Data, size)?;
            if header.layout != Layout::Plain || header.values != rows || self.body.len() != size {
                return Err("a page has another size than its rows".into());
            }
            each(&self.body);
        }
        Ok(())
    }

    fn numbers(&mut self, column: usize) -> Result<Vec<u32>, Malformed> {
        let mut numbers = Vec::new();
        self.plain(column, 4, |body| {
            let (fours, _) = body.as_chunks::<4>();
            numbers.extend(fours.iter().map(|four| u32::from_le_bytes(*four)));
        })?;
        Ok(numbers)
    }

    fn words(&mut self, column: usize) -> Result<Vec<i64>, Malformed> {
        let mut words = Vec::new();
        self.plain(column, 8, |body| read_plain(body, &mut words))?;
        Ok(words)
    }

    /// The dictionary of a column. A file without series has none; there is one row group at most.
    fn dictionary(&mut self, column: usize) -> Result<Strings, Malformed> {
        match self.pages[column].dictionaries.as_slice() {
            [] => Ok(Strings::default()),
            [Some(range)] => {
                let range = range.clone();
                let header = self.unpack(range, PageKind::Dictionary, MAX_TEXT_BYTES)?;
                Strings::decode(&self.body, header.values)
            }
            _ => Err("a column of texts has not one dictionary".into()),
        }
    }

    fn texts(&mut self, column: usize) -> Result<(Strings, Vec<u32>), Malformed> {
        let dictionary = self.dictionary(column)?;
        let mut numbers = Vec::new();
        for PageRef { rows, bytes, .. } in self.pages[column].pages.clone() {
            let header = self.unpack(bytes, PageKind::Data, MAX_TEXT_BYTES)?;
            if header.layout != Layout::Dictionary || header.values != rows as usize {
                return Err("a page of texts has another number of them than rows".into());
            }
            read_numbers(&self.body, header.values, dictionary.len(), &mut numbers)?;
        }
        Ok((dictionary, numbers))
    }

    /// The dictionary, the numbers of all labels, and where those of each series end.
    fn labels(&mut self, column: usize) -> Result<(Strings, Vec<u32>, Vec<u32>), Malformed> {
        let dictionary = self.dictionary(column)?;
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        for PageRef { rows, bytes, .. } in self.pages[column].pages.clone() {
            let header = self.unpack(bytes, PageKind::Data, MAX_TEXT_BYTES)?;
            if header.layout != Layout::Dictionary {
                return Err("a page of labels has no dictionary".into());
            }
            let (repeated, rest) = levels(&self.body, header.values)?;
            let (defined, rest) = levels(rest, header.values)?;
            let before = ends.len();
            let mut label_end = numbers.len();
            for (i, (repeated, defined)) in repeated.iter().zip(&defined).enumerate() {
                if *repeated == 0 && i > 0 {
                    ends.push(u32::try_from(label_end).map_err(|_| "it has too many labels")?);
                }
                if *repeated == 1 && (i == 0 || *defined == 0) {
                    return Err("the labels of a series have a gap".into());
                }
                label_end += *defined as usize;
            }
            if header.values > 0 {
                ends.push(u32::try_from(label_end).map_err(|_| "it has too many labels")?);
            }
            if ends.len() - before != rows as usize {
                return Err("a page of labels has another number of series than rows".into());
            }
            let count = label_end - numbers.len();
            read_numbers(rest, count, dictionary.len(), &mut numbers)?;
        }
        Ok((dictionary, numbers, ends))
    }

    fn families(&mut self) -> Result<(Vec<Arc<Family>>, Vec<u32>), Malformed> {
        let columns = [at::KIND, at::FAMILY, at::UNIT, at::HELP];
        let mut texts = Vec::with_capacity(columns.len());
        for column in columns {
            texts.push(self.texts(column)?);
        }
        let len = texts[0].1.len();
        if texts.iter().any(|(_, numbers)| numbers.len() != len) {
            return Err("its columns have different lengths".into());
        }
        let mut families = Vec::new();
        let mut known: HashMap<[u32; 4], u32> = HashMap::new();
        let mut family = Vec::with_capacity(len);
        for series in 0..len {
            let numbers: [u32; 4] = std::array::from_fn(|i| texts[i].1[series]);
            let number = *known.entry(numbers).or_insert_with(|| {
                let [kind, name, unit, help] =
                    std::array::from_fn(|i| texts[i].0.get(numbers[i]).to_owned());
                // A kind that a later release may add is unknown to this one.
                let kind = kind.parse::<Kind>().unwrap_or_default();
                families.push(Arc::new(Family { name, kind, unit, help }));
                u32::try_from(families.len() - 1).expect("not more than series")
            });
            family.push(number);
        }
        Ok((families, family))
    }
}

/// Takes levels of one bit from the front of a page of labels.
fn levels(body: &[u8], count: usize) -> Result<(Vec<u8>, &[u8]), Malformed> {
    let (len, rest) = body.split_at_checked(4).ok_or("a page of labels is cut off")?;
    let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
    let (packed, rest) = rest.split_at_checked(len).ok_or("a page of labels is cut off")?;
    // Some bytes may claim a run of any length.
    if count > MAX_PAGE_LABELS {
        return Err("a page has too many labels".into());
    }
    let mut levels = Vec::with_capacity(count);
    let mut wrong = false;
    hybrid::read(packed, 1, count, |level| {
        wrong |= level > 1;
        levels.push(u8::from(level == 1));
    })?;
    if wrong { Err("a level is neither zero nor one".into()) } else { Ok((levels, rest)) }
}

/// Where the rows of each series end; they follow each other without gaps.
fn row_ends(first_rows: &[i64], counts: &[i64]) -> Result<Vec<u64>, Malformed> {
    let mut end = 0;
    let mut ends = Vec::with_capacity(counts.len());
    for (first, count) in first_rows.iter().zip(counts) {
        let count = u64::try_from(*count).ok().filter(|count| *count > 0 && *count <= MAX_SAMPLES);
        if u64::try_from(*first) != Ok(end) {
            return Err("the rows of its series do not follow each other".into());
        }
        end += count.ok_or("a series has a bad number of rows")?;
        if end > MAX_SAMPLES {
            return Err("its series have too many rows".into());
        }
        ends.push(end);
    }
    Ok(ends)
}
