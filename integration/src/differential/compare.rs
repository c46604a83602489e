//! Whether two outcomes are the same, and where they part. Values are the same within a tolerance,
//! everything else exactly. Why a difference may be right is `explained`'s business.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tributary_promql::{Data, Expr, Labels};

use super::outcome::{Outcome, Told};

/// How far two values may be apart, relative to the larger one. Prometheus adds with compensated
/// sums in the order of its series, we add exactly: the last bits may differ, and arithmetic on top
/// of them lets a few more go.
pub const TOLERANCE: f64 = 1e-9;

/// How alike two outcomes are.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// To the last bit; NaN equals NaN.
    SameBits,
    /// Within the tolerance.
    Close,
    /// They differ.
    Differ(Difference),
}

/// Where two outcomes part first.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Only one of them is an error, or both are and their words differ.
    Error {
        /// What the peer said; none if it answered.
        peer: Option<String>,
        /// What we said; none if we answered.
        ours: Option<String>,
    },
    /// Answers of different types.
    Type,
    /// Series that only one side has, at some time.
    Series {
        /// Only the peer has these.
        missing: Vec<Labels>,
        /// Only we have these.
        extra: Vec<Labels>,
        /// When first; none for answers at one time only.
        at: Option<i64>,
    },
    /// Values are too far apart.
    Value {
        /// Of this series.
        labels: Labels,
        /// At this time.
        at: i64,
        /// The peer's.
        peer: f64,
        /// Ours.
        ours: f64,
    },
    /// Strings that are not the same, or times of a scalar or string.
    Other(String),
    /// The same series in another order than was asked for.
    Order,
    /// Warnings or infos that only one side has.
    Notes {
        /// Only the peer has these.
        missing: Vec<String>,
        /// Only we have these.
        extra: Vec<String>,
        /// The peer has left out some of its own.
        omitted: bool,
    },
}

/// The order in which the series of an answer must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any.
    Any,
    /// By value; equal values in any order.
    Values,
    /// By labels, without any freedom.
    Labels,
}

impl Order {
    /// The order that an instant query asks for.
    pub fn of(expr: &Expr) -> Self {
        match expr {
            Expr::Paren(paren) => Self::of(&paren.expr),
            Expr::Call(call) => match call.function.name {
                "sort" | "sort_desc" => Self::Values,
                "sort_by_label" | "sort_by_label_desc" => Self::Labels,
                _ => Self::Any,
            },
            _ => Self::Any,
        }
    }
}

/// Compares the peer's outcome with ours.
pub fn compare(peer: &Outcome, ours: &Outcome, order: Order) -> Verdict {
    match (peer, ours) {
        (Outcome::Answered(peer), Outcome::Answered(ours)) => {
            let mut same_bits = true;
            if let Err(difference) = told(peer, ours, order, &mut same_bits) {
                return Verdict::Differ(difference);
            }
            if same_bits { Verdict::SameBits } else { Verdict::Close }
        }
        (Outcome::Failed(peer), Outcome::Failed(ours)) if peer == ours => Verdict::SameBits,
        _ => {
            let text = |outcome: &Outcome| match outcome {
                Outcome::Answered(_) => None,
                Outcome::Failed(text) => Some(text.clone()),
            };
            Verdict::Differ(Difference::Error { peer: text(peer), ours: text(ours) })
        }
    }
}

fn told(peer: &Told, ours: &Told, order: Order, same_bits: &mut bool) -> Result<(), Difference> {
    values(&peer.data, &ours.data, order, same_bits)?;
    notes(&peer.warnings, &ours.warnings)?;
    notes(&peer.infos, &ours.infos)
}

fn values(peer: &Data, ours: &Data, order: Order, bits: &mut bool) -> Result<(), Difference> {
    match (peer, ours) {
        (Data::Scalar { t, value }, Data::Scalar { t: t2, value: value2 }) => {
            if t != t2 {
                return Err(Difference::Other(format!("time {t}, ours {t2}")));
            }
            one(&Labels::default(), *t, *value, *value2, bits)
        }
        (Data::String { t, bytes }, Data::String { t: t2, bytes: bytes2 }) => {
            if (t, bytes) == (t2, bytes2) {
                return Ok(());
            }
            let (peer, ours) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(bytes2));
            Err(Difference::Other(format!("{peer:?} at {t}, ours {ours:?} at {t2}")))
        }
        (Data::Vector { t, series }, Data::Vector { t: t2, series: series2 }) => {
            let (theirs, mine) = (by_labels(series), by_labels(series2));
            same_keys(&theirs, &mine, None)?;
            if mine.len() != series2.len() {
                return Err(Difference::Other("a series stands twice in our answer".to_owned()));
            }
            if t != t2 && !series.is_empty() {
                return Err(Difference::Other(format!("time {t}, ours {t2}")));
            }
            for (labels, value) in &theirs {
                one(labels, *t, *value, mine[*labels], bits)?;
            }
            in_order(series, series2, order)
        }
        (Data::Matrix(series), Data::Matrix(series2)) => {
            let keyed =
                |series: &[tributary_promql::Points]| -> BTreeMap<Labels, BTreeMap<i64, f64>> {
                    let points = |one: &tributary_promql::Points| {
                        one.ts.iter().copied().zip(one.values.iter().copied()).collect()
                    };
                    series.iter().map(|one| (one.labels.clone(), points(one))).collect()
                };
            let (theirs, mine) = (keyed(series), keyed(series2));
            if mine.len() != series2.len() {
                return Err(Difference::Other("a series stands twice in our answer".to_owned()));
            }
            instants(&theirs, &mine)?;
            for (labels, points) in &theirs {
                for (t, value) in points {
                    one(labels, *t, *value, mine[labels][t], bits)?;
                }
            }
            Ok(())
        }
        _ => Err(Difference::Type),
    }
}

fn by_labels(series: &[(Labels, f64)]) -> BTreeMap<&Labels, f64> {
    series.iter().map(|(labels, value)| (labels, *value)).collect()
}

fn same_keys(
    theirs: &BTreeMap<&Labels, f64>,
    mine: &BTreeMap<&Labels, f64>,
    at: Option<i64>,
) -> Result<(), Difference> {
    let only = |here: &BTreeMap<&Labels, f64>, there: &BTreeMap<&Labels, f64>| -> Vec<Labels> {
        here.keys().filter(|labels| !there.contains_key(*labels)).map(|l| (*l).clone()).collect()
    };
    let (missing, extra) = (only(theirs, mine), only(mine, theirs));
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    Err(Difference::Series { missing, extra, at })
}

/// At every time, the same series have values.
fn instants(
    theirs: &BTreeMap<Labels, BTreeMap<i64, f64>>,
    mine: &BTreeMap<Labels, BTreeMap<i64, f64>>,
) -> Result<(), Difference> {
    let mut apart: BTreeMap<i64, (Vec<Labels>, Vec<Labels>)> = BTreeMap::new();
    let empty = BTreeMap::new();
    for labels in theirs.keys().chain(mine.keys()).collect::<BTreeSet<_>>() {
        let (peer, ours) =
            (theirs.get(labels).unwrap_or(&empty), mine.get(labels).unwrap_or(&empty));
        for t in peer.keys().filter(|t| !ours.contains_key(t)) {
            apart.entry(*t).or_default().0.push(labels.clone());
        }
        for t in ours.keys().filter(|t| !peer.contains_key(t)) {
            apart.entry(*t).or_default().1.push(labels.clone());
        }
    }
    match apart.pop_first() {
        None => Ok(()),
        Some((t, (missing, extra))) => Err(Difference::Series { missing, extra, at: Some(t) }),
    }
}

fn one(labels: &Labels, at: i64, peer: f64, ours: f64, bits: &mut bool) -> Result<(), Difference> {
    if !close(peer, ours) {
        return Err(Difference::Value { labels: labels.clone(), at, peer, ours });
    }
    *bits &= peer.to_bits() == ours.to_bits() || (peer.is_nan() && ours.is_nan());
    Ok(())
}

/// The same value, or no further apart than [`TOLERANCE`]. At the lower end of what a float can
/// hold a few steps are allowed, since there they are wider than the tolerance.
pub fn close(one: f64, other: f64) -> bool {
    const STEPS: f64 = 2e-323;
    if one == other || (one.is_nan() && other.is_nan()) {
        return true;
    }
    let largest = one.abs().max(other.abs());
    largest.is_finite() && (one - other).abs() <= (TOLERANCE * largest).max(STEPS)
}

fn in_order(
    peer: &[(Labels, f64)],
    ours: &[(Labels, f64)],
    order: Order,
) -> Result<(), Difference> {
    let right = match order {
        Order::Any => true,
        Order::Values => peer.iter().zip(ours).all(|(peer, ours)| close(peer.1, ours.1)),
        Order::Labels => peer.iter().zip(ours).all(|(peer, ours)| peer.0 == ours.0),
    };
    if right { Ok(()) } else { Err(Difference::Order) }
}

/// The same annotations. Prometheus tells the first ten of a kind and how many more there are.
fn notes(peer: &BTreeSet<String>, ours: &BTreeSet<String>) -> Result<(), Difference> {
    let is_rest = |text: &&String| text.ends_with(" annotations omitted");
    let omitted = peer.iter().any(|text| is_rest(&text));
    let missing: Vec<String> =
        peer.iter().filter(|text| !is_rest(text) && !ours.contains(*text)).cloned().collect();
    let extra: Vec<String> = ours.iter().filter(|text| !peer.contains(*text)).cloned().collect();
    if missing.is_empty() && (omitted || extra.is_empty()) {
        return Ok(());
    }
    Err(Difference::Notes { missing, extra, omitted })
}

impl Difference {
    /// The time it is about, if it is about one.
    pub const fn time(&self) -> Option<i64> {
        match self {
            Self::Value { at, .. } => Some(*at),
            Self::Series { at, .. } => *at,
            _ => None,
        }
    }

    /// A word for the kind of difference, to tell whether two are alike.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Error { .. } => "error",
            Self::Type => "type",
            Self::Series { .. } => "series",
            Self::Value { .. } => "value",
            Self::Other(_) => "other",
            Self::Order => "order",
            Self::Notes { .. } => "annotations",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |labels: &[Labels]| {
            let some: Vec<String> = labels.iter().take(3).map(Labels::to_string).collect();
            let more = labels.len().saturating_sub(3);
            if more > 0 { format!("{} and {more} more", some.join(" ")) } else { some.join(" ") }
        };
        match self {
            Self::Error { peer, ours } => {
                let text = |error: &Option<String>| error.clone().unwrap_or("an answer".to_owned());
                write!(f, "error: Prometheus: {}\n       ours:       {}", text(peer), text(ours))
            }
            Self::Type => f.write_str("answers of different types"),
            Self::Series { missing, extra, at } => {
                if let Some(at) = at {
                    write!(f, "at {at}: ")?;
                }
                write!(f, "only Prometheus has [{}], only we have [{}]", list(missing), list(extra))
            }
            Self::Value { labels, at, peer, ours } => {
                write!(f, "{labels} at {at}: Prometheus {peer:?}, ours {ours:?}")
            }
            Self::Other(text) => f.write_str(text),
            Self::Order => f.write_str("another order"),
            Self::Notes { missing, extra, .. } => {
                write!(f, "annotations: only Prometheus' {missing:?}, only ours {extra:?}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(series: &[(&str, f64)]) -> Outcome {
        let series = series.iter().map(|(a, value)| (Labels::new([("a", *a)]).unwrap(), *value));
        let data = Data::Vector { t: 5, series: series.collect() };
        Outcome::Answered(Told { data, warnings: BTreeSet::new(), infos: BTreeSet::new() })
    }

    fn matrix(series: &[(&str, &[(i64, f64)])]) -> Outcome {
        let series = series.iter().map(|(a, points)| tributary_promql::Points {
            labels: Labels::new([("a", *a)]).unwrap(),
            ts: points.iter().map(|point| point.0).collect(),
            values: points.iter().map(|point| point.1).collect(),
        });
        let data = Data::Matrix(series.collect());
        Outcome::Answered(Told { data, warnings: BTreeSet::new(), infos: BTreeSet::new() })
    }

    #[track_caller]
    fn differ(peer: &Outcome, ours: &Outcome, order: Order, kind: &str) {
        match compare(peer, ours, order) {
            Verdict::Differ(difference) => assert_eq!(difference.kind(), kind, "{difference}"),
            same => panic!("{same:?}"),
        }
    }

    #[test]
    fn values_are_the_same_within_the_tolerance_and_nan_is_nan() {
        let one = vector(&[("x", 1.0), ("y", f64::NAN)]);
        let near = vector(&[("y", f64::NAN), ("x", 1.0 + 1e-10)]);
        assert_eq!(compare(&one, &one, Order::Any), Verdict::SameBits);
        assert_eq!(compare(&one, &near, Order::Any), Verdict::Close);
        differ(&one, &vector(&[("x", 1.0 + 1e-8), ("y", f64::NAN)]), Order::Any, "value");
        differ(&one, &vector(&[("x", 1.0), ("y", 0.0)]), Order::Any, "value");
        assert!(close(5e-324, 1e-323) && !close(1e-320, 2e-320) && !close(1e300, f64::INFINITY));
        assert!(close(f64::INFINITY, f64::INFINITY) && !close(f64::INFINITY, f64::NEG_INFINITY));
        assert!(!close(0.0, 1e-100) && close(0.0, -0.0));
    }

    #[test]
    fn series_that_only_one_side_has_are_told() {
        let (one, two) = (vector(&[("x", 1.0)]), vector(&[("x", 1.0), ("y", 2.0)]));
        differ(&one, &two, Order::Any, "series");
        differ(&two, &one, Order::Any, "series");
        let (one, two) = (matrix(&[("x", &[(1, 1.0), (2, 1.0)])]), matrix(&[("x", &[(1, 1.0)])]));
        differ(&one, &two, Order::Any, "series");
        differ(&two, &one, Order::Any, "series");
        differ(&one, &vector(&[]), Order::Any, "type");
    }

    #[test]
    fn an_order_counts_where_it_was_asked_for() {
        let one = vector(&[("x", 1.0), ("y", 1.0), ("z", 2.0)]);
        let ties = vector(&[("y", 1.0), ("x", 1.0), ("z", 2.0)]);
        let wrong = vector(&[("z", 2.0), ("y", 1.0), ("x", 1.0)]);
        assert_eq!(compare(&one, &wrong, Order::Any), Verdict::SameBits);
        assert_eq!(compare(&one, &ties, Order::Values), Verdict::SameBits);
        differ(&one, &wrong, Order::Values, "order");
        differ(&one, &ties, Order::Labels, "order");
    }

    #[test]
    fn errors_must_have_the_same_words() {
        let (no, never) = (Outcome::Failed("no".to_owned()), Outcome::Failed("never".to_owned()));
        assert_eq!(compare(&no, &no, Order::Any), Verdict::SameBits);
        differ(&no, &never, Order::Any, "error");
        differ(&no, &vector(&[]), Order::Any, "error");
        differ(&vector(&[]), &no, Order::Any, "error");
    }

    #[test]
    fn annotations_are_compared_as_sets_up_to_what_was_omitted() {
        let with = |texts: &[&str]| {
            let Outcome::Answered(mut told) = vector(&[]) else { unreachable!() };
            told.infos = texts.iter().map(|text| (*text).to_owned()).collect();
            Outcome::Answered(told)
        };
        assert_eq!(compare(&with(&["a", "b"]), &with(&["b", "a"]), Order::Any), Verdict::SameBits);
        differ(&with(&["a"]), &with(&[]), Order::Any, "annotations");
        differ(&with(&[]), &with(&["a"]), Order::Any, "annotations");
        let cut = with(&["a", "3 more info annotations omitted"]);
        assert_eq!(compare(&cut, &with(&["a", "b"]), Order::Any), Verdict::SameBits);
        differ(&cut, &with(&["b"]), Order::Any, "annotations");
    }
}
