//! A worker with a real disk runs real leaves over real segments: what an API node asks for by spec
//! comes back as an artifact, and is evaluated to the right values.

#[path = "support/segments.rs"]
mod segments;
mod support;

use core_workcoord::message::{FailureCode, WorkerMessage};
use segments::{give, put_segment, query, spec, start, store_in};
use support::{Api, assign, work};
use tempfile::TempDir;
use tributary_artifact_store::{FetchConfig, Fetcher};
use tributary_leafwork::{SeriesInquiry, Tell, Work, artifact, inquiry_leaf, spec_of};
use tributary_promql::leaf::TimeSpan;
use tributary_promql::{Data, EvalFlow, EvalLimits};

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
        let table = artifact::read(file, &spec, 1_000).expect("it is an artifact");
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
    for stage in ["download", "scan", "encode"] {
        let count = format!("tributary_worker_{stage}_seconds_count 1\n");
        assert!(metrics.contains(&count), "{metrics}");
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_told_once_and_begins_with_its_prefix_once() {
    let folder = TempDir::new().expect("a folder");
    let store = store_in(&folder.path().join("store"));
    let worker = start(&folder.path().join("disk"), store).await;
    let (_, text) = support::get(worker.http(), "/metrics", &[]).await;
    let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<_> = heads.filter_map(|head| head.split(' ').next()).collect();
    assert!(names.contains(&"tributary_worker_budget_bytes"), "the disk's are missing: {text}");
    for name in &names {
        let rest = name.strip_prefix("tributary_worker_").expect(name);
        assert!(!rest.contains("worker_") && !rest.contains("tributary"), "{name}");
    }
    let told = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), told, "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a line has a name");
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let declared =
            names.binary_search(&name).or_else(|_| names.binary_search(&family.unwrap_or(name)));
        assert!(declared.is_ok(), "{name} has no head");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inquiry_is_answered_without_the_samples() {
    let folder = TempDir::new().expect("a folder");
    let store = store_in(&folder.path().join("store"));
    let tenant = assign(1, "").tenant;
    let mut segment = put_segment(&store, tenant.as_str()).await;
    // Who looked for them would not find them.
    segment.samples.0 = segment.samples.0.replace("/u1/", "/u2/");
    let worker = start(&folder.path().join("disk"), store).await;
    let asked = Work {
        leaf: inquiry_leaf(Vec::new()),
        span: TimeSpan::ALL,
        place: 0,
        segments: vec![segment],
        limits: EvalLimits::default(),
        inquiry: Some(SeriesInquiry {
            from: 590_000,
            to: 600_000,
            tell: Tell::LabelValues("host".to_owned()),
            limit: 0,
        }),
    };
    let mut api = Api::greeted(worker.grpc(), "api-1", 1).await;
    let spec = spec_of(&asked).encode();
    give(&api, 1, &spec).await;
    assert_eq!(api.answer().await, WorkerMessage::Accepted(work(1)));
    assert_eq!(api.answer().await, WorkerMessage::Started(work(1)));
    let ready = api.ready(1).await;
    let fetcher = Fetcher::new(FetchConfig::default()).expect("a client");
    let fetched = fetcher.fetch(&ready.url, api.token(), ready.size_bytes, ready.checksum).await;
    let file = fetched.expect("it is served").bytes().clone();
    let told = artifact::read(file, &spec, 1_000).expect("it is an artifact").series;
    assert_eq!(told.iter().map(|told| told.value("host")).collect::<Vec<_>>(), ["a", "b"]);
}
