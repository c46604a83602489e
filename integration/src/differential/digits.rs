//! Tells a difference that comes from digits lost in a sum from any other. Ours are exact;
//! Prometheus' are compensated, which still loses what is far below the largest term. How large that
//! was is asked of Prometheus itself, with `max` and `min` in place of the sum.

use tributary_promql::functions::function_named;
use tributary_promql::op::AggregateOp;
use tributary_promql::{Data, Expr};
use tributary_promqltest::DataSet;

use super::arena::Asker;
use super::compare::{Difference, TOLERANCE, Verdict};
use super::culprit::Culprit;
use super::grammar::{Question, When};
use super::outcome::Outcome;
use super::peer::PeerError;

/// Whether two values differ by no more than what a sum of such terms may lose.
pub fn are_lost(
    asker: &mut Asker<'_>,
    data: &DataSet,
    culprit: &Culprit,
) -> Result<bool, PeerError> {
    let Verdict::Differ(Difference::Value { at, peer, ours, labels }) = &culprit.pair.verdict
    else {
        return Ok(false);
    };
    let Some(power) = power_of(&culprit.expr) else { return Ok(false) };
    let mut largest: f64 = 0.0;
    for extreme in ["max", "min"] {
        let Some(expr) = with_extreme(&culprit.expr, extreme) else { return Ok(false) };
        let (text, when) = (expr.to_string(), When::Instant(*at));
        let pair = asker.ask(data, &Question { text, when, ..culprit.question.clone() })?;
        let Outcome::Answered(told) = pair.peer else { return Ok(false) };
        let Data::Vector { series, .. } = told.data else { return Ok(false) };
        let found = series.iter().find(|(of, _)| of.without_name() == labels.without_name());
        let Some((_, value)) = found else { return Ok(false) };
        largest = largest.max(value.abs());
    }
    let error = match power {
        Power::Linear => (peer - ours).abs() / largest,
        Power::Square => (peer - ours).abs() / largest / largest,
        Power::Root => (peer * peer - ours * ours).abs() / largest / largest,
    };
    Ok(error <= TOLERANCE)
}

/// How a result grows with the terms of the sum in it.
#[derive(Clone, Copy)]
enum Power {
    Linear,
    Square,
    /// The root of a result that grows with the square.
    Root,
}

fn power_of(expr: &Expr) -> Option<Power> {
    let name = match expr {
        Expr::Paren(paren) => return power_of(&paren.expr),
        Expr::Aggregate(aggregate) => aggregate.op.text(),
        Expr::Call(call) => call.function.name.strip_suffix("_over_time")?,
        _ => return None,
    };
    match name {
        "sum" | "avg" => Some(Power::Linear),
        "stdvar" => Some(Power::Square),
        "stddev" => Some(Power::Root),
        _ => None,
    }
}

/// The expression with an extreme in place of what it is.
fn with_extreme(expr: &Expr, extreme: &str) -> Option<Expr> {
    match expr {
        Expr::Paren(paren) => with_extreme(&paren.expr, extreme),
        Expr::Aggregate(aggregate) => {
            let mut changed = aggregate.clone();
            changed.op = if extreme == "max" { AggregateOp::Max } else { AggregateOp::Min };
            Some(Expr::Aggregate(changed))
        }
        Expr::Call(call) => {
            let mut changed = call.clone();
            changed.function = function_named(&format!("{extreme}_over_time"))?;
            Some(Expr::Call(changed))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tributary_promql::parse;

    use super::*;
    use crate::differential::rewrite;

    #[test]
    fn an_extreme_takes_the_place_of_a_sum() {
        let extreme = |text: &str| {
            let expr = parse(text, &rewrite::options()).unwrap();
            power_of(&expr)?;
            Some(with_extreme(&expr, "min")?.to_string())
        };
        assert_eq!(extreme("(sum by (a) (b))").as_deref(), Some("min by (a) (b)"));
        assert_eq!(extreme("stddev_over_time(a[5m])").as_deref(), Some("min_over_time(a[5m])"));
        assert_eq!(extreme("rate(a[5m])"), None);
        assert_eq!(extreme("max_over_time(a[5m])"), None);
        assert_eq!(extreme("count(a)"), None);
    }
}
