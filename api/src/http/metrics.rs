//! What the data source for streams asks: queries as streams of events, metrics, tags and their
//! values, and whether a text is a query.

use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use futures_util::stream;
use tributary_promql::matcher::METRIC_NAME;
use tributary_promql::quote::quoted;
use tributary_promql::{Expr, Matcher, ParseError, QuerySpec, ValueType};

use super::ask_for::{About, expression, find, not_what_was_asked_for, texts, traceparent};
use super::body::{self, List, PIECE_BYTES, short_json};
use super::failure::Failure;
use super::json::{push_int, push_text};
use super::params::Params;
use super::prometheus::inquire::of_metric;
use super::prometheus::query::whole_steps;
use super::sse::{self, Content};
use super::times::{default_step, now, prometheus_duration_nanos, stream_time, timeout_of};
use super::{Answered, Caller, Desk, Shared};
use crate::question::{FoundItems, MetricInfo, Question, Wanted};

/// `metrics/query`: a query over a range, as a stream.
pub(super) async fn query(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    let expr = needed_query(&desk, &params).await?;
    let value_type = expr.value_type();
    if !matches!(value_type, ValueType::Scalar | ValueType::Vector) {
        let name = value_type.documented_name();
        let why = format!("a {name} has no values over time; a vector or a scalar has");
        return Err(Failure::parameter("q", why));
    }
    let (start, end) = range(&params)?;
    let step = match params.filled("step") {
        Some(text) => {
            prometheus_duration_nanos(text).map_err(|why| Failure::parameter("step", why))?
        }
        None => default_step(end - start) * 1_000_000,
    };
    let step = whole_steps(step, start, end, desk.settings.max_points)?;
    let content = match params.text("summary") {
        "" | "false" | "0" => Content::Results,
        "true" | "1" => Content::Both,
        "only" => Content::Summaries,
        other => {
            let why = format!("{} is none of true, false and only", quoted(other.as_bytes()));
            return Err(Failure::parameter("summary", why));
        }
    };
    let timeout = timeout_of(params.get("timeout"), desk.settings.query_timeout);
    let timeout = timeout.map_err(|why| Failure::parameter("timeout", why))?;
    let options = desk.settings.evaluation.clone();
    let max_values = options.limits.max_values;
    let (tenant, spec) = (caller.tenant, QuerySpec::range(start, end, step));
    let question = Question { tenant, expr, spec, options, timeout, traceparent };
    let running = desk.ask.ask(question);
    Ok(sse::stream_of(running, content, desk.settings.heartbeat, max_values))
}

/// `metrics/metadata`: the metrics there are.
pub(super) async fn metadata(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let about = about(&desk, caller, request, Wanted::Metrics).await?.0;
    let found = find(&desk, about).await?;
    let FoundItems::Metrics(metrics) = found.items else { return Err(not_what_was_asked_for()) };
    let write = |out: &mut Vec<u8>, info: &MetricInfo| {
        out.extend_from_slice(br#"{"name":"#);
        push_text(out, &info.name);
        out.extend_from_slice(br#","type":"#);
        push_text(out, &info.kind);
        out.push(b'}');
    };
    let head = br#"{"metrics":["#.to_vec();
    Ok(body::json(List::new(head, metrics, write, b"]}".to_vec())))
}

/// `metrics/tags`: the names of labels that series of a metric or a query have, but for the
/// metric's name.
pub(super) async fn tags(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let about = about(&desk, caller, request, Wanted::LabelNames).await?.0;
    let (mut names, _) = texts(find(&desk, about).await?)?;
    names.retain(|name| name != METRIC_NAME);
    let write = |out: &mut Vec<u8>, name: &String| push_text(out, name);
    Ok(body::json(List::new(br#"{"tags":["#.to_vec(), names, write, b"]}".to_vec())))
}

/// `metrics/tagvalues?tagName=`: the values of one label, as a stream.
pub(super) async fn tag_values(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let (mut about, params) = about(&desk, caller, request, Wanted::LabelNames).await?;
    let Some(name) = params.filled("tagName") else {
        return Err(Failure::parameter("tagName", "the name of a tag is expected"));
    };
    about.wanted = Wanted::LabelValues(name.to_owned());
    let (values, _) = texts(find(&desk, about).await?)?;
    let mut values = values.into_iter();
    let mut is_done = false;
    let pieces = std::iter::from_fn(move || {
        let mut out = Vec::new();
        while out.len() < PIECE_BYTES && !is_done {
            let Some(value) = values.next() else {
                is_done = true;
                sse::push_done(&mut out, true);
                break;
            };
            sse::push_frame(&mut out, "result", |out| {
                out.extend_from_slice(br#"{"value":"#);
                push_text(out, &value);
                out.push(b'}');
            });
        }
        (!out.is_empty()).then(|| Ok::<_, Infallible>(Bytes::from(out)))
    });
    Ok(sse::response(Body::from_stream(stream::iter(pieces))))
}

/// `promql/validate`: whether a text is a query, and if not, where it goes wrong.
pub(super) async fn validate(State(desk): State<Shared>, request: Request) -> Answered {
    let params = Params::read(request, &desk.settings).await?;
    let Some(text) = params.filled("query").or_else(|| params.filled("q")) else {
        return Err(Failure::parameter("query", "a query is expected"));
    };
    Ok(match expression(text, &desk.settings.parsing).await {
        Ok(_) => short_json(br#"{"valid":true}"#.to_vec()),
        Err(error) => short_json(why_not(text, &error)),
    })
}

fn why_not(text: &str, error: &ParseError) -> Vec<u8> {
    let mut out = br#"{"valid":false,"error":"#.to_vec();
    push_text(&mut out, &error.message);
    if let Some(at) = error.at {
        out.extend_from_slice(br#","pos":"#);
        push_text(&mut out, &at.to_string());
        for (name, value) in [("line", at.line), ("column", at.column)] {
            out.push(b',');
            push_text(&mut out, name);
            out.push(b':');
            push_int(&mut out, i64::try_from(value).unwrap_or(i64::MAX));
        }
        out.extend_from_slice(br#","near":"#);
        push_text(&mut out, near(text, error));
    }
    out.push(b'}');
    out
}

/// What stands around the place of an error.
fn near<'a>(text: &'a str, error: &ParseError) -> &'a str {
    const AROUND: usize = 10;
    let from = text.floor_char_boundary(error.span.start.saturating_sub(AROUND).min(text.len()));
    let to = error.span.end.max(error.span.start).saturating_add(AROUND).min(text.len());
    let to = to.min(from + 200);
    &text[from..text.ceil_char_boundary(to)]
}

/// `features`: what the data source may ask.
pub(super) async fn features() -> Answered {
    Ok(short_json(br#"{"features":{"metricsSummarySSE":true}}"#.to_vec()))
}

/// `ping`: whether anybody is there, and whether the key is right.
pub(super) async fn ping() -> Answered {
    Ok(short_json(br#"{"status":"ok"}"#.to_vec()))
}

async fn needed_query(desk: &Desk, params: &Params) -> Result<Expr, Failure> {
    let Some(text) = params.filled("q") else {
        return Err(Failure::parameter("q", "a query is expected"));
    };
    let parsed = expression(text, &desk.settings.parsing).await;
    parsed.map_err(|error| Failure::parameter("q", error))
}

/// From `s` to `e`; without them the last hour.
fn range(params: &Params) -> Result<(i64, i64), Failure> {
    let now = now();
    let time = |name: &str, usual: &str| {
        let text = params.filled(name).unwrap_or(usual);
        stream_time(text, now).map_err(|why| Failure::parameter(name, why))
    };
    let (start, end) = (time("s", "now-1h")?, time("e", "now")?);
    if end < start {
        return Err(Failure::parameter("e", "the end must not be before the start"));
    }
    Ok((start, end))
}

/// What an inquiry is about: `s`, `e`, and `metric` or `q`.
async fn about(
    desk: &Desk,
    caller: Caller,
    request: Request,
    wanted: Wanted,
) -> Result<(About, Params), Failure> {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    let range = range(&params)?;
    let mut selectors = Vec::new();
    if let Some(name) = params.filled("metric") {
        selectors.push(vec![of_metric(name)]);
    }
    if params.filled("q").is_some() {
        let expr = needed_query(desk, &params).await?;
        let before = selectors.len();
        collect_selectors(&expr, &mut selectors);
        if selectors.len() == before {
            return Err(Failure::parameter("q", "the query asks for no series"));
        }
    }
    let tenant = caller.tenant;
    Ok((About { tenant, selectors, range, wanted, limit: None, traceparent }, params))
}

/// The selectors of an expression, each once.
fn collect_selectors(expr: &Expr, selectors: &mut Vec<Vec<Matcher>>) {
    let mut seen = BTreeSet::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        let found = match expr {
            Expr::Vector(vector) => Some(&**vector),
            Expr::Matrix(matrix) => Some(&matrix.vector),
            _ => None,
        };
        if let Some(vector) = found {
            let text: Vec<String> = vector.matchers.iter().map(ToString::to_string).collect();
            if seen.insert(text) {
                selectors.push(vector.matchers.clone());
            }
        }
        open.extend(expr.children());
    }
}
