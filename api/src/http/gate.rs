//! What stands before every handler: who is let in and how many at once, what pages of other origins
//! may see, and which encodings of a body are understood.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_ENCODING, HeaderMap, ORIGIN,
    VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::failure::{Failure, Kind};
use super::settings::Origins;
use super::{Answered, Caller, Shared};
use crate::access::Permit;

/// Lets a request in if its tenant is known and has room; the room is given back when the last of
/// the answer is sent, or nobody wants it any more.
pub(super) async fn admit(
    State(desk): State<Shared>,
    mut request: Request,
    next: Next,
) -> Answered {
    let tenant = desk.access.identify(request.headers())?;
    let permit = desk.access.admit(&tenant)?;
    request.extensions_mut().insert(Caller { tenant });
    let response = next.run(request).await;
    Ok(response.map(|body| Body::new(Admitted { body, _permit: permit })))
}

/// A body that holds its request's permit.
struct Admitted {
    body: Body,
    _permit: Permit,
}

impl HttpBody for Admitted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Refuses bodies in an encoding that is not understood, in our own words.
pub(super) async fn known_encoding(request: Request, next: Next) -> Answered {
    let encoding = request.headers().get(CONTENT_ENCODING).map(HeaderValue::to_str);
    match encoding {
        None | Some(Ok("gzip" | "zstd" | "identity")) => Ok(next.run(request).await),
        Some(encoding) => {
            let encoding = encoding.unwrap_or_default();
            Err(Failure::new(
                Kind::UnsupportedMedia,
                format!("the encoding {encoding:?} is not understood; gzip and zstd are"),
            ))
        }
    }
}

/// What a page of another origin may send.
const ALLOWED_HEADERS: &str = "Accept, Authorization, Content-Type, Origin, Traceparent, X-Api-Key, \
                               Api-Key, X-Cardinalhq-Api-Key, X-Scope-OrgID";

const ALLOWED_METHODS: &str = "GET, POST, OPTIONS";

/// What a page of another origin may read beside the answer.
const EXPOSED_HEADERS: &str = "Date, Retry-After, X-Query-Id";

/// Says what pages of other origins may do, as Prometheus does, and answers whoever asks that.
pub(super) async fn cors(State(desk): State<Shared>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = if *request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        allow(headers, &desk.settings.cors, origin);
    }
    response
}

fn allow(headers: &mut HeaderMap, origins: &Origins, origin: HeaderValue) {
    let allowed = match origins {
        Origins::Any => HeaderValue::from_static("*"),
        Origins::Only(known) if known.iter().any(|known| known.as_bytes() == origin.as_bytes()) => {
            origin
        }
        Origins::Only(_) => return,
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
        (ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
        (ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
