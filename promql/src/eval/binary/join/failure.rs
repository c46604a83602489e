//! What can be wrong with a matching, and which of several errors is told.

use crate::eval::EvalError;
use crate::eval::binary::matching::MatchGroups;
use crate::expr::{Cardinality, VectorMatching};
use crate::frame::{Frame, SameLabels};

/// What is wrong, in the order in which Prometheus looks for it at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A group has two series on the one side.
    Duplicate {
        /// The later of the two rows. Earlier rows are looked at first.
        second: usize,
        /// The earlier one.
        first: usize,
        /// Their group.
        group: usize,
    },
    /// Several series of the many side lay claim to the same result.
    MultipleMatches,
    /// Results of different groups have the same labels.
    SameLabels,
}

/// An error at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failure {
    step: usize,
    kind: Kind,
}

/// Errors in the making; only the one that comes first is remembered.
#[derive(Debug, Default)]
pub(super) struct Failures {
    first: Option<Failure>,
}

impl Failures {
    /// Notes an error.
    pub(super) fn add(&mut self, step: usize, kind: Kind) {
        let failure = Failure { step, kind };
        if self.first.is_none_or(|first| failure < first) {
            self.first = Some(failure);
        }
    }

    /// The error that Prometheus would have met first.
    pub(super) fn first(&self) -> Option<Failure> {
        self.first
    }
}

impl Failure {
    /// In Prometheus' words.
    pub(super) fn error(
        self,
        one: &Frame,
        groups: &MatchGroups,
        matching: &VectorMatching,
    ) -> EvalError {
        match self.kind {
            Kind::Duplicate { second, first, group } => {
                let side = match matching.cardinality {
                    Cardinality::OneToMany => "left",
                    _ => "right",
                };
                let mut names = [first, second].map(|row| one.rows[row].labels.braced());
                names.sort();
                EvalError::invalid(format!(
                    "found duplicate series for the match group {} on the {side} hand-side of the \
                     operation: [{}];many-to-many matching not allowed: matching labels must be \
                     unique on one side",
                    groups.keys[group].braced(),
                    names.join(", "),
                ))
            }
            Kind::MultipleMatches => EvalError::invalid(match matching.cardinality {
                Cardinality::OneToOne => {
                    "multiple matches for labels: many-to-one matching must be explicit \
                     (group_left/group_right)"
                }
                _ => "multiple matches for labels: grouping labels must ensure unique matches",
            }),
            Kind::SameLabels => SameLabels.into(),
        }
    }
}
