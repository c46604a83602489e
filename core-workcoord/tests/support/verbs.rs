//! What a story does to queries and work: submit, accept, run, fail, announce, fetch, cancel. Each
//! verb is one or a few inputs; who the workers are is in `scenario`.

use core_workcoord::artifact::Artifact;
use core_workcoord::assign::{Node, Pick, Room, Rotation};
use core_workcoord::coordinator::{FetchResult, Input, Submission};
use core_workcoord::id::{AffinityKey, Attempt, QueryId, SessionId, WorkId};
use core_workcoord::message::{
    Failure, RejectReason, WorkFailed, WorkReady, WorkRef, WorkRejected, WorkerMessage,
};

use super::scenario::Scenario;
use super::words::{W, artifact_of};

/// One attempt: who got it, on which session. Answers are sent for one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub worker: W,
    pub session: SessionId,
    pub work: WorkRef,
}

/// Which attempt a verb is about: one that was remembered, or the latest one of an item.
pub trait Which {
    fn at(self, scenario: &Scenario) -> At;
}

impl Which for At {
    fn at(self, _: &Scenario) -> At {
        self
    }
}

impl Which for WorkId {
    #[track_caller]
    fn at(self, scenario: &Scenario) -> At {
        let mut newest_first = scenario.assigned.iter().rev();
        let found = newest_first.find(|at| at.work.work_id == self);
        *found.unwrap_or_else(|| panic!("work {self} was never assigned"))
    }
}

impl Scenario {
    // Queries.

    #[track_caller]
    pub fn submit(&mut self, submission: Submission) {
        self.submitted.insert(submission.query);
        self.tell(Input::Submit(submission));
    }

    #[track_caller]
    pub fn cancel(&mut self, query: QueryId) {
        self.tell(Input::CancelQuery { query });
    }

    #[track_caller]
    pub fn consume(&mut self, query: QueryId, through: u32) {
        self.tell(Input::Consumed { query, through });
    }

    // Work.

    /// The latest attempt at an item.
    #[track_caller]
    pub fn at(&self, work: WorkId) -> At {
        work.at(self)
    }

    #[track_caller]
    pub fn accept(&mut self, which: impl Which) {
        let at = which.at(self);
        self.say_on(at.session, WorkerMessage::Accepted(at.work));
    }

    #[track_caller]
    pub fn start(&mut self, which: impl Which) {
        let at = which.at(self);
        self.say_on(at.session, WorkerMessage::Started(at.work));
    }

    /// Accepted, and running at once.
    #[track_caller]
    pub fn run(&mut self, which: impl Which) {
        let at = which.at(self);
        self.accept(at);
        self.start(at);
    }

    #[track_caller]
    pub fn reject(&mut self, which: impl Which) {
        let at = which.at(self);
        let rejected = WorkRejected { work: at.work, reason: RejectReason::Full };
        self.say_on(at.session, WorkerMessage::Rejected(rejected));
    }

    #[track_caller]
    pub fn fail(&mut self, which: impl Which, failure: Failure) {
        let at = which.at(self);
        self.say_on(at.session, WorkerMessage::Failed(WorkFailed { work: at.work, failure }));
    }

    /// The artifact is announced.
    #[track_caller]
    pub fn ready(&mut self, which: impl Which) {
        let at = which.at(self);
        self.ready_with(at, artifact_of(at.worker, at.work.work_id));
    }

    #[track_caller]
    pub fn ready_with(&mut self, which: impl Which, artifact: Artifact) {
        let at = which.at(self);
        self.say_on(at.session, WorkerMessage::Ready(WorkReady { work: at.work, artifact }));
    }

    /// Accepted, run and announced.
    #[track_caller]
    pub fn produce(&mut self, which: impl Which) {
        let at = which.at(self);
        self.run(at);
        self.ready(at);
    }

    /// The fetch under way for this attempt ends like this.
    #[track_caller]
    pub fn fetch_ends(&mut self, which: impl Which, result: FetchResult) {
        let at = which.at(self);
        self.fetching.remove(&at.work);
        self.tell(Input::FetchEnded { work: at.work, session: at.session, result });
    }

    #[track_caller]
    pub fn fetch(&mut self, which: impl Which) {
        let at = which.at(self);
        assert!(self.fetching.contains_key(&at.work), "{at:?} is not being fetched");
        self.fetch_ends(at, FetchResult::Verified);
    }

    /// All the way from assigned to fetched.
    #[track_caller]
    pub fn finish(&mut self, which: impl Which) {
        let at = which.at(self);
        self.produce(at);
        self.fetch(at);
    }

    /// What runs is announced and fetched.
    #[track_caller]
    pub fn complete(&mut self, which: impl Which) {
        let at = which.at(self);
        self.ready(at);
        self.fetch(at);
    }

    #[track_caller]
    pub fn lose_artifact(&mut self, which: impl Which) {
        let at = which.at(self);
        self.say_on(at.session, WorkerMessage::ArtifactLost(at.work));
    }

    /// The worker confirms the cancellation of an attempt.
    #[track_caller]
    pub fn confirm_cancel(&mut self, which: impl Which) {
        let at = which.at(self);
        self.cancels.retain(|(cancelled, _)| *cancelled != at);
        self.say_on(at.session, WorkerMessage::Cancelled(at.work));
    }

    /// Every worker confirms every cancellation it was sent.
    #[track_caller]
    pub fn confirm_cancels(&mut self) {
        for (at, _) in self.cancels.clone() {
            self.confirm_cancel(at);
        }
    }

    // Placement.

    /// Keys whose first choice among the present workers is this one.
    pub fn keys_of(&self, worker: W) -> impl Iterator<Item = u64> + use<> {
        let mut rotation = Rotation::default();
        for present in self.present.keys() {
            rotation.join(Node::of(&present.id()), SessionId(present.0.into()), Room::Slot);
        }
        let wanted = SessionId(worker.0.into());
        (1..).filter(move |key| {
            let pick = rotation.choose(AffinityKey(*key), &[]);
            matches!(pick, Pick::Take { session, .. } if session == wanted)
        })
    }

    /// The attempt of this number at an item.
    #[track_caller]
    pub fn attempt(&self, work: WorkId, attempt: u32) -> At {
        let wanted = WorkRef { work_id: work, attempt: Attempt(attempt) };
        let found = self.assigned.iter().rev().find(|at| at.work == wanted);
        *found.unwrap_or_else(|| panic!("work {work} had no attempt {attempt}"))
    }
}
