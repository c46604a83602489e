//! A deterministic simulation of several API nodes and many workers. The real state machines of
//! `core-workcoord` run; the world around them (processes, streams, disks, executors, discovery,
//! clients, clocks) is simulated, everything that can go wrong does, and numbered promises are
//! checked after every step.
//!
//! A [`Story`] is written from a seed and decides everything beforehand; [`run`] lets it happen and
//! gives a [`Report`]. The same story always gives the same report. A broken promise is a
//! [`Violation`]; [`shrink`] makes its story small and [`tell`] prints it. [`run_seeds`] runs many.
//!
//! Knows nothing of sockets, files, threads of the real drivers, or PromQL.

mod agenda;
mod api_node;
mod brief;
mod bug;
mod checker;
mod content;
mod describe;
mod endpoints;
mod fault;
mod journal;
mod network;
mod process;
mod report;
mod rng;
mod seeds;
mod shrink;
mod small_map;
mod story;
mod summary;
mod tell;
mod trace;
mod violation;
mod worker_node;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use bug::SimBug;
pub use checker::Promise;
use core_workcoord::coordinator::Coordinator;
use core_workcoord::intake::Intake;
pub use fault::{ApiLie, FAULT_KINDS, FAULT_NAMES, Fault, FaultKind, WorkerLie};
pub use journal::Journal;
pub use report::{Report, Tally};
pub use seeds::{run_seeds, run_seeds_with};
pub use shrink::{shrink, shrink_with};
pub use story::{Ending, ItemStory, QueryStory, Shape, Story, TENANTS};
pub use summary::Summary;
pub use tell::{tell, tell_with};
pub use trace::Line;
pub use violation::{About, Check, Violation};

use crate::world::World;

/// How a story is run.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Keep what happened line by line.
    pub trace: bool,
    /// Ask the state machines nothing about themselves: only what is seen from outside counts.
    pub from_outside_only: bool,
    /// Go on to the end of the story even when everything has settled before; for measuring.
    pub to_the_end: bool,
    /// Keep a journal of every life of every node.
    pub journal: bool,
    /// A driver that is wrong on purpose.
    pub sim_bug: Option<SimBug>,
    /// Done to every new coordinator; for deliberate bugs.
    pub prepare_coordinator: Option<&'a (dyn Fn(&mut Coordinator) + Sync)>,
    /// Done to every new intake; for deliberate bugs.
    pub prepare_intake: Option<&'a (dyn Fn(&mut Intake) + Sync)>,
}

/// Lets a story happen.
pub fn run(story: &Story, options: &Options<'_>) -> Report {
    let mut world = World::new(story, options);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let mut report = world.report();
    if let Err(panic) = outcome {
        let what = match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (None, Some(text)) => String::from(*text),
            (None, None) => String::from("a panic without words"),
        };
        report.violation.get_or_insert(Violation {
            seed: story.seed,
            at: report.tally.simulated_nanos,
            number: Check::Panic,
            what,
            about: About::default(),
        });
    }
    report
}
