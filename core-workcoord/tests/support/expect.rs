//! What a story expects to have happened: where work is, what was delivered, how queries and
//! streams ended, what was said to whom.

use core_workcoord::coordinator::{
    Action, CloseReason, Counts, Outcome, QueryFailure, Snapshot, WorkerView,
};
use core_workcoord::id::{QueryId, WorkId};
use core_workcoord::message::{ApiMessage, CancelReason};
use core_workcoord::roster::Standing;

use super::scenario::Scenario;
use super::verbs::At;
use super::words::W;

impl Scenario {
    /// Everything the coordinator wanted since the story last looked.
    pub fn news(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.fresh)
    }

    /// The items assigned since the story last looked, with the worker that got each.
    pub fn newly_assigned(&mut self) -> Vec<(WorkId, W)> {
        let assigned = |action: &Action| match action {
            Action::Send { session, message: ApiMessage::AssignWork(work) } => {
                Some((work.work_id, self.workers[session]))
            }
            _ => None,
        };
        let all = self.fresh.iter().filter_map(assigned).collect();
        self.fresh.clear();
        all
    }

    pub fn view(&self) -> Snapshot {
        self.core.snapshot(self.now)
    }

    pub fn counts(&self) -> &Counts {
        self.core.counts()
    }

    /// One worker as the API sees it.
    #[track_caller]
    pub fn view_of(&self, worker: W) -> WorkerView {
        let endpoint = worker.endpoint();
        let found = self.view().workers.into_iter().find(|view| view.endpoint == endpoint);
        found.unwrap_or_else(|| panic!("{worker:?} is not known"))
    }

    #[track_caller]
    pub fn expect_standing(&self, worker: W, standing: Standing) {
        assert_eq!(self.view_of(worker).standing, standing, "{worker:?}");
    }

    /// The latest attempt at an item went to this worker, on its present session.
    #[track_caller]
    pub fn expect_on(&self, worker: W, work: WorkId) {
        let at = self.at(work);
        assert_eq!((at.worker, at.session), (worker, self.session(worker)), "work {work}");
    }

    /// Everything that is on its way is on this worker, and something is.
    #[track_caller]
    pub fn expect_all_work_on(&self, worker: W) {
        let view = self.view();
        assert!(view.running > 0, "nothing is on its way");
        assert_eq!(self.items_on(worker), view.running, "some of it is elsewhere");
        assert_eq!(view.queued, 0, "some of it waits");
    }

    /// Our items on a worker.
    #[track_caller]
    pub fn items_on(&self, worker: W) -> u32 {
        self.view_of(worker).items
    }

    #[track_caller]
    pub fn expect_waiting(&self, items: u32) {
        assert_eq!(self.view().queued, items, "items that wait");
    }

    /// These items of a query were delivered, in this order, and no others.
    #[track_caller]
    pub fn expect_delivered(&self, query: QueryId, items: &[u32]) {
        let all = self.delivered.iter().filter(|work| work.query == query);
        assert_eq!(all.map(|work| work.item).collect::<Vec<_>>(), items, "deliveries of {query}");
    }

    /// The query ended once, like this.
    #[track_caller]
    pub fn expect_end(&self, query: QueryId, outcome: &Outcome) {
        let ends: Vec<_> = self.ended.iter().filter(|(ended, _)| *ended == query).collect();
        assert_eq!(ends, [&(query, outcome.clone())]);
    }

    #[track_caller]
    pub fn expect_complete(&self, query: QueryId) {
        self.expect_end(query, &Outcome::Complete);
    }

    #[track_caller]
    pub fn expect_failed(&self, query: QueryId, failure: QueryFailure) {
        self.expect_end(query, &Outcome::Failed(failure));
    }

    #[track_caller]
    pub fn expect_going_on(&self, query: QueryId) {
        assert!(self.ended.iter().all(|(ended, _)| *ended != query), "{:?}", self.ended);
    }

    /// The last stream that was closed was this worker's, for this reason.
    #[track_caller]
    pub fn expect_closed(&self, worker: W, reason: CloseReason) {
        assert_eq!(self.closed.last(), Some(&(worker, reason)));
        assert!(!self.present.contains_key(&worker), "{worker:?} has a session");
    }

    #[track_caller]
    pub fn expect_no_stream_closed(&self) {
        assert_eq!(self.closed, []);
    }

    /// These attempts were cancelled and not confirmed, in this order, all for this reason.
    #[track_caller]
    pub fn expect_cancelled(&self, attempts: &[At], reason: CancelReason) {
        let expected: Vec<_> = attempts.iter().map(|at| (*at, reason)).collect();
        assert_eq!(self.cancels, expected);
    }

    /// The artifacts acknowledged to a worker since the story last looked.
    pub fn acknowledged_to(&self, worker: W) -> Vec<WorkId> {
        let acked = |action: &Action| match action {
            Action::Send { session, message: ApiMessage::ArtifactAck(ack) } => {
                (self.workers[session] == worker).then_some(ack.work_id)
            }
            _ => None,
        };
        self.fresh.iter().filter_map(acked).collect()
    }

    /// The queries whose clients were told to wait for workers, since the story last looked.
    pub fn told_of_scale_up(&mut self) -> Vec<QueryId> {
        let told = |action: &Action| match action {
            Action::AwaitScaleUp { query } => Some(*query),
            _ => None,
        };
        let all = self.fresh.iter().filter_map(told).collect();
        self.fresh.clear();
        all
    }

    /// Nothing that the story does here changes anything but the number of late messages, which
    /// grows with each.
    #[track_caller]
    pub fn expect_all_late(&mut self, tell: impl Fn(&mut Self), messages: u64) {
        self.fresh.clear();
        let (before, late) = (self.view(), self.counts().late);
        tell(self);
        assert_eq!(self.counts().late - late, messages, "late messages");
        assert_eq!(self.view(), before);
        assert_eq!(self.fresh, [], "late messages lead to nothing");
    }
}
