//! The index selects what a walk over all labels would.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use common::{Files, any_model, labels};
use proptest::prelude::*;
use tributary_segment::{MatchOp, Matcher, PatternCache, TimeRange};

fn any_matcher() -> impl Strategy<Value = Matcher> {
    let name = prop::sample::select(vec!["__name__", "a", "b", "host", "Z", "é", "le", "missing"]);
    let op = prop::sample::select(vec![
        MatchOp::Equal,
        MatchOp::NotEqual,
        MatchOp::Regex,
        MatchOp::NotRegex,
    ]);
    let value = prop::sample::select(vec![
        "",
        "x",
        "xy",
        "1.0",
        "up",
        "http",
        "x|y",
        "x|",
        ".*",
        ".+",
        "x.*",
        ".*y",
        ".*_.*",
        "x?",
        "(?i)X",
        "^x$",
        "^$",
        "host_[12]",
        "host_.+",
        "up(_total)?",
        "[^x]",
        "ü\n",
        "ü.",
        "x|host.*",
        r"\d\.\d",
        "(x|y)+",
        "|",
        "μ",
        "u.*|h.*",
        ".{2}",
    ]);
    (name, op, value).prop_map(|(name, op, value)| Matcher::new(name, op, value).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_index_agrees_with_a_walk_over_all_series(
        model in any_model(),
        matchers in prop::collection::vec(any_matcher(), 0..4),
    ) {
        let files = Files::of_model(&model);
        let index = files.index().unwrap();
        let selected = index.select(&matchers, TimeRange::ALL);
        prop_assert!(selected.is_sorted());
        let expected: Vec<u32> = (0..index.len())
            .filter(|series| {
                let labels = index.labels(*series);
                matchers.iter().all(|m| m.matches(labels.get(m.name()).unwrap_or("")))
            })
            .collect();
        prop_assert_eq!(selected, expected, "{:?}", matchers);
    }

    #[test]
    fn the_index_knows_all_labels(model in any_model()) {
        let index = Files::of_model(&model).index().unwrap();
        let all: Vec<_> = model.keys().map(|pairs| labels(pairs)).collect();
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| a.series_cmp(b));
        prop_assert!((0..index.len()).map(|series| index.labels(series)).eq(sorted));
        let pairs = all.iter().flat_map(|labels| labels.without_metric());
        let mut names: Vec<&str> = pairs.map(|pair| pair.0).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(index.label_names().collect::<Vec<_>>(), names.clone());
        for name in names.into_iter().chain(["__name__", "missing"]) {
            let mut values: Vec<&str> = all.iter().filter_map(|l| l.get(name)).collect();
            values.sort_unstable();
            values.dedup();
            prop_assert_eq!(index.label_values(name), values);
        }
    }
}

#[test]
fn one_cache_serves_many_matchers() {
    let cache = PatternCache::new(4);
    let options = tributary_promql::Options::default();
    let parsed = tributary_promql::parse_selector(r#"{a=~"x.*y", b!~"x.*y"}"#, &options).unwrap();
    let [first, second] = [&parsed[0], &parsed[1]].map(|m| cache.matcher(m).unwrap());
    assert!(first.matches("xay") && !second.matches("xay"));
}
