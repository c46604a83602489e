//! What came of a question, on either side, in one shape: an answer with its annotations, or an
//! error. Comparing is `compare`'s.

use std::collections::BTreeSet;

use tributary_promql::annotation::Level;
use tributary_promql::{Answer, Data};

/// What came of a question.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// An answer.
    Answered(Told),
    /// An error, in the words users see.
    Failed(String),
}

/// An answer with everything that was said besides.
#[derive(Clone, Debug)]
pub struct Told {
    /// The values.
    pub data: Data,
    /// Warnings, with their places in the query.
    pub warnings: BTreeSet<String>,
    /// Infos, with their places in the query.
    pub infos: BTreeSet<String>,
}

impl Outcome {
    /// The outcome of an engine of ours for a query of this text.
    pub fn of(answer: Result<Answer, String>, query: &str) -> Self {
        match answer {
            Err(error) => Self::Failed(error),
            Ok(Answer { data, annotations }) => {
                let texts = |level| annotations.texts(level, query).into_iter().collect();
                let (warnings, infos) = (texts(Level::Warning), texts(Level::Info));
                Self::Answered(Told { data, warnings, infos })
            }
        }
    }

    /// How many values there are. Numbers and strings count as one.
    pub fn values(&self) -> usize {
        match self {
            Self::Failed(_) => 0,
            Self::Answered(told) => match &told.data {
                Data::Scalar { .. } | Data::String { .. } => 1,
                Data::Vector { series, .. } => series.len(),
                Data::Matrix(series) => series.iter().map(|points| points.ts.len()).sum(),
            },
        }
    }
}
