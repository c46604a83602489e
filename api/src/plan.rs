//! From a query to the work that answers it: leaves → segments → cells → work items. Depends on the
//! query and the segments alone, never on workers, so that the answer can't depend on them either.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use core_workcoord::artifact::Artifact;
use core_workcoord::coordinator::WorkItem;
use core_workcoord::id::{AffinityKey, LeafId, TenantId};
use tributary_catalog::{MetricChoice, Segment, Shard, TenantSegments, Wanted};
use tributary_leafwork::artifact::{self, ArtifactError};
use tributary_leafwork::{SeriesInquiry, Work, inquiry_leaf, spec_of};
use tributary_promql::duration::PromDuration;
use tributary_promql::eval::EvalError;
use tributary_promql::leaf::{BadPart, Leaf, LeafOutput, LeafPart, TimeSpan};
use tributary_promql::matcher::{CompiledMatcher, Condition, METRIC_NAME, Matcher};
use tributary_promql::window::RangeFunction;
use tributary_promql::{EvalLimits, Plan};
use tributary_proto::limits::SPEC_MAX_BYTES;
use tributary_proto::spec::SegmentSpec;
use xxhash_rust::xxh3::Xxh3;

use crate::cells::{Cell, CellSize, cells_of};
use crate::error::QueryError;
use crate::fetch::Got;

/// A query with all the work it comes to.
#[derive(Debug)]
pub struct PlannedQuery {
    /// What is done with the results.
    pub plan: Arc<Plan>,
    /// The work, in time order.
    pub items: Vec<Item>,
    /// For every leaf, the spans and places of the parts that will come.
    pub expected: Vec<Vec<(TimeSpan, u32)>>,
    /// Segments that will be read, each counted once for every leaf.
    pub segments: u64,
}

/// One piece of work, and what is needed to read what comes of it.
#[derive(Debug)]
pub struct Item {
    /// The number of its leaf.
    pub leaf: usize,
    /// Its leaf, at the steps alone that touch the span.
    work: Work,
    /// How many steps of the whole leaf come before these.
    first_step: usize,
    affinity_key: AffinityKey,
    spec: Bytes,
}

/// Why an artifact can't be used, though its bytes are those that were announced.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no artifact, or of another work item. The work can be done again elsewhere.
    #[error("{0}")]
    Malformed(String),
    /// It holds more than the query may take.
    #[error(transparent)]
    TooMuch(#[from] EvalError),
}

/// Plans the work of a query over the segments of a tenant.
pub fn plan_work(
    plan: Arc<Plan>,
    tenant: &TenantId,
    segments: &TenantSegments,
    size: CellSize,
    limits: &EvalLimits,
) -> Result<PlannedQuery, QueryError> {
    let mut items = Vec::new();
    let mut expected = Vec::with_capacity(plan.leaves.len());
    let mut count = 0;
    for (number, planned) in plan.leaves.iter().enumerate() {
        let mut parts = Vec::new();
        let leaf = &planned.leaf;
        let (after, up_to) = leaf.needs();
        let found = segments_of(&leaf.matchers, after.saturating_add(1)..=up_to, segments)?;
        for cell in cells_of(&found, size) {
            let Some((first_step, leaf)) = leaf.over(cell.span) else { continue };
            count += cell.segments.len() as u64;
            parts.push((cell.span, cell.place));
            items.push(Item::new(number, first_step, leaf, tenant, &cell, limits)?);
        }
        expected.push(parts);
    }
    // Stable: within an instant, leaves come in the order of the plan.
    items.sort_by_key(|item| item.work.span.from);
    Ok(PlannedQuery { plan, items, expected, segments: count })
}

/// The segments that may hold series of a selector with samples in some time.
pub fn segments_of(
    matchers: &[Matcher],
    time: RangeInclusive<i64>,
    segments: &TenantSegments,
) -> Result<Vec<Arc<Segment>>, QueryError> {
    let of_name: Vec<&Matcher> = matchers.iter().filter(|it| it.name == METRIC_NAME).collect();
    let named = of_name.iter().find_map(|matcher| match &matcher.condition {
        Condition::Equal(name) if !name.is_empty() => Some(name.as_str()),
        _ => None,
    });
    let compiled = of_name.iter().map(|matcher| matcher.compile());
    let compiled = compiled
        .collect::<Result<Vec<CompiledMatcher>, _>>()
        .map_err(|error| EvalError::invalid(error.to_string()))?;
    let passes = |name: &str| compiled.iter().all(|matcher| matcher.matches(name));
    let metrics = match named {
        Some(name) if compiled.len() == 1 => MetricChoice::Named(name),
        _ if compiled.is_empty() => MetricChoice::All,
        _ => MetricChoice::Passing(&passes),
    };
    Ok(segments.find(&Wanted { time, metrics, shard: Shard::WHOLE }))
}

impl Item {
    /// Work on one cell, of a leaf that is clipped to it.
    pub fn new(
        number: usize,
        first_step: usize,
        leaf: Leaf,
        tenant: &TenantId,
        cell: &Cell,
        limits: &EvalLimits,
    ) -> Result<Self, QueryError> {
        let work = Work {
            leaf,
            span: cell.span,
            place: cell.place,
            segments: segment_specs(cell),
            limits: *limits,
            inquiry: None,
        };
        Self::of_work(number, first_step, work, affinity_key(tenant, cell))
    }

    /// An inquiry about the series of one cell.
    pub fn of_inquiry(
        number: usize,
        matchers: Vec<Matcher>,
        inquiry: SeriesInquiry,
        tenant: &TenantId,
        cell: &Cell,
        limits: &EvalLimits,
    ) -> Result<Self, QueryError> {
        let work = Work {
            leaf: inquiry_leaf(matchers),
            span: TimeSpan::ALL,
            place: 0,
            segments: segment_specs(cell),
            limits: *limits,
            inquiry: Some(inquiry),
        };
        Self::of_work(number, 0, work, affinity_key(tenant, cell))
    }

    fn of_work(
        number: usize,
        first_step: usize,
        work: Work,
        affinity_key: AffinityKey,
    ) -> Result<Self, QueryError> {
        let spec = spec_of(&work).encode();
        if spec.len() > SPEC_MAX_BYTES {
            let (what, limit) = ("bytes in the spec of a work item", SPEC_MAX_BYTES as u64);
            return Err(EvalError::Limit { what, limit, setting: "the control protocol's" }.into());
        }
        Ok(Self { leaf: number, work, first_step, affinity_key, spec })
    }

    /// What the coordinator is told of it.
    pub fn work_item(&self) -> WorkItem {
        WorkItem {
            leaf: LeafId(u32::try_from(self.leaf).unwrap_or(u32::MAX)),
            affinity_key: self.affinity_key,
            spec: self.spec.clone(),
        }
    }

    /// The time it is about.
    pub fn span(&self) -> TimeSpan {
        self.work.span
    }

    /// Whether it asks which series there are, rather than for values.
    pub fn is_inquiry(&self) -> bool {
        self.work.inquiry.is_some()
    }

    /// How many segments it reads.
    pub fn segments(&self) -> usize {
        self.work.segments.len()
    }

    /// Which series it is about, as PromQL writes it, with the window where that is one.
    pub fn selector(&self) -> String {
        let Leaf { matchers, windows, output, .. } = &self.work.leaf;
        let (mut name, mut others) = ("", Vec::new());
        for matcher in matchers {
            match &matcher.condition {
                Condition::Equal(value) if matcher.name == METRIC_NAME && name.is_empty() => {
                    name = value;
                }
                _ => others.push(matcher.to_string()),
            }
        }
        let mut text = name.to_owned();
        if name.is_empty() || !others.is_empty() {
            text.push_str(&format!("{{{}}}", others.join(",")));
        }
        let is_instant =
            matches!(output, LeafOutput::Value(RangeFunction::Last | RangeFunction::TsOfNewest));
        if !is_instant && !self.is_inquiry() {
            text.push_str(&format!("[{}]", PromDuration::from_millis(windows.range)));
        }
        text
    }

    /// The part that an artifact holds, which must be one of this item.
    pub fn read(&self, artifact: &Got, announced: &Artifact) -> Result<LeafPart, Unreadable> {
        let limit = self.work.limits.max_values;
        let table = match artifact {
            Got::InMemory(artifact) => artifact::read(artifact.bytes().clone(), &self.spec, limit),
            Got::InFile(artifact) => match artifact.file().try_clone() {
                Ok(file) => artifact::read(file, &self.spec, limit),
                Err(error) => return Err(Unreadable::Malformed(error.to_string())),
            },
        };
        let table = match table {
            Ok(table) => table,
            Err(ArtifactError::TooManyRows { limit, .. }) => {
                let (what, setting) = ("rows in one result of a worker", "max_values");
                return Err(EvalError::Limit { what, limit, setting }.into());
            }
            Err(error) => return Err(Unreadable::Malformed(error.to_string())),
        };
        let rows = table.len() as u64;
        if rows != announced.row_count {
            let announced = announced.row_count;
            let message = format!("the artifact has {rows} rows, {announced} were announced");
            return Err(Unreadable::Malformed(message));
        }
        let malformed = |error: BadPart| Unreadable::Malformed(error.to_string());
        let Work { leaf, span, place, .. } = &self.work;
        let part = table.into_part(leaf, *span, *place).map_err(malformed)?;
        Ok(part.moved(self.first_step))
    }
}

fn segment_specs(cell: &Cell) -> Vec<SegmentSpec> {
    let specs = cell.segments.iter().map(|segment| SegmentSpec {
        series: (segment.series_file.path.to_string(), segment.series_file.size_bytes),
        samples: (segment.samples_file.path.to_string(), segment.samples_file.size_bytes),
    });
    specs.collect()
}

/// Equal for work on the same block and shard, whatever is asked and whatever comes to be there, so
/// that it goes to the worker that has the files.
fn affinity_key(tenant: &TenantId, cell: &Cell) -> AffinityKey {
    let mut hash = Xxh3::new();
    hash.update(tenant.as_str().as_bytes());
    let first = cell.segments.iter().map(|segment| (segment.block, segment.shard)).min();
    if let Some((block, shard)) = first {
        hash.update(&block.start_ms.to_le_bytes());
        hash.update(&shard.index.to_le_bytes());
        hash.update(&shard.count.to_le_bytes());
    }
    AffinityKey(hash.digest())
}
