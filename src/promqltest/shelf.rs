//! The data of scripts as segments of a data directory, a tenant for each data set, cut into blocks
//! and shards so that every query has edges to cross. The same data is cut in the same way always.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use core_workcoord::id::TenantId;
use tributary_catalog::{
    Block, Catalog, CatalogConfig, DataDir, MetricNames, NewSegment, ObjectPath, Segment,
    SegmentId, Shard, Store, StoredFile,
};
use tributary_promqltest::{DataSet, Series, cut};
use tributary_segment::{Family, SegmentStats, SegmentWriter, WriteOptions};

use crate::cli::Problem;
use crate::clock;

/// The name of the one upload there is.
const UPLOAD: &str = "scripts";

/// Edges in time, where a script does not say where they are.
const MOST_EDGES: usize = 3;

/// Segments that are registered in one step.
const BATCH: usize = 500;

/// The tenant whose data this is. It follows from the data alone.
pub(super) fn tenant(data: &DataSet) -> Result<TenantId, Problem> {
    TenantId::new(&format!("data-{:016x}", fingerprint(data))).map_err(Problem::failed)
}

/// Writes data sets into a new data directory, each once.
pub(super) async fn fill(path: &Path, sets: impl Iterator<Item = DataSet>) -> Result<(), Problem> {
    let data_dir = DataDir::open_or_create(path).map_err(Problem::failed)?;
    let catalog = data_dir.catalog(CatalogConfig::default()).await.map_err(Problem::failed)?;
    let shelf = Shelf { store: data_dir.store().map_err(Problem::failed)?, catalog };
    let distinct: BTreeMap<u64, DataSet> = sets.map(|data| (fingerprint(&data), data)).collect();
    let mut waiting = Vec::new();
    for data in distinct.into_values() {
        let tenant = tenant(&data)?;
        for piece in pieces(&data) {
            waiting.push(shelf.put(&tenant, &piece).await?);
        }
        if waiting.len() >= BATCH {
            shelf.register(&mut waiting).await?;
        }
    }
    shelf.register(&mut waiting).await
}

struct Shelf {
    store: Store,
    catalog: Catalog,
}

/// What becomes one segment.
struct Piece {
    block: Block,
    shard: Shard,
    /// Of which load, counted from the oldest.
    load: usize,
    series: Series,
}

impl Shelf {
    async fn put(&self, tenant: &TenantId, piece: &Piece) -> Result<NewSegment, Problem> {
        let (mut series, mut samples) = (Vec::new(), Vec::new());
        let stats = write(&piece.series, &mut series, &mut samples)?;
        // Its place among the segments of this data, which no other has.
        let mut name = DefaultHasher::new();
        (tenant.as_str(), piece.block.start_ms, piece.shard.index, piece.load).hash(&mut name);
        let id = SegmentId::new(&format!("{:016x}", name.finish())).map_err(Problem::failed)?;
        let (series_path, samples_path) =
            ObjectPath::of_segment(tenant, UPLOAD, &id).map_err(Problem::failed)?;
        let put = async |path: &ObjectPath, bytes: Vec<u8>| -> Result<StoredFile, Problem> {
            self.store.put(path, bytes.into()).await.map_err(Problem::failed)
        };
        let segment = Segment {
            id,
            tenant: tenant.clone(),
            block: piece.block,
            min_ts: stats.min_ts,
            max_ts: stats.max_ts,
            shard: piece.shard,
            series_file: put(&series_path, series).await?,
            samples_file: put(&samples_path, samples).await?,
            series_count: u64::from(stats.series),
            sample_count: stats.samples,
            written_ms: clock::now_ms(),
            sequence: 0,
        };
        let metrics = MetricNames::new(&stats.metrics).map_err(Problem::failed)?;
        Ok(NewSegment { segment, metrics })
    }

    async fn register(&self, waiting: &mut Vec<NewSegment>) -> Result<(), Problem> {
        if !waiting.is_empty() {
            let registered = self.catalog.register(waiting, clock::now_ms()).await;
            registered.map_err(Problem::failed)?;
            waiting.clear();
        }
        Ok(())
    }
}

/// Cuts data into pieces: by time, by shard, and by load, the oldest load first, for what is
/// registered later wins.
fn pieces(data: &DataSet) -> Vec<Piece> {
    let fingerprint = fingerprint(data);
    // Few edges of those that there could be: each costs a segment, and each is worth testing.
    let mut edges: Vec<i64> = cut(data, fingerprint).iter().map(|cell| cell.from).collect();
    edges.retain(|edge| *edge != i64::MIN);
    edges.dedup();
    if data.cut_times().is_none() && edges.len() > MOST_EDGES {
        let every = edges.len().div_ceil(MOST_EDGES);
        edges = edges.into_iter().step_by(every).collect();
    }
    let shards = 1 + u32::try_from(fingerprint % 3).unwrap_or(0);
    let begins = [i64::MIN].into_iter().chain(edges.iter().copied());
    let ends = edges.iter().copied().chain([i64::MAX]);
    let mut pieces = Vec::new();
    for (from, to) in begins.zip(ends) {
        for index in 0..shards {
            let part = data.part(from, to, |labels| labels.shard(shards) == index);
            let Some(block) = block_of(&part, from, to) else { continue };
            let shard = Shard { index, count: shards };
            for (load, series) in part.loads().iter().enumerate() {
                if !series.is_empty() {
                    pieces.push(Piece { block, shard, load, series: series.clone() });
                }
            }
        }
    }
    pieces
}

/// The block of a part. The first and the last one end where their samples do.
fn block_of(part: &DataSet, from: i64, to: i64) -> Option<Block> {
    let times = || part.series().values().flat_map(|samples| samples.ts.iter().copied());
    let (first, last) = (times().min()?, times().max()?);
    let start_ms = if from == i64::MIN { first } else { from };
    Some(Block { start_ms, end_ms: if to == i64::MAX { last + 1 } else { to } })
}

fn write(
    series: &Series,
    index: &mut Vec<u8>,
    samples: &mut Vec<u8>,
) -> Result<SegmentStats, Problem> {
    let options = WriteOptions { value_level: 1, time_level: 1 };
    let mut writer = SegmentWriter::new(samples, &options).map_err(Problem::failed)?;
    let family = Arc::new(Family::default());
    let mut series: Vec<_> = series.iter().collect();
    series.sort_by(|one, other| one.0.series_cmp(other.0));
    for (labels, samples) in series {
        let written = writer.series(labels, &family, &samples.ts, &samples.values);
        written.map_err(Problem::failed)?;
    }
    writer.finish(index).map_err(Problem::failed)
}

fn fingerprint(data: &DataSet) -> u64 {
    // Always the same for the same data: it has no key of its own.
    let mut hash = DefaultHasher::new();
    for load in data.loads() {
        load.len().hash(&mut hash);
        for (labels, samples) in load {
            labels.as_bytes().hash(&mut hash);
            samples.ts.hash(&mut hash);
            samples.values.iter().for_each(|value| value.to_bits().hash(&mut hash));
        }
    }
    data.cut_times().hash(&mut hash);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use tributary_promqltest::{Samples, Script, data_sets};

    use super::*;

    const SCRIPT: &str = r#"
load 1m
  a{n="1"} 1+1x20
  b 5x20

load 1m
  a{n="1"} 7x3

eval instant at 5m a
  a{n="1"} 6

# cut at 5m 10m

eval instant at 5m a
  a{n="1"} 6

eval instant at 6m a
  a{n="1"} 7
"#;

    fn sets() -> Vec<DataSet> {
        data_sets(&Script::parse(SCRIPT).unwrap())
    }

    #[test]
    fn every_sample_of_every_load_is_in_one_piece() {
        for data in sets() {
            let mut again = DataSet::default();
            let mut samples = 0;
            for piece in pieces(&data) {
                for part in piece.series.values() {
                    samples += part.ts.len();
                    let inside = |t: &i64| (piece.block.start_ms..piece.block.end_ms).contains(t);
                    assert!(part.ts.iter().all(inside));
                }
                again.load(piece.series);
            }
            let loaded = data.loads().iter().flat_map(|load| load.values());
            assert_eq!(samples, loaded.map(|samples: &Samples| samples.ts.len()).sum::<usize>());
            let flat = |data: &DataSet| -> Vec<_> {
                let pairs = data.series().iter();
                pairs.map(|(labels, s)| (labels.clone(), s.iter().collect::<Vec<_>>())).collect()
            };
            assert_eq!(flat(&again), flat(&data), "later loads win");
        }
    }

    #[test]
    fn data_that_is_cut_elsewhere_is_another_tenants() {
        let sets = sets();
        assert_eq!(sets.len(), 2, "a set is there once for all cases that ask it");
        assert_ne!(tenant(&sets[0]).unwrap(), tenant(&sets[1]).unwrap());
        let again = tenant(&self::sets()[0]).unwrap();
        assert_eq!(tenant(&sets[0]).unwrap(), again);
    }

    #[tokio::test]
    async fn all_of_it_is_registered() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("data");
        let sets = sets();
        let expected: usize = sets.iter().map(|data| pieces(data).len()).sum();
        fill(&path, sets.into_iter().chain(self::sets())).await.unwrap();
        let data_dir = DataDir::open(&path).unwrap();
        let catalog = data_dir.catalog(CatalogConfig::default()).await.unwrap();
        assert_eq!(catalog.entries().await.unwrap().len(), expected);
    }
}
