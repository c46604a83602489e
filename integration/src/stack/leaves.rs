//! Runs leaves as a worker does, over segments that are in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use core_workcoord::message::{Failure, FailureCode};
use sha2::{Digest as _, Sha256};
use tributary_leafwork::{Work, artifact};
use tributary_promql::EvalLimits;
use tributary_promql::leaf::PartTable;
use tributary_segment::CellBuffers;
use tributary_worker::{Assignment, Cancel, Execute, Finished};

use super::material::Material;
use super::spool::{Facts, Spool};

/// Runs leaves.
pub(super) struct Leaves {
    pub(super) material: Arc<Material>,
    pub(super) spool: Arc<Spool>,
    /// So many runs fail first.
    pub(super) failures: Arc<AtomicU32>,
}

impl Execute for Leaves {
    fn run(&self, work: &Assignment, cancel: &Cancel) -> Result<Finished, Failure> {
        let lower = |left: u32| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).is_ok() {
            return Err(failure(FailureCode::StoreUnavailable, true, "the store does not answer"));
        }
        let spec = &work.work.spec;
        let key = Sha256::digest(spec).into();
        if let Some(finished) = self.spool.find(key) {
            return Ok(finished);
        }
        let bad = |words: String| failure(FailureCode::BadSpec, false, &words);
        let work =
            Work::of(spec, &EvalLimits::default()).map_err(|error| bad(error.to_string()))?;
        let mut segments = Vec::with_capacity(work.segments.len());
        for segment in &work.segments {
            let path = &segment.series.0;
            let found = self.material.files.get(path);
            segments.push(found.ok_or_else(|| bad(format!("there is no segment {path}")))?);
        }
        let part = work
            .run(&segments, &mut CellBuffers::default(), || cancel.is_set())
            .map_err(|error| failure(FailureCode::Internal, true, &error.to_string()))?;
        let table = PartTable::of(&work.leaf, &part);
        let mut bytes = Vec::new();
        artifact::write(&table, spec, &mut bytes)
            .map_err(|error| failure(FailureCode::Internal, true, &error.to_string()))?;
        let facts = Facts {
            row_count: table.len() as u64,
            min_ts: table.ts.first().copied().unwrap_or_default(),
            max_ts: table.ts.last().copied().unwrap_or_default(),
        };
        Ok(self.spool.put(key, bytes, facts))
    }
}

fn failure(code: FailureCode, retryable: bool, message: &str) -> Failure {
    Failure { code, retryable, message: message.to_owned() }
}
