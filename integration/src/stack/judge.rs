//! What must hold when a story is over: every client has its answer, or an error that the story
//! explains, in time and once; and nothing is left in any table.

use std::time::Duration;

use core_workcoord::intake::Snapshot;
use tributary_api::coordination::View;

use super::book::{Book, End, Leftovers, Verdict};
use super::explain::explained;
use super::hosts::Scene;
use super::story::{Client, Manner};

/// A query ends this soon after its time is up.
const SLACK: Duration = Duration::from_secs(2);

/// Pauses of a slow client between the end of its query and the event that tells it: those of the
/// events that wait before it.
const EVENTS_AHEAD: u32 = 7;

/// What an API node has that it should not have any more.
pub(super) fn api_leftovers(view: &View, workers: usize) -> Leftovers {
    let it = &view.snapshot;
    let mut left = Leftovers::new();
    for (what, count) in [
        ("queries", it.queries.len()),
        ("queued items", it.queued as usize),
        ("items on their way", it.running as usize),
        ("fetches", it.fetches as usize),
        ("fetches that wait", it.fetches_waiting as usize),
        ("cancellations", it.cancelling as usize),
    ] {
        if count > 0 {
            left.push(format!("{count} {what}"));
        }
    }
    if it.in_rotation as usize != workers {
        left.push(format!("{} of {workers} workers in rotation", it.in_rotation));
    }
    left
}

/// What a worker has that it should not have any more.
pub(super) fn worker_leftovers(
    snapshot: Option<&Snapshot>,
    (artifacts, tokens): (usize, usize),
    apis: usize,
) -> Leftovers {
    let Some(it) = snapshot else { return vec!["a desk that does not answer".to_owned()] };
    let mut left = Leftovers::new();
    let owned: u32 = it.sessions.iter().map(|session| session.owned).sum();
    for (what, count) in [
        ("runs", it.status.running as usize),
        ("runs that wait", it.status.queued as usize),
        ("runs told to stop", it.stopping as usize),
        ("unacknowledged artifacts", it.unacknowledged as usize),
        ("acknowledged artifacts", it.acknowledged as usize),
        ("things owned by sessions", owned as usize),
        ("artifacts on the disk", artifacts),
    ] {
        if count > 0 {
            left.push(format!("{count} {what}"));
        }
    }
    if it.sessions.len() != apis {
        left.push(format!("{} sessions with {apis} API nodes", it.sessions.len()));
    }
    if tokens != apis {
        left.push(format!("{tokens} tokens for {apis} API nodes"));
    }
    left
}

/// Judges every client, and gives how their queries ended.
pub(super) fn clients(
    scene: &Scene,
    all: &[(usize, Client)],
    now: Duration,
    verdict: &mut Verdict,
) {
    for (number, client) in all {
        let entry = scene.book.open().clients.get(number).cloned();
        let name = match entry {
            // Its API node was down when it wanted to ask.
            None => "not asked".to_owned(),
            Some(entry) => {
                let lives = &scene.apis[client.api].lives;
                let same_life = lives.load(std::sync::atomic::Ordering::Relaxed) == entry.life;
                let late = match client.manner {
                    Manner::ReadsSlowly(pause) => SLACK + pause * EVENTS_AHEAD,
                    Manner::Reads | Manner::Leaves(_) => SLACK,
                };
                match &entry.end {
                    None if !same_life => "gone with its API node".to_owned(),
                    None => {
                        complain(&scene.book, now, *number, "has no end");
                        "without an end".to_owned()
                    }
                    Some((at, end)) => {
                        if *at > entry.asked + client.timeout + late {
                            let words = format!("ends {:?} after it was asked", *at - entry.asked);
                            complain(&scene.book, now, *number, &words);
                        }
                        end_of(scene, *number, client, (entry.asked, *at), end, now)
                    }
                }
            }
        };
        *verdict.ends.entry(name).or_default() += 1;
    }
}

fn end_of(
    scene: &Scene,
    number: usize,
    client: &Client,
    life: (Duration, Duration),
    end: &End,
    now: Duration,
) -> String {
    match end {
        End::Answered => "answered".to_owned(),
        End::Left => "left".to_owned(),
        End::Wrong(difference) => {
            complain(&scene.book, now, number, &format!("has a wrong answer: {difference}"));
            "wrong".to_owned()
        }
        End::Failed(error) => match explained(&scene.story, client, life, error) {
            Some(name) => name.to_owned(),
            None => {
                let words = format!("has an error that nothing explains: {error}");
                complain(&scene.book, now, number, &words);
                "unexplained error".to_owned()
            }
        },
    }
}

fn complain(book: &Book, now: Duration, number: usize, words: &str) {
    let short: String = words.chars().take(2_000).collect();
    book.violation(now, &format!("client {number} {short}"));
}

/// Judges what is left on every host.
pub(super) fn leftovers(scene: &Scene, hosts: impl Iterator<Item = String>, now: Duration) {
    for host in hosts {
        let left = scene.book.open().looks.get(&host).cloned();
        match left {
            None => scene.book.violation(now, &format!("{host} does not say what is left")),
            Some(left) => {
                for what in left {
                    scene.book.violation(now, &format!("{host} has {what} when all is over"));
                }
            }
        }
    }
}
