//! Named stories with a number at the end: one fault, done many times, measured to the millisecond.

mod client_gone;
mod two_apis;
mod worker_loss;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::{Cluster, Layout};
use crate::dice::Dice;
use crate::error::ChaosError;
use crate::question::draw;
use crate::report::Times;
use crate::run::{RECOVERY, references};
use crate::verdict::Violation;
use crate::workload::Known;

/// A story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A worker is killed in the middle of many queries.
    WorkerKilled,
    /// A worker freezes in the middle of many queries.
    WorkerFrozen,
    /// Clients go away in the middle.
    ClientGone,
    /// Two API nodes share the workers, and one is killed.
    TwoApis,
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How often.
    pub rounds: usize,
    /// Queries in each round.
    pub queries: usize,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Story {
    /// Which one.
    pub scenario: Scenario,
    /// Queries that were asked.
    pub queries: usize,
    /// Times that were measured, by what they are.
    pub times: Vec<(&'static str, Times)>,
    /// Other figures.
    pub counts: Vec<(&'static str, usize)>,
    /// What broke a promise.
    pub violations: Vec<Violation>,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::WorkerKilled, Self::WorkerFrozen, Self::ClientGone, Self::TwoApis];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkerKilled => "worker-killed",
            Self::WorkerFrozen => "worker-frozen",
            Self::ClientGone => "client-gone",
            Self::TwoApis => "two-apis",
        }
    }

    /// As large as is usual.
    pub fn usual_size(self) -> Size {
        match self {
            Self::WorkerKilled => Size { rounds: 100, queries: 100 },
            Self::WorkerFrozen => Size { rounds: 20, queries: 100 },
            Self::ClientGone => Size { rounds: 200, queries: 1 },
            Self::TwoApis => Size { rounds: 10, queries: 60 },
        }
    }

    /// Plays it.
    pub async fn play(
        self,
        binary: &Path,
        s3: Option<&str>,
        seed: u64,
        size: Size,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Story, ChaosError> {
        let apis = if self == Self::TwoApis { 2 } else { 1 };
        let mut stage = Stage::set(binary, s3, seed, apis).await?;
        tell(&format!("{}: {} rounds of {} queries", self.name(), size.rounds, size.queries));
        let mut story = Story {
            scenario: self,
            queries: 0,
            times: Vec::new(),
            counts: Vec::new(),
            violations: Vec::new(),
        };
        match self {
            Self::WorkerKilled => {
                worker_loss::play(&mut stage, size, worker_loss::Loss::Killed, &mut story, tell)
                    .await?;
            }
            Self::WorkerFrozen => {
                worker_loss::play(&mut stage, size, worker_loss::Loss::Frozen, &mut story, tell)
                    .await?;
            }
            Self::ClientGone => client_gone::play(&mut stage, size, &mut story, tell).await?,
            Self::TwoApis => two_apis::play(&mut stage, size, &mut story, tell).await?,
        }
        let begun = tokio::time::Instant::now();
        story.violations.extend(crate::rest::settle(&mut stage.cluster, begun).await);
        story.violations.extend(crate::rest::complaints(&stage.cluster, begun));
        Ok(story)
    }
}

impl std::str::FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == text);
        let known = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("there is no scenario {text:?}; known are {}", known()))
    }
}

impl Story {
    /// Whether every promise was kept.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty()
    }

    /// One of the counts; zero where it was not counted.
    pub fn count(&self, what: &str) -> usize {
        self.counts.iter().find(|(name, _)| *name == what).map_or(0, |(_, count)| *count)
    }

    /// It in lines, for people.
    pub fn lines(&self) -> Vec<String> {
        let violations = self.violations.len();
        let name = self.scenario.name();
        let mut lines = vec![format!("{name}: {} queries, {violations} violations", self.queries)];
        for (what, count) in &self.counts {
            lines.push(format!("  {what}: {count}"));
        }
        for (what, times) in &self.times {
            let [p50, p90, p99, max] = [500, 900, 990, 1_000].map(|rank| times.text(rank));
            let count = times.count();
            lines.push(format!(
                "  {what}, ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max} ({count} times)"
            ));
        }
        for violation in self.violations.iter().take(20) {
            lines.push(format!("  not kept: {}: {}", violation.promise.words(), violation.what));
        }
        lines
    }

    /// It as JSON.
    pub fn json(&self) -> Value {
        let times = self.times.iter().map(|(what, times)| ((*what).to_owned(), times.json()));
        let counts = self.counts.iter().map(|(what, count)| ((*what).to_owned(), json!(count)));
        json!({
            "scenario": self.scenario.name(), "queries": self.queries,
            "times_ms": times.collect::<serde_json::Map<_, _>>(),
            "counts": counts.collect::<serde_json::Map<_, _>>(),
            "violations": self.violations,
        })
    }
}

/// Writes `stories.json` into a folder.
pub fn write(stories: &[Story], folder: &Path) -> Result<(), ChaosError> {
    std::fs::create_dir_all(folder).map_err(ChaosError::file(folder))?;
    let all: Vec<Value> = stories.iter().map(Story::json).collect();
    let path = folder.join("stories.json");
    let text = serde_json::to_string_pretty(&all).unwrap_or_default();
    std::fs::write(&path, text).map_err(ChaosError::file(path))
}

/// What a story is played on.
struct Stage {
    cluster: Cluster,
    known: Arc<Vec<Known>>,
    dice: Dice,
}

impl Stage {
    async fn set(
        binary: &Path,
        s3: Option<&str>,
        seed: u64,
        apis: usize,
    ) -> Result<Self, ChaosError> {
        let mut dice = Dice::of(seed);
        let quote = |settings: &[&str]| settings.iter().map(|it| (*it).to_owned()).collect();
        let layout = Layout {
            apis,
            s3: s3.map(str::to_owned),
            places: 3,
            // Times are read from the logs. A second attempt at a straggler would look like one at
            // lost work, so there are none.
            api_settings: quote(&[
                "log.filter=info,tributary_api=debug",
                "schedule.hedge_budget_per_mille=0",
            ]),
            worker_settings: quote(&["log.filter=info,tributary_worker=debug"]),
            ..Layout::of(binary, seed)
        };
        let mut cluster = Cluster::start(layout).await?;
        cluster.until_connected(RECOVERY).await.ok_or_else(|| ChaosError::NoReference {
            what: "API node and workers do not find each other".to_owned(),
        })?;
        let questions = draw(&mut dice.fork(1), 40);
        let known = Arc::new(references(&cluster, questions).await?);
        Ok(Self { cluster, known, dice })
    }
}
