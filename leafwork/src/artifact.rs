//! The artifact of a work item: a part of a leaf as a plain Parquet file.
//!
//! One row for every value, state or sample, sorted by time and series. Columns: `ts` in
//! milliseconds, `series` (a number within the file), `kind` (0 a value, 1 the state of a group, 2 the
//! state of a window that crosses an edge, 3 a sample of such a window), `drop_name`, `value`; `low`
//! and `count` of sums in the making, `state` of states that are bytes, and `labels` in the first row
//! of every series: names and values, each ended by the byte 0xff. The file's metadata has the version
//! of the schema, and which work it is of: whoever mixes up two artifacts is noticed.

mod read;
mod write;

use sha2::{Digest as _, Sha256};

pub use read::{ArtifactError, read};
pub use write::write;

/// The version of artifacts this build writes and reads.
pub const SCHEMA_VERSION: u32 = 2;

/// Keys of the file's metadata.
mod key {
    pub(super) const VERSION: &str = "tributary.artifact.version";
    pub(super) const METRICS: &str = "tributary.artifact.metrics";
    pub(super) const WORK: &str = "tributary.artifact.work";
}

/// Which work an artifact is of: the SHA-256 of the spec, in hex.
fn work_text(spec: &[u8]) -> String {
    Sha256::digest(spec).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The columns, by name and place.
mod column {
    pub(super) const TS: usize = 0;
    pub(super) const SERIES: usize = 1;
    pub(super) const KIND: usize = 2;
    pub(super) const DROP_NAME: usize = 3;
    pub(super) const VALUE: usize = 4;
    pub(super) const LOW: usize = 5;
    pub(super) const COUNT: usize = 6;
    pub(super) const STATE: usize = 7;
    pub(super) const LABELS: usize = 8;
}

/// The schema of the file.
const SCHEMA: &str = "message artifact {
  REQUIRED INT64 ts;
  REQUIRED INT32 series (INTEGER(32, false));
  REQUIRED INT32 kind (INTEGER(8, false));
  REQUIRED BOOLEAN drop_name;
  REQUIRED DOUBLE value;
  OPTIONAL DOUBLE low;
  OPTIONAL INT64 count (INTEGER(64, false));
  OPTIONAL BYTE_ARRAY state;
  OPTIONAL BYTE_ARRAY labels;
}";

#[cfg(test)]
mod tests;
