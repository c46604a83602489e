//! `info`: the series it adds labels from are looked up at the time its first argument looks at.

use super::{Place, Planner};
use crate::eval::EvalError;
use crate::eval::call::info_matchers;
use crate::eval::exec::{ExecNode, InfoNode, LeafNode};
use crate::eval::range::WindowRule;
use crate::expr::{Expr, Subquery, VectorSelector};
use crate::leaf::{LeafOutput, NameRule};
use crate::matcher::Matcher;
use crate::window::RangeFunction;

impl Planner<'_> {
    pub(super) fn info(&mut self, args: &[&Expr], place: &Place) -> Result<ExecNode, EvalError> {
        let base = self.node(args[0], place)?;
        let selector: Option<Vec<Matcher>> = match args.get(1) {
            Some(Expr::Vector(vector)) => Some(vector.matchers.clone()),
            _ => None,
        };
        let matchers = info_matchers(selector.as_deref());
        let rule = self.info_rule(args[0])?;
        let is_fixed = rule.at.is_some() && place.grid.count > 1;
        let steps = if is_fixed { place.once() } else { *place };
        let output = LeafOutput::Value(RangeFunction::TsOfNewest);
        let leaf = self.leaf(&matchers, &rule, output, NameRule::Keep, &steps);
        let mut times = ExecNode::Leaf(LeafNode { leaf, counters: None, bad_quantile: None });
        if is_fixed {
            times = self.once(times, place);
        }
        Ok(ExecNode::Info(Box::new(InfoNode { base, times, selector })))
    }

    /// When the first selector of an expression is evaluated: its own offset and those of the
    /// subqueries around it, up to the first `@`.
    fn info_rule(&self, expr: &Expr) -> Result<WindowRule, EvalError> {
        let lookback = self.options.lookback;
        let mut around = Vec::new();
        let Some(vector) = first_selector(expr, &mut around) else {
            return Ok(WindowRule { range: lookback, offset: 0, at: None, lookback });
        };
        let mut rule = self.rule(vector.offset.as_ref(), vector.at, lookback)?;
        for subquery in around.into_iter().rev() {
            if rule.at.is_some() {
                break;
            }
            let outer = self.rule(subquery.offset.as_ref(), subquery.at, lookback)?;
            rule.offset += outer.offset;
            rule.at = outer.at;
        }
        Ok(rule)
    }
}

/// The first selector, and the subqueries around it from the outermost on.
fn first_selector<'e>(
    expr: &'e Expr,
    around: &mut Vec<&'e Subquery>,
) -> Option<&'e VectorSelector> {
    match expr {
        Expr::Vector(vector) => return Some(vector),
        Expr::Matrix(matrix) => return Some(&matrix.vector),
        Expr::Subquery(subquery) => around.push(subquery),
        _ => {}
    }
    let found = expr.children().into_iter().find_map(|child| first_selector(child, around));
    if found.is_none() && matches!(expr, Expr::Subquery(_)) {
        around.pop();
    }
    found
}
