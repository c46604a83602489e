//! Artifacts in memory, with the promises of the real store, and ways to break them: evicted with a
//! word, deleted without one, served with a bit that is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use core_workcoord::id::SessionId;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tributary_leafwork::artifact::SCHEMA_VERSION;
use tributary_process::metrics::Text;
use tributary_worker::artifacts::DiskReport;
use tributary_worker::{ArtifactId, Artifacts, Finished, Holder};

use super::hosts::Tampering;

/// Words of lost artifacts that wait to be heard.
const LOSSES: usize = 4_096;

/// What it says is free when there is room.
const FREE_BYTES: u64 = 1 << 30;

/// What a spec says work is: equal work has an equal key.
pub(super) type Key = [u8; 32];

/// What is told of an artifact beside its bytes.
pub(super) struct Facts {
    pub(super) row_count: u64,
    pub(super) min_ts: i64,
    pub(super) max_ts: i64,
}

/// One life of a worker's artifacts.
pub(super) struct Spool {
    things: Mutex<Things>,
    tell_lost: mpsc::Sender<ArtifactId>,
    /// Keeps what nobody holds: a deliberate fault.
    hoards: bool,
    /// Takes what was made last for what is asked: another.
    mixes: bool,
}

#[derive(Default)]
struct Things {
    tokens: BTreeMap<SessionId, String>,
    tokens_given: u64,
    artifacts: BTreeMap<ArtifactId, Thing>,
    by_key: BTreeMap<Key, ArtifactId>,
    put: u64,
    is_full: bool,
    /// So many answers have a bit that is wrong.
    flips: u32,
}

struct Thing {
    key: Key,
    bytes: Bytes,
    finished: Finished,
    holders: BTreeSet<Holder>,
}

impl Spool {
    pub(super) fn new(tampering: &Tampering) -> (Arc<Self>, mpsc::Receiver<ArtifactId>) {
        let (tell_lost, lost) = mpsc::channel(LOSSES);
        let (hoards, mixes) = (tampering.hoards_artifacts, tampering.mixes_artifacts);
        (Arc::new(Self { things: Mutex::default(), tell_lost, hoards, mixes }), lost)
    }

    /// What was made of equal work, if it is still here.
    pub(super) fn find(&self, key: Key) -> Option<Finished> {
        let things = self.lock();
        let last = || things.artifacts.keys().next_back();
        let named = things.by_key.get(&key).or_else(|| self.mixes.then(last)?)?;
        let thing = things.artifacts.get(named)?;
        Some(Finished { reused: true, ..thing.finished.clone() })
    }

    pub(super) fn put(&self, key: Key, bytes: Vec<u8>, facts: Facts) -> Finished {
        let mut things = self.lock();
        things.put += 1;
        let artifact = ArtifactId::new(format!("{:08x}", things.put));
        let finished = Finished {
            artifact: artifact.clone(),
            size_bytes: bytes.len() as u64,
            checksum: Checksum(Sha256::digest(&bytes).into()),
            row_count: facts.row_count,
            min_ts: facts.min_ts,
            max_ts: facts.max_ts,
            parquet_schema_version: SCHEMA_VERSION,
            reused: false,
        };
        let holders = BTreeSet::new();
        let thing = Thing { key, bytes: bytes.into(), finished: finished.clone(), holders };
        things.by_key.insert(key, artifact.clone());
        things.artifacts.insert(artifact, thing);
        finished
    }

    /// Loses everything, with a word for each. Gives how many there were.
    pub(super) fn evict(&self) -> usize {
        let mut things = self.lock();
        things.by_key.clear();
        let lost = std::mem::take(&mut things.artifacts);
        drop(things);
        for artifact in lost.keys() {
            // There is room for more losses than a story has artifacts.
            drop(self.tell_lost.try_send(artifact.clone()));
        }
        lost.len()
    }

    /// Loses everything and says nothing.
    pub(super) fn delete(&self) -> usize {
        let mut things = self.lock();
        things.by_key.clear();
        std::mem::take(&mut things.artifacts).len()
    }

    pub(super) fn flip(&self, times: u32) {
        self.lock().flips += times;
    }

    pub(super) fn set_full(&self, is_full: bool) {
        self.lock().is_full = is_full;
    }

    /// Artifacts and sessions that are left.
    pub(super) fn left(&self) -> (usize, usize) {
        let things = self.lock();
        (things.artifacts.len(), things.tokens.len())
    }

    pub(super) fn routes(self: &Arc<Self>) -> Router {
        Router::new().route("/artifacts/{id}", get(serve)).with_state(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, Things> {
        // Nothing in the lock can panic half-way.
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unknown artifacts and wrong tokens look the same.
async fn serve(
    State(spool): State<Arc<Spool>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer "));
    let mut things = spool.lock();
    let flips = things.flips;
    let found = things.artifacts.get(&ArtifactId::new(id)).filter(|thing| {
        let may = |holder: &Holder| things.tokens.get(&holder.session).map(String::as_str) == token;
        token.is_some() && thing.holders.iter().any(may)
    });
    let Some(thing) = found else {
        return (StatusCode::NOT_FOUND, "there is no such artifact\n").into_response();
    };
    let etag = format!("\"{}\"", thing.finished.checksum);
    let mut bytes = thing.bytes.clone();
    if flips > 0 {
        things.flips -= 1;
        let mut flipped = bytes.to_vec();
        // In the pages rather than in the footer: what is wrong there can be read.
        let at = flipped.len() / 5;
        if let Some(byte) = flipped.get_mut(at) {
            *byte ^= 0x10;
        }
        bytes = flipped.into();
    }
    ([(header::ETAG, etag)], bytes).into_response()
}

impl Artifacts for Spool {
    fn admit(&self, session: SessionId) -> String {
        let mut things = self.lock();
        things.tokens_given += 1;
        let token = format!("token-{}-{session}", things.tokens_given);
        things.tokens.insert(session, token.clone());
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
        // Memory is not evicted for room, so there is nothing to prefer.
    }

    fn release(&self, artifact: &ArtifactId, holder: Holder) {
        let mut things = self.lock();
        let Some(thing) = things.artifacts.get_mut(artifact) else { return };
        thing.holders.remove(&holder);
        if thing.holders.is_empty() && !self.hoards {
            let key = thing.key;
            things.artifacts.remove(artifact);
            things.by_key.remove(&key);
        }
    }

    fn disk(&self) -> DiskReport {
        let things = self.lock();
        let spool_bytes = things.artifacts.values().map(|thing| thing.bytes.len() as u64).sum();
        let room = !things.is_full;
        let free_bytes = if room { FREE_BYTES } else { 0 };
        DiskReport { room, spool_bytes, cache_bytes: 0, free_bytes }
    }

    fn measure(&self, _: &mut Text) {}
}
