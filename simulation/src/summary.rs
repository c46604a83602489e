//! What came of many seeds.

use std::fmt;

use crate::fault::FAULT_NAMES;
use crate::report::{Report, Tally};
use crate::rng::mix;
use crate::story::SECOND;
use crate::violation::Violation;

/// What came of many seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The first seed.
    pub from: u64,
    /// How many seeds were run.
    pub seeds: u64,
    /// Of those, how many had no fault at all.
    pub faultless: u64,
    /// Everything that happened, in numbers.
    pub tally: Tally,
    /// Broken promises, by seed.
    pub violations: Vec<Violation>,
    /// Follows from every action of every node of every seed.
    pub fingerprint: u64,
}

impl Summary {
    pub(crate) fn new(from: u64) -> Self {
        Self {
            from,
            seeds: 0,
            faultless: 0,
            tally: Tally::default(),
            violations: Vec::new(),
            fingerprint: 0,
        }
    }

    pub(crate) fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.faultless += u64::from(report.tally.faults.iter().all(|count| *count == 0));
        self.tally.add(&report.tally);
        self.violations.extend(report.violation.clone());
        self.fingerprint = mix(self.fingerprint ^ report.fingerprint);
    }

    /// Simulated time, in seconds.
    pub fn simulated_seconds(&self) -> u64 {
        self.tally.simulated_nanos / SECOND
    }

    /// Faults that came to pass, by name.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FAULT_NAMES.into_iter().zip(self.tally.faults)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>12}", "seeds", self.seeds)?;
        writeln!(f, "{:<24}{:>12}", "  without a fault", self.faultless)?;
        writeln!(f, "{:<24}{:>12}", "simulated seconds", self.simulated_seconds())?;
        writeln!(f, "faults")?;
        for (name, count) in self.faults() {
            writeln!(f, "  {name:<22}{count:>12}")?;
        }
        for (name, count) in self.tally.each().filter(|(name, _)| *name != "simulated_nanos") {
            writeln!(f, "{:<24}{count:>12}", name.replace('_', " "))?;
        }
        write!(f, "{:<24}{:>12}", "broken promises", self.violations.len())
    }
}
