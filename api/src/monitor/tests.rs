//! What is seen of a coordinator that has work and no workers.

use axum::body::Body;
use axum::http::Request;
use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{Coordinator, Input, Submission};
use core_workcoord::id::{ApiId, Endpoint, QueryId, TenantId};
use core_workcoord::moment::Moment;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::ServiceExt;
use tributary_leafwork::{SeriesInquiry, Tell};
use tributary_promql::EvalLimits;
use tributary_promql::leaf::TimeSpan;

use super::*;
use crate::access::{TenantLimits, new_key};
use crate::cells::Cell;
use crate::coordination::{Event, Inbox, Order, Records, news_room};
use crate::plan::Item;

/// A coordinator that has no workers to give work to.
pub(crate) async fn lonely_desk(mut inbox: Inbox) {
    let api = ApiId::new("api-1").unwrap();
    let mut coordinator = Coordinator::new(CoordinatorConfig::default(), api, 1).unwrap();
    let begun = Instant::now();
    let mut records = Records::default();
    while let Some(event) = inbox.events.recv().await {
        let now = Moment::ZERO + begun.elapsed();
        let input = match event {
            Event::Discovered(endpoint) => Input::WorkerDiscovered { endpoint },
            Event::Submit(order) => {
                records.begin(now, &order);
                Input::Submit(Submission {
                    query: order.query,
                    tenant: order.tenant.clone(),
                    deadline: now + order.timeout,
                    window: 16,
                    traceparent: order.traceparent.clone(),
                    items: order.items.iter().map(Item::work_item).collect(),
                })
            }
            Event::Cancel { query } => Input::CancelQuery { query },
            Event::Look(answer) => {
                let (counts, times) = (coordinator.counts().clone(), coordinator.times().clone());
                let view = View { snapshot: coordinator.snapshot(now), counts, times };
                answer.send(Box::new(view)).unwrap();
                continue;
            }
            Event::Recent(answer) => {
                answer.send(records.briefs()).unwrap();
                continue;
            }
            Event::Recall { query, answer } => {
                answer.send(records.get(query).cloned().map(Box::new)).unwrap();
                continue;
            }
            Event::Stop => return,
            other => panic!("nobody tells {other:?} here"),
        };
        coordinator.handle(now, input);
        while coordinator.poll_action().is_some() {}
    }
}

/// Work of so many items.
pub(crate) fn order(query: u128, items: usize) -> Order {
    let tenant = TenantId::new("t").unwrap();
    let item = |number| {
        let cell = Cell { span: TimeSpan::ALL, place: 0, segments: Vec::new() };
        let inquiry = SeriesInquiry { from: 0, to: 1, tell: Tell::Series, limit: 0 };
        let limits = EvalLimits::default();
        Item::of_inquiry(number, Vec::new(), inquiry, &tenant, &cell, &limits).unwrap()
    };
    Order {
        query: QueryId(query),
        tenant: tenant.clone(),
        text: "series".to_owned(),
        timeout: Duration::from_secs(60),
        traceparent: String::new(),
        items: Arc::new((0..items).map(item).collect()),
        // Who drops the other end hears nothing of it, which is all the same here.
        news: mpsc::channel(news_room(1)).0,
    }
}

fn everybody() -> Access {
    Access::without_keys(TenantLimits::default())
}

async fn get_json(monitor: &Arc<dyn Monitor>, path: &str) -> Value {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = routes(Arc::clone(monitor), everybody()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn queue_workers_and_queries_are_told_as_json() {
    let (coordination, inbox) = Coordination::new();
    let mut desk = JoinSet::new();
    desk.spawn(lonely_desk(inbox));
    let monitor: Arc<dyn Monitor> = Arc::new(QueueWatch::start(coordination.clone()));
    let empty = json!({"depth": 0, "queued": 0, "running": 0, "oldest_age_s": 0.0, "workers": 0});
    assert_eq!(get_json(&monitor, "/monitor/queue").await, empty);
    assert_eq!(get_json(&monitor, "/monitor/queries").await, json!({"queries": [], "recent": []}));

    coordination.discovered(Endpoint::new("w1:9470").unwrap()).await.unwrap();
    coordination.submit(order(7, 3)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let queue = get_json(&monitor, "/monitor/queue").await;
    assert_eq!((&queue["depth"], &queue["queued"]), (&json!(3), &json!(3)));
    let age = queue["oldest_age_s"].as_f64().unwrap();
    assert!((1.9..2.5).contains(&age), "{age}");
    let expected = json!({"workers": [{
        "endpoint": "w1:9470", "worker_id": null, "session_id": 1, "standing": "connecting",
        "held": false, "items": 0, "silent_s": 0.0, "status": null,
    }]});
    assert_eq!(get_json(&monitor, "/monitor/workers").await, expected);
    let queries = get_json(&monitor, "/monitor/queries").await;
    let query = &queries["queries"][0];
    assert_eq!(query["query_id"], "00000000000000000000000000000007");
    assert_eq!((&query["tenant"], &query["total"]), (&json!("t"), &json!(3)));

    coordination.stop().await;
    desk.join_all().await;
    let request = Request::get("/monitor/queue").body(Body::empty()).unwrap();
    let response = routes(monitor, everybody()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn whoever_has_a_key_sees_the_queries_of_its_tenant_alone_and_the_queue_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let [mine, other] = ["t", "other"].map(|name| {
        let tenant = TenantId::new(name).unwrap();
        new_key(&tenant, "test").unwrap()
    });
    std::fs::write(&path, format!("{}\n{}\n", mine.line, other.line)).unwrap();
    let access = Access::with_key_file(path, TenantLimits::default()).unwrap();

    let (coordination, inbox) = Coordination::new();
    let mut desk = JoinSet::new();
    desk.spawn(lonely_desk(inbox));
    coordination.submit(order(7, 3)).await.unwrap();
    let keyed = routes(Arc::new(QueueWatch::start(coordination.clone())), access);
    let open = routes(Arc::new(QueueWatch::start(coordination.clone())), everybody());
    let ask = async |routes: &Router, path: &str, header: &str, value: &str| {
        let request = Request::get(path).header(header, value).body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let seen = |told: &Value| {
        let count = |name: &str| told[name].as_array().unwrap().len();
        (count("queries"), count("recent"))
    };
    let one = &format!("/monitor/queries/{}", QueryId(7));
    for (path, is_open) in PATHS {
        let path = path.replace("{query_id}", &QueryId(7).to_string());
        let (status, _) = ask(&keyed, &path, "x-scope-orgid", "t").await;
        assert_eq!(status, if is_open { 200 } else { 401 }, "{path}");
        assert_eq!(ask(&keyed, &path, "x-api-key", &mine.key).await.0, 200, "{path}");
    }
    let (_, told) = ask(&keyed, "/monitor/queries", "x-api-key", &mine.key).await;
    assert_eq!(seen(&told), (1, 1));
    let (_, told) = ask(&keyed, one, "x-api-key", &mine.key).await;
    assert_eq!(told["items"].as_array().unwrap().len(), 3);
    let (_, told) = ask(&keyed, "/monitor/queries", "x-api-key", &other.key).await;
    assert_eq!(seen(&told), (0, 0), "other tenants' are not there");
    let (status, told) = ask(&keyed, one, "x-api-key", &other.key).await;
    assert_eq!((status, &told["errorType"]), (404, &json!("not_found")));

    // Without keys everybody's are seen, or those of the tenant that is named.
    for (tenant, count) in [("", (1, 1)), ("t", (1, 1)), ("other", (0, 0))] {
        let (_, told) = ask(&open, "/monitor/queries", "x-scope-orgid", tenant).await;
        assert_eq!(seen(&told), count, "{tenant}");
    }
    assert_eq!(ask(&open, one, "x-scope-orgid", "other").await.0, 404);
    assert_eq!(ask(&open, "/monitor/queries/7", "x-scope-orgid", "").await.0, 400);
    coordination.stop().await;
    desk.join_all().await;
}

#[tokio::test]
async fn a_node_is_ready_without_workers_and_not_when_it_leaves() {
    let (coordination, inbox) = Coordination::new();
    let mut desk = JoinSet::new();
    desk.spawn(lonely_desk(inbox));
    let leaving = CancellationToken::new();
    let probes = probes(Arc::new(QueueWatch::start(coordination.clone())), leaving.clone());
    let probe = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        probes.clone().oneshot(request).await.unwrap().status()
    };
    assert_eq!((probe("/healthz").await, probe("/readyz").await), (StatusCode::OK, StatusCode::OK));
    leaving.cancel();
    assert_eq!(probe("/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(probe("/healthz").await, StatusCode::OK, "who leaves is alive");
    coordination.stop().await;
    desk.join_all().await;
    assert_eq!(probe("/healthz").await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn an_order_to_an_empty_queue_is_seen_at_once_and_the_end_of_it_soon() {
    let (coordination, inbox) = Coordination::new();
    let mut desk = JoinSet::new();
    desk.spawn(lonely_desk(inbox));
    let watch = QueueWatch::start(coordination.clone());
    let mut figures = watch.queue();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    coordination.submit(order(1, 5)).await.unwrap();
    figures.wait_for(|queue| queue.depth == 5).await.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(5), "{:?}", begun.elapsed());
    coordination.cancel(QueryId(1)).await.unwrap();
    figures.wait_for(|queue| queue.depth == 0).await.unwrap();
    assert!(begun.elapsed() <= BUSY * 2, "{:?}", begun.elapsed());
    drop(watch);
    assert!(figures.changed().await.is_err(), "nobody watches any more");
}
