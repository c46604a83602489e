//! What goes wrong in a story: which kind, when, for how long, and whom it strikes.

use std::fmt;
use std::time::Duration;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A worker is killed and comes back under its name.
    WorkerKilled,
    /// All workers are killed and come back.
    AllWorkersKilled,
    /// A worker is asked to leave, leaves, and comes back.
    WorkerDrained,
    /// An API node is killed, with its clients, and comes back.
    ApiKilled,
    /// An API node is asked to leave, leaves, and comes back.
    ApiLeaves,
    /// Nothing goes through between an API node and a worker.
    Cut,
    /// Nothing reaches a worker from an API node.
    CutToWorker,
    /// Nothing reaches an API node from a worker.
    CutToApi,
    /// Nothing goes through between a worker and any API node.
    WorkerIsolated,
    /// What is sent between an API node and a worker waits, and comes all at once.
    Held,
    /// What is sent between an API node and a worker takes long.
    Lagging,
    /// A worker's artifacts are evicted, and it says so.
    Evicted,
    /// A worker's artifacts are gone, and it does not know.
    Deleted,
    /// Some artifacts arrive with a bit that is wrong.
    Flipped,
    /// Some runs of a worker fail.
    RunsFail,
    /// A worker's runs take long.
    RunsSlow,
    /// A worker's disk is full.
    DiskFull,
}

impl Kind {
    /// All of them, with how often they come up.
    pub const ALL: [(usize, Self); 17] = [
        (14, Self::WorkerKilled),
        (4, Self::AllWorkersKilled),
        (6, Self::WorkerDrained),
        (5, Self::ApiKilled),
        (3, Self::ApiLeaves),
        (8, Self::Cut),
        (8, Self::CutToWorker),
        (8, Self::CutToApi),
        (6, Self::WorkerIsolated),
        (8, Self::Held),
        (5, Self::Lagging),
        (6, Self::Evicted),
        (6, Self::Deleted),
        (8, Self::Flipped),
        (6, Self::RunsFail),
        (6, Self::RunsSlow),
        (5, Self::DiskFull),
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkerKilled => "worker killed",
            Self::AllWorkersKilled => "all workers killed",
            Self::WorkerDrained => "worker drained",
            Self::ApiKilled => "API node killed",
            Self::ApiLeaves => "API node leaves",
            Self::Cut => "link cut",
            Self::CutToWorker => "link cut towards the worker",
            Self::CutToApi => "link cut towards the API node",
            Self::WorkerIsolated => "worker isolated",
            Self::Held => "link held",
            Self::Lagging => "link lagging",
            Self::Evicted => "artifacts evicted",
            Self::Deleted => "artifacts deleted",
            Self::Flipped => "artifact bits flipped",
            Self::RunsFail => "runs fail",
            Self::RunsSlow => "runs slow",
            Self::DiskFull => "disk full",
        })
    }
}

/// One fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) at: Duration,
    pub(super) lasts: Duration,
    /// Whom it strikes, where it strikes an API node or a link.
    pub(super) api: usize,
    /// Whom it strikes, where it strikes a worker or a link.
    pub(super) worker: usize,
    /// How often, where it is a fault of some answers.
    pub(super) times: u32,
}

impl Fault {
    pub(super) fn ends(&self) -> Duration {
        self.at + self.lasts
    }

    /// Whether it comes between an API node and a worker.
    pub(super) fn strikes(&self, api: usize, worker: usize) -> bool {
        match self.kind {
            Kind::AllWorkersKilled => true,
            Kind::ApiKilled | Kind::ApiLeaves => self.api == api,
            Kind::Cut | Kind::CutToWorker | Kind::CutToApi | Kind::Held | Kind::Lagging => {
                self.api == api && self.worker == worker
            }
            Kind::WorkerKilled
            | Kind::WorkerDrained
            | Kind::WorkerIsolated
            | Kind::Evicted
            | Kind::Deleted
            | Kind::Flipped
            | Kind::RunsFail
            | Kind::RunsSlow
            | Kind::DiskFull => self.worker == worker,
        }
    }

    /// Whether a session between an API node and a worker can be lost by it.
    pub(super) fn loses_sessions(&self) -> bool {
        match self.kind {
            Kind::WorkerKilled
            | Kind::AllWorkersKilled
            | Kind::WorkerDrained
            | Kind::ApiKilled
            | Kind::ApiLeaves
            | Kind::Cut
            | Kind::CutToWorker
            | Kind::CutToApi
            | Kind::WorkerIsolated
            | Kind::Held
            | Kind::Lagging => true,
            Kind::Evicted
            | Kind::Deleted
            | Kind::Flipped
            | Kind::RunsFail
            | Kind::RunsSlow
            | Kind::DiskFull => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, api, worker, lasts, times, .. } = self;
        match kind {
            Kind::AllWorkersKilled => write!(f, "{kind} for {lasts:?}"),
            Kind::ApiKilled | Kind::ApiLeaves => write!(f, "{kind}: api-{api} for {lasts:?}"),
            Kind::Cut | Kind::CutToWorker | Kind::CutToApi | Kind::Held | Kind::Lagging => {
                write!(f, "{kind}: api-{api} and worker-{worker} for {lasts:?}")
            }
            Kind::Evicted | Kind::Deleted => write!(f, "{kind}: worker-{worker}"),
            Kind::Flipped | Kind::RunsFail => write!(f, "{kind}: worker-{worker}, {times} times"),
            Kind::WorkerKilled
            | Kind::WorkerDrained
            | Kind::WorkerIsolated
            | Kind::RunsSlow
            | Kind::DiskFull => write!(f, "{kind}: worker-{worker} for {lasts:?}"),
        }
    }
}
