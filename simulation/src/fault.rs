//! The things that go wrong, by name and target. What each does to the world is in
//! `world/faults.rs`.

use std::fmt;

use crate::story::At;

/// One thing that goes wrong, from when to when.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// When it begins.
    pub at: u64,
    /// How long it lasts; for a crash, how long the process is down.
    pub lasts: u64,
    /// What goes wrong, and where.
    pub kind: FaultKind,
}

/// What goes wrong, and where. A target the world does not have makes the fault nothing.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields name their targets and the variants say what they do")]
pub enum FaultKind {
    /// A worker process dies; its peers are told by the operating system.
    WorkerCrash { worker: u32, moves: bool },
    /// A worker's machine is gone; nobody is told.
    WorkerVanish { worker: u32, moves: bool },
    /// A worker process stands still and then goes on.
    WorkerHang { worker: u32 },
    /// A worker is asked to leave, and comes back after it did.
    WorkerDrain { worker: u32 },
    /// A worker takes so many times as long for everything it runs.
    WorkerSlow { worker: u32, factor: u32 },
    /// A worker's disk is full.
    DiskFull { worker: u32 },
    /// A worker's disk manager removes artifacts nobody has fetched.
    Evictions { worker: u32 },
    /// Bits flip on a worker's disk.
    DiskCorrupt { worker: u32 },
    /// A worker can't reach the object store.
    StoreErrors { worker: u32 },
    /// A worker does not keep to the protocol; it is restarted at the end.
    WorkerLies { worker: u32, lie: WorkerLie },
    /// A worker takes connections and opens no stream on them.
    OpenHangs { worker: u32 },
    /// An API process dies; its peers are told by the operating system.
    ApiCrash { api: u32 },
    /// An API's machine is gone; nobody is told.
    ApiVanish { api: u32 },
    /// An API process stands still and then goes on.
    ApiHang { api: u32 },
    /// An API node does not keep to the protocol; it is restarted at the end.
    ApiLies { api: u32, lie: ApiLie },
    /// Nothing passes between an API and a worker, one way or both.
    LinkCut { api: u32, worker: u32, to_worker: bool, to_api: bool },
    /// Nothing passes between a worker and any API, one way or both.
    WorkerIsolated { worker: u32, to_worker: bool, to_api: bool },
    /// Nothing passes between an API and any worker, one way or both.
    ApiIsolated { api: u32, to_worker: bool, to_api: bool },
    /// Messages take up to so many milliseconds.
    LinkSlow { api: u32, worker: u32, slowest_ms: u32 },
    /// The stream between an API and a worker is reset.
    StreamReset { api: u32, worker: u32 },
    /// What is fetched from a worker by an API is not what was sent.
    WireCorrupt { api: u32, worker: u32 },
    /// An API's clock jumps ahead by so many milliseconds.
    ApiClockStep { api: u32, by_ms: u32 },
    /// A worker's clock jumps ahead by so many milliseconds.
    WorkerClockStep { worker: u32, by_ms: u32 },
    /// An API hears nothing from discovery.
    DiscoveryOutage { api: u32 },
    /// Discovery does not name a worker to an API, although it is there.
    DiscoveryFlap { api: u32, worker: u32 },
    /// Every worker is asked to leave; they come back at the end.
    ScaleToZero,
    /// The spare workers join for good.
    ScaleUp,
    /// A worker's artifact server answers with errors.
    FetchErrors { worker: u32 },
}

/// How a worker lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerLie {
    /// Announces a checksum that is not that of its bytes.
    WrongChecksum,
    /// Announces an artifact at somebody else's address.
    ForeignUrl,
    /// Speaks of work that was given to another worker, or of another attempt at its own.
    OthersWork,
    /// Says things twice.
    SaysTwice,
    /// Says the second thing first.
    Swaps,
    /// Speaks of work it was never given.
    UnknownWork,
    /// Says that assigned work started, or is ready, before it accepted it.
    TooEarly,
    /// Introduces itself again.
    WelcomeAgain,
    /// Says that work failed for good which did not.
    FalseFailure,
    /// Sends bytes that are no message.
    Malformed,
    /// Lives, and says nothing of its work.
    Mute,
}

/// How an API node lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiLie {
    /// Says things twice.
    SaysTwice,
    /// Says the second thing first.
    Swaps,
    /// Cancels and acknowledges work it never gave.
    UnknownWork,
    /// Introduces itself again.
    HelloAgain,
    /// Gives work before it introduces itself.
    NoHello,
    /// Sends bytes that are no message.
    Malformed,
}

impl WorkerLie {
    pub(crate) const ALL: [Self; 11] = [
        Self::WrongChecksum,
        Self::ForeignUrl,
        Self::OthersWork,
        Self::SaysTwice,
        Self::Swaps,
        Self::UnknownWork,
        Self::TooEarly,
        Self::WelcomeAgain,
        Self::FalseFailure,
        Self::Malformed,
        Self::Mute,
    ];
}

impl ApiLie {
    pub(crate) const ALL: [Self; 6] = [
        Self::SaysTwice,
        Self::Swaps,
        Self::UnknownWork,
        Self::HelloAgain,
        Self::NoHello,
        Self::Malformed,
    ];
}

/// How many kinds of fault there are.
pub const FAULT_KINDS: usize = 28;

/// Their names, in the order of [`FaultKind::index`].
pub const FAULT_NAMES: [&str; FAULT_KINDS] = [
    "worker crash",
    "worker vanishes",
    "worker hangs",
    "worker drains",
    "worker slow",
    "disk full",
    "evictions",
    "disk corrupt",
    "store errors",
    "worker lies",
    "open hangs",
    "api crash",
    "api vanishes",
    "api hangs",
    "api lies",
    "link cut",
    "worker isolated",
    "api isolated",
    "link slow",
    "stream reset",
    "wire corrupt",
    "api clock step",
    "worker clock step",
    "discovery outage",
    "discovery flap",
    "scale to zero",
    "scale up",
    "fetch errors",
];

impl FaultKind {
    /// Its place in [`FAULT_NAMES`].
    pub fn index(&self) -> usize {
        match self {
            Self::WorkerCrash { .. } => 0,
            Self::WorkerVanish { .. } => 1,
            Self::WorkerHang { .. } => 2,
            Self::WorkerDrain { .. } => 3,
            Self::WorkerSlow { .. } => 4,
            Self::DiskFull { .. } => 5,
            Self::Evictions { .. } => 6,
            Self::DiskCorrupt { .. } => 7,
            Self::StoreErrors { .. } => 8,
            Self::WorkerLies { .. } => 9,
            Self::OpenHangs { .. } => 10,
            Self::ApiCrash { .. } => 11,
            Self::ApiVanish { .. } => 12,
            Self::ApiHang { .. } => 13,
            Self::ApiLies { .. } => 14,
            Self::LinkCut { .. } => 15,
            Self::WorkerIsolated { .. } => 16,
            Self::ApiIsolated { .. } => 17,
            Self::LinkSlow { .. } => 18,
            Self::StreamReset { .. } => 19,
            Self::WireCorrupt { .. } => 20,
            Self::ApiClockStep { .. } => 21,
            Self::WorkerClockStep { .. } => 22,
            Self::DiscoveryOutage { .. } => 23,
            Self::DiscoveryFlap { .. } => 24,
            Self::ScaleToZero => 25,
            Self::ScaleUp => 26,
            Self::FetchErrors { .. } => 27,
        }
    }

    /// The API it is about, if it is about one.
    pub(crate) fn api(&self) -> Option<u32> {
        match self {
            Self::ApiCrash { api }
            | Self::ApiVanish { api }
            | Self::ApiHang { api }
            | Self::ApiLies { api, .. }
            | Self::LinkCut { api, .. }
            | Self::ApiIsolated { api, .. }
            | Self::LinkSlow { api, .. }
            | Self::StreamReset { api, .. }
            | Self::WireCorrupt { api, .. }
            | Self::ApiClockStep { api, .. }
            | Self::DiscoveryOutage { api }
            | Self::DiscoveryFlap { api, .. } => Some(*api),
            _ => None,
        }
    }

    /// The worker it is about, if it is about one.
    pub(crate) fn worker(&self) -> Option<u32> {
        match self {
            Self::WorkerCrash { worker, .. }
            | Self::WorkerVanish { worker, .. }
            | Self::WorkerHang { worker }
            | Self::WorkerDrain { worker }
            | Self::WorkerSlow { worker, .. }
            | Self::DiskFull { worker }
            | Self::Evictions { worker }
            | Self::DiskCorrupt { worker }
            | Self::StoreErrors { worker }
            | Self::FetchErrors { worker }
            | Self::WorkerLies { worker, .. }
            | Self::OpenHangs { worker }
            | Self::LinkCut { worker, .. }
            | Self::WorkerIsolated { worker, .. }
            | Self::LinkSlow { worker, .. }
            | Self::StreamReset { worker, .. }
            | Self::WireCorrupt { worker, .. }
            | Self::WorkerClockStep { worker, .. }
            | Self::DiscoveryFlap { worker, .. } => Some(*worker),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}: {:?}", At(self.at), At(self.lasts), self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_name() {
        assert_eq!(
            FAULT_NAMES[FaultKind::WorkerCrash { worker: 0, moves: false }.index()],
            "worker crash"
        );
        assert_eq!(FAULT_NAMES[FaultKind::ScaleUp.index()], "scale up");
        assert_eq!(FaultKind::FetchErrors { worker: 0 }.index() + 1, FAULT_KINDS);
    }
}
