//! Cells: which segments together hold all samples of their series for their span of time. Decided
//! from what the catalog says of the segments alone, so that the same segments give the same cells on
//! every node.
//!
//! Segments whose blocks and shards both overlap belong together, and so do sets of them whose hulls
//! do: what remains apart shares no series at any time. Neighbours in time of the same shards are then
//! joined while they are small, for every edge between cells costs states on the way.

use std::sync::Arc;

use tributary_catalog::{Segment, Shard};
use tributary_promql::leaf::TimeSpan;

/// Segments that together hold all samples of their series for a span.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The span.
    pub span: TimeSpan,
    /// Place among the cells of this span.
    pub place: u32,
    /// The segments, oldest first.
    pub segments: Vec<Arc<Segment>>,
}

/// How large the work on neighbouring cells may be before they stay apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSize {
    /// Samples in one work item.
    pub max_samples: u64,
    /// Segments in one work item.
    pub max_segments: usize,
    /// Neighbours are joined only within spans of this length that begin at multiples of it, in
    /// milliseconds. So most cells of a long query are those of the same query a little later, and
    /// what was made of them serves again.
    pub align_ms: i64,
}

impl Default for CellSize {
    fn default() -> Self {
        Self { max_samples: 2_000_000, max_segments: 64, align_ms: 12 * 60 * 60 * 1000 }
    }
}

/// A set of segments that can't be told apart, while cells are made.
#[derive(Clone, Debug)]
struct Hull {
    from: i64,
    to: i64,
    shards: Vec<Shard>,
    segments: Vec<Arc<Segment>>,
}

/// Puts segments, in any order, into cells, by time and shard.
pub fn cells_of(segments: &[Arc<Segment>], size: CellSize) -> Vec<Cell> {
    let joined = joined(hulls_of(segments), size);
    let reaches: Vec<TimeSpan> = (0..joined.len()).map(|at| reach(at, &joined)).collect();
    let mut cells: Vec<Cell> = joined
        .into_iter()
        .zip(reaches)
        .map(|(mut hull, span)| {
            hull.segments.sort_by(|one, other| one.age_key().cmp(&other.age_key()));
            Cell { span, place: 0, segments: hull.segments }
        })
        .collect();
    let key = |cell: &Cell| (cell.span, cell.segments[0].sequence, cell.segments[0].id.clone());
    cells.sort_by_cached_key(key);
    for at in 1..cells.len() {
        if cells[at].span == cells[at - 1].span {
            cells[at].place = cells[at - 1].place + 1;
        }
    }
    cells
}

/// Sets of segments that can't be told apart, by time and shard. Goes through time once: what lies
/// before everything that is still open is done with.
fn hulls_of(segments: &[Arc<Segment>]) -> Vec<Hull> {
    let mut segments = segments.to_vec();
    segments.sort_by(|one, other| {
        let key = |it: &Segment| (it.block, it.shard);
        key(one).cmp(&key(other)).then_with(|| one.age_key().cmp(&other.age_key()))
    });
    let (mut open, mut done): (Vec<Hull>, Vec<Hull>) = (Vec::new(), Vec::new());
    for segment in segments {
        let mut hull = Hull::of(segment);
        // What stays open may keep others open in turn.
        let mut earliest = hull.from;
        while let Some(earlier) =
            open.iter().find(|other| other.to > earliest && other.from < earliest)
        {
            earliest = earlier.from;
        }
        done.extend(open.extract_if(.., |other| other.to <= earliest));
        // A hull that grew may reach others it did not reach before.
        while let Some(at) = open.iter().position(|other| other.overlaps(&hull)) {
            hull.take(open.swap_remove(at));
        }
        open.push(hull);
    }
    done.extend(open);
    done.sort_by(|one, other| one.key().cmp(&other.key()));
    done
}

impl Hull {
    fn of(segment: Arc<Segment>) -> Self {
        let block = segment.block;
        let shards = vec![segment.shard];
        Self { from: block.start_ms, to: block.end_ms, shards, segments: vec![segment] }
    }

    /// Whether some series may be in both.
    fn shares_series(&self, other: &Self) -> bool {
        self.shards.iter().any(|one| other.shards.iter().any(|other| one.overlaps(*other)))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to && self.shares_series(other)
    }

    fn take(&mut self, other: Self) {
        self.from = self.from.min(other.from);
        self.to = self.to.max(other.to);
        self.shards.extend(other.shards);
        self.shards.sort_unstable();
        self.shards.dedup();
        self.segments.extend(other.segments);
    }

    fn samples(&self) -> u64 {
        self.segments.iter().map(|segment| segment.sample_count).sum()
    }

    fn key(&self) -> (i64, i64, &[Shard]) {
        (self.from, self.to, &self.shards)
    }
}

/// Joins neighbours in time that are of the same shards, while they are small. Nothing that shares
/// series with them may lie between.
fn joined(hulls: Vec<Hull>, size: CellSize) -> Vec<Hull> {
    let mut joined: Vec<Hull> = Vec::new();
    for hull in hulls {
        let last = joined.iter().rposition(|other| other.shares_series(&hull));
        match last.map(|at| &mut joined[at]) {
            Some(last)
                if last.shards == hull.shards
                    && last.from.div_euclid(size.align_ms)
                        == hull.from.div_euclid(size.align_ms)
                    && last.samples().saturating_add(hull.samples()) <= size.max_samples
                    && last.segments.len() + hull.segments.len() <= size.max_segments =>
            {
                last.take(hull);
            }
            _ => joined.push(hull),
        }
    }
    joined
}

/// The span of one of all hulls, which are in the order of time: up to the next one that shares
/// series with it, for between them there is nothing; and without bound where there is none.
fn reach(at: usize, all: &[Hull]) -> TimeSpan {
    let hull = &all[at];
    let shares = |other: &&Hull| other.shares_series(hull);
    let mut earlier = all[..at].iter().rev().filter(|other| other.from < hull.from);
    let is_first = !earlier.any(|other| shares(&other));
    let mut later = all[at + 1..].iter().filter(|other| other.from >= hull.to);
    let next = later.find(shares).map(|other| other.from);
    TimeSpan { from: if is_first { i64::MIN } else { hull.from }, to: next.unwrap_or(i64::MAX) }
}

#[cfg(test)]
mod tests;
