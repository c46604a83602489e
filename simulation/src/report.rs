//! What came of one story: the figures, and the broken promise if there is one.

use core_workcoord::coordinator::{FetchResult, QueryFailure};

use crate::fault::FAULT_KINDS;
use crate::journal::Journal;
use crate::trace::Line;
use crate::violation::Violation;

/// What came of one story.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed of the story.
    pub seed: u64,
    /// The first broken promise.
    pub violation: Option<Violation>,
    /// Follows from every action of every node: two runs of a story have the same.
    pub fingerprint: u64,
    /// What happened, in numbers.
    pub tally: Tally,
    /// What happened, line by line, if that was asked for.
    pub trace: Vec<Line>,
    /// The journals of all nodes, if they were asked for.
    pub journals: Vec<Journal>,
}

macro_rules! tally {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What happened, in numbers.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Tally {
            /// Faults that came to pass, by [`crate::FaultKind::index`].
            pub faults: [u64; FAULT_KINDS],
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Tally {
            /// Each figure with its name, the faults aside.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// Adds another's figures.
            pub fn add(&mut self, other: &Self) {
                for (mine, theirs) in self.faults.iter_mut().zip(other.faults) {
                    *mine += theirs;
                }
                $(self.$field += other.$field;)*
            }
        }
    };
}

tally! {
    /// Simulated time.
    simulated_nanos,
    /// Events of the world.
    events,
    /// Actions of all nodes.
    actions,
    /// Queries that reached an API.
    queries,
    /// Queries answered.
    complete,
    /// Queries whose client left.
    cancelled,
    /// Queries not taken in.
    refused,
    /// Queries out of time.
    failed_deadline,
    /// Queries with an item that a worker gave up for good.
    failed_work,
    /// Queries with an item that was tried too often.
    failed_exhausted,
    /// Queries with an item that killed workers.
    failed_poisonous,
    /// Queries with an artifact that was too large.
    failed_too_large,
    /// Queries that died with their API.
    queries_lost,
    /// Items handed to the merge.
    delivered,
    /// Attempts sent to workers.
    assigned,
    /// Attempts after one that came to nothing.
    reassigned,
    /// Second attempts at stragglers.
    hedged,
    /// Attempts that workers did not take.
    rejected,
    /// Attempts cancelled.
    cancelled_work,
    /// Runs started.
    runs,
    /// Streams dialled.
    dials,
    /// Sessions that an API gave up.
    sessions_closed,
    /// Streams that a driver gave up: full buffers, unacknowledged bytes.
    driver_closes,
    /// Worker processes that ended.
    worker_deaths,
    /// Workers that left when asked to.
    exits,
    /// Of those, without cutting anything short.
    clean_exits,
    /// Workers killed by an item.
    poison_kills,
    /// Artifacts evicted.
    evictions,
    /// Lies told.
    lies,
    /// Clients told that nobody is there.
    scale_up_waits,
    /// Fetches begun.
    fetches,
    /// Fetches that were verified.
    fetches_verified,
    /// Fetches that failed.
    fetches_failed,
    /// Fetches of something else than was announced.
    fetches_mismatched,
    /// Fetches of something that was gone.
    fetches_gone,
}

impl Tally {
    pub(crate) fn count_failure(&mut self, failure: &QueryFailure) {
        match failure {
            QueryFailure::Deadline { .. } => self.failed_deadline += 1,
            QueryFailure::WorkFailed { .. } => self.failed_work += 1,
            QueryFailure::AttemptsExhausted { .. } => self.failed_exhausted += 1,
            QueryFailure::Poisonous { .. } => self.failed_poisonous += 1,
            QueryFailure::ArtifactTooLarge { .. } => self.failed_too_large += 1,
        }
    }

    pub(crate) fn count_fetch(&mut self, result: FetchResult) {
        match result {
            FetchResult::Verified => self.fetches_verified += 1,
            FetchResult::Failed => self.fetches_failed += 1,
            FetchResult::Mismatch => self.fetches_mismatched += 1,
            FetchResult::Gone => self.fetches_gone += 1,
        }
    }

    /// Queries that failed, for any reason.
    pub fn failed(&self) -> u64 {
        self.failed_deadline
            + self.failed_work
            + self.failed_exhausted
            + self.failed_poisonous
            + self.failed_too_large
    }
}
