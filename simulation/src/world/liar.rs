//! What a node sends, and what a lying one makes of it. A liar's state machine is honest; its driver
//! is not.

use std::time::Duration;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::{
    AffinityKey, ApiId, Attempt, LeafId, QueryId, RunId, SessionId, WorkId, WorkerId,
};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Failure, FailureCode, Hello,
    PROTOCOL_VERSION, Welcome, WorkFailed, WorkReady, WorkRef, WorkerMessage,
};

use super::World;
use crate::content::{self, Wrong};
use crate::describe;
use crate::fault::{ApiLie, WorkerLie};
use crate::network::Parcel;
use crate::rng::{Lane, Purpose, draw};

/// Work that nobody ever gave.
fn unknown_work(luck: u64) -> WorkRef {
    let query = QueryId(u128::from(luck));
    WorkRef { work_id: WorkId { query, item: 3 }, attempt: Attempt::FIRST }
}

impl World<'_> {
    /// Sends what a coordinator said.
    pub(super) fn send_from_api(&mut self, api: u32, session: SessionId, message: ApiMessage) {
        let node = &mut self.apis[api as usize];
        let Some(stream) = node.sessions.get(session).copied() else { return };
        let Some(lie) = node.lie else {
            return self.say_to_worker(stream, Parcel::Message(message));
        };
        node.lies_told += 1;
        let luck = draw(self.story.seed, Lane::new(Purpose::Lie, api as usize), node.lies_told);
        if !self.lies_now(luck) {
            return self.say_to_worker(stream, Parcel::Message(message));
        }
        self.apis[api as usize].tainted = true;
        self.net.stream_mut(stream).tainted = true;
        self.tally.lies += 1;
        let more = match lie {
            ApiLie::SaysTwice => Some(Parcel::Message(message.clone())),
            ApiLie::Swaps => None,
            ApiLie::UnknownWork => Some(Parcel::Message(self.forged_for_worker(luck))),
            ApiLie::HelloAgain => Some(Parcel::Message(self.forged_hello(api, session))),
            ApiLie::NoHello => Some(Parcel::Message(self.forged_work(luck))),
            ApiLie::Malformed => Some(Parcel::Malformed),
        };
        let hello = matches!(message, ApiMessage::Hello(_));
        if lie != ApiLie::NoHello || !hello {
            self.say_to_worker(stream, Parcel::Message(message));
        }
        match more {
            Some(parcel) => self.say_to_worker(stream, parcel),
            None => self.net.stream_mut(stream).to_worker.swap_last(),
        }
    }

    fn forged_hello(&self, api: u32, session: SessionId) -> ApiMessage {
        let name = ApiId::new(&format!("api-{api}.again")).expect("it is short and plain");
        ApiMessage::Hello(Hello {
            api_id: name,
            session_id: session,
            protocol_version: PROTOCOL_VERSION,
        })
    }

    fn forged_for_worker(&self, luck: u64) -> ApiMessage {
        let work = unknown_work(luck);
        if luck & 1 == 0 {
            let ack = ArtifactAck { work_id: work.work_id, checksum: Checksum([7; 32]) };
            return ApiMessage::ArtifactAck(ack);
        }
        let WorkRef { work_id, attempt } = work;
        ApiMessage::CancelWork(CancelWork { work_id, attempt, reason: CancelReason::ClientGone })
    }

    fn forged_work(&self, luck: u64) -> ApiMessage {
        let WorkRef { work_id, attempt } = unknown_work(luck);
        ApiMessage::AssignWork(AssignWork {
            query_id: work_id.query,
            leaf_id: LeafId(0),
            work_id,
            attempt,
            affinity_key: AffinityKey(luck),
            tenant: self.tenants[0].clone(),
            deadline: Duration::from_secs(2),
            traceparent: String::new(),
            spec: content::spec(u32::MAX, 0),
        })
    }

    /// Sends what an intake said.
    pub(super) fn send_from_worker(
        &mut self,
        worker: u32,
        session: SessionId,
        message: WorkerMessage,
    ) {
        let node = &mut self.workers[worker as usize];
        let Some(stream) = node.sessions.get(session).copied() else { return };
        let Some(lie) = node.trouble.lie else {
            return self.say_to_api(stream, Parcel::Message(message));
        };
        node.lies_told += 1;
        let lane = Lane::new(Purpose::Lie, 1_000 + worker as usize);
        let luck = draw(self.story.seed, lane, node.lies_told);
        let work = describe::work_of_worker_message(&message).is_some();
        let lies = if lie == WorkerLie::Mute { work } else { self.lies_now(luck) };
        if !lies {
            return self.say_to_api(stream, Parcel::Message(message));
        }
        self.workers[worker as usize].tainted = true;
        self.net.stream_mut(stream).tainted = true;
        self.tally.lies += 1;
        self.lie_to_api(stream, worker, lie, luck, message);
    }

    fn lie_to_api(
        &mut self,
        stream: u32,
        worker: u32,
        lie: WorkerLie,
        luck: u64,
        message: WorkerMessage,
    ) {
        match (lie, message) {
            (WorkerLie::WrongChecksum, WorkerMessage::Ready(mut ready)) => {
                ready.artifact.checksum = content::wrong(ready.artifact.checksum, Wrong::Announced);
                self.say_to_api(stream, Parcel::Message(WorkerMessage::Ready(ready)));
            }
            (WorkerLie::ForeignUrl, WorkerMessage::Ready(mut ready)) => {
                ready.artifact.url = String::from("http://elsewhere:1/artifacts/r1");
                self.say_to_api(stream, Parcel::Message(WorkerMessage::Ready(ready)));
            }
            (WorkerLie::SaysTwice, message) => {
                self.say_to_api(stream, Parcel::Message(message.clone()));
                self.say_to_api(stream, Parcel::Message(message));
            }
            (WorkerLie::Swaps, message) => {
                self.say_to_api(stream, Parcel::Message(message));
                self.net.stream_mut(stream).to_api.swap_last();
            }
            (WorkerLie::OthersWork, message) => {
                let forged = self.about_others_work(stream, worker, luck, &message);
                self.say_to_api(stream, Parcel::Message(message));
                if let Some(forged) = forged {
                    self.say_to_api(stream, Parcel::Message(forged));
                }
            }
            (WorkerLie::TooEarly, WorkerMessage::Accepted(work)) => {
                self.say_to_api(stream, Parcel::Message(WorkerMessage::Started(work)));
                self.say_to_api(stream, Parcel::Message(WorkerMessage::Accepted(work)));
            }
            (WorkerLie::FalseFailure, WorkerMessage::Started(work)) => {
                self.say_to_api(stream, Parcel::Message(WorkerMessage::Started(work)));
                let failed = WorkerMessage::Failed(false_failure(work));
                self.say_to_api(stream, Parcel::Message(failed));
            }
            (WorkerLie::Mute, _) => {}
            (lie, message) => {
                self.say_to_api(stream, Parcel::Message(message));
                match lie {
                    WorkerLie::UnknownWork => {
                        let forged = self.forged_for_api(stream, luck);
                        self.say_to_api(stream, Parcel::Message(forged));
                    }
                    WorkerLie::WelcomeAgain => {
                        let forged = self.forged_welcome(stream, worker);
                        self.say_to_api(stream, Parcel::Message(forged));
                    }
                    WorkerLie::Malformed => self.say_to_api(stream, Parcel::Malformed),
                    _ => {}
                }
            }
        }
    }

    fn forged_for_api(&self, stream: u32, luck: u64) -> WorkerMessage {
        let work = unknown_work(luck);
        let base_url = self.endpoints.base_url(self.net.stream(stream).endpoint);
        match luck % 6 {
            0 => WorkerMessage::Accepted(work),
            1 => WorkerMessage::Started(work),
            2 => WorkerMessage::Cancelled(work),
            3 => WorkerMessage::ArtifactLost(work),
            4 => WorkerMessage::Failed(false_failure(work)),
            _ => {
                let artifact = content::artifact(&base_url, RunId(luck), Checksum([9; 32]), 10);
                WorkerMessage::Ready(WorkReady { work, artifact })
            }
        }
    }

    /// Something about work of the same API that runs on another worker, or about another attempt at
    /// the work that a message is about.
    fn about_others_work(
        &self,
        stream: u32,
        worker: u32,
        luck: u64,
        message: &WorkerMessage,
    ) -> Option<WorkerMessage> {
        let api = self.net.stream(stream).api;
        let own = describe::work_of_worker_message(message)
            .map(|it| WorkRef { attempt: Attempt(it.attempt.0 % 3 + 1), ..it });
        let others = (0_u32..).zip(&self.workers).filter(|(at, _)| *at != worker);
        let mut runs = others
            .flat_map(|(_, node)| node.runs.iter().map(move |(_, run)| (node, run)))
            .filter(|(node, run)| {
                let theirs = node.sessions.get(run.session);
                theirs.is_some_and(|it| self.net.stream(*it).api == api)
            })
            .map(|(_, run)| run.work);
        let work = if luck & 16 == 0 { own } else { runs.next().or(own) }?;
        let base_url = self.endpoints.base_url(self.net.stream(stream).endpoint);
        Some(match luck % 5 {
            0 => WorkerMessage::Accepted(work),
            1 => WorkerMessage::Started(work),
            2 => WorkerMessage::Failed(false_failure(work)),
            3 => WorkerMessage::Cancelled(work),
            _ => {
                let artifact = content::artifact(&base_url, RunId(luck), Checksum([9; 32]), 10);
                WorkerMessage::Ready(WorkReady { work, artifact })
            }
        })
    }

    fn forged_welcome(&self, stream: u32, worker: u32) -> WorkerMessage {
        WorkerMessage::Welcome(Welcome {
            worker_id: WorkerId::new(&format!("worker-{worker}")).expect("it is short and plain"),
            version: String::from("simulated"),
            slots: 100,
            artifact_base_url: self.endpoints.base_url(self.net.stream(stream).endpoint),
            artifact_token: String::from("forged"),
        })
    }
}

fn false_failure(work: WorkRef) -> WorkFailed {
    let failure =
        Failure { code: FailureCode::Internal, retryable: false, message: String::from("a lie") };
    WorkFailed { work, failure }
}
