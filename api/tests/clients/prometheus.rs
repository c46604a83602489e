//! `query` and `query_range`, to the byte.

use std::sync::Arc;

use serde_json::json;
use tributary_api::access::{Access, TenantLimits};
use tributary_api::error::QueryError;
use tributary_api::http::{Settings, routes};
use tributary_api::question::QueryEvent;

use crate::memory::{Memory, Told, done};
use crate::reply::{get, over, over_shared, post_form, post_json};

const SERIES: &str = "
load 1m
  requests_total{job=\"api\", code=\"200\"} 0+60x10
  requests_total{job=\"api\", code=\"500\"} 0+6x10
  temperature{room=\"attic\"} 20.5 21 NaN Inf -Inf 1e-7 1e21
";

#[tokio::test]
async fn an_instant_query_is_answered_as_prometheus_does() {
    let routes = over(Memory::of(SERIES));
    let reply = get(&routes, "/api/v1/query?query=requests_total&time=120.5").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.header("x-query-id").len(), 32);
    assert_eq!(
        reply.text(),
        concat!(
            r#"{"status":"success","data":{"resultType":"vector","result":["#,
            r#"{"metric":{"__name__":"requests_total","code":"200","job":"api"},"value":[120.500,"120"]},"#,
            r#"{"metric":{"__name__":"requests_total","code":"500","job":"api"},"value":[120.500,"12"]}]}}"#
        )
    );
    for (query, result) in [
        ("1%2B1.5", r#""resultType":"scalar","result":[60,"2.5"]"#),
        ("%22hi%22", r#""resultType":"string","result":[60,"hi"]"#),
        ("1e400", r#"invalid parameter \"query\""#),
        (
            "temperature[2m]",
            r#""resultType":"matrix","result":[{"metric":{"__name__":"temperature","room":"attic"},"values":[[0,"20.5"],[60,"21"]]}]"#,
        ),
        ("nothing", r#""resultType":"vector","result":[]"#),
    ] {
        let reply = get(&routes, &format!("/api/v1/query?query={query}&time=60")).await;
        assert!(reply.text().contains(result), "{query}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_range_query_is_answered_from_address_form_and_json() {
    let routes = over(Memory::of(SERIES));
    let expected = concat!(
        r#"{"status":"success","data":{"resultType":"matrix","result":["#,
        r#"{"metric":{"__name__":"temperature","room":"attic"},"values":["#,
        r#"[0,"20.5"],[60,"21"],[120,"NaN"],[180,"+Inf"],[240,"-Inf"],[300,"1e-07"],[360,"1e+21"]]}]}}"#
    );
    let form = "query=temperature&start=0&end=1970-01-01T00:06:00Z&step=1m";
    let json = r#"{"query":"temperature","start":0,"end":"360","step":60}"#;
    for reply in [
        get(&routes, &format!("/api/v1/query_range?{form}")).await,
        post_form(&routes, "/api/v1/query_range", form).await,
        post_json(&routes, "/api/v1/query_range", json).await,
    ] {
        assert_eq!((reply.status.as_u16(), reply.text()), (200, expected));
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_prometheus_words() {
    let routes = over(Memory::of(SERIES));
    let eleven = "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the \
                  query resolution (?step=XX)";
    let positive = "invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer";
    for (address, message) in [
        (
            "query?query=rate(requests_total)",
            r#"invalid parameter "query": 1:6: parse error: expected type range vector in call to function "rate", got instant vector"#,
        ),
        (
            "query?query=sum(",
            r#"invalid parameter "query": 1:5: parse error: unclosed left parenthesis"#,
        ),
        (
            "query",
            r#"invalid parameter "query": unknown position: parse error: no expression found in input"#,
        ),
        (
            "query?query=1&time=noon",
            r#"invalid parameter "time": invalid time value for 'time': cannot parse "noon" to a valid timestamp"#,
        ),
        (
            "query?query=1&timeout=soon",
            r#"invalid parameter "timeout": cannot parse "soon" to a valid duration"#,
        ),
        (
            "query?query=1&limit=few",
            r#"invalid parameter "limit": strconv.Atoi: parsing "few": invalid syntax"#,
        ),
        ("query?query=1&limit=-1", r#"invalid parameter "limit": limit must be non-negative"#),
        (
            "query?query=1&lookback_delta=far",
            r#"error parsing lookback delta duration: cannot parse "far" to a valid duration"#,
        ),
        (
            "query_range?query=1&end=10&step=1",
            r#"invalid parameter "start": cannot parse "" to a valid timestamp"#,
        ),
        (
            "query_range?query=1&start=10&end=9&step=1",
            r#"invalid parameter "end": end timestamp must not be before start time"#,
        ),
        (
            "query_range?query=1&start=0&end=10",
            r#"invalid parameter "step": cannot parse "" to a valid duration"#,
        ),
        ("query_range?query=1&start=0&end=10&step=0", positive),
        (
            "query_range?query=1&start=0&end=10&step=-1s",
            r#"invalid parameter "step": cannot parse "-1s" to a valid duration"#,
        ),
        ("query_range?query=1&start=0&end=10&step=-1", positive),
        ("query_range?query=1&start=0&end=10&step=0.0001", positive),
        (
            "query_range?query=1&start=0&end=10&step=1e99",
            r#"invalid parameter "step": cannot parse "1e99" to a valid duration. It overflows int64"#,
        ),
        ("query_range?query=1&start=0&end=11001&step=1", eleven),
        ("query_range?query=1&start=-1e14&end=1e14&step=1ms", eleven),
        (
            "query_range?query=up[5m]&start=0&end=10&step=1",
            r#"invalid parameter "query": invalid expression type "range vector" for range query, must be Scalar or instant Vector"#,
        ),
    ] {
        let reply = get(&routes, &format!("/api/v1/{address}")).await;
        assert_eq!(reply.error(), (400, "bad_data".to_owned(), message.to_owned()), "{address}");
    }
    let reply = get(&routes, "/api/v1/query?query=vector(1)").await;
    assert_eq!(reply.status, 200, "the next query works");
}

#[tokio::test]
async fn as_many_intervals_as_prometheus_allows_are_one_more_points() {
    let told = Told::by(|question, sender| async move {
        assert_eq!(question.options.limits.max_steps, 11_001);
        sender.send(done()).await.unwrap();
    });
    let path = "/api/v1/query_range?query=1&start=0&end=11000&step=1";
    assert_eq!(get(&over_shared(told), path).await.status, 200);
}

#[tokio::test]
async fn a_query_that_fails_over_its_data_is_unprocessable() {
    let routes = over(Memory::of(SERIES));
    let query = "requests_total%20%2B%20on(job)%20requests_total";
    let (status, kind, message) =
        get(&routes, &format!("/api/v1/query?query={query}&time=60")).await.error();
    assert_eq!((status, kind.as_str()), (422, "execution"));
    assert!(message.contains("found duplicate series"), "{message}");
}

#[tokio::test]
async fn limits_cut_the_answer_and_say_so() {
    let routes = over(Memory::of(SERIES));
    let limited = |path: &str, limit: &str| format!("/api/v1/{path}&limit={limit}");
    let range = "query_range?query=requests_total&start=0&end=60&step=60";
    for path in ["query?query=requests_total&time=60", range] {
        let reply = get(&routes, &limited(path, "1")).await.json();
        assert_eq!(reply["data"]["result"].as_array().unwrap().len(), 1);
        assert_eq!(reply["warnings"], json!(["results truncated due to limit"]));
        for all in ["0", "2", ""] {
            let reply = get(&routes, &limited(path, all)).await.json();
            assert_eq!(reply["data"]["result"].as_array().unwrap().len(), 2);
            assert_eq!(reply.get("warnings"), None);
        }
    }
}

#[tokio::test]
async fn warnings_infos_and_stats_are_told() {
    let routes = over(Memory::of(SERIES));
    let query = "quantile(2, rate(temperature[5m]))".replace(' ', "%20");
    let reply = get(&routes, &format!("/api/v1/query?query={query}&time=60&stats=all")).await;
    let json = reply.json();
    let warning = json["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("PromQL warning: quantile value should be between 0 and 1"),
        "{json}"
    );
    let info = json["infos"][0].as_str().unwrap();
    assert!(info.contains(r#"might not be a counter"#) && info.ends_with("(1:18)"), "{json}");
    let stats = &json["data"]["stats"];
    assert_eq!(stats["samples"]["totalQueryableSamples"], 5);
    for timing in ["evalTotalTime", "queryPreparationTime", "innerEvalTime", "execTotalTime"] {
        assert!(stats["timings"][timing].is_number(), "{timing}");
    }
    let odd = get(&routes, "/api/v1/query?query=vector(1)&stats=some").await.json();
    assert!(odd["warnings"][0].as_str().unwrap().contains("deprecated"), "{odd}");
    assert!(odd["data"]["stats"].is_object());
    let none = get(&routes, "/api/v1/query?query=vector(1)").await.json();
    assert_eq!(none["data"].get("stats"), None);
}

#[tokio::test]
async fn lookback_and_timeout_reach_the_query() {
    let routes = over(Memory::of(SERIES));
    let at = "/api/v1/query?query=temperature&time=420";
    let near = get(&routes, &format!("{at}&lookback_delta=30s")).await.json();
    assert_eq!(near["data"]["result"], json!([]));
    let far = get(&routes, &format!("{at}&lookback_delta=0")).await.json();
    assert_eq!(far["data"]["result"].as_array().unwrap().len(), 1);

    let told = Told::by(|question, sender| async move {
        let error = format!("{:?} {}", question.timeout, question.traceparent);
        let error = tributary_promql::eval::EvalError::invalid(error);
        sender.send(QueryEvent::Failed(QueryError::Eval(error))).await.unwrap();
    });
    let routes = over_shared(told);
    for (timeout, seen) in [("", "120s"), ("1.5", "1.5s"), ("10m", "120s"), ("2s", "2s")] {
        let (_, _, message) =
            get(&routes, &format!("/api/v1/query?query=1&timeout={timeout}")).await.error();
        assert_eq!(message.trim(), seen);
    }
}

#[tokio::test(start_paused = true)]
async fn a_query_that_never_ends_is_given_up() {
    let routes = over_shared(Told::by(|_, sender| async move { sender.closed().await }));
    let reply = get(&routes, "/api/v1/query?query=1&timeout=3").await;
    let (status, kind, message) = reply.error();
    assert_eq!((status, kind.as_str()), (503, "timeout"));
    assert_eq!(message, "query timed out in expression evaluation");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_into_memory_names_the_limit() {
    let mut settings = Settings::default();
    settings.evaluation.limits.max_values = 10;
    let access = Access::without_keys(TenantLimits::default());
    let routes = routes(Arc::new(Memory::of(SERIES)), settings, access);
    let (status, kind, message) =
        get(&routes, "/api/v1/query_range?query=requests_total&start=0&end=600&step=60")
            .await
            .error();
    assert_eq!((status, kind.as_str()), (422, "execution"));
    assert!(message.ends_with("the limit is max_values"), "{message}");
}

#[tokio::test]
async fn queries_are_formatted_and_taken_apart() {
    let routes = over(Memory::default());
    let text = "sum(rate(foo%7Ba=%22b%22%7D[5m]))by(x)/2";
    let reply = get(&routes, &format!("/api/v1/format_query?query={text}")).await;
    assert_eq!(
        reply.text(),
        r#"{"status":"success","data":"sum by (x) (rate(foo{a=\"b\"}[5m])) / 2"}"#
    );
    let tree = post_form(&routes, "/api/v1/parse_query", &format!("query={text}")).await.json();
    let data = &tree["data"];
    assert_eq!(data["type"], "binaryExpr");
    assert_eq!((&data["op"], &data["matching"]), (&json!("/"), &json!(null)));
    assert_eq!(data["rhs"], json!({"type": "numberLiteral", "val": "2"}));
    assert_eq!(data["lhs"]["grouping"], json!(["x"]));
    let call = &data["lhs"]["expr"];
    assert_eq!(
        call["func"],
        json!({"name": "rate", "argTypes": ["matrix"], "variadic": 0, "returnType": "vector"})
    );
    let selector = &call["args"][0];
    assert_eq!((&selector["range"], &selector["name"]), (&json!(300_000), &json!("foo")));
    assert_eq!(selector["matchers"][0], json!({"name": "__name__", "type": "=", "value": "foo"}));
    for path in ["format_query", "parse_query"] {
        let reply = get(&routes, &format!("/api/v1/{path}?query=foo{{")).await;
        let (status, _, message) = reply.error();
        assert_eq!(status, 400);
        assert!(
            message.starts_with(r#"invalid parameter "query": 1:5: parse error:"#),
            "{message}"
        );
    }
}

#[tokio::test]
async fn grafana_learns_what_it_may_ask_and_probes_are_answered() {
    let routes = over(Memory::default());
    let info = get(&routes, "/api/v1/status/buildinfo").await.json();
    assert_eq!(info["data"]["version"], "3.5.0");
    assert_eq!(info["data"]["application"], "tributary");
    assert_eq!(get(&routes, "/-/healthy").await.text(), "Tributary is Healthy.\n");
    assert_eq!(get(&routes, "/-/ready").await.text(), "Tributary is Ready.\n");
    let description = get(&routes, "/api/v1/openapi.json").await.json();
    assert_eq!(description["openapi"], "3.1.0");
}
