//! What stories are about: a few series, cut into segments in memory, and questions of several
//! classes with the answers of the engine that knows neither segments nor workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use tributary_api::question::Question;
use tributary_catalog::{
    Block, MetricNames, NewSegment, ObjectPath, Segment as SegmentRow, SegmentId, Shard,
    StoredFile, TenantSegments,
};
use tributary_promql::{Answer, EvalOptions, Labels, QuerySpec, parse};
use tributary_promqltest::{
    DataSet, Engine as _, LocalEngine, Query, Samples, Series, Settings, Time,
};
use tributary_segment::{Family, MemorySource, Segment, SegmentWriter, SeriesIndex, WriteOptions};

use crate::differential::dice::Dice;

/// The length of a block.
const BLOCK_MS: i64 = 30 * 60_000;

/// From one sample to the next.
const SCRAPE_MS: i64 = 60_000;

/// How long the series are.
const LENGTH_MS: i64 = 3 * 60 * 60_000;

/// Series are in one of these many shards.
const SHARDS: u32 = 2;

/// Whose data it is.
pub const TENANT: &str = "stories";

/// Expressions over a range, one of every class: selectors, rates, pushed aggregations, states that
/// cross edges, samples that cross edges, two leaves, subqueries, and one without any work.
const RANGES: &[&str] = &[
    "requests_total",
    "rate(requests_total[5m])",
    "sum by (job) (rate(requests_total[5m]))",
    "avg_over_time(temperature[20m])",
    "quantile_over_time(0.9, temperature[10m])",
    "topk(2, temperature)",
    "stddev by (zone) (temperature)",
    "sum(increase(requests_total[10m])) / on() group_left count(temperature)",
    "temperature > on(instance) group_left() (temperature offset 20m)",
    "max_over_time(rate(requests_total[5m])[30m:5m])",
    "count by (job) ({__name__=~\".+\"})",
    "absent(nothing_of_the_kind)",
];

/// Expressions at an instant.
const INSTANTS: &[&str] = &[
    "requests_total",
    "sum(rate(requests_total[30m]))",
    "sum_over_time(temperature[2h])",
    "bottomk(3, temperature)",
    "temperature - avg(temperature)",
    "count_values(\"v\", resets(requests_total[3h]))",
];

/// A question and the only answer to it.
#[derive(Debug)]
pub struct Asked {
    /// The expression, for whoever reads of it.
    pub text: String,
    /// The question, but for its timeout.
    pub question: Question,
    /// The answer when nothing goes wrong.
    pub answer: Answer,
}

/// Segments, and questions about them.
pub struct Material {
    /// What API nodes know of.
    pub segments: Arc<TenantSegments>,
    /// What workers read, by the path of the file with the series.
    pub files: BTreeMap<String, Segment<MemorySource>>,
    /// What clients ask.
    pub questions: Vec<Asked>,
}

impl Material {
    /// The same every time.
    pub fn make() -> Self {
        let data = data();
        let tenant = TenantId::new(TENANT).expect("it is a name");
        let (mut rows, mut files) = (Vec::new(), BTreeMap::new());
        for block in 0..LENGTH_MS / BLOCK_MS {
            for shard in 0..SHARDS {
                let (from, to) = (block * BLOCK_MS, (block + 1) * BLOCK_MS);
                let part = data.part(from, to, |labels| labels.shard(SHARDS) == shard);
                let block = Block { start_ms: from, end_ms: to };
                let shard = Shard { index: shard, count: SHARDS };
                let (row, segment) = segment(&tenant, part.series(), block, shard);
                files.insert(row.segment.series_file.path.to_string(), segment);
                rows.push(row);
            }
        }
        let end = LENGTH_MS - SCRAPE_MS;
        let ranges = RANGES
            .iter()
            .map(|text| (*text, Time::Range { start: 5 * 60_000, end, step: 4 * 60_000 }));
        let instants = INSTANTS.iter().map(|text| (*text, Time::Instant { at: end }));
        let questions =
            ranges.chain(instants).map(|(text, time)| asked(&data, &tenant, text, time));
        Self { questions: questions.collect(), segments: Arc::new(TenantSegments::of(rows)), files }
    }
}

/// Counters that start over now and then, and temperatures with gaps.
fn data() -> DataSet {
    let mut dice = Dice::new(1, 1);
    let mut series = Series::new();
    for number in 0..8 {
        let (job, zone) = (["api", "worker", "store"][number % 3], ["a", "b"][number % 2]);
        let instance = number.to_string();
        let labels = |name: &str| {
            let pairs = [("__name__", name), ("instance", &instance), ("job", job), ("zone", zone)];
            Labels::new(pairs).expect("they are labels")
        };
        let (mut counter, mut temperature) = (0.0, 20.0);
        let (mut requests, mut degrees) = (Samples::default(), Samples::default());
        for step in 0..LENGTH_MS / SCRAPE_MS {
            let t = step * SCRAPE_MS + i64::try_from(number).expect("it is small");
            counter = if dice.percent(2) { 0.0 } else { counter + dice.fraction() * 10.0 };
            temperature += dice.fraction() - 0.5;
            requests.push(t, counter);
            if !dice.percent(5) {
                degrees.push(t, temperature);
            }
        }
        series.insert(labels("requests_total"), requests);
        series.insert(labels("temperature"), degrees);
    }
    let mut data = DataSet::default();
    data.load(series);
    data
}

fn segment(
    tenant: &TenantId,
    series: &Series,
    block: Block,
    shard: Shard,
) -> (NewSegment, Segment<MemorySource>) {
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).expect("memory");
    let family = Arc::new(Family::default());
    let mut sorted: Vec<_> = series.iter().collect();
    sorted.sort_by(|one, other| one.0.series_cmp(other.0));
    for (labels, samples) in sorted {
        writer.series(labels, &family, &samples.ts, &samples.values).expect("they are sorted");
    }
    let stats = writer.finish(&mut index).expect("memory");
    let id = SegmentId::new(&format!("{}-{}", block.start_ms, shard.index)).expect("it is a name");
    let paths = ObjectPath::of_segment(tenant, "stories", &id).expect("it is a path");
    let file = |path: ObjectPath, bytes: &[u8]| StoredFile {
        path,
        size_bytes: bytes.len() as u64,
        // Nobody reads these files but `leaves`, which has them in memory.
        checksum: Checksum([0; 32]),
    };
    let row = SegmentRow {
        id,
        tenant: tenant.clone(),
        block,
        min_ts: stats.min_ts,
        max_ts: stats.max_ts,
        shard,
        series_file: file(paths.0, &index),
        samples_file: file(paths.1, &samples),
        series_count: stats.series.into(),
        sample_count: stats.samples,
        written_ms: 0,
        sequence: 0,
    };
    let metrics =
        MetricNames::new(stats.metrics.iter().map(String::as_str)).expect("they are names");
    let index = SeriesIndex::open(&MemorySource::new("series", Bytes::from(index)));
    let index = Arc::new(index.expect("it was just written"));
    let opened = Segment::open(index, MemorySource::new("samples", Bytes::from(samples)));
    (NewSegment { segment: row, metrics }, opened.expect("it was just written"))
}

fn asked(data: &DataSet, tenant: &TenantId, text: &str, time: Time) -> Asked {
    let settings = Settings::default();
    let expr = parse(text, &settings.options).expect("it is an expression");
    let question = Question {
        tenant: tenant.clone(),
        expr,
        spec: match time {
            Time::Instant { at } => QuerySpec::instant(at),
            Time::Range { start, end, step } => QuerySpec::range(start, end, step),
        },
        options: EvalOptions {
            lookback: settings.lookback_ms,
            subquery_step: settings.subquery_step_ms,
            delayed_name_removal: settings.delayed_name_removal,
            ..EvalOptions::default()
        },
        timeout: Duration::ZERO,
        traceparent: String::new(),
    };
    let query = Query { text: text.to_owned(), time, settings };
    let answer = LocalEngine::default().answer(data, &query).expect("it has an answer");
    Asked { text: text.to_owned(), question, answer }
}
