//! A worker is lost in the middle of many queries: none may be wrong, hang or fail, and its work must
//! be on another worker soon. When, the API node's own log says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Size, Stage, Story};
use crate::client::{Manner, ask};
use crate::error::ChaosError;
use crate::journal::{Line, lines, now};
use crate::report::Times;
use crate::run::RECOVERY;
use crate::verdict::{Promise, Violation};
use crate::workload::{Outcome, PATIENCE, compare};

/// How the worker is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// kill -9: its sockets break.
    Killed,
    /// SIGSTOP: only silence tells.
    Frozen,
}

/// One loss: when, and of which session.
struct Lost {
    at: Duration,
    worker: String,
}

pub(super) async fn play(
    stage: &mut Stage,
    size: Size,
    loss: Loss,
    story: &mut Story,
    tell: &mut dyn FnMut(&str),
) -> Result<(), ChaosError> {
    let mut losses = Vec::new();
    let (mut calm, mut shaken) = (Vec::new(), Vec::new());
    for round in 0..size.rounds {
        // Every tenth round nothing is lost, to compare with.
        let is_calm = round % 10 == 0;
        let asking = ask_many(stage, size.queries);
        let victim = stage.dice.below(stage.cluster.workers.len());
        if !is_calm {
            sleep(stage.dice.millis(5..120)).await;
            let worker = &mut stage.cluster.workers[victim];
            losses.push(Lost { at: now(), worker: worker.name().to_owned() });
            match loss {
                Loss::Killed => worker.kill(),
                Loss::Frozen => worker.signal(Signal::STOP),
            }
        }
        let times = finish(asking, story).await;
        if is_calm { &mut calm } else { &mut shaken }.extend(times);
        if !is_calm {
            match loss {
                Loss::Killed => stage.cluster.start_worker(victim).await?,
                Loss::Frozen => stage.cluster.workers[victim].signal(Signal::CONT),
            }
        }
        if stage.cluster.until_connected(RECOVERY).await.is_none() {
            let what = format!("round {round}: the worker is not found again");
            story.violations.push(Violation::new(Promise::Recovery, Duration::ZERO, what));
        }
        if round % 10 == 9 {
            tell(&format!("{} rounds", round + 1));
        }
    }
    let log = lines(stage.cluster.apis[0].log());
    let found = reassigned(&log, &losses);
    let affected: Vec<Duration> =
        shaken.iter().filter(|(id, _)| found.queries.contains(id)).map(|(_, time)| *time).collect();
    let all = |asked: Vec<(String, Duration)>| {
        Times::of(asked.into_iter().map(|(_, time)| time).collect())
    };
    let calm = all(calm);
    let median = calm.at(500).unwrap_or_default();
    let added = affected.iter().map(|time| time.saturating_sub(median)).collect();
    story.counts.push(("workers lost", losses.len()));
    story.counts.push(("losses that hit work under way", found.first.len()));
    story.counts.push(("work items given to another worker", found.all.len()));
    story.counts.push(("queries whose work was hit", affected.len()));
    story.times.push(("from the loss to the API node knowing of it", Times::of(found.noticed)));
    story.times.push(("from the loss to the first new AssignWork", Times::of(found.first)));
    story.times.push(("from the loss to each new AssignWork", Times::of(found.all)));
    story.times.push(("queries in rounds without a loss", calm));
    story.times.push(("queries in rounds with a loss", all(shaken)));
    story.times.push(("queries whose work was hit, beyond the calm median", Times::of(added)));
    Ok(())
}

type Asking = JoinSet<(String, Duration, Outcome)>;

/// Asks many questions at once.
fn ask_many(stage: &mut Stage, count: usize) -> Asking {
    let mut asking = JoinSet::new();
    let api = stage.cluster.apis[0].http();
    for _ in 0..count {
        let known = Arc::clone(&stage.known);
        let number = stage.dice.below(known.len());
        let client = stage.cluster.client.clone();
        asking.spawn(async move {
            let begun = Instant::now();
            let known = &known[number];
            let told = ask(&client, api, &known.question, Manner::Eager, PATIENCE).await;
            let outcome = compare(told.ending, &known.answer);
            (told.query_id.unwrap_or_default(), begun.elapsed(), outcome)
        });
    }
    asking
}

/// Waits for all answers. Anything but the right one breaks a promise.
async fn finish(mut asking: Asking, story: &mut Story) -> Vec<(String, Duration)> {
    let mut times = Vec::new();
    while let Some(Ok((id, time, outcome))) = asking.join_next().await {
        story.queries += 1;
        let (promise, why) = match outcome {
            Outcome::Right => {
                times.push((id, time));
                continue;
            }
            Outcome::Wrong(why) => (Promise::RightAnswers, why),
            Outcome::Malformed(why) => (Promise::OneEnd, why),
            Outcome::Hung => (Promise::NothingHangs, "it did not end".to_owned()),
            Outcome::Error(why) | Outcome::Broken(why) => (Promise::NoNeedlessErrors, why),
            Outcome::Left => continue,
        };
        let what = format!("query {id}: {why}");
        story.violations.push(Violation::new(promise, Duration::ZERO, what));
    }
    times
}

/// Work that was given to somebody else after a loss.
#[derive(Default)]
struct Reassigned {
    /// For every loss, how long until the API node knew of it.
    noticed: Vec<Duration>,
    /// For every loss that hit any, how long until the first of it.
    first: Vec<Duration>,
    /// How long for each item.
    all: Vec<Duration>,
    /// Queries it belongs to.
    queries: BTreeSet<String>,
}

/// Finds it in the log: an item whose last assignment before the loss was to the lost worker's session,
/// and whose next one was to another.
fn reassigned(log: &[Line], losses: &[Lost]) -> Reassigned {
    let mut found = Reassigned::default();
    for (number, lost) in losses.iter().enumerate() {
        let until = losses.get(number + 1).map_or(Duration::MAX, |next| next.at);
        let is_here = |line: &&Line| {
            line.at <= lost.at
                && line.says("worker is here")
                && line.field("worker_id") == Some(&lost.worker)
        };
        let Some(session) = log.iter().rfind(is_here).and_then(|it| it.field("session")) else {
            continue;
        };
        let is_over = |line: &&Line| {
            line.at > lost.at
                && (line.says("stream ended") || line.says("stream is closed"))
                && line.field("session") == Some(session)
        };
        found.noticed.extend(log.iter().find(is_over).map(|line| line.at - lost.at));
        let assigned = |line: &&Line| line.says("work is assigned");
        let before: BTreeMap<&str, &str> = log
            .iter()
            .filter(|line| line.at <= lost.at)
            .filter(assigned)
            .filter_map(|line| Some((line.field("work_id")?, line.field("session")?)))
            .collect();
        let mut first = None;
        let mut seen = BTreeSet::new();
        let after = log.iter().filter(|line| line.at > lost.at && line.at < until);
        for line in after.filter(assigned) {
            let Some(work) = line.field("work_id") else { continue };
            let was_hit =
                before.get(work) == Some(&session) && line.field("session") != Some(session);
            if was_hit && seen.insert(work) {
                let took = line.at - lost.at;
                first.get_or_insert(took);
                found.all.push(took);
                found.queries.extend(line.field("query_id").map(str::to_owned));
            }
        }
        found.first.extend(first);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_the_lost_session_that_is_given_away_is_found() {
        let text = "\
2026-01-01T00:00:00.000000Z INFO desk: worker is here session=1 worker_id=worker-1 slots=2
2026-01-01T00:00:00.000000Z INFO desk: worker is here session=2 worker_id=worker-2 slots=2
2026-01-01T00:00:01.000000Z DEBUG desk: work is assigned query_id=q work_id=q/0 attempt=1 session=1
2026-01-01T00:00:01.000000Z DEBUG desk: work is assigned query_id=q work_id=q/1 attempt=1 session=2
2026-01-01T00:00:01.015000Z INFO desk: stream ended session=1 endpoint=x
2026-01-01T00:00:01.030000Z DEBUG desk: work is assigned query_id=q work_id=q/0 attempt=2 session=2
2026-01-01T00:00:01.040000Z DEBUG desk: work is assigned query_id=q work_id=q/2 attempt=1 session=2";
        let log: Vec<Line> = text.lines().filter_map(Line::parse).collect();
        let at = log[2].at + Duration::from_millis(10);
        let found = reassigned(&log, &[Lost { at, worker: "worker-1".to_owned() }]);
        assert_eq!(found.all, [Duration::from_millis(20)]);
        assert_eq!(found.noticed, [Duration::from_millis(5)]);
        assert_eq!((found.first.len(), found.queries.len()), (1, 1));
    }
}
