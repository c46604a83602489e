//! Requests that are made and replies that are read, without a socket.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use tributary_api::access::{Access, TenantLimits};
use tributary_api::http::{Settings, routes};
use tributary_api::question::Ask;

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Status, type and message of an error.
    #[track_caller]
    pub fn error(&self) -> (u16, String, String) {
        let json = self.json();
        assert_eq!(json["status"], "error", "{json}");
        assert_eq!(self.header("content-type"), "application/json");
        let text = |name: &str| json[name].as_str().unwrap().to_owned();
        (self.status.as_u16(), text("errorType"), text("error"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// All routes over whatever answers, open to everybody.
pub fn over(ask: impl Ask) -> Router {
    over_shared(Arc::new(ask))
}

pub fn over_shared(ask: Arc<dyn Ask>) -> Router {
    routes(ask, Settings::default(), Access::without_keys(TenantLimits::default()))
}

pub async fn send(routes: &Router, request: Request<Body>) -> Reply {
    let response = routes.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Reply { status: parts.status, headers: parts.headers, body }
}

pub async fn get(routes: &Router, address: &str) -> Reply {
    send(routes, request(Method::GET, address, &[], "")).await
}

pub async fn post_form(routes: &Router, address: &str, form: &str) -> Reply {
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    send(routes, request(Method::POST, address, &kind, form.to_owned())).await
}

pub async fn post_json(routes: &Router, address: &str, json: &str) -> Reply {
    let kind = [("content-type", "application/json")];
    send(routes, request(Method::POST, address, &kind, json.to_owned())).await
}

pub fn request(
    method: Method,
    address: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(address);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}
