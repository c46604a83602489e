//! Tests with peers that are not ours: a plain client as another language would have it, and both
//! sides sending what is no message.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::id::WorkerId;
use core_workcoord::message::{ApiMessage, Heartbeat, Welcome, WorkerMessage};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{BoxStream, tokio_stream};
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::codec::BytesCodec;
use crate::decode::DecodeError;
use crate::lanes::{Outbound, OutboundStream, lanes};
use crate::limits::{API_MESSAGE_MAX_BYTES, WORKER_MESSAGE_MAX_BYTES};
use crate::server::ControlHandler;
use crate::stream::{Inbound, StreamError};
use crate::wire::work_control_server::{WorkControl, WorkControlServer};
use crate::{client, encode, server, wire};

/// The contract's own words, and not the generated code's.
const PATH: &str = "/tributary.workcoord.v1.WorkControl/Control";
const DEADLINE: Duration = Duration::from_secs(5);

async fn serve(routes: Routes) -> Channel {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving =
        Server::builder().add_routes(routes).serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(serving);
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

type Session = (Inbound<ApiMessage>, Outbound<WorkerMessage>);

/// Hands the one stream it expects to the test.
struct OneSession(Mutex<Option<oneshot::Sender<Session>>>);

impl ControlHandler for OneSession {
    fn accept(
        &self,
        inbound: Inbound<ApiMessage>,
        peer: Option<SocketAddr>,
    ) -> OutboundStream<WorkerMessage> {
        assert!(peer.is_some_and(|peer| peer.ip().is_loopback()));
        let (outbound, stream) = lanes(4);
        let waiting = self.0.lock().unwrap().take().expect("only one stream is opened");
        waiting.send((inbound, outbound)).expect("the test waits for it");
        stream
    }
}

async fn our_worker() -> (Channel, oneshot::Receiver<Session>) {
    let (give, take) = oneshot::channel();
    (serve(server::routes(OneSession(Mutex::new(Some(give))))).await, take)
}

/// A worker that says these bytes, and then ends the stream so.
struct ForeignWorker(Mutex<Vec<Result<Bytes, Status>>>);

#[tonic::async_trait]
impl WorkControl for ForeignWorker {
    type ControlStream = BoxStream<Bytes>;

    async fn control(
        &self,
        _: Request<Streaming<Bytes>>,
    ) -> Result<Response<Self::ControlStream>, Status> {
        let script = std::mem::take(&mut *self.0.lock().unwrap());
        Ok(Response::new(Box::pin(tokio_stream::iter(script))))
    }
}

async fn hear_from(script: Vec<Result<Bytes, Status>>) -> Inbound<WorkerMessage> {
    let worker = WorkControlServer::new(ForeignWorker(Mutex::new(script)));
    let channel = serve(Routes::new(worker)).await;
    let (_, nothing) = lanes(1);
    client::open(channel, nothing, DEADLINE).await.unwrap()
}

fn beat(seq: u64) -> Heartbeat {
    Heartbeat { seq, ..Default::default() }
}

#[tokio::test]
async fn a_plain_client_made_from_the_proto_file_gets_along() {
    let (channel, session) = our_worker().await;
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let hello = wire::Hello { api_id: "api-1".into(), session_id: 7, protocol_version: 1 };
    let said = wire::ApiMessage { kind: Some(wire::api_message::Kind::Hello(hello)) };
    let codec = ProstCodec::<wire::ApiMessage, wire::WorkerMessage>::default();
    let request = Request::new(tokio_stream::iter([said]));
    let response = grpc.streaming(request, PathAndQuery::from_static(PATH), codec).await.unwrap();

    let (mut inbound, outbound) = session.await.unwrap();
    let Some(Ok(ApiMessage::Hello(heard))) = inbound.next().await else { panic!("no hello") };
    assert_eq!((heard.api_id.as_str(), heard.session_id.0), ("api-1", 7));
    let welcome = WorkerMessage::Welcome(Welcome {
        worker_id: WorkerId::new("worker-1").unwrap(),
        version: "0.1.0".into(),
        slots: 4,
        artifact_base_url: "http://worker-1/".into(),
        artifact_token: "t".into(),
    });
    outbound.send(welcome).await.unwrap();
    drop(outbound);
    let heard = response.into_inner().next().await.unwrap().unwrap();
    let Some(wire::worker_message::Kind::Welcome(heard)) = heard.kind else { panic!("no welcome") };
    assert_eq!((heard.worker_id.as_str(), heard.slots), ("worker-1", 4));
}

#[tokio::test]
async fn a_worker_hears_garbage_as_garbage_and_can_read_on() {
    let (channel, session) = our_worker().await;
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let said = [
        Bytes::from_static(b"\xff\xff\xff\xff"),
        Bytes::new(),
        encode::api_message(ApiMessage::Heartbeat(beat(3))),
    ];
    let path = PathAndQuery::from_static(PATH);
    let _open = grpc.streaming(Request::new(tokio_stream::iter(said)), path, BytesCodec).await;

    let (mut inbound, _outbound) = session.await.unwrap();
    let garbage = inbound.next().await.unwrap().unwrap_err();
    assert!(matches!(garbage, StreamError::Malformed(DecodeError::NotProtobuf(_))), "{garbage:?}");
    assert!(garbage.is_violation());
    let empty = inbound.next().await.unwrap();
    assert!(matches!(empty, Err(StreamError::Malformed(DecodeError::UnknownKind))), "{empty:?}");
    let heard = inbound.next().await.unwrap().unwrap();
    assert_eq!(heard, ApiMessage::Heartbeat(beat(3)));
    assert!(inbound.next().await.is_none());
}

#[tokio::test]
async fn a_worker_reads_no_oversized_message() {
    let (channel, session) = our_worker().await;
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let said = [Bytes::from(vec![0; API_MESSAGE_MAX_BYTES + 1])];
    let path = PathAndQuery::from_static(PATH);
    let _open = grpc.streaming(Request::new(tokio_stream::iter(said)), path, BytesCodec).await;

    let (mut inbound, _outbound) = session.await.unwrap();
    let refused = inbound.next().await.unwrap().unwrap_err();
    let max = API_MESSAGE_MAX_BYTES;
    assert!(matches!(refused, StreamError::TooLarge { max_bytes } if max_bytes == max));
    assert!(refused.is_violation());
    assert!(inbound.next().await.is_none());
}

#[tokio::test]
async fn an_api_node_hears_garbage_as_garbage_and_can_read_on() {
    let truth = encode::worker_message(WorkerMessage::Heartbeat(beat(1)));
    let garbage = Bytes::from_static(b"\x0a\x05he");
    let newer = Bytes::from_static(&[0x7a, 0x00]);
    let mut inbound = hear_from(vec![Ok(garbage), Ok(newer), Ok(truth)]).await;
    let heard = inbound.next().await.unwrap();
    assert!(matches!(heard, Err(StreamError::Malformed(DecodeError::NotProtobuf(_)))), "{heard:?}");
    let heard = inbound.next().await.unwrap();
    assert!(matches!(heard, Err(StreamError::Malformed(DecodeError::UnknownKind))), "{heard:?}");
    let heard = inbound.next().await.unwrap().unwrap();
    assert_eq!(heard, WorkerMessage::Heartbeat(beat(1)));
    assert!(inbound.next().await.is_none());
}

#[tokio::test]
async fn an_api_node_reads_no_oversized_message() {
    let large = Bytes::from(vec![0; WORKER_MESSAGE_MAX_BYTES + 1]);
    let mut inbound = hear_from(vec![Ok(large)]).await;
    let refused = inbound.next().await.unwrap().unwrap_err();
    assert!(matches!(refused, StreamError::TooLarge { max_bytes: WORKER_MESSAGE_MAX_BYTES }));
    assert!(inbound.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_ends_with_an_error_says_so_once() {
    let truth = encode::worker_message(WorkerMessage::Heartbeat(beat(1)));
    let mut inbound = hear_from(vec![Ok(truth), Err(Status::unavailable("going away"))]).await;
    assert!(inbound.next().await.unwrap().is_ok());
    let broken = inbound.next().await.unwrap().unwrap_err();
    assert!(!broken.is_violation());
    let StreamError::Broken(status) = broken else { panic!("{broken:?}") };
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "going away"));
    assert!(inbound.next().await.is_none());
}
