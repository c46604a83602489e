//! Requests that nobody should send: each gets a clear error, and the next query works.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Method;
use bytes::Bytes;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::task::JoinSet;
use tributary_artifact_store::serve::{ServeConfig, serve_connection};

use crate::memory::Memory;
use crate::reply::{get, over, post_form, post_json, request, send};

#[tokio::test]
async fn texts_made_to_hurt_are_refused_soon() {
    let routes = over(Memory::of("load 1m\n  up 1\n"));
    let nested = format!("query={}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let minus = format!("query={}1", "-".repeat(60_000));
    let sums = format!("query=1{}", "%2B1".repeat(20_000));
    let long = format!("query={}", "a".repeat(70_000));
    let pattern = "query=up{a=~\"((((x{1000}){1000}){1000}){1000})\"}".replace('"', "%22");
    let groups = format!("query=up{{a=~%22{}{}%22}}", "(".repeat(200), ")".repeat(200));
    let matchers = format!("query=up{{{}}}", "a=%22b%22,".repeat(2_000));
    for (form, says) in [
        (nested.as_str(), "nest more than 128 levels deep"),
        (&minus, "parse error"),
        (&sums, "parse error"),
        (&long, "bytes of text, at most 65536 are allowed"),
        (&pattern, "invalid repeat count"),
        (&groups, "parse error"),
        (&matchers, "a selector has more than 1000 matchers"),
    ] {
        for path in ["query", "format_query", "parse_query"] {
            let begun = Instant::now();
            let (status, kind, message) =
                post_form(&routes, &format!("/api/v1/{path}"), form).await.error();
            assert_eq!((status, kind.as_str()), (400, "bad_data"), "{message}");
            assert!(message.contains(says), "{message}");
            assert!(begun.elapsed() < Duration::from_secs(5), "{says} took too long");
            assert!(message.len() < 2_000, "{} bytes of message", message.len());
        }
    }
    assert_eq!(get(&routes, "/api/v1/query?query=up").await.status, 200);
}

#[tokio::test]
async fn patterns_that_ruin_backtracking_engines_are_ordinary_here() {
    let value = "a".repeat(50);
    let routes = over(Memory::of(&format!("load 1m\n  up{{x=\"{value}!\"}} 1\n")));
    let begun = Instant::now();
    let query = "up{x=~\"(a+)+(a|aa)+(.*a){20}\"}".replace('+', "%2B").replace('"', "%22");
    let reply = post_form(&routes, "/api/v1/query", &format!("query={query}&time=0")).await;
    assert_eq!(reply.json()["data"]["result"].as_array().unwrap().len(), 0);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn broken_and_deep_json_is_refused() {
    let routes = over(Memory::default());
    let deep = format!("{{\"q\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for body in
        ["{", "{\"q\":\"up\"", "{\"q\" \"up\"}", "null", "\"q\"", "{\"q\":\"\\ud800\"}", &deep]
    {
        for path in ["metrics/query", "query", "metrics/tags", "promql/validate"] {
            let reply = post_json(&routes, &format!("/api/v1/{path}"), body).await;
            let (status, kind, _) = reply.error();
            assert_eq!((status, kind.as_str()), (400, "bad_data"));
        }
    }
}

#[tokio::test]
async fn bodies_without_an_end_are_cut_off() {
    let routes = over(Memory::default());
    let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1 << 16])));
    let endless = request(Method::POST, "/api/v1/query", &[], Body::from_stream(endless));
    assert_eq!(send(&routes, endless).await.error().0, 413);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_never_come_are_given_up() {
    let routes = over(Memory::default());
    let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let silent = request(Method::POST, "/api/v1/query", &[], silent);
    let (status, kind, message) = send(&routes, silent).await.error();
    assert_eq!((status, kind.as_str()), (408, "timeout"));
    assert_eq!(message, "the request body did not come in time");
}

#[tokio::test]
async fn huge_heads_are_refused_by_the_connection() {
    let routes = over(Memory::default());
    let mut tasks = JoinSet::new();
    for request in [
        format!("GET /-/ready HTTP/1.1\r\nHost: test\r\nX-Long: {}\r\n\r\n", "x".repeat(100_000)),
        format!("GET /api/v1/query?query={} HTTP/1.1\r\nHost: test\r\n\r\n", "x".repeat(100_000)),
        format!("GET /-/ready HTTP/1.1\r\nHost: test\r\n{}\r\n", "A: b\r\n".repeat(5_000)),
    ] {
        let (near, mut far) = duplex(1 << 20);
        let routes = routes.clone();
        tasks.spawn(async move {
            let never = std::future::pending();
            _ = serve_connection(near, routes, &ServeConfig::default(), never).await;
        });
        far.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        far.read_to_string(&mut reply).await.unwrap();
        let status = reply.split(' ').nth(1);
        assert!(matches!(status, Some("431" | "414")), "{reply:?}");
    }
    assert_eq!(get(&routes, "/-/ready").await.status, 200);
}

#[tokio::test]
async fn odd_escapes_and_names_are_refused() {
    let routes = over(Memory::default());
    for path in [
        "/api/v1/query?query=%zz",
        "/api/v1/query?query=%ff",
        "/api/v1/label/%ff/values",
        "/api/v1/query?query=up&time=1e400",
        "/api/v1/query_range?query=up&start=nan&end=inf&step=1",
        "/api/v1/metrics/query?q=up&s=-1e99&e=1e99",
    ] {
        let (status, kind, message) = get(&routes, path).await.error();
        assert_eq!((status, kind.as_str()), (400, "bad_data"), "{path}: {message}");
    }
}
