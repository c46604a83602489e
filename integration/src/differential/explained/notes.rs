//! Annotations that say the same in other words.

use std::collections::BTreeSet;

use crate::differential::compare::Difference;

/// Both sides say the same, apart from details that only one version tells.
pub(super) fn same_in_short(difference: &Difference) -> bool {
    same(difference, |text| Some(short(text)).filter(|text| !is_new(text)))
}

/// Both sides say the same in short, at other places.
pub(super) fn same_but_for_places(difference: &Difference) -> bool {
    same(difference, |text| Some(split(&short(text)).0.to_owned()).filter(|text| !is_new(text)))
}

/// All that differs is about parameters of quantiles.
pub(super) fn of_quantiles(difference: &Difference) -> bool {
    let Difference::Notes { missing, extra, .. } = difference else { return false };
    let start = "PromQL warning: quantile value should be between 0 and 1";
    missing.iter().chain(extra).all(|text| text.starts_with(start))
}

fn same(difference: &Difference, shorten: impl Fn(&str) -> Option<String>) -> bool {
    let Difference::Notes { missing, extra, omitted } = difference else { return false };
    let short = |texts: &[String]| -> BTreeSet<String> {
        texts.iter().filter_map(|text| shorten(text)).collect()
    };
    let (missing, extra) = (short(missing), short(extra));
    missing == extra || (*omitted && missing.is_subset(&extra))
}

/// An annotation without the name of a metric and without details.
fn short(text: &str) -> String {
    let (mut words, place) = split(text);
    for detail in [", from buckets ", " for metric name \""] {
        words = words.split(detail).next().unwrap_or(words);
    }
    format!("{words}{place}")
}

/// The words of an annotation, and its place in the query.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.rfind(" (").unwrap_or(text.len()))
}

/// An annotation that 3.5 does not have.
fn is_new(note: &str) -> bool {
    note.starts_with("PromQL warning: sort is ineffective for range queries")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "PromQL info: fixed for metric name \"a b\" (1:23)";
    const NEW: &str = "PromQL info: fixed, from buckets 1 to 2, with a max diff of 1, over 2 samples \
                       from x to y (1:23)";

    fn notes(missing: &[&str], extra: &[&str], omitted: bool) -> Difference {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Difference::Notes { missing: texts(missing), extra: texts(extra), omitted }
    }

    #[test]
    fn an_annotation_is_the_same_with_and_without_its_details() {
        assert_eq!(short(OLD), "PromQL info: fixed (1:23)");
        assert_eq!(short(NEW), "PromQL info: fixed (1:23)");
        assert!(same_in_short(&notes(&[OLD], &[NEW], false)));
        assert!(!same_in_short(&notes(&[OLD], &["PromQL info: broken (1:23)"], false)));
        assert!(!same_in_short(&notes(&[OLD], &[], false)));
        assert!(!same_in_short(&notes(&[], &[NEW], false)));
        let sort = "PromQL warning: sort is ineffective for range queries since (1:1)";
        assert!(same_in_short(&notes(&[], &[sort], false)));
    }

    #[test]
    fn places_may_differ_only_where_that_is_asked_for() {
        let moved = "PromQL info: fixed (1:1)";
        assert!(!same_in_short(&notes(&[OLD], &[moved], false)));
        assert!(same_but_for_places(&notes(&[OLD], &[moved], false)));
        assert!(!same_but_for_places(&notes(&[OLD], &["PromQL info: broken (1:1)"], false)));
    }

    #[test]
    fn what_was_omitted_may_be_ours_alone() {
        assert!(same_in_short(&notes(&[OLD], &[NEW, "PromQL info: more (1:1)"], true)));
        assert!(!same_in_short(&notes(&[OLD], &[NEW, "PromQL info: more (1:1)"], false)));
        assert!(!same_in_short(&notes(&[OLD], &["PromQL info: more (1:1)"], true)));
    }
}
