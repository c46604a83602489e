//! Evaluation of an expression over the steps of a query, bottom up, whole rows of values at a time.
//! Where the values of selectors come from is the leaves' business.

pub(crate) mod aggregate;
mod binary;
pub(crate) mod call;
mod error;
pub(crate) mod exec;
pub(crate) mod extended;
pub(crate) mod range;

use crate::annotation::Annotations;
use crate::frame::{Frame, Row};
use crate::limits::EvalLimits;
use crate::number::in_short;
use crate::span::Span;

pub use error::EvalError;

/// Evenly spaced instants, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The first.
    pub start: i64,
    /// From one to the next; positive.
    pub step: i64,
    /// How many, at least one.
    pub count: usize,
}

impl Steps {
    /// The instant with this number.
    pub fn at(&self, index: usize) -> i64 {
        #[expect(clippy::cast_possible_wrap, reason = "steps are limited to far less")]
        let index = index as i64;
        self.start + self.step * index
    }

    /// The numbers of the instants after one time, up to another.
    pub fn within(&self, after: i64, up_to: i64) -> std::ops::Range<usize> {
        let number = |t: i64| {
            // How many instants there are up to `t`.
            let count = (t - self.start).div_euclid(self.step) + 1;
            usize::try_from(count).unwrap_or(0).min(self.count)
        };
        let from = number(after);
        from..number(up_to).max(from)
    }

    /// All instants.
    pub fn iter(&self) -> impl Iterator<Item = i64> + use<> {
        let steps = *self;
        (0..steps.count).map(move |index| steps.at(index))
    }
}

/// What a part of an expression is worth at every step.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number at every step.
    Scalar(Vec<f64>),
    /// An instant vector at every step.
    Vector(Frame),
    /// A string.
    String(Vec<u8>),
}

impl Value {
    /// How many values it holds; strings count by their bytes.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::Scalar(values) => values.len(),
            Self::String(bytes) => bytes.len().div_ceil(size_of::<f64>()),
            Self::Vector(frame) => {
                frame.rows.len() * frame.rows.first().map_or(0, |row| row.values.len())
            }
        };
        size as u64
    }
}

/// What all parts of one evaluation share.
#[derive(Debug)]
pub struct Context {
    /// The steps that are evaluated.
    pub steps: Steps,
    /// Names of metrics go at the very end, so that functions further out can still ask for them.
    pub delayed_name_removal: bool,
    /// The query has one step only and keeps the order of its rows.
    pub is_instant: bool,
    /// What there is to say besides the answer.
    pub annotations: Annotations,
    /// How much rows in the making may take.
    pub limits: EvalLimits,
}

impl Context {
    /// Says that the metric's name has lost its meaning for a series.
    pub fn drop_name(&self, row: &mut Row) {
        row.drop_name = true;
        if !self.delayed_name_removal {
            row.labels = row.labels.without_metadata();
        }
    }
}

/// A function's call as evaluation needs it: which one, and where it and its arguments stand.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The function's name.
    pub name: &'static str,
    /// Where the call stands.
    pub span: Span,
    /// Where its arguments stand.
    pub args: Vec<Span>,
}

/// The warning about a quantile beyond 0 and 1.
pub(crate) fn bad_quantile(quantile: f64) -> String {
    format!("quantile value should be between 0 and 1, got {}", in_short(quantile))
}
