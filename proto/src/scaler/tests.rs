//! KEDA's questions, asked as KEDA asks them, of a scaler on loopback.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};

use super::*;
use crate::wire::externalscaler::external_scaler_client::ExternalScalerClient;

/// A queue of work, as an API node has one.
struct Queue {
    waiting: watch::Receiver<bool>,
}

impl Scaler for Queue {
    fn active(&self, object: &ScaledObject) -> Result<watch::Receiver<bool>, ScalerError> {
        match object.metadata.get("pool").map(String::as_str) {
            Some("main") => Ok(self.waiting.clone()),
            Some(_) => Err(ScalerError::BadMetadata { key: "pool".into() }),
            None => Err(ScalerError::Unavailable),
        }
    }

    fn targets(&self, object: &ScaledObject) -> Result<Vec<MetricTarget>, ScalerError> {
        assert_eq!((object.name.as_str(), object.namespace.as_str()), ("workers", "tributary"));
        let per_worker = object.metadata.get("target").map_or(Ok(2.5), |text| {
            text.parse().map_err(|_| ScalerError::BadMetadata { key: "target".into() })
        })?;
        Ok(vec![MetricTarget { metric: "depth".into(), per_worker }])
    }

    fn metric(&self, _: &ScaledObject, metric: &str) -> Result<f64, ScalerError> {
        match metric {
            "depth" => Ok(12.25),
            "broken" => Ok(f64::NAN),
            _ => Err(ScalerError::UnknownMetric { metric: metric.into() }),
        }
    }
}

async fn keda() -> (ExternalScalerClient<Channel>, watch::Sender<bool>) {
    let (work, waiting) = watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = Server::builder()
        .add_routes(routes(Queue { waiting }))
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(serving);
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    (ExternalScalerClient::new(channel), work)
}

fn object(metadata: &[(&str, &str)]) -> wire::ScaledObjectRef {
    wire::ScaledObjectRef {
        name: "workers".into(),
        namespace: "tributary".into(),
        scaler_metadata: metadata.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
    }
}

fn question(metric_name: &str) -> wire::GetMetricsRequest {
    let scaled_object_ref = Some(object(&[]));
    wire::GetMetricsRequest { scaled_object_ref, metric_name: metric_name.into() }
}

#[tokio::test]
async fn a_pool_at_zero_is_woken_as_soon_as_work_waits() {
    let (mut keda, work) = keda().await;
    let pool = object(&[("pool", "main")]);
    let mut pushed = keda.stream_is_active(pool.clone()).await.unwrap().into_inner();
    assert!(!pushed.next().await.unwrap().unwrap().result, "the present answer comes at once");
    work.send_replace(true);
    assert!(pushed.next().await.unwrap().unwrap().result);
    assert!(keda.is_active(pool.clone()).await.unwrap().into_inner().result);
    work.send_replace(false);
    assert!(!pushed.next().await.unwrap().unwrap().result);
    assert!(!keda.is_active(pool).await.unwrap().into_inner().result);
    // A node that leaves lets go of its end, and KEDA's stream ends.
    drop(work);
    let end = tokio::time::timeout(Duration::from_secs(5), pushed.next()).await;
    assert!(matches!(end, Ok(None)), "{end:?}");
}

#[tokio::test]
async fn figures_are_told_to_every_release_of_keda() {
    let (mut keda, _work) = keda().await;
    let specs = keda.get_metric_spec(object(&[])).await.unwrap().into_inner().metric_specs;
    let spec =
        wire::MetricSpec { metric_name: "depth".into(), target_size: 3, target_size_float: 2.5 };
    assert_eq!(specs, [spec]);
    let values = keda.get_metrics(question("depth")).await.unwrap().into_inner().metric_values;
    let value = wire::MetricValue {
        metric_name: "depth".into(),
        metric_value: 13,
        metric_value_float: 12.25,
    };
    assert_eq!(values, [value]);
    assert_eq!((whole(0.0), whole(0.1), whole(f64::MAX)), (0, 1, i64::MAX));
}

#[tokio::test]
async fn what_has_no_answer_gets_a_fitting_status() {
    let (mut keda, _work) = keda().await;
    let code = keda.get_metrics(question("unheard_of")).await.unwrap_err().code();
    assert_eq!(code, Code::NotFound);
    let broken = keda.get_metrics(question("broken")).await.unwrap_err();
    assert_eq!((broken.code(), broken.message()), (Code::Internal, "\"broken\" is NaN"));
    let nobody = wire::GetMetricsRequest { scaled_object_ref: None, ..question("depth") };
    let refused = keda.get_metrics(nobody).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let refused = keda.is_active(object(&[("pool", "other")])).await.unwrap_err();
    assert_eq!(refused.message(), "the trigger's \"pool\" can't be understood");
    let refused = keda.stream_is_active(object(&[])).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    for target in ["0", "-1", "inf", "NaN"] {
        let refused = keda.get_metric_spec(object(&[("target", target)])).await.unwrap_err();
        assert_eq!(refused.code(), Code::Internal, "{target}");
    }
}

#[tokio::test]
async fn an_oversized_question_is_not_read() {
    let (mut keda, _work) = keda().await;
    let huge = "x".repeat(REQUEST_MAX_BYTES);
    let refused = keda.is_active(object(&[("pool", &huge)])).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
}

#[test]
fn numbers_on_the_wire_are_keda_s() {
    use prost::Message;
    let asked = wire::GetMetricsRequest {
        scaled_object_ref: Some(wire::ScaledObjectRef {
            name: "n".into(),
            namespace: "s".into(),
            scaler_metadata: BTreeMap::from([("k".into(), "v".into())]),
        }),
        metric_name: "m".into(),
    };
    let object = b"\x0a\x01n\x12\x01s\x1a\x06\x0a\x01k\x12\x01v";
    let bytes = [b"\x0a\x0e".as_slice(), object, b"\x12\x01m"].concat();
    assert_eq!(asked.encode_to_vec(), bytes);
    // One half, as a little-endian double.
    let half = b"\x19\0\0\0\0\0\0\xe0\x3f";
    let (metric_name, target_size, target_size_float) = ("m".to_owned(), 1, 0.5);
    let spec = wire::MetricSpec { metric_name, target_size, target_size_float };
    let specs = wire::GetMetricSpecResponse { metric_specs: vec![spec] };
    let bytes = [b"\x0a\x0e\x0a\x01m\x10\x01".as_slice(), half].concat();
    assert_eq!(specs.encode_to_vec(), bytes);
    let (metric_name, metric_value, metric_value_float) = ("m".to_owned(), 1, 0.5);
    let value = wire::MetricValue { metric_name, metric_value, metric_value_float };
    let values = wire::GetMetricsResponse { metric_values: vec![value] };
    assert_eq!(values.encode_to_vec(), bytes);
    assert_eq!(wire::IsActiveResponse { result: true }.encode_to_vec(), b"\x08\x01");
    let name = wire::external_scaler_server::SERVICE_NAME;
    assert_eq!(name, "externalscaler.ExternalScaler");
}
