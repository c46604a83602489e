//! Whose turn it is: tenants share, then queries within a tenant. Time order within a query is the
//! query's own (`work_ledger`).
//!
//! Stride scheduling on two levels. Every turn moves a tenant, and a query within it, one step
//! ahead; the one furthest behind is next; whoever comes back from a pause starts at the present
//! turn and has saved nothing up. So of two that always have work, neither gets more than one turn
//! more than the other, and a query that ends leaves its place at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{QueryId, TenantId};

/// Queries that have work to give out, in the order of their turns.
#[derive(Clone, Debug, Default)]
pub struct FairQueue {
    tenants: BTreeMap<TenantId, Lane>,
    /// Tenants with a ready query, furthest behind first.
    ready: BTreeSet<(u64, TenantId)>,
    /// The step of the last turn.
    present: u64,
    joined: u64,
}

/// One tenant's queries.
#[derive(Clone, Debug, Default)]
struct Lane {
    step: u64,
    queries: BTreeMap<QueryId, Ticket>,
    /// Ready queries, furthest behind first, then in the order they came.
    ready: BTreeSet<(u64, u64, QueryId)>,
    present: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ticket {
    step: u64,
    joined: u64,
    ready: bool,
}

impl FairQueue {
    /// A new query; it has no work to give out until it is made ready.
    pub fn join(&mut self, tenant: &TenantId, query: QueryId) {
        self.joined += 1;
        let ticket = Ticket { step: 0, joined: self.joined, ready: false };
        let lane = self.tenants.entry(tenant.clone()).or_default();
        lane.queries.insert(query, ticket);
    }

    /// A query is over: its place is gone at once, and its tenant's with the last one.
    pub fn leave(&mut self, tenant: &TenantId, query: QueryId) {
        self.set_ready(tenant, query, false);
        if let Some(lane) = self.tenants.get_mut(tenant) {
            lane.queries.remove(&query);
            if lane.queries.is_empty() {
                self.tenants.remove(tenant);
            }
        }
    }

    /// Whether a query has work to give out.
    pub fn set_ready(&mut self, tenant: &TenantId, query: QueryId, ready: bool) {
        let Some(lane) = self.tenants.get_mut(tenant) else { return };
        let Some(ticket) = lane.queries.get_mut(&query) else { return };
        if ticket.ready == ready {
            return;
        }
        let was_ready = !lane.ready.is_empty();
        ticket.ready = ready;
        if ready {
            ticket.step = ticket.step.max(lane.present);
            lane.ready.insert((ticket.step, ticket.joined, query));
        } else {
            lane.ready.remove(&(ticket.step, ticket.joined, query));
        }
        let is_ready = !lane.ready.is_empty();
        if is_ready && !was_ready {
            lane.step = lane.step.max(self.present);
            self.ready.insert((lane.step, tenant.clone()));
        } else if was_ready && !is_ready {
            self.ready.remove(&(lane.step, tenant.clone()));
        }
    }

    /// Whose turn it is.
    pub fn next(&self) -> Option<QueryId> {
        let (_, tenant) = self.ready.first()?;
        self.tenants.get(tenant)?.ready.first().map(|(_, _, query)| *query)
    }

    /// The query whose turn it is took it.
    pub fn turn_taken(&mut self) {
        let Some((step, tenant)) = self.ready.pop_first() else { return };
        let lane = self.tenants.get_mut(&tenant).expect("a ready tenant has a lane");
        let (at, joined, query) = lane.ready.pop_first().expect("a ready lane has a query");
        lane.present = at;
        lane.queries.get_mut(&query).expect("a ready query has a ticket").step = at + 1;
        lane.ready.insert((at + 1, joined, query));
        self.present = step;
        lane.step = step + 1;
        self.ready.insert((step + 1, tenant));
    }

    /// Queries of one tenant.
    pub fn tenant_queries(&self, tenant: &TenantId) -> usize {
        self.tenants.get(tenant).map_or(0, |lane| lane.queries.len())
    }

    /// Whether this query is known and has work to give out.
    pub fn is_ready(&self, tenant: &TenantId, query: QueryId) -> Option<bool> {
        Some(self.tenants.get(tenant)?.queries.get(&query)?.ready)
    }

    /// How many queries it knows.
    pub fn len(&self) -> usize {
        self.tenants.values().map(|lane| lane.queries.len()).sum()
    }

    /// Whether it knows nobody.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
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
    fn unknown_names_change_nothing() {
        let mut queue = queue(&[("a", 1)]);
        queue.set_ready(&tenant("nobody"), QueryId(1), true);
        queue.set_ready(&tenant("a"), QueryId(7), true);
        assert_eq!(queue.is_ready(&tenant("a"), QueryId(7)), None);
        assert_eq!(turns(&mut queue, 2), [1, 1]);
    }
}
