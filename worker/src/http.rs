//! The HTTP port: probes, metrics, the request to drain, and whatever routes the artifact store
//! brings. How connections are bounded is left to `process`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tracing::warn;
use tributary_process::metrics::{CONTENT_TYPE, Text};
use tributary_process::tls::ServerTls;

use crate::artifacts::Artifacts;
use crate::desk::View;
use crate::execute::Execute;
use crate::handle::Handle;
use crate::metrics::{self, PREFIX};

/// What the routes need.
#[derive(Clone)]
pub(crate) struct Desktop {
    pub(crate) handle: Handle,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) executor: Arc<dyn Execute>,
    pub(crate) drain_over_http: bool,
    /// TLS of the ports, by their names.
    pub(crate) tls: Vec<(&'static str, ServerTls)>,
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
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            warn!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn everything(desktop: &Desktop, view: &View) -> String {
    let mut text = Text::new(PREFIX);
    metrics::write(&mut text, view, desktop.handle.connections());
    let tls: Vec<_> = desktop.tls.iter().map(|(port, tls)| (*port, tls.figures())).collect();
    metrics::write_tls(&mut text, &tls);
    desktop.executor.measure(&mut text);
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
