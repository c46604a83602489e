//! What an API node does with results: fetches, gives fetches up, delivers, and tells clients to wait.

use core_workcoord::artifact::Artifact;
use core_workcoord::id::{Attempt, QueryId, SessionId, WorkId};
use core_workcoord::message::WorkRef;

use super::books::{QueryPhase, TryPhase};
use super::{Checker, Promise};
use crate::violation::About;

impl Checker {
    /// An API node fetches an artifact.
    pub(crate) fn api_fetches(
        &mut self,
        api: u32,
        work: WorkRef,
        session: SessionId,
        artifact: &Artifact,
    ) {
        let about = About::api(api).session(session).work(work.work_id);
        let limits = &self.shape.coordinator;
        let (most, most_bytes) = (limits.max_fetches, limits.max_fetch_bytes);
        let book = &mut self.apis[api as usize];
        book.step.matters = true;
        book.fetches += 1;
        book.fetch_bytes += artifact.size_bytes;
        let (fetches, bytes) = (book.fetches, book.fetch_bytes);
        let kept = fetches == 1 || (fetches <= most && bytes <= most_bytes);
        self.hold(Promise::FetchLimits, kept, about, || {
            format!("api-{api} fetches {fetches} artifacts of {bytes} bytes at once")
        });
        let at = self.find_try(session, work);
        let announced = at.is_some_and(|at| {
            let one = self.try_at(at);
            one.phase == TryPhase::Ready
                && one.is_line()
                && !one.fetching
                && one.checksum == Some(artifact.checksum)
                && self.queries[at.query as usize].phase == QueryPhase::Live
        });
        self.hold(Promise::FetchesAnnounced, announced, about, || {
            format!("api-{api} fetches {work:?} from {session}, which has not announced it")
        });
        if let Some(at) = at {
            self.change(api, at, |one| one.fetching = true);
        }
    }

    /// An API node gives a fetch up.
    pub(crate) fn api_abandons(&mut self, api: u32, work: WorkRef, session: SessionId) {
        let about = About::api(api).session(session).work(work.work_id);
        let at = self.find_try(session, work).filter(|at| self.try_at(*at).fetching);
        self.hold(Promise::FetchesAnnounced, at.is_some(), about, || {
            format!("api-{api} abandons a fetch of {work:?} that is not under way")
        });
        let Some(at) = at else { return };
        let size_bytes = self.try_at(at).size_bytes;
        let book = &mut self.apis[api as usize];
        book.fetches -= 1;
        book.fetch_bytes -= size_bytes;
        self.change(api, at, |one| one.fetching = false);
    }

    /// An API node hands an item to the merge. Gives the query's place.
    pub(crate) fn api_delivers(&mut self, api: u32, work: WorkId, attempt: Attempt) -> Option<u32> {
        let about = About::api(api).work(work);
        self.apis[api as usize].step.matters = true;
        let place = self.place_of(work.query)?;
        let query = &mut self.queries[place];
        let (alive, next) = (query.phase == QueryPhase::Live, query.delivered);
        let done = query.items.get(work.item as usize).and_then(|item| item.done);
        query.delivered += 1;
        self.tally.delivered += 1;
        self.hold(Promise::EndsOnce, alive, about, || {
            format!("api-{api} delivers {work}, whose query is over")
        });
        self.hold(Promise::DeliversInOrder, next == work.item, about, || {
            format!("api-{api} delivers {work} where item {next} is next")
        });
        self.hold(Promise::DeliversVerified, done == Some(attempt.0), about, || {
            format!("api-{api} delivers attempt {attempt} of {work}, verified is {done:?}")
        });
        u32::try_from(place).ok()
    }

    /// An API node tells a client that nobody is there.
    pub(crate) fn api_awaits_scale_up(&mut self, api: u32, query: QueryId) {
        let about = About::api(api).query(query);
        let book = &self.apis[api as usize];
        let rotation = book.sessions.iter().filter(|(_, it)| it.is_willing(&book.listed)).count();
        let waits = self.place_of(query).is_some_and(|place| {
            let query = &self.queries[place];
            query.phase == QueryPhase::Live && query.items.iter().any(|item| item.waits())
        });
        self.tally.scale_up_waits += 1;
        self.hold(Promise::ScaleUpWhenEmpty, rotation == 0 && waits, about, || {
            format!("a client is told to wait for workers with {rotation} in rotation")
        });
    }
}
