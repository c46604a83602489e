//! What clients speak with: Prometheus' HTTP API, the streams of events beside it, and who is let in.
//! Knows of queries only what [`crate::question`] says; where they run is not its business.
//!
//! | file | has |
//! |---|---|
//! | `table` | every route, as the OpenAPI description has them too |
//! | `gate` | who is let in, CORS, what encodings are understood |
//! | `params`, `times`, `ask_for` | from a request to a question |
//! | `prometheus` | Prometheus' endpoints and their JSON |
//! | `metrics`, `sse`, `summary` | the stream of a query, and what the data source asks besides |
//! | `failure` | errors, as JSON with a status and as events |
//! | `json`, `body` | how answers are written |
//! | `page` | the web page |

mod ask_for;
mod body;
mod failure;
mod gate;
pub mod json;
mod metrics;
mod page;
mod params;
mod prometheus;
mod settings;
mod sse;
mod summary;
mod table;
mod times;

use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use core_workcoord::id::TenantId;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::decompression::RequestDecompressionLayer;

pub use prometheus::{Notes, answer_json};
pub use settings::{Origins, Settings};

use crate::access::Access;
use crate::question::Ask;
pub(crate) use failure::{Failure, Kind};

/// What every handler needs.
pub(crate) struct Desk {
    ask: Arc<dyn Ask>,
    settings: Settings,
    access: Access,
}

type Shared = Arc<Desk>;

/// Who asks. Put into a request by `gate`.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    tenant: TenantId,
}

/// What a handler gives.
type Answered = Result<Response, Failure>;

/// The routes for clients, to be served beside whatever else an API node serves. Unknown paths get
/// their error here, so what this is merged with must have no fallback of its own.
pub fn routes(ask: Arc<dyn Ask>, settings: Settings, access: Access) -> Router {
    let compression = settings.compression;
    let desk: Shared = Arc::new(Desk { ask, settings, access });
    let (mut guarded, mut open) = (Router::new(), Router::new());
    for route in table::routes() {
        let side = if route.is_open { &mut open } else { &mut guarded };
        *side = std::mem::take(side).route(route.path, route.handler);
    }
    let guarded = guarded.route_layer(from_fn_with_state(Arc::clone(&desk), gate::admit));
    // Clients that draw live charts should not wait for the last percent.
    let compress = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .gzip(compression)
        .zstd(compression);
    guarded
        .merge(open)
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(RequestDecompressionLayer::new())
        .layer(from_fn(gate::known_encoding))
        .layer(compress)
        .layer(from_fn_with_state(Arc::clone(&desk), gate::cors))
        .with_state(desk)
}

async fn not_found(uri: Uri) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no {}", uri.path()))
}

async fn wrong_method() -> Failure {
    Failure::new(Kind::MethodNotAllowed, "this method is not for this path; see the header Allow")
}
