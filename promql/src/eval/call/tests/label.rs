//! Functions of labels.

use super::*;

fn replace(data: &[&str], strings: [&str; 4], ctx: &mut Context) -> Vec<String> {
    let args = std::iter::once(series(data)).chain(strings.map(text));
    vector_of("label_replace", args.collect(), ctx)
}

#[test]
fn a_label_is_replaced_where_the_whole_value_matches() {
    let data = [r#"m{src="source-value-10"} 0"#, r#"m{src="source-value-20", dst="old"} 1"#];
    let result = replace(&data, ["dst", "value-$1", "src", "source-value-(.*)"], &mut instant());
    assert_eq!(
        result,
        [
            r#"m{dst="value-10", src="source-value-10"} 0"#,
            r#"m{dst="value-20", src="source-value-20"} 1"#
        ]
    );
    let result = replace(&data, ["dst", "value-$1", "src", "value-(.*)"], &mut instant());
    assert_eq!(result[1], r#"m{dst="old", src="source-value-20"} 1"#, "no match");
    let result = replace(&data, ["dst", "new", "nonexistent", ""], &mut instant());
    assert_eq!(result[0], r#"m{dst="new", src="source-value-10"} 0"#, "an empty value matches");
    let result = replace(&data, ["dst", "", "dst", ".*"], &mut instant());
    assert_eq!(result[1], r#"m{src="source-value-20"} 1"#, "an empty label is none");
}

#[test]
fn groups_match_as_greedily_as_they_are_written() {
    let value = |pattern: &str, replacement: &str| {
        let result =
            replace(&[r#"m{a="xx-yy-zz"} 1"#], ["b", replacement, "a", pattern], &mut instant());
        result[0].clone()
    };
    let with = |b: &str| format!(r#"m{{a="xx-yy-zz", b="{b}"}} 1"#);
    assert_eq!(value("(.*)-(.*)", "$1"), with("xx-yy"));
    assert_eq!(value("(.*?)-(.*)", "$1"), with("xx"));
    assert_eq!(value("(?U)(.*)-(.*)", "$1"), with("xx"));
    assert_eq!(value("(?U)(.*?)-(?-U:(.*))", "$1"), with("xx-yy"));
    assert_eq!(value("(x{1,2}?)(.*)", "$2"), with("x-yy-zz"));
    assert_eq!(
        value("(?P<first>[a-x]+)-(?:yy)-(?<last>.+)", "${last}:$first:$2"),
        with("zz:xx:zz")
    );
    assert_eq!(value("(?P<n>q)?(?P<n>.*)", "$n"), with("xx-yy-zz"), "the one that took part");
    assert_eq!(value("(?i)XX(.)YY.ZZ", "$0$1$$"), with("xx-yy-zz-$"));
}

#[test]
fn a_name_that_is_set_has_a_meaning_again() {
    let rated = || {
        let mut rated = frame(&[r#"m_total{env="1"} 2"#]);
        rated.rows[0].drop_name = true;
        Value::Vector(rated)
    };
    let strings = |dst: &str| [dst, "rate_$1", "__name__", "(.+)"].map(text);
    let replaced = |dst: &str| {
        let args = std::iter::once(rated()).chain(strings(dst)).collect();
        vector_of("label_replace", args, &mut instant())
    };
    assert_eq!(replaced("__name__"), [r#"rate_m_total{env="1"} 2"#]);
    assert_eq!(replaced("my_name"), [r#"{env="1", my_name="rate_m_total"} 2"#]);
    let args = std::iter::once(rated()).chain(["__name__", "_", "__name__", "env"].map(text));
    assert_eq!(
        vector_of("label_join", args.collect(), &mut instant()),
        [r#"m_total_1{env="1"} 2"#]
    );
}

#[test]
fn bad_patterns_and_names_are_refused_in_prometheus_words() {
    let error = |strings: [Value; 4]| {
        let args = std::iter::once(series(&["m 1"])).chain(strings);
        error_of("label_replace", args.collect(), &mut instant())
    };
    assert_eq!(
        error(["dst", "value-$1", "src", "(.*"].map(text)),
        "invalid regular expression in label_replace(): (.*"
    );
    assert_eq!(
        error(["", "", "src", "(.*)"].map(text)),
        "invalid destination label name in label_replace(): "
    );
    let not_utf8 = [Value::String(vec![0xff]), text(""), text("src"), text("(.*)")];
    assert_eq!(error(not_utf8), "invalid destination label name in label_replace(): \u{fffd}");
    let error = |strings: &[&str]| {
        let args = std::iter::once(series(&["m 1"])).chain(strings.iter().map(|one| text(one)));
        error_of("label_join", args.collect(), &mut instant())
    };
    assert_eq!(error(&["dst", "-", "a", ""]), "invalid source label name in label_join(): ");
    assert_eq!(error(&["", "-", "a"]), "invalid destination label name in label_join(): ");
}

#[test]
fn series_that_become_equal_are_one_unless_they_meet() {
    let halves = [r#"s{idx="1", label="a"} 2 _"#, r#"s{idx="2", label="a"} _ 4"#];
    let result = replace(&halves, ["idx", "replaced", "idx", ".*"], &mut minutes(2));
    assert_eq!(result, [r#"s{idx="replaced", label="a"} 2 4"#]);
    let both = series(&[r#"s{idx="1", label="a"} 2"#, r#"s{idx="2", label="a"} 4"#]);
    for ctx in [instant(), minutes(1)] {
        let mut ctx = ctx;
        let args = std::iter::once(both.clone()).chain(["idx", ",", "label", "label"].map(text));
        let error = error_of("label_join", args.collect(), &mut ctx);
        assert_eq!(error, "vector cannot contain metrics with the same labelset");
    }
}

#[test]
fn labels_are_joined_and_the_order_of_an_instant_query_is_kept() {
    let args = |strings: &[&str]| -> Vec<Value> {
        let data = series(&[r#"m{x="foo", y="bar"} 0"#, r#"m{x="fizz"} 1"#]);
        std::iter::once(data).chain(strings.iter().map(|one| text(one))).collect()
    };
    let result = vector_of("label_join", args(&["dst", ", ", "x", "y"]), &mut instant());
    assert_eq!(
        result,
        [r#"m{dst="foo, bar", x="foo", y="bar"} 0"#, r#"m{dst="fizz, ", x="fizz"} 1"#]
    );
    let result = vector_of("label_join", args(&["x", ", "]), &mut instant());
    assert_eq!(result, [r#"m{y="bar"} 0"#, "m 1"], "of no labels there is nothing");
}
