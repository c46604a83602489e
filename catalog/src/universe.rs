//! All live segments, in memory, as of one committed state of the catalog. Immutable and cheap to
//! share: a query takes one and is answered from it, whatever happens to the database meanwhile.
//! Keeping it current is `refresh`'s business.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use core_workcoord::id::TenantId;

use crate::error::CatalogError;
use crate::metric_index::MetricIndex;
use crate::segment_row::{NewSegment, Segment, SegmentId, Shard};
use crate::store::read::{self, Changes, Row};

/// The live segments of all tenants.
#[derive(Clone, Default)]
pub struct Universe {
    change_seq: u64,
    tenants: BTreeMap<TenantId, Arc<TenantSegments>>,
}

/// The live segments of one tenant, to be found by metric, time and shard.
#[derive(Default)]
pub struct TenantSegments {
    /// Sorted by first timestamp, then by name.
    segments: Vec<Placed>,
    /// The longest time any of them covers: how far before a span one may begin and reach into it.
    longest_ms: u64,
    index: Arc<MetricIndex>,
}

#[derive(Clone)]
struct Placed {
    segment: Arc<Segment>,
    /// The number of its metric list in the index.
    set: u32,
}

/// Which segments are wanted.
#[derive(Clone)]
pub struct Wanted<'a> {
    /// With samples in this time: milliseconds of the Unix epoch, both ends included.
    pub time: RangeInclusive<i64>,
    /// With any of these metrics.
    pub metrics: MetricChoice<'a>,
    /// With series of this shard.
    pub shard: Shard,
}

/// A choice of metrics.
#[derive(Clone, Copy)]
pub enum MetricChoice<'a> {
    /// All of them.
    All,
    /// The one of this name.
    Named(&'a str),
    /// Those whose name passes.
    Passing(&'a dyn Fn(&str) -> bool),
}

impl Universe {
    /// The number of the last change this universe knows of.
    pub fn change_seq(&self) -> u64 {
        self.change_seq
    }

    /// The segments of a tenant. A tenant without segments has an empty list of them.
    pub fn tenant(&self, tenant: &TenantId) -> Arc<TenantSegments> {
        self.tenants.get(tenant).cloned().unwrap_or_default()
    }

    /// All tenants that have segments, in order.
    pub fn tenants(&self) -> impl ExactSizeIterator<Item = &TenantId> {
        self.tenants.keys()
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        self.tenants.values().map(|tenant| tenant.segments.len()).sum()
    }

    /// The universe that follows from this one by the changes. Only tenants that changed are built
    /// anew; the others are shared.
    pub(crate) fn after(&self, changes: Changes) -> Result<Self, CatalogError> {
        let mut next = if changes.whole { Self::default() } else { self.clone() };
        next.change_seq = u64::try_from(changes.change_seq).unwrap_or_default();
        let mut by_tenant: BTreeMap<TenantId, Vec<Row>> = BTreeMap::new();
        for row in changes.rows {
            by_tenant.entry(row.segment.tenant.clone()).or_default().push(row);
        }
        for (tenant, rows) in by_tenant {
            let segments = next.tenant(&tenant).after(rows, &changes.sets)?;
            if segments.segments.is_empty() {
                next.tenants.remove(&tenant);
            } else {
                next.tenants.insert(tenant, Arc::new(segments));
            }
        }
        Ok(next)
    }
}

impl TenantSegments {
    /// Segments that are known without a catalog.
    pub fn of(segments: impl IntoIterator<Item = NewSegment>) -> Self {
        let mut index = MetricIndex::default();
        let mut placed: Vec<Placed> = Vec::new();
        for NewSegment { segment, metrics } in segments {
            let digest = metrics.digest();
            let known = index.number_of(&digest);
            let set = known.unwrap_or_else(|| index.add(&digest, &metrics));
            placed.push(Placed { segment: Arc::new(segment), set });
        }
        placed.sort_by_cached_key(|it| (it.segment.min_ts, it.segment.id.clone()));
        let longest_ms = longest_of(&placed);
        Self { segments: placed, longest_ms, index: Arc::new(index) }
    }

    /// How many segments there are.
    pub fn count(&self) -> usize {
        self.segments.len()
    }

    /// All segments, by first timestamp.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Segment>> {
        self.segments.iter().map(|placed| &placed.segment)
    }

    /// The segments that can hold what is wanted, by first timestamp. Exact in metric, time bounds
    /// and shard: what is left out holds nothing of it.
    pub fn find(&self, wanted: &Wanted<'_>) -> Vec<Arc<Segment>> {
        let sets = match wanted.metrics {
            MetricChoice::All => None,
            MetricChoice::Named(name) => Some(self.index.sets_with(name)),
            MetricChoice::Passing(test) => Some(self.index.sets_passing(test)),
        };
        self.in_time(&wanted.time)
            .filter(|placed| placed.segment.shard.overlaps(wanted.shard))
            .filter(|placed| sets.as_ref().is_none_or(|sets| sets.contains(placed.set)))
            .map(|placed| placed.segment.clone())
            .collect()
    }

    /// The names of the metrics that segments with samples in this time hold, in order.
    pub fn metrics(&self, time: &RangeInclusive<i64>) -> Vec<Arc<str>> {
        self.index.names_in(self.in_time(time).map(|placed| placed.set))
    }

    fn in_time<'a>(
        &'a self,
        time: &'a RangeInclusive<i64>,
    ) -> impl Iterator<Item = &'a Placed> + 'a {
        let earliest = time.start().saturating_sub_unsigned(self.longest_ms);
        let from = self.segments.partition_point(|placed| placed.segment.min_ts < earliest);
        let until = self.segments.partition_point(|placed| placed.segment.min_ts <= *time.end());
        let candidates = self.segments.get(from..until).unwrap_or_default();
        candidates.iter().filter(|placed| placed.segment.touches(time))
    }

    fn after(
        &self,
        rows: Vec<Row>,
        sets: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, CatalogError> {
        let touched: BTreeSet<SegmentId> = rows.iter().map(|row| row.segment.id.clone()).collect();
        let mut index = self.index.clone();
        let mut fresh = Vec::new();
        for row in rows.into_iter().filter(|row| row.removed_ms.is_none()) {
            let set = match index.number_of(&row.metric_set) {
                Some(known) => known,
                None => {
                    let stored = sets.get(&row.metric_set).map(Vec::as_slice).unwrap_or_default();
                    let names = read::unpack(stored, &row.metric_set)?;
                    Arc::make_mut(&mut index).add(&row.metric_set, &names)
                }
            };
            fresh.push(Placed { segment: Arc::new(row.segment), set });
        }
        let key = |placed: &Placed| (placed.segment.min_ts, placed.segment.id.clone());
        fresh.sort_by_cached_key(key);
        let kept = self.segments.iter().filter(|placed| !touched.contains(&placed.segment.id));
        let mut segments = merge(kept.cloned(), fresh, |a, b| {
            (a.segment.min_ts, &a.segment.id) <= (b.segment.min_ts, &b.segment.id)
        });
        if let Some((smaller, renumbered)) = index.without_unused(segments.iter().map(|p| p.set)) {
            index = Arc::new(smaller);
            for placed in &mut segments {
                placed.set = renumbered[&placed.set];
            }
        }
        let longest_ms = longest_of(&segments);
        Ok(Self { segments, longest_ms, index })
    }
}

fn longest_of(segments: &[Placed]) -> u64 {
    let longest = |placed: &Placed| placed.segment.max_ts.abs_diff(placed.segment.min_ts);
    segments.iter().map(longest).max().unwrap_or_default()
}

/// Two sorted lists become one.
fn merge<T>(
    left: impl Iterator<Item = T>,
    right: Vec<T>,
    in_order: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.size_hint().1.unwrap_or_default() + right.len());
    let mut right = right.into_iter().peekable();
    for item in left {
        while let Some(earlier) = right.next_if(|other| !in_order(&item, other)) {
            merged.push(earlier);
        }
        merged.push(item);
    }
    merged.extend(right);
    merged
}

#[cfg(test)]
mod tests {
    use core_workcoord::artifact::Checksum;
    use proptest::prelude::*;

    use super::*;
    use crate::metric_names::MetricNames;
    use crate::object_path::ObjectPath;
    use crate::segment_row::{Block, StoredFile};

    const METRICS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    /// A segment's place in time and among the shards, the metrics it has, and whether a later
    /// change removes it.
    type Sketch = (i64, i64, u32, u8, bool);

    fn row(number: usize, (start, length, shard, metrics, _): Sketch) -> (Row, MetricNames) {
        let tenant = TenantId::new("t").unwrap();
        let id = SegmentId::new(&format!("s{number}")).unwrap();
        let (series, samples) = ObjectPath::of_segment(&tenant, "u", &id).unwrap();
        let file = |path| StoredFile { path, size_bytes: 1, checksum: Checksum([0; 32]) };
        let segment = Segment {
            id,
            tenant,
            block: Block { start_ms: start, end_ms: start + length + 1 },
            min_ts: start,
            max_ts: start + length,
            shard: Shard { index: shard, count: 3 },
            series_file: file(series),
            samples_file: file(samples),
            series_count: 1,
            sample_count: 1,
            written_ms: 0,
            sequence: 1,
        };
        let held = METRICS.iter().zip(0..).filter(|(_, bit)| metrics >> bit & 1 == 1);
        let names = MetricNames::new(held.map(|(name, _)| *name)).unwrap();
        (Row { segment, metric_set: names.digest(), removed_ms: None }, names)
    }

    fn sketch() -> impl Strategy<Value = Sketch> {
        (0_i64..100, 0_i64..30, 0_u32..3, 1_u8..64, any::<bool>())
    }

    proptest! {
        #[test]
        fn a_search_finds_what_looking_at_every_segment_finds(
            sketches in prop::collection::vec(sketch(), 0..40),
            cut in any::<prop::sample::Index>(),
            from in -10_i64..140, length in 0_i64..60, shard in 0_u32..3, metric in 0_usize..6,
        ) {
            let mut universe = Universe::default();
            let cut = cut.index(sketches.len() + 1);
            let (rows, sets): (Vec<_>, Vec<_>) =
                sketches.iter().enumerate().map(|(number, sketch)| row(number, *sketch)).unzip();
            let sets: BTreeMap<_, _> =
                sets.iter().map(|names| (names.digest(), names.encode())).collect();
            let mut rows = rows.into_iter();
            // In two changes, and a third that removes some.
            let first: Vec<Row> = rows.by_ref().take(cut).collect();
            let removed: Vec<Row> = sketches
                .iter()
                .enumerate()
                .filter(|(_, sketch)| sketch.4)
                .map(|(number, sketch)| Row { removed_ms: Some(1), ..row(number, *sketch).0 })
                .collect();
            for (rows, change_seq) in [(first, 1), (rows.collect(), 2), (removed, 3)] {
                let sets = sets.clone();
                universe = universe.after(Changes { change_seq, whole: false, rows, sets }).unwrap();
            }
            let time = from..=from + length;
            let shard = Shard { index: shard, count: 3 };
            let wanted =
                Wanted { time: time.clone(), metrics: MetricChoice::Named(METRICS[metric]), shard };
            let found = universe.tenant(&TenantId::new("t").unwrap()).find(&wanted);
            let mut found: Vec<String> = found.iter().map(|s| s.id.to_string()).collect();
            found.sort();
            let mut expected: Vec<String> = sketches
                .iter()
                .enumerate()
                .filter(|(_, (start, length, index, metrics, removed))| {
                    let touches = *start <= *time.end() && start + length >= *time.start();
                    touches && *index == shard.index && metrics >> metric & 1 == 1 && !removed
                })
                .map(|(number, _)| format!("s{number}"))
                .collect();
            expected.sort();
            prop_assert_eq!(&found, &expected);
            // And so where the same segments are known without a catalog.
            let live = sketches.iter().enumerate().filter(|(_, sketch)| !sketch.4);
            let fixed = TenantSegments::of(live.map(|(number, sketch)| {
                let (Row { segment, .. }, metrics) = row(number, *sketch);
                NewSegment { segment, metrics }
            }));
            let mut found: Vec<String> =
                fixed.find(&wanted).iter().map(|s| s.id.to_string()).collect();
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
