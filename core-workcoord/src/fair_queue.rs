//! Whose turn it is: tenants share, then queries within a tenant. Time order within a query is the
//! query's own (`work_ledger`).
//!
//! Stride scheduling on two levels. Every turn moves a tenant, and a query within it, one stride
//! ahead; the one furthest behind is next, and of equals the one that waits longest. The line's own
//! mark moves on with every turn by a stride's share among those in line; whoever is new, or comes
//! back from a pause, starts at the mark and has saved nothing up. So of two that always have work
//! neither gets more than one turn more than the other, no stream of newcomers keeps anybody
//! waiting, and a query that ends leaves its place at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{QueryId, TenantId};

/// What one turn costs: large enough to be shared, small enough for 2^44 turns.
const STRIDE: u64 = 1 << 20;

/// Queries that have work to give out, in the order of their turns.
#[derive(Clone, Debug, Default)]
pub struct FairQueue {
    lanes: BTreeMap<TenantId, Lane>,
    /// Tenants with a ready query.
    ready: Turns<TenantId>,
}

/// One tenant's queries.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Its place among the tenants.
    ticket: Ticket,
    queries: BTreeMap<QueryId, Ticket>,
    /// Ready queries.
    ready: Turns<QueryId>,
}

/// A place in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    /// How far ahead its turns have brought it.
    step: u64,
    /// When it took its present place: of equal steps the earlier goes first.
    since: u64,
    /// Whether it stands in line now.
    ready: bool,
}

/// A line of those that are ready, furthest behind first.
#[derive(Clone, Debug)]
struct Turns<T> {
    line: BTreeSet<(u64, u64, T)>,
    /// Where newcomers start.
    mark: u64,
    placed: u64,
}

impl<T: Ord> Default for Turns<T> {
    fn default() -> Self {
        Self { line: BTreeSet::new(), mark: 0, placed: 0 }
    }
}

impl<T: Ord + Clone> Turns<T> {
    fn next(&self) -> Option<&T> {
        self.line.first().map(|(_, _, who)| who)
    }

    /// Takes a place in line.
    fn enter(&mut self, who: &T, ticket: &mut Ticket) {
        ticket.step = ticket.step.max(self.mark);
        ticket.ready = true;
        self.place(who, ticket);
    }

    fn place(&mut self, who: &T, ticket: &mut Ticket) {
        self.placed += 1;
        ticket.since = self.placed;
        self.line.insert((ticket.step, ticket.since, who.clone()));
    }

    fn leave(&mut self, who: &T, ticket: &mut Ticket) {
        ticket.ready = false;
        self.line.remove(&(ticket.step, ticket.since, who.clone()));
    }

    /// The first in line took its turn.
    fn turn_taken(&mut self, who: &T, ticket: &mut Ticket) {
        // One that is alone shares with whoever comes next.
        let sharing = self.line.len().max(2) as u64;
        self.leave(who, ticket);
        self.mark = ticket.step.max(self.mark + (STRIDE / sharing).max(1));
        ticket.step += STRIDE;
        ticket.ready = true;
        self.place(who, ticket);
    }
}

impl FairQueue {
    /// A new query; it has no work to give out until it is made ready.
    pub fn join(&mut self, tenant: &TenantId, query: QueryId) {
        let lane = self.lanes.entry(tenant.clone()).or_default();
        lane.queries.insert(query, Ticket::default());
    }

    /// A query is over: its place is gone at once, and its tenant's with the last one.
    pub fn leave(&mut self, tenant: &TenantId, query: QueryId) {
        self.set_ready(tenant, query, false);
        if let Some(lane) = self.lanes.get_mut(tenant) {
            lane.queries.remove(&query);
            if lane.queries.is_empty() {
                self.lanes.remove(tenant);
            }
        }
    }

    /// Whether a query has work to give out.
    pub fn set_ready(&mut self, tenant: &TenantId, query: QueryId, ready: bool) {
        let Some(lane) = self.lanes.get_mut(tenant) else { return };
        let Some(ticket) = lane.queries.get_mut(&query) else { return };
        match (ticket.ready, ready) {
            (false, true) => lane.ready.enter(&query, ticket),
            (true, false) => lane.ready.leave(&query, ticket),
            (false, false) | (true, true) => return,
        }
        match (lane.ticket.ready, lane.ready.next().is_some()) {
            (false, true) => self.ready.enter(tenant, &mut lane.ticket),
            (true, false) => self.ready.leave(tenant, &mut lane.ticket),
            (false, false) | (true, true) => {}
        }
    }

    /// Whose turn it is.
    pub fn next(&self) -> Option<QueryId> {
        self.lanes.get(self.ready.next()?)?.ready.next().copied()
    }

    /// The query whose turn it is took it.
    pub fn turn_taken(&mut self) {
        let Some(tenant) = self.ready.next().cloned() else { return };
        let lane = self.lanes.get_mut(&tenant).expect("a ready tenant has a lane");
        let query = *lane.ready.next().expect("a ready lane has a query");
        let ticket = lane.queries.get_mut(&query).expect("a ready query has a ticket");
        lane.ready.turn_taken(&query, ticket);
        self.ready.turn_taken(&tenant, &mut lane.ticket);
    }

    /// Queries of one tenant.
    pub fn tenant_queries(&self, tenant: &TenantId) -> usize {
        self.lanes.get(tenant).map_or(0, |lane| lane.queries.len())
    }

    /// Whether this query is known and has work to give out.
    pub fn is_ready(&self, tenant: &TenantId, query: QueryId) -> Option<bool> {
        Some(self.lanes.get(tenant)?.queries.get(&query)?.ready)
    }

    /// How many queries it knows.
    pub fn len(&self) -> usize {
        self.lanes.values().map(|lane| lane.queries.len()).sum()
    }

    /// Whether it knows nobody.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    fn queue(queries: &[(&str, u128)]) -> FairQueue {
        let mut queue = FairQueue::default();
        for (name, id) in queries {
            queue.join(&tenant(name), QueryId(*id));
            queue.set_ready(&tenant(name), QueryId(*id), true);
        }
        queue
    }

    fn turns(queue: &mut FairQueue, n: usize) -> Vec<u128> {
        (0..n)
            .map(|_| {
                let query = queue.next().unwrap();
                queue.turn_taken();
                query.0
            })
            .collect()
    }

    #[test]
    fn tenants_share_however_many_queries_one_has() {
        let mut queue = queue(&[("big", 1), ("big", 2), ("big", 3), ("small", 9)]);
        assert_eq!(turns(&mut queue, 8), [1, 9, 2, 9, 3, 9, 1, 9]);
        assert_eq!(queue.tenant_queries(&tenant("big")), 3);
        assert_eq!(queue.len(), 4);
    }

    #[test]
    fn a_query_that_ends_leaves_its_place_at_once() {
        let mut queue = queue(&[("a", 1), ("a", 2), ("b", 3)]);
        queue.leave(&tenant("a"), QueryId(1));
        queue.leave(&tenant("b"), QueryId(3));
        queue.leave(&tenant("b"), QueryId(3));
        assert_eq!(turns(&mut queue, 3), [2, 2, 2]);
        queue.leave(&tenant("a"), QueryId(2));
        assert_eq!(queue.next(), None);
        assert!(queue.is_empty());
        queue.turn_taken();
    }

    #[test]
    fn nobody_saves_turns_up_by_pausing() {
        let mut queue = queue(&[("a", 1), ("b", 2)]);
        queue.set_ready(&tenant("b"), QueryId(2), false);
        assert_eq!(queue.is_ready(&tenant("b"), QueryId(2)), Some(false));
        assert_eq!(turns(&mut queue, 50), [1; 50]);
        queue.set_ready(&tenant("b"), QueryId(2), true);
        queue.set_ready(&tenant("b"), QueryId(2), true);
        let mine = turns(&mut queue, 20).into_iter().filter(|query| *query == 2).count();
        assert!((10..=11).contains(&mine), "{mine} of 20 turns");
    }

    #[test]
    fn no_stream_of_newcomers_keeps_anybody_waiting() {
        let mut queue = queue(&[("z", 1)]);
        let mut mine = 0;
        for newcomer in 100..200 {
            // One more query of the same tenant, and one of a tenant whose name comes first.
            for name in ["z", "a"] {
                queue.join(&tenant(name), QueryId(newcomer));
                queue.set_ready(&tenant(name), QueryId(newcomer), true);
            }
            for query in turns(&mut queue, 2) {
                mine += u32::from(query == 1);
                for name in ["z", "a"] {
                    if query != 1 && queue.is_ready(&tenant(name), QueryId(query)).is_some() {
                        queue.leave(&tenant(name), QueryId(query));
                    }
                }
            }
        }
        assert!(mine >= 10, "{mine} of 200 turns, with ever more queries to share with");
    }

    #[test]
    fn unknown_names_change_nothing() {
        let mut queue = queue(&[("a", 1)]);
        queue.set_ready(&tenant("nobody"), QueryId(1), true);
        queue.set_ready(&tenant("a"), QueryId(7), true);
        assert_eq!(queue.is_ready(&tenant("a"), QueryId(7)), None);
        assert_eq!(turns(&mut queue, 2), [1, 1]);
    }
}
