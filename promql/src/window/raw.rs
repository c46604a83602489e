//! Functions that need all samples of their window: deviations, quantiles, regressions, smoothing.

use std::cmp::Ordering;

use super::fold::{seconds, to_f64};
use super::{ABSENT, RangeFunction, Samples, Window, Windows};
use crate::exact::ExactSum;

/// The function's value over a whole window without staleness marks. `scratch` saves an allocation
/// per window.
pub(super) fn value(
    function: RangeFunction,
    samples: Samples<'_>,
    window: Window,
    scratch: &mut Vec<f64>,
) -> f64 {
    use RangeFunction as F;
    let Samples { values, .. } = samples;
    match function {
        _ if values.is_empty() => ABSENT,
        F::Stdvar => variance(values),
        F::Stddev => variance(values).sqrt(),
        F::Quantile(q) => {
            scratch.clear();
            scratch.extend_from_slice(values);
            quantile(q, scratch)
        }
        F::Mad => median_deviation(values, scratch),
        F::Deriv | F::PredictLinear(_) | F::Smoothing { .. } if values.len() < 2 => ABSENT,
        F::Deriv => regression(samples, samples.ts[0]).0,
        F::PredictLinear(ahead) => {
            let (slope, intercept) = regression(samples, window.at);
            slope * ahead + intercept
        }
        F::Smoothing { factor, trend } => smoothing(values, factor, trend),
        other => unreachable!("{other:?} does not need its samples"),
    }
}

/// Samples that windows look at before it is asked again whether to stop: a few milliseconds of the
/// slowest function.
const LOOKS_AT_ONCE: usize = 1 << 17;

/// Counts what was looked at, and asks now and then whether to stop.
struct Patience<'a> {
    is_cancelled: &'a dyn Fn() -> bool,
    looked_at: usize,
}

impl<'a> Patience<'a> {
    fn new(is_cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { is_cancelled, looked_at: 0 }
    }

    /// A window with so many samples is about to be looked at. True where nobody wants that.
    fn is_over(&mut self, samples: usize) -> bool {
        self.looked_at += samples;
        if self.looked_at < LOOKS_AT_ONCE {
            return false;
        }
        self.looked_at = 0;
        (self.is_cancelled)()
    }
}

/// The function's value over every window of a series without staleness marks. False where it
/// stopped because it was told to.
pub(super) fn slide(
    function: RangeFunction,
    samples: Samples<'_>,
    windows: Windows,
    out: &mut [f64],
    is_cancelled: &dyn Fn() -> bool,
) -> bool {
    let mut patience = Patience::new(is_cancelled);
    if let RangeFunction::Quantile(q) = function {
        return slide_quantile(q, samples, windows, out, patience);
    }
    let mut scratch = Vec::new();
    for ((window, within), out) in windows.over(samples.ts).zip(out) {
        if patience.is_over(within.len()) {
            return false;
        }
        *out = value(function, samples.part(within), window, &mut scratch);
    }
    true
}

/// Quantiles of every window: the values in hand stay sorted while samples come and go.
fn slide_quantile(
    q: f64,
    samples: Samples<'_>,
    windows: Windows,
    out: &mut [f64],
    mut patience: Patience<'_>,
) -> bool {
    let mut sorted: Vec<f64> = Vec::new();
    let mut held = 0..0;
    for ((_, within), out) in windows.over(samples.ts).zip(out) {
        if patience.is_over(within.len()) {
            return false;
        }
        let apart = within.start >= held.end;
        // Many at once are cheaper to sort than to put in their places one by one.
        if apart || within.end - held.end > sorted.len() {
            sorted.clear();
            sorted.extend_from_slice(&samples.values[within.clone()]);
            sorted.sort_unstable_by(by_value);
        } else {
            for gone in &samples.values[held.start..within.start] {
                let at = sorted.partition_point(|value| by_value(value, gone).is_lt());
                sorted.remove(at);
            }
            for come in &samples.values[held.end..within.end] {
                let at = sorted.partition_point(|value| by_value(value, come).is_lt());
                sorted.insert(at, *come);
            }
        }
        held = within;
        *out = if sorted.is_empty() { ABSENT } else { quantile_of_sorted(q, &sorted) };
    }
    true
}

/// The order of values for quantiles: NaN before all numbers, and whatever else is equal told apart
/// by its bits, so that the order they came in makes no difference.
fn by_value(one: &f64, other: &f64) -> Ordering {
    match (one.is_nan(), other.is_nan()) {
        (false, false) => one.total_cmp(other),
        (true, true) => one.to_bits().cmp(&other.to_bits()),
        (one, other) => other.cmp(&one),
    }
}

/// The mean of the squared distances from the mean, the mean being exact.
fn variance(values: &[f64]) -> f64 {
    let count = values.len() as u64;
    let mut sum = ExactSum::default();
    values.iter().for_each(|value| sum.add(*value));
    let mean = sum.mean(count);
    // What rounding took from the mean comes back as the distances' own sum.
    let (mut squares, mut rests) = (ExactSum::default(), ExactSum::default());
    for value in values {
        let distance = value - mean;
        squares.add(distance * distance);
        rests.add(distance);
    }
    let (squares, rest) = (squares.value(), rests.value());
    if squares == f64::INFINITY {
        // Beyond what a float can hold; so may be what comes back, and infinity less infinity is none.
        return squares;
    }
    (squares - rest * rest / to_f64(count)) / to_f64(count)
}

/// A quantile of the values, by linear interpolation between the two nearest. Sorts them.
pub fn quantile(q: f64, values: &mut [f64]) -> f64 {
    values.sort_unstable_by(by_value);
    quantile_of_sorted(q, values)
}

fn quantile_of_sorted(q: f64, values: &[f64]) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    let rank = q * to_f64(values.len() as u64 - 1);
    let weight = rank - rank.floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let lower = rank.floor().max(0.0) as usize;
    let upper = (lower + 1).min(values.len() - 1);
    values[lower] * (1.0 - weight) + values[upper] * weight
}

/// The median distance from the median.
fn median_deviation(values: &[f64], scratch: &mut Vec<f64>) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    scratch.clear();
    scratch.extend_from_slice(values);
    let median = quantile(0.5, scratch);
    scratch.iter_mut().for_each(|value| *value = (*value - median).abs());
    quantile(0.5, scratch)
}

/// Slope by the second and value at an instant of the least-squares line through the samples.
fn regression(samples: Samples<'_>, at: i64) -> (f64, f64) {
    let first = samples.values[0];
    if samples.values.iter().all(|value| *value == first) {
        return if first.is_infinite() { (f64::NAN, f64::NAN) } else { (0.0, first) };
    }
    let n = to_f64(samples.len() as u64);
    let [mut x_sum, mut y_sum, mut xy_sum, mut xx_sum]: [ExactSum; 4] = Default::default();
    for (t, y) in samples.iter() {
        let x = seconds(t - at);
        x_sum.add(x);
        y_sum.add(y);
        xy_sum.add(x * y);
        xx_sum.add(x * x);
    }
    let (x, y) = (x_sum.value(), y_sum.value());
    let covariance = xy_sum.value() - x * y / n;
    let variance = xx_sum.value() - x * x / n;
    let slope = covariance / variance;
    (slope, y / n - slope * x / n)
}

/// Double exponential smoothing, Holt's linear method.
fn smoothing(values: &[f64], factor: f64, trend_factor: f64) -> f64 {
    let mut before = 0.0;
    let mut smoothed = values[0];
    let mut trend = values[1] - values[0];
    for (i, value) in values.iter().enumerate().skip(1) {
        if i > 1 {
            trend = trend_factor * (smoothed - before) + (1.0 - trend_factor) * trend;
        }
        let next = factor * value + (1.0 - factor) * (smoothed + trend);
        (before, smoothed) = (smoothed, next);
    }
    smoothed
}
