//! `eval`: one query and what its answer must be. Judging answers is `check`'s.

use std::collections::BTreeMap;

use regex::Regex;
use tributary_promql::{Expr, Labels, Options, SeriesValue, parse as parse_expr};

use super::lines::{Line, Lines};
use super::load::series;
use super::{ScriptError, block};
use crate::engine::Time;

/// A query and what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The line of its `eval`, the first being 1.
    pub line: usize,
    /// The expression as it stands.
    pub text: String,
    /// The expression.
    pub expr: Expr,
    /// When it is evaluated.
    pub time: Time,
    /// What is expected.
    pub expect: Expectation,
}

/// What an answer must be.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// No answer: an error.
    pub fails: bool,
    /// The error must fit all of these.
    pub fail_messages: Vec<Message>,
    /// The order of the series counts.
    pub ordered: bool,
    /// The warnings.
    pub warnings: AnnotationRule,
    /// The infos.
    pub infos: AnnotationRule,
    /// The values.
    pub values: Expected,
    /// The times of the values, where an instant query gives a range vector.
    pub window: Option<Window>,
    /// Some of the values are native histograms.
    pub has_histograms: bool,
}

/// The values of an answer.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A number.
    Scalar(f64),
    /// A string.
    String(Vec<u8>),
    /// Series, with their place in the list and their values from the first step on, one per step.
    Series(BTreeMap<Labels, (usize, Vec<Option<f64>>)>),
}

/// What annotations of one level must be.
#[derive(Clone, Debug, Default)]
pub struct AnnotationRule {
    /// There is at least one.
    pub some: bool,
    /// There is none.
    pub none: bool,
    /// If there are any rules here, each fits an annotation, and each annotation fits a rule.
    pub messages: Vec<Message>,
}

/// What a text must be.
#[derive(Clone, Debug)]
pub enum Message {
    /// Anything.
    Any,
    /// This.
    Exactly(String),
    /// Something the pattern is found in.
    Pattern(Regex),
}

/// Evenly spaced times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first.
    pub start: i64,
    /// None later than this.
    pub end: i64,
    /// From one to the next.
    pub step: i64,
}

impl Default for Expected {
    fn default() -> Self {
        Self::Series(BTreeMap::new())
    }
}

impl Message {
    /// Whether a text is as it must be.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(message) => message == text,
            Self::Pattern(pattern) => pattern.is_match(text),
        }
    }
}

/// Reads the block of an `eval` whose first line was taken.
pub(super) fn parse(lines: &mut Lines<'_>, first: Line<'_>) -> Result<Case, ScriptError> {
    let ([word, kind], _) = first.words::<2>();
    let (time, text) = match kind {
        "instant" => instant(first)?,
        "range" => range(first)?,
        _ => return Err(usage(first)),
    };
    if text.is_empty() {
        return Err(usage(first));
    }
    let expr = parse_expr(text, &Options::with_all_features())
        .map_err(|error| first.error(error.to_string()))?;
    let mut expect = Expectation::default();
    match word {
        "eval" => {}
        "eval_fail" => expect.fails = true,
        "eval_warn" => expect.warnings.some = true,
        "eval_info" => expect.infos.some = true,
        // The series of a range query are always sorted by labels.
        "eval_ordered" if kind == "instant" => expect.ordered = true,
        _ => return Err(usage(first)),
    }
    let mut case = Case { line: first.number, text: text.to_owned(), expr, time, expect };
    for line in block(lines) {
        if !case.expectation(line)? {
            break;
        }
    }
    Ok(case)
}

fn usage(line: Line<'_>) -> ScriptError {
    line.error(
        "invalid evaluation command, it is `eval instant at <time> <query>` or \
         `eval range from <start> to <end> step <step> <query>`",
    )
}

fn instant(line: Line<'_>) -> Result<(Time, &str), ScriptError> {
    let ([_, _, at, time], text) = line.words::<4>();
    if at != "at" {
        return Err(usage(line));
    }
    Ok((Time::Instant { at: line.millis(time)? }, text))
}

fn range(line: Line<'_>) -> Result<(Time, &str), ScriptError> {
    let ([_, _, from, start, to, end, step_word, step], text) = line.words::<8>();
    if (from, to, step_word) != ("from", "to", "step") {
        return Err(usage(line));
    }
    let Window { start, end, step } = window(line, start, end, step)?;
    Ok((Time::Range { start, end, step }, text))
}

fn window(line: Line<'_>, start: &str, end: &str, step: &str) -> Result<Window, ScriptError> {
    let window =
        Window { start: line.millis(start)?, end: line.millis(end)?, step: line.millis(step)? };
    if window.end < window.start {
        return Err(line.error(format!("the end {end} is before the start {start}")));
    }
    if window.step == 0 {
        return Err(line.error("a step must be longer than nothing"));
    }
    Ok(window)
}

impl Case {
    /// Takes in a line below the `eval`. False if it is the last one.
    fn expectation(&mut self, line: Line<'_>) -> Result<bool, ScriptError> {
        let text = line.text;
        if self.expect.fails
            && let Some(message) = text.strip_prefix("expected_fail_message")
        {
            self.expect.fail_messages.push(Message::Exactly(message.trim().to_owned()));
            return Ok(false);
        }
        if self.expect.fails
            && let Some(pattern) = text.strip_prefix("expected_fail_regexp")
        {
            self.expect.fail_messages.push(regex(line, pattern)?);
            return Ok(false);
        }
        if text.starts_with("expect range vector") {
            self.expect_window(line)?;
        } else if let Some(literal) = text.strip_prefix("expect string") {
            self.expect.values = Expected::String(string(line, literal)?);
        } else if text == "expect" || text.starts_with("expect ") {
            self.expect.add(line)?;
        } else if let Some(number) = number(text) {
            self.expect.values = Expected::Scalar(number);
            return Ok(false);
        } else {
            self.expect_series(line)?;
        }
        Ok(true)
    }

    fn expect_window(&mut self, line: Line<'_>) -> Result<(), ScriptError> {
        let ([_, _, _, from, start, to, end, step_word, step], rest) = line.words::<9>();
        if (from, to, step_word, rest) != ("from", "to", "step", "") {
            return Err(line.error("it is `expect range vector from <start> to <end> step <step>`"));
        }
        let window = window(line, start, end, step)?;
        if let Time::Instant { at } = &mut self.time {
            // The window ends where the query is evaluated, whatever the first line says.
            *at = window.end;
        }
        self.expect.window = Some(window);
        Ok(())
    }

    fn expect_series(&mut self, line: Line<'_>) -> Result<(), ScriptError> {
        let (labels, description) = series(line, line.text)?;
        let values: Vec<SeriesValue<'_>> = description.values().take(MOST_STEPS + 1).collect();
        let is_instant = matches!(self.time, Time::Instant { .. });
        if is_instant && values.len() > 1 && self.expect.window.is_none() {
            return Err(line.error("more than one value at an instant takes `expect range vector`"));
        }
        if is_instant && matches!(values.as_slice(), [] | [SeriesValue::Missing]) {
            return Err(line.error("no value is expected here"));
        }
        if values.len() > MOST_STEPS {
            return Err(line.error(format!("more than {MOST_STEPS} values")));
        }
        let is_histogram = |value: &_| matches!(value, SeriesValue::Histogram { .. });
        self.expect.has_histograms |= values.iter().any(is_histogram);
        let floats = values.iter().map(|value| match value {
            SeriesValue::Float(value) => Some(*value),
            SeriesValue::Missing | SeriesValue::Histogram { .. } => None,
        });
        let floats = floats.collect();
        match &mut self.expect.values {
            Expected::Series(series) => {
                let place = series.len();
                series.insert(labels, (place, floats));
                Ok(())
            }
            Expected::Scalar(_) | Expected::String(_) => {
                Err(line.error("an answer is either a string or made of series"))
            }
        }
    }
}

/// Prometheus gives no more points for one series.
const MOST_STEPS: usize = 11_000;

impl Expectation {
    /// Takes in a line that says `expect`.
    fn add(&mut self, line: Line<'_>) -> Result<(), ScriptError> {
        let ([_, kind], rest) = line.words::<2>();
        let invalid = || line.error("invalid expect, it is `expect <type> [msg: …|regex: …]`");
        let message = match rest.split_once(':') {
            None if rest.is_empty() => Message::Any,
            Some((_, "")) => return Err(invalid()),
            Some(("msg", text)) => Message::Exactly(text.trim().to_owned()),
            Some(("regex", text)) => regex(line, text)?,
            _ => return Err(invalid()),
        };
        match kind {
            "ordered" => self.ordered = true,
            "fail" if self.fails && !self.fail_messages.is_empty() => {
                return Err(line.error("multiple expect fail lines are not allowed"));
            }
            "fail" => {
                self.fails = true;
                self.fail_messages.push(message);
            }
            "warn" => self.warnings.messages.push(message),
            "info" => self.infos.messages.push(message),
            "no_warn" => self.warnings.none = true,
            "no_info" => self.infos.none = true,
            _ => return Err(invalid()),
        }
        for (rule, name) in [(&self.warnings, "warn"), (&self.infos, "info")] {
            if rule.none && !rule.messages.is_empty() {
                let message = format!("{name} and no_{name} cannot be used together");
                return Err(line.error(message));
            }
        }
        Ok(())
    }
}

fn regex(line: Line<'_>, text: &str) -> Result<Message, ScriptError> {
    let pattern = Regex::new(text.trim());
    pattern.map(Message::Pattern).map_err(|error| line.error(format!("invalid regex: {error}")))
}

/// A string in double quotes or backquotes.
fn string(line: Line<'_>, literal: &str) -> Result<Vec<u8>, ScriptError> {
    let refused = || line.error("a string is quoted in double quotes or backquotes");
    let literal = literal.strip_prefix(' ').unwrap_or_default();
    if !literal.starts_with(['"', '`']) {
        return Err(refused());
    }
    match parse_expr(literal, &Options::default()) {
        Ok(Expr::String(string)) => Ok(string.bytes),
        _ => Err(refused()),
    }
}

/// A number that stands alone in its line: a whole one with any prefix of Go's, or a float.
fn number(text: &str) -> Option<f64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let whole = match digits.get(..2) {
        Some("0x" | "0X") => i64::from_str_radix(&digits[2..], 16),
        Some("0b" | "0B") => i64::from_str_radix(&digits[2..], 2),
        Some("0o" | "0O") => i64::from_str_radix(&digits[2..], 8),
        Some(two) if two.starts_with('0') => i64::from_str_radix(&digits[1..], 8),
        _ => return text.parse().ok(),
    };
    match whole {
        // A second sign is none of Go's.
        Ok(whole) if whole >= 0 => Some(if negative { -(whole as f64) } else { whole as f64 }),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn case(text: &str) -> Case {
        Script::parse(text).unwrap().cases().next().unwrap().clone()
    }

    #[test]
    fn a_number_alone_is_a_scalar_and_ends_the_block() {
        for (text, value) in
            [("5", 5.0), ("-0x10", -16.0), ("010", 8.0), ("1e3", 1e3), ("+Inf", f64::INFINITY)]
        {
            let case = case(&format!("eval instant at 1m 5\n  {text}\nclear\n"));
            assert!(matches!(case.expect.values, Expected::Scalar(v) if v == value), "{text}");
        }
        assert!(number("NaN").is_some_and(f64::is_nan));
        assert!(number("foo").is_none());
    }

    #[test]
    fn series_keep_their_places_and_lines_of_expect_have_none() {
        let case = case(
            "eval instant at 1m a\n expect no_warn\n b 1\n expect ordered\n a 2\n expect no_info\n",
        );
        let Expected::Series(series) = &case.expect.values else { panic!("{case:?}") };
        let places: Vec<_> = series.iter().map(|(l, (at, _))| (l.to_string(), *at)).collect();
        assert_eq!(places, [("a".into(), 1), ("b".into(), 0)]);
        assert!(case.expect.ordered && case.expect.warnings.none && case.expect.infos.none);
    }

    #[test]
    fn messages_are_exact_or_patterns_or_anything() {
        let case = case(
            "eval instant at 1m a\n expect warn msg: a: b\n expect info regex:x+y\n expect fail\n",
        );
        let fits = |messages: &[Message], text: &str| messages.iter().all(|m| m.fits(text));
        assert!(fits(&case.expect.warnings.messages, "a: b"));
        assert!(!fits(&case.expect.warnings.messages, "a: b "));
        assert!(fits(&case.expect.infos.messages, "axxyz"));
        assert!(!fits(&case.expect.infos.messages, "xz"));
        assert!(case.expect.fails && fits(&case.expect.fail_messages, "whatever"));
    }

    #[test]
    fn the_old_forms_say_the_same() {
        let case_of = |text: &str| case(text).expect;
        let failing = case_of("eval_fail instant at 1m a\n expected_fail_message it broke\n");
        assert!(failing.fails && failing.fail_messages[0].fits("it broke"));
        let failing =
            case_of("eval_fail range from 0 to 1m step 1m a\n expected_fail_regexp b.o\n");
        assert!(failing.fails && failing.fail_messages[0].fits("it broke, bro"));
        assert!(!failing.fail_messages[0].fits("no"));
        assert!(case_of("eval_warn instant at 1m a\n").warnings.some);
        assert!(case_of("eval_info instant at 1m a\n").infos.some);
        assert!(case_of("eval_ordered instant at 1m a\n").ordered);
    }

    #[test]
    fn strings_and_range_vectors_are_expected_of_instants() {
        let one = case("eval instant at 1m \"x\"\n expect string \"\\x41`\"\n");
        assert!(matches!(&one.expect.values, Expected::String(bytes) if bytes == b"A`"));
        let one = case(
            "eval instant at 1m a[1m]\n expect range vector from 10s to 50s step 20s\n a 1 _ 3\n",
        );
        assert_eq!(one.expect.window, Some(Window { start: 10_000, end: 50_000, step: 20_000 }));
        assert_eq!(one.time, Time::Instant { at: 50_000 });
    }

    #[test]
    fn expected_histograms_are_noticed() {
        assert!(case("eval instant at 1m a\n a {{sum:1}}\n").expect.has_histograms);
        assert!(!case("eval instant at 1m a\n a 1\n").expect.has_histograms);
    }
}
