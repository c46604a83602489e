//! What the tests share: segments in memory, series made of chance, sources that count.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proptest::prelude::*;
use tributary_segment::{
    ByteSource, Family, Labels, MemorySource, Segment, SegmentError, SegmentWriter, SeriesIndex,
    WriteOptions,
};

/// Series with their samples, values by their bits.
pub type Model = BTreeMap<Vec<(String, String)>, BTreeMap<i64, u64>>;

/// The labels of a model's series.
pub fn labels(pairs: &[(String, String)]) -> Labels {
    Labels::new(pairs.iter().map(|(name, value)| (name, value))).unwrap()
}

/// Labels from pairs.
pub fn label_set(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(pairs.iter().copied()).unwrap()
}

/// The two files of a segment, in memory.
#[derive(Clone)]
pub struct Files {
    pub series: Bytes,
    pub samples: Bytes,
}

impl Files {
    pub fn of_series(series: &[(Labels, Vec<i64>, Vec<f64>)]) -> Self {
        let mut sorted: Vec<_> = series.iter().collect();
        sorted.sort_by(|a, b| a.0.series_cmp(&b.0));
        let (mut series, mut samples) = (Vec::new(), Vec::new());
        let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
        let family = Arc::new(Family::default());
        for (labels, ts, values) in sorted {
            writer.series(labels, &family, ts, values).unwrap();
        }
        writer.finish(&mut series).unwrap();
        Self { series: series.into(), samples: samples.into() }
    }

    pub fn of_model(model: &Model) -> Self {
        let series: Vec<_> = model
            .iter()
            .map(|(pairs, samples)| {
                let ts = samples.keys().copied().collect();
                let values = samples.values().map(|bits| f64::from_bits(*bits)).collect();
                (labels(pairs), ts, values)
            })
            .collect();
        Self::of_series(&series)
    }

    pub fn index(&self) -> Result<SeriesIndex, SegmentError> {
        SeriesIndex::open(&MemorySource::new("a.series.parquet", self.series.clone()))
    }

    pub fn open(&self) -> Result<Segment<MemorySource>, SegmentError> {
        let samples = MemorySource::new("a.samples.parquet", self.samples.clone());
        Segment::open(Arc::new(self.index()?), samples)
    }
}

/// Label sets over a few names and values, so that they often share some.
pub fn any_pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop::sample::select(vec!["a", "b", "host", "Z", "é", "le"]);
    let value =
        prop::sample::select(vec!["x", "y", "xy", "1.0", "+Inf", "ü\n", "host_1", "host_2"]);
    let metric = prop::sample::select(vec!["", "up", "up_total", "http", "μ"]);
    (metric, prop::collection::btree_map(name, value, 0..4)).prop_map(|(metric, pairs)| {
        let metric = (!metric.is_empty()).then_some(("__name__", metric));
        let pairs = pairs.into_iter().chain(metric);
        let mut pairs: Vec<_> =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        pairs.sort();
        pairs
    })
}

/// Values of every nature: chance, marks, denormals, infinities, whole numbers.
pub fn any_bits() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0x7ff0_0000_0000_0002),
        Just(0x7ff8_0000_0000_0001),
        (1_u64..4).prop_map(|low| low | 0xfff0_0000_0000_0000),
        Just(f64::INFINITY.to_bits()),
        Just((-0.0_f64).to_bits()),
        (0_u64..5).prop_map(|tiny| tiny),
        (0_i32..100).prop_map(|whole| f64::from(whole).to_bits()),
    ]
}

/// A few series with a few samples; timestamps from all of time, and often shared.
pub fn any_model() -> impl Strategy<Value = Model> {
    let near = prop::collection::btree_map(0_i64..30, any_bits(), 1..20);
    let far = prop::collection::btree_map(any::<i64>(), any_bits(), 1..6);
    let scraped = (1_usize..4).prop_flat_map(|len| {
        prop::collection::vec(any_bits(), len)
            .prop_map(|bits| (0_i64..).step_by(15_000).zip(bits).collect::<BTreeMap<_, _>>())
    });
    prop::collection::btree_map(any_pairs(), prop_oneof![near, far, scraped], 0..12)
}

/// Everything a segment holds.
pub fn read_all<S: ByteSource>(segment: &Segment<S>) -> Result<Model, SegmentError> {
    let all: Vec<u32> = (0..segment.index().len()).collect();
    read_some(segment, &all, tributary_segment::TimeRange::ALL)
}

/// Some series of a segment.
pub fn read_some<S: ByteSource>(
    segment: &Segment<S>,
    series: &[u32],
    range: tributary_segment::TimeRange,
) -> Result<Model, SegmentError> {
    let mut model = Model::new();
    let mut buffers = tributary_segment::ScanBuffers::default();
    segment.for_each(series, range, &mut buffers, |samples| {
        let labels = segment.index().labels(samples.series);
        let pairs = labels.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let bits = samples.values.iter().map(|value| value.to_bits());
        model.insert(pairs, samples.ts.iter().copied().zip(bits).collect());
        Ok::<(), SegmentError>(())
    })?;
    Ok(model)
}

/// Counts what is read of a file.
#[derive(Clone)]
pub struct CountingSource {
    inner: MemorySource,
    pub reads: Arc<AtomicU64>,
    pub bytes: Arc<AtomicU64>,
    pub ranges: Arc<Mutex<Vec<Range<u64>>>>,
}

impl CountingSource {
    pub fn new(bytes: Bytes) -> Self {
        Self {
            inner: MemorySource::new("counted", bytes),
            reads: Arc::default(),
            bytes: Arc::default(),
            ranges: Arc::default(),
        }
    }

    pub fn reset(&self) {
        self.reads.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.ranges.lock().unwrap().clear();
    }
}

impl ByteSource for CountingSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_range(&self, range: Range<u64>) -> std::io::Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
        self.ranges.lock().unwrap().push(range.clone());
        self.inner.read_range(range)
    }
}

/// Numbers that look like chance but are the same in every run.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// How many cases a fuzz test runs.
pub fn fuzz_cases(default: u64) -> u64 {
    let cases = std::env::var("TRIBUTARY_FUZZ_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// Series as a scrape makes them: `targets` targets with `each` series of a metric, `rows` scrapes.
pub fn scraped(
    metric: &str,
    targets: usize,
    each: usize,
    rows: usize,
) -> Vec<(Labels, Vec<i64>, Vec<f64>)> {
    let mut chance = Chance(targets as u64);
    let mut all = Vec::new();
    for target in 0..targets {
        let mut at = 1_767_225_600_000 + chance.below(15_000) as i64;
        let ts: Vec<i64> = (0..rows)
            .map(|_| {
                at += 15_000 - 10 + chance.below(20) as i64;
                at
            })
            .collect();
        for number in 0..each {
            let mut total = chance.below(1_000_000) as f64;
            let values = (0..rows)
                .map(|_| {
                    total += chance.below(50) as f64;
                    total
                })
                .collect();
            let host = format!("host_{target:04}");
            let code = format!("{number:03}");
            let labels = label_set(&[("__name__", metric), ("host", &host), ("code", &code)]);
            all.push((labels, ts.clone(), values));
        }
    }
    all
}
