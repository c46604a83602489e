//! `absent` and `absent_over_time`: whether there is any series at all is found out where the
//! samples are.

use std::collections::BTreeMap;

use super::{Place, Planner, may_collide};
use crate::aggregate::Reduction;
use crate::eval::EvalError;
use crate::eval::exec::ExecNode;
use crate::expr::{Expr, Grouping};
use crate::labels::Labels;
use crate::leaf::{Pushed, PushedOp};
use crate::matcher::{Condition, METRIC_NAME, Matcher};
use crate::value_type::ValueType;

impl Planner<'_> {
    pub(super) fn absent(&mut self, arg: &Expr, place: &Place) -> Result<ExecNode, EvalError> {
        let labels = match arg {
            Expr::Vector(vector) => demanded_labels(&vector.matchers),
            Expr::Matrix(matrix) => demanded_labels(&matrix.vector.matchers),
            _ => Labels::default(),
        };
        let node = if arg.value_type() == ValueType::Matrix {
            self.range_call("absent_over_time", &[arg], place)?
        } else {
            self.node(arg, place)?
        };
        if let ExecNode::Leaf(leaf) = &node
            && self.options.pushdown
            && !may_collide(&self.leaves[leaf.leaf].leaf)
        {
            let pushed = &mut self.leaves[leaf.leaf].leaf.pushed;
            let op = PushedOp::Reduce(Reduction::Group);
            pushed.get_or_insert(Pushed { op, grouping: Grouping::default() });
        }
        Ok(ExecNode::Absent { labels, arg: Box::new(node) })
    }
}

/// The labels a selector demands one value of. A label that is demanded twice has none.
fn demanded_labels(matchers: &[Matcher]) -> Labels {
    let mut demanded: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for matcher in matchers.iter().filter(|matcher| matcher.name != METRIC_NAME) {
        let first = !demanded.contains_key(matcher.name.as_str());
        match &matcher.condition {
            Condition::Equal(value) if first => demanded.insert(&matcher.name, Some(value)),
            Condition::Equal(_) => demanded.insert(&matcher.name, None),
            // Another kind of matcher takes the label away, and a later `=` may set it.
            _ => demanded.get_mut(matcher.name.as_str()).and_then(|held| held.take().map(Some)),
        };
    }
    let pairs = demanded.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
    Labels::from_sorted(pairs)
}
