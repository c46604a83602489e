//! Stories of operators, told as queries over a few series.

use super::{binary, negate};
use crate::annotation::{Annotations, Level};
use crate::eval::{Context, Steps, Value};
use crate::expr::Expr;
use crate::features::Options;
use crate::frame::{Frame, Row};
use crate::labels::Labels;
use crate::limits::EvalLimits;
use crate::window::{ABSENT, is_absent};
use crate::{SeriesValue, parse, parse_series};

/// Series as scripts have them, one a line, all of the same length.
struct Story {
    rows: Vec<Row>,
    ctx: Context,
}

fn load(series: &str) -> Story {
    let row = |line: &str| {
        let series = parse_series(line, &Options::default()).unwrap();
        let value = |value: SeriesValue<'_>| match value {
            SeriesValue::Float(value) => value,
            _ => ABSENT,
        };
        Row {
            labels: Labels::new(&series.labels).unwrap(),
            drop_name: false,
            values: series.values().map(value).collect(),
        }
    };
    let rows: Vec<Row> = series.lines().filter(|line| !line.trim().is_empty()).map(row).collect();
    let count = rows[0].values.len();
    let ctx = Context {
        steps: Steps { start: 0, step: 1, count },
        delayed_name_removal: false,
        is_instant: count == 1,
        annotations: Annotations::default(),
        limits: EvalLimits::default(),
    };
    Story { rows, ctx }
}

impl Story {
    fn with_delayed_names(mut self) -> Self {
        self.ctx.delayed_name_removal = true;
        self
    }

    /// The result, a line for every series; `!` marks a name that is to go.
    fn ask(&mut self, query: &str) -> Result<Vec<String>, String> {
        let expr = parse(query, &Options::with_all_features()).unwrap();
        match self.value(&expr)? {
            Value::Scalar(values) => Ok(vec![text(&values)]),
            Value::Vector(frame) => {
                let line = |row: Row| {
                    let mark =
                        if row.drop_name && self.ctx.delayed_name_removal { "!" } else { "" };
                    format!("{mark}{} {}", row.labels, text(&row.values))
                };
                Ok(frame.rows.into_iter().map(line).collect())
            }
            Value::String(_) => panic!("no operator makes strings"),
        }
    }

    /// How many series the result has.
    fn ask_rows(&mut self, query: &str) -> usize {
        match self.value(&parse(query, &Options::default()).unwrap()) {
            Ok(Value::Vector(frame)) => frame.rows.len(),
            other => panic!("{query}: {other:?}"),
        }
    }

    fn value(&mut self, expr: &Expr) -> Result<Value, String> {
        let result = match expr {
            Expr::Number(number) => Ok(Value::Scalar(vec![number.value; self.ctx.steps.count])),
            Expr::Paren(paren) => return self.value(&paren.expr),
            Expr::Vector(selector) => {
                let is_wanted = |row: &&Row| match &selector.name {
                    Some(name) => row.labels.metric() == name,
                    None => true,
                };
                let rows = self.rows.iter().filter(is_wanted).cloned().collect();
                Ok(Value::Vector(Frame { rows }))
            }
            Expr::Unary(unary) => {
                let value = self.value(&unary.expr)?;
                negate(value, &self.ctx)
            }
            Expr::Binary(node) => {
                let (lhs, rhs) = (self.value(&node.lhs)?, self.value(&node.rhs)?);
                let (matching, answer) = (node.matching.as_ref(), node.return_bool);
                binary(node.op, matching, answer, lhs, rhs, node.span(), &mut self.ctx)
            }
            other => panic!("not part of these stories: {other:?}"),
        };
        result.map_err(|error| error.to_string())
    }

    fn infos(&self, query: &str) -> Vec<String> {
        self.ctx.annotations.texts(Level::Info, query)
    }
}

fn text(values: &[f64]) -> String {
    let text = |value: &f64| if is_absent(*value) { "_".into() } else { value.to_string() };
    values.iter().map(text).collect::<Vec<String>>().join(" ")
}

const MANY_TO_ONE: &str =
    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)";
const GROUPING: &str = "multiple matches for labels: grouping labels must ensure unique matches";
const SAME_LABELS: &str = "vector cannot contain metrics with the same labelset";

#[test]
fn numbers_meet_numbers() {
    let mut story = load("m 1 2");
    assert_eq!(story.ask("2 ^ 3 ^ 2 % 100").unwrap(), ["12 12"]);
    assert_eq!(story.ask("1 < bool 2").unwrap(), ["1 1"]);
    assert_eq!(story.ask("NaN == bool NaN").unwrap(), ["0 0"]);
    assert_eq!(story.ask("-(1 - 3)").unwrap(), ["2 2"]);
    assert_eq!(
        story.ask("1 >/ 2").unwrap_err(),
        r#"operator ">/" not allowed for Scalar operations"#
    );
}

#[test]
fn a_filter_keeps_the_vectors_value_and_its_name() {
    let mut story = load("m{a=\"1\"} 1 2 _ NaN 5");
    assert_eq!(story.ask("m > 1").unwrap(), [r#"m{a="1"} _ 2 _ _ 5"#]);
    assert_eq!(story.ask("1 < m").unwrap(), [r#"m{a="1"} _ 2 _ _ 5"#]);
    assert_eq!(story.ask("m != 5").unwrap(), [r#"m{a="1"} 1 2 _ NaN _"#]);
    assert_eq!(story.ask("m > bool 1").unwrap(), [r#"{a="1"} 0 1 _ 0 1"#]);
    assert_eq!(story.ask("2 - m").unwrap(), [r#"{a="1"} 1 0 _ NaN -3"#]);
    assert!(story.ask("m > 9").unwrap().is_empty());
}

#[test]
fn series_that_become_one_must_not_meet() {
    let apart = "m{a=\"1\"} 1 _\nn{a=\"1\"} _ 4";
    assert_eq!(load(apart).ask("{a='1'} * 2").unwrap(), [r#"{a="1"} 2 8"#]);
    assert_eq!(load(apart).ask("-{a='1'}").unwrap(), [r#"{a="1"} -1 -4"#]);
    let meeting = "m{a=\"1\"} 1 3\nn{a=\"1\"} _ 4";
    assert_eq!(load(meeting).ask("{a='1'} * 2").unwrap_err(), SAME_LABELS);
    assert_eq!(load(meeting).ask("-{a='1'}").unwrap_err(), SAME_LABELS);
    let mut delayed = load(meeting).with_delayed_names();
    assert_eq!(delayed.ask("-{a='1'}").unwrap(), [r#"!m{a="1"} -1 -3"#, r#"!n{a="1"} _ -4"#]);
    assert_eq!(delayed.ask("2 * {a='1'}").unwrap(), [r#"!m{a="1"} 2 6"#, r#"!n{a="1"} _ 8"#]);
}

#[test]
fn one_to_one_pairs_are_found_by_labels_without_the_name() {
    let mut story =
        load("m{a=\"1\"} 1 2 _\nm{a=\"2\"} 5 5 5\nn{a=\"1\"} 10 _ 30\nn{a=\"3\"} 1 1 1");
    assert_eq!(story.ask("m + n").unwrap(), [r#"{a="1"} 11 _ _"#]);
    assert_eq!(story.ask("m < n").unwrap(), [r#"m{a="1"} 1 _ _"#]);
    assert_eq!(story.ask("n > m").unwrap(), [r#"n{a="1"} 10 _ _"#]);
    assert_eq!(story.ask("m > bool n").unwrap(), [r#"{a="1"} 0 _ _"#]);
    assert!(story.ask("m > n").unwrap().is_empty());
    assert!(story.ask("m > nothing").unwrap().is_empty());
}

#[test]
fn on_keeps_only_what_is_compared_and_ignoring_takes_it_away() {
    let mut story = load("m{a=\"1\", b=\"x\"} 6\nn{a=\"1\", b=\"y\"} 3");
    assert_eq!(story.ask("m / on(a) n").unwrap(), [r#"{a="1"} 2"#]);
    assert_eq!(story.ask("m / ignoring(b) n").unwrap(), [r#"{a="1"} 2"#]);
    assert_eq!(story.ask("m > on(a) n").unwrap(), [r#"{a="1"} 6"#]);
    assert_eq!(story.ask("m > ignoring(b) n").unwrap(), [r#"m{a="1"} 6"#]);
}

#[test]
fn names_that_go_at_the_end_go_from_arithmetic_at_once() {
    let mut story = load("m{a=\"1\"} 6\nn{a=\"1\"} 3").with_delayed_names();
    assert_eq!(story.ask("m + n").unwrap(), [r#"{a="1"} 9"#]);
    assert_eq!(story.ask("m > bool n").unwrap(), [r#"!m{a="1"} 1"#]);
    assert_eq!(story.ask("m + 1").unwrap(), [r#"!m{a="1"} 7"#]);
    assert_eq!(story.ask("(m + 1) > 2").unwrap(), [r#"!m{a="1"} 7"#]);
    // Between two vectors what was to go is forgotten, as Prometheus does.
    assert_eq!(story.ask("(m + 1) > n").unwrap(), [r#"m{a="1"} 7"#]);
}

#[test]
fn a_duplicate_on_the_one_side_is_named_with_its_group() {
    let series = "m 3\nd{l=\"beta\"} 2\nd{l=\"alpha\"} 1";
    let error = |side, group| {
        format!(
            r#"found duplicate series for the match group {group} on the {side} hand-side of the operation: [{{__name__="d", l="alpha"}}, {{__name__="d", l="beta"}}];many-to-many matching not allowed: matching labels must be unique on one side"#
        )
    };
    assert_eq!(load(series).ask("m > on() d").unwrap_err(), error("right", "{}"));
    assert_eq!(load(series).ask("d > on() group_right m").unwrap_err(), error("left", "{}"));
    assert_eq!(load(series).ask("m </ on() d").unwrap_err(), error("right", "{}"));
    let group = r#"{__name__="d"}"#;
    assert_eq!(load(series).ask("m * on(__name__) d").unwrap_err(), error("right", group));
}

#[test]
fn a_duplicate_matters_only_where_both_sides_are_there() {
    let apart = "m 3 4 5\nd{l=\"a\"} 1 _ _\nd{l=\"b\"} _ 2 2";
    assert_eq!(load(apart).ask("m * on() d").unwrap(), ["{} 3 8 10"]);
    let unmet = "m _ 4\nd{l=\"a\"} 1 _\nd{l=\"b\"} 2 2";
    assert_eq!(load(unmet).ask("m * on() d").unwrap(), ["{} _ 8"]);
    // A value that is filled in makes the sides meet, whichever side it is for.
    assert!(load(unmet).ask("m * on() fill_left(1) d").is_err());
    assert!(load(unmet).ask("m * on() fill_right(1) d").is_err());
    // Any series on the other side will do, even one that matches nothing.
    let other = "m{k=\"1\"} 1\nd{l=\"a\"} 1\nd{l=\"b\"} 1";
    assert!(load(other).ask("m * on(k) d").is_err());
}

#[test]
fn many_with_one_must_be_asked_for_even_if_a_filter_drops_them() {
    let series = "m{l=\"x\", job=\"t\"} 0\nm{l=\"y\", job=\"t\"} 1\none{job=\"t\"} 1";
    for op in [">", ">=", "<=", "> bool", "*"] {
        let query = format!("m {op} on(job) one");
        assert_eq!(load(series).ask(&query).unwrap_err(), MANY_TO_ONE, "{query}");
    }
    let apart = "m{l=\"x\", job=\"t\"} 0 _\nm{l=\"y\", job=\"t\"} _ 1\none{job=\"t\"} 1 1";
    assert_eq!(load(apart).ask("m + on(job) one").unwrap(), [r#"{job="t"} 1 2"#]);
}

#[test]
fn the_error_of_the_earliest_step_is_told() {
    // Many to one at the second step, a duplicate on the right at the third.
    let series = "m{l=\"x\"} _ 1 1\nm{l=\"y\"} 1 1 1\nd{k=\"a\"} 1 1 1\nd{k=\"b\"} _ _ 1";
    assert_eq!(load(series).ask("m * on() d").unwrap_err(), MANY_TO_ONE);
    // Both at the same step: the right side is looked at first.
    let series = "m{l=\"x\"} _ 1\nm{l=\"y\"} 1 1\nd{k=\"a\"} 1 1\nd{k=\"b\"} _ 1";
    assert!(load(series).ask("m * on() d").unwrap_err().starts_with("found duplicate series"));
}

#[test]
fn the_many_side_keeps_its_labels_and_takes_those_asked_for() {
    let mut story = load(
        "cpu{i=\"1\", mode=\"idle\"} 3 4\ncpu{i=\"1\", mode=\"user\"} 1 1\nrole{i=\"1\", role=\"db\"} 2 2",
    );
    let expected =
        [r#"{i="1", mode="idle", role="db"} 6 8"#, r#"{i="1", mode="user", role="db"} 2 2"#];
    assert_eq!(story.ask("cpu * on(i) group_left(role) role").unwrap(), expected);
    assert_eq!(story.ask("role * on(i) group_right(role) cpu").unwrap(), expected);
    // The value that passes is the left one, though the labels are those of the many side.
    assert_eq!(
        story.ask("role < on(i) group_right cpu").unwrap(),
        [r#"cpu{i="1", mode="idle"} 2 2"#]
    );
    assert_eq!(
        story.ask("cpu > on(i) group_left(__name__) role").unwrap(),
        [r#"role{i="1", mode="idle"} 3 4"#]
    );
}

#[test]
fn a_partner_that_changes_gives_its_labels_while_it_is_there() {
    let mut story =
        load("m{i=\"1\"} 1 1 1 1\nv{i=\"1\", v=\"a\"} 2 _ 2 _\nv{i=\"1\", v=\"b\"} _ 3 _ _");
    assert_eq!(
        story.ask("m * on(i) group_left(v) v").unwrap(),
        [r#"{i="1", v="a"} 2 _ 2 _"#, r#"{i="1", v="b"} _ 3 _ _"#]
    );
    assert_eq!(story.ask("m * on(i) group_left v").unwrap(), [r#"{i="1"} 2 3 2 _"#]);
    assert_eq!(
        story.ask("m * on(i) group_left(v) fill_right(9) v").unwrap(),
        [r#"{i="1", v="a"} 2 _ 2 _"#, r#"{i="1", v="b"} _ 3 _ _"#, r#"{i="1"} _ _ _ 9"#]
    );
}

#[test]
fn results_of_many_with_one_must_differ() {
    let meeting = "m{i=\"1\", v=\"x\"} 1\nm{i=\"1\", v=\"y\"} 1\none{i=\"1\", v=\"z\"} 1";
    assert_eq!(load(meeting).ask("m * on(i) group_left(v) one").unwrap_err(), GROUPING);
    assert_eq!(load(meeting).ask("m != on(i) group_left(v) one").unwrap_err(), GROUPING);
    let apart = "m{i=\"1\", v=\"x\"} 1 _\nm{i=\"1\", v=\"y\"} _ 1\none{i=\"1\", v=\"z\"} 1 2";
    assert_eq!(load(apart).ask("m * on(i) group_left(v) one").unwrap(), [r#"{i="1", v="z"} 1 2"#]);
}

#[test]
fn results_of_different_groups_must_differ_too() {
    let series = "m 1\nn 2";
    assert_eq!(
        load(series).ask("{__name__!=''} * on(__name__) {__name__!=''}").unwrap_err(),
        SAME_LABELS
    );
    let series = "m 1 _\nn _ 2";
    assert_eq!(
        load(series).ask("{__name__!=''} * on(__name__) {__name__!=''}").unwrap(),
        ["{} 1 4"]
    );
    let series = "m 1 1\nn _ 2";
    assert_eq!(
        load(series).ask("{__name__!=''} * on(__name__) {__name__!=''}").unwrap_err(),
        SAME_LABELS
    );
    // At a single step Prometheus leaves this to the end while names go at the end.
    let mut delayed = load("m 1\nn 2").with_delayed_names();
    assert_eq!(
        delayed.ask("{__name__!=''} * on(__name__) {__name__!=''}").unwrap(),
        ["{} 1", "{} 4"]
    );
}

#[test]
fn what_is_missing_is_filled_in_at_every_step() {
    let mut story =
        load("l{k=\"a\"} 1 _ 3\nl{k=\"b\"} _ 20 _\nr{k=\"a\"} _ 200 300\nr{k=\"c\"} 1000 _ _");
    assert_eq!(
        story.ask("l + fill_left(0) r").unwrap(),
        [r#"{k="a"} _ 200 303"#, r#"{k="c"} 1000 _ _"#]
    );
    assert_eq!(
        story.ask("l + fill_right(0) r").unwrap(),
        [r#"{k="a"} 1 _ 303"#, r#"{k="b"} _ 20 _"#]
    );
    assert_eq!(
        story.ask("l + fill(NaN) r").unwrap(),
        [r#"{k="a"} NaN NaN 303"#, r#"{k="b"} _ NaN _"#, r#"{k="c"} NaN _ _"#]
    );
    assert_eq!(story.ask("l > fill(2) r").unwrap(), [r#"l{k="b"} _ 20 _"#]);
    assert_eq!(
        story.ask("l < fill(2) r").unwrap(),
        [r#"l{k="a"} 1 _ 3"#, r#"{k="a"} _ 2 _"#, r#"{k="c"} 2 _ _"#]
    );
    assert!(story.ask("l + fill_left(0) nothing").unwrap().is_empty());
    assert_eq!(
        story.ask("nothing + fill_left(1) r").unwrap(),
        [r#"{k="a"} _ 201 301"#, r#"{k="c"} 1001 _ _"#]
    );
}

#[test]
fn fill_with_a_group_fills_the_side_prometheus_fills() {
    let mut story = load(
        "cpu{i=\"a\", c=\"0\"} 1\ncpu{i=\"a\", c=\"1\"} 1\ncpu{i=\"b\", c=\"0\"} 1\nmeta{i=\"a\"} 100\nmeta{i=\"c\"} 300",
    );
    let a = [r#"{c="0", i="a"} 100"#, r#"{c="1", i="a"} 100"#];
    let b0 = r#"{c="0", i="b"} 0"#;
    let c = r#"{i="c"} 300"#;
    let ask = |story: &mut Story, query: &str| story.ask(query).unwrap();
    assert_eq!(ask(&mut story, "meta * on(i) group_right fill_left(1) cpu"), [a[0], a[1], c]);
    assert_eq!(ask(&mut story, "meta * on(i) group_right fill_right(0) cpu"), [a[0], a[1], b0]);
    assert_eq!(ask(&mut story, "cpu * on(i) group_left fill_left(1) meta"), [a[0], a[1], c]);
    assert_eq!(ask(&mut story, "cpu * on(i) group_left fill_right(0) meta"), [a[0], a[1], b0]);
}

#[test]
fn set_operators_look_at_presence_step_by_step() {
    let mut story =
        load("m{a=\"1\"} 1 2 3\nm{a=\"2\"} 4 5 6\nn{a=\"1\"} _ NaN _\nn{a=\"3\"} 7 _ 8");
    assert_eq!(story.ask("m and n").unwrap(), [r#"m{a="1"} _ 2 _"#]);
    assert_eq!(story.ask("m unless n").unwrap(), [r#"m{a="1"} 1 _ 3"#, r#"m{a="2"} 4 5 6"#]);
    assert_eq!(
        story.ask("n or m").unwrap(),
        [r#"n{a="1"} _ NaN _"#, r#"n{a="3"} 7 _ 8"#, r#"m{a="1"} 1 _ 3"#, r#"m{a="2"} 4 5 6"#]
    );
    assert_eq!(story.ask("m and on() n").unwrap(), [r#"m{a="1"} 1 2 3"#, r#"m{a="2"} 4 5 6"#]);
    assert!(story.ask("m unless on() n").unwrap().is_empty());
    assert!(story.ask("m and nothing").unwrap().is_empty());
    assert_eq!(story.ask("nothing or n").unwrap().len(), 2);
    assert_eq!(story.ask("n unless nothing").unwrap().len(), 2);
}

#[test]
fn or_makes_one_series_of_two_that_take_turns() {
    let series = "m 1 _ _\nn 3 4 5";
    assert_eq!(load(series).ask("-m or -n").unwrap(), ["{} -1 -4 -5"]);
    let mut delayed = load(series).with_delayed_names();
    assert_eq!(delayed.ask("-m or -n").unwrap(), ["!m -1 _ _", "!n _ -4 -5"]);
    // Of equal series the value that comes first in time says whether the name goes.
    let mut delayed = load("m _ 1 1").with_delayed_names();
    assert_eq!(delayed.ask("(m > 5) or -m").unwrap(), ["!m _ -1 -1"]);
    let mut delayed = load("m 9 1 9").with_delayed_names();
    assert_eq!(delayed.ask("(m > 5) or -m").unwrap(), ["m 9 -1 9"]);
    let mut delayed = load("m 1 9 9").with_delayed_names();
    assert_eq!(delayed.ask("(m > 5) or -m").unwrap(), ["!m -1 9 9"]);
}

#[test]
fn trimming_a_float_gives_nothing_and_says_so() {
    let series = "m 1 _\nn 2 2";
    for query in ["m </ n", "m </ 3", "3 </ m", "m </ fill_left(1) nothing_else or n </ 1"] {
        let mut story = load(series);
        assert!(story.ask(query).unwrap().is_empty(), "{query}");
        let place = if query.contains("or") { "1:35" } else { "1:1" };
        assert_eq!(
            story.infos(query),
            [format!(
                r#"PromQL info: incompatible sample types encountered for binary operator "</": float </ float ({place})"#
            )],
            "{query}"
        );
    }
    let mut story = load("m 1 _\nn _ 2");
    assert!(story.ask("m >/ n").unwrap().is_empty());
    assert!(story.infos("m >/ n").is_empty(), "they never meet");
}

#[test]
fn rows_of_an_instant_query_keep_the_order_of_the_left_side() {
    let mut story = load("m{a=\"2\"} 5\nm{a=\"1\"} 9\nn{a=\"1\"} 1\nn{a=\"2\"} 1\nn{a=\"0\"} 1");
    assert_eq!(story.ask("m + n").unwrap(), [r#"{a="2"} 6"#, r#"{a="1"} 10"#]);
    assert_eq!(story.ask("m + 0").unwrap(), [r#"{a="2"} 5"#, r#"{a="1"} 9"#]);
    assert_eq!(story.ask("-m").unwrap(), [r#"{a="2"} -5"#, r#"{a="1"} -9"#]);
    assert_eq!(story.ask("m or n").unwrap(), [r#"m{a="2"} 5"#, r#"m{a="1"} 9"#, r#"n{a="0"} 1"#]);
}

/// Forty joins of ten thousand pairs at sixty steps; the harness says how long they took.
/// `cargo test --release -p tributary-promql --lib ten_thousand -- --ignored`
#[test]
#[ignore = "a load to be measured"]
fn ten_thousand_pairs_at_sixty_steps_forty_times() {
    let line =
        |name, i| format!("{name}{{job=\"api\", path=\"/v1/items\", pod=\"api-{i}\"}} 1+1x59\n");
    let rows = |name| (0..10_000).map(|i| line(name, i)).collect::<String>();
    let mut story = load(&(rows("m") + &rows("n") + "one{job=\"api\", version=\"7\"} 1+1x59"));
    for _ in 0..10 {
        for query in ["m / n", "m / on(pod) n", "m >= n", "m * on(job) group_left(version) one"] {
            assert_eq!(story.ask_rows(query), 10_000, "{query}");
        }
    }
}
