//! The HTTP port: probes, metrics, the request to drain, and whatever routes the artifact store
//! brings. Bounded: so many connections, a request must come in time, and what is sent must be
//! taken in time.

mod patience;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use patience::Patient;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::artifacts::Artifacts;
use crate::config::HttpConfig;
use crate::desk::View;
use crate::handle::Handle;
use crate::metrics::{self, Text};

/// How long to wait after a failure to accept, usually for want of file descriptors.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// What the routes need.
#[derive(Clone)]
pub(crate) struct Desktop {
    pub(crate) handle: Handle,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) drain_over_http: bool,
}

/// The worker's own routes beside the store's.
pub(crate) fn routes(desktop: Desktop, store: Router) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .route("/drain", post(drain))
        .with_state(desktop)
        .merge(store)
}

/// Alive means that control streams are still served: the desk answers.
async fn healthz(State(desktop): State<Desktop>) -> Response {
    match desktop.handle.look().await {
        Some(_) => "alive\n".into_response(),
        None => {
            (StatusCode::SERVICE_UNAVAILABLE, "the control desk does not answer\n").into_response()
        }
    }
}

/// Ready means that a worker may be given to API nodes.
async fn readyz(State(desktop): State<Desktop>) -> Response {
    match desktop.handle.look().await.map(|view| view.snapshot.status) {
        Some(status) if status.draining => {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response()
        }
        // It recovers by itself, and API nodes know: leaving discovery would only cost streams.
        Some(status) if !status.accepting_work => {
            "ready, but takes no work for want of disk\n".into_response()
        }
        Some(_) => "ready\n".into_response(),
        None => {
            (StatusCode::SERVICE_UNAVAILABLE, "the control desk does not answer\n").into_response()
        }
    }
}

async fn metrics_text(State(desktop): State<Desktop>) -> Response {
    let Some(view) = desktop.handle.look().await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the control desk does not answer\n")
            .into_response();
    };
    let written = tokio::task::spawn_blocking(move || everything(&desktop, &view)).await;
    match written {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
            .into_response(),
        Err(error) => {
            warn!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn everything(desktop: &Desktop, view: &View) -> String {
    let mut text = Text::default();
    metrics::write(&mut text, view, desktop.handle.connections());
    desktop.artifacts.measure(&mut text);
    text.into_string()
}

async fn drain(State(desktop): State<Desktop>) -> Response {
    if !desktop.drain_over_http {
        return (StatusCode::FORBIDDEN, "drain.over_http is false\n").into_response();
    }
    desktop.handle.drain().await;
    (StatusCode::ACCEPTED, "draining\n").into_response()
}

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, routes: Router, config: HttpConfig) {
    let connections = Arc::new(Semaphore::new(config.max_connections as usize));
    let mut serving = JoinSet::new();
    loop {
        while serving.try_join_next().is_some() {}
        // One that comes while there are too many waits in the system's queue.
        let permit = Arc::clone(&connections).acquire_owned().await.expect("it is never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                continue;
            }
        };
        let (routes, config) = (routes.clone(), config.clone());
        serving.spawn(async move {
            if let Err(error) = serve_one(stream, routes, &config).await {
                debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
}

async fn serve_one(stream: TcpStream, routes: Router, config: &HttpConfig) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = Patient::new(stream, config.write_timeout.get());
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.request_timeout.get())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await
        .map_err(io::Error::other)
}
