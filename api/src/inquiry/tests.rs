//! Inquiries over a real catalog and real indexes, answered by workers that live in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tributary_catalog::{
    Block, CatalogConfig, DataDir, MetricNames, NewSegment, ObjectPath, Segment, SegmentId, Shard,
    StoredFile, Universe,
};
use tributary_leafwork::{Work, artifact};
use tributary_promql::leaf::{PartTable, TimeSpan};
use tributary_promql::{EvalLimits, Labels, Options, parse_selector};
use tributary_segment::{Family, Kind, MemorySource, SegmentWriter, SeriesIndex, WriteOptions};

use super::*;
use crate::cells::CellSize;
use crate::coordination::{Coordination, Event, Inbox};
use crate::cores::Cores;
use crate::fetch::Fetched;
use crate::figures::Figures;
use crate::memory::Memory;
use crate::query::{Queries, Segments};
use crate::question::{Ask, FoundItems};

const HOUR: i64 = 3_600_000;

struct Known(Universe);

impl Segments for Known {
    fn of(&self, tenant: &TenantId) -> Arc<TenantSegments> {
        self.0.tenant(tenant)
    }
}

/// Workers that answer at once, all of it in this process, or not at all.
struct Pool {
    indexes: BTreeMap<String, SeriesIndex>,
    memory: Arc<Memory>,
    is_mute: bool,
}

impl Pool {
    async fn serve(self, mut inbox: Inbox, seen: mpsc::Sender<String>) {
        // Who drops an order says that it has ended.
        let mut orders = Vec::new();
        while let Some(event) = inbox.events.recv().await {
            let told = match event {
                Event::Submit(order) => {
                    if !self.is_mute {
                        self.run(&order);
                    }
                    let told = format!("submit {}", order.items.len());
                    orders.push(order);
                    told
                }
                Event::Consumed { through, .. } => format!("consumed {through}"),
                Event::Cancel { .. } => "cancel".to_owned(),
                other => panic!("an inquiry does not tell {other:?}"),
            };
            seen.try_send(told).unwrap();
        }
    }

    fn run(&self, order: &Order) {
        for (number, item) in (0..).zip(order.items.iter()) {
            let spec = item.work_item();
            let work = Work::of(&spec.spec, &EvalLimits::default()).unwrap();
            let indexes = work.segments.iter().map(|s| &self.indexes[&s.series.0]);
            let indexes: Vec<_> = indexes.collect();
            let part = work.inquire(work.inquiry.as_ref().unwrap(), &indexes, || false).unwrap();
            let mut file = Vec::new();
            artifact::write(&PartTable::of(&work.leaf, &part), &spec.spec, &mut file).unwrap();
            let table = artifact::read(Bytes::from(file), &spec.spec, 1_000).unwrap();
            let part = table.into_part(&work.leaf, TimeSpan::ALL, 0).unwrap();
            let charge = self.memory.charge(100).unwrap();
            let fetched = Box::new(Fetched { part, size_bytes: 1, rows: 1, charge });
            order.news.try_send(News::Part { item: number, leaf: spec.leaf, fetched }).unwrap();
        }
        order.news.try_send(News::Ended(Ok(()))).unwrap();
    }
}

/// What a segment holds: metric, host and shelf of each series.
type Contents = [(&'static str, &'static str, &'static str)];

fn files(block: i64, contents: &Contents) -> (Vec<u8>, Vec<u8>) {
    let labels = |(metric, host, shelf): &(&str, &str, &str)| {
        Labels::new([("__name__", *metric), ("host", *host), ("shelf", *shelf)]).unwrap()
    };
    let mut series: Vec<Labels> = contents.iter().map(labels).collect();
    series.sort_by(Labels::series_cmp);
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    for labels in series {
        let is_counter = labels.metric().ends_with("_total");
        let family = Family {
            name: labels.metric().trim_end_matches("_total").to_owned(),
            kind: if is_counter { Kind::Counter } else { Kind::Gauge },
            help: format!("About {}.", labels.metric()),
            ..Family::default()
        };
        let ts = [block * HOUR + 1, block * HOUR + 2];
        writer.series(&labels, &Arc::new(family), &ts, &[1.0, 2.0]).unwrap();
    }
    writer.finish(&mut index).unwrap();
    (index, samples)
}

struct Story {
    queries: Queries,
    memory: Arc<Memory>,
    seen: mpsc::Receiver<String>,
    _pool: JoinSet<()>,
    _folder: TempDir,
}

impl Story {
    /// Two hours of one tenant, the first in two shards, and something of somebody else.
    async fn begin(is_mute: bool, limits: EvalLimits) -> Self {
        let folder = TempDir::new().unwrap();
        let data = DataDir::open_or_create(folder.path()).unwrap();
        let catalog = data.catalog(CatalogConfig::default()).await.unwrap();
        let segments: [(&str, i64, Shard, &Contents); 4] = [
            (
                "t",
                0,
                Shard { index: 0, count: 2 },
                &[("hits_total", "a", "1"), ("warmth", "a", "")],
            ),
            ("t", 0, Shard { index: 1, count: 2 }, &[("hits_total", "b", "2")]),
            (
                "t",
                1,
                Shard::WHOLE,
                &[("hits_total", "a", "1"), ("hits_total", "c", ""), ("up", "c", "")],
            ),
            ("other", 0, Shard::WHOLE, &[("secret", "z", "9")]),
        ];
        let mut indexes = BTreeMap::new();
        for (number, (tenant, block, shard, contents)) in segments.into_iter().enumerate() {
            let (index, samples) = files(block, contents);
            let tenant = TenantId::new(tenant).unwrap();
            let id = SegmentId::new(&format!("s{number}")).unwrap();
            let (series_path, samples_path) = ObjectPath::of_segment(&tenant, "u", &id).unwrap();
            let file = |path: &ObjectPath, bytes: &[u8]| StoredFile {
                path: path.clone(),
                size_bytes: bytes.len() as u64,
                checksum: Checksum([u8::try_from(number).unwrap(); 32]),
            };
            let segment = Segment {
                id,
                tenant,
                block: Block { start_ms: block * HOUR, end_ms: (block + 1) * HOUR },
                min_ts: block * HOUR + 1,
                max_ts: block * HOUR + 2,
                shard,
                series_file: file(&series_path, &index),
                samples_file: file(&samples_path, &samples),
                series_count: contents.len() as u64,
                sample_count: contents.len() as u64 * 2,
                written_ms: 0,
                sequence: 0,
            };
            let names: BTreeSet<&str> = contents.iter().map(|series| series.0).collect();
            let metrics = MetricNames::new(names).unwrap();
            catalog.register(&[NewSegment { segment, metrics }], 0).await.unwrap();
            let source = MemorySource::new(series_path.as_str(), index);
            indexes.insert(series_path.to_string(), SeriesIndex::open(&source).unwrap());
        }
        let memory = Memory::new(1 << 20);
        let (coordination, inbox) = Coordination::new();
        let (tell, seen) = mpsc::channel(100);
        let mut pool = JoinSet::new();
        let workers = Pool { indexes, memory: Arc::clone(&memory), is_mute };
        pool.spawn(workers.serve(inbox, tell));
        let queries = Queries::new(Kit {
            coordination,
            segments: Arc::new(Known(catalog.universe().await.unwrap())),
            cores: Arc::new(Cores::new(2)),
            memory: Arc::clone(&memory),
            figures: Arc::new(Figures::default()),
            // Two cells in time, so that there is something to put together.
            size: CellSize { max_segments: 1, ..CellSize::default() },
            limits,
            window: 16,
        });
        Self { queries, memory, seen, _pool: pool, _folder: folder }
    }

    fn seen(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

fn inquiry(selectors: &[&str], wanted: Wanted) -> Inquiry {
    let selector = |text: &&str| parse_selector(text, &Options::default()).unwrap();
    Inquiry {
        tenant: TenantId::new("t").unwrap(),
        selectors: selectors.iter().map(selector).collect(),
        time: 0..=10 * HOUR,
        wanted,
        limit: None,
        timeout: Duration::from_secs(20),
        traceparent: String::new(),
    }
}

fn texts(found: Found) -> Vec<String> {
    let FoundItems::Texts(texts) = found.items else { panic!("texts were wanted") };
    texts
}

fn values_of(label: &str) -> Wanted {
    Wanted::LabelValues(label.to_owned())
}

#[tokio::test]
async fn what_all_cells_hold_is_told_once_and_in_order() {
    let mut story = Story::begin(false, EvalLimits::default()).await;
    let found = story.queries.inquire(inquiry(&["hits_total"], Wanted::Series)).await.unwrap();
    let FoundItems::Series(series) = found.items else { panic!("series were wanted") };
    let series: Vec<String> = series.iter().map(Labels::braced).collect();
    let expected = [
        r#"{__name__="hits_total", host="a", shelf="1"}"#,
        r#"{__name__="hits_total", host="b", shelf="2"}"#,
        r#"{__name__="hits_total", host="c"}"#,
    ];
    assert_eq!((&series[..], found.truncated), (&expected.map(str::to_owned)[..], false));
    let seen = story.seen();
    assert_eq!(seen[..4], ["submit 3", "consumed 1", "consumed 2", "consumed 3"]);

    for (selectors, wanted, expected) in [
        (&["up", "warmth"][..], values_of("host"), &["a", "c"][..]),
        (&[][..], values_of("host"), &["a", "b", "c"][..]),
        (&[r#"{host="b"}"#][..], Wanted::LabelNames, &["__name__", "host", "shelf"][..]),
        (&["up"][..], Wanted::LabelNames, &["__name__", "host"][..]),
        (&[r#"{shelf!=""}"#][..], values_of("__name__"), &["hits_total"][..]),
        (&["nothing"][..], Wanted::LabelNames, &[][..]),
    ] {
        let found = story.queries.inquire(inquiry(selectors, wanted)).await.unwrap();
        assert_eq!(texts(found), expected, "{selectors:?}");
    }
    assert_eq!(story.memory.used_bytes(), 0, "what was answered is not held");
}

#[tokio::test]
async fn metrics_come_with_what_is_known_of_them() {
    let story = Story::begin(false, EvalLimits::default()).await;
    let found = story.queries.inquire(inquiry(&[], Wanted::Metrics)).await.unwrap();
    let FoundItems::Metrics(metrics) = found.items else { panic!("metrics were wanted") };
    let told: Vec<_> =
        metrics.iter().map(|m| (m.name.as_str(), m.kind.as_str(), m.help.as_str())).collect();
    let expected = [
        ("hits_total", "counter", "About hits_total."),
        ("up", "gauge", "About up."),
        ("warmth", "gauge", "About warmth."),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn names_of_metrics_need_no_worker() {
    let mut story = Story::begin(true, EvalLimits::default()).await;
    for (selectors, hours, expected) in [
        (&[][..], 10, &["hits_total", "up", "warmth"][..]),
        (&[][..], 0, &["hits_total", "warmth"][..]),
        (&[r#"{__name__=~"w.*|up"}"#][..], 10, &["up", "warmth"][..]),
        (&["up", "warmth"][..], 0, &["warmth"][..]),
    ] {
        let mut asked = inquiry(selectors, values_of("__name__"));
        asked.time = 0..=hours * HOUR + 5;
        assert_eq!(texts(story.queries.inquire(asked).await.unwrap()), expected, "{selectors:?}");
    }
    assert_eq!(story.seen(), [""; 0]);
}

#[tokio::test]
async fn a_limit_gives_the_first_and_says_that_there_are_more() {
    let story = Story::begin(false, EvalLimits::default()).await;
    for (wanted, limit, expected, truncated) in [
        (values_of("host"), 2, &["a", "b"][..], true),
        (values_of("host"), 3, &["a", "b", "c"][..], false),
        (values_of("__name__"), 1, &["hits_total"][..], true),
        (Wanted::LabelNames, 0, &[][..], true),
    ] {
        let mut asked = inquiry(&[], wanted);
        asked.limit = Some(limit);
        let found = story.queries.inquire(asked).await.unwrap();
        assert_eq!(found.truncated, truncated, "{limit}");
        assert_eq!(texts(found), expected);
    }
}

#[tokio::test]
async fn too_much_is_an_error_that_names_the_limit() {
    let limits = EvalLimits { max_series: 2, ..EvalLimits::default() };
    let mut story = Story::begin(false, limits).await;
    let error = story.queries.inquire(inquiry(&[], values_of("host"))).await.unwrap_err();
    assert!(error.to_string().contains("the limit is max_series"), "{error}");
    assert_eq!(story.memory.used_bytes(), 0);
    assert!(story.seen().contains(&"cancel".to_owned()));
}

#[tokio::test]
async fn an_inquiry_that_nobody_waits_for_is_cancelled_and_one_without_an_answer_ends_in_time() {
    let mut story = Story::begin(true, EvalLimits::default()).await;
    let asked = story.queries.inquire(inquiry(&[], Wanted::Series));
    assert_eq!(story.seen.recv().await.unwrap(), "submit 3");
    drop(asked);
    assert_eq!(story.seen.recv().await.unwrap(), "cancel");

    let timeout = Duration::from_millis(30);
    let hurried = Inquiry { timeout, ..inquiry(&[], Wanted::Series) };
    let error = story.queries.inquire(hurried).await.unwrap_err();
    assert_eq!(error, QueryError::Timeout { timeout });
    assert_eq!(story.seen(), ["submit 3", "cancel"]);

    story.queries.close(Duration::ZERO).await;
    let error = story.queries.inquire(inquiry(&[], Wanted::Series)).await.unwrap_err();
    assert_eq!(error, QueryError::ShuttingDown);
    assert_eq!(story.queries.kit().figures.look().inquiries["timeout"], 1);
}
