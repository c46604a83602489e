//! What an input or an action is about, and a number that tells actions apart: for telling stories
//! and for showing that two runs of a seed are the same.

use core_workcoord::coordinator as api;
use core_workcoord::id::WorkId;
use core_workcoord::intake as worker;
use core_workcoord::message::{ApiMessage, WorkRef, WorkerMessage};

use crate::rng::mix;
use crate::violation::About;

/// The work a message to a worker is about.
pub(crate) fn work_of_api_message(message: &ApiMessage) -> Option<WorkId> {
    match message {
        ApiMessage::AssignWork(work) => Some(work.work_id),
        ApiMessage::CancelWork(work) => Some(work.work_id),
        ApiMessage::ArtifactAck(ack) => Some(ack.work_id),
        ApiMessage::Hello(_) | ApiMessage::Heartbeat(_) => None,
    }
}

/// The work a message from a worker is about.
pub(crate) fn work_of_worker_message(message: &WorkerMessage) -> Option<WorkRef> {
    match message {
        WorkerMessage::Accepted(work)
        | WorkerMessage::Started(work)
        | WorkerMessage::Cancelled(work)
        | WorkerMessage::ArtifactLost(work) => Some(*work),
        WorkerMessage::Rejected(rejected) => Some(rejected.work),
        WorkerMessage::Ready(ready) => Some(ready.work),
        WorkerMessage::Failed(failed) => Some(failed.work),
        WorkerMessage::Welcome(_) | WorkerMessage::Heartbeat(_) | WorkerMessage::Status(_) => None,
    }
}

fn with_work(about: About, work: Option<WorkId>) -> About {
    work.map_or(about, |work| about.work(work))
}

/// What an API's input is about.
pub(crate) fn about_api_input(api: u32, input: &api::Input) -> About {
    let about = About::api(api);
    match input {
        api::Input::Message { session, message } => {
            let work = work_of_worker_message(message).map(|work| work.work_id);
            with_work(about.session(*session), work)
        }
        api::Input::StreamOpened { session }
        | api::Input::Malformed { session }
        | api::Input::StreamClosed { session } => about.session(*session),
        api::Input::FetchEnded { work, session, .. } => about.session(*session).work(work.work_id),
        api::Input::Submit(submission) => about.query(submission.query),
        api::Input::Consumed { query, .. } | api::Input::CancelQuery { query } => {
            about.query(*query)
        }
        api::Input::WorkerDiscovered { .. } | api::Input::WorkerGone { .. } | api::Input::Tick => {
            about
        }
    }
}

/// What an API's action is about.
pub(crate) fn about_api_action(api: u32, action: &api::Action) -> About {
    let about = About::api(api);
    match action {
        api::Action::Send { session, message } => {
            with_work(about.session(*session), work_of_api_message(message))
        }
        api::Action::Dial { session, .. } | api::Action::Close { session, .. } => {
            about.session(*session)
        }
        api::Action::Fetch { work, session, .. } | api::Action::AbandonFetch { work, session } => {
            about.session(*session).work(work.work_id)
        }
        api::Action::Deliver { work, .. } => about.work(*work),
        api::Action::End { query, .. } | api::Action::AwaitScaleUp { query } => about.query(*query),
    }
}

/// What a worker's input is about.
pub(crate) fn about_worker_input(worker: u32, input: &worker::Input) -> About {
    match input {
        worker::Input::Message { message, .. } => {
            with_work(About::worker(worker), work_of_api_message(message))
        }
        _ => About::worker(worker),
    }
}

/// What a worker's action is about.
pub(crate) fn about_worker_action(worker: u32, action: &worker::Action) -> About {
    let about = About::worker(worker);
    match action {
        worker::Action::Send { message, .. } => {
            with_work(about, work_of_worker_message(message).map(|work| work.work_id))
        }
        worker::Action::Start { work, .. } => about.work(work.work_id),
        _ => about,
    }
}

fn word_of_work(work: WorkId) -> u64 {
    let low = u64::try_from(work.query.0 & u128::from(u64::MAX)).expect("it is masked");
    mix(low << 24 ^ u64::from(work.item))
}

fn word_of_ref(work: WorkRef) -> u64 {
    word_of_work(work.work_id) ^ u64::from(work.attempt.0) << 56
}

/// A number that tells an API's actions apart.
pub(crate) fn word_of_api_action(action: &api::Action) -> u64 {
    match action {
        api::Action::Dial { session, .. } => 1 << 60 ^ session.0,
        api::Action::Send { session, message } => {
            let said = match message {
                ApiMessage::Hello(hello) => 1 ^ hello.session_id.0 << 4,
                ApiMessage::AssignWork(work) => {
                    2 ^ word_of_work(work.work_id) ^ u64::from(work.attempt.0) << 56
                }
                ApiMessage::CancelWork(work) => 3 ^ word_of_work(work.work_id),
                ApiMessage::ArtifactAck(ack) => 4 ^ word_of_work(ack.work_id),
                ApiMessage::Heartbeat(beat) => 5 ^ beat.seq << 4 ^ beat.echo_seq << 32,
            };
            2 << 60 ^ said ^ session.0 << 8
        }
        api::Action::Close { session, reason } => 3 << 60 ^ session.0 ^ (format_word(reason) << 20),
        api::Action::Fetch { work, session, .. } => 4 << 60 ^ word_of_ref(*work) ^ session.0,
        api::Action::AbandonFetch { work, session } => 5 << 60 ^ word_of_ref(*work) ^ session.0,
        api::Action::Deliver { work, attempt, .. } => {
            6 << 60 ^ word_of_work(*work) ^ u64::from(attempt.0)
        }
        api::Action::End { query, outcome } => {
            let work = WorkId { query: *query, item: 0 };
            7 << 60 ^ word_of_work(work) ^ format_word(outcome)
        }
        api::Action::AwaitScaleUp { query } => {
            8 << 60 ^ word_of_work(WorkId { query: *query, item: 0 })
        }
    }
}

/// A number that tells a worker's actions apart.
pub(crate) fn word_of_worker_action(action: &worker::Action) -> u64 {
    match action {
        worker::Action::Send { session, message } => {
            let said = match message {
                WorkerMessage::Heartbeat(beat) => beat.seq << 4 ^ beat.echo_seq << 32,
                WorkerMessage::Status(status) => {
                    let flags = u64::from(status.accepting_work) << 1 | u64::from(status.draining);
                    mix(flags << 40 ^ u64::from(status.queued) << 20 ^ u64::from(status.running))
                }
                WorkerMessage::Welcome(_) => 9,
                WorkerMessage::Accepted(work) => 1 ^ word_of_ref(*work),
                WorkerMessage::Started(work) => 2 ^ word_of_ref(*work),
                WorkerMessage::Rejected(rejected) => 3 ^ word_of_ref(rejected.work),
                WorkerMessage::Ready(ready) => 4 ^ word_of_ref(ready.work),
                WorkerMessage::Failed(failed) => 5 ^ word_of_ref(failed.work),
                WorkerMessage::Cancelled(work) => 6 ^ word_of_ref(*work),
                WorkerMessage::ArtifactLost(work) => 7 ^ word_of_ref(*work),
            };
            9 << 60 ^ said ^ session.0 << 8
        }
        worker::Action::Close { session, reason } => {
            10 << 60 ^ session.0 ^ (format_word(reason) << 20)
        }
        worker::Action::Start { run, session, work } => {
            11 << 60 ^ run.0 ^ session.0 << 40 ^ word_of_work(work.work_id)
        }
        worker::Action::Stop { run } => 12 << 60 ^ run.0,
        worker::Action::Delete { run } => 13 << 60 ^ run.0,
        worker::Action::Exit { clean } => 14 << 60 ^ u64::from(*clean),
    }
}

/// A number from the printed form, for what is rare.
fn format_word(it: &impl std::fmt::Debug) -> u64 {
    format!("{it:?}").bytes().fold(0, |word, byte| mix(word ^ u64::from(byte)))
}
