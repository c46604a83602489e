//! Random questions: expressions that are right in type by construction, over the metrics that
//! `data` makes, and the times to ask them for. Covers the language as Prometheus 3.5 has it, floats
//! only; what that version lacks (`anchored`, `smoothed`, `fill`, some functions) is left out.

mod aggregate;
mod call;
mod operator;
mod selector;
mod words;

use super::data::World;
use super::dice::Dice;

const MINUTE_MS: i64 = 60_000;

/// One query: what is asked, and for when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The expression.
    pub text: String,
    /// The times it is asked for.
    pub when: When,
    /// How far back an instant selector looks, in milliseconds.
    pub lookback: i64,
    /// Names of metrics are dropped at the very end (`promql-delayed-name-removal`).
    pub delayed_name_removal: bool,
}

/// The times a query is asked for, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// One instant.
    Instant(i64),
    /// Evenly spaced instants.
    Range {
        /// The first.
        start: i64,
        /// No instant is later.
        end: i64,
        /// From one to the next; positive.
        step: i64,
    },
}

/// How far back an instant selector looks unless a query says otherwise.
pub const LOOKBACK_MS: i64 = 5 * MINUTE_MS;

impl Question {
    /// A random one about a data set.
    pub fn new(dice: &mut Dice, world: &World) -> Self {
        let when = When::new(dice, world);
        let lookback = if dice.percent(85) { LOOKBACK_MS } else { dice.between(1, 500) * 1000 };
        let delayed_name_removal = dice.percent(40);
        let mut grammar = Grammar { dice, base: world.base, span: world.span, subqueries: 0 };
        let mut text = grammar.root(matches!(when, When::Instant(_)));
        if grammar.dice.percent(2) {
            let spoiled = grammar.spoiled(&text);
            // What is left must not reach into the days of other data sets.
            if !reaches_far(&spoiled) {
                text = spoiled;
            }
        }
        Self { text, when, lookback, delayed_name_removal }
    }
}

impl When {
    fn new(dice: &mut Dice, world: &World) -> Self {
        let (whole_seconds, moment_inside) = (dice.percent(70), dice.percent(75));
        let mut moment = |low: i64, high: i64| {
            let t = world.base + dice.between(low, high);
            if whole_seconds { t / 1000 * 1000 } else { t }
        };
        // Mostly where there are samples; sometimes from a little before the first up to a little
        // after the last can be seen.
        let start = if moment_inside {
            moment(5 * MINUTE_MS, world.span)
        } else {
            moment(-MINUTE_MS, world.span + 7 * MINUTE_MS)
        };
        if dice.percent(50) {
            return Self::Instant(start);
        }
        let step = *dice.pick(&[15_000, 30_000, 60_000, 60_000, 97_000, 120_000, 300_000, 1_234]);
        let start = start - dice.between(0, 20 * MINUTE_MS) / 1000 * 1000;
        Self::Range { start, end: start + step * dice.between(0, 24) + dice.between(0, 900), step }
    }

    /// The instants, all of them.
    pub fn instants(self) -> Vec<i64> {
        match self {
            Self::Instant(t) => vec![t],
            Self::Range { start, end, step } => {
                std::iter::successors(Some(start), |t| Some(t + step))
                    .take_while(|t| *t <= end)
                    .collect()
            }
        }
    }

    /// The same so many milliseconds later.
    pub fn moved(self, by: i64) -> Self {
        match self {
            Self::Instant(t) => Self::Instant(t + by),
            Self::Range { start, end, step } => {
                Self::Range { start: start + by, end: end + by, step }
            }
        }
    }
}

/// A text in which some number of digits may be a duration of many hours.
fn reaches_far(text: &str) -> bool {
    text.split(|char: char| !char.is_ascii_digit()).any(|digits| (5..10).contains(&digits.len()))
}

/// Makes expressions. Every method gives text of one type; `depth` says how many levels may still
/// come below.
struct Grammar<'a> {
    dice: &'a mut Dice,
    base: i64,
    span: i64,
    /// Subqueries around the place that is being made.
    subqueries: usize,
}

impl Grammar<'_> {
    fn root(&mut self, instant: bool) -> String {
        let depth = self.dice.weighted(&[(10, 1), (35, 2), (35, 3), (20, 4)]);
        if instant {
            match self.dice.below(100) {
                0..4 => return self.matrix(depth),
                4..5 => return self.string(),
                5..10 => return self.scalar(depth),
                10..17 => return self.sorted(depth),
                _ => {}
            }
        } else if self.dice.percent(4) {
            return self.scalar(depth);
        }
        self.vector(depth)
    }

    /// An instant vector.
    fn vector(&mut self, depth: usize) -> String {
        let Some(below) = depth.checked_sub(1) else { return self.selector() };
        match self.dice.below(100) {
            0..8 => self.selector(),
            8..30 => self.over_time(below),
            30..47 => self.aggregation(below),
            47..69 => self.operation(below),
            69..80 => self.elementwise(below),
            80..86 => self.relabelled(below),
            86..92 => self.of_histogram(below),
            92..95 => self.absence(below),
            95..96 => format!("vector({})", self.scalar(below)),
            96..98 => self.with_information(below),
            98..99 => self.sorted(below),
            _ => format!("({})", self.vector(below)),
        }
    }

    /// A range vector: a selector's, or a subquery's.
    fn matrix(&mut self, depth: usize) -> String {
        let chance = [25, 60, 0][self.subqueries];
        if depth > 0 && self.dice.percent(chance) {
            return self.subquery(depth - 1);
        }
        self.matrix_selector()
    }

    /// A number at every step.
    fn scalar(&mut self, depth: usize) -> String {
        let Some(below) = depth.checked_sub(1) else { return self.number() };
        match self.dice.below(100) {
            0..45 => self.number(),
            45..52 => "time()".to_owned(),
            52..55 => "pi()".to_owned(),
            55..72 => format!("scalar({})", self.vector(below)),
            72..76 => format!("({})", self.scalar(below)),
            76..82 => {
                let sign = *self.dice.pick(&["-", "+", "- "]);
                format!("{sign}{}", self.scalar(below))
            }
            _ => self.scalar_operation(below),
        }
    }

    /// A text that is likely not to be an expression any more: something is taken away.
    fn spoiled(&mut self, text: &str) -> String {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let from = *self.dice.pick(&places);
        let to = from
            + text[from..].chars().take(1 + self.dice.below(3)).map(char::len_utf8).sum::<usize>();
        format!("{}{}", &text[..from], &text[to..])
    }
}

#[cfg(test)]
mod tests {
    use tributary_promql::{Expr, Features, Options, parse};

    use super::*;

    fn questions(count: usize) -> impl Iterator<Item = Question> {
        let world = World::new(1, 19_000);
        let mut dice = Dice::new(1, 2);
        (0..count).map(move |_| Question::new(&mut dice, &world))
    }

    fn walk(expr: &Expr, see: &mut impl FnMut(&Expr)) {
        see(expr);
        for child in expr.children() {
            walk(child, see);
        }
    }

    #[test]
    fn nearly_every_question_is_well_formed() {
        let features =
            Features { extended_range_selectors: false, fill_modifiers: false, ..Features::ALL };
        let options = Options { features, ..Options::default() };
        let refused: Vec<String> = questions(3000)
            .filter_map(|question| {
                let error = parse(&question.text, &options).err()?;
                Some(format!("{}\n    {error}", question.text))
            })
            .collect();
        assert!(refused.len() > 15, "spoiled ones are refused");
        assert!(refused.len() < 150, "{} of 3000:\n{}", refused.len(), refused.join("\n"));
    }

    #[test]
    fn every_function_and_aggregation_of_prometheus_3_5_is_asked_for() {
        let mut seen = std::collections::BTreeSet::new();
        for question in questions(12_000) {
            if let Ok(expr) = parse(&question.text, &Options::with_all_features()) {
                walk(&expr, &mut |part| {
                    match part {
                        Expr::Call(call) => seen.insert(call.function.name),
                        Expr::Aggregate(aggregate) => seen.insert(aggregate.op.text()),
                        Expr::Binary(binary) => seen.insert(binary.op.text()),
                        _ => false,
                    };
                });
            }
        }
        let unknown_to_3_5 = super::super::coverage::NOT_IN_3_5;
        let missing: Vec<_> = tributary_promql::functions::functions()
            .iter()
            .map(|function| function.name)
            .filter(|name| !seen.contains(name) && !unknown_to_3_5.contains(name))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
        for name in unknown_to_3_5 {
            assert!(!seen.contains(name), "{name} would only be refused");
        }
    }
}
