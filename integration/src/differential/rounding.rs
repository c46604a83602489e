//! Tells a difference that comes from the last bits of an operand from one of its own. Sums may
//! differ within the tolerance; a comparison, a rank or a difference on top of them can then come
//! out either way without either side being wrong.
//!
//! The parts of the expression are asked for by themselves, from the outside in. Where a part
//! differs although all its operands are the same to the last bit, the difference is real. This
//! can hide a bug in a part whose operand differs in its last bits in this very question; the other
//! thousands of questions with that part do not have such operands.

use tributary_promql::expr::Subquery;
use tributary_promql::{Expr, ValueType};

use super::arena::Asker;
use super::compare::{Difference, Verdict};
use super::data::Samples;
use super::grammar::{Question, When};
use super::peer::PeerError;
use super::rewrite;

/// What a part of an expression has to do with a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    /// It is the same on both sides to the last bit.
    None,
    /// It differs in its last bits, or because an operand does.
    Rounding,
    /// It differs by itself.
    Real,
}

/// Whether a difference comes from the last bits of operands alone.
pub fn is_rounding(
    asker: &mut Asker<'_>,
    samples: &Samples,
    question: &Question,
    difference: &Difference,
) -> Result<bool, PeerError> {
    let Some(expr) = rewrite::tree(question) else { return Ok(false) };
    let instants = question.when.instants();
    let last = instants.last().copied().unwrap_or_default();
    let mut search = Search { asker, samples, question, t: difference.time().unwrap_or(last) };
    Ok(search.below(&expr, &|expr| expr)? == Blame::Rounding)
}

struct Search<'a, 'b> {
    asker: &'a mut Asker<'b>,
    samples: &'a Samples,
    question: &'a Question,
    /// The time at which windows are looked at.
    t: i64,
}

impl Search<'_, '_> {
    /// The blame of an expression that is known to differ. `within` puts a part into the subqueries
    /// around it.
    fn below(&mut self, expr: &Expr, within: &dyn Fn(Expr) -> Expr) -> Result<Blame, PeerError> {
        let mut blame = Blame::None;
        for child in expr.children() {
            let found = match expr {
                Expr::Subquery(subquery) => {
                    let around = |part: Expr| {
                        within(Expr::Subquery(Box::new(Subquery {
                            expr: part,
                            ..(**subquery).clone()
                        })))
                    };
                    self.of(child, &around)?
                }
                _ => self.of(child, within)?,
            };
            match found {
                Blame::Real => return Ok(Blame::Real),
                Blame::Rounding => blame = Blame::Rounding,
                Blame::None => {}
            }
        }
        // No operand is to blame, so it is the expression itself.
        Ok(if blame == Blame::None { Blame::Real } else { blame })
    }

    fn of(&mut self, expr: &Expr, within: &dyn Fn(Expr) -> Expr) -> Result<Blame, PeerError> {
        if matches!(expr, Expr::Number(_) | Expr::String(_) | Expr::Matrix(_)) {
            return Ok(Blame::None);
        }
        let whole = match expr {
            // A window of it is what is asked for in any case.
            Expr::Subquery(_) => within(expr.clone()),
            _ => within(parenthesised(expr)),
        };
        let mut question = Question { text: whole.to_string(), ..self.question.clone() };
        if whole.value_type() == ValueType::Matrix {
            question.when = When::Instant(self.t);
        }
        match self.asker.ask(self.samples, &question)?.verdict {
            Verdict::SameBits => Ok(Blame::None),
            Verdict::Close => Ok(Blame::Rounding),
            Verdict::Differ(Difference::Notes { .. } | Difference::Order) => Ok(Blame::None),
            Verdict::Differ(_) => self.below(expr, within),
        }
    }
}

/// The expression as it can stand before a window.
fn parenthesised(expr: &Expr) -> Expr {
    match expr {
        Expr::Paren(_) => expr.clone(),
        _ => Expr::Paren(tributary_promql::expr::Paren {
            expr: Box::new(expr.clone()),
            span: expr.span(),
        }),
    }
}
