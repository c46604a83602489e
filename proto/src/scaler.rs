//! KEDA's external scaler, in plain types: is there work, what should one worker carry, how much is
//! there now. The figures themselves are left to the API node.

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::wire::externalscaler as wire;
use crate::wire::externalscaler::external_scaler_server::{ExternalScaler, ExternalScalerServer};

/// The longest request: KEDA sends a name and a trigger's metadata.
pub const REQUEST_MAX_BYTES: usize = 64 << 10;

/// What KEDA scales: one `ScaledObject`, with the metadata of its trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledObject {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// What the trigger says beyond the scaler's address.
    pub metadata: BTreeMap<String, String>,
}

/// How much of a metric one worker should carry.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricTarget {
    /// The metric.
    pub metric: String,
    /// The amount: a positive number.
    pub per_worker: f64,
}

/// Why a scaler has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalerError {
    /// There is no metric of that name.
    #[error("there is no metric {metric:?}")]
    UnknownMetric {
        /// The name that was asked for.
        metric: String,
    },
    /// The trigger's metadata can't be understood.
    #[error("the trigger's {key:?} can't be understood")]
    BadMetadata {
        /// The key that is wrong.
        key: String,
    },
    /// Not now: the node is starting or leaving. KEDA asks again.
    #[error("no figures at the moment")]
    Unavailable,
}

/// Answers KEDA. Answers come at once, from figures that are kept up to date anyhow.
pub trait Scaler: Send + Sync + 'static {
    /// Whether there should be any worker at all, now and whenever it changes. Drop the sending end
    /// to end KEDA's streams, as a server that leaves has to: they do not end by themselves.
    fn active(&self, object: &ScaledObject) -> Result<watch::Receiver<bool>, ScalerError>;

    /// The metrics to scale by.
    fn targets(&self, object: &ScaledObject) -> Result<Vec<MetricTarget>, ScalerError>;

    /// What one of them is now: a number, and not an infinite one.
    fn metric(&self, object: &ScaledObject, metric: &str) -> Result<f64, ScalerError>;
}

/// The scaler service, to be served by a tonic server.
pub fn routes<S: Scaler>(scaler: S) -> Routes {
    let service =
        ExternalScalerServer::new(Keda { scaler }).max_decoding_message_size(REQUEST_MAX_BYTES);
    Routes::new(service)
}

struct Keda<S> {
    scaler: S,
}

#[tonic::async_trait]
impl<S: Scaler> ExternalScaler for Keda<S> {
    type StreamIsActiveStream = BoxStream<wire::IsActiveResponse>;

    async fn is_active(
        &self,
        request: Request<wire::ScaledObjectRef>,
    ) -> Result<Response<wire::IsActiveResponse>, Status> {
        let active = self.scaler.active(&scaled_object(request.into_inner()))?;
        let result = *active.borrow();
        Ok(Response::new(wire::IsActiveResponse { result }))
    }

    async fn stream_is_active(
        &self,
        request: Request<wire::ScaledObjectRef>,
    ) -> Result<Response<Self::StreamIsActiveStream>, Status> {
        let active = self.scaler.active(&scaled_object(request.into_inner()))?;
        let answers = WatchStream::new(active).map(|result| Ok(wire::IsActiveResponse { result }));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn get_metric_spec(
        &self,
        request: Request<wire::ScaledObjectRef>,
    ) -> Result<Response<wire::GetMetricSpecResponse>, Status> {
        let targets = self.scaler.targets(&scaled_object(request.into_inner()))?;
        let metric_specs = targets.into_iter().map(metric_spec).collect::<Result<_, _>>()?;
        Ok(Response::new(wire::GetMetricSpecResponse { metric_specs }))
    }

    async fn get_metrics(
        &self,
        request: Request<wire::GetMetricsRequest>,
    ) -> Result<Response<wire::GetMetricsResponse>, Status> {
        let wire::GetMetricsRequest { scaled_object_ref, metric_name } = request.into_inner();
        let object = scaled_object_ref
            .ok_or_else(|| Status::invalid_argument("scaledObjectRef is missing"))?;
        let value = self.scaler.metric(&scaled_object(object), &metric_name)?;
        if !value.is_finite() {
            return Err(Status::internal(format!("{metric_name:?} is {value}")));
        }
        Ok(Response::new(wire::GetMetricsResponse {
            metric_values: vec![wire::MetricValue {
                metric_name,
                metric_value: whole(value),
                metric_value_float: value,
            }],
        }))
    }
}

impl From<ScalerError> for Status {
    fn from(error: ScalerError) -> Self {
        let text = error.to_string();
        match error {
            ScalerError::UnknownMetric { .. } => Self::not_found(text),
            ScalerError::BadMetadata { .. } => Self::invalid_argument(text),
            ScalerError::Unavailable => Self::unavailable(text),
        }
    }
}

fn scaled_object(object: wire::ScaledObjectRef) -> ScaledObject {
    ScaledObject {
        name: object.name,
        namespace: object.namespace,
        metadata: object.scaler_metadata,
    }
}

/// A target that is not positive would have the autoscaler divide by it.
fn metric_spec(target: MetricTarget) -> Result<wire::MetricSpec, Status> {
    let MetricTarget { metric, per_worker } = target;
    if !per_worker.is_finite() || per_worker <= 0.0 {
        return Err(Status::internal(format!("the target of {metric:?} is {per_worker}")));
    }
    Ok(wire::MetricSpec {
        metric_name: metric,
        target_size: whole(per_worker),
        target_size_float: per_worker,
    })
}

/// The next whole number, for releases of KEDA that read no other: a little work is not none.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, as it should")]
fn whole(value: f64) -> i64 {
    value.ceil() as i64
}

#[cfg(test)]
mod tests;
