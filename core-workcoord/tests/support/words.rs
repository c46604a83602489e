//! Names and builders: workers, queries, items, artifacts, statuses. Nothing here has a state.

use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::coordinator::{Submission, WorkItem};
use core_workcoord::id::{
    AffinityKey, ApiId, Endpoint, LeafId, QueryId, TenantId, WorkId, WorkerId,
};
use core_workcoord::message::{Failure, FailureCode, WorkerStatus};
use core_workcoord::moment::Moment;

/// A worker of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct W(pub u32);

pub const W1: W = W(1);
pub const W2: W = W(2);
pub const W3: W = W(3);
pub const W4: W = W(4);

pub const Q1: QueryId = QueryId(1);
pub const Q2: QueryId = QueryId(2);
pub const Q3: QueryId = QueryId(3);

impl W {
    /// Its stable name.
    pub fn id(self) -> WorkerId {
        WorkerId::new(&format!("w{}", self.0)).expect("a plain name")
    }

    /// Where discovery says it is.
    pub fn endpoint(self) -> Endpoint {
        Endpoint::new(&format!("w{}:9001", self.0)).expect("a plain name")
    }

    /// Where its artifacts are.
    pub fn base_url(self) -> String {
        format!("http://w{}:8080", self.0)
    }
}

/// Lets a story say `Q1.item(0)`.
pub trait HasItems {
    fn item(self, item: u32) -> WorkId;
}

impl HasItems for QueryId {
    fn item(self, item: u32) -> WorkId {
        WorkId { query: self, item }
    }
}

pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a plain name")
}

pub fn api(name: &str) -> ApiId {
    ApiId::new(name).expect("a plain name")
}

pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A query of `items` items with a key each, an hour's time and no window of its own.
pub fn plan(query: QueryId, items: u32) -> Submission {
    plan_with_keys(query, (0..items).map(|item| u64::from(item) * 7_919))
}

/// A query with an item for each key.
pub fn plan_with_keys(query: QueryId, keys: impl IntoIterator<Item = u64>) -> Submission {
    let item = |key| WorkItem {
        leaf: LeafId(3),
        affinity_key: AffinityKey(key),
        spec: Bytes::from_static(b"a leaf over some cells"),
    };
    Submission {
        query,
        tenant: tenant("acme"),
        deadline: Moment::ZERO + seconds(3_600),
        window: u32::MAX,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        items: keys.into_iter().map(item).collect(),
    }
}

/// The artifact that this worker makes of this work: equal work gives equal bytes.
pub fn artifact_of(worker: W, work: WorkId) -> Artifact {
    let mut checksum = [0; 32];
    checksum[..16].copy_from_slice(&work.query.0.to_le_bytes());
    checksum[16..20].copy_from_slice(&work.item.to_le_bytes());
    Artifact {
        url: format!("{}/artifacts/{work}", worker.base_url()),
        size_bytes: 1_000,
        checksum: Checksum(checksum),
        row_count: 10,
        min_ts: 0,
        max_ts: 9,
        parquet_schema_version: 1,
    }
}

/// A worker that is well and takes work.
pub fn accepting(slots: u32) -> WorkerStatus {
    WorkerStatus {
        alive: true,
        accepting_work: true,
        draining: false,
        queued: 0,
        running: 0,
        slots,
        spool_bytes: 0,
        cache_bytes: 0,
        free_bytes: 1 << 30,
    }
}

/// A worker that is leaving.
pub fn draining(slots: u32) -> WorkerStatus {
    WorkerStatus { accepting_work: false, draining: true, ..accepting(slots) }
}

/// A failure that another worker may not have.
pub fn passing_failure() -> Failure {
    let message = "the object store did not answer".into();
    Failure { code: FailureCode::StoreUnavailable, retryable: true, message }
}

/// A failure that no retry helps.
pub fn lasting_failure() -> Failure {
    let message = "segment 17 is corrupt".into();
    Failure { code: FailureCode::SegmentCorrupt, retryable: false, message }
}
