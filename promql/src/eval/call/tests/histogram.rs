//! Functions of classic histograms.

use super::*;

/// The histogram of Prometheus' own example of counts that fall.
const FALLING: [&str; 6] = [
    r#"h_bucket{le="0.1"} 20 2 _"#,
    r#"h_bucket{le="1"} 10 2 _"#,
    r#"h_bucket{le="10"} 50 5 _"#,
    r#"h_bucket{le="100"} 40 4 _"#,
    r#"h_bucket{le="1000"} 90 9 _"#,
    r#"h_bucket{le="+Inf"} 80 10 _"#,
];

const FIXED: &str = "PromQL info: input to histogram_quantile needed to be fixed for monotonicity \
                     (see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)";

fn infos(ctx: &Context, query: &str) -> Vec<String> {
    ctx.annotations.texts(Level::Info, query)
}

#[test]
fn series_are_buckets_of_the_histogram_whose_other_labels_they_share() {
    let data = || {
        series(&[
            r#"h{le="+Inf", start="positive"} 120"#,
            r#"h{le="0.1", start="positive"} 50"#,
            r#"h{le=".2", start="positive"} 70"#,
            r#"h{le="1e0", start="positive"} 110"#,
            r#"h{le="-.2", start="negative"} 10"#,
            r#"h{le="-0.1", start="negative"} 20"#,
            r#"h{le="0.3", start="negative"} 20"#,
            r#"h{le="+Inf", start="negative"} 30"#,
        ])
    };
    let at = |q: f64| vector_of("histogram_quantile", vec![number(q), data()], &mut instant());
    assert_eq!(at(0.0), [r#"{start="negative"} -0.2"#, r#"{start="positive"} 0"#]);
    assert_eq!(at(1.0), [r#"{start="negative"} 0.3"#, r#"{start="positive"} 1"#]);
    assert_eq!(at(0.25)[1], r#"{start="positive"} 0.06"#);
    let shares = vec![number(0.0), number(0.2), data()];
    let shares = vector_of("histogram_fraction", shares, &mut instant());
    assert_eq!(shares[1], format!(r#"{{start="positive"}} {}"#, 70.0 / 120.0));
}

#[test]
fn buckets_come_and_go_from_step_to_step() {
    let data = series(&[
        r#"h{le="1"} 1 1 _ 0"#,
        r#"h{le="2"} 1 _ 2 0"#,
        r#"h{le="2.0"} 1 _ _ 0"#,
        r#"h{le="+Inf"} 4 _ 2 0"#,
    ]);
    let result =
        vector_of("histogram_quantile", vec![Value::Scalar(vec![0.5; 4]), data], &mut minutes(4));
    assert_eq!(result, ["{} 2 NaN 1 NaN"]);
}

#[test]
fn buckets_that_had_to_be_fixed_are_told_with_details() {
    let quantile = vec![Value::Scalar(vec![0.01, 2.0, 0.5]), series(&FALLING)];
    let mut ctx = minutes(3);
    let result = vector_of("histogram_quantile", quantile, &mut ctx);
    assert_eq!(result, ["{} 0.0045 inf _"]);
    let details = ", from buckets 1 to +Inf, with a max diff of 10, over 1 samples from \
                   1970-01-01T00:00:00Z to 1970-01-01T00:00:00Z (1:12)";
    let name = r#" for metric name "h_bucket""#;
    assert_eq!(infos(&ctx, "histogram_quantile(_)"), [format!("{FIXED}{name}{details}")]);
    assert_eq!(
        ctx.annotations.texts(Level::Warning, "histogram_quantile(_)"),
        ["PromQL warning: quantile value should be between 0 and 1, got 2 (1:2)"]
    );
    let quantile = vec![Value::Scalar(vec![0.01, 0.5, 0.5]), series(&FALLING)];
    let mut ctx = without_delay(minutes(3));
    vector_of("histogram_quantile", quantile, &mut ctx);
    assert_eq!(infos(&ctx, ""), [FIXED]);
    let told = infos(&ctx, "histogram_quantile(_)").remove(0);
    let details =
        "max diff of 10, over 2 samples from 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z";
    assert!(told.contains(details), "{told}");
}

#[test]
fn each_quantile_is_a_label_of_its_own_series() {
    let args = vec![
        series(&FALLING),
        text("q"),
        Value::Scalar(vec![0.01; 3]),
        Value::Scalar(vec![0.5, 0.99, 0.5]),
    ];
    let mut ctx = minutes(3);
    let result = vector_of("histogram_quantiles", args, &mut ctx);
    assert_eq!(
        result,
        [
            r#"{q="0.01"} 0.0045 0.005000000000000001 _"#,
            r#"{q="0.5"} 8.5 _ _"#,
            r#"{q="0.99"} _ 1000 _"#
        ]
    );
    let told = infos(&ctx, "histogram_quantiles(_)");
    assert!(told[0].contains("over 2 samples") && told[0].ends_with("(1:2)"), "{told:?}");
}

#[test]
fn quantiles_that_do_not_exist_are_warned_of_even_without_data() {
    for (q, got, value) in [(-0.1, "-0.1", "-inf"), (1.01, "1.01", "inf"), (f64::NAN, "NaN", "NaN")]
    {
        let mut ctx = instant();
        let data = || series(&[r#"h{le="1"} 1"#, r#"h{le="+Inf"} 1"#]);
        let result = vector_of("histogram_quantile", vec![number(q), data()], &mut ctx);
        assert_eq!(result, [format!("{{}} {value}")]);
        let warning =
            format!("PromQL warning: quantile value should be between 0 and 1, got {got}");
        assert_eq!(warnings(&ctx), [warning.as_str()]);
        let mut ctx = instant();
        let args = vec![series(&[]), text("q"), number(q)];
        assert!(vector_of("histogram_quantiles", args, &mut ctx).is_empty());
        let placed = ctx.annotations.texts(Level::Warning, "histogram_quantiles(x, \"q\", 2)");
        assert_eq!(placed, [format!("{warning} (1:22)")]);
        let args = vec![data(), text("q"), number(q)];
        let result = vector_of("histogram_quantiles", args, &mut instant());
        assert_eq!(result, [format!(r#"{{q="{got}"}} {value}"#)]);
    }
}

#[test]
fn series_without_a_bound_are_warned_of_and_left_out() {
    let data = || series(&[r#"s{ale="0.1"} 2"#, r#"s{le="Hello World"} 2"#, r#"s{le="1"} _"#]);
    let warning = |value: &str, of: &str| {
        format!(
            "PromQL warning: bucket label \"le\" is missing or has a malformed value of \"{value}\"{of}"
        )
    };
    let name = r#" for metric name "s""#;
    for args in [vec![number(0.0), number(1.0), data()], vec![number(0.8), data()]] {
        let function = if args.len() == 3 { "histogram_fraction" } else { "histogram_quantile" };
        let mut ctx = instant();
        assert!(vector_of(function, args.clone(), &mut ctx).is_empty());
        assert_eq!(warnings(&ctx), [warning("", name), warning("Hello World", name)]);
        let mut ctx = without_delay(instant());
        assert!(vector_of(function, args, &mut ctx).is_empty());
        assert_eq!(warnings(&ctx), [warning("", ""), warning("Hello World", "")]);
    }
}

#[test]
fn histograms_of_two_metrics_cannot_lose_their_names_at_once() {
    let data = || {
        vec![
            number(0.5),
            series(&[r#"a{le="1"} 1"#, r#"a{le="+Inf"} 1"#, r#"b{le="1"} 1"#, r#"b{le="+Inf"} 1"#]),
        ]
    };
    let error = error_of("histogram_quantile", data(), &mut without_delay(instant()));
    assert_eq!(error, "vector cannot contain metrics with the same labelset");
    assert_eq!(vector_of("histogram_quantile", data(), &mut instant()).len(), 2);
}

#[test]
fn floats_have_no_moments() {
    for name in ["avg", "count", "sum", "stddev", "stdvar"] {
        let name = format!("histogram_{name}");
        assert!(vector_of(&name, vec![series(&["m 1"])], &mut instant()).is_empty());
    }
}
