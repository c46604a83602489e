//! Sums and averages of sliding windows, exact: the difference of two exact prefix sums is the exact
//! sum of what lies between, so every step costs the same however long its window is.

use std::ops::Range;

use super::fold::{Fold, to_f64};
use super::{ABSENT, RangeFunction, Samples, Windows};
use crate::exact::{ExactSum, two_sum};

/// `sum_over_time` and `avg_over_time` for every window of a series without staleness marks.
pub(super) fn slide(
    function: RangeFunction,
    samples: Samples<'_>,
    windows: Windows,
    out: &mut [f64],
) {
    let prefixes = prefixes(samples.values);
    let ts = samples.ts;
    for ((window, Range { start: from, end: to }), out) in windows.over(ts).zip(out) {
        *out = match &prefixes {
            _ if from == to => ABSENT,
            Some(prefixes) => {
                let sum = between(prefixes[from], prefixes[to]);
                match function {
                    RangeFunction::Avg => sum / to_f64((to - from) as u64),
                    _ => sum,
                }
            }
            None => {
                let mut fold = Fold::new(function);
                fold.extend(function, samples.part(from..to));
                fold.finish(function, window)
            }
        };
    }
}

/// The exact sums of the first 0, 1, 2, … values, each as two doubles; `None` where two are not
/// enough, or where a sum or a value is not finite or comes near what is not.
fn prefixes(values: &[f64]) -> Option<Vec<(f64, f64)>> {
    const LARGE: f64 = 1e300;
    let mut prefixes = Vec::with_capacity(values.len() + 1);
    let (mut hi, mut lo) = (0.0, 0.0);
    prefixes.push((hi, lo));
    for value in values {
        let (sum, low) = two_sum(hi, *value);
        let (low, lost) = two_sum(lo, low);
        if lost != 0.0 || !(sum.abs() < LARGE && value.abs() < LARGE) {
            return None;
        }
        (hi, lo) = two_sum(sum, low);
        prefixes.push((hi, lo));
    }
    Some(prefixes)
}

/// The exact difference of two exact sums, rounded once.
#[inline]
fn between(from: (f64, f64), to: (f64, f64)) -> f64 {
    let mut sum = ExactSum::default();
    sum.add(to.0);
    sum.add(-from.0);
    sum.add(to.1);
    sum.add(-from.1);
    sum.value()
}
