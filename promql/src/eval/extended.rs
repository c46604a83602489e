//! Windows with `anchored` or `smoothed` edges: what they come to with a real sample before the
//! window, or with values interpolated at both of its edges.

use crate::answer::Points;
use crate::expr::Extension;
use crate::window::{ABSENT, RangeFunction, Samples, Window};

/// Functions that may be used with `anchored`.
pub(crate) const ANCHORED_FUNCTIONS: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
/// Functions that may be used with `smoothed`.
pub(crate) const SMOOTHED_FUNCTIONS: [&str; 3] = ["delta", "increase", "rate"];

/// The function's value over a window with extended edges.
pub(crate) fn extended_value(
    function: RangeFunction,
    extension: Extension,
    samples: Samples<'_>,
    window: Window,
    lookback: i64,
) -> f64 {
    let reach = reach(extension, samples, window, lookback);
    match function {
        RangeFunction::Rate { counter, per_second } => {
            increase(reach, window, extension == Extension::Smoothed, counter, per_second)
        }
        function => anchored_steps(function, reach, window),
    }
}

/// The samples an extended window looks at.
fn reach<'a>(
    extension: Extension,
    samples: Samples<'a>,
    window: Window,
    lookback: i64,
) -> Samples<'a> {
    match extension {
        Extension::Anchored => samples.within(window.start - lookback, window.end),
        Extension::Smoothed => samples.within(window.start - lookback, window.end + lookback),
    }
}

/// Where the window begins and ends among the samples: the last one at or before its start, and the
/// last one, or where it is smoothed the first at or after its end.
fn bounds(ts: &[i64], window: Window, smoothed: bool) -> Option<(usize, usize)> {
    let last = ts.len().checked_sub(1)?;
    let first = ts[..last].partition_point(|t| *t <= window.start).saturating_sub(1);
    let last = if smoothed { ts[..last].partition_point(|t| *t < window.end) } else { last };
    let outside = ts[last] <= window.start || (smoothed && ts[first] > window.end);
    (!outside).then_some((first, last))
}

fn increase(
    samples: Samples<'_>,
    window: Window,
    smoothed: bool,
    counter: bool,
    per_second: bool,
) -> f64 {
    let Some((first, last)) = bounds(samples.ts, window, smoothed) else { return ABSENT };
    let left = left_edge(samples, first, window.start, smoothed, counter);
    let right = right_edge(samples, last, window.end, smoothed, counter);
    let mut result = right - left;
    if counter {
        let from = first + usize::from(samples.ts[first] <= window.start);
        let to = last + 1 - usize::from(samples.ts[last] >= window.end);
        let mut before = left;
        let mut correction = 0.0;
        let inside = samples.values.get(from..to).unwrap_or_default();
        for value in inside.iter().chain(std::iter::once(&right)) {
            if *value < before {
                correction += before;
            }
            before = *value;
        }
        result += correction;
    }
    if per_second {
        #[expect(clippy::cast_precision_loss, reason = "ranges stay below 2^53 ms")]
        let range = (window.end - window.start) as f64;
        result /= range / 1000.0;
    }
    result
}

fn left_edge(samples: Samples<'_>, first: usize, at: i64, smoothed: bool, counter: bool) -> f64 {
    if smoothed && samples.ts[first] < at {
        return interpolate(samples, first, at, counter);
    }
    samples.values[first]
}

fn right_edge(samples: Samples<'_>, last: usize, at: i64, smoothed: bool, counter: bool) -> f64 {
    if smoothed && last > 0 && samples.ts[last] > at {
        return interpolate(samples, last - 1, at, counter);
    }
    samples.values[last]
}

/// The value between a sample and the next.
fn interpolate(samples: Samples<'_>, index: usize, at: i64, counter: bool) -> f64 {
    let (from, to) = (samples.values[index], samples.values[index + 1]);
    let from = if counter && to < from { 0.0 } else { from };
    let (start, end) = (samples.ts[index], samples.ts[index + 1]);
    #[expect(clippy::cast_precision_loss, reason = "distances stay below 2^53 ms")]
    let (part, whole) = ((at - start) as f64, (end - start) as f64);
    from + (to - from) * part / whole
}

/// `changes` and `resets` from the sample before the window on.
fn anchored_steps(function: RangeFunction, samples: Samples<'_>, window: Window) -> f64 {
    let before = samples.ts.partition_point(|t| *t <= window.start);
    if before >= samples.len() {
        return ABSENT;
    }
    let whole = Window { start: i64::MIN, ..window };
    let mut fold = crate::window::Fold::new(function);
    fold.extend(function, samples.part(before.saturating_sub(1)..samples.len()));
    fold.finish(function, whole)
}

/// The samples of a window with values at both of its edges.
pub(crate) fn extended_samples(
    extension: Extension,
    points: &Points,
    window: Window,
    lookback: i64,
) -> Points {
    let samples = Samples { ts: &points.ts, values: &points.values };
    let samples = reach(extension, samples, window, lookback);
    let smoothed = extension == Extension::Smoothed;
    let mut out = Points { labels: points.labels.clone(), ..Points::default() };
    let Some(last) = samples.len().checked_sub(1) else { return out };
    let first = samples.ts[..last].partition_point(|t| *t <= window.start).saturating_sub(1);
    let last =
        if smoothed { samples.ts[..last].partition_point(|t| *t < window.end) } else { last };
    if samples.ts[last] <= window.start {
        return out;
    }
    let mut push = |t, value| {
        out.ts.push(t);
        out.values.push(value);
    };
    push(window.start, left_edge(samples, first, window.start, smoothed, false));
    let from = first + usize::from(samples.ts[first] <= window.start);
    let to = last + 1 - usize::from(samples.ts[last] >= window.end);
    for index in from..to.max(from) {
        push(samples.ts[index], samples.values[index]);
    }
    push(window.end, right_edge(samples, last, window.end, smoothed, false));
    out
}

/// The value of an instant selector with `smoothed`: between the samples around the instant.
pub(crate) fn smoothed_value(samples: Samples<'_>, at: i64, lookback: i64) -> f64 {
    let samples = samples.within(at - lookback, at + lookback);
    let next = samples.ts.partition_point(|t| *t < at);
    match samples.ts.get(next) {
        Some(t) if *t == at => samples.values[next],
        _ if next == 0 => ABSENT,
        Some(_) => interpolate(samples, next - 1, at, false),
        None => samples.values[next - 1],
    }
}
