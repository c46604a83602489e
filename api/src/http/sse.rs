//! The stream of a query as server-sent events: frames of `data:` alone, in the order things happen.
//! What is asked, `metrics` says.
//!
//! Frames are written when somebody takes them. A client that reads slowly makes the query wait, and
//! when it goes away the query is dropped with its stream.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::{task, time};
use tributary_promql::window::is_absent;
use tributary_promql::{FlowChunk, Labels};

use super::body::PIECE_BYTES;
use super::failure::Failure;
use super::json::{push_int, push_number, push_pairs, push_text};
use super::prometheus::query::query_id;
use super::summary::{Summaries, Summary};
use crate::error::QueryError;
use crate::question::{QueryEvent, RunningQuery};

/// Values that are summed up before somebody else has a turn.
const SUMMED_AT_ONCE: usize = 200_000;

/// What of a query's values is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// All of them.
    Results,
    /// All of them, and at the end a summary of each series.
    Both,
    /// The summaries alone.
    Summaries,
}

/// A query as a response.
pub(super) fn stream_of(
    running: RunningQuery,
    content: Content,
    heartbeat: Duration,
    max_values: u64,
) -> Response {
    let id = query_id(running.id);
    let summaries = (content != Content::Results).then(|| Summaries::new(max_values));
    let events = Events {
        running: Some(running),
        summaries,
        with_results: content != Content::Summaries,
        heartbeat,
        waiting: false,
        chunk: None,
        is_done: false,
    };
    let frames = stream::unfold(events, |mut events| async move {
        let piece = events.next().await?;
        Some((Ok::<_, Infallible>(piece), events))
    });
    let mut response = response(Body::from_stream(frames));
    if let Some(id) = id {
        response.headers_mut().insert("x-query-id", id);
    }
    response
}

/// A response of frames.
pub(super) fn response(body: Body) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        // Whoever stands between should pass frames on as they come.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

/// Writes one frame.
pub(super) fn push_frame(out: &mut Vec<u8>, kind: &str, data: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"data: {\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"data\":");
    data(out);
    out.extend_from_slice(b"}\n\n");
}

/// Writes the frame of an error.
pub(super) fn push_error(out: &mut Vec<u8>, failure: &Failure) {
    push_frame(out, "error", |out| {
        push_pairs(out, [("code", failure.kind.word()), ("message", &failure.message)].into_iter());
    });
}

/// Writes the last frame.
pub(super) fn push_done(out: &mut Vec<u8>, ok: bool) {
    push_status(out, "done", if ok { "ok" } else { "error" });
}

fn push_status(out: &mut Vec<u8>, kind: &str, status: &str) {
    push_frame(out, kind, |out| push_pairs(out, [("status", status)].into_iter()));
}

/// A query on its way to a client.
struct Events {
    /// None from its last event on.
    running: Option<RunningQuery>,
    summaries: Option<Summaries>,
    with_results: bool,
    heartbeat: Duration,
    /// No worker is there.
    waiting: bool,
    chunk: Option<Results>,
    is_done: bool,
}

impl Events {
    /// The next frames; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.is_empty() {
            if let Some(chunk) = &mut self.chunk {
                if !chunk.write(&mut out) {
                    self.chunk = None;
                }
            } else if let Some(running) = &mut self.running {
                match time::timeout(self.heartbeat, running.events.recv()).await {
                    Ok(event) => self.happened(event, &mut out),
                    Err(_) => {
                        let status = if self.waiting { "waiting" } else { "running" };
                        push_status(&mut out, "heartbeat", status);
                    }
                }
            } else if self.is_done {
                return None;
            } else {
                self.write_summaries(&mut out).await;
            }
        }
        Some(out.into())
    }

    fn happened(&mut self, event: Option<QueryEvent>, out: &mut Vec<u8>) {
        match event {
            Some(QueryEvent::WaitingScaleUp) => {
                self.waiting = true;
                push_status(out, "waiting_scale_up", "waiting");
            }
            Some(QueryEvent::Progress { done, total }) => {
                self.waiting = false;
                push_frame(out, "progress", |out| {
                    out.extend_from_slice(br#"{"done":"#);
                    push_int(out, done.into());
                    out.extend_from_slice(br#","total":"#);
                    push_int(out, total.into());
                    out.push(b'}');
                });
            }
            Some(QueryEvent::Chunk(chunk)) => {
                self.waiting = false;
                let taken = self.summaries.as_mut().map_or(Ok(()), |all| all.take(&chunk));
                match taken {
                    Ok(()) if self.with_results => self.chunk = Some(Results::of(chunk)),
                    Ok(()) => {}
                    Err(error) => self.failed(error, out),
                }
            }
            Some(QueryEvent::Done(_)) => self.running = None,
            Some(QueryEvent::Failed(error)) => self.failed(error, out),
            None => self.failed(QueryError::ShuttingDown, out),
        }
    }

    /// The end of a query without an answer. Its work is dropped before anybody reads of it.
    fn failed(&mut self, error: QueryError, out: &mut Vec<u8>) {
        self.running = None;
        self.summaries = None;
        self.is_done = true;
        push_error(out, &error.into());
        push_done(out, false);
    }

    async fn write_summaries(&mut self, out: &mut Vec<u8>) {
        let mut summed = 0;
        if let Some(summaries) = &mut self.summaries {
            while out.len() < PIECE_BYTES && summed < SUMMED_AT_ONCE {
                let Some((labels, summary, count)) = summaries.next() else { break };
                push_summary(out, &labels, &summary);
                summed += count;
            }
        }
        if summed == 0 {
            self.is_done = true;
            push_done(out, true);
        } else {
            task::yield_now().await;
        }
    }
}

/// The values of a chunk on their way to frames, in time order.
struct Results {
    ts: Vec<i64>,
    rows: Vec<ResultRow>,
    /// Instant and row that come next.
    place: (usize, usize),
}

/// A series with all of its frames' text that stays the same.
struct ResultRow {
    before: Vec<u8>,
    after: Vec<u8>,
    values: Vec<f64>,
}

impl Results {
    fn of(chunk: FlowChunk) -> Self {
        let rows = chunk.rows.into_iter().map(|row| {
            let mut before = b"data: {\"type\":\"result\",\"data\":{\"tags\":".to_vec();
            push_tags(&mut before, &row.labels);
            before.extend_from_slice(b",\"value\":");
            let mut after = b",\"label\":".to_vec();
            push_label(&mut after, &row.labels);
            after.extend_from_slice(b"}}\n\n");
            ResultRow { before, after, values: row.values }
        });
        Self { ts: chunk.ts, rows: rows.collect(), place: (0, 0) }
    }

    /// Writes about one piece. False when that was all.
    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        while let Some(t) = self.ts.get(self.place.0) {
            for row in &self.rows[self.place.1..] {
                if out.len() >= PIECE_BYTES {
                    return true;
                }
                self.place.1 += 1;
                let value = row.values[self.place.0];
                if is_absent(value) {
                    continue;
                }
                out.extend_from_slice(&row.before);
                push_number(out, value);
                out.extend_from_slice(b",\"timestamp\":");
                push_int(out, *t);
                out.extend_from_slice(&row.after);
            }
            self.place = (self.place.0 + 1, 0);
        }
        false
    }
}

/// The labels of a series as tags, the metric's name among them.
fn push_tags(out: &mut Vec<u8>, labels: &Labels) {
    push_pairs(out, labels.iter());
}

/// The name a series is shown by: as PromQL writes it.
fn push_label(out: &mut Vec<u8>, labels: &Labels) {
    let mut text = String::new();
    _ = write!(text, "{labels}");
    push_text(out, &text);
}

fn push_summary(out: &mut Vec<u8>, labels: &Labels, summary: &Summary) {
    push_frame(out, "summary", |out| {
        out.extend_from_slice(br#"{"label":"#);
        push_label(out, labels);
        out.extend_from_slice(br#","tags":"#);
        push_tags(out, labels);
        let Summary { min, max, avg, sum, count, p50, p90, p95, p99 } = *summary;
        for (name, value) in [("min", min), ("max", max), ("avg", avg), ("sum", sum)] {
            push_named_number(out, name, value);
        }
        out.extend_from_slice(br#","count":"#);
        push_int(out, i64::try_from(count).unwrap_or(i64::MAX));
        for (name, value) in [("p50", p50), ("p90", p90), ("p95", p95), ("p99", p99)] {
            push_named_number(out, name, value);
        }
        out.push(b'}');
    });
}

fn push_named_number(out: &mut Vec<u8>, name: &str, value: f64) {
    out.push(b',');
    push_text(out, name);
    out.push(b':');
    push_number(out, value);
}
