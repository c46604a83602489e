//! `tributary segments gc`: removes what nobody needs, and tells of segments that lack a file. What
//! may go is decided in `tributary_catalog::gc`.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use tributary_catalog::gc::{Dangling, GcConfig, GcPlan, GcReport, plan_gc, run_gc, survey};
use tributary_promql::duration::PromDuration;

use super::{Desk, json};
use crate::cli::{Problem, Verdict};
use crate::clock;
use crate::figures::grouped;
use crate::output;

/// What is promised of cleaning, for the help.
pub(super) const PROMISE: &str = "\
Removes files under `segments/` that no segment names, files that were never finished, and the files of
segments that were removed; each only after the grace period. An import under way is safe from it: its
files are young, or it ends with an error that says one is gone. Files with other names are left alone.
A live segment whose file is missing or has another size is told of and never removed.";

/// What `gc` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// How long files are kept after they were written, or after their segment was removed
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = grace)]
    grace: Duration,
}

fn grace(text: &str) -> Result<Duration, String> {
    let duration = PromDuration::parse(text).map_err(|fault| fault.to_string())?;
    let millis = u64::try_from(duration.as_millis()).map_err(|_| "it is negative".to_owned())?;
    Ok(Duration::from_millis(millis))
}

/// What was done, or would be.
#[derive(Debug, Default, Serialize)]
struct Answer {
    dry_run: bool,
    /// Paths of what would be removed; of a real run only the counts are known.
    would_remove: Vec<String>,
    files: usize,
    bytes: u64,
    unfinished: usize,
    segments_forgotten: usize,
    /// Files without a segment that are too young to be removed.
    young: usize,
    /// Files that are not named as ours are.
    foreign: Vec<String>,
    damaged: Vec<DamagedLine>,
}

#[derive(Debug, Serialize)]
struct DamagedLine {
    segment: String,
    path: String,
    expected_bytes: u64,
    found_bytes: Option<u64>,
}

impl From<&Dangling> for DamagedLine {
    fn from(dangling: &Dangling) -> Self {
        Self {
            segment: dangling.segment.to_string(),
            path: dangling.path.to_string(),
            expected_bytes: dangling.expected_bytes,
            found_bytes: dangling.found_bytes,
        }
    }
}

pub(super) async fn run(desk: &Desk, args: &Args) -> Result<Verdict, Problem> {
    if desk.tenant.is_some() {
        let reason = "a data directory is cleaned as a whole";
        return Err(Problem::SenselessOption { option: "--tenant", reason });
    }
    let store = desk.data_dir.store().map_err(Problem::failed)?;
    let seen = survey(&desk.catalog, &store).await.map_err(Problem::failed)?;
    let plan = plan_gc(&seen, GcConfig { grace: args.grace }, clock::now_ms());
    let answer = if args.dry_run {
        Answer::of_plan(&plan)
    } else {
        let report = run_gc(&desk.catalog, &store, &plan).await.map_err(Problem::failed)?;
        Answer::of_report(&plan, &report)
    };
    let mut out = output::standard();
    if desk.json {
        writeln!(out, "{}", json(&answer))?;
    } else {
        write(&mut out, &answer)?;
    }
    out.flush()?;
    Ok(if answer.damaged.is_empty() { Verdict::Good } else { Verdict::Broken })
}

impl Answer {
    fn of_plan(plan: &GcPlan) -> Self {
        let orphans = plan.orphans.iter().map(|orphan| orphan.path.to_string());
        let leftovers = plan.leftovers.iter().map(|leftover| leftover.path().display().to_string());
        Self {
            dry_run: true,
            would_remove: orphans.chain(leftovers).collect(),
            files: plan.orphans.len() + 2 * plan.expired.len(),
            bytes: plan.orphans.iter().map(|orphan| orphan.size_bytes).sum(),
            unfinished: plan.leftovers.len(),
            segments_forgotten: plan.expired.len(),
            damaged: plan.dangling.iter().map(DamagedLine::from).collect(),
            ..Self::left_alone(plan)
        }
    }

    fn of_report(plan: &GcPlan, report: &GcReport) -> Self {
        Self {
            files: report.files_removed,
            bytes: report.bytes_removed,
            unfinished: report.leftovers_removed,
            segments_forgotten: report.segments_forgotten,
            damaged: report.dangling.iter().map(DamagedLine::from).collect(),
            ..Self::left_alone(plan)
        }
    }

    fn left_alone(plan: &GcPlan) -> Self {
        Self { young: plan.young, foreign: plan.foreign.clone(), ..Self::default() }
    }
}

fn write(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    for path in &answer.would_remove {
        writeln!(out, "{path}")?;
    }
    let removed = if answer.dry_run { "would remove" } else { "removed" };
    writeln!(
        out,
        "{removed} {} files that no live segment names ({} bytes) and {} unfinished ones",
        grouped(answer.files as u64),
        grouped(answer.bytes),
        grouped(answer.unfinished as u64)
    )?;
    if answer.segments_forgotten > 0 {
        writeln!(out, "{} removed segments forgotten", grouped(answer.segments_forgotten as u64))?;
    }
    if answer.young > 0 {
        writeln!(out, "{} files too young to remove", grouped(answer.young as u64))?;
    }
    for name in &answer.foreign {
        writeln!(out, "left alone: {name}")?;
    }
    for line in &answer.damaged {
        let found = match line.found_bytes {
            None => "is missing".to_owned(),
            Some(bytes) => {
                format!("has {} bytes, not {}", grouped(bytes), grouped(line.expected_bytes))
            }
        };
        writeln!(out, "damaged: segment {}: {} {found}", line.segment, line.path)?;
    }
    Ok(())
}
