//! Least and largest values of sliding windows, by a queue of candidates: each sample enters and
//! leaves it once.

use std::collections::VecDeque;

use super::fold::{replaces, seconds};
use super::{ABSENT, RangeFunction, Samples, Windows};

/// `min_over_time`, `max_over_time` and the times of them, for every window of a series without
/// staleness marks.
pub(super) fn slide(
    function: RangeFunction,
    samples: Samples<'_>,
    windows: Windows,
    out: &mut [f64],
) {
    let Samples { ts, values } = samples;
    let time = matches!(function, RangeFunction::TsOfMin | RangeFunction::TsOfMax);
    // Candidates in time order, each worse than the one before it. NaN is the worst of all.
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut entered = 0;
    for ((_, within), out) in windows.over(ts).zip(out) {
        for later in entered..within.end {
            // One that is outdone can never be the answer again.
            while queue.back().is_some_and(|held| replaces(function, values[*held], values[later]))
            {
                queue.pop_back();
            }
            queue.push_back(later);
        }
        entered = within.end;
        while queue.front().is_some_and(|first| *first < within.start) {
            queue.pop_front();
        }
        *out = match queue.front() {
            None => ABSENT,
            Some(best) if time => seconds(ts[*best]),
            Some(best) => values[*best],
        };
    }
}
