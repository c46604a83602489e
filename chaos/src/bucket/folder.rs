//! As much of S3 as a worker reads, over the folder of a data directory.

use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use axum::body::Bytes;
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED, RANGE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};

use super::{Access, Answer};
use crate::error::ChaosError;

/// The folder.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn of(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Anybody may read it: nobody looks at keys.
    pub(super) fn access(address: SocketAddr) -> Access {
        let [bucket, key_id, secret] = ["segments", "nobody", "nothing"].map(str::to_owned);
        Access { address, bucket, region: "nowhere", key_id, secret }
    }

    pub(super) async fn answer(&self, path: PathBuf, headers: &HeaderMap) -> Answer {
        let file = self.0.join(path);
        let read = tokio::task::spawn_blocking(move || fs::read(file)).await;
        let Ok(Ok(bytes)) = read else {
            let (headers, body) = (HeaderMap::new(), Bytes::new());
            return Answer { status: StatusCode::NOT_FOUND, headers, body };
        };
        let size = bytes.len();
        let asked = headers.get(RANGE).and_then(|range| range.to_str().ok());
        let asked = asked.and_then(|text| parse(text, size));
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_static("\"as-it-is\""));
        headers.insert(LAST_MODIFIED, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
        let status = match &asked {
            Some(Range { start, end }) => {
                let told = format!("bytes {start}-{}/{size}", end - 1);
                headers.extend(HeaderValue::try_from(told).ok().map(|told| (CONTENT_RANGE, told)));
                StatusCode::PARTIAL_CONTENT
            }
            None => StatusCode::OK,
        };
        let body = Bytes::from(bytes).slice(asked.unwrap_or(0..size));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        Answer { status, headers, body }
    }

    pub(super) fn read(&self, name: &str) -> Result<Bytes, ChaosError> {
        let file = self.0.join(name);
        Ok(fs::read(&file).map_err(ChaosError::file(file))?.into())
    }

    /// Whoever reads meanwhile has the old bytes or the new ones.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ChaosError> {
        let file = self.0.join(name);
        let new = file.with_extension("new");
        let written = fs::write(&new, bytes).and_then(|()| fs::rename(&new, &file));
        written.map_err(ChaosError::file(file))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), ChaosError> {
        let file = self.0.join(name);
        fs::remove_file(&file).map_err(ChaosError::file(file))
    }
}

/// The files of all segments of a data directory, by their names in the store, sorted.
pub(super) fn segments(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    walk(folder, &mut files);
    files.sort();
    let names = files.iter().filter_map(|file| file.strip_prefix(folder).ok()?.to_str());
    names.map(str::to_owned).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push(path);
        }
    }
}

/// `bytes=a-b` and `bytes=a-`.
fn parse(text: &str, size: usize) -> Option<Range<usize>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let from: usize = from.parse().ok()?;
    let to = to.parse().map_or(size, |last: usize| last.saturating_add(1)).min(size);
    (from < to).then_some(from..to)
}
