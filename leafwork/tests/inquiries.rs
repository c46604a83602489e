//! Inquiries through all that they go through: series become segments, inquiries become specs, specs
//! run over the indexes, parts become artifacts and come back. What is told is what looking at every
//! series finds.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use tributary_leafwork::{
    BadSpec, MetricTold, RunError, SeriesInquiry, Tell, Work, artifact, inquiry_leaf, label_told,
    metric_told, spec_of,
};
use tributary_promql::eval::EvalError;
use tributary_promql::leaf::{PartTable, PartValues, TimeSpan};
use tributary_promql::matcher::Condition;
use tributary_promql::pattern::Pattern;
use tributary_promql::{EvalLimits, Labels, Matcher};
use tributary_segment::{Family, Kind, MemorySource, SegmentWriter, SeriesIndex, WriteOptions};

/// A series: its metric, host and job, and when its first and last samples are.
#[derive(Clone, Debug)]
struct Line {
    metric: usize,
    host: usize,
    job: usize,
    first: i64,
    length: i64,
}

const METRICS: [&str; 3] = ["hits_total", "temperature", "up"];
const HOSTS: [&str; 4] = ["", "a", "b", "ü"];

fn line() -> impl Strategy<Value = Line> {
    (0..3_usize, 0..4_usize, 0..3_usize, 0..90_i64, 0..40_i64)
        .prop_map(|(metric, host, job, first, length)| Line { metric, host, job, first, length })
}

impl Line {
    fn labels(&self) -> Labels {
        let job = self.job.to_string();
        let pairs = [("__name__", METRICS[self.metric]), ("host", HOSTS[self.host]), ("job", &job)];
        Labels::new(pairs).unwrap()
    }

    fn family(&self) -> Family {
        let (name, kind, unit, help) = [
            ("hits", Kind::Counter, "", "Hits so far."),
            ("temperature", Kind::Gauge, "celsius", "How warm it is."),
            ("", Kind::Unknown, "", ""),
        ][self.metric];
        let (unit, help) = (unit.to_owned(), help.to_owned());
        Family { name: name.to_owned(), kind, unit, help }
    }

    fn told(&self) -> MetricTold {
        let Family { kind, unit, help, .. } = self.family();
        MetricTold { name: METRICS[self.metric].into(), kind: kind.to_string(), help, unit }
    }
}

/// The index of a segment. Of lines with the same labels the first counts.
fn index(lines: &[Line]) -> (SeriesIndex, Vec<Line>) {
    let mut kept: Vec<Line> = Vec::new();
    for line in lines {
        if kept.iter().all(|other| other.labels() != line.labels()) {
            kept.push(line.clone());
        }
    }
    kept.sort_by(|one, other| one.labels().series_cmp(&other.labels()));
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    for line in &kept {
        let mut ts = vec![line.first, line.first + line.length];
        ts.dedup();
        let values = vec![1.0; ts.len()];
        writer.series(&line.labels(), &Arc::new(line.family()), &ts, &values).unwrap();
    }
    writer.finish(&mut index).unwrap();
    (SeriesIndex::open(&MemorySource::new("series", index)).unwrap(), kept)
}

fn work(matchers: Vec<Matcher>, inquiry: SeriesInquiry) -> Work {
    Work {
        leaf: inquiry_leaf(matchers),
        span: TimeSpan::ALL,
        place: 0,
        segments: Vec::new(),
        limits: EvalLimits::default(),
        inquiry: Some(inquiry),
    }
}

/// The artifact that a worker makes of the work.
fn made(work: &Work, indexes: &[SeriesIndex]) -> Result<Vec<u8>, RunError> {
    let spec = spec_of(work).encode();
    let work = Work::of(&spec, &work.limits).unwrap();
    let indexes: Vec<_> = indexes.iter().collect();
    let part = work.inquire(work.inquiry.as_ref().unwrap(), &indexes, || false)?;
    let mut file = Vec::new();
    artifact::write(&PartTable::of(&work.leaf, &part), &spec, &mut file).unwrap();
    Ok(file)
}

/// What the artifact tells.
fn told(work: &Work, file: Vec<u8>) -> Vec<Labels> {
    let table = artifact::read(Bytes::from(file), &spec_of(work).encode(), 1_000_000).unwrap();
    let part = table.into_part(&work.leaf, work.span, work.place).unwrap();
    assert!(part.crossing.is_empty(), "everything is told within the span");
    let PartValues::Rows(rows) = part.values else { panic!("nothing was aggregated") };
    rows.into_iter().map(|row| row.labels).collect()
}

fn tell() -> impl Strategy<Value = Tell> {
    let label = prop::sample::select(vec!["host", "job", "__name__", "nobody"]);
    prop_oneof![
        Just(Tell::Series),
        Just(Tell::LabelNames),
        label.prop_map(|label| Tell::LabelValues(label.to_owned())),
        Just(Tell::Metrics),
    ]
}

fn matcher() -> impl Strategy<Value = Matcher> {
    let pattern = |text: &str| Pattern::parse(text, 1_000).unwrap();
    let condition = prop::sample::select(vec![
        Condition::Equal("a".into()),
        Condition::Equal(String::new()),
        Condition::NotEqual("up".into()),
        Condition::Matches(pattern("hits.*|[ab]")),
        Condition::MatchesNot(pattern("u.*|1")),
    ]);
    let name = prop::sample::select(vec!["__name__", "host", "job"]);
    (name, condition).prop_map(|(name, condition)| Matcher { name: name.to_owned(), condition })
}

proptest! {
    #[test]
    fn what_is_told_is_what_looking_at_every_series_finds(
        segments in prop::collection::vec(prop::collection::vec(line(), 0..15), 0..4),
        matchers in prop::collection::vec(matcher(), 0..3),
        tell in tell(), from in -5..140_i64, length in 0..60_i64, limit in 0..6_u64,
    ) {
        let (indexes, kept): (Vec<_>, Vec<_>) = segments.iter().map(|lines| index(lines)).unzip();
        let work = work(matchers, SeriesInquiry { from, to: from + length, tell: tell.clone(), limit });
        let file = made(&work, &indexes).unwrap();
        prop_assert_eq!(&file, &made(&work, &indexes).unwrap(), "equal work gives equal bytes");
        let told = told(&work, file);

        let counts = |line: &&Line| {
            let labels = line.labels();
            line.first <= from + length
                && line.first + line.length >= from
                && work.leaf.matchers.iter().all(|matcher| {
                    let matcher = tributary_segment::Matcher::of(matcher).unwrap();
                    matcher.matches(labels.value(matcher.name()))
                })
        };
        let found: Vec<&Line> = kept.iter().flatten().filter(counts).collect();
        let most = if limit == 0 { usize::MAX } else { usize::try_from(limit).unwrap() };
        match tell {
            Tell::Series => {
                let all: BTreeSet<Labels> = found.iter().map(|line| line.labels()).collect();
                prop_assert_eq!(told, all.into_iter().take(most).collect::<Vec<_>>());
            }
            Tell::LabelNames => {
                let labels: Vec<Labels> = found.iter().map(|line| line.labels()).collect();
                let all: BTreeSet<&str> = labels.iter().flat_map(|l| l.iter().map(|p| p.0)).collect();
                let told: Vec<&str> = told.iter().map(label_told).collect();
                prop_assert_eq!(told, all.into_iter().take(most).collect::<Vec<_>>());
            }
            Tell::LabelValues(label) => {
                let labels: Vec<Labels> = found.iter().map(|line| line.labels()).collect();
                let all: BTreeSet<&str> = labels.iter().filter_map(|l| l.get(&label)).collect();
                let told: Vec<&str> = told.iter().map(|told| told.value(&label)).collect();
                prop_assert_eq!(told, all.into_iter().take(most).collect::<Vec<_>>());
            }
            Tell::Metrics => {
                let all: BTreeSet<MetricTold> = found.iter().map(|line| line.told()).collect();
                let mut told: Vec<MetricTold> = told.iter().map(metric_told).collect();
                // Parts are sorted by labels, and the help stands before the name there.
                told.sort();
                prop_assert_eq!(told, all.into_iter().take(most).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn damaged_specs_of_inquiries_are_refused_or_can_be_run(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), tell in tell(),
    ) {
        let inquiry = SeriesInquiry { from: 0, to: 100, tell, limit: 0 };
        let mut bytes = spec_of(&work(Vec::new(), inquiry)).encode().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(work) = Work::of(&bytes, &EvalLimits::default())
            && let Some(inquiry) = &work.inquiry
        {
            let line = Line { metric: 0, host: 1, job: 1, first: 5, length: 5 };
            let _ = work.inquire(inquiry, &[&index(&[line]).0], || false);
        }
    }
}

fn everything(tell: Tell) -> SeriesInquiry {
    SeriesInquiry { from: i64::MIN, to: i64::MAX, tell, limit: 0 }
}

#[test]
fn more_than_is_allowed_is_an_error_that_names_the_limit() {
    let lines: Vec<Line> =
        (0..12).map(|n| Line { metric: 0, host: n % 4, job: n / 4, first: 0, length: 9 }).collect();
    let indexes = [index(&lines).0];
    let mut work = work(Vec::new(), everything(Tell::Series));
    assert_eq!(told(&work, made(&work, &indexes).unwrap()).len(), 12);
    work.limits.max_series = 11;
    let error = made(&work, &indexes).unwrap_err();
    assert!(matches!(error, RunError::Eval(EvalError::Limit { setting: "max_series", .. })));
    // What is asked for in few needs no more than that few.
    work.inquiry.as_mut().unwrap().limit = 3;
    assert_eq!(told(&work, made(&work, &indexes).unwrap()).len(), 3);
    work.limits.max_label_bytes = 50;
    let error = made(&work, &indexes).unwrap_err();
    assert!(matches!(error, RunError::Eval(EvalError::Limit { setting: "max_label_bytes", .. })));
}

#[test]
fn nobody_waits_for_an_inquiry_that_was_cancelled() {
    let line = Line { metric: 0, host: 1, job: 1, first: 5, length: 5 };
    let work = work(Vec::new(), everything(Tell::LabelNames));
    let outcome = work.inquire(work.inquiry.as_ref().unwrap(), &[&index(&[line]).0], || true);
    assert!(matches!(outcome, Err(RunError::Cancelled(_))));
}

#[test]
fn inquiries_that_make_no_sense_are_refused() {
    let good = work(Vec::new(), everything(Tell::Series));
    let refused = |change: &dyn Fn(&mut Work)| {
        let mut bad = good.clone();
        change(&mut bad);
        Work::of(&spec_of(&bad).encode(), &EvalLimits::default()).unwrap_err()
    };
    let inquiry = |work: &mut Work, change: &dyn Fn(&mut SeriesInquiry)| {
        change(work.inquiry.as_mut().unwrap());
    };
    assert!(Work::of(&spec_of(&good).encode(), &EvalLimits::default()).is_ok());
    let backwards = refused(&|work| inquiry(work, &|i| (i.from, i.to) = (1, 0)));
    assert_eq!(backwards, BadSpec::Impossible("time of an inquiry"));
    let nameless = refused(&|work| inquiry(work, &|i| i.tell = Tell::LabelValues(String::new())));
    assert_eq!(nameless, BadSpec::Impossible("label of an inquiry"));
    let bounded = refused(&|work| work.span.to = 7);
    assert_eq!(bounded, BadSpec::Impossible("span of an inquiry"));
    let stepped = refused(&|work| work.leaf.windows.count = 2);
    assert_eq!(stepped, BadSpec::Impossible("leaf of an inquiry"));
}
