//! Everything the coordinator counts and times, for metrics to read. Counts only go up.

use crate::measure::Histogram;

macro_rules! counts {
    ($(#[$top:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$top])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Each count with its name.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// Adds another's counts.
            pub fn merge(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}
pub(crate) use counts;

counts! {
    /// What happened so far, in numbers.
    Counts {
        /// Streams dialled.
        dials,
        /// Workers that introduced themselves.
        sessions,
        /// Live sessions that ended, for any reason.
        disconnects,
        /// Sessions lost for silence.
        lost_silent,
        /// Sessions closed because the worker broke the protocol.
        violations,
        /// Sessions closed because an answer did not come.
        unanswered,
        /// Sessions refused because a worker of that name had one.
        duplicate_workers,
        /// Attempts sent to a worker.
        assigned,
        /// Attempts that went to their key's first choice.
        first_choice,
        /// Attempts a worker took.
        accepted,
        /// Attempts a worker started.
        started,
        /// Attempts a worker did not take.
        rejected,
        /// Attempts that made an artifact.
        ready,
        /// Attempts that failed and may be tried again.
        failed_retryable,
        /// Attempts that failed for good.
        failed_final,
        /// Items back in the queue, for any reason but a rejection.
        reassigned,
        /// Of those, because the session was lost.
        reassigned_lost,
        /// Of those, because the worker drains.
        reassigned_drained,
        /// Of those, because the artifact could not be had or was wrong.
        reassigned_artifact,
        /// Second attempts at stragglers.
        hedged,
        /// Second attempts that were first.
        hedges_won,
        /// Messages about what is over.
        late,
        /// Artifacts announced for work that was done already.
        duplicates,
        /// Of those, with another checksum than the first: a worker is not deterministic.
        diverged,
        /// Cancellations sent.
        cancels,
        /// Cancellations confirmed.
        cancels_confirmed,
        /// Artifacts fetched and verified.
        fetched,
        /// Fetches that failed.
        fetch_failed,
        /// Artifacts whose bytes were wrong.
        mismatches,
        /// Artifacts that were gone when asked for, or told to be.
        artifacts_lost,
        /// Items handed to the merge.
        delivered,
        /// Queries submitted.
        queries,
        /// Queries not taken in.
        queries_refused,
        /// Queries answered.
        queries_complete,
        /// Queries whose client left.
        queries_cancelled,
        /// Queries out of time.
        queries_deadline,
        /// Queries that failed because a worker said no retry could help.
        queries_work_failed,
        /// Queries that failed because an item was tried too often.
        queries_exhausted,
        /// Queries that failed because an item killed workers.
        queries_poisonous,
        /// Queries that failed because an artifact was too large.
        queries_too_large,
    }
}

/// How long things took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From waiting to assigned.
    pub assignment_wait: Histogram,
    /// From a heartbeat to its echo.
    pub heartbeat_rtt: Histogram,
    /// From a lost session to the next live one.
    pub reconnect: Histogram,
    /// From `CancelWork` to `WorkCancelled`.
    pub cancel: Histogram,
    /// From `WorkReady` to its fetch.
    pub ready_to_fetch: Histogram,
    /// From the start of a fetch to its verified end.
    pub fetch: Histogram,
    /// From submission to the first delivery.
    pub first_delivery: Histogram,
    /// From submission to the end, of answered queries.
    pub query: Histogram,
}
