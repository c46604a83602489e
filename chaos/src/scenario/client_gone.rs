//! Clients go away in the middle: their work must stop on every worker at once, and nothing may stay in
//! any table. When it stopped, the workers' own logs say.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;

use super::{Size, Stage, Story};
use crate::client::{Manner, ask};
use crate::error::ChaosError;
use crate::journal::{lines, now};
use crate::question::How;
use crate::report::Times;
use crate::rest::settle;
use crate::workload::PATIENCE;

pub(super) async fn play(
    stage: &mut Stage,
    size: Size,
    story: &mut Story,
    tell: &mut dyn FnMut(&str),
) -> Result<(), ChaosError> {
    let api = stage.cluster.apis[0].http();
    let streams: Vec<usize> = (0..stage.known.len())
        .filter(|number| matches!(stage.known[*number].question.how, How::Stream(_)))
        .collect();
    let mut gone: BTreeMap<String, Duration> = BTreeMap::new();
    for round in 0..size.rounds {
        let question = &stage.known[*stage.dice.pick(&streams)].question;
        let manner = Manner::Leaves(stage.dice.millis(2..25));
        let told = ask(&stage.cluster.client, api, question, manner, PATIENCE).await;
        // The connection is closed when the client is dropped, which was before this line.
        let at = now();
        story.queries += 1;
        if let Some(id) = told.query_id {
            gone.insert(id, at);
        }
        sleep(stage.dice.millis(30..80)).await;
        if round % 50 == 49 {
            tell(&format!("{} rounds", round + 1));
        }
    }
    let begun = tokio::time::Instant::now();
    story.violations.extend(settle(&mut stage.cluster, begun).await);
    let mut took = Vec::new();
    let mut last: BTreeMap<String, Duration> = BTreeMap::new();
    for worker in &stage.cluster.workers {
        for line in lines(worker.log()) {
            let Some(id) = line.field("query_id") else { continue };
            let Some(at) = gone.get(id) else { continue };
            if line.says("cancellation took effect") {
                let time = line.at.saturating_sub(*at);
                took.push(time);
                let longest = last.entry(id.to_owned()).or_default();
                *longest = time.max(*longest);
            }
        }
    }
    story.counts.push(("clients that left", size.rounds));
    story.counts.push(("of these with work on workers", last.len()));
    story.times.push(("from leaving to each item stopped", Times::of(took)));
    story
        .times
        .push(("from leaving to the last item stopped", Times::of(last.into_values().collect())));
    Ok(())
}
