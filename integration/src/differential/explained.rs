//! Differences that are known and right, each with its reason. Kept small: a difference that has no
//! place here is a bug on one side or the other.

use tributary_promql::Expr;

use super::compare::Difference;
use super::grammar::Question;
use super::outcome::Outcome;

/// A difference and everything known about it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What was asked.
    pub question: &'a Question,
    /// Its tree; none if we refuse it.
    pub expr: Option<&'a Expr>,
    /// What came of it there.
    pub peer: &'a Outcome,
    /// What came of it here.
    pub ours: &'a Outcome,
    /// Where they part.
    pub difference: &'a Difference,
}

/// A reason for which outcomes may differ.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The reason, as a sentence.
    pub reason: &'static str,
    /// Whether it is the reason of a difference.
    pub applies: fn(Seen<'_>) -> bool,
}

/// The reason that needs more questions to be found, so that it is no row of the table.
pub const ROUNDING: &str = "An operand differs within the tolerance, and what is computed from it \
                            (a comparison, a rank, a rounding, a difference) makes that visible.";

/// Every known reason.
pub const EXPLANATIONS: &[Explanation] = &[];

/// The reason of a difference, if it is a known one.
pub fn reason(seen: Seen<'_>) -> Option<&'static str> {
    EXPLANATIONS.iter().find(|known| (known.applies)(seen)).map(|known| known.reason)
}
