//! The runner is judged itself: a fake engine gives the right answer, and every case passes; it
//! gives a wrong one, and the very case that asks for it fails. No expectation is without teeth.

use std::cell::RefCell;
use std::rc::Rc;

use tributary_promql::annotation::Annotations;
use tributary_promql::span::Span;
use tributary_promql::{Answer, Data, Labels, Points};
use tributary_promqltest::{DataSet, Engine, FileReport, Need, Query, Script, Time, Way, run};

/// Answers by a function, whatever is loaded.
struct Fake<F>(F);

impl<F: Fn(&DataSet, &Query) -> Result<Answer, String>> Engine for Fake<F> {
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String> {
        (self.0)(data, query)
    }
}

fn way<F>(name: &str, answer: F) -> Way
where
    F: Fn(&DataSet, &Query) -> Result<Answer, String> + 'static,
{
    (name.to_owned(), Box::new(Fake(answer)))
}

fn labels(text: &str) -> Labels {
    Labels::new([("__name__", text)]).expect("one label stands once")
}

fn plain(data: Data) -> Answer {
    Answer { data, annotations: Annotations::default() }
}

/// An answer in which these series have the same values at all times: a vector for an instant query,
/// a matrix for a range query.
fn constant(query: &Query, series: &[(&str, f64)]) -> Answer {
    plain(match query.time {
        Time::Instant { at: t } => {
            let series = series.iter().map(|(name, value)| (labels(name), *value));
            Data::Vector { t, series: series.collect() }
        }
        Time::Range { start, end, step } => {
            let ts: Vec<i64> =
                (start..=end).step_by(usize::try_from(step).expect("steps go forward")).collect();
            let mut series: Vec<Points> = series
                .iter()
                .map(|(name, value)| Points {
                    labels: labels(name),
                    values: vec![*value; ts.len()],
                    ts: ts.clone(),
                })
                .collect();
            series.sort_by(|one, other| one.labels.cmp(&other.labels));
            Data::Matrix(series)
        }
    })
}

fn judged(script: &str, ways: &[Way]) -> FileReport {
    run("it.test", &Script::parse(script).expect("it is a script"), ways, || {})
}

/// The answers of one way to a script with a single case: what went wrong, nothing if it passed.
fn judge<F>(script: &str, answer: F) -> Option<String>
where
    F: Fn(&Query) -> Result<Answer, String> + 'static,
{
    let report = judged(script, &[way("fake", move |_, query| answer(query))]);
    assert_eq!(report.passed + report.failed, 1, "{report:?}");
    assert_eq!(report.failed, report.failures.len(), "{report:?}");
    let failure = report.failures.first()?;
    assert_eq!(failure.line, 1);
    Some(failure.to_string())
}

#[track_caller]
fn passes<F>(script: &str, answer: F)
where
    F: Fn(&Query) -> Result<Answer, String> + 'static,
{
    assert_eq!(judge(script, answer), None, "{script}");
}

#[track_caller]
fn fails<F>(script: &str, answer: F, parts: &[&str])
where
    F: Fn(&Query) -> Result<Answer, String> + 'static,
{
    let text = judge(script, answer).unwrap_or_else(|| panic!("{script} passed"));
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

/// `fails` for an answer of constant series.
#[track_caller]
fn fails_with(script: &str, series: &'static [(&'static str, f64)], parts: &[&str]) {
    fails(script, move |query| Ok(constant(query, series)), parts);
}

#[track_caller]
fn passes_with(script: &str, series: &'static [(&'static str, f64)]) {
    passes(script, move |query| Ok(constant(query, series)));
}

const TWO: &str = "eval instant at 5m x\n  b 2\n  a 1\n";
const STEPS: &str = "eval range from 0 to 2m step 1m x\n  a 1 1 1\n";

#[test]
fn a_vector_must_have_the_series_and_values() {
    passes_with(TWO, &[("a", 1.0), ("b", 2.0)]);
    passes_with(TWO, &[("a", 1.000_000_1), ("b", 2.0)]);
    fails_with(TWO, &[("a", 1.0), ("b", 2.1)], &["b 2.0", "b 2.1", "instant at 5m x", "fake"]);
    fails_with(TWO, &[("a", 1.0)], &["b 2.0", "a 1.0"]);
    fails_with(TWO, &[("a", 1.0), ("b", 2.0), ("c", 3.0)], &["c 3.0"]);
    fails_with(TWO, &[("a", 1.0), ("b", 2.0), ("b", 2.0)], &["b 2.0"]);
    fails_with("eval instant at 5m x\n", &[("a", 1.0)], &["nothing", "a 1.0"]);
}

#[test]
fn staleness_marks_are_no_other_nan() {
    const STALE: f64 = f64::from_bits(tributary_promql::STALE_BITS);
    passes_with("eval instant at 5m x\n a NaN\n", &[("a", f64::NAN)]);
    fails_with("eval instant at 5m x\n a NaN\n", &[("a", STALE)], &["stale"]);
    fails_with("eval instant at 5m x\n a stale\n", &[("a", f64::NAN)], &["stale", "NaN"]);
}

#[test]
fn a_vector_of_another_time_is_wrong() {
    let late = |query: &Query| {
        let Data::Vector { t, series } = constant(query, &[("a", 1.0), ("b", 2.0)]).data else {
            return Ok(constant(query, &[("a", 1.0), ("b", 2.0)]));
        };
        Ok(plain(Data::Vector { t: t + 1, series }))
    };
    fails(TWO, late, &["an answer for instant at 5m", "@[300001]"]);
}

#[test]
fn the_order_counts_only_where_it_is_asked_for() {
    passes_with(TWO, &[("b", 2.0), ("a", 1.0)]);
    for ordered in
        [TWO.replace("  b 2", "  expect ordered\n  b 2"), TWO.replace("eval", "eval_ordered")]
    {
        passes_with(&ordered, &[("b", 2.0), ("a", 1.0)]);
        fails_with(&ordered, &[("a", 1.0), ("b", 2.0)], &["in this order\n      b 2.0\n"]);
    }
    fails_with(&STEPS.replace("  a", "  expect ordered\n  a"), &[("a", 1.0)], &["ordered answer"]);
}

#[test]
fn a_matrix_must_have_the_points() {
    passes_with(STEPS, &[("a", 1.0)]);
    fails_with(STEPS, &[("a", 2.0)], &["1.0 @[0]", "2.0 @[0]"]);
    fails_with(STEPS, &[("b", 1.0)], &["a 1.0", "b 1.0"]);
    fails_with(STEPS, &[], &["nothing"]);
    fails_with(&STEPS.replace("1 1 1", "1 _ 1"), &[("a", 1.0)], &["1.0 @[60000]"]);
    fails_with(&STEPS.replace("1 1 1", "1 1 1 1"), &[("a", 1.0)], &["more than the steps"]);
    let points = |ts: Vec<i64>| {
        move |_: &Query| {
            let values = vec![1.0; ts.len()];
            Ok(plain(Data::Matrix(vec![Points { labels: labels("a"), ts: ts.clone(), values }])))
        }
    };
    passes(STEPS, points(vec![0, 60_000, 120_000]));
    fails(STEPS, points(vec![0, 60_000, 120_001]), &["@[120001]"]);
    fails(STEPS, points(vec![0, 60_000]), &["1.0 @[120000]"]);
}

#[test]
fn a_matrix_is_sorted() {
    let script = STEPS.replace("  a", "  b 1 1 1\n  a");
    passes_with(&script, &[("a", 1.0), ("b", 1.0)]);
    let backwards = |query: &Query| {
        let Data::Matrix(mut series) = constant(query, &[("a", 1.0), ("b", 1.0)]).data else {
            return Err(String::from("not asked for"));
        };
        series.reverse();
        Ok(plain(Data::Matrix(series)))
    };
    fails(&script, backwards, &["sorted by labels"]);
}

/// A scalar for instant queries and one series without labels for range queries.
fn scalar(query: &Query, value: f64) -> Answer {
    match query.time {
        Time::Instant { at: t } => plain(Data::Scalar { t, value }),
        Time::Range { .. } => {
            let mut answer = constant(query, &[("", value)]);
            if let Data::Matrix(series) = &mut answer.data {
                series[0].labels = Labels::default();
            }
            answer
        }
    }
}

#[test]
fn a_scalar_must_be_one_and_have_the_value() {
    let script = "eval instant at 5m 1\n  1\n";
    passes(script, |query| Ok(scalar(query, 1.0)));
    fails(script, |query| Ok(scalar(query, 1.5)), &["1.0", "scalar 1.5"]);
    fails_with(script, &[("a", 1.0)], &["a scalar"]);
    fails("eval instant at 5m 1\n a 1\n", |query| Ok(scalar(query, 1.0)), &["series"]);
    fails("eval instant at 5m 1\n", |query| Ok(scalar(query, 1.0)), &["series"]);
}

#[test]
fn a_string_must_be_the_one() {
    let string = |text: &'static str| {
        move |query: &Query| match query.time {
            Time::Instant { at: t } => Ok(plain(Data::String { t, bytes: text.into() })),
            Time::Range { .. } => Err(String::from("a string has no range")),
        }
    };
    let script = "eval instant at 5m \"x\"\n  expect string \"x\"\n";
    passes(script, string("x"));
    fails(script, string("y"), &["\"x\"", "\"y\""]);
    fails_with(script, &[], &["a string"]);
    fails("eval instant at 5m \"x\"\n", string("x"), &["an empty string"]);
}

#[test]
fn a_range_vector_of_an_instant_has_the_times_of_its_window() {
    let script =
        "eval instant at 1m x[1m]\n expect range vector from 20s to 1m step 20s\n a 1 _ 3\n";
    let points = |ts: &'static [i64]| {
        move |query: &Query| match query.time {
            Time::Instant { .. } => {
                let values = vec![1.0, 3.0];
                let points = Points { labels: labels("a"), ts: ts.to_vec(), values };
                Ok(plain(Data::Matrix(vec![points])))
            }
            Time::Range { .. } => Err(String::from("a matrix has no range")),
        }
    };
    passes(script, points(&[20_000, 60_000]));
    fails(script, points(&[20_000, 40_000]), &["3.0 @[60000]", "3.0 @[40000]"]);
    fails("eval instant at 1m x[1m]\n a 1\n", points(&[0, 1]), &["a vector"]);
}

#[test]
fn an_error_is_a_failure_unless_it_is_expected() {
    let broken = |_: &Query| Err(String::from("it broke"));
    fails(TWO, broken, &["an answer", "error: it broke"]);
    passes("eval instant at 5m x\n expect fail\n", broken);
    passes("eval instant at 5m x\n expect fail msg: it broke\n", broken);
    passes("eval instant at 5m x\n expect fail regex: b.oke\n", broken);
    passes("eval_fail instant at 5m x\n", broken);
    passes("eval_fail instant at 5m x\n expected_fail_message it broke\n", broken);
    passes("eval_fail range from 0 to 1m step 1m x\n expected_fail_regexp ^it\n", broken);
    fails("eval instant at 5m x\n expect fail msg: it\n", broken, &["it broke"]);
    fails("eval instant at 5m x\n expect fail regex: ^broke\n", broken, &["^broke", "it broke"]);
    fails("eval_fail instant at 5m x\n expected_fail_message it\n", broken, &["it broke"]);
    fails("eval_fail instant at 5m x\n expected_fail_regexp ^b\n", broken, &["^b"]);
    fails_with("eval instant at 5m x\n expect fail\n", &[], &["an error", "an answer"]);
    fails_with("eval_fail range from 0 to 1m step 1m x\n", &[], &["an error"]);
}

/// No series, and something to say.
fn saying(
    warnings: &'static [&'static str],
    infos: &'static [&'static str],
) -> impl Fn(&Query) -> Result<Answer, String> {
    move |query| {
        let mut answer = constant(query, &[]);
        for text in warnings {
            answer.annotations.warn(Span::default(), *text);
        }
        for text in infos {
            answer.annotations.info(Span::default(), *text);
        }
        Ok(answer)
    }
}

#[test]
fn annotations_are_free_until_the_script_speaks_of_them() {
    passes("eval instant at 5m x\n", saying(&["hot"], &["odd"]));
    fails(
        "eval instant at 5m x\n expect no_warn\n",
        saying(&["hot"], &[]),
        &["PromQL warning: hot"],
    );
    fails("eval instant at 5m x\n expect no_info\n", saying(&[], &["odd"]), &["PromQL info: odd"]);
    passes("eval instant at 5m x\n expect no_warn\n", saying(&[], &["odd"]));
    passes("eval instant at 5m x\n expect no_info\n", saying(&["hot"], &[]));
    for level in ["warn", "info"] {
        let wanted = [
            format!("eval instant at 5m x\n expect {level}\n"),
            format!("eval_{level} instant at 5m x\n"),
            format!("eval_{level} range from 0 to 1m step 1m x\n"),
        ];
        for script in wanted {
            passes(&script, saying(&["a"], &["a"]));
            fails(&script, saying(&[], &[]), &["none"]);
        }
    }
}

#[test]
fn every_expected_annotation_must_come_and_no_other() {
    let script = "eval instant at 5m x\n expect warn msg: PromQL warning: hot (1:1)\n expect warn regex: co+l\n";
    passes(script, saying(&["hot", "coool"], &["odd"]));
    fails(script, saying(&["hot"], &[]), &["co+l"]);
    fails(script, saying(&["coool"], &[]), &["PromQL warning: hot (1:1)"]);
    fails(script, saying(&["hot", "cool", "new"], &[]), &["no other warning", "new"]);
    let script = script.replace("warn", "info").replace("infoing", "info");
    passes(&script, saying(&["new"], &["hot", "coool"]));
    fails(&script, saying(&[], &["hot", "cool", "new"]), &["no other info", "new"]);
}

#[test]
fn an_instant_query_is_asked_again_with_times_pinned_and_as_a_range() {
    let asked: Rc<RefCell<Vec<String>>> = Rc::default();
    let seen = Rc::clone(&asked);
    let listening = way("fake", move |_, query| {
        seen.borrow_mut().push(format!("{} {}", query.time, query.text));
        Ok(constant(query, &[]))
    });
    let ways = [listening];
    let script = |text: &str| judged(&format!("eval instant at 5m {text}\n"), &ways).failed;
    assert_eq!(script("x"), 0);
    let queries = asked.take();
    let expected = [
        "instant at 5m x",
        "range from 4m to 6m step 1m x",
        "instant at -50m x @ 300.000",
        "range from -51m to -49m step 1m x @ 300.000",
        "instant at 0s x @ 300.000",
        "range from -1m to 1m step 1m x @ 300.000",
        "instant at 1m x @ 300.000",
        "range from 0s to 2m step 1m x @ 300.000",
        "instant at 5m x @ 300.000",
        "range from 4m to 6m step 1m x @ 300.000",
        "instant at 50m x @ 300.000",
        "range from 49m to 51m step 1m x @ 300.000",
    ];
    assert_eq!(queries, expected);
    assert_eq!(script("timestamp(x)"), 0);
    assert_eq!(asked.take().len(), 2, "what depends on the time is asked as it stands");
    assert_eq!(script("x[step()]"), 0);
    assert_eq!(asked.take().len(), 6, "what asks for the query's times has no range");
    assert_eq!(judged("eval range from 0 to 1m step 1m x\n", &ways).failed, 0);
    assert_eq!(asked.take().len(), 1, "a range query is asked once");
}

#[test]
fn a_wrong_answer_in_the_middle_of_the_range_or_at_another_time_is_found() {
    let wrong_in_range = |query: &Query| match query.time {
        Time::Instant { .. } => Ok(constant(query, &[("a", 1.0), ("b", 2.0)])),
        Time::Range { .. } => Ok(constant(query, &[("a", 1.0), ("b", 3.0)])),
    };
    fails(TWO, wrong_in_range, &["range from 4m to 6m step 1m x\n", "b 3.0"]);
    let broken_in_range = |query: &Query| match query.time {
        Time::Instant { .. } => Ok(constant(query, &[("a", 1.0), ("b", 2.0)])),
        Time::Range { .. } => Err(String::from("it broke")),
    };
    fails(TWO, broken_in_range, &["the middle of the range", "it broke"]);
    let wrong_when_pinned = |query: &Query| {
        let pinned = query.text.contains('@');
        Ok(constant(query, if pinned { &[("a", 1.0)] } else { &[("a", 1.0), ("b", 2.0)] }))
    };
    fails(TWO, wrong_when_pinned, &["instant at -50m x @ 300.000"]);
    let scalar_in_range = |query: &Query| match query.time {
        Time::Instant { .. } => Ok(scalar(query, 1.0)),
        Time::Range { .. } => Ok(constant(query, &[])),
    };
    fails("eval instant at 5m 1\n 1\n", scalar_in_range, &["one series, of a scalar"]);
}

#[test]
fn all_ways_must_agree_to_the_last_bit() {
    let report = |first: f64, second: f64| {
        let answer = |value: f64| move |_: &DataSet, query: &Query| Ok(scalar(query, value));
        let ways =
            [way("one", answer(first)), way("two", answer(second)), way("three", answer(first))];
        judged("eval instant at 5m 1\n 1\n", &ways)
    };
    assert_eq!(report(1.0, 1.0).passed, 1);
    let differs = report(1.0, 1.0 + f64::EPSILON);
    assert_eq!((differs.passed, differs.failed, differs.failures.len()), (0, 1, 1));
    assert_eq!(differs.failures[0].way, "two");
    let text = differs.failures[0].to_string();
    assert!(text.contains("=3ff0000000000000") && text.contains("=3ff0000000000001"), "{text}");
    let payload = f64::from_bits(0x7ff8_0000_0000_0001);
    let ways = [
        way("one", |_, query| Ok(scalar(query, f64::NAN))),
        way("two", move |_, query| Ok(scalar(query, payload))),
    ];
    assert_eq!(judged("eval instant at 5m 1\n NaN\n", &ways).failed, 1);
}

#[test]
fn ways_must_agree_on_errors_annotations_and_order_even_where_none_is_expected() {
    let disagree = |script: &str, one: Way, two: Way| {
        let report = judged(script, &[one, two]);
        assert_eq!(report.failed, 1, "{script}");
        assert_eq!(report.failures[0].way, "two");
        report.failures[0].to_string()
    };
    let error = |name: &str, text: &'static str| way(name, move |_, _| Err(text.to_owned()));
    let text = disagree("eval_fail instant at 5m x\n", error("one", "a"), error("two", "b"));
    assert!(text.contains("error: a") && text.contains("error: b"), "{text}");
    disagree("eval instant at 5m x\n", way("one", |_, q| Ok(constant(q, &[]))), error("two", "b"));
    let says = |name: &str, warnings| {
        let answer = saying(warnings, &[]);
        way(name, move |_, query| answer(query))
    };
    disagree("eval instant at 5m x\n", says("one", &["hot"]), says("two", &[]));
    let lists = |name: &str, series: &'static [(&'static str, f64)]| {
        way(name, move |_, query| Ok(constant(query, series)))
    };
    disagree(TWO, lists("one", &[("a", 1.0), ("b", 2.0)]), lists("two", &[("b", 2.0), ("a", 1.0)]));
}

#[test]
fn a_panic_is_a_failure_of_its_way_even_where_an_error_is_expected() {
    let script = "eval_fail instant at 5m x\n";
    let panics = |name: &str| way(name, |_, _| panic!("out of {}", "range"));
    let report = judged(script, &[panics("one")]);
    assert_eq!(report.failed, 1);
    assert!(report.failures[0].got.contains("a panic: out of range"), "{report:?}");
    let report = judged(script, &[way("one", |_, _| Err(String::from("it broke"))), panics("two")]);
    assert_eq!((report.failed, report.failures[0].way.as_str()), (1, "two"));
}

#[test]
fn engines_see_what_was_loaded_since_the_last_clear() {
    let counting = |data: &DataSet, query: &Query| {
        let count: usize = data.series().values().map(|samples| samples.ts.len()).sum();
        Ok(scalar(query, count as f64))
    };
    let script = "load 1m\n a 1 2\n\nload 1m\n b 1 _ 3\n a _ 7\n\neval instant at 5m 1\n 4\nclear\nload 1m\n a 1\n\neval instant at 5m 1\n 1\n";
    let report = judged(script, &[way("fake", counting)]);
    assert_eq!((report.passed, report.failed), (2, 0), "{report:?}");
    let cuts = |data: &DataSet, query: &Query| {
        Ok(scalar(query, data.cut_times().map_or(0.0, |t| t.len() as f64)))
    };
    let script = "eval instant at 5m 1\n 0\n# cut at 1m 2m\neval instant at 5m 1\n 2\nclear\neval instant at 5m 1\n 0\n";
    assert_eq!(judged(script, &[way("fake", cuts)]).passed, 3);
}

#[test]
fn cases_that_need_what_is_not_there_are_counted_by_reason() {
    let script = "load 1m\n h {{sum:1}}\n f 1\n s@st -1m\n s 1\n\neval instant at 1m h\n\neval instant at 1m h\n\neval instant at 1m rate(s[2m])\n\neval instant at 1m f\n f {{sum:1}}\n\neval instant at 1m f\n\nclear\neval instant at 1m h\n";
    let mut cases = 0;
    let script = Script::parse(script).unwrap();
    let nothing = way("fake", |_, query| Ok(constant(query, &[])));
    let report = run("it.test", &script, &[nothing], || cases += 1);
    let skipped: Vec<_> = report.skipped.into_iter().collect();
    let expected =
        [(Need::HistogramExpected, 1), (Need::HistogramSelected, 2), (Need::StartTimestamps, 1)];
    assert_eq!(skipped, expected);
    assert_eq!((report.passed, report.failed, cases), (2, 0, 6));
}
