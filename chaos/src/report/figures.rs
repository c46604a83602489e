//! Times in order, and counts of messages.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::workload::{Asked, Outcome};

/// Measured times, sorted; there may be none.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Of these.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this share of all, in thousandths, did not exceed.
    pub fn at(&self, thousandths: usize) -> Option<Duration> {
        let rank = (self.0.len() * thousandths).div_ceil(1_000).max(1);
        self.0.get(rank - 1).copied()
    }

    /// In milliseconds, for a table; nothing where there is none.
    pub fn text(&self, thousandths: usize) -> String {
        self.at(thousandths).map_or_else(String::new, |time| {
            let millis = time.as_secs_f64() * 1e3;
            if millis < 10.0 { format!("{millis:.1}") } else { format!("{millis:.0}") }
        })
    }

    /// All that is said of them.
    pub fn json(&self) -> Value {
        let millis = |rank| self.at(rank).map(|time| (time.as_secs_f64() * 1e4).round() / 10.0);
        json!({
            "count": self.count(), "p50": millis(500), "p90": millis(900), "p99": millis(990),
            "max": millis(1_000),
        })
    }

    /// How many are in each of these classes, by upper bounds in milliseconds; beyond the last is
    /// one more.
    pub fn histogram(&self, bounds_ms: &[u64]) -> Vec<usize> {
        let mut counts = vec![0; bounds_ms.len() + 1];
        for time in &self.0 {
            let at = bounds_ms.iter().position(|bound| time.as_millis() <= u128::from(*bound));
            counts[at.unwrap_or(bounds_ms.len())] += 1;
        }
        counts
    }
}

/// Errors that clients were told, by their text without names and numbers.
pub(super) fn messages(asked: &[Asked]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for asked in asked {
        let text = match &asked.outcome {
            Outcome::Error(text) => text.clone(),
            Outcome::Broken(text) => format!("connection: {text}"),
            _ => continue,
        };
        *counts.entry(in_general(&text)).or_default() += 1;
    }
    counts
}

/// A message without what differs from one to the next: words with a digit in them.
fn in_general(text: &str) -> String {
    let general = |word: &str| {
        let is_name = word.chars().any(|letter| letter.is_ascii_digit()) && word.len() > 3;
        if is_name { "…".to_owned() } else { word.to_owned() }
    };
    text.split(' ').map(general).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_classes_of_times() {
        let times = Times::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(times.at(990), Some(Duration::from_millis(99)));
        assert_eq!(times.histogram(&[10, 50]), [10, 40, 50]);
        assert_eq!(times.text(500), "50");
        assert_eq!(Times::default().at(500), None);
    }

    #[test]
    fn messages_are_counted_without_their_names() {
        assert_eq!(in_general("work 7f3a/12 of 9 failed"), "work … of 9 failed");
    }
}
