//! From parameters to questions: what all endpoints read in the same way.

use std::time::Duration;

use axum::http::HeaderMap;
use core_workcoord::id::TenantId;
use tokio::{task, time};
use tributary_promql::{Expr, Matcher, Options, ParseError, parse, parse_selector};

use super::Desk;
use super::failure::{Failure, Kind};
use super::params::Params;
use super::times::{EVER, prometheus_time};
use crate::question::{Found, FoundItems, Inquiry, Wanted};

/// Texts from this length on are read beside the other requests, not among them.
const LONG_TEXT_BYTES: usize = 2_048;

/// How much longer than it said a question may take until its asker gives up on it.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The trace a request belongs to, or empty.
pub(super) fn traceparent(headers: &HeaderMap) -> String {
    let value = headers.get("traceparent").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// Reads an expression.
pub(super) async fn expression(text: &str, options: &Options) -> Result<Expr, ParseError> {
    if text.len() < LONG_TEXT_BYTES {
        return parse(text, options);
    }
    let (text, options) = (text.to_owned(), options.clone());
    let parsed = task::spawn_blocking(move || parse(&text, &options)).await;
    parsed.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// The selectors of `match[]`, each of which must ask for something.
pub(super) fn selectors(params: &Params, options: &Options) -> Result<Vec<Vec<Matcher>>, String> {
    let mut selectors = Vec::new();
    for text in params.all("match[]") {
        let matchers = parse_selector(text, options).map_err(|error| error.to_string())?;
        if matchers.iter().all(Matcher::matches_empty) {
            return Err("match[] must contain at least one non-empty matcher".to_owned());
        }
        selectors.push(matchers);
    }
    Ok(selectors)
}

/// A time that need not be there.
pub(super) fn optional_time(params: &Params, name: &str) -> Result<Option<i64>, Failure> {
    let Some(text) = params.filled(name) else { return Ok(None) };
    let time = prometheus_time(text).map_err(|why| {
        Failure::parameter(name, format_args!("invalid time value for '{name}': {why}"))
    })?;
    Ok(Some(time))
}

/// From `start` to `end`, or ever.
pub(super) fn optional_range(params: &Params) -> Result<(i64, i64), Failure> {
    let start = optional_time(params, "start")?.unwrap_or(EVER.0);
    let end = optional_time(params, "end")?.unwrap_or(EVER.1);
    Ok((start, end))
}

/// The most that is wanted; none for all there is.
pub(super) fn limit(params: &Params) -> Result<Option<usize>, Failure> {
    let Some(text) = params.filled("limit") else { return Ok(None) };
    let limit = whole_number(text).map_err(|why| Failure::parameter("limit", why))?;
    let limit = usize::try_from(limit);
    let limit = limit.map_err(|_| Failure::parameter("limit", "limit must be non-negative"))?;
    Ok((limit > 0).then_some(limit))
}

/// A whole number, or why it is none, in Go's words.
pub(super) fn whole_number(text: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {text:?}: {why}")
    })
}

/// What an inquiry is about.
pub(super) struct About {
    pub(super) tenant: TenantId,
    pub(super) selectors: Vec<Vec<Matcher>>,
    pub(super) range: (i64, i64),
    pub(super) wanted: Wanted,
    pub(super) limit: Option<usize>,
    pub(super) traceparent: String,
}

/// Puts an inquiry and waits for what it finds.
pub(super) async fn find(desk: &Desk, about: About) -> Result<Found, Failure> {
    let About { tenant, selectors, range: (start, end), wanted, limit, traceparent } = about;
    if end < start {
        // Prometheus finds nothing there, and says nothing.
        let items = match wanted {
            Wanted::Series => FoundItems::Series(Vec::new()),
            Wanted::LabelNames | Wanted::LabelValues(_) => FoundItems::Texts(Vec::new()),
            Wanted::Metrics => FoundItems::Metrics(Vec::new()),
        };
        return Ok(Found { items, truncated: false });
    }
    let timeout = desk.settings.inquiry_timeout;
    let time = start..=end;
    let inquiry = Inquiry { tenant, selectors, time, wanted, limit, timeout, traceparent };
    match time::timeout(timeout + GRACE, desk.ask.inquire(inquiry)).await {
        Ok(found) => Ok(found?),
        Err(_) => Err(Failure::new(Kind::Timeout, "the inquiry took too long")),
    }
}

/// The texts an inquiry found.
pub(super) fn texts(found: Found) -> Result<(Vec<String>, bool), Failure> {
    match found.items {
        FoundItems::Texts(texts) => Ok((texts, found.truncated)),
        FoundItems::Series(_) | FoundItems::Metrics(_) => Err(not_what_was_asked_for()),
    }
}

/// Whatever answers questions answered another one.
pub(super) fn not_what_was_asked_for() -> Failure {
    Failure::new(Kind::Internal, "the inquiry found something else than was asked for")
}
