//! The evaluation tree: what is done with the values of the leaves, node by node, over a range of
//! steps at a time. No node needs anything of other steps than its own, subqueries aside, which
//! have steps of their own.

use std::ops::Range;

use super::aggregate::{AggregateNode, aggregate};
use super::range::{RangeNode, SmoothedNode};
use super::{CallSite, Context, EvalError, Steps, Value, binary, call};
use crate::annotation::Annotations;
use crate::expr::VectorMatching;
use crate::frame::{Frame, Row};
use crate::labels::Labels;
use crate::leaf::MergeSorted;
use crate::matcher::Matcher;
use crate::op::BinaryOp;
use crate::options::EvalOptions;
use crate::span::Span;
use crate::window::is_absent;

/// A node of the evaluation tree.
#[derive(Clone, Debug)]
pub enum ExecNode {
    /// A number.
    Number(f64),
    /// A string.
    String(Vec<u8>),
    /// The values of a leaf.
    Leaf(LeafNode),
    /// Something that is the same at every step: evaluated at one instant and repeated.
    Once {
        /// The instant.
        at: i64,
        /// What is evaluated there.
        node: Box<ExecNode>,
        /// Which of the query's parts of this kind it is.
        number: usize,
    },
    /// An instant selector with `smoothed`.
    Smoothed(SmoothedNode),
    /// A range function whose samples are folded here.
    Range(Box<RangeNode>),
    /// `absent` and `absent_over_time`: there where the argument has no series.
    Absent {
        /// The labels that the selector demands.
        labels: Labels,
        /// The argument.
        arg: Box<ExecNode>,
    },
    /// Any other function.
    Call {
        /// Which one, and where.
        site: CallSite,
        /// Its arguments.
        args: Vec<ExecNode>,
    },
    /// `info`.
    Info(Box<InfoNode>),
    /// An aggregation, or the end of one that leaves began.
    Aggregate(Box<AggregateNode>),
    /// An operator between two operands.
    Binary(Box<BinaryNode>),
    /// A minus sign.
    Negate(Box<ExecNode>),
}

/// The values of a leaf, and what there is to say about them.
#[derive(Clone, Debug)]
pub struct LeafNode {
    /// The leaf's number.
    pub leaf: usize,
    /// Where to point to if metrics don't look like counters.
    pub counters: Option<Span>,
    /// A quantile beyond 0 and 1, and where it stands.
    pub bad_quantile: Option<(f64, Span)>,
}

/// `info`: series with labels of others added.
#[derive(Clone, Debug)]
pub struct InfoNode {
    /// The series.
    pub base: ExecNode,
    /// The times of the samples of series with labels to add.
    pub times: ExecNode,
    /// The matchers of the labels to add.
    pub selector: Option<Vec<Matcher>>,
}

/// An operator between two operands.
#[derive(Clone, Debug)]
pub struct BinaryNode {
    /// The operator.
    pub op: BinaryOp,
    /// How series find each other.
    pub matching: Option<VectorMatching>,
    /// A comparison answers 0 or 1.
    pub return_bool: bool,
    /// The operand before it.
    pub lhs: ExecNode,
    /// The operand after it.
    pub rhs: ExecNode,
    /// Where it stands.
    pub span: Span,
}

/// An evaluation in progress.
pub(crate) struct Evaluator<'a> {
    pub(crate) merges: &'a [MergeSorted],
    pub(crate) options: &'a EvalOptions,
    pub(crate) annotations: Annotations,
    /// Values in hand: of operands that wait for the other one, and of what is known already.
    pub(crate) held: u64,
    /// What is the same at every step, once it is known.
    pub(crate) once: &'a mut Vec<Option<Value>>,
}

/// Some of the steps of a query or subquery.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// All of them.
    pub(crate) grid: Steps,
    /// Which ones.
    pub(crate) steps: Range<usize>,
}

impl Chunk {
    pub(crate) fn all(grid: Steps) -> Self {
        Self { grid, steps: 0..grid.count }
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn instants(&self) -> Steps {
        Steps { start: self.grid.at(self.steps.start), count: self.steps.len(), ..self.grid }
    }
}

impl ExecNode {
    /// What it is worth at some steps.
    pub(crate) fn eval(
        &self,
        evaluator: &mut Evaluator<'_>,
        chunk: &Chunk,
    ) -> Result<Value, EvalError> {
        let value = match self {
            Self::Number(number) => Value::Scalar(vec![*number; chunk.len()]),
            Self::String(bytes) => Value::String(bytes.clone()),
            Self::Leaf(node) => Value::Vector(node.eval(evaluator, chunk)?),
            Self::Once { at, node, number } => {
                let value = match evaluator.once[*number].take() {
                    Some(value) => value,
                    None => {
                        let grid = Steps { start: *at, step: 1, count: 1 };
                        let value = node.eval(evaluator, &Chunk::all(grid))?;
                        // It is kept for the steps to come.
                        evaluator.hold(&value);
                        value
                    }
                };
                // At each of several steps it takes so many times the memory.
                evaluator.check_room(value.size() * chunk.len() as u64)?;
                let repeated = repeated(&value, chunk.len());
                evaluator.once[*number] = Some(value);
                repeated
            }
            Self::Smoothed(node) => Value::Vector(node.eval(evaluator, chunk)?),
            Self::Range(node) => Value::Vector(node.eval(evaluator, chunk)?),
            Self::Absent { labels, arg } => {
                let arg = arg.vector(evaluator, chunk)?;
                evaluator.within(chunk, |ctx| {
                    Ok(Value::Vector(call::absent(labels.clone(), &arg, ctx)))
                })?
            }
            Self::Call { site, args } => {
                let before = evaluator.held;
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    let value = arg.eval(evaluator, chunk)?;
                    evaluator.hold(&value);
                    values.push(value);
                }
                evaluator.held = before;
                evaluator.within(chunk, |ctx| call::call(site, values, ctx))?
            }
            Self::Info(node) => Value::Vector(node.eval(evaluator, chunk)?),
            Self::Aggregate(node) => {
                let param = match &node.param {
                    Some(param) => Some(param.eval(evaluator, chunk)?),
                    None => None,
                };
                let before = evaluator.held;
                param.iter().for_each(|param| evaluator.hold(param));
                let frame = node.expr.vector(evaluator, chunk)?;
                evaluator.held = before;
                evaluator
                    .within(chunk, |ctx| Ok(Value::Vector(aggregate(node, param, frame, ctx)?)))?
            }
            Self::Binary(node) => {
                let lhs = node.lhs.eval(evaluator, chunk)?;
                let before = evaluator.held;
                evaluator.hold(&lhs);
                let rhs = node.rhs.eval(evaluator, chunk)?;
                evaluator.held = before;
                let BinaryNode { op, matching, return_bool, span, .. } = &**node;
                evaluator.within(chunk, |ctx| {
                    binary::binary(*op, matching.as_ref(), *return_bool, lhs, rhs, *span, ctx)
                })?
            }
            Self::Negate(node) => {
                let value = node.eval(evaluator, chunk)?;
                evaluator.within(chunk, |ctx| binary::negate(value, ctx))?
            }
        };
        evaluator.check_room(value.size())?;
        Ok(value)
    }

    /// What it is worth, being a vector.
    pub(crate) fn vector(
        &self,
        evaluator: &mut Evaluator<'_>,
        chunk: &Chunk,
    ) -> Result<Frame, EvalError> {
        match self.eval(evaluator, chunk)? {
            Value::Vector(frame) => Ok(frame),
            other => unreachable!("the parser lets only vectors through here, not {other:?}"),
        }
    }

    /// Its value if that is a number known from the text alone.
    pub(crate) fn constant(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Once { node, .. } => node.constant(),
            Self::Negate(node) => node.constant().map(|value| -value),
            Self::Binary(node) => {
                let (lhs, rhs) = (node.lhs.constant()?, node.rhs.constant()?);
                binary::of_scalars(node.op, vec![lhs], &[rhs]).ok().map(|values| values[0])
            }
            _ => None,
        }
    }
}

impl LeafNode {
    fn eval(&self, evaluator: &mut Evaluator<'_>, chunk: &Chunk) -> Result<Frame, EvalError> {
        let leaf = evaluator.merges[self.leaf].frame(chunk.steps.clone())?;
        if let Some(span) = self.counters {
            for (metric, kind) in &leaf.metrics {
                evaluator.note_counter(metric, kind, span);
            }
        }
        if let Some((quantile, span)) = self.bad_quantile
            && !leaf.frame.rows.is_empty()
        {
            evaluator.annotations.warn(span, super::bad_quantile(quantile));
        }
        Ok(leaf.frame)
    }
}

impl InfoNode {
    fn eval(&self, evaluator: &mut Evaluator<'_>, chunk: &Chunk) -> Result<Frame, EvalError> {
        let base = self.base.vector(evaluator, chunk)?;
        let before = evaluator.held;
        evaluator.held += (base.rows.len() * chunk.len()) as u64;
        let times = self.times.vector(evaluator, chunk)?;
        evaluator.held = before;
        let selector = self.selector.as_deref();
        evaluator.within(chunk, |ctx| call::info(base, &times, selector, ctx))
    }
}

impl Evaluator<'_> {
    /// Counts a value that stays in memory while something else is evaluated.
    pub(crate) fn hold(&mut self, value: &Value) {
        self.held += value.size();
    }

    /// Refuses more values than there may be besides those in hand.
    pub(crate) fn check_room(&self, more: u64) -> Result<(), EvalError> {
        self.options.limits.values(self.held.saturating_add(more))
    }

    /// Runs something with the context of a chunk.
    pub(crate) fn within<T>(
        &mut self,
        chunk: &Chunk,
        run: impl FnOnce(&mut Context) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let mut context = Context {
            steps: chunk.instants(),
            delayed_name_removal: self.options.delayed_name_removal,
            is_instant: chunk.grid.count == 1,
            annotations: std::mem::take(&mut self.annotations),
            limits: self.options.limits,
        };
        let result = run(&mut context);
        self.annotations = context.annotations;
        result
    }

    /// Says so if a metric that is used as a counter does not look like one.
    pub(crate) fn note_counter(&mut self, metric: &str, kind: &str, span: Span) {
        if metric.is_empty() {
            return;
        }
        if self.options.type_and_unit_labels {
            if kind != "counter" && kind != "histogram" {
                let message = format!(
                    "metric might not be a counter, __type__ label is not set to \"counter\" or \
                     \"histogram\", got {kind:?}: {metric:?}"
                );
                self.annotations.info(span, message);
            }
        } else if !["_total", "_sum", "_count", "_bucket"].iter().any(|end| metric.ends_with(end)) {
            let message = format!(
                "metric might not be a counter, name does not end in \
                 _total/_sum/_count/_bucket: {metric:?}"
            );
            self.annotations.info(span, message);
        }
    }
}

/// A value of one step at each of several.
fn repeated(value: &Value, count: usize) -> Value {
    match value {
        Value::Scalar(values) => Value::Scalar(vec![values[0]; count]),
        Value::String(bytes) => Value::String(bytes.clone()),
        Value::Vector(frame) => {
            let rows = frame.rows.iter().filter(|row| !is_absent(row.values[0]));
            let rows = rows.map(|row| Row {
                labels: row.labels.clone(),
                drop_name: row.drop_name,
                values: vec![row.values[0]; count],
            });
            Value::Vector(Frame { rows: rows.collect() })
        }
    }
}
