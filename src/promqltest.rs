//! `tributary promqltest`: runs test scripts of PromQL and says what came of them. Reading scripts,
//! judging answers and the report belong to `tributary_promqltest`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use tributary_promqltest::{
    FileReport, Report, Script, find_scripts, local_ways, run as run_script,
};

use crate::cli::{Problem, Verdict};
use crate::output;

/// What is promised of a run and what the exit code says, for the help.
pub(crate) const PROMISE: &str = "\
The scripts are written in the language of Prometheus' own `.test` files. Every case is asked with
its data in one piece and cut into cells, with aggregation in the leaves and without: all answers
must be the same to the last bit, and as the script expects. Instant queries are asked again with
`@` at other times and as a part of range queries. Cases that need native histograms or start
timestamps are skipped. The last line is `N passed, M failed, K skipped`.

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
}

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
    let ways = local_ways(args.seeds);
    let mut report = Report::default();
    for (name, script) in scripts {
        report.files.push(match script {
            Ok(script) => run_script(&name, &script, &ways, || bar.inc(1)),
            Err(error) => FileReport::unreadable(&name, error),
        });
    }
    bar.finish_and_clear();

    let mut out = output::standard();
    report.write(&mut out)?;
    out.flush()?;
    Ok(if report.failed() == 0 { Verdict::Good } else { Verdict::Broken })
}

/// Drawn on standard error, and only where that is a terminal.
fn progress_bar(cases: usize) -> ProgressBar {
    let template = "{bar:40} {human_pos} of {human_len} cases, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(cases as u64).with_style(style)
}
