//! From an expression to leaves and an evaluation tree. Decides what is pushed to where the samples
//! are, which parts are the same at every step, and the steps of subqueries.

mod absent;
mod info;
mod invariant;
mod range;

use crate::aggregate::Rank;
use crate::duration::PromDuration;
use crate::duration_expr::{DurationValue, QueryTimes};
use crate::eval::aggregate::{AggregateNode, label_name, reduction_of};
use crate::eval::exec::{BinaryNode, ExecNode, LeafNode};
use crate::eval::range::{RangeInput, SmoothedNode, WindowRule};
use crate::eval::{CallSite, EvalError, Steps};
use crate::expr::{Aggregate, At, Binary, Call, Expr, Extension, Sign, Subquery, VectorSelector};
use crate::leaf::{Leaf, LeafOutput, NameRule, Pushed, PushedOp};
use crate::matcher::{Condition, METRIC_NAME, Matcher};
use crate::op::AggregateOp;
use crate::options::EvalOptions;
use crate::value_type::ValueType;
use crate::window::RangeFunction;

/// Instants further from 1970 than this are refused, so that arithmetic on them can't overflow.
const FARTHEST: i64 = i64::MAX / 16;

/// Over which instants a query is evaluated, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySpec {
    /// The first instant.
    pub start: i64,
    /// No instant after this one.
    pub end: i64,
    /// From one instant to the next; none for an instant query.
    pub step: Option<i64>,
}

impl QuerySpec {
    /// At one instant.
    pub const fn instant(t: i64) -> Self {
        Self { start: t, end: t, step: None }
    }

    /// From one instant to another.
    pub const fn range(start: i64, end: i64, step: i64) -> Self {
        Self { start, end, step: Some(step) }
    }
}

/// A query, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What runs where the samples are.
    pub leaves: Vec<PlannedLeaf>,
    pub(crate) root: Root,
    pub(crate) grid: Steps,
    pub(crate) is_instant: bool,
    /// How many parts are evaluated once.
    pub(crate) once: usize,
    pub(crate) options: EvalOptions,
}

/// A leaf, and the samples it needs for a step of the query.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLeaf {
    /// The leaf.
    pub leaf: Leaf,
    /// Up to when samples are needed.
    pub reach: Reach,
}

/// Up to when samples are needed for a step of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// So many milliseconds after the step; negative for before.
    After(i64),
    /// Up to an instant, the same for all steps.
    Fixed(i64),
}

impl Reach {
    fn back(self, offset: i64) -> Self {
        match self {
            Self::After(reach) => Self::After(reach - offset),
            Self::Fixed(at) => Self::Fixed(at - offset),
        }
    }

    fn of(self, rule: &WindowRule) -> Self {
        rule.at.map_or(self, Self::Fixed).back(rule.offset)
    }
}

/// What the query as a whole is.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    /// Values at every step.
    Value(ExecNode),
    /// The samples of a window.
    Samples { input: RangeInput, window: WindowRule, extension: Option<Extension> },
}

/// Where in the query a part stands: its steps, and how far they reach.
#[derive(Clone, Copy, Debug)]
struct Place {
    grid: Steps,
    reach: Reach,
}

impl Place {
    /// The first of its steps alone.
    fn once(&self) -> Self {
        let at = self.grid.start;
        let reach = match self.reach {
            Reach::After(reach) => Reach::Fixed(at + reach),
            fixed @ Reach::Fixed(_) => fixed,
        };
        Self { grid: Steps { start: at, step: 1, count: 1 }, reach }
    }
}

/// Plans a query.
pub fn plan(expr: &Expr, spec: QuerySpec, options: &EvalOptions) -> Result<Plan, EvalError> {
    let grid = grid_of(spec, options)?;
    let value_type = expr.value_type();
    if spec.step.is_some() && !matches!(value_type, ValueType::Scalar | ValueType::Vector) {
        return Err(EvalError::invalid(format!(
            "invalid expression type {:?} for range query, must be Scalar or instant Vector",
            value_type.documented_name()
        )));
    }
    let times = QueryTimes {
        step: PromDuration::from_millis(spec.step.unwrap_or(0)),
        range: PromDuration::from_millis(spec.end - spec.start),
    };
    let mut planner = Planner { options, times, spec, leaves: Vec::new(), once: 0 };
    let place = Place { grid, reach: Reach::After(0) };
    let root = match expr.without_parens() {
        Expr::Matrix(_) | Expr::Subquery(_) => {
            let (input, window, extension) = planner.range_input(expr, &place)?;
            Root::Samples { input, window, extension }
        }
        _ => Root::Value(planner.node(expr, &place)?),
    };
    let is_instant = spec.step.is_none();
    let Planner { leaves, once, .. } = planner;
    Ok(Plan { leaves, root, grid, is_instant, once, options: options.clone() })
}

fn grid_of(spec: QuerySpec, options: &EvalOptions) -> Result<Steps, EvalError> {
    let near = -FARTHEST..=FARTHEST;
    if !near.contains(&spec.start) || !near.contains(&spec.end) {
        return Err(EvalError::invalid("start or end of the query is out of range"));
    }
    if !(0..=FARTHEST).contains(&options.lookback) {
        return Err(EvalError::invalid("lookback of the query is out of range"));
    }
    if !(1..=FARTHEST).contains(&options.subquery_step) {
        return Err(EvalError::invalid("step of subqueries must be positive"));
    }
    let step = spec.step.unwrap_or(1);
    if step <= 0 || step > FARTHEST {
        return Err(EvalError::invalid("step of the query must be positive"));
    }
    if spec.end < spec.start {
        return Err(EvalError::invalid("end of the query is before its start"));
    }
    let count = (spec.end - spec.start) / step + 1;
    options.limits.steps(u64::try_from(count).unwrap_or(u64::MAX))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(Steps { start: spec.start, step, count })
}

struct Planner<'a> {
    options: &'a EvalOptions,
    times: QueryTimes,
    spec: QuerySpec,
    leaves: Vec<PlannedLeaf>,
    /// How many parts are evaluated once.
    once: usize,
}

impl Planner<'_> {
    /// The node of an expression; one that is the same at every step is evaluated once.
    fn node(&mut self, expr: &Expr, place: &Place) -> Result<ExecNode, EvalError> {
        if place.grid.count > 1 && invariant::is_invariant(expr) && invariant::is_worth_it(expr) {
            let node = self.step_node(expr, &place.once())?;
            return Ok(self.once(node, place));
        }
        self.step_node(expr, place)
    }

    /// A node that is evaluated at the first of some steps and repeated.
    fn once(&mut self, node: ExecNode, place: &Place) -> ExecNode {
        self.once += 1;
        ExecNode::Once { at: place.grid.start, node: Box::new(node), number: self.once - 1 }
    }

    fn step_node(&mut self, expr: &Expr, place: &Place) -> Result<ExecNode, EvalError> {
        match expr {
            Expr::Paren(paren) => self.node(&paren.expr, place),
            Expr::Number(number) => Ok(ExecNode::Number(number.value)),
            Expr::String(string) => Ok(ExecNode::String(string.bytes.clone())),
            Expr::Unary(unary) => {
                let node = self.node(&unary.expr, place)?;
                Ok(match unary.sign {
                    Sign::Plus => node,
                    Sign::Minus => ExecNode::Negate(Box::new(node)),
                })
            }
            Expr::Vector(vector) => self.vector(vector, place),
            Expr::Binary(binary) => self.binary(binary, place),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, place),
            Expr::Call(call) => self.call(call, place),
            Expr::Matrix(_) | Expr::Subquery(_) => {
                unreachable!("the parser lets range vectors stand in functions only")
            }
        }
    }

    fn vector(&mut self, vector: &VectorSelector, place: &Place) -> Result<ExecNode, EvalError> {
        let lookback = self.options.lookback;
        let rule = self.rule(vector.offset.as_ref(), vector.at, lookback)?;
        if vector.extension == Some(Extension::Smoothed) {
            let leaf = self.samples_leaf(vector, &rule, 0, place);
            return Ok(ExecNode::Smoothed(SmoothedNode { leaf, window: rule }));
        }
        let output = LeafOutput::Value(RangeFunction::Last);
        let leaf = self.leaf(&vector.matchers, &rule, output, NameRule::Keep, place);
        Ok(ExecNode::Leaf(LeafNode { leaf, counters: None, bad_quantile: None }))
    }

    fn binary(&mut self, binary: &Binary, place: &Place) -> Result<ExecNode, EvalError> {
        Ok(ExecNode::Binary(Box::new(BinaryNode {
            op: binary.op,
            matching: binary.matching.clone(),
            return_bool: binary.return_bool,
            lhs: self.node(&binary.lhs, place)?,
            rhs: self.node(&binary.rhs, place)?,
            span: binary.span(),
        })))
    }

    fn aggregate(&mut self, node: &Aggregate, place: &Place) -> Result<ExecNode, EvalError> {
        let param = match &node.param {
            Some(param) => Some(self.node(param, place)?),
            None => None,
        };
        if let Some(ExecNode::String(label)) = &param {
            label_name(label)?;
        }
        let expr = self.node(&node.expr, place)?;
        let param_span =
            node.param.as_ref().map_or(node.span, |param| param.without_parens().span());
        if let ExecNode::Leaf(leaf) = &expr
            && self.leaves[leaf.leaf].leaf.pushed.is_none()
            && !may_collide(&self.leaves[leaf.leaf].leaf)
            && let Some(op) = self.pushed_op(node.op, param.as_ref())
        {
            let grouping = node.grouping.clone();
            let ends_there = !matches!(op, PushedOp::Rank(_));
            self.leaves[leaf.leaf].leaf.pushed = Some(Pushed { op, grouping });
            if ends_there {
                return Ok(expr);
            }
        }
        let (op, grouping) = (node.op, node.grouping.clone());
        Ok(ExecNode::Aggregate(Box::new(AggregateNode { op, param, expr, grouping, param_span })))
    }

    /// The aggregation as leaves can begin it.
    fn pushed_op(&self, op: AggregateOp, param: Option<&ExecNode>) -> Option<PushedOp> {
        if !self.options.pushdown {
            return None;
        }
        if let Some(reduction) = reduction_of(op) {
            return Some(PushedOp::Reduce(reduction));
        }
        match (op, param) {
            (AggregateOp::CountValues, Some(ExecNode::String(label))) => {
                Some(PushedOp::CountValues(label_name(label).ok()?))
            }
            (AggregateOp::Topk | AggregateOp::Bottomk, Some(param)) => {
                let count = param.constant()?;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few")]
                let count = (1.0..=1e9).contains(&count).then_some(count as usize)?;
                Some(PushedOp::Rank(Rank { count, largest: op == AggregateOp::Topk }))
            }
            _ => None,
        }
    }

    fn call(&mut self, call: &Call, place: &Place) -> Result<ExecNode, EvalError> {
        let args: Vec<&Expr> = call.args.iter().map(Expr::without_parens).collect();
        if let Some(number) = self.of_the_query(call.function.name) {
            return Ok(ExecNode::Number(number));
        }
        match (call.function.name, args.as_slice()) {
            ("timestamp", [Expr::Vector(vector)]) => return self.timestamp(vector, place),
            ("start_timestamp", _) => {
                return Err(EvalError::invalid("start timestamps are not supported yet"));
            }
            ("absent" | "absent_over_time", [arg]) => return self.absent(arg, place),
            ("info", _) => return self.info(&args, place),
            _ => {}
        }
        let is_range = |arg: &&Expr| arg.value_type() == ValueType::Matrix;
        if args.iter().any(is_range) {
            return self.range_call(call.function.name, &args, place);
        }
        let site = CallSite {
            name: call.function.name,
            span: call.span,
            args: args.iter().map(|arg| arg.span()).collect(),
        };
        let nodes = args.iter().map(|arg| self.node(arg, place)).collect::<Result<Vec<_>, _>>()?;
        Ok(ExecNode::Call { site, args: nodes })
    }

    /// Functions of the query itself.
    fn of_the_query(&self, name: &str) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "instants stay below 2^53 ms")]
        let seconds = |ms: i64| ms as f64 / 1000.0;
        Some(match name {
            "start" => seconds(self.spec.start),
            "end" => seconds(self.spec.end),
            "range" => seconds(self.spec.end - self.spec.start),
            "step" if self.spec.start == self.spec.end => 0.0,
            "step" => seconds(self.spec.step.unwrap_or(0)),
            _ => return None,
        })
    }

    /// `timestamp` of a selector: when its samples were.
    fn timestamp(&mut self, vector: &VectorSelector, place: &Place) -> Result<ExecNode, EvalError> {
        let mut rule = self.rule(vector.offset.as_ref(), vector.at, self.options.lookback)?;
        if rule.at.is_some() {
            // As in Prometheus, where `@` makes an offset void here.
            rule.offset = 0;
        }
        let output = LeafOutput::Value(RangeFunction::TsOfNewest);
        let leaf = self.leaf(&vector.matchers, &rule, output, self.dropped_name(), place);
        Ok(ExecNode::Leaf(LeafNode { leaf, counters: None, bad_quantile: None }))
    }

    fn dropped_name(&self) -> NameRule {
        if self.options.delayed_name_removal { NameRule::DropLater } else { NameRule::DropNow }
    }

    fn rule(
        &self,
        offset: Option<&DurationValue>,
        at: Option<At>,
        range: i64,
    ) -> Result<WindowRule, EvalError> {
        let offset = match offset {
            Some(offset) => offset.signed(self.times)?.as_millis(),
            None => 0,
        };
        let at = at.map(|at| match at {
            At::Timestamp(t) => t.clamp(-FARTHEST, FARTHEST),
            At::Start => self.spec.start,
            At::End => self.spec.end,
        });
        Ok(WindowRule { range, offset, at, lookback: self.options.lookback })
    }

    /// A leaf with the windows of a rule at every step.
    fn leaf(
        &mut self,
        matchers: &[Matcher],
        rule: &WindowRule,
        output: LeafOutput,
        name: NameRule,
        place: &Place,
    ) -> usize {
        let matchers = matchers.to_vec();
        let windows = rule.windows(place.grid);
        let leaf = Leaf { matchers, windows, output, name, pushed: None };
        self.leaves.push(PlannedLeaf { leaf, reach: place.reach.of(rule) });
        self.leaves.len() - 1
    }

    /// A leaf of the samples that windows with extended edges need. `range` is the window's own.
    fn samples_leaf(
        &mut self,
        vector: &VectorSelector,
        rule: &WindowRule,
        range: i64,
        place: &Place,
    ) -> usize {
        let lookback = self.options.lookback;
        let (before, after) = match vector.extension {
            None => (0, 0),
            Some(Extension::Anchored) => (lookback, 0),
            Some(Extension::Smoothed) => (lookback, lookback),
        };
        let range = range + before + after;
        let rule = WindowRule { range, offset: rule.offset - after, ..*rule };
        self.leaf(&vector.matchers, &rule, LeafOutput::Samples, NameRule::Keep, place)
    }

    /// The steps of a subquery.
    fn subquery_place(
        &self,
        subquery: &Subquery,
        rule: &WindowRule,
        place: &Place,
    ) -> Result<Place, EvalError> {
        let step = match &subquery.step {
            Some(step) => step.positive(self.times)?.as_millis(),
            None => self.options.subquery_step,
        };
        let windows = rule.windows(place.grid);
        let after = windows.get(0).start;
        let end = windows.get(windows.count.saturating_sub(1)).end;
        // Steps lie on multiples of their distance, whatever the query's own steps are.
        let mut start = after / step * step;
        if start <= after {
            start += step;
        }
        let count = if end < start || place.grid.count == 0 { 0 } else { (end - start) / step + 1 };
        let count = u64::try_from(count).unwrap_or(0);
        self.options.limits.subquery_steps(count)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Place { grid: Steps { start, step, count }, reach: place.reach.of(rule) })
    }
}

/// Whether series of a leaf may end up with the same labels: their names go at once, and no matcher
/// makes sure that there is only one. That is an error which only all series together can show, so
/// they must not be aggregated apart.
fn may_collide(leaf: &Leaf) -> bool {
    let one_name = |matcher: &Matcher| {
        matcher.name == METRIC_NAME && matches!(matcher.condition, Condition::Equal(_))
    };
    leaf.name == NameRule::DropNow && !leaf.matchers.iter().any(one_name)
}
