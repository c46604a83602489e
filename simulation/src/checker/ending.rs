//! What must hold at last, when every fault is long over.

use core_workcoord::id::SessionId;

use super::books::{QueryPhase, TryPhase};
use super::{Checker, Promise};
use crate::violation::About;

impl Checker {
    /// Whether every query that an API took in has ended.
    pub(crate) fn queries_are_over(&self) -> bool {
        self.apis.iter().all(|book| book.live.is_empty())
    }

    /// Whether an API has a live session that it would give work to, with this worker.
    pub(crate) fn has_in_rotation(&self, api: u32, worker: u32) -> bool {
        let book = &self.apis[api as usize];
        book.sessions.iter().any(|(_, it)| it.worker == worker && it.is_willing(&book.listed))
    }

    /// Every query has ended, and every announced artifact was let go of.
    pub(crate) fn demand_ends(&mut self) {
        for place in 0..self.queries.len() {
            let query = &self.queries[place];
            if query.phase == QueryPhase::Live {
                let api = query.api;
                self.hold(Promise::Ends, false, About::api(api), || {
                    format!("the query at place {place} has not ended")
                });
            }
        }
        for api in (0_u32..).take(self.apis.len()) {
            let kept = self.apis[api as usize].sessions.iter().find_map(|(id, session)| {
                let at =
                    session.tries.iter().find(|at| self.try_at(**at).phase == TryPhase::Ready)?;
                Some((id, *at))
            });
            if let Some((session, at)) = kept {
                self.hold(Promise::Acknowledges, false, About::api(api).session(session), || {
                    format!(
                        "item {} of the query at place {} was never let go of",
                        at.item, at.query
                    )
                });
            }
        }
    }

    /// A table that should be empty.
    pub(crate) fn demand_settled(
        &mut self,
        settled: bool,
        about: About,
        what: impl FnOnce() -> String,
    ) {
        self.hold(Promise::Settles, settled, about, what);
    }

    /// A worker that should be in rotation.
    pub(crate) fn demand_in_rotation(&mut self, api: u32, worker: u32) {
        let there = self.has_in_rotation(api, worker);
        let session = self.apis[api as usize]
            .sessions
            .iter()
            .find(|(_, it)| it.worker == worker)
            .map(|(id, _)| id);
        let about = About::api(api).with_worker(worker);
        let about = session.map_or(about, |session: SessionId| about.session(session));
        self.hold(Promise::Reconnects, there, about, || {
            format!("api-{api} does not have worker-{worker} in rotation: {session:?}")
        });
    }
}
