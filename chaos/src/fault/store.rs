//! Faults of the object store: segments that are not there, not whole or not the right ones, and a
//! store that errs or is slow. What workers have cached would hide them, so one worker comes without
//! its cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Deed;
use crate::bucket::Mood;
use crate::error::ChaosError;

/// What is put beside a file that is not what it should be.
const ASIDE: &str = "aside";

impl Deed<'_> {
    pub(super) async fn segments_missing(&mut self) -> Result<(), ChaosError> {
        let files = self.segment_files(6);
        for file in &files {
            rename(file, &file.with_extension(ASIDE))?;
        }
        self.note(format!("{} files", files.len()));
        self.forgetful_worker().await?;
        self.hold(1_000..2_500).await;
        self.put_back(&files).await
    }

    pub(super) async fn segments_truncated(&mut self) -> Result<(), ChaosError> {
        let files = self.segment_files(6);
        for file in &files {
            let failed = ChaosError::file(file);
            let size = fs::metadata(file).map_err(failed)?.len();
            self.set_aside(file)?;
            let cut = self.dice.within(0..size);
            let shorter = File::options().write(true).open(file).and_then(|it| it.set_len(cut));
            shorter.map_err(ChaosError::file(file))?;
        }
        self.note(format!("{} files", files.len()));
        self.forgetful_worker().await?;
        self.hold(1_000..2_500).await;
        self.put_back(&files).await
    }

    /// Every file stands where the next one should.
    pub(super) async fn segments_swapped(&mut self) -> Result<(), ChaosError> {
        let files = self.segment_files(6);
        for file in &files {
            self.set_aside(file)?;
        }
        for (at, file) in files.iter().enumerate() {
            let other = files[(at + 1) % files.len()].with_extension(ASIDE);
            fs::copy(&other, file).map_err(ChaosError::file(other))?;
        }
        self.note(format!("{} files", files.len()));
        self.forgetful_worker().await?;
        self.hold(1_000..2_500).await;
        self.put_back(&files).await
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
    fn segment_files(&mut self, count: usize) -> Vec<PathBuf> {
        let mut files = Vec::new();
        walk(self.cluster.data(), &mut files);
        files.sort();
        self.dice.shuffle(&mut files);
        files.truncate(count);
        files
    }

    fn set_aside(&self, file: &Path) -> Result<(), ChaosError> {
        fs::copy(file, file.with_extension(ASIDE)).map_err(ChaosError::file(file))?;
        Ok(())
    }

    async fn put_back(&mut self, files: &[PathBuf]) -> Result<(), ChaosError> {
        for file in files {
            rename(&file.with_extension(ASIDE), file)?;
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

fn rename(from: &Path, to: &Path) -> Result<(), ChaosError> {
    fs::rename(from, to).map_err(ChaosError::file(from))
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push(path);
        }
    }
}
