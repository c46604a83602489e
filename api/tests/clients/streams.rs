//! Streams of events: their bytes, their order, and their end.

use std::time::Duration;

use serde_json::{Value, json};
use tributary_api::access::{Access, TenantLimits};
use tributary_api::error::QueryError;
use tributary_api::http::{Settings, routes};
use tributary_api::question::QueryEvent;

use crate::memory::{CHUNK_STEPS, Memory, Told, done, values_at};
use crate::reply::{Reply, get, over, over_shared, post_form, post_json};

const SERIES: &str = "
load 1m
  temperature{room=\"attic\"} 20.5 NaN Inf
  temperature{room=\"cellar\"} 1 2 _
";

/// The frames of a stream, each checked for its form.
fn frames(reply: &Reply) -> Vec<(String, Value)> {
    let text = reply.text();
    assert_eq!(reply.status, 200, "{text}");
    assert_eq!(reply.header("content-type"), "text/event-stream");
    assert!(text.ends_with("\n\n"), "{text:?}");
    let frames = text.trim_end_matches("\n\n").split("\n\n").map(|frame| {
        let json: Value = serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap();
        (json["type"].as_str().unwrap().to_owned(), json["data"].clone())
    });
    frames.collect()
}

fn kinds(frames: &[(String, Value)]) -> Vec<&str> {
    frames.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[tokio::test]
async fn the_bytes_of_a_stream_are_as_agreed() {
    let routes = over(Memory::of(SERIES));
    let expected = concat!(
        "data: {\"type\":\"progress\",\"data\":{\"done\":1,\"total\":1}}\n\n",
        "data: {\"type\":\"result\",\"data\":{\"tags\":{\"__name__\":\"temperature\",\"room\":\"attic\"},\"value\":20.5,\"timestamp\":0,\"label\":\"temperature{room=\\\"attic\\\"}\"}}\n\n",
        "data: {\"type\":\"result\",\"data\":{\"tags\":{\"__name__\":\"temperature\",\"room\":\"cellar\"},\"value\":1,\"timestamp\":0,\"label\":\"temperature{room=\\\"cellar\\\"}\"}}\n\n",
        "data: {\"type\":\"result\",\"data\":{\"tags\":{\"__name__\":\"temperature\",\"room\":\"attic\"},\"value\":\"NaN\",\"timestamp\":60000,\"label\":\"temperature{room=\\\"attic\\\"}\"}}\n\n",
        "data: {\"type\":\"result\",\"data\":{\"tags\":{\"__name__\":\"temperature\",\"room\":\"cellar\"},\"value\":2,\"timestamp\":60000,\"label\":\"temperature{room=\\\"cellar\\\"}\"}}\n\n",
        "data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n",
    );
    let body = r#"{"q":"temperature","s":"0","e":60000,"step":"1m"}"#;
    let form = "q=temperature&s=1970-01-01T00:00:00Z&e=60000&step=60";
    for reply in [
        post_json(&routes, "/api/v1/metrics/query", body).await,
        // `curl -d` says that it is a form.
        post_form(&routes, "/api/v1/metrics/query", body).await,
        post_form(&routes, "/api/v1/metrics/query", form).await,
        get(&routes, &format!("/api/v1/metrics/query?{form}")).await,
    ] {
        assert_eq!(reply.text(), expected);
        assert_eq!(reply.header("cache-control"), "no-cache");
        assert_eq!(reply.header("content-encoding"), "");
        assert_eq!(reply.header("x-query-id").len(), 32);
    }
}

#[tokio::test]
async fn results_come_in_time_order_over_all_chunks() {
    let routes = over(Memory::of("load 10s\n  a{x=\"1\"} 0+1x60\n  a{x=\"2\"} 0+2x60\n"));
    let body = r#"{"q":"a","s":0,"e":600000}"#;
    let frames = frames(&post_json(&routes, "/api/v1/metrics/query", body).await);
    let times: Vec<i64> = frames
        .iter()
        .filter(|(kind, _)| kind == "result")
        .map(|(_, data)| data["timestamp"].as_i64().unwrap())
        .collect();
    assert_eq!(times.len(), 2 * 61, "without a step, ten minutes have steps of ten seconds");
    assert!(times.len() > 4 * CHUNK_STEPS && times.is_sorted());
}

#[tokio::test]
async fn steps_follow_from_the_range() {
    let told = Told::by(|question, sender| async move {
        let total = u32::try_from(question.spec.step.unwrap()).unwrap();
        sender.send(QueryEvent::Progress { done: 0, total }).await.unwrap();
        sender.send(done()).await.unwrap();
    });
    let routes = over_shared(told);
    for (range, step) in [
        ("s=now-65m&e=now", 10_000),
        ("s=now-66m&e=now", 60_000),
        ("s=now-12h&e=now", 60_000),
        ("s=now-1d&e=now", 300_000),
        ("s=now-3d&e=now", 1_200_000),
        ("s=now-30d&e=now", 3_600_000),
        ("", 10_000),
        ("s=now-30d&e=now&step=4m", 240_000),
        ("s=now-1h&step=0.5", 500),
    ] {
        let reply = get(&routes, &format!("/api/v1/metrics/query?q=up&{range}")).await;
        assert_eq!(frames(&reply)[0].1["total"], step, "{range}");
    }
}

#[tokio::test]
async fn summaries_follow_where_asked_for() {
    let routes = over(Memory::of("load 10s\n  b 0+1x100\n  a{x=\"1\"} 1x100\n"));
    let ask = |summary: &str| {
        let routes = routes.clone();
        let body = format!(
            r#"{{"q":"{{x=\"1\"}} or b","s":0,"e":1000000,"step":"10s","summary":{summary}}}"#
        );
        async move { frames(&post_json(&routes, "/api/v1/metrics/query", &body).await) }
    };
    let both = ask("true").await;
    assert_eq!(kinds(&both).iter().filter(|kind| **kind == "result").count(), 202);
    let summaries: Vec<&Value> =
        both.iter().filter(|(kind, _)| kind == "summary").map(|(_, data)| data).collect();
    assert_eq!(
        *summaries[1],
        json!({
            "label": "b", "tags": {"__name__": "b"}, "min": 0, "max": 100, "avg": 50, "sum": 5050,
            "count": 101, "p50": 50, "p90": 90, "p95": 95, "p99": 99,
        })
    );
    assert_eq!(summaries[0]["label"], r#"a{x="1"}"#);
    assert_eq!(both.last().unwrap().1, json!({"status": "ok"}));
    assert_eq!(kinds(&ask("\"only\"").await), ["progress", "summary", "summary", "done"]);
    assert!(!kinds(&ask("false").await).contains(&"summary"));
}

#[tokio::test]
async fn a_summary_that_does_not_fit_into_memory_is_an_error() {
    let told = Told::by(|_, sender| async move {
        let ts: Vec<i64> = (0..1_000).collect();
        while sender.send(values_at(&ts, 1.0)).await.is_ok() {}
    });
    let mut settings = Settings::default();
    settings.evaluation.limits.max_values = 10_000;
    let access = Access::without_keys(TenantLimits::default());
    let routes = routes(told, settings, access);
    let reply = get(&routes, "/api/v1/metrics/query?q=up&summary=only").await;
    let frames = frames(&reply);
    assert_eq!(kinds(&frames), ["error", "done"]);
    assert_eq!(frames[0].1["code"], "execution");
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_heartbeats_and_waiting_is_told() {
    let told = Told::by(|_, sender| async move {
        sender.send(QueryEvent::WaitingScaleUp).await.unwrap();
        tokio::time::sleep(Duration::from_secs(11)).await;
        sender.send(QueryEvent::Progress { done: 0, total: 2 }).await.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        sender.send(values_at(&[1_000], 0.25)).await.unwrap();
        sender.send(done()).await.unwrap();
    });
    let reply = get(&over_shared(told), "/api/v1/metrics/query?q=up").await;
    let frames = frames(&reply);
    assert_eq!(
        kinds(&frames),
        ["waiting_scale_up", "heartbeat", "heartbeat", "progress", "heartbeat", "result", "done"]
    );
    assert_eq!(frames[1].1, json!({"status": "waiting"}));
    assert_eq!(frames[4].1, json!({"status": "running"}));
}

#[tokio::test]
async fn a_failure_is_an_error_and_then_done() {
    let failing = |error: Option<QueryError>| {
        over_shared(Told::by(move |_, sender| {
            let error = error.clone();
            async move {
                sender.send(values_at(&[0], 1.0)).await.unwrap();
                if let Some(error) = error {
                    sender.send(QueryEvent::Failed(error)).await.unwrap();
                }
            }
        }))
    };
    let cancelled = get(&failing(Some(QueryError::Cancelled)), "/api/v1/metrics/query?q=up").await;
    assert!(
        cancelled.text().ends_with(concat!(
            "data: {\"type\":\"error\",\"data\":{\"code\":\"canceled\",\"message\":\"the query was cancelled\"}}\n\n",
            "data: {\"type\":\"done\",\"data\":{\"status\":\"error\"}}\n\n",
        )),
        "{}",
        cancelled.text()
    );
    // Whoever ran the query is gone without a word.
    let lost = frames(&get(&failing(None), "/api/v1/metrics/query?q=up").await);
    assert_eq!(kinds(&lost), ["result", "error", "done"]);
    assert_eq!(lost[1].1["code"], "unavailable");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_the_stream() {
    let routes = over(Memory::of(SERIES));
    for (body, message) in [
        ("{}", r#"invalid parameter "q": a query is expected"#),
        (
            r#"{"q":"rate(up)"}"#,
            r#"invalid parameter "q": 1:6: parse error: expected type range vector in call to function "rate", got instant vector"#,
        ),
        (
            r#"{"q":"up[5m]"}"#,
            r#"invalid parameter "q": a range vector has no values over time; a vector or a scalar has"#,
        ),
        (
            r#"{"q":"up","s":"now","e":"now-1h"}"#,
            r#"invalid parameter "e": the end must not be before the start"#,
        ),
        (
            r#"{"q":"up","s":"noon"}"#,
            r#"invalid parameter "s": cannot read "noon" as a time; milliseconds since 1970, RFC 3339, now or now-1h are"#,
        ),
        (
            r#"{"q":"up","step":"0s"}"#,
            r#"invalid parameter "step": zero or negative query resolution step widths are not accepted. Try a positive integer"#,
        ),
        (
            r#"{"q":"up","step":"1ms"}"#,
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
        ),
        (
            r#"{"q":"up","summary":"some"}"#,
            r#"invalid parameter "summary": "some" is none of true, false and only"#,
        ),
        ("{\"q\":\"up\"", "the body is no JSON: EOF while parsing an object at line 1 column 9"),
    ] {
        let reply = post_json(&routes, "/api/v1/metrics/query", body).await;
        assert_eq!(reply.error(), (400, "bad_data".to_owned(), message.to_owned()), "{body}");
    }
}
