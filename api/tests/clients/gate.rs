//! Who is let in, how many at once, which pages may read answers, and in which encodings.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use axum::body::Body;
use axum::http::Method;
use core_workcoord::id::TenantId;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tower::ServiceExt as _;
use tributary_api::access::{Access, TenantLimits, new_key};
use tributary_api::http::{Origins, Settings, routes};

use crate::memory::{Memory, Told};
use crate::reply::{get, over, over_shared, request, send};

const QUERY: &str = "/api/v1/query?query=up&time=0";

fn two_tenants() -> Memory {
    Memory::of("load 1m\n  up{of=\"default\"} 1\n").with("acme", "load 1m\n  up{of=\"acme\"} 1\n")
}

#[tokio::test]
async fn tenants_see_their_own_series_alone() {
    let routes = over(two_tenants());
    for (tenant, sees) in [("acme", Some("acme")), ("default", Some("default")), ("other", None)] {
        let headers = [("x-scope-orgid", tenant)];
        let reply = send(&routes, request(Method::GET, QUERY, &headers, "")).await.json();
        let result = reply["data"]["result"].as_array().unwrap();
        assert_eq!(result.first().and_then(|one| one["metric"]["of"].as_str()), sees);
        let values = request(Method::GET, "/api/v1/label/of/values", &headers, "");
        let values = send(&routes, values).await.json();
        assert_eq!(values["data"].as_array().unwrap().len(), usize::from(sees.is_some()));
    }
    let odd = request(Method::GET, QUERY, &[("x-scope-orgid", "a|b")], "");
    let (status, kind, message) = send(&routes, odd).await.error();
    assert_eq!((status, kind.as_str()), (400, "bad_data"));
    assert!(message.starts_with("invalid X-Scope-OrgID"), "{message}");
}

#[tokio::test]
async fn keys_decide_where_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let key = new_key(&TenantId::new("acme").unwrap(), "test").unwrap();
    std::fs::write(&path, &key.line).unwrap();
    let access = Access::with_key_file(path, TenantLimits::default()).unwrap();
    let routes = routes(Arc::new(two_tenants()), Settings::default(), access);
    let bearer = format!("Bearer {}", key.key);
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("x-api-key", &key.key),
        ("api-key", &key.key),
        ("x-cardinalhq-api-key", &key.key),
    ] {
        // Whatever tenant is named, the key counts.
        let headers = [(name, value), ("x-scope-orgid", "default")];
        let reply = send(&routes, request(Method::GET, QUERY, &headers, "")).await.json();
        assert_eq!(reply["data"]["result"][0]["metric"]["of"], "acme", "{name}");
    }
    for (name, value, message) in [
        ("x-scope-orgid", "acme", "an API key is required"),
        ("authorization", "Bearer wrong", "the API key is not valid"),
        ("x-api-key", "", "the API key is not valid"),
    ] {
        for path in [QUERY, "/api/v1/ping", "/api/v1/metrics/query?q=up", "/api/v1/labels"] {
            let reply = send(&routes, request(Method::GET, path, &[(name, value)], "")).await;
            assert_eq!(reply.error(), (401, "unauthorized".to_owned(), message.to_owned()));
            assert!(reply.header("www-authenticate").starts_with("Bearer"));
            assert!(!reply.text().contains("wrong\""));
        }
    }
    for open in ["/-/healthy", "/-/ready", "/api/v1/openapi.json"] {
        assert_eq!(get(&routes, open).await.status, 200, "{open}");
    }
}

fn limited(requests_per_second: Option<f64>, burst: u32, running: u32) -> axum::Router {
    let limits = TenantLimits { requests_per_second, burst, running };
    let told = Told::by(|_, sender| async move { sender.closed().await });
    routes(told, Settings::default(), Access::without_keys(limits))
}

#[tokio::test]
async fn too_fast_is_429_with_the_time_to_come_again() {
    let routes = limited(Some(0.1), 2, 100);
    for _ in 0..2 {
        assert_eq!(get(&routes, "/api/v1/ping").await.status, 200);
    }
    let reply = get(&routes, "/api/v1/ping").await;
    let (status, kind, message) = reply.error();
    assert_eq!((status, kind.as_str()), (429, "too_many_requests"));
    assert_eq!(message, "tenant default sends more than 0.1 requests a second");
    assert_eq!(reply.header("retry-after"), "10");
    let other = request(Method::GET, "/api/v1/ping", &[("x-scope-orgid", "other")], "");
    assert_eq!(send(&routes, other).await.status, 200, "others are not held back");
    assert_eq!(get(&routes, "/-/healthy").await.status, 200);
}

#[tokio::test]
async fn too_many_at_once_is_429_until_a_stream_ends() {
    let routes = limited(None, 1, 2);
    let open =
        || routes.clone().oneshot(request(Method::GET, "/api/v1/metrics/query?q=up", &[], ""));
    let first = open().await.unwrap();
    let second = open().await.unwrap();
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    let reply = get(&routes, "/api/v1/ping").await;
    assert_eq!(reply.error().0, 429);
    assert_eq!(reply.header("retry-after"), "1");
    drop(first);
    assert_eq!(get(&routes, "/api/v1/ping").await.status, 200);
    drop(second);
}

#[tokio::test]
async fn pages_of_other_origins_may_read_answers_as_configured() {
    let from = [("origin", "https://grafana.example.org")];
    let open = over(two_tenants());
    let reply = send(&open, request(Method::GET, QUERY, &from, "")).await;
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let preflight = send(&open, request(Method::OPTIONS, "/api/v1/query", &from, "")).await;
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-headers").contains("Authorization"));
    assert_eq!(preflight.header("access-control-allow-methods"), "GET, POST, OPTIONS");
    assert_eq!(get(&open, QUERY).await.header("access-control-allow-origin"), "");

    let only = Origins::Only(vec!["https://grafana.example.org".to_owned()]);
    let settings = Settings { cors: only, ..Settings::default() };
    let access = Access::without_keys(TenantLimits::default());
    let some = routes(Arc::new(two_tenants()), settings, access);
    let reply = send(&some, request(Method::GET, QUERY, &from, "")).await;
    assert_eq!(reply.header("access-control-allow-origin"), from[0].1);
    let reply = send(&some, request(Method::GET, QUERY, &[("origin", "https://evil")], "")).await;
    assert_eq!(reply.header("access-control-allow-origin"), "");
    assert!(reply.headers.get_all("vary").iter().any(|value| value == "Origin"));
}

#[tokio::test]
async fn wrong_methods_and_paths_get_their_errors() {
    let routes = over(two_tenants());
    let reply = send(&routes, request(Method::DELETE, "/api/v1/query", &[], "")).await;
    assert_eq!((reply.error().0, reply.header("allow")), (405, "GET,HEAD,POST"));
    let reply = send(&routes, request(Method::POST, "/api/v1/label/job/values", &[], "")).await;
    assert_eq!((reply.error().0, reply.header("allow")), (405, "GET,HEAD"));
    let reply = get(&routes, "/api/v1/metrics/tags").await;
    assert_eq!((reply.error().0, reply.header("allow")), (405, "POST"));
    let missing = get(&routes, "/api/v1/nothing").await.error();
    assert_eq!(missing, (404, "not_found".to_owned(), "there is no /api/v1/nothing".to_owned()));
    let head = send(&routes, request(Method::HEAD, QUERY, &[], "")).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn answers_and_requests_may_be_compressed() {
    let routes = over(Memory::of("load 10s\n  a{x=\"1\"} 0+1x6000\n"));
    let path = "/api/v1/query_range?query=a&start=0&end=60000&step=10";
    let plain = get(&routes, path).await;
    assert!(plain.body.len() > 70_000 && plain.header("content-length").is_empty());
    let encoded = |encoding| request(Method::GET, path, &[("accept-encoding", encoding)], "");
    let reply = send(&routes, encoded("gzip")).await;
    assert_eq!(reply.header("content-encoding"), "gzip");
    let mut text = Vec::new();
    GzDecoder::new(&reply.body[..]).read_to_end(&mut text).unwrap();
    assert!(text == plain.body && reply.body.len() < plain.body.len() / 2);
    let reply = send(&routes, encoded("zstd, gzip;q=0.5")).await;
    assert_eq!(reply.header("content-encoding"), "zstd");
    assert!(zstd::decode_all(&reply.body[..]).unwrap() == plain.body);
    let stream = request(
        Method::GET,
        "/api/v1/metrics/query?q=a&s=0&e=60000",
        &[("accept-encoding", "gzip")],
        "",
    );
    assert_eq!(send(&routes, stream).await.header("content-encoding"), "");

    let form = b"query=vector(1)";
    for (encoding, body) in [
        ("gzip", gzip(form)),
        ("zstd", zstd::encode_all(&form[..], 1).unwrap()),
        ("identity", form.to_vec()),
    ] {
        let headers =
            [("content-type", "application/x-www-form-urlencoded"), ("content-encoding", encoding)];
        let reply = send(&routes, request(Method::POST, "/api/v1/query", &headers, body)).await;
        assert_eq!(reply.status, 200, "{encoding}: {}", reply.text());
    }
}

#[tokio::test]
async fn odd_encodings_and_bombs_are_refused() {
    let routes = over_shared(Arc::new(Memory::default()));
    let post = |encoding: &str, body: Vec<u8>| {
        let headers = [("content-encoding", encoding)];
        request(Method::POST, "/api/v1/query", &headers, Body::from(body))
    };
    let (status, _, message) = send(&routes, post("br", b"query=1".to_vec())).await.error();
    assert_eq!(status, 415);
    assert_eq!(message, r#"the encoding "br" is not understood; gzip and zstd are"#);
    let (status, _, message) = send(&routes, post("gzip", b"query=1".to_vec())).await.error();
    assert_eq!(status, 400);
    assert!(message.starts_with("the request body can't be read"), "{message}");
    let bomb = gzip(&vec![b'x'; 64 << 20]);
    assert!(bomb.len() < 1 << 20);
    let (status, _, message) = send(&routes, post("gzip", bomb)).await.error();
    assert_eq!((status, message.as_str()), (413, "the request body has more than 2097152 bytes"));
}
