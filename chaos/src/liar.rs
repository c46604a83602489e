//! A worker that lies: stands before an honest one, speaks the protocol with both sides, and changes
//! what the worker says. Wrong checksums and sizes, wrong row counts, answers for work it was not
//! given, and artifacts on another host.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_workcoord::id::{Attempt, QueryId, WorkId};
use core_workcoord::message::{ApiMessage, WorkReady, WorkRef, WorkerMessage};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::StreamExt as _;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tributary_proto::client::open;
use tributary_proto::lanes::{Outbound, OutboundStream, lanes};
use tributary_proto::server::{ControlHandler, routes};
use tributary_proto::stream::Inbound;

use crate::dice::Dice;
use crate::error::ChaosError;

const QUEUE: usize = 4_096;
const PATIENCE: Duration = Duration::from_secs(2);

/// A worker that lies, until its handle goes.
#[derive(Debug)]
pub struct Liar {
    address: SocketAddr,
    told: Arc<AtomicU64>,
    serving: JoinHandle<()>,
    sessions: Sessions,
}

type Sessions = Arc<Mutex<JoinSet<()>>>;

impl Liar {
    /// One that stands before an honest worker.
    pub async fn before(honest: SocketAddr, dice: Dice) -> Result<Self, ChaosError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(ChaosError::Listen)?;
        let address = listener.local_addr().map_err(ChaosError::Listen)?;
        let told = Arc::new(AtomicU64::new(0));
        let sessions = Sessions::default();
        let mouth = Mouth {
            honest,
            dice: Mutex::new(dice),
            told: Arc::clone(&told),
            sessions: Arc::clone(&sessions),
        };
        let serving = Server::builder()
            .add_routes(routes(mouth))
            .serve_with_incoming(TcpIncoming::from(listener));
        // It serves until it is aborted.
        let serving = tokio::spawn(async move { drop(serving.await) });
        Ok(Self { address, told, serving, sessions })
    }

    /// Where it is dialled.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many lies it has told.
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// Falls silent for good.
    pub async fn stop(&mut self) {
        self.serving.abort();
        let mut sessions = std::mem::take(&mut *lock(&self.sessions));
        sessions.shutdown().await;
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

struct Mouth {
    honest: SocketAddr,
    dice: Mutex<Dice>,
    told: Arc<AtomicU64>,
    sessions: Sessions,
}

impl ControlHandler for Mouth {
    fn accept(
        &self,
        inbound: Inbound<ApiMessage>,
        _peer: Option<SocketAddr>,
    ) -> OutboundStream<WorkerMessage> {
        let (say, stream) = lanes(QUEUE);
        let dice = lock(&self.dice).fork(1);
        let session = relay(self.honest, inbound, say, dice, Arc::clone(&self.told));
        let mut sessions = lock(&self.sessions);
        while sessions.try_join_next().is_some() {}
        sessions.spawn(session);
        stream
    }
}

/// Passes on what both sides say, and lies now and then. Ends with either side.
async fn relay(
    honest: SocketAddr,
    mut from_api: Inbound<ApiMessage>,
    to_api: Outbound<WorkerMessage>,
    mut dice: Dice,
    told: Arc<AtomicU64>,
) {
    let Ok(channel) = Channel::from_shared(format!("http://{honest}")) else { return };
    let (to_worker, stream) = lanes(QUEUE);
    let Ok(mut from_worker) = open(channel.connect_lazy(), stream, PATIENCE).await else { return };
    loop {
        let passed = tokio::select! {
            heard = from_api.next() => match heard {
                Some(Ok(message)) => to_worker.send(message).await.is_ok(),
                _ => false,
            },
            heard = from_worker.next() => match heard {
                Some(Ok(WorkerMessage::Ready(ready))) => {
                    told.fetch_add(1, Ordering::Relaxed);
                    let mut passed = true;
                    for message in lie(&mut dice, ready) {
                        passed &= to_api.send(message).await.is_ok();
                    }
                    passed
                }
                Some(Ok(message)) => to_api.send(message).await.is_ok(),
                _ => false,
            },
        };
        if !passed {
            return;
        }
    }
}

/// What is said in place of the truth about an artifact.
fn lie(dice: &mut Dice, ready: WorkReady) -> Vec<WorkerMessage> {
    let mut lie = ready.clone();
    match dice.below(7) {
        0 => lie.artifact.checksum.0[dice.below(32)] ^= 1,
        1 => lie.artifact.row_count += 1,
        2 => lie.artifact.size_bytes += 1,
        3 => lie.artifact.url = elsewhere(&lie.artifact.url),
        4 => {
            // The artifact of this work is announced as another's, and its own too.
            lie.work.work_id.item += 1;
            return vec![WorkerMessage::Ready(lie), WorkerMessage::Ready(ready)];
        }
        5 => {
            let work_id = WorkId { query: QueryId(u128::from(dice.roll())), item: 0 };
            lie.work = WorkRef { work_id, attempt: Attempt(1) };
            return vec![WorkerMessage::Ready(lie), WorkerMessage::Ready(ready)];
        }
        _ => {
            // An attempt that was never given to it.
            lie.work.attempt.0 += 1;
            return vec![WorkerMessage::Ready(lie), WorkerMessage::Ready(ready)];
        }
    }
    vec![WorkerMessage::Ready(lie)]
}

/// The same on another host.
fn elsewhere(url: &str) -> String {
    let (host, rest) = match url.strip_prefix("http://").and_then(|rest| rest.split_once(':')) {
        Some(parts) => parts,
        None => return url.to_owned(),
    };
    let other = if host == "127.0.0.2" { "127.0.0.3" } else { "127.0.0.2" };
    format!("http://{other}:{rest}")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing in the lock can panic half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
