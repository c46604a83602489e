//! Artifacts in memory, with the promises of the real store: served to those who hold them, lost
//! with a word, gone when nobody holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use core_workcoord::artifact::Checksum;
use core_workcoord::id::SessionId;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tributary_process::metrics::Text;

use crate::artifacts::{ArtifactId, Artifacts, DiskReport, Holder};
use crate::execute::Finished;

/// What it says is free when there is room.
const FREE_BYTES: u64 = 1 << 30;

/// Words of lost artifacts that wait to be heard.
const LOSSES: usize = 1_024;

/// Artifacts in memory.
#[derive(Debug)]
pub struct Shelf {
    things: Mutex<Things>,
    put: AtomicU64,
    full: AtomicBool,
    tell_lost: mpsc::Sender<ArtifactId>,
}

#[derive(Debug, Default)]
struct Things {
    tokens: BTreeMap<SessionId, String>,
    artifacts: BTreeMap<ArtifactId, Thing>,
}

#[derive(Debug)]
struct Thing {
    bytes: Bytes,
    checksum: Checksum,
    holders: BTreeSet<Holder>,
}

impl Shelf {
    /// An empty one, and where it tells what it lost.
    pub fn new() -> (Arc<Self>, mpsc::Receiver<ArtifactId>) {
        let (tell_lost, lost) = mpsc::channel(LOSSES);
        let (put, full) = (AtomicU64::new(0), AtomicBool::new(false));
        (Arc::new(Self { things: Mutex::default(), put, full, tell_lost }), lost)
    }

    /// Puts an artifact on it.
    pub(super) fn put(&self, bytes: Vec<u8>) -> Finished {
        let checksum = Checksum(Sha256::digest(&bytes).into());
        let number = self.put.fetch_add(1, Ordering::Relaxed);
        let artifact = ArtifactId::new(format!("rehearsed-{number}"));
        let finished = Finished {
            artifact: artifact.clone(),
            size_bytes: bytes.len() as u64,
            checksum,
            row_count: 1,
            min_ts: 0,
            max_ts: 0,
            parquet_schema_version: 1,
            reused: false,
        };
        let thing = Thing { bytes: bytes.into(), checksum, holders: BTreeSet::new() };
        self.lock().artifacts.insert(artifact, thing);
        finished
    }

    /// Says from now on whether it is full.
    pub fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    /// Loses everything that lies on it, with a word for each.
    pub async fn lose_everything(&self) {
        let lost = std::mem::take(&mut self.lock().artifacts);
        for artifact in lost.into_keys() {
            // Whoever listened may have gone.
            drop(self.tell_lost.send(artifact).await);
        }
    }

    /// How many artifacts lie on it.
    pub fn count(&self) -> usize {
        self.lock().artifacts.len()
    }

    /// The routes that serve them.
    pub fn routes(self: &Arc<Self>) -> Router {
        Router::new().route("/artifacts/{id}", get(serve)).with_state(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, Things> {
        // Nothing in the lock can panic half-way.
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unknown artifacts and wrong tokens look the same.
async fn serve(
    State(shelf): State<Arc<Shelf>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer "));
    let things = shelf.lock();
    let found = things.artifacts.get(&ArtifactId::new(id)).filter(|thing| {
        let may = |holder: &Holder| things.tokens.get(&holder.session).map(String::as_str) == token;
        token.is_some() && thing.holders.iter().any(may)
    });
    match found {
        Some(thing) => {
            let etag = format!("\"{}\"", thing.checksum);
            ([(header::ETAG, etag)], thing.bytes.clone()).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such artifact\n").into_response(),
    }
}

impl Artifacts for Shelf {
    fn admit(&self, session: SessionId) -> String {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the system has random bytes");
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.lock().tokens.insert(session, token.clone());
        token
    }

    fn dismiss(&self, session: SessionId) {
        self.lock().tokens.remove(&session);
    }

    fn hold(&self, artifact: &ArtifactId, holder: Holder) -> bool {
        let mut things = self.lock();
        let found = things.artifacts.get_mut(artifact);
        found.is_some_and(|thing| thing.holders.insert(holder))
    }

    fn acknowledge(&self, _: &ArtifactId, _: Holder) {
        // Memory is not evicted, so there is nothing to prefer.
    }

    fn release(&self, artifact: &ArtifactId, holder: Holder) {
        let mut things = self.lock();
        let Some(thing) = things.artifacts.get_mut(artifact) else { return };
        thing.holders.remove(&holder);
        if thing.holders.is_empty() {
            things.artifacts.remove(artifact);
        }
    }

    fn disk(&self) -> DiskReport {
        let things = self.lock();
        let spool_bytes = things.artifacts.values().map(|thing| thing.bytes.len() as u64).sum();
        let room = !self.full.load(Ordering::Relaxed);
        let free_bytes = if room { FREE_BYTES } else { 0 };
        DiskReport { room, spool_bytes, cache_bytes: 0, free_bytes }
    }

    fn measure(&self, metrics: &mut Text) {
        let put = self.put.load(Ordering::Relaxed);
        metrics.counter("rehearsed_total", "Artifacts made up.", put);
    }
}
