//! The series of an answer as far as they have come: their points, and figures about them. In bounded
//! memory: of a very long answer the figures are of all points, the lines of the first ones.

use std::collections::BTreeMap;

use super::frame::{Point, SeriesName};

/// Points that are kept for drawing.
const MOST_POINTS: usize = 4_000_000;

/// Series that are kept.
const MOST_SERIES: usize = 100_000;

/// All series so far, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    places: BTreeMap<String, usize>,
    points: usize,
    /// Points that came and were not kept for drawing, or whose series was one too many.
    left_out: u64,
}

/// One series.
#[derive(Debug)]
pub(super) struct Line {
    /// As people write it.
    pub(super) name: String,
    /// Times in milliseconds, rising, and values.
    pub(super) points: Vec<(i64, f64)>,
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) last: f64,
    sum: f64,
}

impl Lines {
    /// Takes in a point.
    pub(super) fn take(&mut self, point: &Point) {
        let name = SeriesName(&point.tags, &point.label).to_string();
        let place = match self.places.get(&name) {
            Some(place) => *place,
            None if self.lines.len() >= MOST_SERIES => {
                self.left_out += 1;
                return;
            }
            None => {
                self.places.insert(name.clone(), self.lines.len());
                self.lines.push(Line::new(name));
                self.lines.len() - 1
            }
        };
        let line = &mut self.lines[place];
        line.count(point.value);
        if self.points < MOST_POINTS {
            self.points += 1;
            line.points.push((point.timestamp, point.value));
        } else {
            self.left_out += 1;
        }
    }

    /// The series.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Line> {
        self.lines.iter()
    }

    /// Points that are missing from the lines.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// There are none.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.left_out == 0
    }
}

impl Line {
    fn new(name: String) -> Self {
        let nothing = f64::NAN;
        Self { name, points: vec![], count: 0, min: nothing, max: nothing, last: nothing, sum: 0.0 }
    }

    fn count(&mut self, value: f64) {
        self.count += 1;
        // These two take the other one where one is not a number.
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.last = value;
        self.sum += value;
    }

    /// The mean of its values.
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(job: &str, timestamp: i64, value: f64) -> Point {
        let tags = [("job".to_owned(), job.to_owned())].into();
        Point { tags, value, timestamp, label: String::new() }
    }

    #[test]
    fn points_gather_by_series_with_their_figures() {
        let mut lines = Lines::default();
        assert!(lines.is_empty());
        for (job, t, value) in [("a", 1, 4.0), ("b", 1, f64::NAN), ("a", 2, 1.0), ("b", 2, 7.0)] {
            lines.take(&point(job, t, value));
        }
        let [a, b] = [0, 1].map(|place| lines.iter().nth(place).unwrap());
        assert_eq!((a.name.as_str(), a.min, a.max, a.last), ("{job=\"a\"}", 1.0, 4.0, 1.0));
        assert_eq!(a.mean(), 2.5);
        assert_eq!((b.min, b.max, b.count), (7.0, 7.0, 2));
        assert!(b.mean().is_nan());
        assert_eq!(b.points[1], (2, 7.0));
        assert_eq!(lines.left_out(), 0);
    }
}
