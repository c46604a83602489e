//! `series`, `labels`, `label/<name>/values` and `metadata`: which series there are.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use tributary_promql::Matcher;
use tributary_promql::matcher::{Condition, METRIC_NAME};
use tributary_promql::quote::quoted;

use super::answer::notes_tail;
use super::query::TRUNCATED;
use crate::http::ask_for::{
    About, find, limit, not_what_was_asked_for, optional_range, selectors, texts, traceparent,
    whole_number,
};
use crate::http::body::{self, List};
use crate::http::failure::Failure;
use crate::http::json::{push_labels, push_text};
use crate::http::params::Params;
use crate::http::{Answered, Caller, Shared};
use crate::question::{FoundItems, MetricInfo, Wanted};

/// `series`: all series that any of the selectors means.
pub(in crate::http) async fn series(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    if params.get("match[]").is_none() {
        return Err(Failure::bad_data("no match[] parameter provided"));
    }
    let limit = limit(&params)?;
    let range = optional_range(&params)?;
    let selectors = selectors(&params, &desk.settings.parsing);
    let selectors = selectors.map_err(|why| Failure::parameter("match[]", why))?;
    let (tenant, wanted) = (caller.tenant, Wanted::Series);
    let about = About { tenant, selectors, range, wanted, limit, traceparent };
    let found = find(&desk, about).await?;
    let FoundItems::Series(mut series) = found.items else { return Err(not_what_was_asked_for()) };
    let truncated = cut(&mut series, limit) || found.truncated;
    Ok(listed(series, push_labels, truncated))
}

/// `labels`: the names of labels.
pub(in crate::http) async fn labels(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    let limit = limit(&params)?;
    let range = optional_range(&params)?;
    let selectors = selectors(&params, &desk.settings.parsing).map_err(Failure::bad_data)?;
    let (tenant, wanted) = (caller.tenant, Wanted::LabelNames);
    let about = About { tenant, selectors, range, wanted, limit, traceparent };
    let (mut names, truncated) = texts(find(&desk, about).await?)?;
    let truncated = cut(&mut names, limit) || truncated;
    Ok(listed(names, |out, name| push_text(out, name), truncated))
}

/// `label/<name>/values`: the values of one label.
pub(in crate::http) async fn label_values(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let Path(name) = name.map_err(|why| Failure::bad_data(format!("invalid label name: {why}")))?;
    let name = unescaped(&name).unwrap_or(name);
    if name.is_empty() {
        let name = quoted(name.as_bytes());
        return Err(Failure::bad_data(format!("invalid label name: {name}")));
    }
    let params = Params::read(request, &desk.settings).await?;
    let limit = limit(&params)?;
    let range = optional_range(&params)?;
    let selectors = selectors(&params, &desk.settings.parsing).map_err(Failure::bad_data)?;
    let (tenant, wanted) = (caller.tenant, Wanted::LabelValues(name));
    let about = About { tenant, selectors, range, wanted, limit, traceparent };
    let (mut values, truncated) = texts(find(&desk, about).await?)?;
    let truncated = cut(&mut values, limit) || truncated;
    Ok(listed(values, |out, value| push_text(out, value), truncated))
}

/// `metadata`: what is known of metrics.
pub(in crate::http) async fn metadata(
    State(desk): State<Shared>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answered {
    let traceparent = traceparent(request.headers());
    let params = Params::read(request, &desk.settings).await?;
    let number = |name: &str| match params.filled(name) {
        None => Ok(None),
        Some(text) => match whole_number(text) {
            // Less than nothing means no limit.
            Ok(limit) => Ok(usize::try_from(limit).ok()),
            Err(_) => Err(Failure::bad_data(format!("{name} must be a number"))),
        },
    };
    let (limit, per_metric) = (number("limit")?, number("limit_per_metric")?);
    let metric = params.filled("metric");
    let selectors = metric.map(|name| vec![of_metric(name)]).into_iter().collect();
    let range = optional_range(&params)?;
    let (tenant, wanted) = (caller.tenant, Wanted::Metrics);
    let about = About { tenant, selectors, range, wanted, limit: None, traceparent };
    let found = find(&desk, about).await?;
    let FoundItems::Metrics(metrics) = found.items else { return Err(not_what_was_asked_for()) };
    let mut by_name = BTreeMap::<String, Vec<MetricInfo>>::new();
    for info in metrics {
        if metric.is_none_or(|name| name == info.name) {
            by_name.entry(info.name.clone()).or_default().push(info);
        }
    }
    let mut metrics: Vec<(String, Vec<MetricInfo>)> = by_name.into_iter().collect();
    metrics.truncate(limit.unwrap_or(usize::MAX));
    for (_, infos) in &mut metrics {
        infos.truncate(per_metric.filter(|most| *most > 0).unwrap_or(usize::MAX));
    }
    let mut tail = b"}".to_vec();
    tail.extend(notes_tail(&[], &[]));
    let head = br#"{"status":"success","data":{"#.to_vec();
    Ok(body::json(List::new(head, metrics, push_metric, tail)))
}

fn push_metric(out: &mut Vec<u8>, (name, infos): &(String, Vec<MetricInfo>)) {
    push_text(out, name);
    out.extend_from_slice(b":[");
    for (place, info) in infos.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"type":"#);
        push_text(out, &info.kind);
        out.extend_from_slice(br#","help":"#);
        push_text(out, &info.help);
        out.extend_from_slice(br#","unit":"#);
        push_text(out, &info.unit);
        out.push(b'}');
    }
    out.push(b']');
}

/// The metric has this name.
pub(in crate::http) fn of_metric(name: &str) -> Matcher {
    Matcher { name: METRIC_NAME.to_owned(), condition: Condition::Equal(name.to_owned()) }
}

/// Leaves no more than asked for; whether there were more.
fn cut<T>(items: &mut Vec<T>, limit: Option<usize>) -> bool {
    let limit = limit.unwrap_or(usize::MAX);
    let more = items.len() > limit;
    items.truncate(limit);
    more
}

fn listed<T: Send + 'static>(
    items: Vec<T>,
    write_item: impl FnMut(&mut Vec<u8>, &T) + Send + 'static,
    truncated: bool,
) -> Response {
    let warnings = if truncated { vec![TRUNCATED.to_owned()] } else { Vec::new() };
    let mut tail = b"]".to_vec();
    tail.extend(notes_tail(&warnings, &[]));
    let head = br#"{"status":"success","data":["#.to_vec();
    body::json(List::new(head, items, write_item, tail))
}

/// The name that stands behind an escaped one: after `U__` two underscores are one, and the code of
/// any other character stands in hex between two. None for what is not escaped, or not rightly.
fn unescaped(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("U__")?;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once('_') {
        plain.push_str(before);
        let (code, after) = after.split_once('_')?;
        if code.is_empty() {
            plain.push('_');
        } else {
            let is_code = code.len() <= 6 && code.bytes().all(|byte| byte.is_ascii_hexdigit());
            let code = is_code.then(|| u32::from_str_radix(code, 16).ok()).flatten()?;
            plain.push(char::from_u32(code)?);
        }
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_read_as_prometheus_reads_them() {
        for (name, plain) in [
            ("U__http_2e_status", Some("http.status")),
            ("U__a__b", Some("a_b")),
            ("U__a_1F600_", Some("a😀")),
            ("U__plain", Some("plain")),
            ("U__", Some("")),
            ("U__a_2e", None),
            ("U__a_", None),
            ("U__a_xyz_", None),
            ("U__a_d800_", None),
            ("U__a_0000002e_", None),
            ("http_status", None),
        ] {
            assert_eq!(unescaped(name).as_deref(), plain, "{name}");
        }
    }
}
