//! The world around the real state machines: it carries out what they decide and tells them what
//! happens, until the story is over or a promise is broken.
//!
//! The parts: `api_driver` and `worker_driver` (what a process does for its state machine),
//! `executor` (runs and files), `streams` and `stream_ends` (what travels, and how that ends),
//! `liar` (nodes that break the protocol), `fetches`, `discovery`, `faults` (what goes wrong and how
//! it heals), `ending` (whether everything has settled).

mod api_driver;
mod discovery;
mod ending;
mod executor;
mod faults;
mod fetches;
mod liar;
mod stream_ends;
mod streams;
mod worker_driver;

use core_workcoord::id::TenantId;
use core_workcoord::invariant::Broken;

use crate::Options;
use crate::agenda::{Agenda, Event};
use crate::api_node::ApiNode;
use crate::checker::Checker;
use crate::endpoints::Endpoints;
use crate::journal::Journals;
use crate::network::Network;
use crate::process::Process;
use crate::report::{Report, Tally};
use crate::rng::mix;
use crate::story::{MS, SECOND, Story, TENANTS};
use crate::trace::Trace;
use crate::violation::{About, Check};
use crate::worker_node::WorkerNode;

/// How often every table of every node is checked.
const AUDIT_EVERY: u64 = 250 * MS;

/// A client and its reader, as the world sees them.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// The life of the API it asked; zero before it asked.
    life: u32,
    delivered: u32,
    consumed: u32,
    /// A `Consume` is noted.
    reading: bool,
}

/// Everything there is.
pub(crate) struct World<'s> {
    story: &'s Story,
    options: &'s Options<'s>,
    now: u64,
    agenda: Agenda,
    net: Network,
    apis: Vec<ApiNode>,
    workers: Vec<WorkerNode>,
    endpoints: Endpoints,
    clients: Vec<Client>,
    /// The place of each query in the story, by its number.
    places: Vec<Option<u32>>,
    tenants: Vec<TenantId>,
    checker: Checker,
    tally: Tally,
    trace: Trace,
    journals: Journals,
    /// Follows from every action of every node.
    fingerprint: u64,
    healed: bool,
    /// The agenda has nothing more, or everything has settled.
    over: bool,
}

impl<'s> World<'s> {
    /// A world at the beginning of its story.
    pub(crate) fn new(story: &'s Story, options: &'s Options<'s>) -> Self {
        let seed = story.seed;
        let (apis, workers) = (story.shape.apis as usize, story.worker_places());
        let endpoints = Endpoints::new(workers);
        let mut places =
            vec![None; story.queries.iter().map(|q| q.number + 1).max().unwrap_or(0) as usize];
        for (place, query) in (0..).zip(&story.queries) {
            places[query.number as usize] = Some(place);
        }
        Self {
            now: 0,
            agenda: Agenda::default(),
            net: Network::new(seed, apis, workers),
            apis: (0..apis)
                .map(|at| ApiNode::new(Process::new(seed, at), endpoints.len() as usize))
                .collect(),
            workers: (0_u32..)
                .take(workers)
                .map(|at| {
                    let process = Process::new(seed, apis + at as usize);
                    WorkerNode::new(process, Endpoints::first_of(at))
                })
                .collect(),
            endpoints,
            clients: vec![Client::default(); story.queries.len()],
            places,
            tenants: (0..TENANTS)
                .map(|at| TenantId::new(&format!("tenant-{at}")).expect("it is short and plain"))
                .collect(),
            checker: Checker::new(story),
            tally: Tally::default(),
            trace: Trace::new(options.trace),
            journals: Journals::default(),
            fingerprint: seed,
            healed: false,
            over: false,
            story,
            options,
        }
    }

    fn begin(&mut self) {
        let story = self.story;
        for worker in 0..story.shape.workers {
            self.start_worker(worker);
        }
        for api in 0..story.shape.apis {
            self.start_api(api);
        }
        for (at, fault) in (0..).zip(&story.faults) {
            self.agenda.note(fault.at, Event::Fault { fault: at });
        }
        for (at, query) in (0..).zip(&story.queries) {
            self.agenda.note(query.at, Event::Submit { query: at });
            if let Some(after) = query.leaves_after {
                self.agenda.note(query.at + after, Event::Leave { query: at });
            }
        }
        self.agenda.note(story.shape.heal_at, Event::Heal);
        self.agenda.note(AUDIT_EVERY, Event::Audit);
    }

    /// Turns until the story is over or a promise is broken.
    pub(crate) fn run(&mut self) {
        self.begin();
        while !self.over && self.checker.violation().is_none() {
            let Some((at, event)) = self.agenda.next() else { break };
            self.now = at;
            self.checker.now = at;
            if at > self.story.shape.end_at {
                self.demand_settled();
                break;
            }
            self.tally.events += 1;
            self.happen(event);
        }
    }

    /// What came of it.
    pub(crate) fn report(mut self) -> Report {
        self.tally.simulated_nanos = self.now;
        self.checker.tally_into(&mut self.tally);
        Report {
            seed: self.story.seed,
            violation: self.checker.take_violation(),
            fingerprint: self.fingerprint,
            tally: self.tally,
            trace: self.trace.into_lines(),
            journals: self.journals.into_all(),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fault { fault } => self.fault_begins(fault),
            Event::FaultOver { fault } => self.fault_ends(fault),
            Event::Heal => self.heal(),
            Event::Audit => self.audit_everything(),
            Event::ApiTick { api } => self.api_tick(api),
            Event::WorkerTick { worker } => self.worker_tick(worker),
            Event::Pipe { stream, way } => self.pipe_due(stream, way),
            Event::Stuck { stream, way, since } => self.pipe_stuck(stream, way, since),
            Event::ApiStreamEnded { api, life, session } => {
                self.api_stream_ended(api, life, session);
            }
            Event::WorkerStreamEnded { worker, life, session } => {
                self.worker_stream_ended(worker, life, session);
            }
            Event::Submit { query } => self.submit(query),
            Event::Leave { query } => self.leave(query),
            Event::Consume { query, life } => self.consume(query, life),
            Event::FetchArrives { api, fetch } => self.fetch_arrives(api, fetch),
            Event::FetchEnds { api, fetch } => self.fetch_ends(api, fetch),
            Event::RunEnds { worker, life, run } => self.run_ends(worker, life, run),
            Event::RunKills { worker, life, run } => self.run_kills(worker, life, run),
            Event::Discover { api, endpoint } => self.discover(api, endpoint),
            Event::WorkerUp { worker } => self.start_worker(worker),
            Event::WorkerDrains { worker, life } => self.ask_to_leave(worker, life),
            Event::ApiUp { api } => self.start_api(api),
            Event::Evict { worker, fault } => self.evict(worker, fault),
        }
    }

    fn audit_everything(&mut self) {
        self.agenda.note(self.now + AUDIT_EVERY, Event::Audit);
        self.check_pipes();
        for api in (0_u32..).take(self.apis.len()) {
            let process = &self.apis[api as usize].process;
            if !process.was_disturbed(self.now.saturating_sub(5 * SECOND)) {
                self.checker.judge_stragglers(api);
            }
        }
        if !self.options.from_outside_only {
            self.audit_machines();
        }
        let may_end = self.healed && !self.options.to_the_end;
        if may_end && self.checker.violation().is_none() && self.has_settled() {
            self.demand_settled();
            self.over = true;
        }
    }

    fn audit_machines(&mut self) {
        for (at, node) in (0..).zip(&self.apis) {
            if let Some(Err(broken)) = node.machine.as_ref().map(|machine| machine.audit()) {
                self.checker.broken(Check::Coordinator(broken.number), &broken, About::api(at));
            }
        }
        for (at, node) in (0..).zip(&self.workers) {
            if let Some(Err(broken)) = node.machine.as_ref().map(|machine| machine.audit()) {
                self.checker.broken(Check::Intake(broken.number), &broken, About::worker(at));
            }
        }
    }

    fn note_broken(&mut self, check: fn(u32) -> Check, audit: Result<(), Broken>, about: About) {
        if let Err(broken) = audit {
            self.checker.broken(check(broken.number), &broken, about);
        }
    }

    fn stamp(&mut self, word: u64) {
        self.fingerprint = mix(self.fingerprint ^ word);
    }
}
