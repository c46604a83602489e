//! An HTTP port with bounds: so many connections, a request must come in time, head and body, and what
//! is sent must be taken in time. It closes politely: requests that run may end first. What is served is the
//! caller's.

mod body;
mod patience;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use body::Timely;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
pub use patience::Patient;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, warn};

use crate::config::{OutOfRange, Span, within};
use crate::knobs;
use crate::port::{Port, TcpPort};
use crate::tls::ServerTls;

/// How long to wait after a failure to accept, usually for want of file descriptors.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

knobs! {
    /// The HTTP port.
    HttpConfig {
        /// Connections at once; further ones wait (default 1024). More: file descriptors, and memory
        /// for what is being sent.
        max_connections: u32 = 1024,
        /// A request's head must be there this soon, its body this soon after it, and the handshake
        /// of a connection inside TLS this soon (default 10s). Longer: connections that say
        /// nothing are held for longer.
        request_timeout: Span = Span::seconds(10),
        /// A peer must take something of what is sent to it this soon (default 30s). Longer: peers
        /// that stopped reading hold a connection and a file for longer.
        write_timeout: Span = Span::seconds(30),
    }
}

impl HttpConfig {
    /// Checks the values, as of the section `serving`.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let hour = 3_600_000;
        within("serving.max_connections", self.max_connections.into(), 1, 1 << 20)?;
        within("serving.request_timeout (ms)", self.request_timeout.as_millis(), 100, hour)?;
        within("serving.write_timeout (ms)", self.write_timeout.as_millis(), 100, hour)
    }
}

/// A port that is listened at, and what is served there. Handlers find the peer's address as
/// `ConnectInfo<SocketAddr>`.
#[derive(Debug)]
pub struct Server<P = TcpPort> {
    port: P,
    routes: Router,
    config: HttpConfig,
}

/// The word to close a port, and how long what runs may go on after it.
#[derive(Clone, Debug, Default)]
pub struct Closing {
    /// The word.
    pub told: CancellationToken,
    /// How long requests that run may go on.
    pub grace: Duration,
}

impl Server {
    /// Serves these routes at this port, within these bounds.
    pub fn new(listener: TcpListener, routes: Router, config: HttpConfig) -> Self {
        Self::at(TcpPort::new(listener, None), routes, config)
    }

    /// Connections are inside TLS, where it is given. Keeping it fresh is left to the caller.
    pub fn with_tls(self, tls: Option<ServerTls>) -> Self {
        Self { port: self.port.with_tls(tls), ..self }
    }
}

impl<P: Port> Server<P> {
    /// Serves these routes at any port, within these bounds.
    pub fn at(port: P, routes: Router, config: HttpConfig) -> Self {
        Self { port, routes, config }
    }

    /// Serves until told to close: then the port is closed, idle connections end, requests that run
    /// have their grace, and what is left is cut. Gives how many connections were cut. Dropped, all
    /// of them are cut at once.
    pub async fn serve(self, closing: Closing) -> usize {
        let Self { port, routes, config } = self;
        let permits = Arc::new(Semaphore::new(config.max_connections as usize));
        let mut serving = JoinSet::new();
        loop {
            while serving.try_join_next().is_some() {}
            let next = tokio::select! {
                biased;
                () = closing.told.cancelled() => break,
                next = accept(&port, &permits) => next,
            };
            let Some((arrival, peer, permit)) = next else { continue };
            let (routes, config) = (routes.clone(), config.clone());
            let told = closing.told.clone();
            serving.spawn(async move {
                let served = async {
                    // The time for it is that for a head.
                    let stream = P::greet(arrival, config.request_timeout.get()).await?;
                    serve_one(stream, peer, routes, &config, told).await
                };
                if let Err(error) = served.await {
                    debug!(%peer, %error, "a connection ended early");
                }
                drop(permit);
            });
        }
        drop(port);
        let all_ended = async { while serving.join_next().await.is_some() {} };
        // Cut below where it is not in time.
        let _ = tokio::time::timeout(closing.grace, all_ended).await;
        let cut = serving.len();
        serving.shutdown().await;
        cut
    }
}

/// The next connection. One that comes while there are too many waits in the system's queue.
async fn accept<P: Port>(
    port: &P,
    permits: &Arc<Semaphore>,
) -> Option<(P::Arrival, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.expect("it is never closed");
    match port.accept().await {
        Ok((arrival, peer)) => Some((arrival, peer, permit)),
        Err(error) => {
            warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            None
        }
    }
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: SocketAddr,
    routes: Router,
    config: &HttpConfig,
    told: CancellationToken,
) -> io::Result<()> {
    let stream = Patient::new(stream, config.write_timeout.get());
    let patience = config.request_timeout.get();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        routes.clone().oneshot(request.map(|body| Timely::new(body, patience)))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = told.cancelled() => {
            // The request that runs is the last one; without one, this ends it at once.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
