//! What can be said of a series in a few numbers: the least, the most, the sum, and exact quantiles
//! of its values.

use std::collections::BTreeMap;

use tributary_promql::exact::ExactSum;
use tributary_promql::window::{is_absent, quantile};
use tributary_promql::{FlowChunk, Labels};

use crate::error::QueryError;
use crate::http::prometheus::query::too_many_values;

/// The values of all series of a query, until they are summed up. All are held: quantiles are exact.
#[derive(Debug)]
pub(super) struct Summaries {
    values: BTreeMap<Labels, Vec<f64>>,
    held: u64,
    most: u64,
}

/// A series in a few numbers. What is not a number does not count; where nothing counts, neither
/// least nor most nor mean is a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) avg: f64,
    pub(super) sum: f64,
    pub(super) count: usize,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl Summaries {
    /// Nothing yet; so many values may be held.
    pub(super) const fn new(most: u64) -> Self {
        Self { values: BTreeMap::new(), held: 0, most }
    }

    /// Takes in the values of a chunk.
    pub(super) fn take(&mut self, chunk: &FlowChunk) -> Result<(), QueryError> {
        for row in &chunk.rows {
            let there = || row.values.iter().copied().filter(|value| !is_absent(*value));
            let count = there().count();
            self.held += count as u64;
            if self.held > self.most {
                return Err(too_many_values(self.most));
            }
            if count > 0 {
                self.values.entry(row.labels.clone()).or_default().extend(there());
            }
        }
        Ok(())
    }

    /// The next series, by labels, with its summary and how many values went into it.
    pub(super) fn next(&mut self) -> Option<(Labels, Summary, usize)> {
        let (labels, values) = self.values.pop_first()?;
        let count = values.len();
        Some((labels, Summary::of(values), count))
    }
}

impl Summary {
    fn of(mut values: Vec<f64>) -> Self {
        values.retain(|value| !value.is_nan());
        let mut sum = ExactSum::default();
        for value in &values {
            sum.add(*value);
        }
        let quantiles = [0.5, 0.9, 0.95, 0.99].map(|q| quantile(q, &mut values));
        let nothing = f64::NAN;
        // Sorted by now.
        Self {
            min: values.first().copied().unwrap_or(nothing),
            max: values.last().copied().unwrap_or(nothing),
            avg: if values.is_empty() { nothing } else { sum.mean(values.len() as u64) },
            sum: sum.value(),
            count: values.len(),
            p50: quantiles[0],
            p90: quantiles[1],
            p95: quantiles[2],
            p99: quantiles[3],
        }
    }
}

#[cfg(test)]
mod tests {
    use tributary_promql::frame::Row;
    use tributary_promql::window::ABSENT;

    use super::*;

    #[test]
    fn quantiles_are_exact_and_what_is_no_number_does_not_count() {
        let values: Vec<f64> = (1..=101).rev().map(f64::from).chain([f64::NAN]).collect();
        let summary = Summary::of(values);
        assert_eq!(
            summary,
            Summary {
                min: 1.0,
                max: 101.0,
                avg: 51.0,
                sum: 5151.0,
                count: 101,
                p50: 51.0,
                p90: 91.0,
                p95: 96.0,
                p99: 100.0,
            }
        );
        let nothing = Summary::of(vec![f64::NAN]);
        assert_eq!((nothing.count, nothing.sum), (0, 0.0));
        assert!(nothing.min.is_nan() && nothing.avg.is_nan() && nothing.p99.is_nan());
        assert_eq!(Summary::of(vec![2.5]).p90, 2.5);
    }

    #[test]
    fn chunks_add_up_until_there_is_too_much() {
        let chunk = |name: &str, values: &[f64]| FlowChunk {
            ts: vec![0; values.len()],
            rows: vec![Row {
                labels: Labels::new([("a", name)]).unwrap(),
                drop_name: false,
                values: values.to_vec(),
            }],
        };
        let mut summaries = Summaries::new(4);
        summaries.take(&chunk("2", &[1.0, ABSENT])).unwrap();
        summaries.take(&chunk("1", &[5.0])).unwrap();
        summaries.take(&chunk("2", &[3.0, ABSENT])).unwrap();
        let too_much = summaries.take(&chunk("2", &[3.0, 4.0])).unwrap_err();
        assert!(too_much.to_string().contains("max_values"), "{too_much}");
        let (labels, summary, count) = summaries.next().unwrap();
        assert_eq!((labels.to_string().as_str(), summary.sum, count), ("{a=\"1\"}", 5.0, 1));
        let (_, summary, count) = summaries.next().unwrap();
        assert_eq!((summary.avg, count), (2.0, 2));
        assert!(summaries.next().is_none());
    }
}
