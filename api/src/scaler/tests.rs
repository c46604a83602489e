//! KEDA's questions, asked with messages of its own making, of a scaler on loopback.

use std::collections::HashMap;

use core_workcoord::id::QueryId;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::*;
use crate::coordination::Coordination;
use crate::monitor::tests::{lonely_desk, order};
use crate::monitor::{Monitor, QueueWatch};

#[derive(Clone, PartialEq, prost::Message)]
struct ScaledObjectRef {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(map = "string, string", tag = "3")]
    scaler_metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct IsActiveResponse {
    #[prost(bool, tag = "1")]
    result: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MetricSpec {
    #[prost(string, tag = "1")]
    metric_name: String,
    #[prost(int64, tag = "2")]
    target_size: i64,
    #[prost(double, tag = "3")]
    target_size_float: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GetMetricSpecResponse {
    #[prost(message, repeated, tag = "1")]
    metric_specs: Vec<MetricSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GetMetricsRequest {
    #[prost(message, optional, tag = "1")]
    scaled_object_ref: Option<ScaledObjectRef>,
    #[prost(string, tag = "2")]
    metric_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MetricValue {
    #[prost(string, tag = "1")]
    metric_name: String,
    #[prost(int64, tag = "2")]
    metric_value: i64,
    #[prost(double, tag = "3")]
    metric_value_float: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GetMetricsResponse {
    #[prost(message, repeated, tag = "1")]
    metric_values: Vec<MetricValue>,
}

/// KEDA, a node with an empty queue, and the scaler between them.
struct Story {
    keda: tonic::client::Grpc<Channel>,
    coordination: Coordination,
    told: CancellationToken,
    serving: JoinSet<io::Result<()>>,
    _watch: QueueWatch,
    _desk: JoinSet<()>,
}

impl Story {
    async fn begin() -> Self {
        let (coordination, inbox) = Coordination::new();
        let mut desk = JoinSet::new();
        desk.spawn(lonely_desk(inbox));
        let watch = QueueWatch::start(coordination.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let told = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, watch.queue(), told.clone()));
        let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
        let keda = tonic::client::Grpc::new(channel);
        Self { keda, coordination, told, serving, _watch: watch, _desk: desk }
    }

    async fn ask<Q, A>(&mut self, method: &'static str, question: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        self.keda.ready().await.unwrap();
        let path = PathAndQuery::from_static(method);
        let codec = ProstCodec::<Q, A>::default();
        self.keda.unary(Request::new(question), path, codec).await.map(tonic::Response::into_inner)
    }

    async fn metric(&mut self, name: &str) -> Result<f64, Status> {
        let question =
            GetMetricsRequest { scaled_object_ref: Some(object(&[])), metric_name: name.into() };
        let answer: GetMetricsResponse = self.ask(METRICS, question).await?;
        Ok(answer.metric_values[0].metric_value_float)
    }

    async fn targets(&mut self, metadata: &[(&str, &str)]) -> Result<Vec<(String, f64)>, Status> {
        let answer: GetMetricSpecResponse = self.ask(SPEC, object(metadata)).await?;
        let target = |spec: MetricSpec| (spec.metric_name, spec.target_size_float);
        Ok(answer.metric_specs.into_iter().map(target).collect())
    }
}

const IS_ACTIVE: &str = "/externalscaler.ExternalScaler/IsActive";
const STREAM: &str = "/externalscaler.ExternalScaler/StreamIsActive";
const SPEC: &str = "/externalscaler.ExternalScaler/GetMetricSpec";
const METRICS: &str = "/externalscaler.ExternalScaler/GetMetrics";

fn object(metadata: &[(&str, &str)]) -> ScaledObjectRef {
    let scaler_metadata = metadata.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    ScaledObjectRef { name: "workers".into(), namespace: "prod".into(), scaler_metadata }
}

#[tokio::test]
async fn a_pool_leaves_zero_as_soon_as_work_is_ordered() {
    let mut story = Story::begin().await;
    let idle: IsActiveResponse = story.ask(IS_ACTIVE, object(&[])).await.unwrap();
    assert!(!idle.result);
    story.keda.ready().await.unwrap();
    let codec = ProstCodec::<ScaledObjectRef, IsActiveResponse>::default();
    let path = PathAndQuery::from_static(STREAM);
    let pushed = story.keda.server_streaming(Request::new(object(&[])), path, codec).await;
    let mut pushed = pushed.unwrap().into_inner();
    assert!(!pushed.message().await.unwrap().unwrap().result, "the present answer comes first");

    let begun = Instant::now();
    story.coordination.submit(order(1, 9)).await.unwrap();
    assert!(pushed.message().await.unwrap().unwrap().result);
    // Who waited for the next look at an idle queue would come seconds later.
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(story.metric(DEPTH).await.unwrap(), 9.0);
    let busy: IsActiveResponse = story.ask(IS_ACTIVE, object(&[])).await.unwrap();
    assert!(busy.result);

    story.coordination.cancel(QueryId(1)).await.unwrap();
    assert!(!pushed.message().await.unwrap().unwrap().result);
    assert_eq!(story.metric(DEPTH).await.unwrap(), 0.0);

    story.told.cancel();
    let last = timeout(Duration::from_secs(5), pushed.message()).await.expect("it ends in time");
    assert!(matches!(last, Ok(None)), "{last:?}");
    let served = timeout(Duration::from_secs(5), story.serving.join_next()).await;
    served.expect("it ends in time").unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn triggers_say_what_one_worker_should_carry() {
    let mut story = Story::begin().await;
    let default = story.targets(&[("scalerAddress", "api:9482")]).await.unwrap();
    assert_eq!(default, [(DEPTH.to_owned(), DEPTH_PER_WORKER)]);
    let both = story.targets(&[(DEPTH_KEY, "2.5"), (AGE_KEY, " 10 ")]).await.unwrap();
    assert_eq!(both, [(DEPTH.to_owned(), 2.5), (OLDEST_AGE.to_owned(), 10.0)]);
    for (key, value) in [
        (DEPTH_KEY, "0"),
        (DEPTH_KEY, "many"),
        (AGE_KEY, "-1"),
        (AGE_KEY, "NaN"),
        ("targetDept", "1"),
    ] {
        let refused = story.targets(&[(key, value)]).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{key}={value}");
        assert!(refused.message().contains(key), "{}", refused.message());
        let active: Result<IsActiveResponse, _> =
            story.ask(IS_ACTIVE, object(&[(key, value)])).await;
        assert_eq!(active.unwrap_err().code(), Code::InvalidArgument, "{key}={value}");
    }
}

#[tokio::test]
async fn metrics_have_names_and_others_are_not_found() {
    let mut story = Story::begin().await;
    story.coordination.submit(order(1, 2)).await.unwrap();
    while story.metric(OLDEST_AGE).await.unwrap() == 0.0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(story.metric("cpu").await.unwrap_err().code(), Code::NotFound);
}
