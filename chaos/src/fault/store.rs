//! Faults of the object store: segments that are not there, not whole or not the right ones, and a
//! store that errs or is slow. What workers have cached would hide them, so one worker comes without
//! its cache.

use std::fs;
use std::time::Duration;

use axum::body::Bytes;

use super::Deed;
use crate::bucket::Mood;
use crate::error::ChaosError;

/// An object's name, and what should be in it.
type Whole = (String, Bytes);

impl Deed<'_> {
    pub(super) async fn segments_missing(&mut self) -> Result<(), ChaosError> {
        let whole = self.segment_files(6).await?;
        for (name, _) in &whole {
            self.cluster.bucket.remove(name).await?;
        }
        self.until_put_back(whole).await
    }

    pub(super) async fn segments_truncated(&mut self) -> Result<(), ChaosError> {
        let whole = self.segment_files(6).await?;
        for (name, bytes) in &whole {
            let cut = self.dice.below(bytes.len());
            self.cluster.bucket.write(name, bytes.slice(..cut)).await?;
        }
        self.until_put_back(whole).await
    }

    /// Every file stands where the next one should.
    pub(super) async fn segments_swapped(&mut self) -> Result<(), ChaosError> {
        let whole = self.segment_files(6).await?;
        for (at, (name, _)) in whole.iter().enumerate() {
            let (_, other) = &whole[(at + 1) % whole.len()];
            self.cluster.bucket.write(name, other.clone()).await?;
        }
        self.until_put_back(whole).await
    }

    pub(super) async fn store_erring(&mut self) -> Result<(), ChaosError> {
        let mood = Mood { errors_percent: 25, breaks_percent: 15, ..Mood::default() };
        self.note("40 of 100 requests fail".to_owned());
        self.moody_store(mood).await
    }

    pub(super) async fn store_slow(&mut self) -> Result<(), ChaosError> {
        let delay = self.dice.millis(50..500);
        self.note(format!("{} ms for each request", delay.as_millis()));
        self.moody_store(Mood { delay, ..Mood::default() }).await
    }

    async fn moody_store(&mut self, mood: Mood) -> Result<(), ChaosError> {
        self.cluster.bucket.feel(mood);
        let forgetful = self.forgetful_worker().await;
        self.hold(1_500..4_000).await;
        self.cluster.bucket.feel(Mood::default());
        forgetful
    }

    /// Some of the files of segments.
    async fn segment_files(&mut self, count: usize) -> Result<Vec<Whole>, ChaosError> {
        let mut names = self.cluster.bucket.names().to_vec();
        self.dice.shuffle(&mut names);
        names.truncate(count);
        let mut whole = Vec::with_capacity(names.len());
        for name in names {
            let bytes = self.cluster.bucket.read(&name).await?;
            whole.push((name, bytes));
        }
        Ok(whole)
    }

    /// Lets workers find them as they are for a while, and puts them back.
    async fn until_put_back(&mut self, whole: Vec<Whole>) -> Result<(), ChaosError> {
        self.note(format!("{} files", whole.len()));
        self.forgetful_worker().await?;
        self.hold(1_000..2_500).await;
        for (name, bytes) in whole {
            self.cluster.bucket.write(&name, bytes).await?;
        }
        // What is under way may still have read the wrong bytes.
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    }

    /// Kills a worker and starts it again without its cache.
    async fn forgetful_worker(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim} without its cache"));
        let worker = &mut self.cluster.workers[victim];
        worker.kill();
        // There may be none.
        drop(fs::remove_dir_all(worker.cache.path()));
        self.cluster.start_worker(victim).await
    }
}
