//! A collector of traces in this process: an OTLP server that keeps what it is sent.
#![allow(dead_code, reason = "every suite uses a part of it")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// A span as it came.
#[derive(Clone, Debug)]
pub struct Span {
    pub name: String,
    pub trace_id: String,
    pub span_id: String,
    pub parent_id: String,
    pub is_error: bool,
    pub attributes: BTreeMap<String, String>,
    pub service: BTreeMap<String, String>,
}

/// The collector. Dropped, it is gone.
pub struct Collector {
    pub address: SocketAddr,
    spans: Spans,
    _serving: JoinSet<()>,
}

#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Span>>>);

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let spans = Spans::default();
        let server = Server::builder().add_service(TraceServiceServer::new(spans.clone()));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let served = server.serve_with_incoming(TcpListenerStream::new(listener)).await;
            served.expect("it serves until it is dropped");
        });
        Self { address, spans, _serving: serving }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that came so far.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.0.lock().expect("nobody panics with it").clone()
    }
}

#[tonic::async_trait]
impl TraceService for Spans {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut spans = self.0.lock().expect("nobody panics with it");
        for part in request.into_inner().resource_spans {
            let service = texts(&part.resource.expect("spans are somebody's").attributes);
            for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                spans.push(Span {
                    trace_id: hex(&span.trace_id),
                    span_id: hex(&span.span_id),
                    parent_id: hex(&span.parent_span_id),
                    is_error: span.status.is_some_and(|status| status.code == 2),
                    attributes: texts(&span.attributes),
                    service: service.clone(),
                    name: span.name,
                });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        other => format!("{other:?}"),
    };
    let value = |pair: &KeyValue| pair.value.as_ref()?.value.as_ref().map(text);
    attributes.iter().filter_map(|pair| Some((pair.key.clone(), value(pair)?))).collect()
}
