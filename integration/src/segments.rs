//! Series become segments of a data directory, the short way: one segment at a time, put into the
//! store and registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use core_workcoord::id::TenantId;
use tributary_catalog::{
    Block, Catalog, Changed, MetricNames, NewSegment, ObjectPath, Segment, SegmentId, Shard, Store,
};
use tributary_promql::Labels;
use tributary_segment::{Family, SegmentWriter, WriteOptions};

/// Samples of one series: times in milliseconds, and values.
pub type Samples = (Vec<i64>, Vec<f64>);

/// Series with their samples.
pub type Series = BTreeMap<Labels, Samples>;

/// What goes wrong while segments are made. Nobody acts on the difference.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How series are cut into segments.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The length of a block, in milliseconds.
    pub block_ms: i64,
    /// Shards of the series.
    pub shards: u32,
}

impl Default for Cut {
    fn default() -> Self {
        Self { block_ms: 2 * 60 * 60 * 1000, shards: 1 }
    }
}

/// Puts series into the store and registers them, all at once.
pub async fn add(
    catalog: &Catalog,
    store: &Store,
    tenant: &TenantId,
    series: &Series,
    cut: Cut,
) -> Result<Changed, Failure> {
    let mut parts: BTreeMap<(i64, u32), Series> = BTreeMap::new();
    for (labels, (ts, values)) in series {
        for (t, value) in ts.iter().zip(values) {
            let key = (t.div_euclid(cut.block_ms), labels.shard(cut.shards));
            let part = parts.entry(key).or_default().entry(labels.clone()).or_default();
            part.0.push(*t);
            part.1.push(*value);
        }
    }
    let mut segments = Vec::new();
    for ((block, shard), series) in &parts {
        let start_ms = block * cut.block_ms;
        let block = Block { start_ms, end_ms: start_ms + cut.block_ms };
        let shard = Shard { index: *shard, count: cut.shards };
        segments.push(put(store, tenant, series, block, shard).await?);
    }
    Ok(catalog.register(&segments, 0).await?)
}

async fn put(
    store: &Store,
    tenant: &TenantId,
    series: &Series,
    block: Block,
    shard: Shard,
) -> Result<NewSegment, Failure> {
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default())?;
    let family = Arc::new(Family::default());
    let mut sorted: Vec<_> = series.iter().collect();
    sorted.sort_by(|one, other| one.0.series_cmp(other.0));
    for (labels, (ts, values)) in sorted {
        writer.series(labels, &family, ts, values)?;
    }
    let stats = writer.finish(&mut index)?;
    let id = SegmentId::new(&format!("{:032x}", unique()))?;
    let (series_path, samples_path) = ObjectPath::of_segment(tenant, "test", &id)?;
    let segment = Segment {
        id,
        tenant: tenant.clone(),
        block,
        min_ts: stats.min_ts,
        max_ts: stats.max_ts,
        shard,
        series_file: store.put(&series_path, Bytes::from(index)).await?,
        samples_file: store.put(&samples_path, Bytes::from(samples)).await?,
        series_count: stats.series.into(),
        sample_count: stats.samples,
        written_ms: 0,
        sequence: 0,
    };
    let metrics = MetricNames::new(stats.metrics.iter().map(String::as_str))?;
    Ok(NewSegment { segment, metrics })
}

/// A number that was not given before in this process, and hardly in another.
fn unique() -> u128 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    u128::from(std::process::id()) << 64 | u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}
