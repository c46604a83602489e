//! The coordinator at one moment, in plain figures: for metrics, the monitor endpoint, scalers and
//! the web page. Reading it changes nothing.

use std::time::Duration;

use super::Coordinator;
use crate::id::{Endpoint, QueryId, SessionId, TenantId, WorkerId};
use crate::message::WorkerStatus;
use crate::moment::Moment;
use crate::roster::Standing;

/// Everything section 11 of the design asks to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Items that wait.
    pub queued: u32,
    /// Items on their way: assigned up to fetching.
    pub running: u32,
    /// How long the item that waits longest has waited.
    pub oldest_age: Duration,
    /// Queries that have not ended.
    pub queries: Vec<QueryView>,
    /// Workers, by address.
    pub workers: Vec<WorkerView>,
    /// Live control streams.
    pub active_streams: u32,
    /// Workers in rotation.
    pub in_rotation: u32,
    /// Fetches under way.
    pub fetches: u32,
    /// Artifacts that wait for a fetch.
    pub fetches_waiting: u32,
    /// Bytes of the fetches under way.
    pub fetch_bytes: u64,
    /// Cancellations not yet confirmed.
    pub cancelling: u32,
}

/// One query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryView {
    /// Which one.
    pub query: QueryId,
    /// Whose.
    pub tenant: TenantId,
    /// How long it has run.
    pub age: Duration,
    /// Items in all.
    pub total: u32,
    /// Items that wait.
    pub queued: u32,
    /// Items on their way.
    pub running: u32,
    /// Items done.
    pub done: u32,
    /// Items delivered.
    pub delivered: u32,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Where discovery says it is.
    pub endpoint: Endpoint,
    /// Its name, once it introduced itself.
    pub worker: Option<WorkerId>,
    /// The session with it.
    pub session: Option<SessionId>,
    /// How it stands.
    pub standing: Standing,
    /// It refused work and has not spoken of itself since.
    pub held: bool,
    /// What it last said of itself.
    pub status: Option<WorkerStatus>,
    /// Our items on it.
    pub items: u32,
    /// How long nothing was heard of it.
    pub silent_for: Duration,
}

impl Snapshot {
    /// What a scaler looks at: everything that waits or is on its way.
    pub fn depth(&self) -> u32 {
        self.queued + self.running
    }
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Coordinator {
    /// Everything there is to see now.
    pub fn snapshot(&self, now: Moment) -> Snapshot {
        let mut oldest: Option<Moment> = None;
        let mut running = 0;
        let mut queries = Vec::with_capacity(self.ledger.len());
        for (id, query) in self.ledger.iter() {
            let open = small(query.open.len());
            running += open;
            if query.queued() > 0 {
                let fresh = query.items.get(query.fresh as usize).map(|work| work.queued_at);
                let retried = query.retry.iter().map(|item| query.item(*item).queued_at).min();
                oldest = [oldest, fresh, retried].into_iter().flatten().min();
            }
            queries.push(QueryView {
                query: id,
                tenant: query.tenant.clone(),
                age: now.since(query.submitted_at),
                total: query.len(),
                queued: query.queued(),
                running: open,
                done: query.done,
                delivered: query.delivered,
            });
        }
        let parked = self.parked.iter().filter_map(|id| self.ledger.work(*id));
        oldest = oldest.into_iter().chain(parked.map(|work| work.queued_at)).min();
        let live = || self.roster.sessions().filter_map(|(_, session)| session.live());
        Snapshot {
            queued: self.ledger.queued,
            running,
            oldest_age: oldest.map_or(Duration::ZERO, |since| now.since(since)),
            queries,
            workers: self.worker_views(now),
            active_streams: small(live().count()),
            in_rotation: small(self.roster.rotation().len()),
            fetches: small(self.fetches.active()),
            fetches_waiting: small(self.fetches.waiting()),
            fetch_bytes: self.fetches.active_bytes(),
            cancelling: small(live().map(|live| live.cancelling.len()).sum()),
        }
    }

    fn worker_views(&self, now: Moment) -> Vec<WorkerView> {
        let view = |(endpoint, post): (&Endpoint, &crate::roster::Post)| {
            let live = post.session.and_then(|session| self.roster.live(session));
            WorkerView {
                endpoint: endpoint.clone(),
                worker: live.map(|live| live.worker.clone()),
                session: post.session,
                standing: self.roster.standing(post),
                held: live.is_some_and(|live| live.held),
                status: live.and_then(|live| live.status),
                items: live.map_or(0, |live| small(live.lines.len())),
                silent_for: live.map_or(Duration::ZERO, |live| now.since(live.pulse.last_heard())),
            }
        };
        self.roster.posts().map(view).collect()
    }
}
