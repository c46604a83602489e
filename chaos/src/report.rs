//! What a run found, in figures: for people as a page, for programs as JSON.

mod chart;
mod figures;
mod page;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::ChaosError;
use crate::fault::{Happened, Kind};
use crate::rest::Footprints;
use crate::scrape::Metrics;
use crate::verdict::{Promise, Violation};
use crate::workload::{Asked, Outcome};

pub use figures::Times;

/// What the machine could do.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Kinds of faults that were chosen from.
    pub kinds: Vec<Kind>,
    /// Kinds that were not, and why.
    pub without: Vec<(Kind, &'static str)>,
    /// How links are made to fall ill.
    pub links: String,
    /// What the segments are in.
    pub store: String,
    /// Cores.
    pub cores: usize,
}

impl Machine {
    /// Of these kinds, or of all where there are none.
    pub fn of(cluster: &Cluster, kinds: &[Kind]) -> Self {
        let wanted = if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds.to_vec() };
        let hindered = |kind: &Kind| kind.hindrance(cluster).map(|why| (*kind, why));
        Self {
            without: wanted.iter().filter_map(hindered).collect(),
            kinds: wanted.into_iter().filter(|kind| kind.hindrance(cluster).is_none()).collect(),
            links: cluster.network().words(),
            store: cluster.bucket.words(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How long faults were done.
    pub ran: Duration,
    /// API nodes.
    pub apis: usize,
    /// Clients at once.
    pub clients: usize,
    /// What the machine could do.
    pub machine: Machine,
    /// The questions, in words.
    pub questions: Vec<String>,
    /// What was done.
    pub faults: Vec<Happened>,
    /// What was asked.
    pub asked: Vec<Asked>,
    /// What broke a promise.
    pub violations: Vec<Violation>,
    /// What processes held before.
    pub before: Footprints,
    /// And after.
    pub after: Footprints,
    /// The API node's own figures at the end.
    pub api_metrics: Metrics,
}

impl Report {
    /// Whether every promise was kept.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty()
    }

    /// One line that says it all.
    pub fn verdict(&self) -> String {
        let [right, wrong, errors, left, hung] = self.counts();
        let (queries, faults) = (self.asked.len(), self.faults.len());
        let word = if self.is_good() { "every promise was kept" } else { "PROMISES WERE BROKEN" };
        format!(
            "{word}: {faults} faults, {queries} queries, {right} right, {wrong} wrong, {hung} hung, \
             {errors} with an error, {left} left by their clients, {} violations",
            self.violations.len()
        )
    }

    /// How many queries were right, wrong, ended with an error, were left, and hung.
    pub fn counts(&self) -> [usize; 5] {
        let mut counts = [0; 5];
        for asked in &self.asked {
            let at = match asked.outcome {
                Outcome::Right => 0,
                Outcome::Wrong(_) | Outcome::Malformed(_) => 1,
                Outcome::Error(_) | Outcome::Broken(_) => 2,
                Outcome::Left => 3,
                Outcome::Hung => 4,
            };
            counts[at] += 1;
        }
        counts
    }

    /// Kinds of faults with how often each was done, how many queries it touched, and how many of
    /// them ended with an error.
    pub fn by_kind(&self) -> Vec<KindRow> {
        self.machine.kinds.iter().map(|kind| self.of_kind(*kind)).collect()
    }

    fn of_kind(&self, kind: Kind) -> KindRow {
        let faults: Vec<&Happened> = self.faults.iter().filter(|it| it.kind == kind).collect();
        let touched = |asked: &&Asked| {
            faults.iter().any(|fault| fault.from <= asked.to && asked.from <= fault.healed)
        };
        let queries: Vec<&Asked> = self.asked.iter().filter(touched).collect();
        let failed =
            |asked: &&&Asked| matches!(asked.outcome, Outcome::Error(_) | Outcome::Broken(_));
        let times = queries.iter().filter(|asked| asked.outcome == Outcome::Right);
        KindRow {
            kind,
            count: faults.len(),
            queries: queries.len(),
            errors: queries.iter().filter(failed).count(),
            latency: Times::of(times.map(|asked| asked.to - asked.from).collect()),
            recovery: Times::of(faults.iter().map(|it| it.recovered - it.healed).collect()),
        }
    }

    /// Times of drains.
    pub fn drains(&self) -> Times {
        Times::of(self.faults.iter().flat_map(|fault| fault.drains.iter().copied()).collect())
    }

    /// Times of eager queries that were answered, with and without a fault meanwhile.
    pub fn latencies(&self) -> (Times, Times) {
        let right = self.asked.iter().filter(|it| it.is_eager && it.outcome == Outcome::Right);
        let (with, without): (Vec<&Asked>, Vec<&Asked>) = right.partition(|asked| {
            self.faults.iter().any(|fault| fault.from <= asked.to && asked.from <= fault.recovered)
        });
        let times = |asked: Vec<&Asked>| {
            Times::of(asked.iter().map(|asked| asked.to - asked.from).collect())
        };
        (times(with), times(without))
    }

    /// Everything as JSON.
    pub fn json(&self) -> Value {
        let [right, wrong, errors, left, hung] = self.counts();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let faults = self.faults.iter().map(|fault| {
            json!({
                "kind": fault.kind.name(), "what": fault.what, "from_ms": millis(fault.from),
                "healed_ms": millis(fault.healed), "recovered_ms": millis(fault.recovered),
            })
        });
        let kinds = self.by_kind();
        let kinds = kinds.iter().map(|row| {
            json!({
                "kind": row.kind.name(), "faults": row.count, "queries": row.queries,
                "errors": row.errors, "latency_ms": row.latency.json(),
                "recovery_ms": row.recovery.json(),
            })
        });
        let without = self.machine.without.iter();
        let without = without.map(|(kind, why)| json!({"kind": kind.name(), "why": why}));
        let (with_fault, without_fault) = self.latencies();
        let own = self.api_metrics.beginning("tributary_api_");
        let own = own.filter(|(name, _)| !name.contains("_bucket"));
        json!({
            "verdict": self.verdict(), "good": self.is_good(), "seed": self.seed,
            "seconds": self.ran.as_secs_f64(), "apis": self.apis, "clients": self.clients,
            "cores": self.machine.cores, "links": self.machine.links,
            "store": self.machine.store,
            "not_done_here": without.collect::<Vec<_>>(),
            "queries": {"asked": self.asked.len(), "right": right, "wrong": wrong,
                "errors": errors, "left": left, "hung": hung},
            "latency_ms": {"during_faults": with_fault.json(), "otherwise": without_fault.json()},
            "drain_ms": self.drains().json(),
            "kinds": kinds.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>(),
            "errors": figures::messages(&self.asked),
            "violations": self.violations, "before": self.before, "after": self.after,
            "api_metrics": own.collect::<std::collections::BTreeMap<_, _>>(),
            "questions": self.questions,
        })
    }

    /// Writes `report.html` and `report.json` into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), ChaosError> {
        std::fs::create_dir_all(folder).map_err(ChaosError::file(folder))?;
        let json = serde_json::to_string_pretty(&self.json()).unwrap_or_default();
        for (name, text) in [("report.json", json), ("report.html", page::of(self))] {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(ChaosError::file(&path))?;
        }
        Ok(())
    }

    /// Violations of one promise.
    pub fn broken(&self, promise: Promise) -> usize {
        self.violations.iter().filter(|violation| violation.promise == promise).count()
    }
}

/// Figures of one kind of faults.
#[derive(Clone, Debug)]
pub struct KindRow {
    /// Which kind.
    pub kind: Kind,
    /// How often it was done.
    pub count: usize,
    /// Queries that ran while it lasted.
    pub queries: usize,
    /// Of these ended with an error, all of them excused unless the verdict says otherwise.
    pub errors: usize,
    /// How long those took that were answered.
    pub latency: Times,
    /// From the end of the fault until everything was in its place.
    pub recovery: Times,
}

#[cfg(test)]
mod tests;
