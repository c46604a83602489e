//! Every route there is, in one table: the router is made of it, and a test holds it against the
//! OpenAPI description.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};

use super::{Shared, metrics, page, prometheus};

/// The description of all routes, written by hand.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// One path.
pub(super) struct Route {
    pub(super) path: &'static str,
    /// As OpenAPI writes them.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the description in a test"))]
    pub(super) methods: &'static [&'static str],
    /// Needs no key, and costs nobody's rate.
    pub(super) is_open: bool,
    pub(super) handler: MethodRouter<Shared>,
}

/// All routes.
pub(super) fn routes() -> Vec<Route> {
    /// A route for `GET`, for `POST`, or for both, with one handler.
    macro_rules! route {
        (get $path:literal, $handler:expr) => {
            route(&["get"], $path, get($handler))
        };
        (post $path:literal, $handler:expr) => {
            route(&["post"], $path, post($handler))
        };
        (both $path:literal, $handler:expr) => {
            route(&["get", "post"], $path, get($handler).post($handler))
        };
    }
    vec![
        route!(both "/api/v1/query", prometheus::query::instant),
        route!(both "/api/v1/query_range", prometheus::query::range),
        route!(both "/api/v1/series", prometheus::inquire::series),
        route!(both "/api/v1/labels", prometheus::inquire::labels),
        route!(get "/api/v1/label/{name}/values", prometheus::inquire::label_values),
        route!(get "/api/v1/metadata", prometheus::inquire::metadata),
        route!(both "/api/v1/format_query", prometheus::text::format_query),
        route!(both "/api/v1/parse_query", prometheus::text::parse_query),
        route!(get "/api/v1/status/buildinfo", prometheus::text::build_info),
        route!(both "/api/v1/metrics/query", metrics::query),
        route!(post "/api/v1/metrics/metadata", metrics::metadata),
        route!(post "/api/v1/metrics/tags", metrics::tags),
        route!(post "/api/v1/metrics/tagvalues", metrics::tag_values),
        route!(post "/api/v1/promql/validate", metrics::validate),
        route!(both "/api/v1/features", metrics::features),
        route!(both "/api/v1/ping", metrics::ping),
        route!(get "/api/v1/openapi.json", openapi).open(),
        route!(get "/", page::index).open(),
        route!(get "/page/{file}", page::file).open(),
        route!(get "/-/healthy", async || "Tributary is Healthy.\n").open(),
        route!(get "/-/ready", async || "Tributary is Ready.\n").open(),
    ]
}

fn route(
    methods: &'static [&'static str],
    path: &'static str,
    handler: MethodRouter<Shared>,
) -> Route {
    Route { path, methods, is_open: false, handler }
}

impl Route {
    fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}

async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::monitor;

    #[test]
    fn the_description_has_every_route_and_no_other() {
        let description: Value = serde_json::from_str(OPENAPI).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in description["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                described.insert(format!("{method} {path}"));
            }
        }
        let mut served: BTreeSet<String> = routes()
            .iter()
            .flat_map(|route| route.methods.iter().map(|method| format!("{method} {}", route.path)))
            .collect();
        served.extend(monitor::PATHS.map(|(path, _)| format!("get {path}")));
        assert_eq!(described, served);
    }

    #[test]
    fn every_reference_of_the_description_leads_somewhere() {
        fn check(root: &Value, value: &Value) {
            match value {
                Value::Object(object) => {
                    if let Some(Value::String(target)) = object.get("$ref") {
                        let pointer = target.strip_prefix('#').unwrap();
                        assert!(root.pointer(pointer).is_some(), "{target} is nowhere");
                    }
                    object.values().for_each(|value| check(root, value));
                }
                Value::Array(values) => values.iter().for_each(|value| check(root, value)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let description: Value = serde_json::from_str(OPENAPI).unwrap();
        assert_eq!(description["openapi"], "3.1.0");
        check(&description, &description);
    }

    #[test]
    fn routes_without_a_key_say_so() {
        let description: Value = serde_json::from_str(OPENAPI).unwrap();
        let check = |path: &str, method: &str, is_open: bool| {
            let operation = &description["paths"][path][method];
            assert_eq!(operation.get("security").is_some(), is_open, "{path}");
            let needs_key = operation["responses"].get("401").is_some();
            assert_eq!(needs_key, !is_open, "{path}");
        };
        for route in routes() {
            route.methods.iter().for_each(|method| check(route.path, method, route.is_open));
        }
        for (path, is_open) in monitor::PATHS {
            check(path, "get", is_open);
        }
    }
}
