//! A small engine for tests: series in memory, a query over them, in one cell or in several. What
//! queries ask and what must come of it is for the tests to say.
#![allow(dead_code, reason = "each test uses a part of it")]

use tributary_promql::eval::EvalError;
use tributary_promql::leaf::{Leaf, LeafPart, LeafRun, TimeSpan};
use tributary_promql::matcher::CompiledMatcher;
use tributary_promql::window::Samples;
use tributary_promql::{
    Answer, EvalFlow, EvalLimits, EvalOptions, Expr, Labels, Options, Plan, QuerySpec, parse, plan,
};

/// A series with its samples.
#[derive(Clone, Debug)]
pub struct Series {
    pub labels: Labels,
    pub ts: Vec<i64>,
    pub values: Vec<f64>,
}

impl Series {
    /// A series of some labels with these samples.
    pub fn new(pairs: &[(&str, &str)], samples: impl IntoIterator<Item = (i64, f64)>) -> Self {
        let (ts, values) = samples.into_iter().unzip();
        Self { labels: Labels::new(pairs.iter().copied()).expect("names differ"), ts, values }
    }
}

/// The answer to a text, or why there is none.
pub fn answer(
    text: &str,
    spec: QuerySpec,
    options: &EvalOptions,
    data: &[Series],
) -> Result<Answer, EvalError> {
    let expr = parse(text, &Options::with_all_features()).expect("a query that can be read");
    answer_in_cells(&expr, spec, options, data, &[])
}

/// The answer to an expression over data that is cut at these instants.
pub fn answer_in_cells(
    expr: &Expr,
    spec: QuerySpec,
    options: &EvalOptions,
    data: &[Series],
    cuts: &[i64],
) -> Result<Answer, EvalError> {
    let plan = plan(expr, spec, options)?;
    let spans = spans(cuts);
    let mut flow = EvalFlow::new(&plan, expected(&plan, &spans));
    for_each_part(&plan, data, &options.limits, &spans, |leaf, part| flow.add(leaf, part))?;
    flow.answer()
}

/// What a flow is told to expect: parts of all spans for every leaf.
fn expected(plan: &Plan, spans: &[TimeSpan]) -> Vec<Vec<(TimeSpan, u32)>> {
    vec![spans.iter().map(|span| (*span, 0)).collect(); plan.leaves.len()]
}

/// All of time, cut at these instants.
pub fn spans(cuts: &[i64]) -> Vec<TimeSpan> {
    let ends = cuts.iter().copied().chain([i64::MAX]);
    let starts = [i64::MIN].into_iter().chain(cuts.iter().copied());
    starts.zip(ends).map(|(from, to)| TimeSpan { from, to }).collect()
}

/// The parts of every leaf over every span, each with the number of its leaf.
pub fn parts(
    plan: &Plan,
    data: &[Series],
    limits: &EvalLimits,
    spans: &[TimeSpan],
) -> Result<Vec<(usize, LeafPart)>, EvalError> {
    let mut parts = Vec::new();
    for_each_part(plan, data, limits, spans, |leaf, part| parts.push((leaf, part)))?;
    Ok(parts)
}

fn for_each_part(
    plan: &Plan,
    data: &[Series],
    limits: &EvalLimits,
    spans: &[TimeSpan],
    mut each: impl FnMut(usize, LeafPart),
) -> Result<(), EvalError> {
    for (number, planned) in plan.leaves.iter().enumerate() {
        let matchers = matchers_of(&planned.leaf)?;
        for span in spans {
            let mut run = LeafRun::new(&planned.leaf, *span, 0, limits);
            for series in data.iter().filter(|series| fits(&matchers, &series.labels)) {
                let from = series.ts.partition_point(|t| *t < span.from);
                let to = series.ts.partition_point(|t| *t < span.to).max(from);
                if from < to {
                    let samples =
                        Samples { ts: &series.ts[from..to], values: &series.values[from..to] };
                    run.push(&series.labels, samples)?;
                }
            }
            each(number, run.finish());
        }
    }
    Ok(())
}

/// The answer that parts come to.
pub fn answer_of_parts(
    plan: &Plan,
    spans: &[TimeSpan],
    parts: Vec<(usize, LeafPart)>,
) -> Result<Answer, EvalError> {
    let mut flow = EvalFlow::new(plan, expected(plan, spans));
    for (leaf, part) in parts {
        flow.add(leaf, part);
    }
    flow.answer()
}

fn matchers_of(leaf: &Leaf) -> Result<Vec<CompiledMatcher>, EvalError> {
    let matchers = leaf.matchers.iter().map(|matcher| matcher.compile());
    matchers.collect::<Result<_, _>>().map_err(|error| EvalError::invalid(error.to_string()))
}

fn fits(matchers: &[CompiledMatcher], labels: &Labels) -> bool {
    matchers.iter().all(|matcher| matcher.matches(labels.value(matcher.name())))
}
