//! A function over all windows of a series at once.

use std::ops::Range;

use super::fold::{happened, seconds, to_f64};
use super::{ABSENT, RangeFunction, Samples, Windows, extreme, is_absent, rate, raw, sums};

/// The function's value in every window of a series, [`ABSENT`] where there is none. The same bits
/// as a [`super::Fold`] over each window. `out` has one place for every window.
pub fn slide(function: RangeFunction, samples: Samples<'_>, windows: Windows, out: &mut [f64]) {
    slide_unless(function, samples, windows, out, &|| false);
}

/// The same, but stops where it is told to, and is false then. Functions that look at every sample
/// of every window may take minutes for one series, so these ask within milliseconds; the others
/// are done before anybody would ask.
pub(crate) fn slide_unless(
    function: RangeFunction,
    samples: Samples<'_>,
    windows: Windows,
    out: &mut [f64],
    is_cancelled: &dyn Fn() -> bool,
) -> bool {
    use RangeFunction as F;
    // Only the instant selector looks at staleness marks. They are rare: a copy without them is
    // made only where there are any.
    if !function.sees_marks() && samples.values.iter().any(|value| is_absent(*value)) {
        let (ts, values): (Vec<i64>, Vec<f64>) =
            samples.iter().filter(|(_, value)| !is_absent(*value)).unzip();
        let samples = Samples { ts: &ts, values: &values };
        return slide_unless(function, samples, windows, out, is_cancelled);
    }
    match function {
        F::Rate { counter, per_second } => rate::slide(samples, windows, counter, per_second, out),
        F::Sum | F::Avg => sums::slide(function, samples, windows, out),
        F::Min | F::Max | F::TsOfMin | F::TsOfMax => {
            extreme::slide(function, samples, windows, out);
        }
        F::Stddev
        | F::Stdvar
        | F::Quantile(_)
        | F::Mad
        | F::Deriv
        | F::PredictLinear(_)
        | F::Smoothing { .. } => return raw::slide(function, samples, windows, out, is_cancelled),
        F::Changes | F::Resets => steps(function, samples, windows, out),
        F::Last
        | F::TsOfNewest
        | F::Instant { .. }
        | F::Count
        | F::Present
        | F::FirstOverTime
        | F::LastOverTime
        | F::TsOfFirst
        | F::TsOfLast => by_ends(function, samples, windows, out),
    }
    true
}

/// Functions that look at the ends of the window only.
fn by_ends(function: RangeFunction, samples: Samples<'_>, windows: Windows, out: &mut [f64]) {
    use RangeFunction as F;
    let Samples { ts, values } = samples;
    for ((_, Range { start: from, end: to }), out) in windows.over(ts).zip(out) {
        *out = match function {
            _ if from == to => ABSENT,
            F::Last | F::LastOverTime => values[to - 1],
            F::FirstOverTime => values[from],
            F::Count => to_f64((to - from) as u64),
            F::Present => 1.0,
            F::TsOfFirst => seconds(ts[from]),
            F::TsOfNewest if is_absent(values[to - 1]) => ABSENT,
            F::TsOfLast | F::TsOfNewest => seconds(ts[to - 1]),
            F::Instant { counter } if to - from > 1 => {
                let sample = |i: usize| (ts[i], values[i]);
                rate::instant(sample(to - 2), sample(to - 1), counter)
            }
            _ => ABSENT,
        };
    }
}

/// `changes` and `resets`: how often it had happened by each sample is counted once.
fn steps(function: RangeFunction, samples: Samples<'_>, windows: Windows, out: &mut [f64]) {
    let Samples { ts, values } = samples;
    let mut seen = 0_u64;
    let counts: Vec<u64> = (0..values.len())
        .map(|i| {
            seen += u64::from(i > 0 && happened(function, values[i - 1], values[i]));
            seen
        })
        .collect();
    for ((_, Range { start: from, end: to }), out) in windows.over(ts).zip(out) {
        *out = if from == to { ABSENT } else { to_f64(counts[to - 1] - counts[from]) };
    }
}
