//! Connections to the control port, below gRPC: how many there may be, that each opens a stream
//! soon, and a way to cut one whose peer does not even take the end of its stream. What is said on
//! streams is left to `session`.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::{Connected, TcpConnectInfo};
use tracing::{debug, warn};
use tributary_process::port::Port;

/// How long to wait after a failure to accept: usually for want of file descriptors, which come
/// back when somebody leaves.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// The connections there are.
#[derive(Debug)]
pub(crate) struct Connections {
    limit: usize,
    /// A stream must be opened within this time, and a connection is not kept without one for
    /// longer.
    patience: Duration,
    table: Mutex<BTreeMap<SocketAddr, Arc<Connection>>>,
    refused: AtomicU64,
}

/// One of them.
#[derive(Debug, Default)]
struct Connection {
    cut: CancellationToken,
    /// Streams that were opened on it, ever.
    opened: AtomicU64,
    /// Streams that are over.
    ended: AtomicU64,
}

/// A stream's hold on its connection.
#[derive(Debug)]
pub(crate) struct Hold {
    connection: Arc<Connection>,
}

impl Connections {
    pub(crate) fn new(limit: usize, patience: Duration) -> Arc<Self> {
        let table = Mutex::default();
        Arc::new(Self { limit, patience, table, refused: AtomicU64::new(0) })
    }

    /// Accepts connections until nobody takes them any more. Each is greeted by itself before it is
    /// handed on, within the time that a stream must be opened in.
    pub(crate) fn accept<P: Port>(
        self: Arc<Self>,
        port: P,
    ) -> ReceiverStream<io::Result<Wire<P::Stream>>> {
        let (give, take) = mpsc::channel(1);
        tokio::spawn(async move {
            // Dropped with this task, so that no greeting outlives the port. There are no more of
            // them than places.
            let mut greeting = JoinSet::new();
            loop {
                while greeting.try_join_next().is_some() {}
                let accepted = tokio::select! {
                    accepted = port.accept() => accepted,
                    () = give.closed() => return,
                };
                let (arrival, place) = match accepted {
                    Ok((arrival, peer)) => match self.admit(peer) {
                        Some(place) => (arrival, place),
                        None => continue,
                    },
                    Err(error) => {
                        warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                        continue;
                    }
                };
                let (give, patience) = (give.clone(), self.patience);
                greeting.spawn(async move {
                    match P::greet(arrival, patience).await {
                        // Where nobody takes it, the port is closing.
                        Ok(stream) => drop(give.send(Ok(Wire::new(stream, place))).await),
                        Err(error) => debug!(peer = %place.peer, %error, "no handshake"),
                    }
                });
            }
        });
        ReceiverStream::new(take)
    }

    /// A stream was opened by this peer.
    pub(crate) fn opened(&self, peer: SocketAddr) -> Option<Hold> {
        let connection = Arc::clone(self.lock().get(&peer)?);
        connection.opened.fetch_add(1, Ordering::Relaxed);
        Some(Hold { connection })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// How many were one too many.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Place> {
        let mut table = self.lock();
        if table.len() >= self.limit {
            self.refused.fetch_add(1, Ordering::Relaxed);
            debug!(%peer, "a connection too many was refused");
            return None;
        }
        let connection = Arc::new(Connection::default());
        table.insert(peer, Arc::clone(&connection));
        Some(Place { peer, connection, connections: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Arc<Connection>>> {
        // Nothing in the lock can panic half-way.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Cuts a connection on which no stream is open for two looks in a row.
    async fn watch(self: Arc<Self>, peer: SocketAddr, patience: Duration) {
        let mut ended_before = 0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(patience) => {}
                () = self.cut.cancelled() => return,
            }
            let ended = self.ended.load(Ordering::Relaxed);
            let idle = self.opened.load(Ordering::Relaxed) == ended;
            if idle && ended == ended_before {
                debug!(%peer, "a connection without a stream is cut");
                return self.cut.cancel();
            }
            ended_before = ended;
        }
    }
}

impl Hold {
    /// Cuts the connection, whatever else is on it.
    pub(crate) fn cut(&self) {
        self.connection.cut.cancel();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.connection.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection's place among the others, from the first byte of a handshake on.
struct Place {
    peer: SocketAddr,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Also ends the task that watches it.
        self.connection.cut.cancel();
        self.connections.lock().remove(&self.peer);
    }
}

/// A connection's bytes.
pub(crate) struct Wire<S> {
    stream: S,
    place: Place,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S> Wire<S> {
    /// From here on it must have a stream.
    fn new(stream: S, place: Place) -> Self {
        let connection = &place.connection;
        tokio::spawn(Arc::clone(connection).watch(place.peer, place.connections.patience));
        let cut = Box::pin(connection.cut.clone().cancelled_owned());
        Self { stream, place, cut }
    }
}

impl<S> Connected for Wire<S> {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        // Nobody asks for the address on this side.
        TcpConnectInfo { local_addr: None, remote_addr: Some(self.place.peer) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    /// Fails once the connection is cut. HTTP/2 always reads, so writes need not look.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
