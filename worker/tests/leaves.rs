//! A worker with a real disk runs real leaves over real segments: what an API node asks for by spec
//! comes back as an artifact, and is evaluated to the right values.

mod support;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use core_workcoord::message::{ApiMessage, FailureCode, WorkerMessage};
use support::{Api, assign, config, work};
use tempfile::TempDir;
use tributary_artifact_store::{DiskConfig, FetchConfig, Fetcher, WorkerDisk, serve};
use tributary_catalog::{ObjectPath, SegmentId, Store};
use tributary_leafwork::{Work, artifact, spec_of};
use tributary_promql::leaf::TimeSpan;
use tributary_promql::{
    Data, EvalFlow, EvalLimits, EvalOptions, Labels, Options, Plan, QuerySpec, parse, plan,
};
use tributary_proto::spec::SegmentSpec;
use tributary_segment::{Family, SegmentWriter, WriteOptions};
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::{Parts, Worker};

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

fn store_in(folder: &Path) -> Store {
    std::fs::create_dir(folder).expect("a new folder");
    Store::in_folder(folder).expect("a folder")
}

async fn put_segment(store: &Store, tenant: &str) -> SegmentSpec {
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

async fn start(folder: &Path, store: Store) -> Worker {
    let disk = DiskConfig { folder: folder.to_owned(), ..DiskConfig::default() };
    let (disk, lost) = WorkerDisk::open(&disk, store).expect("the folder is ours");
    let routes = serve::routes(disk.spool().clone());
    let (artifacts, lost) = DiskArtifacts::start(disk, lost).expect("there are threads");
    let runtime = tokio::runtime::Handle::current();
    let executor = Arc::new(LeafWork::new(Arc::clone(&artifacts), runtime, EvalLimits::default()));
    let parts = Parts { executor, artifacts, lost, routes, version: "test".into() };
    Worker::start(&config(2), parts).await.expect("the worker starts")
}

fn query() -> Plan {
    let expr = parse("sum(rate(hits_total[1m]))", &Options::default()).expect("a query");
    let spec = QuerySpec::range(120_000, 540_000, 60_000);
    plan(&expr, spec, &EvalOptions::default()).expect("it can be planned")
}

fn spec(plan: &Plan, segment: SegmentSpec) -> Bytes {
    let work = Work {
        leaf: plan.leaves[0].leaf.clone(),
        span: TimeSpan::ALL,
        place: 0,
        segments: vec![segment],
        limits: EvalLimits::default(),
    };
    spec_of(&work).encode()
}

async fn give(api: &Api, item: u32, spec: &Bytes) {
    let assigned = core_workcoord::message::AssignWork { spec: spec.clone(), ..assign(item, "") };
    api.tell(ApiMessage::AssignWork(assigned)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaf_comes_back_as_an_artifact_and_equal_work_is_done_once() {
    let folder = TempDir::new().expect("a folder");
    let store = store_in(&folder.path().join("store"));
    let tenant = assign(1, "").tenant;
    let segment = put_segment(&store, tenant.as_str()).await;
    let worker = start(&folder.path().join("disk"), store).await;
    let plan = query();
    let spec = spec(&plan, segment);
    let mut api = Api::greeted(worker.grpc(), "api-1", 1).await;
    let fetcher = Fetcher::new(FetchConfig::default()).expect("a client");
    let mut checksums = Vec::new();
    for item in [1, 2] {
        give(&api, item, &spec).await;
        assert_eq!(api.answer().await, WorkerMessage::Accepted(work(item)));
        assert_eq!(api.answer().await, WorkerMessage::Started(work(item)));
        let ready = api.ready(item).await;
        let (size, checksum) = (ready.size_bytes, ready.checksum);
        let fetched = fetcher.fetch(&ready.url, api.token(), size, checksum).await;
        let file = fetched.expect("it is served").bytes().clone();
        let table = artifact::read(file, 1_000).expect("it is an artifact");
        assert_eq!(ready.row_count, table.len() as u64);
        let leaf = &plan.leaves[0].leaf;
        let part = table.into_part(leaf, TimeSpan::ALL, 0).expect("it is this leaf's");
        let mut flow = EvalFlow::new(&plan, vec![vec![(TimeSpan::ALL, 0)]]);
        flow.add(0, part);
        let Data::Matrix(series) = flow.answer().expect("it evaluates").data else {
            panic!("a range query has a matrix");
        };
        assert_eq!(series.len(), 1);
        assert_eq!(series[0].values, [3.0; 8]);
        api.acknowledge(item, &ready).await;
        checksums.push(ready.checksum);
    }
    assert_eq!(checksums[0], checksums[1], "equal work gives equal bytes");
    let (_, metrics) = support::get(worker.http(), "/metrics", &[]).await;
    assert!(metrics.contains("tributary_worker_artifacts_committed_total 1"), "{metrics}");
    assert!(metrics.contains("tributary_worker_artifacts_reused_total 1"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_of_others_and_missing_ones_are_told_by_name() {
    let folder = TempDir::new().expect("a folder");
    let store = store_in(&folder.path().join("store"));
    let tenant = assign(1, "").tenant;
    let foreign = put_segment(&store, "somebody-else").await;
    let mut missing = put_segment(&store, tenant.as_str()).await;
    missing.samples.0 = missing.samples.0.replace("/u1/", "/u2/");
    let worker = start(&folder.path().join("disk"), store).await;
    let plan = query();
    let mut api = Api::greeted(worker.grpc(), "api-1", 1).await;
    let mut escaping = foreign.clone();
    escaping.series.0 = "segments/../../etc/passwd".to_owned();
    for (item, (segment, code)) in (1..).zip([
        (foreign, FailureCode::BadSpec),
        (escaping, FailureCode::BadSpec),
        (missing, FailureCode::SegmentMissing),
    ]) {
        give(&api, item, &spec(&plan, segment)).await;
        assert_eq!(api.answer().await, WorkerMessage::Accepted(work(item)));
        assert_eq!(api.answer().await, WorkerMessage::Started(work(item)));
        let WorkerMessage::Failed(failed) = api.answer().await else { panic!("it can't succeed") };
        assert_eq!((failed.failure.code, failed.failure.retryable), (code, false), "{failed:?}");
    }
}
