//! A story: everything that is decided before a world begins to turn. Its size and configuration,
//! the queries with their items, the faults. What follows from them is the world's; how a story is
//! written from a seed is in `story/generate.rs` and `story/queries.rs`.

mod generate;
mod queries;

use std::fmt;
use std::time::Duration;

use core_workcoord::config::{CoordinatorConfig, IntakeConfig};

use crate::fault::Fault;

/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000 * MS;
/// How many tenants there are.
pub const TENANTS: u32 = 4;

/// Everything that is decided beforehand. All times are nanoseconds of simulated time.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// The seed it was written from; all luck in the world comes from it too.
    pub seed: u64,
    /// How large the world is and how its nodes are configured.
    pub shape: Shape,
    /// The queries, in the order of their time.
    pub queries: Vec<QueryStory>,
    /// The faults, in the order of their time.
    pub faults: Vec<Fault>,
}

/// The size and the configuration of a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// API nodes.
    pub apis: u32,
    /// Workers that are there from the beginning.
    pub workers: u32,
    /// Workers that a scale-up may add.
    pub spare_workers: u32,
    /// Nothing goes wrong: every query that its client does not leave must be answered.
    pub quiet: bool,
    /// When every fault is over and liveness begins to be demanded.
    pub heal_at: u64,
    /// When everything must have settled.
    pub end_at: u64,
    /// Messages in flight on one direction of a stream before the sender closes it.
    pub pipe_limit: usize,
    /// Heartbeats overtake what waits to be sent, as they do where they have a lane of their own.
    pub heartbeats_first: bool,
    /// Bytes of an artifact that pass in a microsecond.
    pub bytes_per_micro: u64,
    /// Runs that fail for a passing reason, of a thousand.
    pub failing_runs_per_mille: u32,
    /// The knobs of every coordinator.
    pub coordinator: CoordinatorConfig,
    /// The knobs of every intake.
    pub intake: IntakeConfig,
}

/// A query and its client.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryStory {
    /// Its name, which stays when other queries are taken out of the story.
    pub number: u32,
    /// When the client asks.
    pub at: u64,
    /// Which API node it asks.
    pub api: u32,
    /// Whose query it is.
    pub tenant: u32,
    /// The time it is given.
    pub deadline: Duration,
    /// Items on their way at once.
    pub window: u32,
    /// When the client goes away, counted from when it asked.
    pub leaves_after: Option<u64>,
    /// The time the reader takes for an item.
    pub reader_lag: u64,
    /// The work.
    pub items: Vec<ItemStory>,
}

/// One work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemStory {
    /// The time a run takes on a healthy worker.
    pub run_time: u64,
    /// What it would like to stay close to.
    pub affinity: u64,
    /// The size of its artifact.
    pub size_bytes: u64,
    /// How a run ends when nothing else goes wrong.
    pub ending: Ending,
}

/// How the runs of an item end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its artifact.
    Works,
    /// With an artifact that is larger than is allowed.
    TooLarge,
    /// With a failure that no retry can help.
    FailsForGood,
    /// With the death of its worker.
    KillsWorker,
}

impl Story {
    /// Writes the story of a seed.
    pub fn of(seed: u64) -> Self {
        generate::story(seed)
    }

    /// Workers in all, those of a scale-up included.
    pub(crate) fn worker_places(&self) -> usize {
        (self.shape.workers + self.shape.spare_workers) as usize
    }

    /// An item, by its query's place.
    pub(crate) fn item(&self, query: usize, item: u32) -> Option<&ItemStory> {
        self.queries.get(query)?.items.get(item as usize)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (api, worker) = (&self.coordinator, &self.intake);
        write!(f, "{} APIs, {} workers", self.apis, self.workers)?;
        if self.spare_workers > 0 {
            write!(f, " and {} spare", self.spare_workers)?;
        }
        write!(
            f,
            ", {} slots + {} ahead, queue of {}, at most {} attempts, poison after {}, \
             {} fetches at once, hedge at {} × of at least {:?}, heartbeat {:?} of {:?}, \
             answers within {:?}, {} messages in a pipe, {} ‰ of runs fail{}",
            worker.slots,
            api.worker_queue_ahead,
            worker.queue_limit,
            api.max_attempts,
            api.poison_workers,
            api.max_fetches,
            api.hedge_factor,
            api.hedge_floor,
            api.heartbeat_interval,
            api.heartbeat_timeout,
            api.answer_timeout,
            self.pipe_limit,
            self.failing_runs_per_mille,
            if self.quiet { ", quiet" } else { "" },
        )
    }
}

impl fmt::Display for QueryStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "q{} at {} to api-{}, tenant-{}, {} items, window {}, deadline {:?}",
            self.number,
            At(self.at),
            self.api,
            self.tenant,
            self.items.len(),
            self.window,
            self.deadline
        )?;
        if let Some(after) = self.leaves_after {
            write!(f, ", client leaves after {}", At(after))?;
        }
        if self.reader_lag > 10 * MS {
            write!(f, ", reader takes {} an item", At(self.reader_lag))?;
        }
        for (at, item) in self.items.iter().enumerate() {
            if item.ending != Ending::Works {
                write!(f, ", item {at} {:?}", item.ending)?;
            }
        }
        Ok(())
    }
}

/// A simulated time, printed as seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At(pub(crate) u64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / SECOND, self.0 % SECOND / 1_000)
    }
}
