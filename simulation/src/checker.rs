//! Stands beside the world, sees every input and every action, and knows what was promised. Keeps
//! its own small books, made from what it sees alone, so that no table of a state machine has to be
//! believed.
//!
//! The parts: `promises` (the numbered list), `books` (what is known of queries, attempts and
//! sessions), `api_told`, `api_decides`, `api_choice`, `api_results`, `api_stepped` and `api_patience`
//! (an API's inputs, its actions, the state between steps, and how long it may wait), `outcomes`
//! (why a query may end), `worker_side`, `worker_decides` and `worker_stepped` (the same for a
//! worker), `ending` (what must hold at last).

mod api_choice;
mod api_decides;
mod api_patience;
mod api_results;
mod api_stepped;
mod api_told;
mod books;
mod ending;
mod outcomes;
mod promises;
mod worker_decides;
mod worker_side;
mod worker_stepped;

use books::{ApiBook, QueryBook, WorkerBook};
use core_workcoord::id::{QueryId, SessionId};
use core_workcoord::invariant::Broken;
pub use promises::Promise;

use crate::content;
use crate::report::Tally;
use crate::story::{Shape, Story};
use crate::violation::{About, Check, Violation};

/// What a second attempt costs, in thousandths.
const HEDGE_COST: u64 = 1_000;

/// What the world knows of a stream that a node closes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CloseFacts {
    /// A cut, a slow link, a hang, a clock jump or a dead machine disturbed it lately.
    pub(crate) disturbed: bool,
    /// Both ends were open.
    pub(crate) both_open: bool,
    /// One of its nodes lied.
    pub(crate) tainted: bool,
}

/// The judge.
pub(crate) struct Checker {
    /// Simulated time.
    pub(crate) now: u64,
    /// Whether the bytes of the fetch whose end is told next are right.
    pub(crate) fetched_right: bool,
    seed: u64,
    shape: Shape,
    violation: Option<Violation>,
    apis: Vec<ApiBook>,
    workers: Vec<WorkerBook>,
    queries: Vec<QueryBook>,
    /// The place of each query in the story, by its number.
    places: Vec<Option<u32>>,
    tally: Tally,
}

impl Checker {
    pub(crate) fn new(story: &Story) -> Self {
        let numbers = story.queries.iter().map(|query| query.number + 1).max().unwrap_or(0);
        let mut places = vec![None; numbers as usize];
        for (place, query) in (0..).zip(&story.queries) {
            places[query.number as usize] = Some(place);
        }
        let endpoints = story.worker_places() * crate::endpoints::PER_WORKER as usize;
        Self {
            now: 0,
            fetched_right: false,
            seed: story.seed,
            shape: story.shape.clone(),
            violation: None,
            apis: (0..story.shape.apis).map(|_| ApiBook::new(endpoints)).collect(),
            workers: (0..story.worker_places()).map(|_| WorkerBook::default()).collect(),
            queries: story
                .queries
                .iter()
                .map(|query| QueryBook::new(query, &story.shape.coordinator))
                .collect(),
            places,
            tally: Tally::default(),
        }
    }

    /// The first promise that was broken.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(crate) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// Adds what was counted here.
    pub(crate) fn tally_into(&self, tally: &mut Tally) {
        tally.add(&self.tally);
    }

    /// A state machine's own promise is broken.
    pub(crate) fn broken(&mut self, number: Check, broken: &Broken, about: About) {
        self.note(number, about, || broken.to_string());
    }

    fn note(&mut self, number: Check, about: About, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let (seed, at) = (self.seed, self.now);
            self.violation = Some(Violation { seed, at, number, what: what(), about });
        }
    }

    /// Notes a broken promise, unless it holds.
    fn hold(&mut self, promise: Promise, holds: bool, about: About, what: impl FnOnce() -> String) {
        if !holds {
            self.note(Check::Simulation(promise.number()), about, what);
        }
    }

    /// The place of a query in the story.
    fn place_of(&self, query: QueryId) -> Option<usize> {
        let number = content::query_number(self.seed, query)?;
        self.places.get(number as usize).copied().flatten().map(|place| place as usize)
    }

    /// A state machine was ticked this many times at one time.
    pub(crate) fn timer_helps(&mut self, ticks: u32, about: About) {
        self.hold(Promise::TimersHelp, ticks < 100, about, || {
            format!("{ticks} ticks in a row left the timer due")
        });
    }

    /// Whether everything said on a stream arrived or is on its way.
    pub(crate) fn nothing_lost(
        &mut self,
        whole: bool,
        stream: u32,
        api: u32,
        worker: u32,
        session: SessionId,
    ) {
        let about = About::api(api).with_worker(worker).session(session);
        self.hold(Promise::NothingLost, whole, about, || {
            format!("stream {stream} between api-{api} and worker-{worker} lost a message")
        });
    }
}
