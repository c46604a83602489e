//! Functions of classic histograms: which series are buckets of which histogram, and what is odd
//! about them. The arithmetic of one histogram is `bucket`'s.

use std::collections::BTreeMap;

use super::bucket::{self, Bucket};
use super::settled;
use crate::annotation::Forced;
use crate::eval::{CallSite, Context, EvalError, bad_quantile};
use crate::frame::{Frame, Row, nothing, present};
use crate::labels::Labels;
use crate::number::{in_open_metrics, parse_float};
use crate::quote::quoted;
use crate::span::Span;
use crate::window::is_absent;

/// The label that holds the bound of a bucket.
const BOUND: &str = "le";

/// The series that are buckets of one histogram, with their bounds, from the lowest up.
struct Histogram<'a> {
    labels: Labels,
    columns: Vec<(f64, &'a [f64])>,
}

/// `histogram_quantile`.
pub(super) fn quantile(
    site: &CallSite,
    q: &[f64],
    frame: &Frame,
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    check_quantiles(site.args[0], q, ctx);
    let span = site.args[1];
    let mut rows = Vec::new();
    for histogram in histograms(frame, span, ctx) {
        let mut values = nothing(ctx.steps.count);
        over_fixed(&histogram, span, ctx, |step, buckets| {
            values[step] = present(bucket::quantile(q[step], buckets));
            bucket::is_quantile(q[step])
        });
        rows.push(histogram.result(values, ctx));
    }
    settled(rows, ctx)
}

/// `histogram_quantiles`: every quantile becomes series of its own, with itself as a label.
pub(super) fn quantiles(
    site: &CallSite,
    frame: &Frame,
    label: &[u8],
    qs: &[Vec<f64>],
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    for (q, span) in qs.iter().zip(&site.args[2..]) {
        check_quantiles(*span, q, ctx);
    }
    let label = String::from_utf8_lossy(label);
    let span = site.args[0];
    let mut rows = Vec::new();
    let mut tally = ctx.limits.tally();
    for histogram in histograms(frame, span, ctx) {
        let plain = histogram.result(Vec::new(), ctx);
        let mut too_much = None;
        // A quantile that changes over time is in a series of its own for every value it has.
        let mut values: Vec<BTreeMap<u64, Vec<f64>>> = vec![BTreeMap::new(); qs.len()];
        let steps = ctx.steps.count;
        over_fixed(&histogram, span, ctx, |step, buckets| {
            for (q, values) in qs.iter().zip(&mut values) {
                if !values.contains_key(&q[step].to_bits()) && too_much.is_none() {
                    too_much = tally.row(&plain.labels, steps).err();
                }
                if too_much.is_some() {
                    return false;
                }
                let values = values.entry(q[step].to_bits()).or_insert_with(|| nothing(steps));
                values[step] = present(bucket::quantile(q[step], buckets));
            }
            qs.iter().any(|q| bucket::is_quantile(q[step]))
        });
        if let Some(error) = too_much {
            return Err(error);
        }
        for (q, values) in values.into_iter().flatten() {
            let labels = plain.labels.with(&label, &in_open_metrics(f64::from_bits(q)));
            rows.push(Row { labels, drop_name: plain.drop_name, values });
        }
    }
    settled(rows, ctx)
}

/// `histogram_fraction`.
pub(super) fn fraction(
    site: &CallSite,
    lower: &[f64],
    upper: &[f64],
    frame: &Frame,
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    let mut rows = Vec::new();
    for histogram in histograms(frame, site.args[2], ctx) {
        let mut values = nothing(ctx.steps.count);
        histogram.over(ctx.steps.count, |step, buckets| {
            values[step] = present(bucket::fraction(lower[step], upper[step], buckets));
        });
        rows.push(histogram.result(values, ctx));
    }
    settled(rows, ctx)
}

/// Warns of quantiles that there are not, once for each.
fn check_quantiles(span: Span, qs: &[f64], ctx: &mut Context) {
    let mut before = None;
    for q in qs.iter().filter(|q| !bucket::is_quantile(**q)) {
        if before != Some(q.to_bits()) {
            ctx.annotations.warn(span, bad_quantile(*q));
        }
        before = Some(q.to_bits());
    }
}

/// Sorts series into histograms, by all labels but the bound. Warns of series without a bound.
fn histograms<'a>(frame: &'a Frame, span: Span, ctx: &mut Context) -> Vec<Histogram<'a>> {
    let mut found: BTreeMap<Labels, Vec<(f64, &[f64])>> = BTreeMap::new();
    for row in frame.rows.iter().filter(|row| row.has_values()) {
        let text = row.labels.value(BOUND);
        if let Some(bound) = parse_float(text) {
            let labels = row.labels.filtered(|name| name != BOUND);
            found.entry(labels).or_default().push((bound, row.values.as_slice()));
        } else {
            let text = quoted(text.as_bytes());
            let of = of_metric(&row.labels, ctx);
            let message =
                format!("bucket label {BOUND:?} is missing or has a malformed value of {text}{of}");
            ctx.annotations.warn(span, message);
        }
    }
    let histogram = |(labels, mut columns): (Labels, Vec<(f64, &'a [f64])>)| {
        // A bound that is NaN comes last, where no bucket counts every observation then.
        columns.sort_by(|(one, _), (other, _)| {
            one.partial_cmp(other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
        });
        Histogram { labels, columns }
    };
    found.into_iter().map(histogram).collect()
}

/// The metric's name for a message. Without delayed removal of names it may have none any more, so
/// it is never told then.
fn of_metric(labels: &Labels, ctx: &Context) -> String {
    let metric = labels.metric();
    if !ctx.delayed_name_removal || metric.is_empty() {
        return String::new();
    }
    format!(" for metric name {}", quoted(metric.as_bytes()))
}

/// Goes over the steps at which there is a histogram, with buckets that were made monotonic. Each
/// visit says whether it made use of them: only then it is told what had to be changed.
fn over_fixed(
    histogram: &Histogram<'_>,
    span: Span,
    ctx: &mut Context,
    mut visit: impl FnMut(usize, &[Bucket]) -> bool,
) {
    let mut forced: Option<Forced> = None;
    let steps = ctx.steps;
    histogram.over(steps.count, |step, buckets| {
        let complete = bucket::is_complete(buckets);
        let correction = if complete { bucket::make_monotonic(buckets) } else { None };
        if visit(step, buckets)
            && let Some(correction) = correction
        {
            let at = steps.at(step);
            let this = Forced {
                times: (at, at),
                buckets: correction.bounds,
                max_diff: correction.max_diff,
                count: 1,
            };
            forced = Some(forced.map_or(this, |forced| forced.joined(this)));
        }
    });
    if let Some(forced) = forced {
        let of = of_metric(&histogram.labels, ctx);
        let message = format!(
            "input to histogram_quantile needed to be fixed for monotonicity (see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile){of}"
        );
        ctx.annotations.forced(span, message, forced);
    }
}

impl Histogram<'_> {
    /// Goes over the steps at which there is a bucket, with those that are there, coalesced.
    fn over(&self, steps: usize, mut visit: impl FnMut(usize, &mut [Bucket])) {
        let mut buckets = Vec::with_capacity(self.columns.len());
        for step in 0..steps {
            buckets.clear();
            let there = self.columns.iter().map(|(bound, counts)| (*bound, counts[step]));
            let there = there.filter(|(_, count)| !is_absent(*count));
            buckets.extend(there.map(|(bound, count)| Bucket { bound, count }));
            if !buckets.is_empty() {
                bucket::coalesce(&mut buckets);
                visit(step, &mut buckets);
            }
        }
    }

    fn result(&self, values: Vec<f64>, ctx: &Context) -> Row {
        let mut row = Row { labels: self.labels.clone(), drop_name: false, values };
        ctx.drop_name(&mut row);
        row
    }
}
