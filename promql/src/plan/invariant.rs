//! Which parts of a query are the same at every step. They are evaluated once.

use crate::expr::Expr;

/// Functions whose result depends on the step even if their arguments don't.
const OF_THE_STEP: [&str; 12] = [
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "hour",
    "minute",
    "month",
    "predict_linear",
    "start_timestamp",
    "time",
    "timestamp",
    "year",
];

/// Functions that say something about the query and are numbers once it is known.
const OF_THE_QUERY: [&str; 4] = ["end", "range", "start", "step"];

/// Whether an expression is the same at every step. As in Prometheus, the parameter of an
/// aggregation does not count.
pub(super) fn is_invariant(expr: &Expr) -> bool {
    match expr {
        Expr::Vector(vector) => vector.at.is_some(),
        Expr::Matrix(matrix) => matrix.vector.at.is_some(),
        Expr::Subquery(subquery) => subquery.at.is_some(),
        Expr::Aggregate(aggregate) => is_invariant(&aggregate.expr),
        Expr::Binary(binary) => is_invariant(&binary.lhs) && is_invariant(&binary.rhs),
        Expr::Paren(paren) => is_invariant(&paren.expr),
        Expr::Unary(unary) => is_invariant(&unary.expr),
        Expr::Number(_) | Expr::String(_) => true,
        Expr::Call(call) if OF_THE_QUERY.contains(&call.function.name) => true,
        Expr::Call(call) => {
            let of_samples = call.function.name == "timestamp"
                && matches!(call.args[0].without_parens(), Expr::Vector(_));
            (of_samples || !OF_THE_STEP.contains(&call.function.name))
                && call.args.iter().all(is_invariant)
        }
    }
}

/// Whether evaluating it once saves anything.
pub(super) fn is_worth_it(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::String(_) | Expr::Matrix(_) | Expr::Subquery(_) => false,
        Expr::Call(call) => !OF_THE_QUERY.contains(&call.function.name),
        Expr::Paren(paren) => is_worth_it(&paren.expr),
        Expr::Unary(unary) => is_worth_it(&unary.expr),
        Expr::Vector(_) | Expr::Aggregate(_) | Expr::Binary(_) => true,
    }
}
