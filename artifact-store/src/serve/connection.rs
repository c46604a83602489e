//! Accepts connections and serves routes on them, within limits: so many at once, so long for a
//! request's head, so patient with a peer that does not take its answer. The routes are the
//! caller's.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time;
use tower::util::MapRequest;
use tracing::{debug, warn};

use super::stall::StallGuard;

/// How connections are served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeConfig {
    /// Connections at once (1024). More: file descriptors and memory; those beyond wait.
    pub connections: usize,
    /// A request's head must come this soon, and the next one on the same connection (30 s).
    /// Longer: silent peers hold their connections longer.
    pub head_timeout: Duration,
    /// A peer that is waited for must take `stall_bytes` in this time (20 s). Longer: a peer that
    /// takes nothing holds its artifact longer.
    pub stall_timeout: Duration,
    /// See above (64 KiB). More: slow links are cut off.
    pub stall_bytes: usize,
    /// Time for answers under way when the server stops (10 s).
    pub stop_timeout: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            connections: 1024,
            head_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(20),
            stall_bytes: 64 << 10,
            stop_timeout: Duration::from_secs(10),
        }
    }
}

/// The longest head of a request. Addresses and tokens are short.
const HEAD_MAX_BYTES: usize = 32 << 10;

/// The pause after a connection could not be accepted, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves routes on a listener until told to stop; then answers under way are finished, within
/// limits.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    config: ServeConfig,
    stop: impl Future<Output = ()>,
) {
    let permits = Arc::new(Semaphore::new(config.connections));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accepted => accepted,
            Some(_) = connections.join_next() => continue,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "connection can't be accepted");
                time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Small answers should not wait for the next ones.
        _ = stream.set_nodelay(true);
        let (routes, config, mut stopped) = (routes.clone(), config.clone(), stopped.clone());
        connections.spawn(async move {
            let stop = async move {
                _ = stopped.wait_for(|stopped| *stopped).await;
            };
            if let Err(error) = serve_connection(stream, routes, &config, stop).await {
                debug!(%error, "connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    stopping.send_replace(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if time::timeout(config.stop_timeout, all).await.is_err() {
        connections.shutdown().await;
    }
}

/// Serves routes on one connection, of whatever kind, until its end or until told to stop; then
/// the answer under way is finished first.
pub async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    routes: Router,
    config: &ServeConfig,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let stream = StallGuard::new(stream, config.stall_timeout, config.stall_bytes);
    let to_axum = |request: Request<hyper::body::Incoming>| request.map(Body::new);
    let service = TowerToHyperService::new(MapRequest::new(routes, to_axum));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.head_timeout)
        .max_buf_size(HEAD_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection, stop);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(io::Error::other)
}
