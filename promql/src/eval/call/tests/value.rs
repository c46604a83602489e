//! Functions of values: arithmetic, dates, times, order.

use super::*;
use crate::functions::functions;
use crate::value_type::ValueType;

#[test]
fn every_function_without_a_window_has_an_implementation() {
    let planned = ["absent", "end", "info", "range", "start", "step"];
    for function in functions() {
        let has_window = function.args.contains(&ValueType::Matrix);
        if has_window || planned.contains(&function.name) {
            continue;
        }
        let argument = |of: &ValueType| match of {
            ValueType::Scalar => number(0.5),
            ValueType::String => text("x"),
            ValueType::Vector | ValueType::Matrix => series(&["m 1"]),
        };
        let args = function.args.iter().map(argument).collect();
        let result = try_call(function.name, args, &mut instant());
        assert!(result.is_ok(), "{}: {result:?}", function.name);
    }
}

#[test]
fn functions_of_one_value_keep_gaps_and_lose_names() {
    let data = || vec![series(&[r#"m{a="1"} -1.5 _ 2.5 NaN"#])];
    for (name, values) in [
        ("abs", "1.5 _ 2.5 NaN"),
        ("ceil", "-1 _ 3 NaN"),
        ("floor", "-2 _ 2 NaN"),
        ("round", "-1 _ 3 NaN"),
        ("sgn", "-1 _ 1 NaN"),
        ("sqrt", "NaN _ 1.5811388300841898 NaN"),
    ] {
        let result = vector_of(name, data(), &mut minutes(4));
        assert_eq!(result, [format!(r#"{{a="1"}} {values}"#)], "{name}");
    }
}

#[test]
fn known_values_of_transcendental_functions() {
    for (name, argument, expected) in [
        ("cos", 10.0, -0.839_071_529_076_452_4),
        ("sin", 10.0, -0.544_021_110_889_369_8),
        ("asin", -0.1, -0.100_167_421_161_559_8),
        ("atan", 20.0, 1.520_837_931_072_953_8),
        ("sinh", 10.0, 11_013.232_874_703_393),
        ("cosh", 20.0, 242_582_597.704_895_14),
        ("acosh", 10.0, 2.993_222_846_126_381),
        ("rad", 10.0, 0.174_532_925_199_432_95),
        ("deg", 10.0, 572.957_795_130_823_2),
        ("exp", 10.0, 22_026.465_794_806_718),
        ("ln", 10.0, std::f64::consts::LN_10),
        ("log2", 8.0, 3.0),
        ("log10", 1000.0, 3.0),
        ("ln", 0.0, f64::NEG_INFINITY),
    ] {
        let args = vec![Value::Vector(vector(vec![argument]))];
        let Ok(Value::Vector(result)) = try_call(name, args, &mut instant()) else { panic!() };
        let value = result.rows[0].values[0];
        let near = value == expected || (value / expected - 1.0).abs() < 1e-14;
        assert!(near, "{name}({argument}) = {value}, not {expected}");
    }
    assert_eq!(scalar_of("pi", vec![], &mut minutes(2)), [std::f64::consts::PI; 2]);
}

#[test]
fn names_that_go_at_once_can_make_series_equal() {
    let halves = || vec![series(&["a 1 _", "b _ -2"])];
    assert_eq!(vector_of("abs", halves(), &mut without_delay(minutes(2))), ["{} 1 2"]);
    assert_eq!(vector_of("abs", halves(), &mut minutes(2)), ["{} 1 _", "{} _ 2"]);
    let both = || vec![series(&["b 1", "a 2"])];
    let error = error_of("abs", both(), &mut without_delay(instant()));
    assert_eq!(error, "vector cannot contain metrics with the same labelset");
    assert_eq!(vector_of("abs", both(), &mut instant()), ["{} 1", "{} 2"], "in their order");
}

#[test]
fn type_and_unit_go_with_the_name() {
    let typed = r#"m_total{__type__="counter", __unit__="s", a="1"} 3"#;
    for ctx in [instant(), without_delay(instant())] {
        let mut ctx = ctx;
        assert_eq!(vector_of("abs", vec![series(&[typed])], &mut ctx), [r#"{a="1"} 3"#]);
    }
}

#[test]
fn values_are_clamped_between_bounds_that_may_move() {
    let data = || series(&["m -50 0 100"]);
    let steps = |values: [f64; 3]| Value::Scalar(values.to_vec());
    let mut ctx = minutes(3);
    let args = vec![data(), steps([-25.0; 3]), steps([75.0; 3])];
    assert_eq!(vector_of("clamp", args, &mut ctx), ["{} -25 0 75"]);
    let args = vec![data(), steps([5.0, 5.0, f64::NAN]), steps([-5.0, 10.0, 10.0])];
    assert_eq!(vector_of("clamp", args, &mut ctx), ["{} _ 5 NaN"]);
    let args = vec![data(), steps([5.0; 3]), steps([-5.0; 3])];
    assert!(vector_of("clamp", args, &mut ctx).is_empty(), "bounds that exclude each other");
    assert_eq!(vector_of("clamp_min", vec![data(), steps([-20.0; 3])], &mut ctx), ["{} -20 0 100"]);
    assert_eq!(vector_of("clamp_max", vec![data(), steps([70.0; 3])], &mut ctx), ["{} -50 0 70"]);
}

#[test]
fn rounding_goes_to_the_nearest_multiple_and_up_in_the_middle() {
    let data = || series(&["m 2.5 -2.5 1234.5 0.0035"]);
    assert_eq!(vector_of("round", vec![data()], &mut minutes(4)), ["{} 3 -2 1235 0"]);
    let nearest = Value::Scalar(vec![5.0, 5.0, 100.0, 0.001]);
    let result = vector_of("round", vec![data(), nearest], &mut minutes(4));
    assert_eq!(result, ["{} 5 0 1200 0.004"]);
}

#[test]
fn dates_come_from_the_argument_or_from_the_step() {
    let at = |name: &str, seconds: f64| {
        let args = vec![Value::Vector(vector(vec![seconds]))];
        vector_of(name, args, &mut instant())[0].trim_start_matches("{} ").to_owned()
    };
    for (name, value) in [
        ("year", "2006"),
        ("month", "1"),
        ("day_of_month", "2"),
        ("day_of_year", "2"),
        ("day_of_week", "1"),
        ("days_in_month", "31"),
        ("hour", "22"),
        ("minute", "4"),
    ] {
        assert_eq!(at(name, 1_136_239_445.0), value, "{name}");
    }
    assert_eq!(at("year", 1_230_768_000.0), "2009");
    assert_eq!(at("day_of_year", 1_672_493_820.0), "365");
    assert_eq!(at("days_in_month", 1_454_284_800.0), "29");
    assert_eq!(at("days_in_month", 1_485_907_200.0), "28");
    assert_eq!(at("year", f64::NAN), "292277026596", "as Go wraps around");
    let mut ctx = minutes(3);
    ctx.steps = Steps { start: 3_599_999, step: 60_000, count: 3 };
    assert_eq!(vector_of("minute", vec![], &mut ctx), ["{} 59 0 1"]);
}

#[test]
fn times_are_those_of_the_steps_in_seconds() {
    let mut ctx = minutes(3);
    ctx.steps.start = 1;
    assert_eq!(scalar_of("time", vec![], &mut ctx), [0.001, 60.001, 120.001]);
    let result = vector_of("timestamp", vec![series(&["m 7 _ 8"])], &mut ctx);
    assert_eq!(result, ["{} 0.001 _ 120.001"]);
}

#[test]
fn a_vector_of_one_series_is_a_scalar_and_back() {
    let args = vec![series(&[r#"m{a="1"} 1 2 _"#, r#"m{a="2"} _ 3 _"#])];
    let values = scalar_of("scalar", args, &mut minutes(3));
    assert_eq!(values[0], 1.0);
    assert!(values[1].is_nan() && values[2].is_nan(), "several, and none");
    assert!(!is_absent(values[2]));
    let args = vec![Value::Scalar(vec![1.0, ABSENT])];
    assert_eq!(vector_of("vector", args, &mut minutes(2)), ["{} 1 NaN"], "a scalar has no gaps");
    let of_both = |name| scalar_of(name, vec![number(5.0), number(3.0)], &mut instant());
    assert_eq!((of_both("max_of"), of_both("min_of")), (vec![5.0], vec![3.0]));
}

#[test]
fn absent_is_one_where_nothing_is_there() {
    let labels = Labels::new([("job", "a")]).unwrap();
    let result = absent(labels.clone(), &frame(&["a 1 _ _", "b _ 2 _"]), &minutes(3));
    assert_eq!(shown(result), [r#"{job="a"} _ _ 1"#]);
    assert!(absent(labels, &frame(&["a 1"]), &instant()).rows.is_empty());
    assert_eq!(shown(absent(Labels::default(), &Frame::default(), &instant())), ["{} 1"]);
}

#[test]
fn series_are_sorted_by_value_with_nan_last() {
    let data = || {
        vec![series(&[
            r#"m{a="1"} 200"#,
            r#"m{a="2"} NaN"#,
            r#"m{a="3"} 100"#,
            r#"m{a="4"} 200"#,
            r#"m{a="5"} -Inf"#,
        ])]
    };
    let order = |name| -> String {
        let sorted = vector_of(name, data(), &mut instant());
        sorted.iter().map(|row| &row[5..6]).collect()
    };
    assert_eq!(order("sort"), "53142");
    assert_eq!(order("sort_desc"), "14352");
}

#[test]
fn series_are_sorted_by_labels_naturally() {
    let data = || {
        series(&[
            r#"m{i="10", z="a"} 1"#,
            r#"m{i="2", z="b"} 2"#,
            r#"m{i="2", z="a"} 3"#,
            r#"m{z="c"} 4"#,
        ])
    };
    let order = |name, labels: &[&str]| -> Vec<String> {
        let args = std::iter::once(data()).chain(labels.iter().map(|label| text(label)));
        let sorted = vector_of(name, args.collect(), &mut instant());
        sorted.iter().map(|row| row[row.len() - 1..].to_owned()).collect()
    };
    assert_eq!(order("sort_by_label", &["i"]), ["4", "3", "2", "1"]);
    assert_eq!(order("sort_by_label_desc", &["i"]), ["1", "2", "3", "4"]);
    assert_eq!(order("sort_by_label", &["z", "i"]), ["3", "1", "2", "4"]);
    assert_eq!(order("sort_by_label", &["nothing"]), ["1", "3", "2", "4"], "by all labels then");
}

#[test]
fn sorting_a_range_query_does_nothing_and_says_so() {
    for name in ["sort", "sort_desc", "sort_by_label", "sort_by_label_desc"] {
        let mut ctx = minutes(2);
        let result = vector_of(name, vec![series(&["b 1 2", "a 3 4"])], &mut ctx);
        assert_eq!(result, ["b 1 2", "a 3 4"]);
        let warning = "PromQL warning: sort is ineffective for range queries since results are \
                       always ordered by labels";
        assert_eq!(warnings(&ctx), [warning]);
        let placed = ctx.annotations.texts(Level::Warning, "sort(x)");
        assert_eq!(placed, [format!("{warning} (1:1)")]);
    }
}
