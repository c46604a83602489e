//! The arithmetic of one classic histogram: buckets, each with the count of all observations up to
//! its bound. Which series are buckets of which histogram is decided in `histogram`.

/// Counts that differ by less than this, relatively, differ by rounding only.
const TOLERANCE: f64 = 1e-12;

/// A bucket of a classic histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    /// The largest observation it counts.
    pub(super) bound: f64,
    /// How many observations there are up to its bound.
    pub(super) count: f64,
}

/// What had to be changed so that counts never fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Correction {
    /// The lowest and the highest bound of the buckets that were changed.
    pub(super) bounds: (f64, f64),
    /// The largest change.
    pub(super) max_diff: f64,
}

/// Makes one bucket of those with the same bound. They are sorted by bound.
pub(super) fn coalesce(buckets: &mut Vec<Bucket>) {
    buckets.dedup_by(|next, held| {
        let same = next.bound == held.bound;
        if same {
            held.count += next.count;
        }
        same
    });
}

/// The last bucket counts every observation.
pub(super) fn is_complete(buckets: &[Bucket]) -> bool {
    buckets.last().is_some_and(|last| last.bound == f64::INFINITY)
}

/// Lifts counts that are below an earlier one, and levels those that differ by rounding only. Says
/// what was lifted.
pub(super) fn make_monotonic(buckets: &mut [Bucket]) -> Option<Correction> {
    let (first, others) = buckets.split_first_mut()?;
    let mut correction: Option<Correction> = None;
    let mut highest = first.count;
    for bucket in others {
        if bucket.count == highest {
            continue;
        }
        if nearly_equal(highest, bucket.count) {
            bucket.count = highest;
        } else if bucket.count < highest {
            let diff = highest - bucket.count;
            let bound = bucket.bound;
            let so_far = correction.unwrap_or(Correction { bounds: (bound, bound), max_diff: 0.0 });
            correction = Some(Correction {
                bounds: (so_far.bounds.0.min(bound), so_far.bounds.1.max(bound)),
                max_diff: so_far.max_diff.max(diff),
            });
            bucket.count = highest;
        } else {
            highest = bucket.count;
        }
    }
    correction
}

/// Whether two different counts differ by rounding only.
fn nearly_equal(one: f64, other: f64) -> bool {
    if one.is_nan() && other.is_nan() {
        return true;
    }
    let (sum, difference) = (one.abs() + other.abs(), (one - other).abs());
    if one == 0.0 || other == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < TOLERANCE * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < TOLERANCE
}

/// Whether there is such a quantile.
pub(super) fn is_quantile(q: f64) -> bool {
    (0.0..=1.0).contains(&q)
}

/// The value below which a share of the observations lies, taken to be evenly spread inside each
/// bucket. The buckets are sorted, coalesced and monotonic.
pub(super) fn quantile(q: f64, buckets: &[Bucket]) -> f64 {
    if q.is_nan() {
        return f64::NAN;
    }
    if !is_quantile(q) {
        return f64::INFINITY.copysign(q);
    }
    let [.., below, last] = buckets else { return f64::NAN };
    if last.bound != f64::INFINITY || last.count == 0.0 {
        return f64::NAN;
    }
    let rank = q * last.count;
    let at = first_that_reaches(rank, &buckets[..buckets.len() - 1]);
    let Some(bucket) = buckets[..buckets.len() - 1].get(at) else { return below.bound };
    if at == 0 && bucket.bound <= 0.0 {
        return bucket.bound;
    }
    let (start, before) = match at.checked_sub(1) {
        Some(before) => (buckets[before].bound, buckets[before].count),
        None => (0.0, 0.0),
    };
    start + (bucket.bound - start) * ((rank - before) / (bucket.count - before))
}

/// The first bucket that counts so many. Counts that are NaN break the order, so the search is
/// spelled out: which buckets it looks at is part of the answer.
fn first_that_reaches(rank: f64, buckets: &[Bucket]) -> usize {
    let (mut from, mut to) = (0, buckets.len());
    while from < to {
        let middle = usize::midpoint(from, to);
        if buckets[middle].count >= rank {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

/// The share of the observations between two values, taken to be evenly spread inside each bucket.
/// The buckets are sorted and coalesced.
pub(super) fn fraction(lower: f64, upper: f64, buckets: &[Bucket]) -> f64 {
    let Some(last) = buckets.last().filter(|last| last.bound == f64::INFINITY) else {
        return f64::NAN;
    };
    if last.count == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    let rank = |value| match rank_of(value, buckets) {
        Some(rank) if rank > last.count => last.count,
        Some(rank) => rank,
        None => last.count,
    };
    (rank(upper) - rank(lower)) / last.count
}

/// How many observations lie below a value, as far as a bucket tells.
fn rank_of(value: f64, buckets: &[Bucket]) -> Option<f64> {
    // Where the lowest bound is positive, so are all observations.
    let first = buckets.first()?;
    let mut start = if first.bound <= 0.0 { f64::NEG_INFINITY } else { 0.0 };
    let mut before = 0.0;
    for bucket in buckets {
        if start >= value {
            return Some(before);
        }
        if bucket.bound > value {
            // Nothing can be spread evenly from minus infinity on.
            if start == f64::NEG_INFINITY {
                return Some(bucket.count);
            }
            let share = (bucket.count - before) * (value - start) / (bucket.bound - start);
            return Some(before + share);
        }
        (start, before) = (bucket.bound, bucket.count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(pairs: &[(f64, f64)]) -> Vec<Bucket> {
        pairs.iter().map(|(bound, count)| Bucket { bound: *bound, count: *count }).collect()
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn quantiles_lie_between_the_bounds_of_their_bucket() {
        let even = buckets(&[(0.0, 0.0), (2.0, 10.0), (4.0, 20.0), (6.0, 30.0), (INF, 30.0)]);
        assert!((quantile(1.0 / 6.0, &even) - 1.0).abs() < 1e-12);
        assert_eq!(quantile(0.5, &even), 3.0);
        assert_eq!(quantile(1.0, &even), 6.0);
        let negative = buckets(&[(-0.2, 10.0), (-0.1, 20.0), (0.3, 20.0), (INF, 30.0)]);
        assert_eq!(quantile(0.0, &negative), -0.2, "nothing is known below the lowest bound");
        assert_eq!(quantile(1.0, &negative), 0.3, "nothing is known above the highest bound");
    }

    #[test]
    fn there_are_no_quantiles_beyond_the_ends_or_of_nothing() {
        let some = buckets(&[(1.0, 5.0), (INF, 5.0)]);
        assert_eq!(quantile(-0.1, &some), f64::NEG_INFINITY);
        assert_eq!(quantile(1.01, &some), INF);
        assert!(quantile(f64::NAN, &some).is_nan());
        assert!(quantile(0.5, &buckets(&[(1.0, 0.0), (INF, 0.0)])).is_nan());
        assert!(quantile(0.5, &buckets(&[(1.0, 5.0), (2.0, 5.0)])).is_nan());
        assert!(quantile(0.5, &buckets(&[(INF, 5.0)])).is_nan());
        assert!(quantile(0.5, &[]).is_nan());
    }

    #[test]
    fn counts_that_fall_are_lifted_and_told() {
        let counts =
            [(0.1, 20.0), (1.0, 10.0), (10.0, 50.0), (100.0, 40.0), (1e3, 90.0), (INF, 80.0)];
        let mut fallen = buckets(&counts);
        let correction = make_monotonic(&mut fallen).unwrap();
        assert_eq!(correction, Correction { bounds: (1.0, INF), max_diff: 10.0 });
        let counts: Vec<f64> = fallen.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [20.0, 20.0, 50.0, 50.0, 90.0, 90.0]);
        assert!((quantile(0.01, &fallen) - 0.0045).abs() < 1e-12);
        assert!((quantile(0.5, &fallen) - 8.5).abs() < 1e-12);
        assert!((quantile(0.99, &fallen) - 979.75).abs() < 1e-9);
    }

    #[test]
    fn counts_that_differ_by_rounding_are_levelled_silently() {
        let mut rounded =
            buckets(&[(1.0, 1.0), (2.0, 1.0 - 1e-14), (3.0, 1.0 + 1e-14), (INF, 2.0)]);
        assert_eq!(make_monotonic(&mut rounded), None);
        assert_eq!(rounded, buckets(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (INF, 2.0)]));
    }

    #[test]
    fn buckets_of_one_bound_become_one() {
        let mut same = buckets(&[(0.1, 1.0), (0.2, 1.0), (0.2, 1.0), (0.2, 1.0), (INF, 4.0)]);
        coalesce(&mut same);
        assert_eq!(same, buckets(&[(0.1, 1.0), (0.2, 3.0), (INF, 4.0)]));
    }

    #[test]
    fn fractions_are_shares_of_all_observations() {
        let even = buckets(&[(0.0, 0.0), (2.0, 10.0), (4.0, 20.0), (6.0, 30.0), (INF, 30.0)]);
        assert_eq!(fraction(0.0, 4.0, &even), 2.0 / 3.0);
        assert!((fraction(0.0, 3.5, &even) - 0.583_333_333_333_333_4).abs() < 1e-15);
        assert_eq!(fraction(f64::NEG_INFINITY, INF, &even), 1.0);
        assert_eq!(fraction(3.0, 2.0, &even), 0.0);
        assert_eq!(fraction(7.0, 8.0, &even), 0.0);
        assert!(fraction(f64::NAN, 2.0, &even).is_nan());
        assert!(fraction(0.0, 2.0, &even[..4]).is_nan());
        let negative = buckets(&[(-3.0, 10.0), (-2.0, 12.0), (-1.0, 15.0), (INF, 100.0)]);
        assert_eq!(fraction(f64::NEG_INFINITY, -1.5, &negative), 0.135);
        assert_eq!(fraction(-4.0, -2.0, &negative), 0.02, "all of the first bucket lies below");
    }
}
