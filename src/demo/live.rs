//! Scrapes that go on while the demo runs: every few seconds what the targets said since becomes a
//! segment, so that there are samples of now. `compact` keeps them few.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;
use tracing::warn;

use super::compact;
use super::data::DemoData;
use super::scrape;
use crate::cli::Problem;
use crate::clock;

/// Between two rounds.
const EVERY: Duration = Duration::from_secs(5);

/// Appends until it is told to stop, from the first millisecond without samples on. What fails is tried
/// again in the next round, and nothing is left out.
pub(super) async fn keep_appending(
    data: DemoData,
    mut covered_ms: i64,
    mut stop: oneshot::Receiver<()>,
) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = every.tick() => {}
            // Told, or nobody is left to tell.
            _ = &mut stop => return,
        }
        match append(&data, &mut covered_ms).await {
            Ok(()) => {}
            Err(problem) => warn!(%problem, "the demo's newest samples could not be written yet"),
        }
        if let Err(problem) = compact::tidy(&data).await {
            warn!(%problem, "the demo's segments could not be merged yet");
        }
    }
}

/// Writes everything up to now.
async fn append(data: &DemoData, covered_ms: &mut i64) -> Result<(), Problem> {
    for span in scrape::spans(*covered_ms, clock::now_ms()) {
        let upload = data.begin()?;
        let (fleet, folder) = (data.fleet.clone(), upload.folder().to_owned());
        let writing = tokio::task::spawn_blocking(move || scrape::write(&fleet, &folder, span));
        let written = writing.await.map_err(Problem::failed)?.map_err(Problem::failed)?;
        if let Some(written) = written {
            let placed = upload.place(&[written]).await?;
            upload.register(&data.catalog, &placed).await?;
        }
        *covered_ms = span.1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rounds_append_without_gap_or_overlap_and_what_is_over_becomes_one() {
        let top = tempfile::tempdir().unwrap();
        let data = DemoData::open(top.path()).await.unwrap();
        // Long past, so that the blocks are over and become one segment each.
        let begin = scrape::block_of(clock::now_ms()).block_start - scrape::BLOCK_MS - 60_000;
        let mut covered = begin;
        for until in [begin + 20_000, begin + 40_000, begin + 90_000] {
            for span in scrape::spans(covered, until) {
                let upload = data.begin().unwrap();
                let written = scrape::write(&data.fleet, upload.folder(), span).unwrap().unwrap();
                let placed = upload.place(&[written]).await.unwrap();
                upload.register(&data.catalog, &placed).await.unwrap();
            }
            covered = until;
        }
        let before = data.live().await.unwrap();
        let samples = |segments: &[tributary_catalog::Segment]| -> u64 {
            segments.iter().map(|segment| segment.sample_count).sum()
        };
        compact::tidy(&data).await.unwrap();
        let after = data.live().await.unwrap();
        assert_eq!((before.len(), after.len()), (4, 2));
        assert_eq!(samples(&before), samples(&after));
        assert_eq!(data.covered_until().await.unwrap(), Some(before[3].max_ts + 1));

        let now = clock::now_ms();
        append(&data, &mut covered).await.unwrap();
        assert!(covered >= now);
        assert!(data.covered_until().await.unwrap().unwrap() > now - 20_000);
    }
}
