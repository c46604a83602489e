//! A worker in this process, over real sockets, and API nodes that speak the protocol with it.
#![allow(dead_code, reason = "every suite uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::Artifact;
use core_workcoord::id::{
    AffinityKey, ApiId, Attempt, LeafId, QueryId, SessionId, TenantId, WorkId,
};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Heartbeat, Hello,
    PROTOCOL_VERSION, Welcome, WorkRef, WorkerMessage, WorkerStatus,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::Status;
use tonic::transport::Channel;
use tributary_proto::client::open;
use tributary_proto::lanes::{Outbound, lanes};
use tributary_proto::stream::{Inbound, StreamError};
use tributary_worker::config::{Span, WorkerConfig};
use tributary_worker::rehearsal::{Script, Shelf};
use tributary_worker::{Parts, Worker};

/// Nothing in a test takes longer, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A worker that rehearses.
pub struct Stage {
    pub worker: Worker,
    pub shelf: Arc<Shelf>,
}

/// Loopback, free ports, and so many slots.
pub fn config(slots: u32) -> WorkerConfig {
    let mut config = WorkerConfig {
        worker_id: Some("worker-1".into()),
        grpc: ([127, 0, 0, 1], 0).into(),
        http: ([127, 0, 0, 1], 0).into(),
        ..WorkerConfig::default()
    };
    config.execution.slots = slots;
    config.artifacts.disk_report_interval = Span::millis(10);
    config
}

pub async fn stage(config: &WorkerConfig) -> Stage {
    let (shelf, lost) = Shelf::new();
    let parts = Parts {
        executor: Arc::new(Script::new(Arc::clone(&shelf))),
        artifacts: Arc::clone(&shelf) as _,
        lost,
        routes: shelf.routes(),
        version: "rehearsal".into(),
    };
    let worker = Worker::start(config, parts).await.expect("the worker starts");
    Stage { worker, shelf }
}

impl Stage {
    pub fn grpc(&self) -> SocketAddr {
        self.worker.grpc()
    }

    pub fn http(&self) -> SocketAddr {
        self.worker.http()
    }

    /// An API node that has introduced itself.
    pub async fn api(&self, name: &str) -> Api {
        Api::greeted(self.grpc(), name, 1).await
    }

    /// One metric's value, without labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let (_, text) = get(self.http(), "/metrics", &[]).await;
        let start = format!("tributary_worker_{name} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{name} is missing in {text}")).parse().expect("a number")
    }

    /// Waits until something holds.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let waiting = async {
            while !holds(self).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("it never came to: {what}"));
    }
}

/// An API node's end of a stream.
pub struct Api {
    pub said: Inbound<WorkerMessage>,
    pub say: Outbound<ApiMessage>,
    pub welcome: Option<Welcome>,
    beating: Option<AbortHandle>,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.fall_silent();
    }
}

pub fn hello(name: &str, session: u64) -> ApiMessage {
    ApiMessage::Hello(Hello {
        api_id: ApiId::new(name).expect("a plain name"),
        session_id: SessionId(session),
        protocol_version: PROTOCOL_VERSION,
    })
}

pub fn work(item: u32) -> WorkRef {
    WorkRef { work_id: WorkId { query: QueryId(0xfeed), item }, attempt: Attempt::FIRST }
}

pub fn assign(item: u32, spec: &str) -> AssignWork {
    AssignWork {
        query_id: QueryId(0xfeed),
        leaf_id: LeafId(0),
        work_id: work(item).work_id,
        attempt: work(item).attempt,
        affinity_key: AffinityKey(42),
        tenant: TenantId::new("acme").expect("a plain name"),
        deadline: Duration::from_secs(300),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        spec: Bytes::copy_from_slice(spec.as_bytes()),
    }
}

impl Api {
    /// Opens a stream and says nothing.
    pub async fn open(grpc: SocketAddr) -> Self {
        let channel = Channel::from_shared(format!("http://{grpc}")).expect("an address is a URL");
        Self::over(channel.connect_lazy()).await.expect("it opens")
    }

    /// Opens a stream over this channel and says nothing.
    pub async fn over(channel: Channel) -> Result<Self, StreamError> {
        let (say, stream) = lanes(1_024);
        let said = open(channel, stream, PATIENCE).await?;
        Ok(Self { said, say, welcome: None, beating: None })
    }

    /// Opens a stream, introduces itself and hears the worker's introduction and status.
    pub async fn greeted(grpc: SocketAddr, name: &str, session: u64) -> Self {
        let mut api = Self::open(grpc).await;
        api.greet(name, session).await;
        api
    }

    /// Introduces itself and hears the worker's introduction and status.
    pub async fn greet(&mut self, name: &str, session: u64) {
        self.tell(hello(name, session)).await;
        let WorkerMessage::Welcome(welcome) = self.hear().await else { panic!("no welcome") };
        self.welcome = Some(welcome);
        let WorkerMessage::Status(_) = self.hear().await else { panic!("no status") };
        self.live();
    }

    pub async fn tell(&self, message: ApiMessage) {
        self.say.send(message).await.expect("the stream is open");
    }

    pub async fn assign(&self, item: u32, spec: &str) {
        self.tell(ApiMessage::AssignWork(assign(item, spec))).await;
    }

    pub async fn cancel(&self, item: u32) {
        let WorkRef { work_id, attempt } = work(item);
        let reason = CancelReason::ClientGone;
        self.tell(ApiMessage::CancelWork(CancelWork { work_id, attempt, reason })).await;
    }

    pub async fn acknowledge(&self, item: u32, artifact: &Artifact) {
        let (work_id, checksum) = (work(item).work_id, artifact.checksum);
        self.tell(ApiMessage::ArtifactAck(ArtifactAck { work_id, checksum })).await;
    }

    /// Sends a sign of life twice a second from here on.
    pub fn live(&mut self) {
        let say = self.say.clone();
        let beating = tokio::spawn(async move {
            for seq in 1.. {
                let beat = Heartbeat { seq, ..Heartbeat::default() };
                if say.send(ApiMessage::Heartbeat(beat)).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        self.beating = Some(beating.abort_handle());
    }

    /// Falls silent, as a peer behind a cut link does.
    pub fn fall_silent(&mut self) {
        if let Some(beating) = self.beating.take() {
            beating.abort();
        }
    }

    /// The next message that is no heartbeat.
    pub async fn hear(&mut self) -> WorkerMessage {
        loop {
            match self.hear_anything().await {
                WorkerMessage::Heartbeat(_) => {}
                other => return other,
            }
        }
    }

    pub async fn hear_anything(&mut self) -> WorkerMessage {
        let heard = timeout(PATIENCE, self.said.next()).await.expect("the worker speaks");
        heard.expect("the stream is open").expect("the worker speaks the protocol")
    }

    /// The next message that is neither a heartbeat nor a status.
    pub async fn answer(&mut self) -> WorkerMessage {
        loop {
            match self.hear().await {
                WorkerMessage::Status(_) => {}
                other => return other,
            }
        }
    }

    /// The next status that is like this.
    pub async fn status(&mut self, like: impl Fn(&WorkerStatus) -> bool) -> WorkerStatus {
        loop {
            if let WorkerMessage::Status(status) = self.hear().await
                && like(&status)
            {
                return status;
            }
        }
    }

    /// Gives work and hears that it was taken and started.
    pub async fn start(&mut self, item: u32, spec: &str) {
        self.assign(item, spec).await;
        assert_eq!(self.answer().await, WorkerMessage::Accepted(work(item)));
        assert_eq!(self.answer().await, WorkerMessage::Started(work(item)));
    }

    /// Hears that this work is ready.
    pub async fn ready(&mut self, item: u32) -> Artifact {
        match self.answer().await {
            WorkerMessage::Ready(ready) if ready.work == work(item) => ready.artifact,
            other => panic!("{other:?} instead of the artifact of {item}"),
        }
    }

    /// Hears the end of the stream, and why.
    pub async fn end(&mut self) -> Status {
        loop {
            let heard = timeout(PATIENCE, self.said.next()).await.expect("the stream ends");
            match heard {
                Some(Ok(_)) => {}
                Some(Err(StreamError::Broken(status))) => return *status,
                Some(Err(other)) => panic!("{other}"),
                None => return Status::ok(""),
            }
        }
    }

    pub fn token(&self) -> &str {
        &self.welcome.as_ref().expect("it was greeted").artifact_token
    }

    /// Fetches an artifact as this API node.
    pub async fn fetch(&self, artifact: &Artifact) -> (u16, String) {
        fetch(&artifact.url, self.token()).await
    }
}

pub async fn fetch(url: &str, token: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("plain HTTP");
    let (address, path) = rest.split_once('/').expect("a path");
    let authorization = format!("Authorization: Bearer {token}");
    get(address.parse().expect("an address"), &format!("/{path}"), &[&authorization]).await
}

pub async fn get(address: SocketAddr, path: &str, headers: &[&str]) -> (u16, String) {
    request(address, "GET", path, headers).await
}

/// One request over a connection of its own: its status and body.
pub async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
) -> (u16, String) {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.expect("the port is open");
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
        for line in headers.iter().chain(&["Connection: close", "Content-Length: 0"]) {
            head.push_str(line);
            head.push_str("\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await.expect("it is taken");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("it answers");
        String::from_utf8(answer).expect("text")
    };
    let answer = timeout(PATIENCE, exchange).await.expect("it answers in time");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, body.to_owned())
}
