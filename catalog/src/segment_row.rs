//! What the catalog knows of one segment: whose it is, which time, shard and metrics it covers,
//! where its two files are. Checked here, before it is written and after it is read; what is in
//! the files is `segment`'s business.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use sha2::{Digest, Sha256};

use crate::error::CatalogError;
use crate::metric_names::MetricNames;
use crate::object_path::{ObjectPath, SAMPLES_SUFFIX, SERIES_SUFFIX};

/// The longest segment name in bytes.
const ID_MAX_BYTES: usize = 64;

/// The most shards a tenant's series may be spread over.
const SHARDS_MAX: u32 = 65_536;

/// A segment's name: safe in file names, unique in a catalog.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(Arc<str>);

/// The text is no segment name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a segment name has 1 to {ID_MAX_BYTES} lower-case letters, digits, - or _")]
pub struct BadSegmentId;

impl SegmentId {
    /// Checks the text and makes it a name.
    pub fn new(text: &str) -> Result<Self, BadSegmentId> {
        let allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if text.is_empty() || text.len() > ID_MAX_BYTES || !text.bytes().all(allowed) {
            return Err(BadSegmentId);
        }
        Ok(Self(text.into()))
    }

    /// The name that follows from what the segment holds. The same data imported twice has the
    /// same name, and the catalog takes it once.
    pub fn of_content(tenant: &TenantId, series: Checksum, samples: Checksum) -> Self {
        let mut hash = Sha256::new();
        hash.update(series.0);
        hash.update(samples.0);
        hash.update(tenant.as_str());
        let hex = Checksum(hash.finalize().into()).to_string();
        Self(hex[..32].into())
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The time block a segment was cut for, in milliseconds of the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The first millisecond of the block.
    pub start_ms: i64,
    /// The first millisecond after it.
    pub end_ms: i64,
}

/// Which part of a tenant's series a segment holds: those with `hash(labels) % count == index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// Which part, counted from zero.
    pub index: u32,
    /// How many parts there are.
    pub count: u32,
}

impl Shard {
    /// All series.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Some hash belongs to both. Exact for any two counts, by the Chinese remainder theorem.
    pub fn overlaps(self, other: Self) -> bool {
        let common = greatest_common_divisor(self.count, other.count);
        common != 0 && self.index % common == other.index % common
    }
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// One of a segment's two files, as it lies in the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Where it is, relative to the store.
    pub path: ObjectPath,
    /// Its length.
    pub size_bytes: u64,
    /// SHA-256 of its bytes.
    pub checksum: Checksum,
}

/// A live segment, as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name.
    pub id: SegmentId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The block it was cut for.
    pub block: Block,
    /// Its earliest sample, in milliseconds of the Unix epoch.
    pub min_ts: i64,
    /// Its latest sample.
    pub max_ts: i64,
    /// Which series it can hold.
    pub shard: Shard,
    /// The series index.
    pub series_file: StoredFile,
    /// The samples.
    pub samples_file: StoredFile,
    /// Number of series.
    pub series_count: u64,
    /// Number of samples.
    pub sample_count: u64,
    /// When its files were written, in milliseconds of the Unix epoch.
    pub written_ms: i64,
    /// Its age: where two segments hold the same series and timestamp, the higher one wins. The
    /// catalog sets it; what a writer puts here is not looked at.
    pub sequence: u64,
}

impl Segment {
    /// Some sample may lie in this time, both ends included.
    pub fn touches(&self, time: &RangeInclusive<i64>) -> bool {
        self.min_ts <= *time.end() && self.max_ts >= *time.start()
    }

    /// Some sample of one may be a sample of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.tenant == other.tenant
            && self.shard.overlaps(other.shard)
            && self.touches(&(other.min_ts..=other.max_ts))
    }

    /// The key by which the newest segment wins: later ones overrule earlier ones.
    pub fn age_key(&self) -> (u64, &SegmentId) {
        (self.sequence, &self.id)
    }

    /// Holds the same samples, wherever it lies and whenever it was written.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.id == other.id
            && self.tenant == other.tenant
            && self.block == other.block
            && self.shard == other.shard
            && self.series_file.checksum == other.series_file.checksum
            && self.samples_file.checksum == other.samples_file.checksum
    }

    /// Nothing in the description contradicts the rest.
    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        let Block { start_ms, end_ms } = self.block;
        let bad =
            |reason: String| Err(CatalogError::BadSegment { segment: self.id.clone(), reason });
        if start_ms >= end_ms {
            return bad(format!("the block ends at {end_ms}, not after its start {start_ms}"));
        }
        if self.min_ts > self.max_ts || self.min_ts < start_ms || self.max_ts >= end_ms {
            return bad(format!(
                "samples from {} to {} do not fit the block from {start_ms} to {end_ms}",
                self.min_ts, self.max_ts
            ));
        }
        let Shard { index, count } = self.shard;
        if index >= count || count > SHARDS_MAX {
            return bad(format!("shard {index} of {count}; at most {SHARDS_MAX} are allowed"));
        }
        if self.series_count == 0 || self.sample_count < self.series_count {
            return bad(format!(
                "{} samples in {} series; a series has one at least",
                self.sample_count, self.series_count
            ));
        }
        // With the name in them, two segments can't have the same file: removing one of them never
        // takes the other's samples away.
        let wanted = [SERIES_SUFFIX, SAMPLES_SUFFIX].map(|suffix| format!("{}{suffix}", self.id));
        for (file, wanted) in [&self.series_file, &self.samples_file].into_iter().zip(wanted) {
            if file.path.file_name() != wanted {
                return bad(format!("its file {} should be named {wanted}", file.path));
            }
        }
        let numbers = [
            self.series_count,
            self.sample_count,
            self.series_file.size_bytes,
            self.samples_file.size_bytes,
        ];
        if numbers.iter().any(|n| i64::try_from(*n).is_err()) {
            return bad("a number is beyond what a database can hold".to_owned());
        }
        Ok(())
    }
}

/// A segment to be registered: its files are written, and nobody knows of it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSegment {
    /// What readers will see.
    pub segment: Segment,
    /// The names of all metrics in it.
    pub metrics: MetricNames,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment() -> Segment {
        let file = |name: &str| StoredFile {
            path: ObjectPath::parse(name).unwrap(),
            size_bytes: 1,
            checksum: Checksum([1; 32]),
        };
        Segment {
            id: SegmentId::new("s").unwrap(),
            tenant: TenantId::new("t").unwrap(),
            block: Block { start_ms: 0, end_ms: 100 },
            min_ts: 0,
            max_ts: 99,
            shard: Shard::WHOLE,
            series_file: file("u/s.series.parquet"),
            samples_file: file("u/s.samples.parquet"),
            series_count: 1,
            sample_count: 1,
            written_ms: 0,
            sequence: 0,
        }
    }

    #[test]
    fn names_are_safe_in_paths() {
        for good in ["a", "0-9_z", &"x".repeat(64)] {
            assert_eq!(SegmentId::new(good).unwrap().to_string(), good);
        }
        for bad in ["", ".", "..", "a/b", "A", "a.b", "é", &"x".repeat(65)] {
            assert_eq!(SegmentId::new(bad), Err(BadSegmentId), "{bad}");
        }
    }

    #[test]
    fn the_same_content_has_the_same_name_for_the_same_tenant_only() {
        let (a, b) = (TenantId::new("a").unwrap(), TenantId::new("b").unwrap());
        let (x, y) = (Checksum([1; 32]), Checksum([2; 32]));
        let name = SegmentId::of_content(&a, x, y);
        assert_eq!(name, SegmentId::of_content(&a, x, y));
        assert_ne!(name, SegmentId::of_content(&b, x, y));
        assert_ne!(name, SegmentId::of_content(&a, y, x));
        assert!(SegmentId::new(name.as_str()).is_ok());
    }

    #[test]
    fn a_description_that_contradicts_itself_is_refused() {
        assert!(segment().check().is_ok());
        let wrongs: [fn(&mut Segment); 9] = [
            |s| s.block.end_ms = 0,
            |s| s.min_ts = -1,
            |s| s.max_ts = 100,
            |s| (s.min_ts, s.max_ts) = (5, 4),
            |s| s.shard = Shard { index: 1, count: 1 },
            |s| s.shard = Shard { index: 0, count: 0 },
            |s| s.sample_count = 0,
            |s| s.samples_file.path = s.series_file.path.clone(),
            |s| s.samples_file.size_bytes = u64::MAX,
        ];
        for (number, wrong) in wrongs.iter().enumerate() {
            let mut segment = segment();
            wrong(&mut segment);
            assert!(
                matches!(segment.check(), Err(CatalogError::BadSegment { .. })),
                "wrong number {number}"
            );
        }
    }

    proptest! {
        #[test]
        fn shards_overlap_exactly_when_some_hash_is_in_both(
            m in 1_u32..30, n in 1_u32..30, i in 0_u32..30, j in 0_u32..30,
        ) {
            let (a, b) = (Shard { index: i % m, count: m }, Shard { index: j % n, count: n });
            let some_hash = (0..m * n).any(|h| h % m == a.index && h % n == b.index);
            prop_assert_eq!(a.overlaps(b), some_hash);
            prop_assert_eq!(b.overlaps(a), some_hash);
        }
    }
}
