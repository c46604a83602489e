//! Inputs and actions in few words, for telling stories: `q5-4#1` is the first attempt at item 4 of
//! query 5.

use core_workcoord::coordinator as api;
use core_workcoord::id::WorkId;
use core_workcoord::intake as worker;
use core_workcoord::message::{ApiMessage, WorkRef, WorkerMessage};

fn work(id: WorkId) -> String {
    format!("q{}-{}", id.query.0 & u128::from(u32::MAX), id.item)
}

fn attempt(it: WorkRef) -> String {
    format!("{}#{}", work(it.work_id), it.attempt)
}

fn query(id: core_workcoord::id::QueryId) -> String {
    format!("q{}", id.0 & u128::from(u32::MAX))
}

/// A message to a worker.
pub(crate) fn api_message(message: &ApiMessage) -> String {
    match message {
        ApiMessage::Hello(hello) => format!("Hello {} {}", hello.api_id, hello.session_id),
        ApiMessage::AssignWork(it) => {
            format!("AssignWork {}#{}, {:?} left", work(it.work_id), it.attempt, it.deadline)
        }
        ApiMessage::CancelWork(it) => {
            format!("CancelWork {}#{} {:?}", work(it.work_id), it.attempt, it.reason)
        }
        ApiMessage::ArtifactAck(ack) => {
            format!("ArtifactAck {} {:?}", work(ack.work_id), ack.checksum)
        }
        ApiMessage::Heartbeat(beat) => format!("Heartbeat {} echo {}", beat.seq, beat.echo_seq),
    }
}

/// A message from a worker.
pub(crate) fn worker_message(message: &WorkerMessage) -> String {
    match message {
        WorkerMessage::Welcome(it) => format!("Welcome {}, {} slots", it.worker_id, it.slots),
        WorkerMessage::Heartbeat(beat) => format!("Heartbeat {} echo {}", beat.seq, beat.echo_seq),
        WorkerMessage::Status(it) => format!(
            "Status {}{}{}, {} queued, {} running",
            if it.alive { "" } else { "dead " },
            if it.accepting_work { "accepting" } else { "not accepting" },
            if it.draining { " draining" } else { "" },
            it.queued,
            it.running
        ),
        WorkerMessage::Accepted(it) => format!("Accepted {}", attempt(*it)),
        WorkerMessage::Started(it) => format!("Started {}", attempt(*it)),
        WorkerMessage::Rejected(it) => format!("Rejected {} {:?}", attempt(it.work), it.reason),
        WorkerMessage::Ready(it) => {
            let artifact = &it.artifact;
            format!("Ready {} {} {:?}", attempt(it.work), artifact.url, artifact.checksum)
        }
        WorkerMessage::Failed(it) => {
            let kind = if it.failure.retryable { "retryable" } else { "for good" };
            format!("Failed {} {:?} {kind}", attempt(it.work), it.failure.code)
        }
        WorkerMessage::Cancelled(it) => format!("Cancelled {}", attempt(*it)),
        WorkerMessage::ArtifactLost(it) => format!("ArtifactLost {}", attempt(*it)),
    }
}

/// What an API is told.
pub(crate) fn api_input(input: &api::Input) -> String {
    match input {
        api::Input::Message { session, message } => {
            format!("{session}: {}", worker_message(message))
        }
        api::Input::Submit(it) => {
            format!(
                "Submit {}, {} items, deadline {}",
                query(it.query),
                it.items.len(),
                it.deadline
            )
        }
        api::Input::Consumed { query: id, through } => format!("Consumed {} {through}", query(*id)),
        api::Input::CancelQuery { query: id } => format!("CancelQuery {}", query(*id)),
        api::Input::FetchEnded { work, session, result } => {
            format!("FetchEnded {} from {session}: {result:?}", attempt(*work))
        }
        other => format!("{other:?}"),
    }
}

/// What an API decides.
pub(crate) fn api_action(action: &api::Action) -> String {
    match action {
        api::Action::Send { session, message } => format!("{session}: {}", api_message(message)),
        api::Action::Fetch { work, session, artifact } => {
            format!("Fetch {} from {session}: {}", attempt(*work), artifact.url)
        }
        api::Action::AbandonFetch { work, session } => {
            format!("AbandonFetch {} from {session}", attempt(*work))
        }
        api::Action::Deliver { work: id, attempt, .. } => {
            format!("Deliver {}#{attempt}", work(*id))
        }
        api::Action::End { query: id, outcome } => format!("End {} {outcome:?}", query(*id)),
        api::Action::AwaitScaleUp { query: id } => format!("AwaitScaleUp {}", query(*id)),
        other => format!("{other:?}"),
    }
}

/// What a worker is told.
pub(crate) fn worker_input(input: &worker::Input) -> String {
    match input {
        worker::Input::Message { session, message } => {
            format!("{session}: {}", api_message(message))
        }
        other => format!("{other:?}"),
    }
}

/// What a worker decides.
pub(crate) fn worker_action(action: &worker::Action) -> String {
    match action {
        worker::Action::Send { session, message } => {
            format!("{session}: {}", worker_message(message))
        }
        worker::Action::Start { run, session, work: it } => {
            format!("Start {run} for {session}: {}#{}", work(it.work_id), it.attempt)
        }
        other => format!("{other:?}"),
    }
}
