//! Which errors a story explains. Everything else that ends without an answer is a violation.
//!
//! - A query may run out of time where no worker was at hand, undisturbed, for long enough; or where
//!   its client read slowly.
//! - An item may be tried in vain as often as is allowed where as many things went wrong.
//! - An item may count as poisonous where as many sessions were lost.
//! - A query may be told that its API node is leaving where that was asked to.

use std::time::Duration;

use core_workcoord::coordinator::QueryFailure;
use tributary_api::error::QueryError;

use super::fault::{Fault, Kind};
use super::story::{Client, HEALED, Manner, Story};

/// A worker that is undisturbed for this long does all the work there is: a silent link is noticed
/// after 3 s, a lost worker is redialled after 5 s at most.
const LONG_ENOUGH: Duration = Duration::from_secs(10);

/// Faults that cost an item all its attempts but one: the last may be lost to the echo of one.
const MANY: u32 = 5;

/// Sessions that must be lost for an item to be poisonous.
const POISONOUS: usize = 3;

/// The name of an error that the story explains.
pub(super) fn explained(
    story: &Story,
    client: &Client,
    (asked, ended): (Duration, Duration),
    error: &QueryError,
) -> Option<&'static str> {
    match error {
        QueryError::Failed(QueryFailure::Deadline { .. }) | QueryError::Timeout { .. } => {
            if matches!(client.manner, Manner::ReadsSlowly(_)) {
                Some("out of time, with a slow client")
            } else {
                let calm = is_calm(story, client.api, asked, ended);
                (!calm).then_some("out of time, without workers")
            }
        }
        QueryError::Failed(QueryFailure::AttemptsExhausted { .. }) => {
            let cost: u32 = during(story, asked, ended).map(|fault| fault.times.max(1)).sum();
            (cost >= MANY).then_some("too many attempts")
        }
        QueryError::Failed(QueryFailure::Poisonous { .. }) => {
            let lost = during(story, asked, ended).filter(|fault| fault.loses_sessions()).count();
            let all = |fault: &Fault| fault.kind == Kind::AllWorkersKilled;
            let all = during(story, asked, ended).any(all);
            (lost >= POISONOUS || all).then_some("poisonous")
        }
        QueryError::ShuttingDown => {
            let leaves = |fault: &Fault| fault.kind == Kind::ApiLeaves && fault.api == client.api;
            during(story, asked, ended).any(leaves).then_some("its API node left")
        }
        _ => None,
    }
}

/// Faults that were going on, or had not quite been noticed, in this time.
fn during(story: &Story, from: Duration, to: Duration) -> impl Iterator<Item = &Fault> {
    let lingers = Duration::from_secs(4);
    story.faults.iter().filter(move |fault| fault.at <= to && fault.ends() + lingers >= from)
}

/// Whether some worker was undisturbed for long enough in this time.
fn is_calm(story: &Story, api: usize, from: Duration, to: Duration) -> bool {
    (0..story.workers).any(|worker| {
        let mut since = from;
        for fault in story.faults.iter().filter(|fault| fault.strikes(api, worker)) {
            if fault.at >= since + LONG_ENOUGH && fault.at <= to {
                return true;
            }
            // Whatever is broken in the end is mended when everything is.
            since = since.max(fault.ends().min(HEALED));
        }
        since + LONG_ENOUGH <= to
    })
}
