//! The function `info`.

use super::*;
use crate::expr::Expr;
use crate::matcher::Matcher;
use crate::parse::parse;

/// The matchers of a second argument.
fn matchers(selector: &str) -> Vec<Matcher> {
    let call = parse(&format!("info(m, {selector})"), &Options::with_all_features()).unwrap();
    let Expr::Call(call) = call else { panic!("{call:?}") };
    match &call.args[1] {
        Expr::Vector(selector) => selector.matchers.clone(),
        other => panic!("{other:?}"),
    }
}

fn selected_by(selector: Option<&str>) -> Vec<String> {
    let selector = selector.map(matchers);
    let mut texts: Vec<String> =
        info_matchers(selector.as_deref()).iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

/// Adds info series, whose values are the times of their samples in seconds.
fn try_info(
    base: &[&str],
    infos: &[&str],
    selector: Option<&str>,
) -> Result<Vec<String>, EvalError> {
    let base = frame(base);
    let mut ctx = minutes(base.rows[0].values.len());
    let selector = selector.map(matchers);
    info(base, &frame(infos), selector.as_deref(), &mut ctx).map(shown)
}

fn enriched(base: &[&str], infos: &[&str], selector: Option<&str>) -> Vec<String> {
    try_info(base, infos, selector).unwrap()
}

const METRIC: &str = r#"metric{instance="a", job="1", label="value"} 0 1 2"#;
const TARGET: &str = r#"target_info{another="x", data="info", instance="a", job="1"} 0 60 120"#;

#[test]
fn info_series_are_target_info_unless_others_are_named() {
    assert_eq!(selected_by(None), [r#"__name__="target_info""#]);
    assert_eq!(selected_by(Some(r#"{a=~".+"}"#)), [r#"__name__="target_info""#, r#"a=~".+""#]);
    assert_eq!(
        selected_by(Some(r#"{__name__=~"b.+", __name__!="c", a="1"}"#)),
        [r#"__name__!="c""#, r#"__name__=~"b.+""#, r#"a="1""#]
    );
    assert_eq!(
        selected_by(Some(r#"{__name__!="c"}"#)),
        [r#"__name__!="c""#, r#"__name__=~".+_info""#]
    );
}

#[test]
fn labels_of_the_target_are_added_all_or_those_asked_for() {
    let all = [r#"metric{another="x", data="info", instance="a", job="1", label="value"} 0 1 2"#];
    assert_eq!(enriched(&[METRIC], &[TARGET], None), all);
    let one = [r#"metric{data="info", instance="a", job="1", label="value"} 0 1 2"#];
    assert_eq!(enriched(&[METRIC], &[TARGET], Some(r#"{data=~".+"}"#)), one);
    let overlapping = r#"metric{data="base", instance="a", job="1"} 0 1 2"#;
    let result = enriched(&[overlapping], &[TARGET], Some(r#"{data="info"}"#));
    assert_eq!(result, [overlapping], "labels that are there stay");
}

#[test]
fn series_without_info_stay_unless_a_label_is_demanded() {
    let other = r#"metric{instance="a", job="2"} 0 1 2"#;
    assert_eq!(enriched(&[other], &[TARGET], None), [other]);
    assert_eq!(enriched(&[other], &[], Some(r#"{data=~".*"}"#)), [other]);
    assert!(enriched(&[other], &[], Some(r#"{data=~".+"}"#)).is_empty());
    assert_eq!(enriched(&[other], &[], Some(r#"{__name__="non_existent"}"#)), [other]);
    let without_target = "metric 1 2 3";
    assert_eq!(enriched(&[without_target], &[TARGET], None), [without_target]);
}

#[test]
fn info_series_themselves_stay_as_they_are() {
    let build = r#"build_info{build="b", instance="a", job="1"} 1 1 1"#;
    let infos = [build, TARGET];
    assert_eq!(enriched(&[build], &infos, Some(r#"{__name__=~".+_info"}"#)), [build]);
    let selector = Some(r#"{__name__=~".+_info", __name__!~"build.+"}"#);
    let result = enriched(&[build], &[TARGET], selector);
    assert_eq!(
        result,
        [r#"build_info{another="x", build="b", data="info", instance="a", job="1"} 1 1 1"#],
        "what is excluded is no info series"
    );
}

#[test]
fn the_newest_sample_tells_the_labels_at_each_step() {
    let infos = [
        r#"target_info{data="old", instance="a", job="1"} 0 60 60"#,
        r#"target_info{data="new", instance="a", job="1"} _ _ 120"#,
    ];
    assert_eq!(
        enriched(&[METRIC], &infos, None),
        [
            r#"metric{data="new", instance="a", job="1", label="value"} _ _ 2"#,
            r#"metric{data="old", instance="a", job="1", label="value"} 0 1 _"#,
        ]
    );
    let ended = [r#"target_info{data="old", instance="a", job="1"} 0 60 _"#];
    assert_eq!(
        enriched(&[METRIC], &ended, None),
        [
            r#"metric{data="old", instance="a", job="1", label="value"} 0 1 _"#,
            r#"metric{instance="a", job="1", label="value"} _ _ 2"#,
        ]
    );
    let demanded = enriched(&[METRIC], &ended, Some(r#"{data=~".+"}"#));
    assert_eq!(demanded, [r#"metric{data="old", instance="a", job="1", label="value"} 0 1 _"#]);
}

#[test]
fn two_samples_of_one_time_for_one_target_are_refused() {
    let infos = [
        r#"target_info{data="x", instance="a", job="1"} 0 60.5 60.5"#,
        r#"target_info{data="y", instance="a", job="1"} _ 60.5 _"#,
    ];
    let error = try_info(&[METRIC], &infos, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"found duplicate series for info metric: existing {__name__="target_info", data="x", instance="a", job="1"} @ 60500, new {__name__="target_info", data="y", instance="a", job="1"} @ 60500"#
    );
    let gap = r#"metric{instance="a", job="1"} 0 _ 2"#;
    assert!(try_info(&[gap], &infos, None).is_ok(), "nobody asks at that step");
    let elsewhere = r#"metric{instance="b", job="1"} 0 1 2"#;
    assert!(try_info(&[elsewhere], &infos, None).is_ok(), "nobody asks of that target");
}

#[test]
fn info_metrics_that_contradict_each_other_are_refused() {
    let infos = [
        r#"build_info{instance="a", job="1", x="from_build"} 0 60 120"#,
        r#"target_info{instance="a", job="1", x="from_target"} 0 60 120"#,
    ];
    let selector = Some(r#"{__name__=~".+_info"}"#);
    let error = try_info(&[METRIC], &infos, selector).unwrap_err();
    assert_eq!(error.to_string(), "conflicting label: x");
    let has_it = r#"metric{instance="a", job="1", x="own"} 0 1 2"#;
    assert_eq!(enriched(&[has_it], &infos, selector), [has_it]);
}

#[test]
fn one_identifying_label_is_enough_where_the_other_is_missing_on_both_sides() {
    let result = enriched(
        &[r#"metric{instance="a"} 1 2 3"#],
        &[r#"custom_info{enriched="yes", instance="a"} 0 60 120"#],
        Some(r#"{__name__="custom_info"}"#),
    );
    assert_eq!(result, [r#"metric{enriched="yes", instance="a"} 1 2 3"#]);
}

#[test]
fn a_name_that_is_to_go_still_goes() {
    let mut base = frame(&[METRIC]);
    base.rows[0].drop_name = true;
    let result = info(base, &frame(&[TARGET]), None, &mut minutes(3)).unwrap();
    let expected = r#"{another="x", data="info", instance="a", job="1", label="value"} 0 1 2"#;
    assert_eq!(shown(result), [expected]);
}

#[test]
fn what_a_step_is_worth_depends_on_that_step_alone() {
    let without_job = r#"metric{instance="a"} 1 2 3"#;
    let with_job = r#"metric{instance="b", job="1"} _ 5 _"#;
    let infos = [r#"target_info{data="x", instance="a"} 0 60 120"#];
    // As soon as any series has a job, only info series of that job are looked for.
    assert_eq!(
        enriched(&[without_job, with_job], &infos, None),
        [
            r#"metric{data="x", instance="a"} 1 _ 3"#,
            r#"metric{instance="a"} _ 2 _"#,
            r#"metric{instance="b", job="1"} _ 5 _"#,
        ]
    );
}
