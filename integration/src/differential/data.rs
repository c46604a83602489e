//! Random samples of the kinds that tell two engines apart: counters that reset, gauges, classic
//! histograms in good and bad order, information metrics, series that come, go and go stale, gaps,
//! scrapes that are late, and values at the edges of what a float can hold. Who asks for them is
//! `grammar`'s business.

use std::collections::BTreeMap;

use tributary_promql::{Labels, STALE_BITS};
use tributary_promqltest::{DataSet, Samples};

use super::dice::Dice;

/// A day, in milliseconds. Data sets begin at the start of one, so that moving a data set by whole
/// days changes nothing about how steps of subqueries are aligned.
pub const DAY_MS: i64 = 86_400_000;

const MINUTE_MS: i64 = 60_000;

/// A data set and what a query must know to ask for it.
#[derive(Clone, Debug)]
pub struct World {
    /// The start of the day it lies in, in milliseconds.
    pub base: i64,
    /// Samples lie between `base` and so many milliseconds later.
    pub span: i64,
    /// What is stored.
    pub data: DataSet,
}

/// A data set of these series, with times in milliseconds that rise.
pub fn data_set(series: impl IntoIterator<Item = (Labels, Vec<(i64, f64)>)>) -> DataSet {
    let mut data = DataSet::default();
    let samples = |points: Vec<(i64, f64)>| {
        let (ts, values) = points.into_iter().unzip();
        Samples { ts, values }
    };
    data.load(series.into_iter().map(|(labels, points)| (labels, samples(points))).collect());
    data
}

/// The same samples so many milliseconds later.
pub fn moved(data: &DataSet, by: i64) -> DataSet {
    let moved = |samples: &Samples| samples.iter().map(|(t, value)| (t + by, value)).collect();
    data_set(data.series().iter().map(|(labels, samples)| (labels.clone(), moved(samples))))
}

/// The series that a predicate keeps.
pub fn only(data: &DataSet, keep: impl Fn(&Labels) -> bool) -> DataSet {
    let kept = data.series().iter().filter(|(labels, _)| keep(labels));
    let mut only = DataSet::default();
    only.load(kept.map(|(labels, samples)| (labels.clone(), samples.clone())).collect());
    only
}

/// The start of the day of the first sample, in milliseconds.
pub fn first_day(data: &DataSet) -> i64 {
    let first = data.series().values().filter_map(|samples| samples.ts.first()).min();
    first.map_or(0, |t| t.div_euclid(DAY_MS) * DAY_MS)
}

impl World {
    /// The data set of a seed, on day number `day` since 1970.
    pub fn new(seed: u64, day: i64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let base = day * DAY_MS;
        let span = dice.between(40, 75) * MINUTE_MS;
        let mut maker = Maker { dice, base, span, series: BTreeMap::new() };
        for job in ["api", "db"] {
            let instances = maker.dice.between(1, 3);
            for instance in 0..instances {
                maker.target(job, &format!("{job}-{instance}:80"));
            }
        }
        maker.oddities();
        Self { base, span, data: data_set(maker.series) }
    }
}

struct Maker {
    dice: Dice,
    base: i64,
    span: i64,
    series: BTreeMap<Labels, Vec<(i64, f64)>>,
}

/// How a value follows from the one before.
#[derive(Clone, Copy)]
enum Walk {
    /// Rises, with resets in so many of a thousand steps.
    Counter { step: f64, resets: usize },
    /// Goes up and down by up to this.
    Gauge { step: f64 },
    /// Stays, and jumps to another small whole number now and then.
    Level,
    /// One, always.
    One,
    /// Anything a float can be.
    Wild,
}

impl Maker {
    /// Everything one target exposes, on its own scrape times.
    fn target(&mut self, job: &str, instance: &str) {
        let own = [("job", job), ("instance", instance)];
        let times = self.scrapes();
        self.series("up", &own, &times, Walk::Level);
        for code in ["200", "404", "500"] {
            if self.dice.percent(80) {
                let labels = [own[0], own[1], ("code", code)];
                let walk = Walk::Counter { step: 40.0, resets: 20 };
                self.series("requests_total", &labels, &times, walk);
                if self.dice.percent(60) {
                    let walk = Walk::Counter { step: 2.5, resets: 60 };
                    self.series("errors_total", &labels, &times, walk);
                }
            }
        }
        for cpu in ["0", "1"] {
            let labels = [own[0], own[1], ("cpu", cpu)];
            self.series("cpu_usage", &labels, &times, Walk::Gauge { step: 0.2 });
        }
        self.series("memory_bytes", &own, &times, Walk::Gauge { step: 3e8 });
        self.series("queue_length", &own, &times, Walk::Level);
        self.histogram("latency_seconds", &own, &times);
        self.information(&own, &times);
    }

    /// Metrics with strange values, strange names, or no target.
    fn oddities(&mut self) {
        let times = self.scrapes();
        for kind in ["a", "b", "c"] {
            self.series("wild", &[("kind", kind)], &times, Walk::Wild);
        }
        for kind in ["a", "b"] {
            let labels = [("kind", kind), ("job", "api")];
            self.series("tiny", &labels, &times, Walk::Gauge { step: 1e-305 });
        }
        self.series("http.requests", &[("k8s.pod", "p-1")], &times, Walk::Gauge { step: 1.0 });
        self.series("lonely", &[], &times, Walk::Gauge { step: 5.0 });
        self.series("fixed", &[("zone", "eu")], &times, Walk::One);
        // Two metrics with the same labels: together their names must not be dropped.
        for name in ["twin_a", "twin_b"] {
            for zone in ["eu", "us"] {
                self.series(name, &[("zone", zone)], &times, Walk::Level);
            }
        }
    }

    /// The times at which one target is scraped: every so often, sometimes late, sometimes not.
    fn scrapes(&mut self) -> Vec<i64> {
        let interval = *self.dice.pick(&[15_000, 30_000, 30_000, 60_000]);
        let jitter = *self.dice.pick(&[0, 0, 5, 900]);
        let misses = *self.dice.pick(&[0, 0, 3, 10]);
        let first = self.dice.between(0, interval - 1);
        // Some targets answer on whole seconds, as times of queries do.
        let first = if self.dice.percent(50) { first / 1000 * 1000 } else { first };
        let mut times = Vec::new();
        let mut at = self.base + first;
        while at < self.base + self.span {
            if !self.dice.percent(misses) {
                times.push(at + self.dice.between(0, jitter));
            }
            at += interval;
        }
        times
    }

    /// One series; it may begin late, end early, have gaps, and say that it is gone.
    fn series(&mut self, metric: &str, labels: &[(&str, &str)], times: &[i64], walk: Walk) {
        let labels = labels.iter().copied().chain([("__name__", metric)]);
        let labels = Labels::new(labels).expect("no label is named twice");
        let mut points = Vec::new();
        let mut value = self.first_value(walk);
        let (mut begin, mut end) = (0, times.len());
        if self.dice.percent(15) {
            begin = self.dice.below(times.len());
        }
        if self.dice.percent(15) {
            end = begin + self.dice.below(times.len() - begin);
        }
        let mut silent = 0;
        for (number, t) in times.iter().enumerate() {
            let inside = (begin..end).contains(&number);
            if silent > 0 || !inside {
                silent = i64::max(silent - 1, 0);
                continue;
            }
            if self.dice.percent(1) {
                // A gap: with a staleness mark, as after a scrape without the series, or without
                // one, as after a crash.
                silent = self.dice.between(1, 14);
                if self.dice.percent(60) {
                    points.push((*t, f64::from_bits(STALE_BITS)));
                }
                continue;
            }
            value = self.next_value(walk, value);
            points.push((*t, value));
        }
        if let Some(t) = times.get(end).filter(|_| self.dice.percent(70)) {
            points.push((*t, f64::from_bits(STALE_BITS)));
        }
        if !points.is_empty() {
            self.series.insert(labels, points);
        }
    }

    fn first_value(&mut self, walk: Walk) -> f64 {
        match walk {
            Walk::Counter { step, .. } => (self.dice.fraction() * step * 100.0).floor(),
            Walk::Gauge { step } => self.dice.fraction() * step * 10.0,
            Walk::Level => 1.0,
            Walk::One => 1.0,
            Walk::Wild => 0.0,
        }
    }

    fn next_value(&mut self, walk: Walk, value: f64) -> f64 {
        match walk {
            Walk::Counter { resets, .. } if self.dice.below(1000) < resets => {
                (self.dice.fraction() * 3.0).floor()
            }
            Walk::Counter { .. } if self.dice.percent(30) => value,
            Walk::Counter { step, .. } => value + (self.dice.fraction() * step * 4.0).floor() / 4.0,
            Walk::Gauge { .. } if self.dice.percent(10) => value,
            Walk::Gauge { step } => value + (self.dice.fraction() - 0.5) * step,
            Walk::Level if self.dice.percent(85) => value,
            Walk::Level => *self.dice.pick(&[0.0, 1.0, 2.0, 3.0, -1.0, 0.5]),
            Walk::One => 1.0,
            Walk::Wild => self.wild(),
        }
    }

    /// Values at the edges of what a float can hold, and everyday ones between them.
    fn wild(&mut self) -> f64 {
        const EDGES: [f64; 14] = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            1e17,
            -1e17,
            9_007_199_254_740_993.0,
            1e-9,
            -7.25,
        ];
        if self.dice.percent(35) {
            *self.dice.pick(&EDGES)
        } else {
            self.dice.fraction() * 9.0 - 3.0
        }
    }

    /// A classic histogram: cumulative buckets, a sum and a count. Some lack their last bucket, name
    /// a bound twice, or count less in a bucket than in the one below.
    fn histogram(&mut self, metric: &str, own: &[(&str, &str)], times: &[i64]) {
        let bounds: Vec<&str> = match self.dice.below(6) {
            0 => vec!["0.1", "0.5", "1"],
            1 => vec!["-1", "0", "2", "+Inf"],
            2 => vec!["0.1", "1", "1.0", "5", "+Inf"],
            3 => vec!["0.1", "fast", "5", "+Inf"],
            _ => vec!["0.05", "0.1", "0.5", "1", "5", "+Inf"],
        };
        let crooked = self.dice.percent(25);
        let mut counts = vec![0.0; bounds.len()];
        let (mut sum, mut buckets) = (0.0, vec![Vec::new(); bounds.len()]);
        let (mut sums, mut totals) = (Vec::new(), Vec::new());
        for t in times {
            if self.dice.percent(2) {
                counts.fill(0.0);
                sum = 0.0;
            }
            for count in &mut counts {
                #[expect(clippy::cast_precision_loss, reason = "a number below seven")]
                let more = self.dice.below(7) as f64;
                *count += more;
            }
            sum += self.dice.fraction() * 10.0;
            let mut total = 0.0;
            for (count, bucket) in counts.iter().zip(&mut buckets) {
                total += count;
                let shown = if crooked && self.dice.percent(10) { total * 0.9 } else { total };
                bucket.push((*t, shown));
            }
            sums.push((*t, sum));
            totals.push((*t, total));
        }
        let mut insert = |suffix: &str, le: Option<&str>, points: Vec<(i64, f64)>| {
            let name = format!("{metric}_{suffix}");
            let pairs = own.iter().copied().chain([("__name__", name.as_str())]);
            let labels = Labels::new(pairs.chain(le.map(|le| ("le", le))));
            self.series.insert(labels.expect("no label is named twice"), points);
        };
        for (bound, points) in bounds.into_iter().zip(buckets) {
            insert("bucket", Some(bound), points);
        }
        insert("sum", None, sums);
        insert("count", None, totals);
    }

    /// What is told about a target: `target_info`, whose version may change on the way, and
    /// `build_info`.
    fn information(&mut self, own: &[(&str, &str)], times: &[i64]) {
        let change = times.len() * self.dice.below(100) / 100;
        let (before, after) = times.split_at(change);
        let mut versions = vec![("1.0", before, after.first()), ("1.1", after, None)];
        if self.dice.percent(50) {
            versions = vec![("1.0", times, None)];
        }
        for (version, times, gone) in versions {
            for (metric, extra) in [("target_info", "cluster"), ("build_info", "branch")] {
                let value = if own[0].1 == "api" { "blue" } else { "green" };
                let labels = own.iter().copied();
                let labels =
                    labels.chain([("__name__", metric), ("version", version), (extra, value)]);
                let labels = Labels::new(labels).expect("no label is named twice");
                let stale = gone.map(|t| (*t, f64::from_bits(STALE_BITS)));
                let points: Vec<_> = times.iter().map(|t| (*t, 1.0)).chain(stale).collect();
                if !points.is_empty() {
                    self.series.insert(labels, points);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_lies_within_its_span_and_rises() {
        for seed in 0..50 {
            let world = World::new(seed, 19_000);
            assert!(world.data.series().len() > 40, "seed {seed}");
            for (labels, samples) in world.data.series() {
                assert!(samples.ts.is_sorted_by(|a, b| a < b), "seed {seed}: {labels}");
                let inside = |t: &i64| (world.base..world.base + world.span + 1000).contains(t);
                assert!(samples.ts.iter().all(inside), "seed {seed}: {labels}");
            }
        }
    }

    #[test]
    fn what_tells_engines_apart_is_there() {
        let worlds: Vec<World> = (0..8).map(|seed| World::new(seed, 19_000)).collect();
        let points = || {
            let samples = worlds.iter().flat_map(|world| world.data.series().values());
            samples.flat_map(Samples::iter)
        };
        assert!(points().any(|(_, v)| v.to_bits() == STALE_BITS));
        assert!(points().any(|(_, v)| v.is_nan() && v.to_bits() != STALE_BITS));
        assert!(points().any(|(_, v)| v == f64::NEG_INFINITY));
        assert!(points().any(|(t, _)| t % 1000 != 0));
        let series = || worlds.iter().flat_map(|world| world.data.series().keys());
        assert!(series().any(|labels| labels.get("le") == Some("fast")));
        assert!(series().any(|labels| labels.get("version") == Some("1.1")));
    }
}
