//! A bucket over HTTP, as much of S3 as a worker needs that reads: objects of a folder, whole or in
//! ranges. With it a worker has something to download and to cache; what is in a folder of its own
//! machine it reads where it is. Every segment is there in as many copies as one asks for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED, RANGE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::field::UPLOAD;

/// The name of the bucket.
const NAME: &str = "field";

/// A bucket that is served until its handle goes.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Bucket {
    /// Serves the files of a folder. To be called in a tokio runtime.
    pub async fn of(folder: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let routes = Router::new().route("/field/{*path}", get(object));
        let routes = routes.with_state(Arc::new(folder));
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("it serves for ever");
        });
        Self { address, serving }
    }

    /// A command that is a worker over this bucket.
    pub fn worker(&self, binary: &str) -> Command {
        let mut command = Command::new(binary);
        command.args(["worker", "--store", &format!("s3://{NAME}")]);
        command.env("AWS_ENDPOINT", format!("http://{}", self.address));
        command.envs([
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "nowhere"),
            ("AWS_ACCESS_KEY_ID", "nobody"),
            ("AWS_SECRET_ACCESS_KEY", "nothing"),
        ]);
        command
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn object(
    State(folder): State<Arc<PathBuf>>,
    Path(path): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let file = folder.join(original(&path));
    let read = tokio::task::spawn_blocking(move || std::fs::read(file)).await;
    let Ok(Ok(bytes)) = read else { return answer(StatusCode::NOT_FOUND, &[], Vec::new()) };
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
    if method == Method::HEAD {
        lines.push((CONTENT_LENGTH, size.to_string()));
        return answer(status, &lines, Vec::new());
    }
    answer(status, &lines, bytes[range].to_vec())
}

/// The path of what an object is a copy of: `upload-7/x` is one of `upload/x`.
fn original(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.split_once('-') {
        Some((UPLOAD, _copy)) => UPLOAD,
        _ => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// `bytes=a-b` and `bytes=a-`.
fn parse(text: &str, size: usize) -> Option<std::ops::Range<usize>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let from: usize = from.parse().ok()?;
    let to = to.parse().map_or(size, |last: usize| last.saturating_add(1)).min(size);
    (from < to).then_some(from..to)
}

fn answer(
    status: StatusCode,
    lines: &[(axum::http::HeaderName, String)],
    body: Vec<u8>,
) -> Response {
    let mut builder = Response::builder().status(status);
    for (name, value) in lines {
        builder = builder.header(name, value);
    }
    builder.body(Body::from(body)).expect("every header is plain text")
}
