//! Every metric of an API node, as Prometheus' text. Figures are counted where things happen; here
//! they get their names.

mod serve;

use std::collections::BTreeMap;

use core_workcoord::coordinator::{Counts, WorkerView};
use core_workcoord::message::WorkerStatus;
use core_workcoord::roster::Standing;
use tributary_catalog::Freshness;
use tributary_process::metrics::Text;

pub use serve::{Sights, routes};

use crate::coordination::View;
use crate::discovery::SourceView;
use crate::figures::QueryFigures;
use crate::monitor::standing_name;

/// What every name begins with.
pub const PREFIX: &str = "tributary_api_";

/// Everything that is written down, as of one moment.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The coordinator.
    pub view: View,
    /// What users see of queries.
    pub queries: QueryFigures,
    /// Bytes that results take, of all queries.
    pub memory_bytes: u64,
    /// How current the catalog is.
    pub freshness: Freshness,
    /// Segments that are known.
    pub segments: usize,
    /// Where workers are looked for.
    pub sources: Vec<SourceView>,
}

/// Every ending of a query, so that a count is there before the first query ends that way.
pub const OUTCOMES: [&str; 15] = [
    "answered",
    "parse_error",
    "limit",
    "evaluation_error",
    "refused",
    "no_workers",
    "timeout",
    "work_failed",
    "attempts_exhausted",
    "poisonous",
    "artifact_too_large",
    "out_of_memory",
    "internal",
    "cancelled",
    "shutting_down",
];

/// Writes everything down.
pub fn write(text: &mut Text, sight: &Sight) {
    users(text, sight);
    streams(text, &sight.view);
    scheduling(text, &sight.view);
    artifacts(text, &sight.view);
    surroundings(text, sight);
}

fn users(text: &mut Text, sight: &Sight) {
    let queries = &sight.queries;
    let ended = |counts: &BTreeMap<&'static str, u64>| {
        OUTCOMES.map(|name| (name, counts.get(name).copied().unwrap_or_default()))
    };
    text.gauge("queries_running", "Queries under way.", queries.running);
    let help = "Queries by how they ended.";
    text.counters("queries_total", help, "outcome", ended(&queries.ended));
    let help = "From a question to the end of its answer.";
    text.histogram("query_seconds", help, &queries.total);
    let help = "From a question to its first result.";
    text.histogram("first_result_seconds", help, &queries.first_result);
    let help = "From a question to its work items.";
    text.histogram("planning_seconds", help, &queries.planning);
    let help = "Inquiries about series by how they ended.";
    text.counters("inquiries_total", help, "outcome", ended(&queries.inquiries));
    let help = "From an inquiry about series to its answer.";
    text.histogram("inquiry_seconds", help, &queries.inquiry_total);
}

fn streams(text: &mut Text, view: &View) {
    let (snapshot, counts, times) = (&view.snapshot, &view.counts, &view.times);
    text.gauge("streams_active", "Live control streams.", snapshot.active_streams);
    text.gauge("workers_in_rotation", "Workers that are given work.", snapshot.in_rotation);
    let of = |standing| {
        let stand = |worker: &&WorkerView| worker.standing == standing;
        (standing_name(standing), snapshot.workers.iter().filter(stand).count())
    };
    use Standing::{Accepting, Connecting, Draining, Lost, NotAccepting};
    let all = [Connecting, Accepting, NotAccepting, Draining, Lost].map(of);
    text.gauges("workers", "Workers that discovery names, by how they stand.", "standing", all);
    text.counter("dials_total", "Streams dialled.", counts.dials);
    text.counter("sessions_total", "Workers that introduced themselves.", counts.sessions);
    text.counter("disconnects_total", "Live sessions that ended.", counts.disconnects);
    text.counters(
        "sessions_closed_total",
        "Sessions that this node ended, by reason.",
        "reason",
        [
            ("silent", counts.lost_silent),
            ("violation", counts.violations),
            ("unanswered", counts.unanswered),
            ("duplicate_worker", counts.duplicate_workers),
        ],
    );
    text.counter("late_messages_total", "Messages about what is over.", counts.late);
    let help = "From a heartbeat to its echo.";
    text.histogram("heartbeat_rtt_seconds", help, &times.heartbeat_rtt);
    let help = "From a lost session to the next live one.";
    text.histogram("reconnect_seconds", help, &times.reconnect);
}

fn scheduling(text: &mut Text, view: &View) {
    let (snapshot, counts, times) = (&view.snapshot, &view.counts, &view.times);
    let help = "Work items that wait or are on their way.";
    text.gauge("queue_depth", help, snapshot.depth());
    text.gauge("queue_waiting", "Work items that wait.", snapshot.queued);
    text.gauge("queue_running", "Work items on their way.", snapshot.running);
    let help = "How long the work item that waits longest has waited.";
    text.gauge("queue_oldest_age_seconds", help, snapshot.oldest_age.as_secs_f64());
    text.counter("work_assigned_total", "Attempts sent to a worker.", counts.assigned);
    text.counters(
        "assignments_total",
        "Attempts by whether they went to the first choice of their key.",
        "choice",
        [
            ("first", counts.first_choice),
            ("other", counts.assigned.saturating_sub(counts.first_choice)),
        ],
    );
    let help = "Share of attempts that went to the first choice of their key.";
    text.gauge("affinity_hit_ratio", help, affinity(counts));
    text.counter("work_accepted_total", "Attempts a worker took.", counts.accepted);
    text.counter("work_started_total", "Attempts a worker started.", counts.started);
    text.counter("work_rejected_total", "Attempts a worker did not take.", counts.rejected);
    text.counters(
        "work_failed_total",
        "Attempts that failed, by whether they may be tried again.",
        "retryable",
        [("true", counts.failed_retryable), ("false", counts.failed_final)],
    );
    let known = counts.reassigned_lost + counts.reassigned_drained + counts.reassigned_artifact;
    text.counters(
        "work_reassigned_total",
        "Work items back in the queue, by reason.",
        "reason",
        [
            ("lost", counts.reassigned_lost),
            ("drained", counts.reassigned_drained),
            ("artifact", counts.reassigned_artifact),
            ("failed", counts.reassigned.saturating_sub(known)),
        ],
    );
    text.counter("work_hedged_total", "Second attempts at stragglers.", counts.hedged);
    text.counter("hedges_won_total", "Second attempts that were first.", counts.hedges_won);
    text.counter("work_delivered_total", "Work items handed to the merge.", counts.delivered);
    text.counter("cancels_total", "Cancellations sent.", counts.cancels);
    text.counter("cancels_confirmed_total", "Cancellations confirmed.", counts.cancels_confirmed);
    text.gauge("cancelling", "Cancellations not yet confirmed.", snapshot.cancelling);
    text.counters(
        "orders_total",
        "Queries and inquiries whose work was ordered, by how the coordinator ended them.",
        "outcome",
        [
            ("complete", counts.queries_complete),
            ("refused", counts.queries_refused),
            ("cancelled", counts.queries_cancelled),
            ("deadline", counts.queries_deadline),
            ("work_failed", counts.queries_work_failed),
            ("exhausted", counts.queries_exhausted),
            ("poisonous", counts.queries_poisonous),
            ("too_large", counts.queries_too_large),
        ],
    );
    text.counter("orders_begun_total", "Queries and inquiries with work.", counts.queries);
    let help = "From waiting to assigned.";
    text.histogram("assignment_wait_seconds", help, &times.assignment_wait);
    let help = "From a cancellation to its confirmation.";
    text.histogram("cancel_seconds", help, &times.cancel);
    let help = "From an order to its first work item's result.";
    text.histogram("first_delivery_seconds", help, &times.first_delivery);
    let help = "From an order to its last work item's result.";
    text.histogram("order_seconds", help, &times.query);
}

fn affinity(counts: &Counts) -> f64 {
    if counts.assigned == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let ratio = counts.first_choice as f64 / counts.assigned as f64;
    ratio
}

fn artifacts(text: &mut Text, view: &View) {
    let (snapshot, counts, times) = (&view.snapshot, &view.counts, &view.times);
    text.gauge("fetches", "Fetches under way.", snapshot.fetches);
    text.gauge("fetches_waiting", "Artifacts that wait for a fetch.", snapshot.fetches_waiting);
    text.gauge("fetch_bytes", "Bytes of the fetches under way.", snapshot.fetch_bytes);
    text.counter("artifacts_ready_total", "Artifacts announced.", counts.ready);
    text.counter("artifacts_fetched_total", "Artifacts fetched and verified.", counts.fetched);
    text.counter("fetches_failed_total", "Fetches that failed.", counts.fetch_failed);
    text.counter(
        "checksum_mismatches_total",
        "Artifacts whose bytes were wrong.",
        counts.mismatches,
    );
    let help = "Artifacts that were gone when asked for, or told to be.";
    text.counter("artifacts_lost_total", help, counts.artifacts_lost);
    let help = "Artifacts of work that was done already.";
    text.counter("artifact_duplicates_total", help, counts.duplicates);
    let help = "Artifacts that differ from the one that was first, of the same work.";
    text.counter("artifacts_diverged_total", help, counts.diverged);
    let help = "From an announcement to the fetch.";
    text.histogram("ready_to_fetch_seconds", help, &times.ready_to_fetch);
    let help = "From the start of a fetch to its verified end.";
    text.histogram("fetch_seconds", help, &times.fetch);
    // What workers said of themselves. Two API nodes with the same workers tell the same.
    let sum = |of: fn(&WorkerStatus) -> u64| -> u64 {
        snapshot.workers.iter().filter_map(|worker| worker.status.as_ref()).map(of).sum()
    };
    let queued = sum(|status| u64::from(status.queued));
    text.gauge("worker_queue_depth", "Work that waits on workers for a slot.", queued);
    let running = sum(|status| u64::from(status.running));
    text.gauge("worker_running", "Work that holds a slot on a worker.", running);
    text.gauge("worker_slots", "Slots of all workers.", sum(|status| u64::from(status.slots)));
    let spool = sum(|status| status.spool_bytes);
    text.gauge("worker_spool_bytes", "Disk that artifacts use on workers.", spool);
    let cache = sum(|status| status.cache_bytes);
    text.gauge("worker_cache_bytes", "Disk that segments use on workers.", cache);
    text.gauge("worker_free_bytes", "Disk free on workers.", sum(|status| status.free_bytes));
}

fn surroundings(text: &mut Text, sight: &Sight) {
    let Sight { queries, memory_bytes, freshness, segments, sources, .. } = sight;
    text.counter("artifact_bytes_total", "Bytes of fetched artifacts.", queries.artifact_bytes);
    text.counter("artifact_rows_total", "Rows of fetched artifacts.", queries.artifact_rows);
    text.gauge("result_memory_bytes", "Memory that results take.", memory_bytes);
    text.gauge("catalog_segments", "Segments that are known.", segments);
    let help = "Time since the catalog last said that there is nothing newer.";
    text.gauge("catalog_age_seconds", help, freshness.age.as_secs_f64());
    let help = "Failed tries to read the catalog since then.";
    text.gauge("catalog_failures", help, freshness.failures);
    let each = |of: fn(&SourceView) -> u64| sources.iter().map(move |it| (&it.name, of(it)));
    let help = "Workers that a source names.";
    text.gauges("discovery_endpoints", help, "source", each(|it| it.endpoints as u64));
    let help = "Whether a source failed when it was last asked.";
    text.gauges("discovery_failing", help, "source", each(|it| u64::from(it.is_failing)));
    let answers = sources.iter().map(|source| source.answers).sum();
    text.counter("discovery_answers_total", "Answers of all sources.", answers);
    let failures = sources.iter().map(|source| source.failures).sum();
    text.counter("discovery_failures_total", "Failures of all sources.", failures);
}

#[cfg(test)]
mod tests;
