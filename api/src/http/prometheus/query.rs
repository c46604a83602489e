//! `query` and `query_range`: from parameters to a question, and from what happens to its answer.

use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use core_workcoord::id::QueryId;
use tokio::time;
use tributary_promql::annotation::Level;
use tributary_promql::eval::EvalError;
use tributary_promql::{Data, EvalOptions, Gathered, QuerySpec, ValueType};

use super::answer::{Notes, answer};
use crate::error::QueryError;
use crate::http::ask_for::{GRACE, expression, limit, optional_time, traceparent};
use crate::http::failure::{Failure, Kind};
use crate::http::params::Params;
use crate::http::times::{now, prometheus_duration_nanos, prometheus_time, timeout_of};
use crate::http::{Answered, Caller, Desk, Shared};
use crate::question::{Finished, QueryEvent, Question, RunningQuery};

/// What clients look for to know that an answer is not all there is.
pub(super) const TRUNCATED: &str = "results truncated due to limit";

/// `query`: at one instant.
pub(in crate::http) async fn instant(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    let limit = limit(&params)?;
    let at = optional_time(&params, "time")?.unwrap_or_else(now);
    let timeout = timeout(&desk, &params)?;
    let options = options(&desk, &params)?;
    let text = params.text("query");
    let parsed = expression(text, &desk.settings.parsing).await;
    let expr = parsed.map_err(|error| Failure::parameter("query", error))?;
    let spec = QuerySpec::instant(at);
    let tenant = caller.tenant;
    let question = Question { tenant, expr, spec, options, timeout, traceparent };
    run(&desk, question, &params, limit).await
}

/// `query_range`: at evenly spaced instants.
pub(in crate::http) async fn range(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    let limit = limit(&params)?;
    let start = needed_time(&params, "start")?;
    let end = needed_time(&params, "end")?;
    if end < start {
        return Err(Failure::parameter("end", "end timestamp must not be before start time"));
    }
    let step = prometheus_duration_nanos(params.text("step"));
    let step = step.map_err(|why| Failure::parameter("step", why))?;
    let step = whole_steps(step, start, end, desk.settings.max_points)?;
    let timeout = timeout(&desk, &params)?;
    let options = options(&desk, &params)?;
    let text = params.text("query");
    let parsed = expression(text, &desk.settings.parsing).await;
    let expr = parsed.map_err(|error| Failure::parameter("query", error))?;
    let value_type = expr.value_type();
    if !matches!(value_type, ValueType::Scalar | ValueType::Vector) {
        let name = value_type.documented_name();
        let why = "for range query, must be Scalar or instant Vector";
        return Err(Failure::parameter(
            "query",
            format_args!("invalid expression type {name:?} {why}"),
        ));
    }
    let spec = QuerySpec::range(start, end, step);
    let tenant = caller.tenant;
    let question = Question { tenant, expr, spec, options, timeout, traceparent };
    run(&desk, question, &params, limit).await
}

fn needed_time(params: &Params, name: &str) -> Result<i64, Failure> {
    prometheus_time(params.text(name)).map_err(|why| Failure::parameter(name, why))
}

/// The step in milliseconds, if it is long enough for this range.
pub(in crate::http) fn whole_steps(
    step_nanos: i64,
    start: i64,
    end: i64,
    max_points: u64,
) -> Result<i64, Failure> {
    let step = step_nanos / 1_000_000;
    if step <= 0 {
        return Err(Failure::parameter(
            "step",
            "zero or negative query resolution step widths are not accepted. Try a positive integer",
        ));
    }
    let range = end.abs_diff(start);
    if range / step.unsigned_abs() > max_points {
        let most = with_commas(max_points);
        return Err(Failure::bad_data(format!(
            "exceeded maximum resolution of {most} points per timeseries. Try decreasing the query \
             resolution (?step=XX)"
        )));
    }
    Ok(step)
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

fn timeout(desk: &Desk, params: &Params) -> Result<Duration, Failure> {
    let timeout = timeout_of(params.get("timeout"), desk.settings.query_timeout);
    timeout.map_err(|why| Failure::parameter("timeout", why))
}

fn options(desk: &Desk, params: &Params) -> Result<EvalOptions, Failure> {
    let mut options = desk.settings.evaluation.clone();
    if let Some(text) = params.filled("lookback_delta") {
        let nanos = prometheus_duration_nanos(text).map_err(|why| {
            Failure::bad_data(format!("error parsing lookback delta duration: {why}"))
        })?;
        // As in Prometheus, nothing and less than nothing mean what is usual.
        if nanos >= 1_000_000 {
            options.lookback = nanos / 1_000_000;
        }
    }
    Ok(options)
}

async fn run(desk: &Desk, question: Question, params: &Params, limit: Option<usize>) -> Answered {
    let (timeout, most) = (question.timeout, question.options.limits.max_values);
    let running = desk.ask.ask(question);
    let id = running.id;
    let answered = time::timeout(timeout + GRACE, gathered(running, most)).await;
    let answered = answered.unwrap_or_else(|_| {
        Err(Failure::new(Kind::Timeout, "query timed out in expression evaluation"))
    });
    let (mut data, finished) = answered?;
    let text = params.text("query");
    let mut warnings = shortened(finished.annotations.texts(Level::Warning, text), "warning");
    let infos = shortened(finished.annotations.texts(Level::Info, text), "info");
    if limit.is_some_and(|limit| truncate(&mut data, limit)) {
        warnings.push(TRUNCATED.to_owned());
    }
    let stats = match params.text("stats") {
        "" => None,
        "true" | "all" => Some(finished.stats),
        other => {
            warnings.push(format!(
                "value {other:?} for parameter \"stats\" is deprecated and will be rejected in the \
                 next major release, use \"true\" or \"all\""
            ));
            Some(finished.stats)
        }
    };
    let mut response = answer(data, &Notes { warnings, infos, stats });
    if let Some(id) = query_id(id) {
        response.headers_mut().insert("x-query-id", id);
    }
    Ok(response)
}

/// The name of a query as a header.
pub(in crate::http) fn query_id(id: QueryId) -> Option<HeaderValue> {
    HeaderValue::from_str(&id.to_string()).ok()
}

/// Waits for the whole answer, which is all in memory then, so it must not be too large.
async fn gathered(mut running: RunningQuery, most: u64) -> Result<(Data, Finished), Failure> {
    let mut gathered = Gathered::default();
    let mut held = 0_u64;
    while let Some(event) = running.events.recv().await {
        match event {
            QueryEvent::WaitingScaleUp | QueryEvent::Progress { .. } => {}
            QueryEvent::Chunk(chunk) => {
                held += (chunk.ts.len() * chunk.rows.len()) as u64;
                if held > most {
                    return Err(too_many_values(most).into());
                }
                gathered.take(chunk);
            }
            QueryEvent::Done(mut finished) => {
                let data = finished.data.take().unwrap_or_else(|| gathered.finish());
                return Ok((data, *finished));
            }
            QueryEvent::Failed(error) => return Err(error.into()),
        }
    }
    Err(QueryError::ShuttingDown.into())
}

/// The error of an answer that does not fit into memory.
pub(in crate::http) fn too_many_values(limit: u64) -> QueryError {
    EvalError::Limit { what: "values in memory at once", limit, setting: "max_values" }.into()
}

/// At most ten of them, and how many there were besides.
fn shortened(mut texts: Vec<String>, kind: &str) -> Vec<String> {
    const MOST: usize = 10;
    let more = texts.len().saturating_sub(MOST);
    if more > 0 {
        texts.truncate(MOST);
        texts.push(format!("{more} more {kind} annotations omitted"));
    }
    texts
}

/// Leaves no more series than asked for; whether there were more.
fn truncate(data: &mut Data, limit: usize) -> bool {
    let count = match data {
        Data::Vector { series, .. } => {
            let count = series.len();
            series.truncate(limit);
            count
        }
        Data::Matrix(series) => {
            let count = series.len();
            series.truncate(limit);
            count
        }
        Data::Scalar { .. } | Data::String { .. } => 0,
    };
    count > limit
}
