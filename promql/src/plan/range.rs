//! Range functions: as leaves where all is known in advance, otherwise over samples that come to the
//! evaluation.

use super::{Place, Planner};
use crate::eval::EvalError;
use crate::eval::exec::{ExecNode, LeafNode};
use crate::eval::extended::{ANCHORED_FUNCTIONS, SMOOTHED_FUNCTIONS};
use crate::eval::range::{RangeCall, RangeInput, RangeNode, WindowRule};
use crate::expr::{Expr, Extension};
use crate::leaf::{LeafOutput, NameRule};
use crate::value_type::ValueType;
use crate::window::RangeFunction;

impl Planner<'_> {
    pub(super) fn range_call(
        &mut self,
        name: &'static str,
        args: &[&Expr],
        place: &Place,
    ) -> Result<ExecNode, EvalError> {
        let Some(function) = RangeCall::named(name) else {
            return Err(EvalError::invalid(format!("{name} is not supported yet")));
        };
        let (ranges, others): (Vec<&Expr>, Vec<&Expr>) =
            args.iter().partition(|arg| arg.value_type() == ValueType::Matrix);
        let params =
            others.iter().map(|param| self.node(param, place)).collect::<Result<Vec<_>, _>>()?;
        if let Expr::Matrix(matrix) = ranges[0] {
            check_extension(matrix.vector.extension, name)?;
            if matrix.vector.extension.is_none()
                && let Some(known) = known_function(function, &params)
            {
                let range = matrix.range.positive(self.times)?.as_millis();
                let vector = &matrix.vector;
                let rule = self.rule(vector.offset.as_ref(), vector.at, range)?;
                // A window that is the same for all steps of something that is not.
                let is_fixed = rule.at.is_some() && place.grid.count > 1;
                if !is_fixed {
                    let output = LeafOutput::Value(known);
                    let keeps = function.keeps_name();
                    let name = if keeps { NameRule::Keep } else { self.dropped_name() };
                    let leaf = self.leaf(&vector.matchers, &rule, output, name, place);
                    let counters = known.wants_counters().then(|| args[0].span());
                    let bad_quantile = match known {
                        RangeFunction::Quantile(q) if !(0.0..=1.0).contains(&q) => {
                            Some((q, args[0].span()))
                        }
                        _ => None,
                    };
                    return Ok(ExecNode::Leaf(LeafNode { leaf, counters, bad_quantile }));
                }
            }
        }
        let (input, window, extension) = self.range_input(ranges[0], place)?;
        let first_arg = args[0].span();
        let node = RangeNode { function, params, input, window, extension, first_arg };
        Ok(ExecNode::Range(Box::new(node)))
    }

    /// The samples of a range vector, which come to the evaluation.
    pub(super) fn range_input(
        &mut self,
        expr: &Expr,
        place: &Place,
    ) -> Result<(RangeInput, WindowRule, Option<Extension>), EvalError> {
        match expr.without_parens() {
            Expr::Matrix(matrix) => {
                let range = matrix.range.positive(self.times)?.as_millis();
                let vector = &matrix.vector;
                let rule = self.rule(vector.offset.as_ref(), vector.at, range)?;
                let leaf = self.samples_leaf(vector, &rule, range, place);
                Ok((RangeInput::Leaf(leaf), rule, vector.extension))
            }
            Expr::Subquery(subquery) => {
                let range = subquery.range.positive(self.times)?.as_millis();
                let rule = self.rule(subquery.offset.as_ref(), subquery.at, range)?;
                let inner = self.subquery_place(subquery, &rule, place)?;
                let node = self.node(&subquery.expr, &inner)?;
                Ok((RangeInput::Subquery { node, grid: inner.grid }, rule, None))
            }
            other => unreachable!("a range vector is a selector or a subquery, not {other:?}"),
        }
    }
}

/// The function with its parameters, if these are known from the text and make sense.
fn known_function(function: RangeCall, params: &[ExecNode]) -> Option<RangeFunction> {
    let params = params.iter().map(ExecNode::constant).collect::<Option<Vec<_>>>()?;
    function.with(&params).ok()
}

fn check_extension(extension: Option<Extension>, name: &str) -> Result<(), EvalError> {
    let allowed: &[&str] = match extension {
        None => return Ok(()),
        Some(Extension::Anchored) => &ANCHORED_FUNCTIONS,
        Some(Extension::Smoothed) => &SMOOTHED_FUNCTIONS,
    };
    if allowed.contains(&name) {
        return Ok(());
    }
    let modifier = extension.map_or("", Extension::text);
    let allowed = allowed.join(", ");
    Err(EvalError::invalid(format!(
        "{modifier} modifier can only be used with: {allowed} - not with {name}"
    )))
}
