//! Which samples the selectors of an expression can read: series by their matchers, and times by the
//! query's own, the windows, the offsets and `@`. Wider than the truth where that is simpler, never
//! narrower.

use tributary_promql::duration::PromDuration;
use tributary_promql::duration_expr::DurationValue;
use tributary_promql::expr::{At, Call, Subquery, VectorSelector};
use tributary_promql::matcher::{Condition, METRIC_NAME};
use tributary_promql::{Expr, Matcher};

use crate::engine::{Settings, Time};

/// What one selector can read.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// Which series.
    pub(crate) matchers: Vec<Matcher>,
    /// When.
    pub(crate) times: Times,
    /// The function it is handed to straight, if any.
    pub(crate) function: Option<&'static str>,
}

/// The times after the first, up to the second. In milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times(pub(crate) i64, pub(crate) i64);

impl Times {
    const ALL: Self = Self(i64::MIN, i64::MAX);

    pub(crate) fn contains(self, t: i64) -> bool {
        self.0 < t && t <= self.1
    }

    /// From so much before the first to so much after the last.
    fn widened(self, before: i64, after: i64) -> Self {
        Self(self.0.saturating_sub(before), self.1.saturating_add(after))
    }
}

/// What every selector of an expression can read when it is evaluated at `time`.
pub(crate) fn reaches(expr: &Expr, time: Time) -> Vec<Reach> {
    let (start, end) = match time {
        Time::Instant { at } => (at, at),
        Time::Range { start, end, .. } => (start, end),
    };
    let lookback = Settings::default().lookback_ms;
    let mut walk = Walk { query: (start, end), lookback, found: Vec::new() };
    walk.expr(expr, Some((start, end)), None);
    walk.found
}

/// First and last evaluation; none if they are not known.
type Evaluations = Option<(i64, i64)>;

struct Walk {
    query: (i64, i64),
    lookback: i64,
    found: Vec<Reach>,
}

impl Walk {
    fn expr(&mut self, expr: &Expr, at: Evaluations, function: Option<&'static str>) {
        match expr {
            Expr::Vector(selector) => {
                let range = Some(self.lookback);
                self.selector(selector, selector.matchers.clone(), range, at, function);
            }
            Expr::Matrix(matrix) => {
                let selector = &matrix.vector;
                let range = millis(&matrix.range);
                self.selector(selector, selector.matchers.clone(), range, at, function);
            }
            Expr::Subquery(subquery) => {
                let inner = self.evaluations(subquery, at);
                self.expr(&subquery.expr, inner, None);
            }
            Expr::Paren(paren) => self.expr(&paren.expr, at, function),
            Expr::Call(call) => self.call(call, at),
            _ => expr.children().into_iter().for_each(|child| self.expr(child, at, None)),
        }
    }

    fn call(&mut self, call: &Call, at: Evaluations) {
        let name = call.function.name;
        for (index, arg) in call.args.iter().enumerate() {
            match arg {
                // It stands for labels; when its series are read is up to the first argument.
                Expr::Vector(selector) if name == "info" && index == 1 => {
                    self.selector(selector, info_matchers(&selector.matchers), None, None, None);
                }
                _ => self.expr(arg, at, Some(name)),
            }
        }
        if name == "info" && call.args.len() == 1 {
            let (matchers, times) = (info_matchers(&[]), Times::ALL);
            self.found.push(Reach { matchers, times, function: None });
        }
    }

    /// A window of `range` milliseconds, none if its length is not known. An instant selector has
    /// one as long as it looks back.
    fn selector(
        &mut self,
        selector: &VectorSelector,
        matchers: Vec<Matcher>,
        range: Option<i64>,
        at: Evaluations,
        function: Option<&'static str>,
    ) {
        let at = self.moved(at, selector.at, selector.offset.as_ref());
        let times = match (at, range) {
            (Some((first, last)), Some(range)) => {
                let times = Times(first, last).widened(range, 0);
                // The edges are made of samples outside the window.
                let beyond = if selector.extension.is_some() { self.lookback } else { 0 };
                times.widened(beyond, beyond)
            }
            _ => Times::ALL,
        };
        self.found.push(Reach { matchers, times, function });
    }

    /// When a subquery evaluates what is inside it.
    fn evaluations(&self, subquery: &Subquery, at: Evaluations) -> Evaluations {
        let (first, last) = self.moved(at, subquery.at, subquery.offset.as_ref())?;
        Some((first.saturating_sub(millis(&subquery.range)?), last))
    }

    fn moved(
        &self,
        at: Evaluations,
        pin: Option<At>,
        offset: Option<&DurationValue>,
    ) -> Evaluations {
        let (first, last) = match pin {
            Some(At::Timestamp(t)) => (t, t),
            Some(At::Start) => (self.query.0, self.query.0),
            Some(At::End) => (self.query.1, self.query.1),
            None => at?,
        };
        let offset = offset.map_or(Some(0), millis)?;
        Some((first.saturating_sub(offset), last.saturating_sub(offset)))
    }
}

/// A duration that is known from the text alone.
fn millis(duration: &DurationValue) -> Option<i64> {
    match duration {
        DurationValue::Fixed(duration) => Some(PromDuration::as_millis(*duration)),
        DurationValue::Computed(_) => None,
    }
}

/// The matchers by which `info` looks for series: without a name it means `target_info`.
fn info_matchers(matchers: &[Matcher]) -> Vec<Matcher> {
    let mut matchers = matchers.to_vec();
    if !matchers.iter().any(|matcher| matcher.name == METRIC_NAME) {
        let condition = Condition::Equal(String::from("target_info"));
        matchers.push(Matcher { name: METRIC_NAME.to_owned(), condition });
    }
    matchers
}

#[cfg(test)]
mod tests {
    use tributary_promql::{Options, parse};

    use super::*;

    const MINUTE: i64 = 60_000;

    /// The times, in minutes, that the first selector reads at 60 minutes.
    fn minutes(text: &str) -> (i64, i64) {
        let expr = parse(text, &Options::with_all_features()).unwrap();
        let reaches = reaches(&expr, Time::Instant { at: 60 * MINUTE });
        let Times(after, until) = reaches[0].times;
        (after / MINUTE, until / MINUTE)
    }

    #[test]
    fn windows_offsets_and_pins_say_when() {
        for (text, expected) in [
            ("a", (55, 60)),
            ("a offset 10m", (45, 50)),
            ("a offset -10m", (65, 70)),
            ("a @ 600", (5, 10)),
            ("a @ end() offset 1m", (54, 59)),
            ("a smoothed", (50, 65)),
            ("rate(a[20m])", (40, 60)),
            ("rate(a[20m] anchored)", (35, 65)),
            ("sum_over_time(a[20m:1m])", (35, 60)),
            ("sum_over_time(rate(a[7m])[20m:1m] offset 2m)", (31, 58)),
            ("sum_over_time((a @ 0)[20m:1m])", (-5, 0)),
            ("-(1 + topk(2, a))", (55, 60)),
        ] {
            assert_eq!(minutes(text), expected, "{text}");
        }
        let (after, until) = minutes("rate(a[step() * 5])");
        assert_eq!((after, until), (i64::MIN / MINUTE, i64::MAX / MINUTE));
    }

    #[test]
    fn a_range_query_reads_from_its_first_window_to_its_last() {
        let expr = parse("rate(a[5m]) + (a @ start())", &Options::default()).unwrap();
        let time = Time::Range { start: 10 * MINUTE, end: 20 * MINUTE, step: MINUTE };
        let reaches = reaches(&expr, time);
        assert_eq!(reaches[0].times, Times(5 * MINUTE, 20 * MINUTE));
        assert_eq!(reaches[0].function, Some("rate"));
        assert_eq!(reaches[1].times, Times(5 * MINUTE, 10 * MINUTE));
        assert_eq!(reaches[1].function, None);
    }

    #[test]
    fn times_are_after_the_first_and_up_to_the_second() {
        let times = Times(10, 20);
        let inside: Vec<i64> = (9..=21).filter(|t| times.contains(*t)).collect();
        assert_eq!(inside, (11..=20).collect::<Vec<_>>());
    }
}
