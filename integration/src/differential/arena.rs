//! Where both sides meet: two Prometheus servers, one for each way of dropping names, with all data
//! sets in them side by side, a day apart; and what we put up against them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tributary_promql::{Expr, Labels};
use tributary_promqltest::DataSet;

use super::compare::{Order, Verdict, compare};
use super::data::{self, DAY_MS, World};
use super::grammar::{Question, When};
use super::outcome::Outcome;
use super::peer::{Binary, Client, PeerError, Prometheus};
use super::rewrite;

/// The day of the first data set: the 1st of January 2021. Later ones lie a day apart, so that no
/// window of one reaches into another.
pub const FIRST_DAY: i64 = 18_628;

/// What is held against Prometheus.
pub trait Subject: Sync {
    /// The outcome of a question about these samples.
    fn answer(&self, data: &DataSet, question: &Question) -> Outcome;
}

/// Both servers with data in them.
#[derive(Debug)]
pub struct Arena {
    at_once: Prometheus,
    delayed: Prometheus,
    /// The first day without data. Held while a day is written: samples must not go back in time.
    free_day: Mutex<i64>,
}

/// One thread's connections to the arena.
pub struct Asker<'a> {
    arena: &'a Arena,
    at_once: Client,
    delayed: Client,
    subject: &'a dyn Subject,
}

/// What came of a question on both sides.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What came of it there.
    pub peer: Outcome,
    /// What came of it here.
    pub ours: Outcome,
    /// How alike they are.
    pub verdict: Verdict,
}

impl Arena {
    /// Starts the servers and fills them.
    pub fn new(binary: &Binary, worlds: &[World]) -> Result<Self, PeerError> {
        let days = worlds.iter().map(|world| world.base / DAY_MS);
        let free_day = days.max().unwrap_or(FIRST_DAY) + 1;
        let arena = Self {
            at_once: binary.start(false)?,
            delayed: binary.start(true)?,
            free_day: Mutex::new(free_day),
        };
        // Prometheus goes through series in the order in which it first met them, and which of two
        // equal values is the top one depends on it. So all meet it first in the order of their
        // labels, long before the first data set.
        let stamp = |labels: &Labels| (labels.clone(), vec![((FIRST_DAY - 2) * DAY_MS, 0.0)]);
        let names = worlds.iter().flat_map(|world| world.data.series().keys());
        let names = data::data_set(names.collect::<BTreeSet<_>>().into_iter().map(stamp));
        for server in [&arena.at_once, &arena.delayed] {
            let mut client = server.connect();
            client.write(&names)?;
            for world in worlds {
                client.write(&world.data)?;
            }
        }
        Ok(arena)
    }

    /// A connection of its own to the server that a question is for.
    pub fn connect(&self, delayed_name_removal: bool) -> Client {
        if delayed_name_removal { self.delayed.connect() } else { self.at_once.connect() }
    }

    /// Connects to it.
    pub fn asker<'a>(&'a self, subject: &'a dyn Subject) -> Asker<'a> {
        let (at_once, delayed) = (self.at_once.connect(), self.delayed.connect());
        Asker { arena: self, at_once, delayed, subject }
    }
}

impl Asker<'_> {
    /// Asks both sides a question about samples that the servers hold.
    pub fn ask(&mut self, data: &DataSet, question: &Question) -> Result<Pair, PeerError> {
        let peer = self.client(question).ask(question)?;
        let ours = self.subject.answer(data, question);
        let expr = rewrite::tree(question);
        let verdict = compare(&peer, &ours, order(question, expr.as_ref()));
        Ok(Pair { peer, ours, verdict })
    }

    /// Stores other samples on a day of their own, with the question moved to it.
    pub fn settle(
        &mut self,
        data: &DataSet,
        question: &Question,
    ) -> Result<(DataSet, Question), PeerError> {
        let arena = self.arena;
        let mut day = arena.free_day.lock().unwrap_or_else(PoisonError::into_inner);
        let by = *day * DAY_MS - data::first_day(data);
        let (moved, question) = (data::moved(data, by), rewrite::moved(question, by));
        self.client(&question).write(&moved)?;
        *day += 1;
        Ok((moved, question))
    }

    fn client(&mut self, question: &Question) -> &mut Client {
        if question.delayed_name_removal { &mut self.delayed } else { &mut self.at_once }
    }
}

fn order(question: &Question, expr: Option<&Expr>) -> Order {
    match (question.when, expr) {
        (When::Instant(_), Some(expr)) => Order::of(expr),
        _ => Order::Any,
    }
}
