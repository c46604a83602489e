//! Numbers for series: by the way they are written, so that a known one costs a hash and a
//! comparison, and by their labels, so that two ways to write one series give one number.

use hashbrown::HashTable;
use tributary_promql::Labels;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::key::{self, KeyRules};

/// The series met so far.
#[derive(Default)]
pub(super) struct SeriesTable {
    labels: Vec<Labels>,
    by_labels: HashTable<u32>,
    by_text: HashTable<Written>,
    texts: Vec<u8>,
}

/// A series as it was written somewhere.
#[derive(Clone, Copy, Debug)]
struct Written {
    hash: u64,
    start: usize,
    len: usize,
    bound_label: Option<&'static str>,
    series: u32,
}

impl SeriesTable {
    /// Number of series.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.labels.len()).expect("numbers are given out in 32 bits")
    }

    /// Labels of a series.
    pub(super) fn labels(&self, series: u32) -> &Labels {
        &self.labels[series as usize]
    }

    /// The number of a series as it is written, a new one where it is new.
    pub(super) fn find_or_add(&mut self, raw: &[u8], rules: KeyRules) -> Result<u32, String> {
        let bound_label = rules.bound_label();
        let hash = xxh3_64_with_seed(raw, bound_label.map_or(0, |label| label.len() as u64));
        let same = |known: &Written| {
            known.hash == hash
                && known.bound_label == bound_label
                && self.texts[known.start..known.start + known.len] == *raw
        };
        if let Some(known) = self.by_text.find(hash, same) {
            return Ok(known.series);
        }
        let series = self.find_or_add_labels(key::parse(raw, rules)?)?;
        let written =
            Written { hash, start: self.texts.len(), len: raw.len(), bound_label, series };
        self.texts.extend_from_slice(raw);
        self.by_text.insert_unique(hash, written, |known| known.hash);
        Ok(series)
    }

    fn find_or_add_labels(&mut self, labels: Labels) -> Result<u32, String> {
        let hash = labels.hash64();
        let same = |known: &u32| self.labels[*known as usize] == labels;
        if let Some(known) = self.by_labels.find(hash, same) {
            return Ok(*known);
        }
        let series = u32::try_from(self.labels.len()).map_err(|_| "too many series".to_owned())?;
        self.labels.push(labels);
        let Self { labels, by_labels, .. } = self;
        by_labels.insert_unique(hash, series, |known| labels[*known as usize].hash64());
        Ok(series)
    }
}

impl std::fmt::Debug for SeriesTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} series", self.labels.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use crate::schema::Kind;

    #[test]
    fn one_series_has_one_number_however_it_is_written() {
        let mut table = SeriesTable::default();
        let rules = KeyRules { format: Format::OpenMetrics, kind: Kind::Unknown };
        let first = table.find_or_add(br#"up{a="1",b="2"}"#, rules).unwrap();
        assert_eq!(table.find_or_add(br#"up{b="2",a="1"}"#, rules), Ok(first));
        assert_eq!(table.find_or_add(br#"{"up",b="2",a="1",}"#, rules), Ok(first));
        assert_ne!(table.find_or_add(br#"up{a="2",b="2"}"#, rules), Ok(first));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn the_same_text_under_another_kind_may_be_another_series() {
        let mut table = SeriesTable::default();
        let rules = |kind| KeyRules { format: Format::OpenMetrics, kind };
        let plain = table.find_or_add(br#"x{le="1"}"#, rules(Kind::Gauge)).unwrap();
        let bucket = table.find_or_add(br#"x{le="1"}"#, rules(Kind::Histogram)).unwrap();
        assert_ne!(plain, bucket);
        assert_eq!(table.labels(bucket).get("le"), Some("1.0"));
        assert_eq!(table.find_or_add(br#"x{le="1"}"#, rules(Kind::Counter)), Ok(plain));
    }
}
