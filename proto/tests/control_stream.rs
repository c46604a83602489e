//! The control stream over a real connection, in domain types alone: a session from the
//! introduction to the end, slow readers, broken peers and peers that never answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::{
    AffinityKey, ApiId, Attempt, LeafId, QueryId, SessionId, TenantId, WorkId, WorkerId,
};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, Failure, FailureCode, Heartbeat, Hello, PROTOCOL_VERSION,
    Welcome, WorkFailed, WorkReady, WorkRef, WorkerMessage,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Status};
use tributary_proto::client::open;
use tributary_proto::lanes::{NotSent, Outbound, OutboundStream, lanes};
use tributary_proto::limits::{FAILURE_MESSAGE_MAX_BYTES, SPEC_MAX_BYTES};
use tributary_proto::server::{ControlHandler, routes};
use tributary_proto::stream::{Inbound, StreamError};

const DEADLINE: Duration = Duration::from_secs(5);
/// Room in the work lane of the API node.
const LANE_MESSAGES: u32 = 2;

/// The worker's end of a stream.
struct Session {
    inbound: Inbound<ApiMessage>,
    outbound: Outbound<WorkerMessage>,
}

/// Hands every opened stream to the test.
struct Worker(mpsc::Sender<Session>);

impl ControlHandler for Worker {
    fn accept(
        &self,
        inbound: Inbound<ApiMessage>,
        _: Option<SocketAddr>,
    ) -> OutboundStream<WorkerMessage> {
        let (outbound, stream) = lanes(4);
        self.0.try_send(Session { inbound, outbound }).expect("the test waits for it");
        stream
    }
}

async fn worker() -> (SocketAddr, mpsc::Receiver<Session>) {
    let (give, take) = mpsc::channel(4);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let address = listener.local_addr().expect("a bound listener has an address");
    let serving = Server::builder()
        .add_routes(routes(Worker(give)))
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(serving);
    (address, take)
}

fn channel(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).expect("an address is a URL").connect_lazy()
}

fn work(item: u32) -> WorkRef {
    WorkRef { work_id: WorkId { query: QueryId(0xfeed), item }, attempt: Attempt::FIRST }
}

fn hello() -> ApiMessage {
    ApiMessage::Hello(Hello {
        api_id: ApiId::new("api-1").expect("a plain name"),
        session_id: SessionId(3),
        protocol_version: PROTOCOL_VERSION,
    })
}

fn welcome() -> WorkerMessage {
    WorkerMessage::Welcome(Welcome {
        worker_id: WorkerId::new("worker-1").expect("a plain name"),
        version: "0.1.0".into(),
        slots: 2,
        artifact_base_url: "http://worker-1:9001/artifacts/".into(),
        artifact_token: "open-sesame".into(),
    })
}

fn assign(item: u32, spec: Bytes) -> ApiMessage {
    ApiMessage::AssignWork(AssignWork {
        query_id: QueryId(0xfeed),
        leaf_id: LeafId(0),
        work_id: work(item).work_id,
        attempt: work(item).attempt,
        affinity_key: AffinityKey(42),
        tenant: TenantId::new("acme").expect("a plain name"),
        deadline: Duration::from_secs(30),
        traceparent: String::new(),
        spec,
    })
}

fn ready(item: u32) -> WorkerMessage {
    let artifact = Artifact {
        url: format!("http://worker-1:9001/artifacts/{item}"),
        size_bytes: 4_096,
        checksum: Checksum([7; 32]),
        row_count: 10,
        min_ts: 0,
        max_ts: 9,
        parquet_schema_version: 1,
    };
    WorkerMessage::Ready(WorkReady { work: work(item), artifact })
}

/// Opens a stream, and takes the worker's end of it.
async fn session() -> (Inbound<WorkerMessage>, Outbound<ApiMessage>, Session) {
    let (address, mut sessions) = worker().await;
    let (outbound, stream) = lanes(LANE_MESSAGES as usize);
    let inbound = open(channel(address), stream, DEADLINE).await.expect("the worker answers");
    let session = sessions.recv().await.expect("the worker runs");
    (inbound, outbound, session)
}

async fn heard<M>(inbound: &mut Inbound<M>) -> M {
    inbound.next().await.expect("the stream is open").expect("the peer sends messages")
}

#[tokio::test]
async fn a_session_from_the_introduction_to_the_acknowledgement() {
    let (mut from_worker, to_worker, mut worker) = session().await;
    to_worker.send(hello()).await.unwrap();
    assert_eq!(heard(&mut worker.inbound).await, hello());
    worker.outbound.send(welcome()).await.unwrap();
    assert_eq!(heard(&mut from_worker).await, welcome());

    let assignment = assign(0, Bytes::from_static(b"rate(up[5m])"));
    to_worker.send(assignment.clone()).await.unwrap();
    assert_eq!(heard(&mut worker.inbound).await, assignment);
    let answers = [WorkerMessage::Accepted(work(0)), WorkerMessage::Started(work(0)), ready(0)];
    for answer in answers {
        worker.outbound.send(answer.clone()).await.unwrap();
        assert_eq!(heard(&mut from_worker).await, answer);
    }
    let checksum = Checksum([7; 32]);
    let ack = ApiMessage::ArtifactAck(ArtifactAck { work_id: work(0).work_id, checksum });
    to_worker.send(ack.clone()).await.unwrap();
    assert_eq!(heard(&mut worker.inbound).await, ack);

    let beat = Heartbeat { seq: 1, sent_unix_nanos: 1_700_000_000_000_000_000, echo_seq: 0 };
    to_worker.send(ApiMessage::Heartbeat(beat)).await.unwrap();
    assert_eq!(heard(&mut worker.inbound).await, ApiMessage::Heartbeat(beat));
    worker.outbound.send(WorkerMessage::Heartbeat(beat)).await.unwrap();
    assert_eq!(heard(&mut from_worker).await, WorkerMessage::Heartbeat(beat));

    // The worker leaves: its last word still arrives, then the stream ends.
    worker.outbound.send(WorkerMessage::Cancelled(work(1))).await.unwrap();
    drop(worker);
    assert_eq!(heard(&mut from_worker).await, WorkerMessage::Cancelled(work(1)));
    assert!(!matches!(from_worker.next().await, Some(Ok(_))));
}

#[tokio::test]
async fn a_worker_may_say_why_it_ends_the_stream() {
    let (mut from_worker, _to_worker, worker) = session().await;
    worker.outbound.send(WorkerMessage::Cancelled(work(1))).await.unwrap();
    worker.outbound.end_with(Status::invalid_argument("a second introduction"));
    drop(worker);
    assert_eq!(heard(&mut from_worker).await, WorkerMessage::Cancelled(work(1)));
    let Some(Err(StreamError::Broken(status))) = from_worker.next().await else {
        panic!("the stream ends with a status")
    };
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "a second introduction"));
}

#[tokio::test]
async fn a_worker_sees_an_api_node_go() {
    let (from_worker, to_worker, mut worker) = session().await;
    to_worker.send(hello()).await.unwrap();
    assert_eq!(heard(&mut worker.inbound).await, hello());
    drop((from_worker, to_worker));
    assert!(!matches!(worker.inbound.next().await, Some(Ok(_))));
    assert!(worker.inbound.next().await.is_none());
    // What is said into the void is refused as soon as the transport has noticed.
    while worker.outbound.send(WorkerMessage::Accepted(work(0))).await.is_ok() {}
}

#[tokio::test]
async fn an_api_node_may_fall_silent_and_still_listen() {
    let (mut from_worker, to_worker, mut worker) = session().await;
    drop(to_worker);
    assert!(worker.inbound.next().await.is_none());
    worker.outbound.send(WorkerMessage::Started(work(0))).await.unwrap();
    assert_eq!(heard(&mut from_worker).await, WorkerMessage::Started(work(0)));
}

#[tokio::test]
async fn a_worker_that_does_not_read_makes_work_wait_but_loses_nothing() {
    const SPEC_BYTES: usize = 256 << 10;
    let (_from_worker, to_worker, mut worker) = session().await;
    let mut sent = 0;
    // What fits into the windows of the connection goes out; then the lane fills and stays full.
    let stuck = loop {
        let message = assign(sent, Bytes::from(vec![0; SPEC_BYTES]));
        match to_worker.try_send(message) {
            Ok(()) => sent += 1,
            Err(NotSent::Full(message)) => {
                let waiting = to_worker.send(message.clone());
                match tokio::time::timeout(Duration::from_millis(300), waiting).await {
                    Ok(result) => {
                        result.unwrap();
                        sent += 1;
                    }
                    Err(_) => break message,
                }
            }
            Err(NotSent::Closed) => panic!("the stream is open"),
        }
        assert!(sent < 1_000, "nothing holds the sender back");
    };
    // Now the worker reads, and finds everything, in order; the message that waited comes last. A
    // sign of life sent after all of that overtakes what is still in the lane.
    let beat = ApiMessage::Heartbeat(Heartbeat { seq: 1, ..Default::default() });
    to_worker.try_send(beat.clone()).unwrap();
    let reader = tokio::spawn(async move {
        let mut next = 0;
        let mut beat_came_before = None;
        while next <= sent {
            match heard(&mut worker.inbound).await {
                ApiMessage::AssignWork(heard) => {
                    assert_eq!((heard.work_id.item, heard.spec.len()), (next, SPEC_BYTES));
                    next += 1;
                }
                other => {
                    assert_eq!(other, beat);
                    beat_came_before = Some(next);
                }
            }
        }
        assert_eq!(beat_came_before, Some(sent - LANE_MESSAGES));
    });
    to_worker.send(stuck).await.unwrap();
    reader.await.unwrap();
}

#[tokio::test]
async fn the_largest_messages_there_may_be_get_through() {
    let (mut from_worker, to_worker, mut worker) = session().await;
    let largest = assign(0, Bytes::from(vec![7; SPEC_MAX_BYTES]));
    to_worker.send(largest.clone()).await.unwrap();
    assert_eq!(heard(&mut worker.inbound).await, largest);
    let message = "x".repeat(FAILURE_MESSAGE_MAX_BYTES);
    let failure = Failure { code: FailureCode::Internal, retryable: true, message };
    let largest = WorkerMessage::Failed(WorkFailed { work: work(0), failure });
    worker.outbound.send(largest.clone()).await.unwrap();
    assert_eq!(heard(&mut from_worker).await, largest);
}

#[tokio::test]
async fn opening_gives_up_on_a_peer_that_accepts_and_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = tokio::spawn(async move {
        // The connection is held open: a closed one would be an answer.
        let _held = listener.accept().await;
        std::future::pending::<()>().await;
    });
    let (outbound, stream) = lanes(1);
    outbound.send(hello()).await.unwrap();
    let deadline = Duration::from_millis(200);
    let begun = Instant::now();
    let refused = open(channel(address), stream, deadline).await.unwrap_err();
    assert!(matches!(refused, StreamError::NotOpened(after) if after == deadline), "{refused:?}");
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    // Whoever would speak on it learns that there is no stream.
    while outbound.send(assign(0, Bytes::new())).await.is_ok() {}
    silent.abort();
}

#[tokio::test]
async fn opening_fails_at_once_where_nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (_outbound, stream) = lanes(1);
    let refused = open(channel(address), stream, DEADLINE).await.unwrap_err();
    assert!(matches!(refused, StreamError::Broken(_)), "{refused:?}");
    assert!(!refused.is_violation());
}
