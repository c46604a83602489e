//! A worker process with what its drivers hold: streams, the executor's runs, the files on its disk.
//! The decisions are the intake's; the drivers are in `world/`.

use core_workcoord::artifact::Checksum;
use core_workcoord::id::{RunId, SessionId};
use core_workcoord::intake::Intake;
use core_workcoord::message::WorkRef;

use crate::fault::WorkerLie;
use crate::process::Process;
use crate::small_map::SmallMap;

/// One place of a worker, over all its lives.
pub(crate) struct WorkerNode {
    pub(crate) process: Process,
    /// Nobody there while the process is down.
    pub(crate) machine: Option<Intake>,
    /// The machine itself is gone: nothing answers.
    pub(crate) vanished: bool,
    /// The address it listens at, or listened at last.
    pub(crate) endpoint: u32,
    /// Streams that are not over for this process.
    pub(crate) sessions: SmallMap<SessionId, u32>,
    pub(crate) sessions_begun: u64,
    /// What its executor runs.
    pub(crate) runs: SmallMap<RunId, Run>,
    /// What its disk holds.
    pub(crate) files: SmallMap<RunId, File>,
    /// Heartbeats held back by a driver that is broken on purpose.
    pub(crate) held_back: Vec<SessionId>,
    /// The troubles it is in.
    pub(crate) trouble: Trouble,
    /// It was asked to leave.
    pub(crate) draining: bool,
    /// How long it stays away after it left.
    pub(crate) away_for: u64,
    /// It lied in this life.
    pub(crate) tainted: bool,
    pub(crate) lies_told: u64,
}

/// What is wrong with a worker, counted by the faults that make it so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) slow: Vec<u32>,
    pub(crate) disk_full: u16,
    pub(crate) disk_corrupt: u16,
    pub(crate) store_errors: u16,
    pub(crate) open_hangs: u16,
    pub(crate) fetch_errors: u16,
    /// The pool is scaled down: it must not start.
    pub(crate) parked: u16,
    pub(crate) lie: Option<WorkerLie>,
}

/// One run of the executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) session: SessionId,
    pub(crate) work: WorkRef,
    /// The story's query, and the item's place in it.
    pub(crate) query: u32,
    pub(crate) item: u32,
    pub(crate) ends_at: u64,
    pub(crate) end: RunEnd,
    pub(crate) told_to_stop: bool,
    /// When it stops, if it was told to and is not done before.
    pub(crate) stops_at: Option<u64>,
}

/// How a run ends if nobody stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Works,
    FailsForGood,
    StoreUnavailable,
    DiskFull,
    Deadline,
    /// The process dies before it ends.
    KillsWorker,
}

/// One artifact on a worker's disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) session: SessionId,
    pub(crate) work: WorkRef,
    /// What its bytes are, which is what was announced unless bits flipped.
    pub(crate) bytes: Checksum,
    pub(crate) size_bytes: u64,
}

impl WorkerNode {
    pub(crate) fn new(process: Process, endpoint: u32) -> Self {
        Self {
            process,
            machine: None,
            vanished: false,
            endpoint,
            sessions: SmallMap::default(),
            sessions_begun: 0,
            runs: SmallMap::default(),
            files: SmallMap::default(),
            held_back: Vec::new(),
            trouble: Trouble::default(),
            draining: false,
            away_for: 0,
            tainted: false,
            lies_told: 0,
        }
    }

    /// Everything a process loses when it dies. The files go with the scan at the next start.
    pub(crate) fn lose_everything(&mut self, now: u64, files_stay: bool) {
        self.machine = None;
        self.sessions.clear();
        self.sessions_begun = 0;
        self.runs.clear();
        if !files_stay {
            self.files.clear();
        }
        self.held_back.clear();
        self.trouble.lie = None;
        self.draining = false;
        self.tainted = false;
        self.process.begin(now);
    }

    /// How many times as long everything takes.
    pub(crate) fn slowness(&self) -> u64 {
        self.trouble.slow.iter().copied().max().unwrap_or(1).into()
    }
}
