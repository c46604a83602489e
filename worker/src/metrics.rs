//! Every metric of a worker, as Prometheus' text. Figures are counted where things happen; here
//! they get their names.

use std::fmt::{Display, Write};
use std::time::Duration;

use core_workcoord::coordinator::Violation;
use core_workcoord::intake::CloseReason;
use core_workcoord::measure::Histogram;
use core_workcoord::message::FailureCode;

use crate::desk::View;

/// What every name begins with.
const PREFIX: &str = "tributary_worker_";

/// The smallest bound that a histogram's buckets are told for; each next one is twice as large.
const FIRST_BOUND: Duration = Duration::from_micros(16);

/// The largest bound, about 18 minutes.
const LAST_BOUND: Duration = Duration::from_micros(16 << 26);

/// Metrics in Prometheus' text format, version 0.0.4.
#[derive(Clone, Debug, Default)]
pub struct Text {
    out: String,
}

impl Text {
    /// Something that only goes up. Its name ends with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, "", value);
    }

    /// A counter for each value of a label.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'static str, u64)>,
    ) {
        self.head(name, "counter", help);
        for (value, count) in values {
            self.line(name, &format!("{{{label}=\"{value}\"}}"), count);
        }
    }

    /// Something that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, "", value);
    }

    /// How long things took, in seconds.
    pub fn histogram(&mut self, name: &str, help: &str, times: &Histogram) {
        self.head(name, "histogram", help);
        let (mut below, mut bound) = (0, FIRST_BOUND);
        for (count, upper) in times.buckets() {
            // A bucket's own upper bound is not in it, and the next bound up is told at last.
            while upper > bound && bound <= LAST_BOUND {
                let bucket = format!("_bucket{{le=\"{}\"}}", bound.as_secs_f64());
                self.line(name, &bucket, below);
                bound *= 2;
            }
            below += count;
        }
        self.line(name, "_bucket{le=\"+Inf\"}", times.count());
        self.line(name, "_sum", times.sum().as_secs_f64());
        self.line(name, "_count", times.count());
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.out
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let written =
            writeln!(self.out, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
        written.expect("a string takes everything");
    }

    fn line(&mut self, name: &str, rest: &str, value: impl Display) {
        writeln!(self.out, "{PREFIX}{name}{rest} {value}").expect("a string takes everything");
    }
}

/// What is known of the connections below the streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionCounts {
    pub(crate) open: usize,
    pub(crate) refused: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_to_everything() {
        let mut times = Histogram::default();
        for millis in [1, 1, 3, 100, 5_000_000] {
            times.observe(Duration::from_millis(millis));
        }
        let mut text = Text::default();
        text.histogram("x_seconds", "X.", &times);
        let text = text.into_string();
        let below = |bound: &str| {
            let start = format!("tributary_worker_x_seconds_bucket{{le=\"{bound}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_else(|| panic!("{bound} is missing in {text}")).parse::<u64>().unwrap()
        };
        assert_eq!((below("0.000016"), below("0.001024"), below("0.004096")), (0, 2, 3));
        assert_eq!((below("0.131072"), below("1073.741824"), below("+Inf")), (4, 4, 5));
        assert!(text.contains("x_seconds_count 5\n"), "{text}");
        let counts: Vec<u64> = text
            .lines()
            .filter(|line| line.contains("_bucket"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(counts.is_sorted(), "{text}");
    }

    #[test]
    fn counters_carry_their_label() {
        let mut text = Text::default();
        text.counters("y_total", "Y.", "why", [("a", 1), ("b", 2)]);
        text.gauge("z", "Z.", 3);
        let expected = "# HELP tributary_worker_y_total Y.\n# TYPE tributary_worker_y_total counter\n\
            tributary_worker_y_total{why=\"a\"} 1\ntributary_worker_y_total{why=\"b\"} 2\n\
            # HELP tributary_worker_z Z.\n# TYPE tributary_worker_z gauge\ntributary_worker_z 3\n";
        assert_eq!(text.into_string(), expected);
    }
}
