//! Judges one answer: the values within the tolerance Prometheus' own runner has, the annotations,
//! the errors and the order, as the script asks for them.

use std::collections::BTreeMap;

use tributary_promql::annotation::Level;
use tributary_promql::{Answer, Data, Labels, Points, STALE_BITS};

use crate::describe::{Detail, data_lines, joined, number, series_line};
use crate::engine::Time;
use crate::script::{AnnotationRule, Case, Expected, Message, Window};

/// What was expected and what came instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) expected: String,
    pub(crate) got: String,
}

/// The relative error that is allowed.
const TOLERANCE: f64 = 0.000_001;

type ExpectedSeries = BTreeMap<Labels, (usize, Vec<Option<f64>>)>;

/// Judges an error where one is expected.
pub(crate) fn check_error(case: &Case, error: &str) -> Result<(), Mismatch> {
    for message in &case.expect.fail_messages {
        if !message.fits(error) {
            return mismatch(format!("an error with {}", told(message)), error);
        }
    }
    Ok(())
}

/// Judges the annotations of an answer to the query `text`.
pub(crate) fn check_annotations(case: &Case, text: &str, answer: &Answer) -> Result<(), Mismatch> {
    let annotations = &answer.annotations;
    let warnings = annotations.texts(Level::Warning, text);
    check_level(&case.expect.warnings, &warnings, "warning")?;
    check_level(&case.expect.infos, &annotations.texts(Level::Info, text), "info")
}

fn check_level(rule: &AnnotationRule, got: &[String], level: &str) -> Result<(), Mismatch> {
    if rule.none && !got.is_empty() {
        return mismatch(format!("no {level}"), joined(got));
    }
    if (rule.some || !rule.messages.is_empty()) && got.is_empty() {
        return mismatch(format!("a {level}"), "none");
    }
    for message in &rule.messages {
        if !got.iter().any(|text| message.fits(text)) {
            return mismatch(format!("a {level} with {}", told(message)), joined(got));
        }
    }
    if rule.messages.is_empty() {
        return Ok(());
    }
    match got.iter().find(|text| !rule.messages.iter().any(|message| message.fits(text))) {
        Some(text) => mismatch(format!("no other {level}"), text),
        None => Ok(()),
    }
}

/// Judges the values of an answer to a query at `time`.
pub(crate) fn check_values(case: &Case, time: Time, data: &Data) -> Result<(), Mismatch> {
    if let (Data::Scalar { t, .. } | Data::String { t, .. } | Data::Vector { t, .. }, time) =
        (data, time)
        && time != (Time::Instant { at: *t })
    {
        return mismatch(format!("an answer for {time}"), shown(data));
    }
    match (&case.expect.values, data) {
        (Expected::Scalar(expected), Data::Scalar { value, .. }) => {
            if !close(*expected, *value) {
                return mismatch(number(*expected, Detail::Numbers), shown(data));
            }
            Ok(())
        }
        // A script that says nothing of a string expects an empty one.
        (Expected::Series(series), Data::String { bytes, .. }) if series.is_empty() => {
            if bytes.is_empty() { Ok(()) } else { mismatch("an empty string", shown(data)) }
        }
        (Expected::String(expected), Data::String { bytes, .. }) => {
            if expected != bytes {
                return mismatch(tributary_promql::quote::quoted(expected), shown(data));
            }
            Ok(())
        }
        (Expected::Series(series), Data::Vector { series: got, .. }) => {
            check_vector(series, got, case.expect.ordered, data)
        }
        (Expected::Series(series), Data::Matrix(got)) => {
            check_matrix(case, time, series, got, data)
        }
        (Expected::Scalar(_), _) => mismatch("a scalar", shown(data)),
        (Expected::String(_), _) => mismatch("a string", shown(data)),
        (Expected::Series(_), _) => mismatch("series", shown(data)),
    }
}

fn check_vector(
    expected: &ExpectedSeries,
    got: &[(Labels, f64)],
    ordered: bool,
    data: &Data,
) -> Result<(), Mismatch> {
    let wanted = || {
        let mut lines: Vec<_> = expected.iter().collect();
        lines.sort_by_key(|(_, (place, _))| *place);
        let lines: Vec<String> =
            lines.into_iter().map(|(labels, (_, values))| expected_line(labels, values)).collect();
        joined(&lines)
    };
    check_labels(expected, got.iter().map(|(labels, _)| labels), wanted, data)?;
    for (at, (labels, value)) in got.iter().enumerate() {
        let (place, values) = &expected[labels];
        if ordered && *place != at {
            return mismatch(format!("in this order\n{}", wanted()), shown(data));
        }
        let value_expected = values.first().copied().flatten();
        if !value_expected.is_some_and(|expected| close(expected, *value)) {
            let got = format!("{labels} {}", number(*value, Detail::Numbers));
            return mismatch(expected_line(labels, values), got);
        }
    }
    Ok(())
}

fn check_matrix(
    case: &Case,
    time: Time,
    expected: &ExpectedSeries,
    got: &[Points],
    data: &Data,
) -> Result<(), Mismatch> {
    if case.expect.ordered {
        return mismatch("an ordered answer, which a matrix is not", shown(data));
    }
    if !got.is_sorted_by(|one, other| one.labels <= other.labels) {
        return mismatch("series sorted by labels", shown(data));
    }
    let wanted = || {
        let line = |(labels, (_, values)): (&Labels, &(_, Vec<_>))| expected_line(labels, values);
        joined(&expected.iter().map(line).collect::<Vec<_>>())
    };
    check_labels(expected, got.iter().map(|points| &points.labels), wanted, data)?;
    let window = match (time, case.expect.window) {
        (_, Some(window)) => window,
        (Time::Range { start, end, step }, None) => Window { start, end, step },
        (Time::Instant { .. }, None) if expected.is_empty() => return Ok(()),
        (Time::Instant { .. }, None) => return mismatch("a vector", shown(data)),
    };
    for points in got {
        let (_, values) = &expected[&points.labels];
        check_points(window, points, values)?;
    }
    Ok(())
}

fn check_points(window: Window, points: &Points, values: &[Option<f64>]) -> Result<(), Mismatch> {
    let times = (0_i64..).map(|index| window.start + index * window.step);
    let expected: Vec<(i64, f64)> =
        times.zip(values).filter_map(|(t, value)| Some((t, (*value)?))).collect();
    let fits = points.ts.len() == expected.len()
        && points.values.len() == expected.len()
        && expected.iter().zip(&points.ts).all(|((expected, _), got)| expected == got)
        && expected.iter().zip(&points.values).all(|((_, expected), got)| close(*expected, *got));
    let in_window = expected.iter().all(|(t, _)| *t <= window.end);
    if fits && in_window {
        return Ok(());
    }
    let line = |pairs: &mut dyn Iterator<Item = (i64, f64)>| {
        let values = pairs.map(|(t, value)| format!("{} @[{t}]", number(value, Detail::Numbers)));
        series_line(&points.labels, values)
    };
    let got = points.ts.iter().copied().zip(points.values.iter().copied());
    let mut expected = line(&mut expected.into_iter());
    if !in_window {
        expected.push_str(", which is more than the steps of the query");
    }
    mismatch(expected, line(&mut { got }))
}

/// Each expected series is there once, and no other.
fn check_labels<'a>(
    expected: &ExpectedSeries,
    got: impl Iterator<Item = &'a Labels>,
    wanted: impl Fn() -> String,
    data: &Data,
) -> Result<(), Mismatch> {
    let mut seen: Vec<&Labels> = got.collect();
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    // Both are sorted by labels and without repetition now.
    if seen.len() == count && seen.into_iter().eq(expected.keys()) {
        return Ok(());
    }
    mismatch(wanted(), shown(data))
}

fn expected_line(labels: &Labels, values: &[Option<f64>]) -> String {
    let text = |value: &Option<f64>| match value {
        Some(value) => number(*value, Detail::Numbers),
        None => String::from("_"),
    };
    series_line(labels, values.iter().map(text))
}

fn told(message: &Message) -> String {
    match message {
        Message::Any => String::from("any text"),
        Message::Exactly(text) => format!("the text\n{text}"),
        Message::Pattern(pattern) => format!("a text that fits\n{pattern}"),
    }
}

fn shown(data: &Data) -> String {
    joined(&data_lines(data, Detail::Numbers))
}

fn mismatch<T>(expected: impl Into<String>, got: impl Into<String>) -> Result<T, Mismatch> {
    Err(Mismatch { expected: expected.into(), got: got.into() })
}

/// Whether two values are the same but for rounding. A staleness mark equals only itself, any other
/// NaN any other.
fn close(one: f64, other: f64) -> bool {
    let is_stale = |value: f64| value.to_bits() == STALE_BITS;
    if is_stale(one) || is_stale(other) {
        return is_stale(one) && is_stale(other);
    }
    if (one.is_nan() && other.is_nan()) || one == other {
        return true;
    }
    let (sum, difference) = (one.abs() + other.abs(), (one - other).abs());
    if one == 0.0 || other == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < TOLERANCE * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_close_up_to_a_millionth_of_their_sum() {
        let stale = f64::from_bits(STALE_BITS);
        let payload = f64::from_bits(0x7ff8_0000_0000_0001);
        for (one, other, expected) in [
            (1.0, 1.0, true),
            (1.0, 1.000_001_9, true),
            (1.0, 1.000_002_1, false),
            (0.0, 1e-300, false),
            (0.0, -0.0, true),
            (5e-324, 1e-323, true),
            (f64::INFINITY, f64::INFINITY, true),
            (f64::INFINITY, f64::MAX, false),
            (f64::MAX, f64::MAX * 0.999_999_5, true),
            (f64::NAN, payload, true),
            (f64::NAN, 1.0, false),
            (stale, stale, true),
            (stale, f64::NAN, false),
        ] {
            assert_eq!(close(one, other), expected, "{one:?} {other:?}");
            assert_eq!(close(other, one), expected, "{other:?} {one:?}");
        }
    }
}
