//! Which series of two vectors belong together, and what a pair of them is called.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::expr::{Cardinality, MatchingLabels, VectorMatching};
use crate::frame::{Frame, Row};
use crate::labels::Labels;

/// The series of two vectors in groups: those of a group agree on the labels that are compared.
#[derive(Debug)]
pub(super) struct MatchGroups {
    /// What the series of each group agree on.
    pub(super) keys: Vec<Labels>,
    /// The group of every row of one side.
    pub(super) first: Vec<usize>,
    /// The group of every row of the other side.
    pub(super) second: Vec<usize>,
}

impl MatchGroups {
    /// Finds the groups, once for all steps.
    pub(super) fn of(labels: &MatchingLabels, first: &Frame, second: &Frame) -> Self {
        let mut keys = Vec::new();
        // Only ever asked for one key; the order of groups is that of the rows.
        let mut numbers: BTreeMap<Labels, usize> = BTreeMap::new();
        let mut group = |row: &Row| match numbers.entry(labels.key(&row.labels)) {
            Entry::Occupied(number) => *number.get(),
            Entry::Vacant(number) => {
                keys.push(number.key().clone());
                *number.insert(keys.len() - 1)
            }
        };
        let first = first.rows.iter().map(&mut group).collect();
        let second = second.rows.iter().map(&mut group).collect();
        Self { keys, first, second }
    }
}

impl MatchingLabels {
    /// What a series is compared by.
    fn key(&self, labels: &Labels) -> Labels {
        match self {
            Self::On(names) => labels.only(names),
            Self::Ignoring(names) => labels.without(names),
        }
    }
}

/// How results are called.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultLabels<'a> {
    /// How the series found each other.
    pub(super) matching: &'a VectorMatching,
    /// The metric's name, type and unit go at once.
    pub(super) drop_metadata: bool,
}

impl ResultLabels<'_> {
    /// The labels for a series of the many side and its partner on the one side.
    pub(super) fn of(&self, many: &Labels, one: &Labels) -> Labels {
        let mut labels = many.clone();
        if self.matching.cardinality == Cardinality::OneToOne {
            labels = match &self.matching.labels {
                MatchingLabels::On(names) => labels.only(names),
                // Unlike the key of a group, this keeps the metric's name.
                MatchingLabels::Ignoring(names) => {
                    labels.filtered(|name| !names.iter().any(|ignored| ignored == name))
                }
            };
        }
        if self.drop_metadata {
            labels = labels.without_metadata();
        }
        for name in &self.matching.include {
            labels = labels.with(name, one.value(name));
        }
        labels
    }
}
