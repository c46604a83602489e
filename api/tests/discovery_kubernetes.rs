//! Discovery through EndpointSlices, against a small server that lists and watches them as the API
//! of Kubernetes does.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tributary_api::discovery::kubernetes::SliceSource;
use tributary_api::discovery::{Change, Discovery, Figures, Pace, PortChoice};

/// What the cluster holds, and who watches it.
#[derive(Default)]
struct Cluster {
    version: u64,
    slices: Vec<Value>,
    watchers: Vec<mpsc::Sender<String>>,
    is_down: bool,
    lists: u32,
    watches: u32,
}

type Shared = Arc<Mutex<Cluster>>;

async fn slices(
    State(cluster): State<Shared>,
    Path(namespace): Path<String>,
    Query(asked): Query<HashMap<String, String>>,
) -> Response {
    assert_eq!(namespace, "prod");
    assert_eq!(asked["labelSelector"], "kubernetes.io/service-name=workers");
    let mut cluster = cluster.lock().unwrap();
    if cluster.is_down {
        return (StatusCode::INTERNAL_SERVER_ERROR, "etcd is down").into_response();
    }
    let json = [(header::CONTENT_TYPE, "application/json")];
    if asked.get("watch").is_some_and(|watch| watch == "true") {
        cluster.watches += 1;
        // Whoever missed something is told to list again, as after a compaction.
        if asked["resourceVersion"] != cluster.version.to_string() {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "too old resource version", "reason": "Expired", "code": 410,
            });
            let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
            return (json, line).into_response();
        }
        let (events, lines) = mpsc::channel(16);
        cluster.watchers.push(events);
        let lines = ReceiverStream::new(lines).map(|line| Ok::<_, axum::Error>(Bytes::from(line)));
        return (json, Body::from_stream(lines)).into_response();
    }
    cluster.lists += 1;
    let list = json!({
        "kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"resourceVersion": cluster.version.to_string()},
        "items": cluster.slices,
    });
    (json, list.to_string()).into_response()
}

/// An endpoint of a pod, with its conditions.
fn pod(number: u32, address: &str, conditions: Value) -> Value {
    let target =
        json!({"kind": "Pod", "name": format!("w{number}"), "uid": format!("uid-{number}")});
    json!({"addresses": [address], "conditions": conditions, "targetRef": target})
}

fn slice(name: &str, family: &str, version: u64, endpoints: &[Value]) -> Value {
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": "prod", "resourceVersion": version.to_string()},
        "addressType": family,
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 9471}, {"name": "grpc", "port": 9470}],
    })
}

fn ready() -> Value {
    json!({"ready": true, "serving": true, "terminating": false})
}

struct Story {
    cluster: Shared,
    _server: JoinSet<()>,
    _discovery: Discovery,
    figures: Figures,
    changes: mpsc::Receiver<Change>,
}

impl Story {
    async fn begin(slices_there: Vec<Value>, port: PortChoice) -> Self {
        let cluster: Shared = Arc::default();
        {
            let mut cluster = cluster.lock().unwrap();
            cluster.version = 1;
            cluster.slices = slices_there;
        }
        let path = "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices";
        let routes = Router::new().route(path, get(slices)).with_state(cluster.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let client = kube::Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        let pace = Pace {
            retry_base: Duration::from_millis(10),
            retry_max: Duration::from_millis(50),
            ..Pace::default()
        };
        let (mut discovery, changes) = Discovery::new(pace, 3);
        let source = SliceSource::new("prod", "workers", port).with_client(client);
        discovery.add("kubernetes:prod/workers", source);
        let figures = discovery.figures();
        Self { cluster, _server: server, _discovery: discovery, figures, changes }
    }

    /// The next changes, in the order they are told.
    async fn told(&mut self, count: usize) -> Vec<String> {
        let mut told = Vec::new();
        for _ in 0..count {
            let change = timeout(Duration::from_secs(20), self.changes.recv()).await;
            told.push(match change.expect("something is told in time").unwrap() {
                Change::Appeared(endpoint) => format!("+{endpoint}"),
                Change::Gone(endpoint) => format!("-{endpoint}"),
            });
        }
        told
    }

    /// Waits until the cluster or the figures look as they should.
    async fn until(&self, what: &str, holds: impl Fn(&Cluster, u64) -> bool) {
        for _ in 0..2_000 {
            let failures = self.figures.sources()[0].failures;
            if holds(&self.cluster.lock().unwrap(), failures) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never came to this: {what}");
    }

    /// Tells everybody who watches.
    async fn event(&self, kind: &str, object: Value) {
        let watchers = {
            let mut cluster = self.cluster.lock().unwrap();
            cluster.version =
                object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            cluster.watchers.clone()
        };
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        for watcher in watchers {
            watcher.send(line.clone()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn pods_come_and_go_with_the_slices_of_their_service() {
    let down = json!({"ready": false, "serving": false, "terminating": false});
    let leaving = json!({"ready": false, "serving": true, "terminating": true});
    let left = json!({"ready": false, "serving": false, "terminating": true});
    let first = [
        pod(1, "10.0.0.1", ready()),
        pod(2, "10.0.0.2", down),
        pod(3, "10.0.0.3", leaving),
        pod(4, "10.0.0.4", left),
        // What is not said counts as ready.
        pod(5, "10.0.0.5", json!({})),
    ];
    let port = PortChoice::Named("grpc".into());
    let mut story = Story::begin(vec![slice("a", "IPv4", 1, &first)], port).await;
    assert_eq!(story.told(3).await, ["+10.0.0.1:9470", "+10.0.0.3:9470", "+10.0.0.5:9470"]);
    story.until("a watch", |cluster, _| cluster.watchers.len() == 1).await;

    let grown = [pod(1, "10.0.0.1", ready()), pod(2, "10.0.0.2", ready())];
    story.event("MODIFIED", slice("a", "IPv4", 2, &grown)).await;
    assert_eq!(story.told(3).await, ["+10.0.0.2:9470", "-10.0.0.3:9470", "-10.0.0.5:9470"]);

    // The same pod under its other address is the same worker.
    let other = [pod(1, "fd00::1", ready()), pod(6, "fd00::6", ready())];
    story.event("ADDED", slice("b", "IPv6", 3, &other)).await;
    assert_eq!(story.told(1).await, ["+[fd00::6]:9470"]);
    story.event("DELETED", slice("b", "IPv6", 4, &other)).await;
    assert_eq!(story.told(1).await, ["-[fd00::6]:9470"]);
    assert_eq!(story.figures.sources()[0].failures, 0);
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_costs_no_worker_and_what_was_missed_is_caught_up() {
    let first = [pod(1, "10.0.0.1", ready()), pod(2, "10.0.0.2", ready())];
    let slices_there = vec![slice("a", "IPv4", 1, &first)];
    let mut story = Story::begin(slices_there, PortChoice::Number(7_000)).await;
    assert_eq!(story.told(2).await, ["+10.0.0.1:7000", "+10.0.0.2:7000"]);
    story.until("a watch", |cluster, _| cluster.watchers.len() == 1).await;

    {
        let mut cluster = story.cluster.lock().unwrap();
        cluster.is_down = true;
        cluster.watchers.clear();
    }
    story.until("failures", |_, failures| failures >= 3).await;
    assert!(story.figures.sources()[0].is_failing);
    assert_eq!(story.figures.sources()[0].endpoints, 2, "what was known is kept");

    let second = [pod(2, "10.0.0.2", ready()), pod(3, "10.0.0.3", ready())];
    {
        let mut cluster = story.cluster.lock().unwrap();
        cluster.is_down = false;
        cluster.version = 9;
        cluster.slices = vec![slice("a", "IPv4", 9, &second)];
    }
    assert_eq!(story.told(2).await, ["+10.0.0.3:7000", "-10.0.0.1:7000"]);
    story.until("another list", |cluster, _| cluster.lists >= 2 && cluster.watches >= 2).await;
    assert!(!story.figures.sources()[0].is_failing);
}

#[tokio::test]
async fn a_port_that_the_service_does_not_have_is_an_error_and_not_an_empty_pool() {
    let first = [pod(1, "10.0.0.1", ready())];
    let port = PortChoice::Named("grcp".into());
    let story = Story::begin(vec![slice("a", "IPv4", 1, &first)], port).await;
    story.until("a failure", |_, failures| failures >= 1).await;
    assert_eq!(story.figures.sources()[0].answers, 0);
}
