//! An API node that speaks the raw control protocol: no coordinator, no retries, just messages. What
//! it does not expect to hear is a failure of the test.

use std::net::SocketAddr;
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
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::Status;
use tonic::transport::Channel;
use tributary_artifact_store::{FetchConfig, FetchError, Fetcher};
use tributary_proto::client::open;
use tributary_proto::lanes::{Outbound, lanes};
use tributary_proto::stream::{Inbound, StreamError};

use super::PATIENCE;
use super::field::TENANT;

/// How often a living API node says so.
const BEAT: Duration = Duration::from_millis(500);

/// An API node's end of a stream.
#[derive(Debug)]
pub struct Api {
    /// What the worker says.
    pub said: Inbound<WorkerMessage>,
    /// What is said to it.
    pub say: Outbound<ApiMessage>,
    welcome: Option<Welcome>,
    beating: Option<AbortHandle>,
    fetcher: Fetcher,
}

/// The introduction of an API node.
pub fn hello(name: &str, session: u64) -> ApiMessage {
    ApiMessage::Hello(Hello {
        api_id: ApiId::new(name).expect("a plain name"),
        session_id: SessionId(session),
        protocol_version: PROTOCOL_VERSION,
    })
}

/// The first attempt at an item.
pub fn work(item: u32) -> WorkRef {
    WorkRef { work_id: WorkId { query: QueryId(0xfeed), item }, attempt: Attempt::FIRST }
}

/// The assignment of an item.
pub fn assignment(item: u32, spec: Bytes) -> AssignWork {
    let WorkRef { work_id, attempt } = work(item);
    AssignWork {
        query_id: work_id.query,
        leaf_id: LeafId(0),
        work_id,
        attempt,
        affinity_key: AffinityKey(42),
        tenant: TenantId::new(TENANT).expect("a plain name"),
        deadline: Duration::from_secs(300),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        spec,
    }
}

impl Api {
    /// Opens a stream and says nothing.
    pub async fn open(grpc: SocketAddr) -> Self {
        let channel = Channel::from_shared(format!("http://{grpc}")).expect("an address is a URL");
        let (say, stream) = lanes(1_024);
        let said = open(channel.connect_lazy(), stream, PATIENCE).await.expect("it opens");
        let fetcher = Fetcher::new(FetchConfig::default()).expect("a client can be made");
        Self { said, say, welcome: None, beating: None, fetcher }
    }

    /// Opens a stream, introduces itself, hears the worker's introduction and status, and gives
    /// signs of life from then on.
    pub async fn greeted(grpc: SocketAddr, name: &str, session: u64) -> Self {
        let mut api = Self::open(grpc).await;
        api.tell(hello(name, session)).await;
        let WorkerMessage::Welcome(welcome) = api.hear().await else { panic!("no welcome") };
        api.welcome = Some(welcome);
        let WorkerMessage::Status(_) = api.hear().await else { panic!("no status") };
        api.live();
        api
    }

    /// Says something.
    pub async fn tell(&self, message: ApiMessage) {
        self.say.send(message).await.expect("the stream is open");
    }

    /// Gives work.
    pub async fn assign(&self, item: u32, spec: Bytes) {
        self.tell(ApiMessage::AssignWork(assignment(item, spec))).await;
    }

    /// Takes work back.
    pub async fn cancel(&self, item: u32) {
        let WorkRef { work_id, attempt } = work(item);
        let reason = CancelReason::ClientGone;
        self.tell(ApiMessage::CancelWork(CancelWork { work_id, attempt, reason })).await;
    }

    /// Says that an artifact was fetched.
    pub async fn acknowledge(&self, item: u32, artifact: &Artifact) {
        let (work_id, checksum) = (work(item).work_id, artifact.checksum);
        self.tell(ApiMessage::ArtifactAck(ArtifactAck { work_id, checksum })).await;
    }

    /// Gives signs of life from here on.
    pub fn live(&mut self) {
        let say = self.say.clone();
        let beating = tokio::spawn(async move {
            for seq in 1.. {
                let beat = Heartbeat { seq, ..Heartbeat::default() };
                if say.send(ApiMessage::Heartbeat(beat)).await.is_err() {
                    return;
                }
                tokio::time::sleep(BEAT).await;
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

    /// The next message, whatever it is.
    pub async fn hear_anything(&mut self) -> WorkerMessage {
        let heard = timeout(PATIENCE, self.said.next()).await.expect("the worker speaks");
        heard.expect("the stream is open").expect("the worker speaks the protocol")
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
    pub async fn start(&mut self, item: u32, spec: Bytes) {
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

    /// Does one item from its assignment to its acknowledgement, and gives its verified bytes.
    pub async fn done(&mut self, item: u32, spec: Bytes) -> Bytes {
        self.start(item, spec).await;
        let artifact = self.ready(item).await;
        let bytes = self.fetch(&artifact).await.expect("it is served to its owner");
        self.acknowledge(item, &artifact).await;
        bytes
    }

    /// Fetches an artifact with this session's token, and checks size and checksum.
    pub async fn fetch(&self, artifact: &Artifact) -> Result<Bytes, FetchError> {
        let Artifact { url, size_bytes, checksum, .. } = artifact;
        let verified = self.fetcher.fetch(url, self.token(), *size_bytes, *checksum).await?;
        Ok(verified.bytes().clone())
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

    /// What the worker said of itself.
    pub fn welcome(&self) -> &Welcome {
        self.welcome.as_ref().expect("it was greeted")
    }

    /// What opens this session's artifacts.
    pub fn token(&self) -> &str {
        &self.welcome().artifact_token
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.fall_silent();
    }
}
