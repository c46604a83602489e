//! `tributary promqltest`: runs test scripts of PromQL and says what came of them, in this process or
//! through a cluster of processes. Reading scripts, judging answers and the report belong to
//! `tributary_promqltest`.

mod cluster;
mod processes;
mod reply;
mod shelf;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use tributary_promqltest::{
    FileReport, Report, Script, ScriptError, Way, data_sets, find_scripts, local_ways,
    run as run_script,
};

use crate::cli::{self, Problem, Verdict};
use crate::output;
use cluster::{ClusterEngine, Model};
use processes::Processes;

/// What is promised of a run and what the exit code says, for the help.
pub(crate) const PROMISE: &str = "\
The scripts are written in the language of Prometheus' own `.test` files. Every case is asked with
its data in one piece and cut into cells, with aggregation in the leaves and without: all answers
must be the same to the last bit, and as the script expects. Instant queries are asked again with
`@` at other times and as a part of range queries. Cases that need native histograms or start
timestamps are skipped. The last line is `N passed, M failed, K skipped`.

With --workers the same questions go to a cluster as well: an API node and so many workers, processes
of their own, over segments that are cut into blocks and shards. Its answers must be the same to the
last bit as those made in one process.

Exit codes: 0 no case failed, 1 some did or a script is broken, 2 the arguments make no sense or a
script can't be read";

/// What `promqltest` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scripts, and folders of `.test` scripts
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// In how many ways the data is cut into cells
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(..=10_000))]
    seeds: u64,

    /// Ask a cluster of so many workers, each a process
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Option<u16>,
}

/// A script, by its name.
type Named = (String, Result<Script, ScriptError>);

/// Threads that ask a cluster at once.
const ASKING: usize = 4;

/// Runs the scripts and prints the report.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let paths = find_scripts(&args.paths).map_err(|(path, error)| Problem::File { path, error })?;
    let mut scripts = Vec::with_capacity(paths.len());
    for path in paths {
        let name = path.display().to_string();
        match fs::read_to_string(&path) {
            Ok(text) => scripts.push((name, Script::parse(&text))),
            Err(error) => return Err(Problem::File { path, error }),
        }
    }
    let cases = scripts.iter().filter_map(|(_, script)| script.as_ref().ok());
    let bar = progress_bar(cases.map(|script| script.cases().count()).sum());
    let report = match args.workers {
        None => {
            let ways = local_ways(args.seeds);
            let files = scripts.iter().map(|script| run_one(script, &ways, &bar));
            Report { files: files.collect() }
        }
        Some(workers) => in_a_cluster(&scripts, workers, &bar)?,
    };
    bar.finish_and_clear();

    let mut out = output::standard();
    report.write(&mut out)?;
    out.flush()?;
    Ok(if report.failed() == 0 { Verdict::Good } else { Verdict::Broken })
}

fn run_one((name, script): &Named, ways: &[Way], bar: &ProgressBar) -> FileReport {
    match script {
        Ok(script) => run_script(name, script, ways, || bar.inc(1)),
        Err(error) => FileReport::unreadable(name, error.clone()),
    }
}

/// Starts a cluster on the data of all scripts and asks it, several scripts at once.
fn in_a_cluster(scripts: &[Named], workers: u16, bar: &ProgressBar) -> Result<Report, Problem> {
    let place = tempfile::tempdir().map_err(Problem::failed)?;
    let data_dir = place.path().join("data");
    let readable = scripts.iter().filter_map(|(_, script)| script.as_ref().ok());
    cli::runtime()?.block_on(shelf::fill(&data_dir, readable.flat_map(data_sets)))?;
    let cluster = Processes::start(&data_dir, place.path(), workers)?;
    ClusterEngine::new(&cluster.url)?.wait_for_workers(workers)?;

    // The longest first, so that nobody is left with one of them at the end.
    let mut order: Vec<usize> = (0..scripts.len()).collect();
    let cases =
        |place: &usize| scripts[*place].1.as_ref().map_or(0, |script| script.cases().count());
    order.sort_by_key(|place| Reverse(cases(place)));
    let queue = Mutex::new(order.into_iter());
    let files = Mutex::new(BTreeMap::new());
    let ask = || -> Result<(), Problem> {
        let way = format!("cluster of {workers}");
        let engine = ClusterEngine::new(&cluster.url)?;
        let ways: [Way; 2] = [("one process".to_owned(), Box::new(Model)), (way, Box::new(engine))];
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(place) = next else { return Ok(()) };
            let file = run_one(&scripts[place], &ways, bar);
            files.lock().unwrap_or_else(PoisonError::into_inner).insert(place, file);
        }
    };
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..ASKING).map(|_| scope.spawn(ask)).collect();
        let joined = asking
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<()>, Problem>>()
    })?;
    let files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Report { files: files.into_values().collect() })
}

/// Drawn on standard error, and only where that is a terminal.
fn progress_bar(cases: usize) -> ProgressBar {
    let template = "{bar:40} {human_pos} of {human_len} cases, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(cases as u64).with_style(style)
}
