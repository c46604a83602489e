//! The test scripts of PromQL through a whole cluster in this process: segments, work items, control
//! streams, artifacts over HTTP. The answers are those of the engine that has none of this, bit for
//! bit, whatever the number of workers.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use core_workcoord::id::TenantId;
use tokio::runtime::Runtime;
use tributary_api::config::ApiConfig;
use tributary_api::question::Question;
use tributary_integration::cluster::Cluster;
use tributary_integration::segments::{Cut, Series};
use tributary_promql::{Answer, EvalOptions, QuerySpec, parse};
use tributary_promqltest::{
    DataSet, Engine, LocalEngine, Query, Report, Script, Time, Way, find_scripts, run,
};

/// Answers by way of a cluster. Every data set becomes a tenant of its own.
struct ClusterEngine {
    runtime: Runtime,
    cluster: Cluster,
    /// What was loaded last, and as whose.
    held: Mutex<(Vec<Series>, u32)>,
}

impl ClusterEngine {
    /// With an even number of workers, artifacts are fetched into files however small they are.
    fn start(workers: usize) -> Self {
        let runtime = Runtime::new().unwrap();
        let tune = |config: &mut ApiConfig| {
            if workers.is_multiple_of(2) {
                config.fetch.in_memory_bytes = 0;
            }
        };
        let cluster = runtime.block_on(Cluster::start(workers, tune)).unwrap();
        Self { runtime, cluster, held: Mutex::default() }
    }

    fn tenant_of(&self, data: &DataSet) -> TenantId {
        let loads: Vec<Series> = data.loads().iter().map(series_of).collect();
        let mut held = self.held.lock().unwrap();
        let name = |number: u32| TenantId::new(&format!("t{number}")).unwrap();
        if same(&held.0, &loads) && held.1 > 0 {
            return name(held.1);
        }
        *held = (loads, held.1 + 1);
        let tenant = name(held.1);
        for load in held.0.iter().filter(|load| !load.is_empty()) {
            let all = || load.values().flat_map(|(ts, _)| ts.iter().copied());
            let length = all().max().unwrap() - all().min().unwrap();
            let cut = Cut { block_ms: length / 3 + 1, shards: 2 };
            self.runtime.block_on(self.cluster.add(&tenant, load, cut)).unwrap();
        }
        tenant
    }
}

fn series_of(load: &tributary_promqltest::Series) -> Series {
    load.iter().map(|(labels, it)| (labels.clone(), (it.ts.clone(), it.values.clone()))).collect()
}

/// Equal to the last bit: staleness marks are not equal to themselves.
fn same(one: &[Series], other: &[Series]) -> bool {
    let bits = |loads: &[Series]| -> Vec<_> {
        let all = loads.iter().flatten();
        all.map(|(labels, (ts, values))| {
            let values: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            (labels.clone(), ts.clone(), values)
        })
        .collect()
    };
    one.len() == other.len() && bits(one) == bits(other)
}

impl Engine for ClusterEngine {
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String> {
        let settings = &query.settings;
        let expr = parse(&query.text, &settings.options).map_err(|error| error.to_string())?;
        let question = Question {
            tenant: self.tenant_of(data),
            expr,
            spec: match query.time {
                Time::Instant { at } => QuerySpec::instant(at),
                Time::Range { start, end, step } => QuerySpec::range(start, end, step),
            },
            options: EvalOptions {
                lookback: settings.lookback_ms,
                subquery_step: settings.subquery_step_ms,
                delayed_name_removal: settings.delayed_name_removal,
                ..EvalOptions::default()
            },
            timeout: Duration::from_secs(60),
            traceparent: String::new(),
        };
        let queries = self.cluster.api.queries();
        let answer = self.runtime.block_on(async { queries.ask(question).answer().await });
        answer.map(|(answer, _)| answer).map_err(|error| error.to_string())
    }
}

fn assert_passes(folder: &Path, workers: &[usize]) {
    let mut ways: Vec<Way> = vec![("one cell".to_owned(), Box::new(LocalEngine::default()))];
    for count in workers {
        ways.push((format!("{count} workers"), Box::new(ClusterEngine::start(*count))));
    }
    let mut report = Report::default();
    for path in find_scripts(&[folder.to_owned()]).unwrap() {
        let script = Script::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        report.files.push(run(&path.display().to_string(), &script, &ways, || {}));
    }
    let mut text = Vec::new();
    report.write(&mut text).unwrap();
    assert_eq!(report.failed(), 0, "{}", String::from_utf8_lossy(&text));
    assert!(report.passed() > 0, "no case was found");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn our_own_scripts_pass_through_a_cluster() {
    assert_passes(&root().join("promql/tests/golden"), &[1, 2]);
}

#[test]
fn the_corpus_passes_through_a_cluster_where_it_is_at_hand() {
    let corpus = root().join("../shared/promqltest");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus beside the repository");
        return;
    }
    assert_passes(&corpus, &[3]);
}
