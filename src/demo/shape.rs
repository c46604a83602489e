//! What a series of the demo does: the value at a scrape, from the tide alone. Counters never fall
//! while their process lives, buckets never hold more than wider ones.

use super::tide::{Phase, Tide, dice};

/// What a series does with time.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Whether the target answers.
    Up,
    /// When its process started.
    StartTime,
    /// Always the same.
    Constant(f64),
    /// Counts, from zero at the start of the process.
    Counter {
        /// What flows.
        flow: Flow,
        /// Fractions are kept to so many parts of one.
        parts: f64,
    },
    /// Counts what flows, but only a part of it: a bucket, or, with weights in place of parts, a sum.
    Share {
        /// What flows.
        flow: Flow,
        /// Which part of it in good times.
        good: f64,
        /// And which part of what is slow in times of trouble.
        bad: f64,
        /// Whole numbers only.
        is_whole: bool,
    },
    /// Goes up and down.
    Gauge(Gauge),
}

/// Something that flows at a changing rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Of its dice. Series with the same seed see the same flow.
    pub(super) seed: u64,
    /// A second, on average.
    pub(super) per_s: f64,
    /// How much of the waves it shows, from 0 to 1.
    pub(super) swing: f64,
    /// Where in its waves it is.
    pub(super) phase: Phase,
    /// So much more a second in times of trouble.
    pub(super) trouble_per_s: f64,
}

/// Something that goes up and down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    /// Of its dice.
    pub(super) seed: u64,
    /// On average.
    pub(super) level: f64,
    /// How much of the waves it shows.
    pub(super) swing: f64,
    /// Where in its waves it is.
    pub(super) phase: Phase,
    /// How far the dice throw it.
    pub(super) noise: f64,
    /// It grows by so much for each second that its process lives.
    pub(super) per_s: f64,
    /// So much more in times of trouble.
    pub(super) trouble: f64,
    /// It is a multiple of this.
    pub(super) step: f64,
}

/// Of a flow in trouble so much is slow.
const SLOW: f64 = 0.25;

/// The dice move a count by what flows in so many seconds at most: with the lowest rate there is,
/// more than that flows between two scrapes.
const JITTER_S: f64 = 0.5;

impl Shape {
    /// The value at a scrape that was answered.
    pub(super) fn value(&self, now: &Tide, start: &Tide) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::StartTime => start.t,
            Self::Constant(value) => *value,
            Self::Counter { flow, parts } => {
                let (normal, trouble) = flow.since(now, start);
                ((normal + trouble) * parts).floor() / parts
            }
            Self::Share { flow, good, bad, is_whole } => {
                let (normal, _) = flow.since(now, start);
                let slow = SLOW * flow.per_s * (now.trouble_s - start.trouble_s);
                let share = (normal - slow) * good + slow * bad;
                if *is_whole { share.floor() } else { (share * 1e4).floor() / 1e4 }
            }
            Self::Gauge(gauge) => gauge.value(now, start),
        }
    }

    /// The value at a scrape that was refused, if there is one.
    pub(super) fn refused(&self) -> Option<f64> {
        matches!(self, Self::Up).then_some(0.0)
    }
}

impl Flow {
    /// What has flowed since the start: as always, and in times of trouble beside it.
    fn since(&self, now: &Tide, start: &Tide) -> (f64, f64) {
        let area = now.area(&self.phase) - start.area(&self.phase);
        let jitter = JITTER_S * dice(self.seed, now.t.to_bits());
        let normal = self.per_s * (now.t - start.t + self.swing * area + jitter);
        (normal, self.trouble_per_s * (now.trouble_s - start.trouble_s))
    }
}

impl Gauge {
    fn value(&self, now: &Tide, start: &Tide) -> f64 {
        let waves = self.level * (1.0 + self.swing * now.height(&self.phase));
        let noise = self.noise * (dice(self.seed, now.t.to_bits()) - 0.5);
        let trouble = if now.is_trouble { self.trouble } else { 0.0 };
        let value = waves + noise + self.per_s * (now.t - start.t) + trouble;
        (value / self.step).round().max(0.0) * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        let phase = Phase::of(9);
        Flow { seed: 9, per_s: 20.0, swing: 1.0, phase, trouble_per_s: 3.0 }
    }

    #[test]
    fn counters_and_buckets_never_fall_and_wider_buckets_hold_more() {
        let counter = Shape::Counter { flow: flow(), parts: 1.0 };
        let share = |good, bad| Shape::Share { flow: flow(), good, bad, is_whole: true };
        let (narrow, wide) = (share(0.3, 0.0), share(0.9, 0.2));
        let start = Tide::at(1_790_000_000.0, 1_790_003_000.0);
        let mut last = [0.0; 3];
        for scrape in 1..6_000 {
            let now = Tide::at(start.t + f64::from(scrape) * 15.0, 1_790_003_000.0);
            let values = [&counter, &narrow, &wide].map(|shape| shape.value(&now, &start));
            for (value, before) in values.into_iter().zip(last) {
                assert!(value >= before, "{value} {before}");
            }
            assert!(values[1] <= values[2]);
            last = values;
        }
        let rate = last[0] / (5_999.0 * 15.0);
        assert!((15.0..25.0).contains(&rate), "{rate}");
    }

    #[test]
    fn gauges_keep_their_step_and_are_not_negative() {
        let gauge = Gauge {
            seed: 1,
            level: 10.0,
            swing: 2.0,
            phase: Phase::of(1),
            noise: 8.0,
            per_s: 0.0,
            trouble: 100.0,
            step: 4.0,
        };
        let start = Tide::at(0.0, 0.0);
        for t in 0..2_000 {
            let now = Tide::at(f64::from(t) * 15.0, 5_000.0);
            let value = Shape::Gauge(gauge).value(&now, &start);
            assert!(value >= 0.0 && value % 4.0 == 0.0, "{value}");
            assert!(!now.is_trouble || value >= 90.0);
        }
    }
}
