//! For every value of every label: the series that have it.

use std::ops::Range;

use super::columns::Columns;

/// Lists of series, one after the other, by label name and then by value. A list is known by its
/// place among all lists.
pub(super) struct Postings {
    /// First place of each name, and the end.
    name_starts: Vec<usize>,
    /// The value of each list.
    values: Vec<u32>,
    /// Where each list begins, and the end.
    starts: Vec<usize>,
    series: Vec<u32>,
}

impl Postings {
    /// Sorts all label pairs by name, value and series: counted by value, then by name, so that
    /// it takes as long as there are pairs.
    pub(super) fn new(columns: &Columns) -> Self {
        let mut pairs = Vec::with_capacity(columns.label_names.len());
        for series in 0..columns.len() {
            pairs.extend(columns.pairs(series).map(|(name, value)| Pair { name, value, series }));
        }
        let by_value = counting_sort(&pairs, columns.values.len(), |pair| pair.value);
        let sorted = counting_sort(&by_value, columns.names.len(), |pair| pair.name);

        let mut postings = Self {
            name_starts: Vec::with_capacity(columns.names.len() as usize + 1),
            values: Vec::new(),
            starts: Vec::new(),
            series: sorted.iter().map(|pair| pair.series).collect(),
        };
        let mut last = None;
        for (i, pair) in sorted.iter().enumerate() {
            if last != Some((pair.name, pair.value)) {
                last = Some((pair.name, pair.value));
                // Names without series, in a file that has more names than it needs, are empty.
                while postings.name_starts.len() <= pair.name as usize {
                    postings.name_starts.push(postings.values.len());
                }
                postings.values.push(pair.value);
                postings.starts.push(i);
            }
        }
        postings.starts.push(sorted.len());
        postings.name_starts.resize(columns.names.len() as usize + 1, postings.values.len());
        postings
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.name_starts.capacity() + self.starts.capacity()) * size_of::<usize>()
            + (self.values.capacity() + self.series.capacity()) * size_of::<u32>()
    }

    /// The places of a name's lists, in the order of their values.
    pub(super) fn places(&self, name: u32) -> Range<usize> {
        self.name_starts[name as usize]..self.name_starts[name as usize + 1]
    }

    /// The values of a name, in rising order.
    pub(super) fn values(&self, name: u32) -> &[u32] {
        &self.values[self.places(name)]
    }

    /// The value of the list at a place.
    pub(super) fn value(&self, place: usize) -> u32 {
        self.values[place]
    }

    /// The list at a place.
    pub(super) fn series(&self, place: usize) -> &[u32] {
        &self.series[self.starts[place]..self.starts[place + 1]]
    }

    /// The place of a name's value.
    pub(super) fn find(&self, name: u32, value: u32) -> Option<usize> {
        let at = self.values(name).binary_search(&value).ok()?;
        Some(self.name_starts[name as usize] + at)
    }

    /// The first place of a name whose value is not before the wanted ones.
    pub(super) fn first_place(&self, name: u32, reached: impl Fn(u32) -> bool) -> usize {
        let at = self.values(name).partition_point(|value| !reached(*value));
        self.name_starts[name as usize] + at
    }
}

#[derive(Clone, Copy, Default)]
struct Pair {
    name: u32,
    value: u32,
    series: u32,
}

fn counting_sort(pairs: &[Pair], keys: u32, key: impl Fn(&Pair) -> u32) -> Vec<Pair> {
    let mut next = vec![0_usize; keys as usize + 1];
    for pair in pairs {
        next[key(pair) as usize + 1] += 1;
    }
    for i in 1..next.len() {
        next[i] += next[i - 1];
    }
    let mut sorted = vec![Pair::default(); pairs.len()];
    for pair in pairs {
        let at = &mut next[key(pair) as usize];
        sorted[*at] = *pair;
        *at += 1;
    }
    sorted
}
