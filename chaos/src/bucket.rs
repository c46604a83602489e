//! An object store over HTTP that can fall ill: as much of S3 as a worker reads, over the folder of a
//! data directory. It can be slow, answer with errors, or break off in the middle of an object.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED, RANGE};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::Response;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::error::ChaosError;
use crate::network::Network;

/// The name of the bucket.
pub const NAME: &str = "segments";

/// How the store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// Every answer waits this long.
    pub delay: Duration,
    /// So many of a hundred requests are answered with an error.
    pub errors_percent: u64,
    /// So many of a hundred answers break off half-way.
    pub breaks_percent: u64,
}

/// A store that is served until its handle goes.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    mood: Mutex<Mood>,
    requests: AtomicU64,
}

impl Bucket {
    /// Serves the files of a folder.
    pub async fn of(folder: PathBuf, network: &Network) -> Result<Self, ChaosError> {
        // Workers in namespaces reach it over their wires, and nobody else does.
        let host = match network {
            Network::Namespaces => "0.0.0.0:0",
            Network::Proxy { .. } => "127.0.0.1:0",
        };
        let listener = TcpListener::bind(host).await.map_err(ChaosError::Listen)?;
        let address = listener.local_addr().map_err(ChaosError::Listen)?;
        let requests = AtomicU64::new(0);
        let shared = Arc::new(Shared { folder, mood: Mutex::default(), requests });
        let routes = Router::new().route(&format!("/{NAME}/{{*path}}"), get(object));
        let routes = routes.with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            // It serves until it is aborted.
            drop(axum::serve(listener, routes).await);
        });
        Ok(Self { address, shared, serving })
    }

    /// Where it is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes how it is.
    pub fn feel(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn object(
    State(shared): State<Arc<Shared>>,
    Path(path): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let mood = *shared.mood.lock().unwrap_or_else(PoisonError::into_inner);
    // Not chance but turns: so many of every hundred requests, spread evenly.
    let turn = shared.requests.fetch_add(1, Ordering::Relaxed).wrapping_mul(37) % 100;
    tokio::time::sleep(mood.delay).await;
    if turn < mood.errors_percent {
        return answer(StatusCode::SERVICE_UNAVAILABLE, &[], Body::empty());
    }
    let file = shared.folder.join(&path);
    let read = tokio::task::spawn_blocking(move || std::fs::read(file)).await;
    let Ok(Ok(bytes)) = read else { return answer(StatusCode::NOT_FOUND, &[], Body::empty()) };
    let size = bytes.len();
    let asked = headers.get(RANGE).and_then(|range| range.to_str().ok());
    let (status, range) = match asked.and_then(|text| parse(text, size)) {
        Some(range) => (StatusCode::PARTIAL_CONTENT, range),
        None => (StatusCode::OK, 0..size),
    };
    let mut lines = vec![
        (ETAG, "\"as-it-is\"".to_owned()),
        (LAST_MODIFIED, "Thu, 01 Jan 1970 00:00:00 GMT".to_owned()),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        let told = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        lines.push((CONTENT_RANGE, told));
    }
    lines.push((CONTENT_LENGTH, range.len().to_string()));
    if method == Method::HEAD {
        return answer(status, &lines, Body::empty());
    }
    let body = Bytes::from(bytes).slice(range);
    if turn < mood.errors_percent + mood.breaks_percent {
        let half = body.slice(..body.len() / 2);
        return answer(status, &lines, broken_off(half));
    }
    answer(status, &lines, Body::from(body))
}

/// A body that ends before its length is there, with its connection.
fn broken_off(half: Bytes) -> Body {
    let pieces = [Ok::<_, std::io::Error>(half), Err(std::io::ErrorKind::BrokenPipe.into())];
    Body::from_stream(tokio_stream::iter(pieces))
}

/// `bytes=a-b` and `bytes=a-`.
fn parse(text: &str, size: usize) -> Option<std::ops::Range<usize>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let from: usize = from.parse().ok()?;
    let to = to.parse().map_or(size, |last: usize| last.saturating_add(1)).min(size);
    (from < to).then_some(from..to)
}

fn answer(status: StatusCode, lines: &[(HeaderName, String)], body: Body) -> Response {
    let mut builder = Response::builder().status(status);
    for (name, value) in lines {
        builder = builder.header(name, value);
    }
    builder.body(body).unwrap_or_else(|_| Response::new(Body::empty()))
}
