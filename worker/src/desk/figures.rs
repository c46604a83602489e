//! What the desk counts beside the intake, and everything of both at one moment.

use std::collections::BTreeMap;

use core_workcoord::intake::{CloseReason, Counts, Snapshot, Times};
use core_workcoord::measure::Histogram;
use core_workcoord::message::FailureCode;

use crate::slots::Outcome;

/// Everything there is to see of the desk.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) snapshot: Snapshot,
    pub(crate) counts: Counts,
    pub(crate) times: Times,
    pub(crate) figures: Figures,
}

/// What the desk counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// From announced to acknowledged.
    pub(crate) ready_to_ack: Histogram,
    /// Streams closed because their peer read too slowly.
    pub(crate) slow_readers: u64,
    /// Artifacts that were here already when they were asked for.
    pub(crate) reused: u64,
    /// Bytes of finished artifacts.
    pub(crate) artifact_bytes: u64,
    /// Rows of finished artifacts.
    pub(crate) artifact_rows: u64,
    /// Failures by what went wrong.
    pub(crate) failures: BTreeMap<FailureCode, u64>,
    /// Streams closed by why.
    pub(crate) closed: BTreeMap<CloseReason, u64>,
}

impl Figures {
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Finished(finished) => {
                self.reused += u64::from(finished.reused);
                self.artifact_bytes += finished.size_bytes;
                self.artifact_rows += finished.row_count;
            }
            Outcome::Failed(failure) => *self.failures.entry(failure.code).or_default() += 1,
            Outcome::Stopped => {}
        }
    }

    pub(super) fn closed(&mut self, reason: CloseReason) {
        *self.closed.entry(reason).or_default() += 1;
    }
}
