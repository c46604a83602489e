//! Finds the part of an expression where a difference begins. The parts are asked for by themselves,
//! from the outside in: a part that differs although all its operands are the same to the last bit
//! is to blame, and a reason must fit that part.
//!
//! Sums may differ within the tolerance; a comparison, a rank or a difference on top of them can
//! then come out either way without either side being wrong. Where every operand that is not the
//! same is such a one, the difference is put down to rounding. This can hide a bug in a part whose
//! operand differs in its last bits in this very question; the other thousands of questions with
//! that part do not have such operands.

use tributary_promql::expr::{Paren, Subquery};
use tributary_promql::{Expr, ValueType};
use tributary_promqltest::DataSet;

use super::arena::{Asker, Pair};
use super::compare::{Difference, Verdict};
use super::grammar::{Question, When};
use super::peer::PeerError;
use super::rewrite;

/// Where a difference begins.
#[derive(Clone, Debug)]
pub enum Blame {
    /// Nowhere: it is the same on both sides to the last bit.
    None,
    /// An operand differs in its last bits.
    Rounding,
    /// This part differs by itself.
    Part(Box<Culprit>),
}

/// A part that differs although its operands are the same.
#[derive(Clone, Debug)]
pub struct Culprit {
    /// The part.
    pub expr: Expr,
    /// The question that shows it, with the subquery around the part.
    pub question: Question,
    /// What came of it.
    pub pair: Pair,
}

/// Where the difference of a pair begins.
pub fn blame(
    asker: &mut Asker<'_>,
    data: &DataSet,
    question: &Question,
    pair: &Pair,
) -> Result<Blame, PeerError> {
    let Verdict::Differ(difference) = &pair.verdict else { return Ok(Blame::None) };
    let Some(expr) = rewrite::tree(question) else { return Ok(Blame::None) };
    let instants = question.when.instants();
    let last = instants.last().copied().unwrap_or_default();
    let mut search = Search {
        asker,
        data,
        question,
        t: difference.time().unwrap_or(last),
        about_notes: matches!(difference, Difference::Notes { .. }),
    };
    search.below(&expr, &|expr| expr, question, pair)
}

struct Search<'a, 'b> {
    asker: &'a mut Asker<'b>,
    data: &'a DataSet,
    question: &'a Question,
    /// The time at which windows are looked at.
    t: i64,
    /// Annotations differ, not values.
    about_notes: bool,
}

impl Search<'_, '_> {
    /// The blame for a part that is known to differ. `within` puts a part into the innermost
    /// subquery around it.
    fn below(
        &mut self,
        expr: &Expr,
        within: &dyn Fn(Expr) -> Expr,
        question: &Question,
        pair: &Pair,
    ) -> Result<Blame, PeerError> {
        let mut rounding = false;
        for child in expr.children() {
            let found = match expr {
                Expr::Subquery(subquery) => {
                    let around = |part: Expr| {
                        let window = Subquery { expr: part, ..(**subquery).clone() };
                        Expr::Subquery(Box::new(window))
                    };
                    self.of(child, &around)?
                }
                _ => self.of(child, within)?,
            };
            match found {
                // A selector that differs inside a window was asked for as one: the window differs.
                Blame::Part(part)
                    if matches!(expr, Expr::Subquery(_))
                        && matches!(part.expr, Expr::Vector(_)) => {}
                part @ Blame::Part(_) => return Ok(part),
                Blame::Rounding => rounding = true,
                Blame::None => {}
            }
        }
        if rounding {
            return Ok(Blame::Rounding);
        }
        // No operand is to blame, so it is the part itself.
        let (expr, question, pair) = (expr.clone(), question.clone(), pair.clone());
        Ok(Blame::Part(Box::new(Culprit { expr, question, pair })))
    }

    fn of(&mut self, expr: &Expr, within: &dyn Fn(Expr) -> Expr) -> Result<Blame, PeerError> {
        if matches!(expr, Expr::Number(_) | Expr::String(_) | Expr::Matrix(_)) {
            return Ok(Blame::None);
        }
        let whole = match expr {
            // A window can stand in no other, so it is looked at where the difference is.
            Expr::Subquery(_) => expr.clone(),
            Expr::Paren(_) => within(expr.clone()),
            _ => within(Expr::Paren(Paren { expr: Box::new(expr.clone()), span: expr.span() })),
        };
        let mut question = Question { text: whole.to_string(), ..self.question.clone() };
        if whole.value_type() == ValueType::Matrix {
            question.when = When::Instant(self.t);
        }
        let pair = self.asker.ask(self.data, &question)?;
        match &pair.verdict {
            Verdict::SameBits => Ok(Blame::None),
            Verdict::Close => Ok(Blame::Rounding),
            Verdict::Differ(Difference::Notes { .. }) if !self.about_notes => Ok(Blame::None),
            Verdict::Differ(Difference::Order) => Ok(Blame::None),
            Verdict::Differ(_) => self.below(expr, within, &question, &pair),
        }
    }
}
