//! `series`, `labels`, `label/<name>/values`, `metadata`, and what the data source asks in their place.

use serde_json::json;

use crate::memory::Memory;
use crate::reply::{get, over, post_form, post_json};

const SERIES: &str = "
load 1m
  requests_total{job=\"api\", code=\"200\"} 0+60x10
  requests_total{job=\"web\", code=\"500\"} 0+6x10
  {\"__name__\"=\"disk.used\", \"host.name\"=\"a\"} 1x2
";

#[tokio::test]
async fn series_labels_and_values_are_found() {
    let routes = over(Memory::of(SERIES));
    let reply =
        get(&routes, "/api/v1/series?match[]=requests_total&match[]=%7Bjob=%22api%22%7D").await;
    assert_eq!(
        reply.text(),
        concat!(
            r#"{"status":"success","data":[{"__name__":"requests_total","code":"200","job":"api"},"#,
            r#"{"__name__":"requests_total","code":"500","job":"web"}]}"#
        )
    );
    let post = post_form(&routes, "/api/v1/series", "match[]=disk.used&end=1").await;
    assert_eq!(post.status, 400, "a name with a point needs quotes: {}", post.text());
    let post = post_form(&routes, "/api/v1/series", "match[]=%7B%22disk.used%22%7D&end=1").await;
    assert_eq!(post.json()["data"], json!([{"__name__": "disk.used", "host.name": "a"}]));
    let names = get(&routes, "/api/v1/labels").await.json();
    assert_eq!(names["data"], json!(["__name__", "code", "host.name", "job"]));
    let names = post_form(&routes, "/api/v1/labels", "match[]=%7Bjob=~%22a.%2B%22%7D").await.json();
    assert_eq!(names["data"], json!(["__name__", "code", "job"]));
    for (name, values) in [
        ("job", json!(["api", "web"])),
        ("__name__", json!(["disk.used", "requests_total"])),
        ("U__host_2e_name", json!(["a"])),
        ("host.name", json!(["a"])),
        ("nothing", json!([])),
    ] {
        let reply = get(&routes, &format!("/api/v1/label/{name}/values")).await.json();
        assert_eq!(reply["data"], values, "{name}");
    }
    let of_one = get(&routes, "/api/v1/label/job/values?match[]=%7Bcode=%22500%22%7D").await.json();
    assert_eq!(of_one["data"], json!(["web"]));
}

#[tokio::test]
async fn times_and_limits_narrow_what_is_found() {
    let routes = over(Memory::of(SERIES));
    let late = get(&routes, "/api/v1/label/__name__/values?start=300").await.json();
    assert_eq!(late["data"], json!(["requests_total"]));
    let backwards = get(&routes, "/api/v1/labels?start=300&end=200").await.json();
    assert_eq!(backwards["data"], json!([]));
    for path in
        ["labels?limit=1", "label/job/values?limit=1", "series?match[]=requests_total&limit=1"]
    {
        let reply = get(&routes, &format!("/api/v1/{path}")).await.json();
        assert_eq!(reply["data"].as_array().unwrap().len(), 1, "{path}");
        assert_eq!(reply["warnings"], json!(["results truncated due to limit"]), "{path}");
    }
}

#[tokio::test]
async fn selectors_that_ask_for_nothing_or_everything_are_refused() {
    let routes = over(Memory::of(SERIES));
    for (path, message) in [
        ("series", "no match[] parameter provided"),
        (
            "series?match[]=%7B%7D",
            r#"invalid parameter "match[]": match[] must contain at least one non-empty matcher"#,
        ),
        ("labels?match[]=%7Ba=~%22.*%22%7D", "match[] must contain at least one non-empty matcher"),
        (
            "label/job/values?start=x",
            r#"invalid parameter "start": invalid time value for 'start': cannot parse "x" to a valid timestamp"#,
        ),
    ] {
        let (status, kind, text) = get(&routes, &format!("/api/v1/{path}")).await.error();
        assert_eq!((status, kind.as_str(), text.as_str()), (400, "bad_data", message), "{path}");
    }
    let (status, _, text) = get(&routes, "/api/v1/series?match[]=sum(a)").await.error();
    assert_eq!(status, 400);
    assert!(text.starts_with(r#"invalid parameter "match[]": 1:4: parse error:"#), "{text}");
}

#[tokio::test]
async fn metadata_tells_what_metrics_are() {
    let routes = over(Memory::of(SERIES));
    let all = get(&routes, "/api/v1/metadata").await;
    assert_eq!(
        all.text(),
        concat!(
            r#"{"status":"success","data":{"disk.used":[{"type":"gauge","help":"All of disk.used.","unit":""}],"#,
            r#""requests_total":[{"type":"counter","help":"All of requests_total.","unit":""}]}}"#
        )
    );
    let one = get(&routes, "/api/v1/metadata?metric=requests_total").await.json();
    assert_eq!(one["data"].as_object().unwrap().len(), 1);
    assert_eq!(get(&routes, "/api/v1/metadata?limit=0").await.json()["data"], json!({}));
    let (_, _, message) = get(&routes, "/api/v1/metadata?limit=x").await.error();
    assert_eq!(message, "limit must be a number");
}

#[tokio::test]
async fn the_data_source_finds_metrics_tags_and_values() {
    let routes = over(Memory::of(SERIES));
    let range = r#""s":"0","e":600000"#;
    let metrics = post_json(&routes, "/api/v1/metrics/metadata", &format!("{{{range}}}")).await;
    assert_eq!(
        metrics.text(),
        r#"{"metrics":[{"name":"disk.used","type":"gauge"},{"name":"requests_total","type":"counter"}]}"#
    );
    let tags = |body: String| {
        let routes = routes.clone();
        async move { post_json(&routes, "/api/v1/metrics/tags", &body).await }
    };
    let of_metric = tags(format!(r#"{{{range},"metric":"requests_total"}}"#)).await;
    assert_eq!(of_metric.text(), r#"{"tags":["code","job"]}"#);
    let of_query =
        tags(format!(r#"{{{range},"q":"rate({{\"host.name\"=\"a\"}}[5m]) / 2"}}"#)).await;
    assert_eq!(of_query.text(), r#"{"tags":["host.name"]}"#);
    let of_nothing = tags(format!(r#"{{{range},"q":"1"}}"#)).await;
    assert_eq!(of_nothing.error().2, r#"invalid parameter "q": the query asks for no series"#);

    let address = "/api/v1/metrics/tagvalues?tagName=job";
    let values = post_json(&routes, address, &format!(r#"{{{range},"q":"requests_total"}}"#)).await;
    assert_eq!(values.header("content-type"), "text/event-stream");
    assert_eq!(
        values.text(),
        "data: {\"type\":\"result\",\"data\":{\"value\":\"api\"}}\n\n\
         data: {\"type\":\"result\",\"data\":{\"value\":\"web\"}}\n\n\
         data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n"
    );
    let unnamed = post_json(&routes, "/api/v1/metrics/tagvalues", "{}").await;
    assert_eq!(unnamed.error().0, 400);
}

#[tokio::test]
async fn the_data_source_learns_features_and_checks_texts() {
    let routes = over(Memory::default());
    for reply in
        [get(&routes, "/api/v1/features").await, post_json(&routes, "/api/v1/features", "{}").await]
    {
        assert_eq!(reply.text(), r#"{"features":{"metricsSummarySSE":true}}"#);
    }
    assert_eq!(get(&routes, "/api/v1/ping").await.text(), r#"{"status":"ok"}"#);
    let check = "/api/v1/promql/validate";
    let valid = post_json(&routes, check, r#"{"query":"up","exemplar":{"a":1}}"#).await;
    assert_eq!(valid.text(), r#"{"valid":true}"#);
    let wrong = post_json(&routes, check, r#"{"query":"sum(up) by\n  (é"}"#).await;
    assert_eq!(wrong.status, 200);
    let wrong = wrong.json();
    assert_eq!((&wrong["valid"], &wrong["line"]), (&json!(false), &json!(2)));
    assert!(wrong["near"].as_str().unwrap().contains("(é"), "{wrong}");
    assert_eq!(post_json(&routes, check, r#"{"query":"#).await.error().0, 400);
    assert_eq!(post_json(&routes, check, "{}").await.error().0, 400);
}
