//! What is said of texts alone: `format_query`, `parse_query`; and of ourselves: `status/buildinfo`.

use axum::extract::{Request, State};

use super::tree;
use crate::http::ask_for::expression;
use crate::http::body::short_json;
use crate::http::failure::Failure;
use crate::http::json::push_text;
use crate::http::params::Params;
use crate::http::{Answered, Shared};

/// `format_query`: the query over as many lines as it takes.
pub(in crate::http) async fn format_query(
    State(desk): State<Shared>,
    request: Request,
) -> Answered {
    let params = Params::read(request, &desk.settings).await?;
    let parsed = expression(params.text("query"), &desk.settings.parsing).await;
    let expr = parsed.map_err(|error| Failure::parameter("query", error))?;
    let mut out = br#"{"status":"success","data":"#.to_vec();
    push_text(&mut out, &expr.pretty());
    out.push(b'}');
    Ok(short_json(out))
}

/// `parse_query`: the query as a tree.
pub(in crate::http) async fn parse_query(State(desk): State<Shared>, request: Request) -> Answered {
    let params = Params::read(request, &desk.settings).await?;
    let parsed = expression(params.text("query"), &desk.settings.parsing).await;
    let expr = parsed.map_err(|error| Failure::parameter("query", error))?;
    let mut out = br#"{"status":"success","data":"#.to_vec();
    tree::push(&mut out, &expr);
    out.push(b'}');
    Ok(short_json(out))
}

/// `status/buildinfo`. Clients read the version to know what they may ask, so it is the version of
/// Prometheus whose API this is.
pub(in crate::http) async fn build_info(State(desk): State<Shared>) -> Answered {
    let mut out = br#"{"status":"success","data":{"version":"#.to_vec();
    push_text(&mut out, &desk.settings.prometheus_version);
    for (name, value) in [
        ("revision", concat!("tributary-", env!("CARGO_PKG_VERSION"))),
        ("branch", ""),
        ("buildUser", ""),
        ("buildDate", ""),
        ("goVersion", ""),
        ("application", "tributary"),
        ("applicationVersion", env!("CARGO_PKG_VERSION")),
    ] {
        out.push(b',');
        push_text(&mut out, name);
        out.push(b':');
        push_text(&mut out, value);
    }
    out.extend_from_slice(b"}}");
    Ok(short_json(out))
}
