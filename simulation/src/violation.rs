//! A broken promise: which one, when, and what it is about.

use std::fmt;

use core_workcoord::id::{QueryId, SessionId, WorkId};

use crate::story::At;

/// Which promise. The simulation's are listed in `checker/promises.rs`, the state machines' in
/// `core_workcoord::invariant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// An end-to-end promise, seen from outside.
    Simulation(u32),
    /// A promise about a coordinator's tables.
    Coordinator(u32),
    /// A promise about an intake's tables.
    Intake(u32),
    /// A state machine panicked.
    Panic,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation(number) => write!(f, "S{number}"),
            Self::Coordinator(number) => write!(f, "C{number}"),
            Self::Intake(number) => write!(f, "I{number}"),
            Self::Panic => f.write_str("panic"),
        }
    }
}

/// What something is about, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The API node.
    pub api: Option<u32>,
    /// The worker.
    pub worker: Option<u32>,
    /// The query.
    pub query: Option<QueryId>,
    /// The item of the query.
    pub item: Option<u32>,
    /// The API's session.
    pub session: Option<SessionId>,
}

impl About {
    pub(crate) fn api(api: u32) -> Self {
        Self { api: Some(api), ..Self::default() }
    }

    pub(crate) fn worker(worker: u32) -> Self {
        Self { worker: Some(worker), ..Self::default() }
    }

    pub(crate) fn query(self, query: QueryId) -> Self {
        Self { query: Some(query), ..self }
    }

    pub(crate) fn work(self, work: WorkId) -> Self {
        Self { query: Some(work.query), item: Some(work.item), ..self }
    }

    pub(crate) fn session(self, session: SessionId) -> Self {
        Self { session: Some(session), ..self }
    }

    pub(crate) fn with_worker(self, worker: u32) -> Self {
        Self { worker: Some(worker), ..self }
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed of the story.
    pub seed: u64,
    /// When, in nanoseconds of simulated time.
    pub at: u64,
    /// Which promise.
    pub number: Check,
    /// What was seen.
    pub what: String,
    /// What it is about.
    pub about: About,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} at {}: {} broken: {}", self.seed, At(self.at), self.number, self.what)
    }
}
