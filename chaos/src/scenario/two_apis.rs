//! Two API nodes share the workers, and one is killed: its work stops on all workers within a second,
//! and the other never notices.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Size, Stage, Story};
use crate::client::{Manner, ask};
use crate::error::ChaosError;
use crate::report::Times;
use crate::run::RECOVERY;
use crate::scrape::Metrics;
use crate::verdict::{Promise, Violation};
use crate::workload::{Outcome, PATIENCE, compare};

/// The work of a dead API node must have stopped this soon.
const STOPPED: Duration = Duration::from_secs(1);

pub(super) async fn play(
    stage: &mut Stage,
    size: Size,
    story: &mut Story,
    tell: &mut dyn FnMut(&str),
) -> Result<(), ChaosError> {
    let mut stopped = Vec::new();
    for round in 0..size.rounds {
        // First alone, so that what stops can be seen; then with the other at work.
        let mut doomed = ask_of(stage, 0, size.queries);
        sleep(stage.dice.millis(40..120)).await;
        let held = held(stage).await;
        stage.cluster.apis[0].kill();
        let begun = Instant::now();
        while self::held(stage).await > 0 {
            if begun.elapsed() > STOPPED * 5 {
                break;
            }
            sleep(Duration::from_millis(2)).await;
        }
        let took = begun.elapsed();
        if held > 0 {
            stopped.push(took);
        }
        if took > STOPPED {
            let what = format!("round {round}: work of a dead API node runs after {took:?}");
            story.violations.push(Violation::new(Promise::NothingLeft, Duration::ZERO, what));
        }
        while doomed.join_next().await.is_some() {}
        stage.cluster.start_api(0).await?;
        found_again(stage, story, round).await;

        let mut doomed = ask_of(stage, 0, size.queries);
        let mut other = ask_of(stage, 1, size.queries);
        sleep(stage.dice.millis(40..120)).await;
        stage.cluster.apis[0].kill();
        while let Some(Ok(outcome)) = other.join_next().await {
            story.queries += 1;
            if outcome != Outcome::Right {
                let what = format!("round {round}: the other API node noticed: {outcome:?}");
                story.violations.push(Violation::new(
                    Promise::NoNeedlessErrors,
                    Duration::ZERO,
                    what,
                ));
            }
        }
        while doomed.join_next().await.is_some() {}
        stage.cluster.start_api(0).await?;
        found_again(stage, story, round).await;
        tell(&format!("{} rounds", round + 1));
    }
    story.counts.push(("API nodes killed", size.rounds * 2));
    story.times.push(("from the kill until nothing of it runs on any worker", Times::of(stopped)));
    Ok(())
}

async fn found_again(stage: &mut Stage, story: &mut Story, round: usize) {
    if stage.cluster.until_connected(RECOVERY).await.is_none() {
        let what = format!("round {round}: workers and API nodes do not find each other");
        story.violations.push(Violation::new(Promise::Recovery, Duration::ZERO, what));
    }
}

/// Work that runs or waits on all workers.
async fn held(stage: &Stage) -> u64 {
    let mut held = 0.0;
    for worker in &stage.cluster.workers {
        let Some(address) = worker.http() else { continue };
        let metrics = Metrics::of(&stage.cluster.client, address).await.unwrap_or_default();
        for gauge in ["running", "queue_depth", "stopping"] {
            held += metrics.get(&format!("tributary_worker_{gauge}")).unwrap_or_default();
        }
    }
    if held > 0.0 { 1 } else { 0 }
}

fn ask_of(stage: &mut Stage, api: usize, count: usize) -> JoinSet<Outcome> {
    let mut asking = JoinSet::new();
    let api = stage.cluster.apis[api].http();
    for _ in 0..count {
        let known = Arc::clone(&stage.known);
        let number = stage.dice.below(known.len());
        let client = stage.cluster.client.clone();
        asking.spawn(async move {
            let known = &known[number];
            let told = ask(&client, api, &known.question, Manner::Eager, PATIENCE).await;
            compare(told.ending, &known.answer)
        });
    }
    asking
}
