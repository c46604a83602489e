//! Test scripts through all that a work item goes through: samples become segments, each load its
//! own so that they overlap; leaves become specs, specs run over the segments, parts become
//! artifacts and come back. The answers are those of the engine that has none of this, bit for bit.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tributary_leafwork::{Work, artifact, spec_of};
use tributary_promql::leaf::{LeafPart, PartTable, TimeSpan};
use tributary_promql::{Answer, EvalFlow, EvalLimits, Plan, PlannedLeaf};
use tributary_promqltest::{
    Cell, DataSet, Engine, LocalEngine, Query, Report, Script, Series, Way, cut, find_scripts, run,
};
use tributary_segment::{
    CellBuffers, Family, MemorySource, Segment, SegmentWriter, SeriesIndex, WriteOptions,
};

/// Answers from segments, by way of specs and artifacts.
struct SegmentEngine {
    cuts: Option<u64>,
}

impl Engine for SegmentEngine {
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String> {
        let plan = query.plan(true)?;
        let cells = match self.cuts {
            Some(seed) => cut(data, seed),
            None => vec![Cell { from: i64::MIN, to: i64::MAX, shard: 0, data: data.clone() }],
        };
        answer(&plan, &cells)
    }
}

fn answer(plan: &Plan, cells: &[Cell]) -> Result<Answer, String> {
    let span = |cell: &Cell| TimeSpan { from: cell.from, to: cell.to };
    let expected: Vec<_> = cells.iter().map(|cell| (span(cell), cell.shard)).collect();
    let mut flow = EvalFlow::new(plan, vec![expected; plan.leaves.len()]);
    for cell in cells {
        let loads = cell.data.loads().iter().filter(|load| !load.is_empty());
        let segments: Vec<_> = loads.map(segment).collect();
        let segments: Vec<_> = segments.iter().collect();
        for (number, planned) in plan.leaves.iter().enumerate() {
            let part = part(planned, span(cell), cell.shard, &segments)?;
            flow.add(number, part);
        }
    }
    flow.answer().map_err(|error| error.to_string())
}

fn segment(series: &Series) -> Segment<MemorySource> {
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    let family = Arc::new(Family::default());
    let mut series: Vec<_> = series.iter().collect();
    series.sort_by(|one, other| one.0.series_cmp(other.0));
    for (labels, samples) in series {
        writer.series(labels, &family, &samples.ts, &samples.values).unwrap();
    }
    writer.finish(&mut index).unwrap();
    let index = SeriesIndex::open(&MemorySource::new("series", index)).unwrap();
    Segment::open(Arc::new(index), MemorySource::new("samples", samples)).unwrap()
}

fn part(
    planned: &PlannedLeaf,
    span: TimeSpan,
    place: u32,
    segments: &[&Segment<MemorySource>],
) -> Result<LeafPart, String> {
    let limits = EvalLimits::default();
    let leaf = planned.leaf.clone();
    let work = Work { leaf, span, place, segments: Vec::new(), limits, inquiry: None };
    let sent = spec_of(&work).encode();
    let work = Work::of(&sent, &limits).unwrap();
    let part = work.run(segments, &mut CellBuffers::default(), || false);
    let part = part.map_err(|error| error.to_string())?;
    let mut file = Vec::new();
    artifact::write(&PartTable::of(&work.leaf, &part), &sent, &mut file).unwrap();
    let table = artifact::read(Bytes::from(file), &sent, limits.max_values).unwrap();
    Ok(table.into_part(&planned.leaf, span, place).unwrap())
}

fn run_all(folder: &Path) -> Report {
    let ways: Vec<Way> = vec![
        ("one cell".to_owned(), Box::new(LocalEngine::default())),
        ("one segment a load".to_owned(), Box::new(SegmentEngine { cuts: None })),
        ("segments of cells".to_owned(), Box::new(SegmentEngine { cuts: Some(3) })),
    ];
    let mut report = Report::default();
    for path in find_scripts(&[folder.to_owned()]).unwrap() {
        let script = Script::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        report.files.push(run(&path.display().to_string(), &script, &ways, || {}));
    }
    report
}

fn assert_passes(report: &Report) {
    let mut text = Vec::new();
    report.write(&mut text).unwrap();
    assert_eq!(report.failed(), 0, "{}", String::from_utf8_lossy(&text));
    assert!(report.passed() > 0, "no case was found");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn our_own_scripts_pass_over_segments_and_artifacts() {
    assert_passes(&run_all(&root().join("promql/tests/golden")));
}

#[test]
fn the_corpus_passes_over_segments_and_artifacts_where_it_is_at_hand() {
    let corpus = root().join("../shared/promqltest");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus beside the repository");
        return;
    }
    assert_passes(&run_all(&corpus));
}
