//! The targets of the demo: processes that are scraped, restart now and then, and can't always be
//! reached. When that is follows from the target's seed and the time alone.

use super::tide::{Tide, dice};

/// Between two scrapes of a target, in milliseconds.
pub(super) const INTERVAL_MS: i64 = 15_000;

/// A process that restarts can't be scraped for this long, in seconds.
const RESTART_S: f64 = 50.0;

/// And a network that is cut is cut for this long.
const SILENCE_S: f64 = 4.0 * 60.0;

/// Something that is scraped.
#[derive(Clone, Debug)]
pub(super) struct Target {
    seed: u64,
    /// From one restart to the next, in seconds.
    lifetime_s: f64,
    /// From one silence to the next.
    silence_every_s: f64,
    /// A moment at which its job gets into trouble.
    trouble_at: f64,
}

/// A target at one scrape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scrape {
    /// When, in milliseconds.
    pub(super) ts: i64,
    /// What came of it.
    pub(super) outcome: Outcome,
}

/// What came of a scrape.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// The target answered.
    Answered {
        /// The moment.
        now: Tide,
        /// The moment its process started, from which its counters count.
        start: Tide,
    },
    /// The target did not answer: `up` is 0. At the first of these scrapes all else ends.
    Refused {
        /// The scrape before was answered.
        is_first: bool,
    },
}

impl Target {
    /// A target whose process lives for some `lifetime_s`.
    pub(super) fn new(seed: u64, lifetime_s: f64, trouble_at: f64) -> Self {
        let lifetime_s = (lifetime_s * (0.8 + 0.4 * dice(seed, 11))).round();
        let silence_every_s = (3_600.0 * (14.0 + 8.0 * dice(seed, 12))).round();
        Self { seed, lifetime_s, silence_every_s, trouble_at }
    }

    /// All scrapes from `from_ms` until before `to_ms`. Those that got lost are not among them.
    pub(super) fn scrapes(&self, from_ms: i64, to_ms: i64) -> Vec<Scrape> {
        #[expect(clippy::cast_possible_truncation, reason = "it is below the interval")]
        let offset = (dice(self.seed, 13) * INTERVAL_MS as f64) as i64;
        let first = (from_ms - offset).div_euclid(INTERVAL_MS) * INTERVAL_MS + offset;
        let first = if first < from_ms { first + INTERVAL_MS } else { first };
        let mut scrapes = Vec::new();
        let mut start: Option<Tide> = None;
        let mut ts = first;
        while ts < to_ms {
            if let Some(outcome) = self.outcome(ts, &mut start) {
                scrapes.push(Scrape { ts, outcome });
            }
            ts += INTERVAL_MS;
        }
        scrapes
    }

    /// The outcome of a scrape; none where it got lost. `start` is kept from scrape to scrape.
    fn outcome(&self, ts: i64, start: &mut Option<Tide>) -> Option<Outcome> {
        // Milliseconds of the epoch are far below 2^53.
        let t = ts as f64 / 1_000.0;
        let silence = self.since(t, self.silence_every_s, 14);
        if silence < SILENCE_S {
            return None;
        }
        let since_restart = self.since(t, self.lifetime_s, 15);
        if since_restart < RESTART_S {
            let is_first = since_restart * 1_000.0 < INTERVAL_MS as f64;
            return Some(Outcome::Refused { is_first });
        }
        let started = (t - since_restart + RESTART_S).round();
        let start = match start {
            Some(known) if (known.t - started).abs() < 1.0 => *known,
            _ => *start.insert(Tide::at(started, self.trouble_at)),
        };
        Some(Outcome::Answered { now: Tide::at(t, self.trouble_at), start })
    }

    /// Seconds since the last of the events that come once in `every_s`.
    fn since(&self, t: f64, every_s: f64, throw: u64) -> f64 {
        (t - (every_s * dice(self.seed, throw)).round()).rem_euclid(every_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;
    const NOW_MS: i64 = 1_790_000_000_000;

    fn target() -> Target {
        Target::new(5, 10.0 * 3_600.0, 0.0)
    }

    #[test]
    fn a_day_has_restarts_silence_and_otherwise_every_scrape() {
        let scrapes = target().scrapes(NOW_MS, NOW_MS + DAY_MS);
        let refused = |scrape: &&Scrape| matches!(scrape.outcome, Outcome::Refused { .. });
        let ends = |scrape: &&Scrape| matches!(scrape.outcome, Outcome::Refused { is_first: true });
        let restarts = scrapes.iter().filter(ends).count();
        assert!((2..=4).contains(&restarts), "{restarts}");
        assert!((restarts * 3..=restarts * 4).contains(&scrapes.iter().filter(refused).count()));
        let gaps: Vec<i64> =
            scrapes.windows(2).map(|two| two[1].ts - two[0].ts).filter(|d| *d != 15_000).collect();
        assert!(!gaps.is_empty() && gaps.iter().all(|gap| (240_000..=255_000).contains(gap)));
    }

    #[test]
    fn scrapes_are_the_same_however_the_time_is_cut() {
        let whole: Vec<i64> =
            target().scrapes(NOW_MS, NOW_MS + DAY_MS).iter().map(|scrape| scrape.ts).collect();
        let mut parts = Vec::new();
        let mut from = NOW_MS;
        for to in (1..=100).map(|part| NOW_MS + DAY_MS / 100 * part) {
            parts.extend(target().scrapes(from, to).iter().map(|scrape| scrape.ts));
            from = to;
        }
        assert_eq!(parts, whole);
        assert!(target().scrapes(NOW_MS, NOW_MS).is_empty());
    }
}
