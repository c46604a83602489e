//! Plain figures: a histogram of durations that costs no allocation to fill. Rendering them is for
//! whoever exports metrics.

use std::time::Duration;

/// Buckets: one below a microsecond, then four to an octave up to about an hour, and the rest.
const BUCKETS: usize = 132;

/// A histogram of durations with a relative error of at most a quarter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    count: u64,
    sum: Duration,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, sum: Duration::ZERO, max: Duration::ZERO }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&mut self, span: Duration) {
        self.buckets[bucket_of(span)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(span);
        self.max = self.max.max(span);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All durations together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Upper bound of the bucket that holds the given quantile (0 to 1); zero if nothing was
    /// counted.
    pub fn quantile(&self, q: f64) -> Duration {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
        #[expect(clippy::cast_precision_loss, reason = "ranks beyond 2^53 do not occur")]
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, upper) in self.buckets() {
            seen += bucket;
            if seen >= rank {
                return upper.min(self.max);
            }
        }
        self.max
    }

    /// Each bucket's count with its upper bound, smallest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, Duration)> + '_ {
        self.buckets.iter().enumerate().map(|(i, count)| (*count, upper_bound(i)))
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

/// Bucket 0 is below 1 µs; bucket 1 + 4·o + q holds [2^o · (1 + q/4), 2^o · (1 + (q+1)/4)) µs.
fn bucket_of(span: Duration) -> usize {
    let micros = span.as_micros();
    if micros == 0 {
        return 0;
    }
    let octave = micros.ilog2() as usize;
    let quarter = match octave {
        0 => 0,
        1 => (micros as usize & 1) * 2,
        _ => (micros >> (octave - 2)) as usize & 3,
    };
    (1 + 4 * octave + quarter).min(BUCKETS - 1)
}

fn upper_bound(bucket: usize) -> Duration {
    if bucket == 0 {
        return Duration::from_micros(1);
    }
    if bucket == BUCKETS - 1 {
        return Duration::MAX;
    }
    let (octave, quarter) = ((bucket - 1) / 4, (bucket - 1) % 4);
    Duration::from_nanos((1_000 << octave) / 4 * (5 + quarter as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_falls_below_its_upper_bound_and_near_it() {
        for micros in (1..5_000).chain((1..4_000).map(|i| i * 1_000_003)) {
            let span = Duration::from_micros(micros);
            let bucket = bucket_of(span);
            assert!(span < upper_bound(bucket), "{span:?}");
            assert!(bucket == 1 || span >= upper_bound(bucket - 1).mul_f64(0.66), "{span:?}");
        }
    }

    #[test]
    fn quantiles_come_from_the_ranks() {
        let mut all = Histogram::default();
        assert_eq!(all.quantile(0.5), Duration::ZERO);
        for millis in 1..=100 {
            all.observe(Duration::from_millis(millis));
        }
        let near = |q: f64, millis: u64| {
            let got = all.quantile(q).as_secs_f64() * 1e3;
            let want = millis as f64;
            assert!(got >= want && got <= want * 1.26, "{q}: {got} is not near {want}");
        };
        near(0.5, 50);
        near(0.99, 99);
        assert_eq!(all.quantile(1.0), Duration::from_millis(100));
        assert_eq!(all.count(), 100);
        assert_eq!(all.sum(), Duration::from_millis(5_050));
        let mut twice = all.clone();
        twice.merge(&all);
        assert_eq!((twice.count(), twice.max()), (200, all.max()));
    }

    #[test]
    fn the_extremes_have_buckets() {
        let mut all = Histogram::default();
        all.observe(Duration::ZERO);
        all.observe(Duration::MAX);
        assert_eq!(all.quantile(1.0), Duration::MAX);
        assert_eq!(all.quantile(0.1), Duration::from_micros(1));
    }
}
