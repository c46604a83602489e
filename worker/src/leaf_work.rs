//! Leaves on slots: a spec is read, its segments are brought here, the leaf runs over them, and what
//! comes of it is written as an artifact. Equal work is done once.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::sync::Arc;

use core_workcoord::id::TenantId;
use core_workcoord::message::{Failure, FailureCode};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle as Runtime;
use tracing::Span;
use tributary_artifact_store::{
    DiskError, Facts, PinnedFile, ReuseKey, SegmentFetchError, SegmentFile, SpooledArtifact,
    WorkTurn,
};
use tributary_catalog::ObjectPath;
use tributary_leafwork::{RunError, SeriesInquiry, Work, artifact};
use tributary_process::metrics::Text;
use tributary_promql::EvalLimits;
use tributary_promql::leaf::{Leaf, LeafPart, PartTable};
use tributary_segment::{CellBuffers, Segment};

use crate::artifacts::ArtifactId;
use crate::disk::DiskArtifacts;
use crate::execute::{Assignment, Cancel, Execute, Finished};
use crate::stages::Stages;

thread_local! {
    /// Memory that the next leaf of this slot uses again.
    static BUFFERS: RefCell<CellBuffers> = RefCell::default();
}

/// Runs leaves over the segments of one store.
#[derive(Debug)]
pub struct LeafWork {
    disk: Arc<DiskArtifacts>,
    runtime: Runtime,
    limits: EvalLimits,
    stages: Stages,
}

/// The two files of a segment: series and samples.
type Files = (SegmentFile, SegmentFile);

impl LeafWork {
    /// Segments are fetched on this runtime; the slots wait for it.
    pub fn new(disk: Arc<DiskArtifacts>, runtime: Runtime, limits: EvalLimits) -> Self {
        Self { disk, runtime, limits, stages: Stages::default() }
    }

    /// Waits for something, unless the run is cancelled meanwhile.
    fn wait<T>(&self, cancel: &Cancel, future: impl Future<Output = T>) -> Result<T, Failure> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = cancel.told() => Err(cancelled()),
                value = future => Ok(value),
            }
        })
    }

    /// Runs a leaf over its segments.
    fn run_leaf(&self, work: &Work, files: &[Files], cancel: &Cancel) -> Result<LeafPart, Failure> {
        let segments = self.stages.download(|| {
            let cache = self.disk.disk().segments();
            let mut segments = Vec::with_capacity(files.len());
            for (series, samples) in files {
                let segment = self.wait(cancel, cache.segment(series, samples))?;
                segments.push(segment.map_err(|error| fetch_failure(&error))?);
            }
            Ok(segments)
        })?;
        let segments: Vec<_> = segments.iter().collect();
        self.stages.scan(|| {
            BUFFERS.with_borrow_mut(|buffers| {
                work.run(&segments, buffers, || cancel.is_set())
                    .map_err(|error| run_failure(&error, &segments))
            })
        })
    }

    /// Answers an inquiry. Only the files of series are brought here.
    fn inquire(
        &self,
        work: &Work,
        inquiry: &SeriesInquiry,
        files: &[Files],
        cancel: &Cancel,
    ) -> Result<LeafPart, Failure> {
        let indexes = self.stages.download(|| {
            let cache = self.disk.disk().segments();
            let mut indexes = Vec::with_capacity(files.len());
            for (series, _) in files {
                let index = self.wait(cancel, cache.index(series))?;
                indexes.push(index.map_err(|error| fetch_failure(&error))?);
            }
            Ok(indexes)
        })?;
        let indexes: Vec<_> = indexes.iter().map(|index| &**index).collect();
        self.stages.scan(|| {
            work.inquire(inquiry, &indexes, || cancel.is_set())
                .map_err(|error| run_failure(&error, &[]))
        })
    }

    /// Writes what came of it as an artifact.
    fn encode(
        &self,
        turn: WorkTurn,
        (leaf, part): (&Leaf, LeafPart),
        assignment: &Assignment,
        cancel: &Cancel,
    ) -> Result<Finished, Failure> {
        let table = PartTable::of_unless(leaf, &part, &|| cancel.is_set());
        let table = table.ok_or_else(cancelled)?;
        drop(part);
        let mut writer = turn.begin().map_err(|error| disk_failure(&error))?;
        let spec = &assignment.work.spec;
        if let Err(error) = artifact::write(&table, spec, Wanted { writer: &mut writer, cancel }) {
            if cancel.is_set() {
                return Err(cancelled());
            }
            let disk = writer.failure().map(|error| disk_failure(&error));
            return Err(disk.unwrap_or_else(|| internal(&error)));
        }
        if cancel.is_set() {
            return Err(cancelled());
        }
        let facts = Facts {
            row_count: table.len() as u64,
            min_ts: table.ts.first().copied().unwrap_or_default(),
            max_ts: table.ts.last().copied().unwrap_or_default(),
            parquet_schema_version: artifact::SCHEMA_VERSION,
        };
        let spooled = writer.commit(assignment.session, facts, self.disk.now());
        spooled.map(|spooled| finished(&spooled, false)).map_err(|error| disk_failure(&error))
    }
}

impl Execute for LeafWork {
    fn run(&self, assignment: &Assignment, cancel: &Cancel) -> Result<Finished, Failure> {
        let asked = &assignment.work;
        let work = Work::of(&asked.spec, &self.limits).map_err(|error| bad_spec(&error))?;
        let files = files_of(&work, &asked.tenant)?;
        Span::current().record("segments", files.len());
        let key = key_of(&asked.tenant, &asked.spec);
        let turn = self.wait(cancel, self.disk.disk().spool().turn(key))?;
        if let Some(spooled) = turn.reuse(assignment.session, self.disk.now()) {
            return Ok(finished(&spooled, true));
        }
        let part = match &work.inquiry {
            Some(inquiry) => self.inquire(&work, inquiry, &files, cancel)?,
            None => self.run_leaf(&work, &files, cancel)?,
        };
        let made = (&work.leaf, part);
        self.stages.encode(|| self.encode(turn, made, assignment, cancel))
    }

    fn measure(&self, text: &mut Text) {
        self.stages.measure(text);
    }
}

/// A writer for as long as its run is wanted, so that a large artifact is not made to its end for
/// nobody.
struct Wanted<'a, W> {
    writer: &'a mut W,
    cancel: &'a Cancel,
}

impl<W: io::Write> io::Write for Wanted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancel.is_set() {
            return Err(io::Error::other("cancelled"));
        }
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The files of the work's segments, which must be the tenant's own.
fn files_of(work: &Work, tenant: &TenantId) -> Result<Vec<Files>, Failure> {
    let any = ObjectPath::of_upload(tenant, "any").map_err(|error| bad_spec(&error))?;
    let own = any.as_str().strip_suffix("any").expect("it was put there");
    let file = |(path, size_bytes): &(String, u64)| {
        let path = ObjectPath::parse(path).map_err(|error| bad_spec(&error))?;
        if !path.as_str().starts_with(own) {
            return Err(bad_spec(&format!("segment file {path} is not of tenant {tenant}")));
        }
        Ok(SegmentFile { path, size_bytes: *size_bytes, checksum: None })
    };
    work.segments.iter().map(|s| Ok((file(&s.series)?, file(&s.samples)?))).collect()
}

/// What the work is: whose, and what is asked. Paths of segments are never used twice, so their
/// content follows from the spec.
fn key_of(tenant: &TenantId, spec: &[u8]) -> ReuseKey {
    let mut hash = Sha256::new();
    hash.update((tenant.as_str().len() as u64).to_le_bytes());
    hash.update(tenant.as_str());
    #[cfg(feature = "sabotage")]
    let spec = sabotaged(spec);
    hash.update(spec);
    ReuseKey(hash.finalize().into())
}

/// A deliberate bug: work that looks alike is taken for the same.
#[cfg(feature = "sabotage")]
fn sabotaged(spec: &[u8]) -> &[u8] {
    let is_stale = std::env::var("TRIBUTARY_SABOTAGE").is_ok_and(|bug| bug == "StaleArtifact");
    if is_stale { &spec[..spec.len().min(1)] } else { spec }
}

fn finished(spooled: &SpooledArtifact, reused: bool) -> Finished {
    Finished {
        artifact: ArtifactId::new(spooled.id.to_string()),
        size_bytes: spooled.size_bytes,
        checksum: spooled.checksum,
        row_count: spooled.facts.row_count,
        min_ts: spooled.facts.min_ts,
        max_ts: spooled.facts.max_ts,
        parquet_schema_version: spooled.facts.parquet_schema_version,
        reused,
    }
}

fn failure(code: FailureCode, retryable: bool, message: String) -> Failure {
    Failure { code, retryable, message }
}

fn bad_spec(error: &impl ToString) -> Failure {
    failure(FailureCode::BadSpec, false, error.to_string())
}

fn internal(error: &impl ToString) -> Failure {
    failure(FailureCode::Internal, true, error.to_string())
}

fn cancelled() -> Failure {
    failure(FailureCode::Internal, true, "cancelled".to_owned())
}

fn disk_failure(error: &DiskError) -> Failure {
    failure(error.code(), error.is_retryable(), error.to_string())
}

fn fetch_failure(error: &SegmentFetchError) -> Failure {
    failure(error.code(), error.is_retryable(), error.to_string())
}

/// A copy that turns out to be damaged is thrown away: where the store's own is whole, another
/// attempt succeeds.
fn run_failure(error: &RunError, segments: &[&Segment<PinnedFile>]) -> Failure {
    match error {
        RunError::Cancelled(_) => cancelled(),
        RunError::Eval(error) => failure(FailureCode::LimitExceeded, false, error.to_string()),
        RunError::Segment(error) => {
            let copies = segments.iter().filter(|segment| segment.source().distrust()).count();
            failure(FailureCode::SegmentCorrupt, copies > 0, error.to_string())
        }
        RunError::Pattern(error) => bad_spec(error),
    }
}
