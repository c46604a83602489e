//! `/metrics`: looks at everything there is to see and writes it down.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tributary_catalog::UniverseReader;
use tributary_process::metrics::{CONTENT_TYPE, Text};

use super::{PREFIX, Sight, write};
use crate::discovery;
use crate::figures::Figures;
use crate::memory::Memory;
use crate::monitor::Monitor;

/// Where everything is seen.
pub struct Sights {
    /// The coordinator.
    pub monitor: Arc<dyn Monitor>,
    /// What users see of queries.
    pub figures: Arc<Figures>,
    /// What holds results.
    pub memory: Arc<Memory>,
    /// The catalog.
    pub catalog: UniverseReader,
    /// Where workers are looked for.
    pub sources: discovery::Figures,
}

impl Sights {
    /// Everything, as of now; nothing where the coordinator is gone.
    pub async fn look(&self) -> Option<Sight> {
        Some(Sight {
            view: self.monitor.look().await?,
            queries: self.figures.look(),
            memory_bytes: self.memory.used_bytes(),
            freshness: self.catalog.freshness(),
            segments: self.catalog.current().segment_count(),
            sources: self.sources.sources(),
        })
    }
}

/// `/metrics`.
pub fn routes(sights: Sights) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(Arc::new(sights))
}

async fn metrics(State(sights): State<Arc<Sights>>) -> Response {
    let Some(sight) = sights.look().await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "this node is shutting down\n").into_response();
    };
    let mut text = Text::new(PREFIX);
    write(&mut text, &sight);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text.into_string()).into_response()
}
