//! Segments in a folder, and work on them: tiny items, long ones, and one with a large artifact.
//! Specs are made from planned queries, as an API node makes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use core_workcoord::id::TenantId;
use tempfile::TempDir;
use tributary_catalog::{ObjectPath, SegmentId};
use tributary_leafwork::{Work, artifact, spec_of};
use tributary_promql::leaf::TimeSpan;
use tributary_promql::{
    Data, EvalFlow, EvalLimits, EvalOptions, Labels, Options, Plan, QuerySpec, parse, plan,
};
use tributary_proto::spec::SegmentSpec;
use tributary_segment::{Family, SegmentWriter, WriteOptions};

/// Whose segments they are.
pub const TENANT: &str = "acme";

/// The folder of the segments among the tenant's.
pub(super) const UPLOAD: &str = "upload";

/// A second, in the milliseconds of timestamps.
const SECOND: i64 = 1_000;

/// A folder with segments, gone with its handle.
#[derive(Debug)]
pub struct Field {
    top: TempDir,
    tiny: SegmentSpec,
    wide: SegmentSpec,
    long: SegmentSpec,
}

/// One kind of work on the field: a planned query over a segment. Equal numbers give equal specs.
#[derive(Clone, Debug)]
pub struct Job {
    plan: Plan,
    segment: SegmentSpec,
}

impl Field {
    /// Writes the segments: `hits_total`, two series of ten minutes; `wide`, 5,000 series of an
    /// hour; `long`, one series of a day, each second a sample.
    pub fn sown() -> Self {
        let top = tempfile::tempdir().expect("a folder can be made");
        let put = |name: &str, series: &[(String, f64)], count: i64, interval_ms: i64| {
            put_segment(top.path(), name, series, count, interval_ms)
        };
        let many: Vec<_> = (0..5_000).map(|n| (format!("{n:04}"), f64::from(n))).collect();
        let tiny = put("hits_total", &[("a".into(), 10.0), ("b".into(), 20.0)], 60, 10 * SECOND);
        let wide = put("wide", &many, 360, 10 * SECOND);
        let long = put("long", &many[1..2], 86_400, SECOND);
        Self { top, tiny, wide, long }
    }

    /// The folder that is the store.
    pub fn store(&self) -> PathBuf {
        self.top.path().join("store")
    }

    /// A folder of its own for a worker's cache.
    pub fn cache(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// An item that takes next to nothing and whose answer is known: eight times 3.
    pub fn tiny(&self) -> Job {
        let spec = QuerySpec::range(120 * SECOND, 540 * SECOND, 60 * SECOND);
        job("sum(rate(hits_total[1m]))", spec, &self.tiny)
    }

    /// An item that keeps a core busy for seconds, a series at a time.
    pub fn busy(&self) -> Job {
        let spec = QuerySpec::range(0, 3_600 * SECOND, 10 * SECOND);
        job("stddev_over_time(wide[30m])", spec, &self.wide)
    }

    /// An item that keeps a core busy for longer than most tests take, a series at a time.
    pub fn endless(&self) -> Job {
        let spec = QuerySpec::range(0, 3_600 * SECOND, SECOND);
        job("sum(stddev_over_time(wide[1h]))", spec, &self.wide)
    }

    /// An item that keeps a core busy for seconds with the windows of a single series.
    pub fn long(&self) -> Job {
        let spec = QuerySpec::range(0, 86_400 * SECOND, 10 * SECOND);
        job("sum(stddev_over_time(long[6h]))", spec, &self.long)
    }

    /// An item whose artifact has 1.8 million rows.
    pub fn large(&self) -> Job {
        let spec = QuerySpec::range(10 * SECOND, 3_600 * SECOND, 10 * SECOND);
        job("rate(wide[5m])", spec, &self.wide)
    }
}

impl Job {
    /// The spec of the item with this number. Items differ only in their place, so that each is
    /// work of its own, and the artifacts hold the same.
    pub fn spec(&self, number: u32) -> Bytes {
        self.over(number, self.segment.clone())
    }

    /// The same over a segment that a peer made up.
    pub fn over(&self, number: u32, segment: SegmentSpec) -> Bytes {
        let work = Work {
            leaf: self.plan.leaves[0].leaf.clone(),
            span: TimeSpan::ALL,
            place: number,
            segments: vec![segment],
            limits: EvalLimits::default(),
            inquiry: None,
        };
        spec_of(&work).encode()
    }

    /// The same over a copy of its segment. A [`super::bucket::Bucket`] has as many as one wants.
    pub fn over_copy(&self, copy: u32) -> Self {
        let moved = |(path, size): &(String, u64)| {
            (path.replace(UPLOAD, &format!("{UPLOAD}-{copy}")), *size)
        };
        let SegmentSpec { series, samples } = &self.segment;
        let segment = SegmentSpec { series: moved(series), samples: moved(samples) };
        Self { plan: self.plan.clone(), segment }
    }

    /// The segment it is over.
    pub fn segment(&self) -> &SegmentSpec {
        &self.segment
    }

    /// What the artifact of an item evaluates to: the values of its series, in their order.
    pub fn answer(&self, number: u32, file: Bytes) -> Vec<Vec<f64>> {
        let table =
            artifact::read(file, &self.spec(number), 10_000_000).expect("it is an artifact");
        let leaf = &self.plan.leaves[0].leaf;
        let part = table.into_part(leaf, TimeSpan::ALL, number).expect("it is this leaf's");
        let mut flow = EvalFlow::new(&self.plan, vec![vec![(TimeSpan::ALL, number)]]);
        flow.add(0, part);
        match flow.answer().expect("it evaluates").data {
            Data::Matrix(series) => series.into_iter().map(|series| series.values).collect(),
            other => panic!("a range query has a matrix, not {other:?}"),
        }
    }
}

fn job(query: &str, spec: QuerySpec, segment: &SegmentSpec) -> Job {
    let expr = parse(query, &Options::default()).expect("a query");
    let plan = plan(&expr, spec, &EvalOptions::default()).expect("it can be planned");
    Job { plan, segment: segment.clone() }
}

/// Series of one metric, each with a name and what it rises by from sample to sample.
fn put_segment(
    top: &Path,
    metric: &str,
    series: &[(String, f64)],
    count: i64,
    interval_ms: i64,
) -> SegmentSpec {
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let options = WriteOptions { value_level: 1, time_level: 1 };
    let mut writer = SegmentWriter::new(&mut samples, &options).expect("memory takes it");
    let ts: Vec<i64> = (0..count).map(|n| n * interval_ms).collect();
    let family = Arc::new(Family::default());
    for (host, slope) in series {
        let labels = Labels::new([("__name__", metric), ("host", host)]).expect("two names");
        let values: Vec<f64> = (0..).take(ts.len()).map(|n: u32| f64::from(n) * slope).collect();
        writer.series(&labels, &family, &ts, &values).expect("memory takes it");
    }
    writer.finish(&mut index).expect("memory takes it");
    let tenant = TenantId::new(TENANT).expect("a plain name");
    let id = SegmentId::new(metric).expect("a plain name");
    let paths = ObjectPath::of_segment(&tenant, UPLOAD, &id).expect("plain names");
    let put = |path: &ObjectPath, bytes: &[u8]| {
        let file = top.join("store").join(path.as_str());
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a new folder");
        fs::write(&file, bytes).expect("the folder takes it");
        (path.to_string(), bytes.len() as u64)
    };
    SegmentSpec { series: put(&paths.0, &index), samples: put(&paths.1, &samples) }
}
