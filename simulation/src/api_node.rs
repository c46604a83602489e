//! An API process with what its drivers hold: streams, fetches, what discovery told it. The
//! decisions are the coordinator's; the drivers are in `world/`.

use core_workcoord::artifact::Checksum;
use core_workcoord::coordinator::{Coordinator, FetchResult};
use core_workcoord::id::{RunId, SessionId};
use core_workcoord::message::WorkRef;

use crate::fault::ApiLie;
use crate::process::Process;
use crate::small_map::SmallMap;

/// One place of an API node, over all its lives.
pub(crate) struct ApiNode {
    pub(crate) process: Process,
    /// Nobody there while the process is down.
    pub(crate) machine: Option<Coordinator>,
    /// The machine itself is gone: nothing answers.
    pub(crate) vanished: bool,
    /// Streams that are not over for this process.
    pub(crate) sessions: SmallMap<SessionId, u32>,
    /// Fetches on their way.
    pub(crate) fetches: SmallMap<u32, Fetch>,
    pub(crate) fetches_begun: u32,
    /// Addresses it was told of.
    pub(crate) knows: Vec<bool>,
    /// How many faults keep discovery from it.
    pub(crate) discovery_outages: u16,
    /// Addresses that discovery hides from it, each once per fault.
    pub(crate) hidden: Vec<u32>,
    pub(crate) lie: Option<ApiLie>,
    pub(crate) lies_told: u64,
    /// It lied in this life.
    pub(crate) tainted: bool,
}

/// One fetch of an artifact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) work: WorkRef,
    pub(crate) session: SessionId,
    pub(crate) stream: u32,
    /// The run the address leads to, if it leads to any.
    pub(crate) run: Option<RunId>,
    /// The fetcher's only truth: what was announced.
    pub(crate) announced: Checksum,
    /// How it will end, once that is decided.
    pub(crate) result: FetchResult,
    /// The bytes that came are what the spec asks for.
    pub(crate) right: bool,
    /// Nobody waits for it; its end may be told all the same.
    pub(crate) abandoned: bool,
}

impl ApiNode {
    pub(crate) fn new(process: Process, endpoints: usize) -> Self {
        Self {
            process,
            machine: None,
            vanished: false,
            sessions: SmallMap::default(),
            fetches: SmallMap::default(),
            fetches_begun: 0,
            knows: vec![false; endpoints],
            discovery_outages: 0,
            hidden: Vec::new(),
            lie: None,
            lies_told: 0,
            tainted: false,
        }
    }

    /// Everything a process loses when it dies.
    pub(crate) fn lose_everything(&mut self, now: u64) {
        self.machine = None;
        self.sessions.clear();
        self.fetches.clear();
        self.knows.fill(false);
        self.lie = None;
        self.tainted = false;
        self.process.begin(now);
    }
}
