//! The data that is asked: series of several tenants, made from a seed as text, and imported with the
//! binary's own command.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::dice::Dice;
use crate::error::ChaosError;

/// Whose data there is.
pub const TENANTS: [&str; 3] = ["default", "acme", "globex"];

/// The first sample, in milliseconds of the Unix epoch: a fixed day, so that a run can be repeated.
pub const BEGIN_MS: i64 = 1_767_225_600_000;

/// The samples span this long.
pub const SPAN_MS: i64 = 4 * 60 * 60 * 1_000;

/// From one sample to the next.
const SCRAPE_MS: i64 = 15_000;

/// How the segments are cut: short blocks and several shards, so that a query has many work items.
const BLOCK: &str = "20m";
const SHARDS: &str = "3";

/// Makes a tenant's samples as Prometheus' text with timestamps.
pub fn text(dice: &mut Dice) -> String {
    let mut out = String::new();
    let steps = SPAN_MS / SCRAPE_MS;
    out.push_str("# TYPE requests_total counter\n");
    for instance in 0..4 {
        for (job, code) in [("web", 200), ("web", 500), ("db", 200)] {
            let labels = format!("job=\"{job}\",instance=\"host-{instance}\",code=\"{code}\"");
            let mut count = 0_u64;
            let reset = dice.within(100..900);
            for step in 0..steps {
                count += dice.within(0..if code == 200 { 50 } else { 3 });
                if step.unsigned_abs() == reset {
                    count = 0;
                }
                // A host that was not scraped for a while.
                if instance == 3 && (300..330).contains(&step) {
                    continue;
                }
                let t = BEGIN_MS + step * SCRAPE_MS;
                let _ = writeln!(out, "requests_total{{{labels}}} {count} {t}");
            }
        }
    }
    out.push_str("# TYPE memory_bytes gauge\n");
    for instance in 0..4 {
        let mut value = dice.within(1 << 20..1 << 30);
        for step in 0..steps {
            value = value
                .saturating_add(dice.within(0..1 << 16))
                .saturating_sub(dice.within(0..1 << 16));
            let t = BEGIN_MS + step * SCRAPE_MS + 7;
            let _ = writeln!(out, "memory_bytes{{instance=\"host-{instance}\"}} {value}.25 {t}");
        }
    }
    out.push_str("# TYPE latency_seconds histogram\n");
    for instance in 0..2 {
        let mut counts = [0_u64; 4];
        let mut sum = 0.0;
        for step in 0..steps {
            let t = BEGIN_MS + step * SCRAPE_MS;
            for _ in 0..dice.within(1..20) {
                let slot = dice.below(4);
                counts[slot..].iter_mut().for_each(|count| *count += 1);
                // Every power of two is exact, and their sums are no round numbers for long.
                sum += [0.05, 0.3, 0.7, 3.0][slot];
            }
            for (le, count) in ["0.1", "0.5", "1", "+Inf"].iter().zip(counts) {
                let _ = writeln!(
                    out,
                    "latency_seconds_bucket{{instance=\"host-{instance}\",le=\"{le}\"}} {count} {t}"
                );
            }
            let _ = writeln!(out, "latency_seconds_sum{{instance=\"host-{instance}\"}} {sum} {t}");
            let count = counts[3];
            let _ =
                writeln!(out, "latency_seconds_count{{instance=\"host-{instance}\"}} {count} {t}");
        }
    }
    out
}

/// Makes a data directory with the data of all tenants.
pub fn import(binary: &Path, folder: &Path, scratch: &Path, seed: u64) -> Result<(), ChaosError> {
    for (number, tenant) in TENANTS.iter().enumerate() {
        let file = scratch.join(format!("{tenant}.txt"));
        let mut dice = Dice::of(seed).fork(number as u64);
        std::fs::write(&file, text(&mut dice)).map_err(ChaosError::file(&file))?;
        let mut command = Command::new(binary);
        command.arg("import").arg("--data-dir").arg(folder);
        command.args(["--tenant", tenant, "--block", BLOCK, "--shards", SHARDS]);
        command.args(["--format", "prometheus"]).arg(&file);
        let done = command.output().map_err(ChaosError::file(binary))?;
        if !done.status.success() {
            let output = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(ChaosError::Import { output });
        }
        std::fs::remove_file(&file).map_err(ChaosError::file(&file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_text_and_another_makes_another() {
        let [one, same, other] = [1, 1, 2].map(|seed| text(&mut Dice::of(seed)));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert!(one.lines().count() > 20_000);
    }
}
