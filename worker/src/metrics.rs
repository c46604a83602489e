//! Every metric of a worker, as Prometheus' text. Figures are counted where things happen; here
//! they get their names.

use core_workcoord::coordinator::Violation;
use core_workcoord::intake::CloseReason;
use core_workcoord::message::FailureCode;
use tributary_process::metrics::Text;
use tributary_process::tls::TlsFigures;

use crate::desk::View;

/// What every name begins with.
pub const PREFIX: &str = "tributary_worker_";

/// What is known of the connections below the streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionCounts {
    pub(crate) open: usize,
    pub(crate) refused: u64,
}

/// Writes down how TLS of the ports does, each under its name.
pub(crate) fn write_tls(text: &mut Text, ports: &[(&'static str, TlsFigures)]) {
    if ports.is_empty() {
        return;
    }
    text.counters(
        "tls_handshakes_failed_total",
        "Connections that came to no handshake.",
        "port",
        ports.iter().map(|(port, figures)| (*port, figures.failed)),
    );
    let stale = ports.iter().any(|(_, figures)| figures.stale);
    text.gauge(
        "tls_files_unusable",
        "Whether the certificate files can't be used and older ones are in use.",
        u8::from(stale),
    );
}

/// Writes down everything of the desk and its connections.
pub(crate) fn write(text: &mut Text, view: &View, connections: ConnectionCounts) {
    execution(text, view);
    streams(text, view, connections);
    artifacts(text, view);
}

fn execution(text: &mut Text, view: &View) {
    let (status, counts, times) = (&view.snapshot.status, &view.counts, &view.times);
    text.gauge("slots", "Leaves that can run at once.", status.slots);
    text.gauge("queue_depth", "Work accepted and waiting for a slot.", status.queued);
    text.gauge("running", "Work that holds a slot.", status.running);
    text.gauge("stopping", "Runs told to stop that have not.", view.snapshot.stopping);
    text.gauge("accepting", "Whether new work is welcome.", u8::from(status.accepting_work));
    text.gauge("draining", "Whether the worker is leaving.", u8::from(status.draining));
    text.counter("accepted_total", "Work taken.", counts.accepted);
    text.counter("rejected_total", "Work not taken.", counts.rejected);
    text.counter("started_total", "Runs started.", counts.started);
    text.counter("cancels_total", "Cancellations received.", counts.cancels);
    let orphaned = counts.orphans_stopped;
    text.counters(
        "work_ended_total",
        "Runs by how they ended.",
        "outcome",
        [("ready", counts.finished), ("failed", counts.failed), ("stopped", counts.stopped)],
    );
    text.counter("orphans_stopped_total", "Runs stopped because their session was gone.", orphaned);
    text.counter("out_of_time_total", "Work whose time was up.", counts.out_of_time);
    let failures = view.figures.failures.iter().map(|(code, count)| (code_name(*code), *count));
    text.counters("failures_total", "Failed runs by what went wrong.", "code", failures);
    text.histogram("queue_wait_seconds", "From accepted to started.", &times.queue_wait);
    text.histogram("run_seconds", "From started to the committed artifact.", &times.run);
    text.histogram("cancel_seconds", "From told to stop to stopped.", &times.stop);
}

fn streams(text: &mut Text, view: &View, connections: ConnectionCounts) {
    let counts = &view.counts;
    text.gauge("streams", "Control streams.", view.snapshot.sessions.len());
    text.gauge("connections", "Connections to the control port.", connections.open);
    text.counter(
        "connections_refused_total",
        "Connections refused because there were too many.",
        connections.refused,
    );
    text.counter("streams_opened_total", "Control streams opened.", counts.streams);
    text.counter("streams_refused_total", "Control streams refused.", counts.streams_refused);
    text.counter("streams_ended_total", "Control streams that ended.", counts.streams_ended);
    let closed = view.figures.closed.iter().map(|(why, count)| (reason_name(*why), *count));
    let slow = [("slow_reader", view.figures.slow_readers)];
    text.counters(
        "streams_closed_total",
        "Control streams ended by the worker.",
        "reason",
        closed.chain(slow),
    );
    text.counter("late_total", "Messages and answers about what is over.", counts.late);
}

fn artifacts(text: &mut Text, view: &View) {
    let (snapshot, counts, figures) = (&view.snapshot, &view.counts, &view.figures);
    let status = &snapshot.status;
    text.gauge("spool_bytes", "Disk used by artifacts.", status.spool_bytes);
    text.gauge("cache_bytes", "Disk used by cached segments.", status.cache_bytes);
    text.gauge("free_bytes", "Disk free.", status.free_bytes);
    text.gauge(
        "artifacts_unacknowledged",
        "Artifacts that wait to be fetched.",
        snapshot.unacknowledged,
    );
    text.gauge(
        "artifacts_acknowledged",
        "Artifacts fetched and still kept.",
        snapshot.acknowledged,
    );
    text.counter("artifacts_acknowledged_total", "Artifacts acknowledged.", counts.acknowledged);
    text.counter("artifacts_expired_total", "Artifacts whose time was up.", counts.expired);
    text.counter("artifacts_evicted_total", "Artifacts evicted for want of disk.", counts.evicted);
    text.counter("artifacts_deleted_total", "Artifacts let go.", counts.deleted);
    text.counter(
        "artifacts_reused_total",
        "Work answered by an artifact that was here already.",
        figures.reused,
    );
    text.counter("artifact_bytes_total", "Bytes of announced artifacts.", figures.artifact_bytes);
    text.counter("artifact_rows_total", "Rows of announced artifacts.", figures.artifact_rows);
    text.histogram(
        "ready_to_ack_seconds",
        "From an artifact's announcement to its acknowledgement.",
        &figures.ready_to_ack,
    );
}

fn code_name(code: FailureCode) -> &'static str {
    match code {
        FailureCode::BadSpec => "bad_spec",
        FailureCode::SegmentMissing => "segment_missing",
        FailureCode::SegmentCorrupt => "segment_corrupt",
        FailureCode::StoreUnavailable => "store_unavailable",
        FailureCode::LimitExceeded => "limit_exceeded",
        FailureCode::DiskFull => "disk_full",
        FailureCode::Deadline => "deadline",
        FailureCode::Internal => "internal",
    }
}

fn reason_name(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::TooManySessions => "too_many_sessions",
        CloseReason::HelloTimeout => "hello_timeout",
        CloseReason::Silent => "silent",
        CloseReason::Superseded => "superseded",
        CloseReason::Drained => "drained",
        CloseReason::Violation(violation) => match violation {
            Violation::Malformed => "malformed",
            Violation::NotIntroduced => "not_introduced",
            Violation::IntroducedTwice => "introduced_twice",
            Violation::Version => "version",
            Violation::OutOfOrder => "out_of_order",
            Violation::ForeignUrl => "foreign_url",
        },
    }
}
