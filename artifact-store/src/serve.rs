//! The HTTP routes that serve artifacts, and the way connections are served so that a slow or
//! silent peer costs no more than its own connection. What an artifact is and whose, `spool` says.
//!
//! `GET` and `HEAD` of `/artifacts/{id}` with the session's token, as `Authorization: Bearer` or as
//! `?token=`. One range of bytes, `If-Range`, `If-None-Match`; the ETag is the checksum. An unknown
//! name and a wrong token can't be told apart.

mod body;
mod connection;
mod range;
mod stall;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, response};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use tracing::warn;
use url::form_urlencoded;

pub use connection::{ServeConfig, serve, serve_connection};

use crate::spool::{OpenArtifact, Spool};
use range::Asked;

/// Where artifacts are, below the worker's address.
pub const PREFIX: &str = "/artifacts/";

/// What registries call a Parquet file.
const PARQUET: &str = "application/vnd.apache.parquet";

/// The routes of artifacts, to be served by [`serve`] together with whatever else there is.
pub fn routes(spool: Spool) -> Router {
    Router::new()
        .route("/artifacts/{id}", on(MethodFilter::GET.or(MethodFilter::HEAD), artifact))
        .with_state(spool)
}

async fn artifact(
    State(spool): State<Spool>,
    method: Method,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let token = shown_token(&headers, query.as_deref());
    let token = token.as_deref().unwrap_or_default();
    let id = id.ok().and_then(|Path(id)| id.parse().ok());
    // What is no name at all is refused as late as a wrong token is.
    let open = match id {
        Some(id) => spool.open(id, token),
        None => {
            spool.decoy().opens_with(token);
            None
        }
    };
    let Some(open) = open else {
        spool.disk().counters.artifacts_refused.one();
        return empty(StatusCode::NOT_FOUND);
    };
    answer(&spool, &method, &headers, open).await
}

async fn answer(
    spool: &Spool,
    method: &Method,
    headers: &HeaderMap,
    open: OpenArtifact,
) -> Response {
    let etag = format!("\"{}\"", open.artifact.checksum);
    let size_bytes = open.artifact.size_bytes;
    let builder = Response::builder()
        .header(ETAG, &etag)
        .header(ACCEPT_RANGES, "bytes")
        // Whoever stands between may not keep it: the token opens it for its owner alone.
        .header(CACHE_CONTROL, "private, no-store");
    if header(headers, &IF_NONE_MATCH).is_some_and(|known| names_etag(known, &etag)) {
        return finish(builder.status(StatusCode::NOT_MODIFIED), Body::empty());
    }
    let unchanged = header(headers, &IF_RANGE).is_none_or(|known| known == etag);
    let asked = header(headers, &RANGE).filter(|_| unchanged && *method == Method::GET);
    let (status, wanted) = match asked.map_or(Asked::All, |text| range::parse(text, size_bytes)) {
        Asked::All => (StatusCode::OK, 0..size_bytes),
        Asked::Part(wanted) => (StatusCode::PARTIAL_CONTENT, wanted),
        Asked::Beyond => {
            let builder = builder.header(CONTENT_RANGE, format!("bytes */{size_bytes}"));
            return finish(builder.status(StatusCode::RANGE_NOT_SATISFIABLE), Body::empty());
        }
    };
    let mut builder = builder
        .status(status)
        .header(CONTENT_TYPE, PARQUET)
        .header(CONTENT_LENGTH, wanted.end - wanted.start);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {}-{}/{size_bytes}", wanted.start, wanted.end - 1);
        builder = builder.header(CONTENT_RANGE, range);
    }
    if *method == Method::HEAD {
        return finish(builder, Body::empty());
    }
    let counters = &spool.disk().counters;
    let length = wanted.end - wanted.start;
    match body::of_file(Arc::new(open), wanted).await {
        Ok(body) => {
            counters.artifacts_served.one();
            counters.artifact_bytes_served.add(length);
            finish(builder, body)
        }
        Err(error) => {
            warn!(%error, "artifact can't be read");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// The token a peer shows. The header counts where both are there.
fn shown_token(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    if let Some(shown) = header(headers, &AUTHORIZATION) {
        let (scheme, token) = shown.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned());
    }
    let mut pairs = form_urlencoded::parse(query?.as_bytes());
    pairs.find(|(name, _)| name == "token").map(|(_, token)| token.into_owned())
}

/// Whether a list of ETags has this one, or is `*`.
fn names_etag(list: &str, etag: &str) -> bool {
    list.split(',').map(str::trim).any(|known| {
        // Weak and strong are the same where bytes never change.
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> Option<&'a str> {
    headers.get(name).map(HeaderValue::to_str)?.ok()
}

fn finish(builder: response::Builder, body: Body) -> Response {
    builder.body(body).expect("every header is made of digits and plain letters")
}

fn empty(status: StatusCode) -> Response {
    finish(Response::builder().status(status), Body::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_taken_from_the_header_or_the_address() {
        let mut headers = HeaderMap::new();
        assert_eq!(shown_token(&headers, None), None);
        assert_eq!(shown_token(&headers, Some("a=b")), None);
        assert_eq!(shown_token(&headers, Some("a=b&token=x%20y")).as_deref(), Some("x y"));
        headers.insert(AUTHORIZATION, HeaderValue::from_static("bearer  abc"));
        assert_eq!(shown_token(&headers, Some("token=x")).as_deref(), Some("abc"));
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Basic abc"));
        assert_eq!(shown_token(&headers, Some("token=x")), None, "no second try");
    }

    #[test]
    fn an_etag_is_found_in_a_list_weak_or_strong() {
        for known in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", "*"] {
            assert!(names_etag(known, "\"a\""), "{known}");
        }
        for other in ["", "a", "\"b\"", "\"ab\""] {
            assert!(!names_etag(other, "\"a\""), "{other}");
        }
    }
}
