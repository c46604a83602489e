//! What an expression contains.

use std::collections::BTreeSet;

use tributary_promql::Expr;
use tributary_promql::duration_expr::DurationValue;

pub(super) fn contains_subquery(part: &Expr) -> bool {
    matches!(part, Expr::Subquery(_)) || part.children().into_iter().any(contains_subquery)
}

/// A selector or a subquery with arithmetic in its offset.
pub(super) fn has_computed_offset(part: &Expr) -> bool {
    let offset = match part {
        Expr::Vector(vector) => &vector.offset,
        Expr::Matrix(matrix) => &matrix.vector.offset,
        Expr::Subquery(subquery) => &subquery.offset,
        _ => &None,
    };
    matches!(offset, Some(DurationValue::Computed(_)))
}

pub(super) fn contains_paren(part: &Expr) -> bool {
    matches!(part, Expr::Paren(_)) || part.children().into_iter().any(contains_paren)
}

/// `absent` of a selector with several matchers of one label, here or further down. Further down,
/// since asking for the part alone prints it, and with it sorts the matchers.
pub(super) fn has_ambiguous_absence(part: &Expr) -> bool {
    let matchers = match part {
        Expr::Call(call) if call.function.name.starts_with("absent") => {
            match without_parens(&call.args[0]) {
                Expr::Vector(vector) => vector.matchers.as_slice(),
                Expr::Matrix(matrix) => matrix.vector.matchers.as_slice(),
                _ => &[],
            }
        }
        _ => &[],
    };
    let names: BTreeSet<&str> = matchers.iter().map(|one| one.name.as_str()).collect();
    names.len() < matchers.len() || part.children().into_iter().any(has_ambiguous_absence)
}

/// A function or an aggregation stands in it more than once.
pub(super) fn repeats(part: &Expr) -> bool {
    fn collect<'a>(part: &'a Expr, names: &mut Vec<&'a str>) {
        match part {
            Expr::Call(call) => names.push(call.function.name),
            Expr::Aggregate(aggregate) => names.push(aggregate.op.text()),
            _ => {}
        }
        part.children().into_iter().for_each(|child| collect(child, names));
    }
    let mut names = Vec::new();
    collect(part, &mut names);
    names.iter().collect::<BTreeSet<_>>().len() < names.len()
}

pub(super) fn contains_call(part: &Expr, name: &str) -> bool {
    matches!(part, Expr::Call(call) if call.function.name == name)
        || part.children().into_iter().any(|child| contains_call(child, name))
}

pub(super) fn without_parens(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => without_parens(&paren.expr),
        other => other,
    }
}

/// A subquery, moved by an offset, of something with a selector that is fixed by `@`.
pub(super) fn is_moved_window_of_fixed(part: &Expr) -> bool {
    match part {
        Expr::Subquery(subquery) => subquery.offset.is_some() && contains_at(&subquery.expr),
        _ => false,
    }
}

fn contains_at(part: &Expr) -> bool {
    let at = match part {
        Expr::Vector(vector) => vector.at,
        Expr::Matrix(matrix) => matrix.vector.at,
        Expr::Subquery(subquery) => subquery.at,
        _ => None,
    };
    at.is_some() || part.children().into_iter().any(contains_at)
}

/// The number that stands there.
pub(super) fn literal(part: &Expr) -> Option<f64> {
    match without_parens(part) {
        Expr::Number(number) => Some(number.value),
        _ => None,
    }
}
