//! An instant vector at every step of a query: one row of values for every series. What
//! expressions are made of between the leaves and the answer.

use crate::labels::Labels;
use crate::window::{ABSENT, is_absent};

/// One series of a [`Frame`].
#[derive(Clone, Debug)]
pub struct Row {
    /// Its labels.
    pub labels: Labels,
    /// The metric's name has lost its meaning and goes at the end, unless somebody asks for it
    /// before.
    pub drop_name: bool,
    /// Its value at every step; [`ABSENT`] where it has none.
    pub values: Vec<f64>,
}

/// Series with their values at the same steps. No two rows have the same labels.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The series.
    pub rows: Vec<Row>,
}

/// Two series ended up with the same labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("vector cannot contain metrics with the same labelset")]
pub struct SameLabels;

impl Row {
    /// A row with a value at some step at least.
    pub fn has_values(&self) -> bool {
        self.values.iter().any(|value| !is_absent(*value))
    }
}

impl Frame {
    /// Takes rows whose labels may be equal: those that are never there at the same step become
    /// one, others are an error. Rows without any value go.
    pub fn collect(mut rows: Vec<Row>) -> Result<Self, SameLabels> {
        rows.retain(Row::has_values);
        // Stable: which of two halves of a series came first makes no difference to the result.
        rows.sort_by(|a, b| a.labels.cmp(&b.labels));
        let mut frame: Vec<Row> = Vec::with_capacity(rows.len());
        for row in rows {
            match frame.last_mut() {
                Some(last) if last.labels == row.labels => {
                    for (mine, theirs) in last.values.iter_mut().zip(row.values) {
                        match (is_absent(*mine), is_absent(theirs)) {
                            (true, _) => *mine = theirs,
                            (false, true) => {}
                            (false, false) => return Err(SameLabels),
                        }
                    }
                    last.drop_name &= row.drop_name;
                }
                _ => frame.push(row),
            }
        }
        Ok(Self { rows: frame })
    }

    /// The values of one series everywhere: a scalar or a literal.
    pub fn of_one(labels: Labels, values: Vec<f64>) -> Self {
        Self { rows: vec![Row { labels, drop_name: false, values }] }
    }

    /// Applies a function to every value that is there; the metric's name loses its meaning.
    pub fn map(mut self, function: impl Fn(f64) -> f64) -> Self {
        for row in &mut self.rows {
            row.drop_name = true;
            for value in &mut row.values {
                if !is_absent(*value) {
                    *value = present(function(*value));
                }
            }
        }
        self
    }
}

/// A result that happens to have the bits of [`ABSENT`] is an ordinary NaN.
#[inline]
pub fn present(value: f64) -> f64 {
    if is_absent(value) { f64::NAN } else { value }
}

/// A row's worth of nothing.
pub fn nothing(steps: usize) -> Vec<f64> {
    vec![ABSENT; steps]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, values: &[f64]) -> Row {
        Row {
            labels: Labels::new([("a", name)]).unwrap(),
            drop_name: false,
            values: values.to_vec(),
        }
    }

    #[test]
    fn rows_of_equal_labels_become_one_unless_they_meet() {
        let rows =
            vec![row("2", &[ABSENT, 5.0]), row("1", &[1.0, ABSENT]), row("1", &[ABSENT, 2.0])];
        let frame = Frame::collect(rows).unwrap();
        let values: Vec<_> = frame.rows.iter().map(|row| row.values.clone()).collect();
        assert_eq!(values[0], [1.0, 2.0]);
        assert_eq!(values.len(), 2);
        let rows = vec![row("1", &[1.0]), row("1", &[1.0])];
        assert_eq!(Frame::collect(rows).unwrap_err(), SameLabels);
        assert!(Frame::collect(vec![row("1", &[ABSENT])]).unwrap().rows.is_empty());
    }
}
