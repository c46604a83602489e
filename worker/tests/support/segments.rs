//! Segments in a store, a worker that reads them, and work that asks for them.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use core_workcoord::message::ApiMessage;
use tributary_artifact_store::{DiskConfig, WorkerDisk, serve};
use tributary_catalog::{ObjectPath, SegmentId, Store};
use tributary_leafwork::{Work, spec_of};
use tributary_promql::leaf::TimeSpan;
use tributary_promql::{EvalLimits, EvalOptions, Labels, Options, Plan, QuerySpec, parse, plan};
use tributary_proto::spec::SegmentSpec;
use tributary_segment::{Family, SegmentWriter, WriteOptions};
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::{Parts, Worker};

use crate::support::{Api, assign, config};

/// Two counters that rise by 1 and by 2 every second, for ten minutes.
fn segment_files() -> (Vec<u8>, Vec<u8>) {
    let (mut series, mut samples) = (Vec::new(), Vec::new());
    let options = WriteOptions::default();
    let mut writer = SegmentWriter::new(&mut samples, &options).expect("memory takes it");
    let ts: Vec<i64> = (0..60).map(|n| n * 10_000).collect();
    for (host, slope) in [("a", 10.0), ("b", 20.0)] {
        let labels = Labels::new([("__name__", "hits_total"), ("host", host)]).expect("two names");
        let values: Vec<f64> = (0..60).map(|n| f64::from(n) * slope).collect();
        let family = Arc::new(Family::default());
        writer.series(&labels, &family, &ts, &values).expect("memory takes it");
    }
    writer.finish(&mut series).expect("memory takes it");
    (series, samples)
}

/// A store in a new folder.
pub fn store_in(folder: &Path) -> Store {
    std::fs::create_dir(folder).expect("a new folder");
    Store::in_folder(folder).expect("a folder")
}

/// Puts those counters into the store, for a tenant.
pub async fn put_segment(store: &Store, tenant: &str) -> SegmentSpec {
    let tenant = core_workcoord::id::TenantId::new(tenant).expect("a plain name");
    let id = SegmentId::new("s1").expect("a plain name");
    let (series_path, samples_path) =
        ObjectPath::of_segment(&tenant, "u1", &id).expect("plain names");
    let (series, samples) = segment_files();
    let sizes = (series.len() as u64, samples.len() as u64);
    store.put(&series_path, Bytes::from(series)).await.expect("the folder takes it");
    store.put(&samples_path, Bytes::from(samples)).await.expect("the folder takes it");
    SegmentSpec {
        series: (series_path.to_string(), sizes.0),
        samples: (samples_path.to_string(), sizes.1),
    }
}

/// A worker over this store, with its disk in this folder.
pub async fn start(folder: &Path, store: Store) -> Worker {
    let disk = DiskConfig { folder: folder.to_owned(), ..DiskConfig::default() };
    let (disk, lost) = WorkerDisk::open(&disk, store).expect("the folder is ours");
    let routes = serve::routes(disk.spool().clone());
    let (artifacts, lost) = DiskArtifacts::start(disk, lost).expect("there are threads");
    let runtime = tokio::runtime::Handle::current();
    let executor = Arc::new(LeafWork::new(Arc::clone(&artifacts), runtime, EvalLimits::default()));
    let parts = Parts { executor, artifacts, lost, routes, version: "test".into() };
    Worker::start(&config(2), parts).await.expect("the worker starts")
}

/// A query over those counters.
pub fn query() -> Plan {
    let expr = parse("sum(rate(hits_total[1m]))", &Options::default()).expect("a query");
    let spec = QuerySpec::range(120_000, 540_000, 60_000);
    plan(&expr, spec, &EvalOptions::default()).expect("it can be planned")
}

/// The work of its only leaf over a segment.
pub fn spec(plan: &Plan, segment: SegmentSpec) -> Bytes {
    let work = Work {
        leaf: plan.leaves[0].leaf.clone(),
        span: TimeSpan::ALL,
        place: 0,
        segments: vec![segment],
        limits: EvalLimits::default(),
        inquiry: None,
    };
    spec_of(&work).encode()
}

/// Gives work with this spec.
pub async fn give(api: &Api, item: u32, spec: &Bytes) {
    let assigned = core_workcoord::message::AssignWork { spec: spec.clone(), ..assign(item, "") };
    api.tell(ApiMessage::AssignWork(assigned)).await;
}
