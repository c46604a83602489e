//! `tributary simulate`: runs seeds of the simulator and says what came of them. The world, the
//! checks and the shrinking belong to `tributary_simulation`; how the figures look, to `table`.

mod journals;
mod table;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tributary_simulation::{Story, Summary, run_seeds, shrink, tell};

use crate::cli::{Problem, Verdict};
use crate::output;

/// What is promised of a run and what the exit code says, for the help.
pub(crate) const PROMISE: &str = "\
A seed decides everything: the same seed always gives the same story, on any machine and with any
number of threads. Where a promise is broken, the first story that breaks one is made as short as
possible and told; `--seeds 1 --from SEED` runs it again.

Exit codes: 0 every promise was kept, 1 one was broken, 2 the arguments make no sense or a journal
can't be written";

/// What `simulate` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    from: u64,

    /// Threads to run them on [default: one for each core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Run all seeds, even after one broke a promise
    #[arg(long)]
    keep_going: bool,

    /// Write a journal of each life of each node into this folder, for `replay`: those of the first
    /// seed that broke a promise or, with `--seeds 1`, of the only one
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
}

/// How long it took.
struct Effort {
    seeds: u64,
    threads: usize,
    /// Cores that were kept busy.
    cores: usize,
    took: Duration,
}

/// Runs the seeds, prints the figures, and tells the first story that broke a promise.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    if args.from.checked_add(args.seeds).is_none() {
        return Err(Problem::NoSuchSeeds { from: args.from, seeds: args.seeds });
    }
    if let Some(folder) = &args.journal {
        journals::make_folder(folder)?;
    }
    let threads = args.threads.map_or_else(cores, usize::from);
    let bar = progress_bar(args.seeds);
    let begun = Instant::now();
    let summary = run_seeds(args.from, args.seeds, threads, |_| bar.inc(1), !args.keep_going);
    let effort = Effort {
        seeds: bar.position(),
        threads,
        cores: threads.min(cores()),
        took: begun.elapsed(),
    };
    bar.finish_and_clear();

    let mut out = output::standard();
    report(&mut out, &summary, &effort, |seed| tell(&shrink(&Story::of(seed))))?;
    if let Some(folder) = &args.journal {
        match journals::seed(&summary) {
            Some(seed) => {
                let count = journals::write(folder, seed)?;
                writeln!(out, "\n{count} journals of seed {seed} are in {}", folder.display())?;
            }
            None => writeln!(out, "\nno journal was written: every promise was kept")?,
        }
    }
    out.flush()?;
    Ok(if summary.violations.is_empty() { Verdict::Good } else { Verdict::Broken })
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Drawn on standard error, and only where that is a terminal.
fn progress_bar(seeds: u64) -> ProgressBar {
    let template = "{bar:40} {human_pos} of {human_len} seeds, {rate}/s, {eta} left";
    let style = ProgressStyle::with_template(template)
        .expect("the template is well formed")
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            write!(out, "{:.0}", state.per_sec()).expect("a string takes everything");
        });
    ProgressBar::new(seeds).with_style(style)
}

/// The table, then every broken promise in a line, then the story of the first.
fn report(
    out: &mut impl Write,
    summary: &Summary,
    effort: &Effort,
    story_of: impl Fn(u64) -> String,
) -> io::Result<()> {
    table::write(out, summary, effort)?;
    let Some(first) = summary.violations.first() else { return Ok(()) };
    writeln!(out)?;
    for violation in &summary.violations {
        writeln!(out, "{violation}")?;
    }
    // Shrinking takes a while; what is known already should not wait for it.
    out.flush()?;
    writeln!(out, "\nThe shortest story of seed {} that still breaks it:\n", first.seed)?;
    writeln!(out, "{}", story_of(first.seed).trim_end())
}

#[cfg(test)]
mod tests {
    use tributary_simulation::{About, Check, Tally, Violation};

    use super::*;

    fn summary(violations: Vec<Violation>) -> Summary {
        let tally = Tally { queries: 1_234_567, ..Tally::default() };
        Summary { from: 3, seeds: 20, faultless: 2, tally, violations, fingerprint: 0 }
    }

    fn reported(summary: &Summary) -> String {
        let effort = Effort { seeds: 20, threads: 4, cores: 2, took: Duration::from_millis(500) };
        let mut out = Vec::new();
        report(&mut out, summary, &effort, |seed| format!("the story of {seed}\n\n")).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn kept_promises_are_a_table() {
        let text = reported(&summary(vec![]));
        for part in ["3 to 22", "1,234,567", "20.0 seeds/s per core", "violations"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains("story"), "{text}");
    }

    #[test]
    fn every_broken_promise_is_named_and_the_first_one_told() {
        let broken = |seed| Violation {
            seed,
            at: 0,
            number: Check::Simulation(7),
            what: String::from("it was delivered twice"),
            about: About::default(),
        };
        let text = reported(&summary(vec![broken(5), broken(9)]));
        assert!(text.contains("seed 5 at") && text.contains("seed 9 at"), "{text}");
        assert!(text.ends_with("that still breaks it:\n\nthe story of 5\n"), "{text}");
        assert!(!text.contains("the story of 9"), "{text}");
    }
}
