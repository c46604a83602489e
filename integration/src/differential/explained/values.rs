//! Answers that are the same in some respect.

use std::collections::{BTreeMap, BTreeSet};

use tributary_promql::{Data, Labels};

use crate::differential::compare::close;
use crate::differential::outcome::Outcome;

/// The same values for the same series, apart from the names of metrics.
pub(super) fn same_without_names(peer: &Outcome, ours: &Outcome) -> bool {
    let unnamed = |outcome: &Outcome| {
        let mut all = instants(outcome);
        for series in all.values_mut() {
            for (labels, _) in series.iter_mut() {
                *labels = labels.without_name();
            }
            series.sort_by(|a, b| a.0.cmp(&b.0));
        }
        all
    };
    let (peer, ours) = (unnamed(peer), unnamed(ours));
    peer.len() == ours.len()
        && peer.iter().zip(&ours).all(|((t, peer), (t2, ours))| {
            let same = |(a, b): (&(Labels, f64), &(Labels, f64))| a.0 == b.0 && close(a.1, b.1);
            t == t2 && peer.len() == ours.len() && peer.iter().zip(ours).all(same)
        })
}

/// The same values at every time, whichever series have them.
pub(super) fn same_apart_from_labels(peer: &Outcome, ours: &Outcome) -> bool {
    let (peer, ours) = (instants(peer), instants(ours));
    let sorted = |series: &[(Labels, f64)]| {
        let mut values: Vec<f64> = series.iter().map(|one| one.1).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    peer.len() == ours.len()
        && peer.iter().zip(&ours).all(|((t, peer), (t2, ours))| {
            let (peer, ours) = (sorted(peer), sorted(ours));
            t == t2
                && peer.len() == ours.len()
                && peer.iter().zip(&ours).all(|(peer, ours)| close(*peer, *ours))
        })
}

/// As many series at every time.
pub(super) fn same_count(peer: &Outcome, ours: &Outcome) -> bool {
    let counts = |outcome: &Outcome| -> Vec<(i64, usize)> {
        instants(outcome).iter().map(|(t, series)| (*t, series.len())).collect()
    };
    counts(peer) == counts(ours)
}

/// At every time, the numbers that a label spells are the same within the tolerance.
pub(super) fn close_labels(peer: &Outcome, ours: &Outcome, label: &str) -> bool {
    let numbers = |outcome: &Outcome| -> Option<Vec<(i64, Vec<f64>)>> {
        let spelt = |(t, series): (&i64, &Vec<(Labels, f64)>)| {
            let numbers = series.iter().map(|(labels, _)| labels.value(label).parse::<f64>().ok());
            let mut numbers = numbers.collect::<Option<Vec<f64>>>()?;
            numbers.sort_by(f64::total_cmp);
            Some((*t, numbers))
        };
        instants(outcome).iter().map(spelt).collect()
    };
    match (numbers(peer), numbers(ours)) {
        (Some(peer), Some(ours)) => {
            let close = |(one, other): (&f64, &f64)| close(*one, *other);
            peer.len() == ours.len()
                && peer.iter().zip(&ours).all(|((t, peer), (t2, ours))| {
                    t == t2 && peer.len() == ours.len() && peer.iter().zip(ours).all(close)
                })
        }
        _ => false,
    }
}

/// Series of an answer have values of a label that Prometheus' natural order puts either way: none
/// beside others, or numbers that differ in leading zeros.
pub(super) fn ambiguous(outcome: &Outcome, label: &str) -> bool {
    let all = instants(outcome);
    let values: BTreeSet<&str> =
        all.values().flatten().map(|(labels, _)| labels.value(label)).collect();
    let bare = |value: &str| {
        let mut bare = String::new();
        for char in value.chars() {
            if bare.ends_with('0')
                && char.is_ascii_digit()
                && !bare[..bare.len() - 1].ends_with(|c: char| c.is_ascii_digit())
            {
                bare.pop();
            }
            bare.push(char);
        }
        bare
    };
    let distinct: BTreeSet<String> = values.iter().map(|value| bare(value)).collect();
    distinct.len() < values.len() || (values.len() > 1 && values.contains(""))
}

/// The series at every time.
fn instants(outcome: &Outcome) -> BTreeMap<i64, Vec<(Labels, f64)>> {
    let mut all: BTreeMap<i64, Vec<(Labels, f64)>> = BTreeMap::new();
    if let Outcome::Answered(told) = outcome {
        match &told.data {
            Data::Vector { t, series } if !series.is_empty() => {
                all.insert(*t, series.clone());
            }
            Data::Matrix(series) => {
                for one in series {
                    for (t, value) in one.ts.iter().zip(&one.values) {
                        all.entry(*t).or_default().push((one.labels.clone(), *value));
                    }
                }
            }
            Data::Vector { .. } | Data::Scalar { .. } | Data::String { .. } => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::outcome::Told;

    fn vector(series: &[(&str, f64)]) -> Outcome {
        let labels = |name: &str| Labels::new([("__name__", name)]).unwrap();
        let series = series.iter().map(|(name, value)| (labels(name), *value)).collect();
        let data = Data::Vector { t: 1, series };
        Outcome::Answered(Told { data, warnings: BTreeSet::new(), infos: BTreeSet::new() })
    }

    #[test]
    fn answers_are_the_same_in_what_is_asked_for_only() {
        let one = vector(&[("a", 1.0), ("b", 2.0)]);
        let swapped = vector(&[("c", 2.0), ("a", 1.0)]);
        let other = vector(&[("a", 1.0), ("b", 3.0)]);
        assert!(same_apart_from_labels(&one, &swapped) && !same_apart_from_labels(&one, &other));
        assert!(same_count(&one, &other) && !same_count(&one, &vector(&[("a", 1.0)])));
        assert!(same_without_names(&vector(&[("a", 1.0)]), &vector(&[("b", 1.0)])));
        assert!(!same_without_names(&vector(&[("a", 1.0)]), &vector(&[("b", 2.0)])));
        assert!(!ambiguous(&vector(&[("1", 0.0), ("10", 0.0), ("0.1", 0.0)]), "__name__"));
        assert!(ambiguous(&vector(&[("0.5", 0.0), ("0.05", 0.0)]), "__name__"));
        assert!(ambiguous(&vector(&[("", 0.0), ("a", 0.0)]), "__name__"));
        let spelt = |number: &str| vector(&[(number, 1.0)]);
        assert!(close_labels(&spelt("0.1"), &spelt("0.10000000000000001"), "__name__"));
        assert!(!close_labels(&spelt("0.1"), &spelt("0.2"), "__name__"));
        assert!(!close_labels(&spelt("a"), &spelt("a"), "__name__"));
    }
}
