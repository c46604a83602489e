//! The figures of a simulation, for people: one name, one number and, where it helps, a remark.

use std::fmt::Display;
use std::io::{self, Write};

use tributary_simulation::Summary;

use super::Effort;
use crate::figures::{grouped, ratio};

/// Writes the table.
pub(super) fn write(out: &mut impl Write, summary: &Summary, effort: &Effort) -> io::Result<()> {
    let tally = &summary.tally;
    let last = summary.from + summary.seeds.saturating_sub(1);
    let seeds = format!("{} to {last}, {} without a fault", summary.from, summary.faultless);
    row(out, "seeds", summary.seeds, seeds)?;
    row(out, "simulated time", summary.simulated_seconds(), "seconds")?;
    row(out, "events", tally.events, "")?;

    let faults: u64 = tally.faults.iter().sum();
    row(out, "faults", faults, "")?;
    for (name, count) in summary.faults() {
        row(out, &format!("  {name}"), count, "")?;
    }

    let reasons = [
        ("deadline", tally.failed_deadline),
        ("work failed", tally.failed_work),
        ("attempts exhausted", tally.failed_exhausted),
        ("poisonous", tally.failed_poisonous),
        ("too large", tally.failed_too_large),
    ];
    row(out, "queries", tally.queries, "")?;
    row(out, "  complete", tally.complete, "")?;
    row(out, "  cancelled", tally.cancelled, "their client left")?;
    row(out, "  failed", tally.failed(), listed(&reasons))?;
    row(out, "  refused", tally.refused, "")?;
    row(out, "  lost", tally.queries_lost, "with the API node that had them")?;

    row(out, "work assigned", tally.assigned, "")?;
    row(out, "  reassigned", tally.reassigned, "")?;
    row(out, "  hedged", tally.hedged, "")?;
    row(out, "  rejected", tally.rejected, "")?;
    row(out, "  cancelled", tally.cancelled_work, "")?;

    let seconds = effort.took.as_secs_f64();
    let threads = if effort.threads == 1 { "thread" } else { "threads" };
    let core_seconds = seconds * u32::try_from(effort.cores).map_or(f64::MAX, f64::from);
    let speed = ratio(effort.seeds, core_seconds);
    row(out, "violations", count(&summary.violations), "")?;
    writeln!(out, "\n{speed:.1} seeds/s per core ({} {threads}, {seconds:.1} s)", effort.threads)
}

fn row(out: &mut impl Write, name: &str, figure: u64, remark: impl Display) -> io::Result<()> {
    let line = format!("{name:<22} {:>14}  {remark}", grouped(figure));
    writeln!(out, "{}", line.trim_end())
}

fn count<T>(things: &[T]) -> u64 {
    u64::try_from(things.len()).unwrap_or(u64::MAX)
}

/// The reasons that occurred, with their numbers.
fn listed(reasons: &[(&str, u64)]) -> String {
    let occurred = reasons.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> =
        occurred.map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_occurred_are_listed() {
        assert_eq!(
            listed(&[("deadline", 1_200), ("poisonous", 0), ("other", 3)]),
            "deadline 1,200, other 3"
        );
        assert_eq!(listed(&[("deadline", 0)]), "");
    }
}
