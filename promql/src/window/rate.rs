//! Increases: by first and last sample of the window with the resets between, extrapolated to its
//! edges; and between the last two samples.

use std::ops::Range;

use super::fold::{seconds, to_f64};
use super::{ABSENT, Samples, Window, Windows};

/// What an increase needs to know of a window.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    pub(super) count: u64,
    pub(super) first: (i64, f64),
    pub(super) last: (i64, f64),
    /// The value before each reset, in time order.
    pub(super) resets: Vec<f64>,
}

impl Counter {
    pub(super) fn push(&mut self, t: i64, v: f64) {
        if self.count == 0 {
            self.first = (t, v);
        } else if v < self.last.1 {
            self.resets.push(self.last.1);
        }
        self.last = (t, v);
        self.count += 1;
    }

    pub(super) fn merge(&mut self, later: &Self) {
        if later.count == 0 {
            return;
        }
        if self.count == 0 {
            return self.clone_from(later);
        }
        if later.first.1 < self.last.1 {
            self.resets.push(self.last.1);
        }
        self.resets.extend_from_slice(&later.resets);
        self.last = later.last;
        self.count += later.count;
    }
}

/// The increase over a window from its state.
pub(super) fn extrapolate(state: &Counter, counter: bool, per_second: bool, window: Window) -> f64 {
    let ends = Ends { count: state.count, first: state.first, last: state.last };
    ends.increase(state.resets.iter().copied(), counter, per_second, window)
}

/// First and last sample of a window.
struct Ends {
    count: u64,
    first: (i64, f64),
    last: (i64, f64),
}

impl Ends {
    #[inline]
    fn increase(
        &self,
        resets: impl Iterator<Item = f64>,
        counter: bool,
        per_second: bool,
        window: Window,
    ) -> f64 {
        if self.count < 2 {
            return ABSENT;
        }
        let (first_t, first) = self.first;
        let (last_t, last) = self.last;
        let mut increase = last - first;
        if counter {
            increase = resets.fold(increase, |sum, before| sum + before);
        }
        let to_end = seconds(window.end - last_t);
        let sampled = seconds(last_t - first_t);
        let between = sampled / to_f64(self.count - 1);
        // A series is taken to reach the edge if a sample is no further from it than usual.
        let near = between * 1.1;
        let mut to_start = seconds(first_t - window.start);
        if to_start >= near {
            to_start = between / 2.0;
        }
        if counter && increase > 0.0 && first >= 0.0 {
            // A counter begins at zero: no further back than that.
            let to_zero = sampled * (first / increase);
            if to_zero < to_start {
                to_start = to_zero;
            }
        }
        let to_end = if to_end >= near { between / 2.0 } else { to_end };
        let mut factor = 1.0;
        if sampled != 0.0 {
            factor = (sampled + to_start + to_end) / sampled;
        }
        if per_second {
            factor /= seconds(window.end - window.start);
        }
        increase * factor
    }
}

/// The increase between two samples.
#[inline]
pub(super) fn instant(older: (i64, f64), newer: (i64, f64), counter: bool) -> f64 {
    let reset = counter && newer.1 < older.1;
    let increase = if reset { newer.1 } else { newer.1 - older.1 };
    if counter { increase / seconds(newer.0 - older.0) } else { increase }
}

/// The increase over every window of a series without staleness marks.
pub(super) fn slide(
    samples: Samples<'_>,
    windows: Windows,
    counter: bool,
    per_second: bool,
    out: &mut [f64],
) {
    let Samples { ts, values } = samples;
    // Resets are rare: their places are found once, and each window looks at its own.
    let resets: Vec<usize> = if counter {
        (1..values.len()).filter(|i| values[*i] < values[i - 1]).collect()
    } else {
        Vec::new()
    };
    let (mut reset_from, mut reset_to) = (0, 0);
    for ((window, Range { start: from, end: to }), out) in windows.over(ts).zip(out) {
        if to - from < 2 {
            *out = ABSENT;
            continue;
        }
        while reset_to < resets.len() && resets[reset_to] < to {
            reset_to += 1;
        }
        while reset_from < reset_to && resets[reset_from] <= from {
            reset_from += 1;
        }
        let ends = Ends {
            count: (to - from) as u64,
            first: (ts[from], values[from]),
            last: (ts[to - 1], values[to - 1]),
        };
        let within = resets[reset_from..reset_to].iter().map(|i| values[i - 1]);
        *out = ends.increase(within, counter, per_second, window);
    }
}
