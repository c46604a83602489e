//! Times in order, and what is said of them.

use std::fmt;
use std::time::Duration;

/// Measured times, sorted.
#[derive(Clone, Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    /// At least one of them.
    pub fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "nothing was measured");
        times.sort();
        Self(times)
    }

    /// The time that this share of all, in thousandths, did not exceed.
    pub fn at(&self, thousandths: usize) -> Duration {
        let rank = (self.0.len() * thousandths).div_ceil(1_000).clamp(1, self.0.len());
        self.0[rank - 1]
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p90, p99, max] = [500, 900, 990, 1_000].map(|rank| self.at(rank));
        let count = self.0.len();
        write!(f, "{count} times: p50 {p50:.3?}, p90 {p90:.3?}, p99 {p99:.3?}, max {max:.3?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_the_time_that_so_many_did_not_exceed() {
        let times = Times::new((1..=200).rev().map(Duration::from_millis).collect());
        let ranks = [1, 500, 990, 1_000].map(|rank| times.at(rank).as_millis());
        assert_eq!(ranks, [1, 100, 198, 200]);
        assert_eq!(Times::new(vec![Duration::ZERO]).at(990), Duration::ZERO);
    }
}
