//! Faults of a worker's disk: full, slow, or with artifacts on it that change, vanish or go too soon.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Deed;
use crate::error::ChaosError;
use crate::network::Traffic;
use crate::process::Process;
use crate::slow_disk::SlowDisk;

/// How often artifacts on disk are visited.
const VISIT: Duration = Duration::from_millis(4);

impl Deed<'_> {
    pub(super) async fn disk_flips(&mut self) {
        let victim = self.victim();
        let changed = self.visit_artifacts(victim, flip_a_byte).await;
        self.note(format!("worker-{victim}, {changed} artifacts"));
    }

    pub(super) async fn artifacts_deleted(&mut self) {
        let victim = self.victim();
        let deleted = self.visit_artifacts(victim, |path| fs::remove_file(path).is_ok()).await;
        self.note(format!("worker-{victim}, {deleted} artifacts"));
    }

    /// Artifacts go before anybody could fetch them: they live shortly, and the way to them is long.
    pub(super) async fn artifacts_expire(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        let worker = &mut self.cluster.workers[victim];
        worker.kill();
        worker.next_life_with(&["artifacts.ttl=50ms", "artifacts.ttl_after_ack=10ms"]);
        self.cluster.start_worker(victim).await?;
        let road = &mut self.cluster.workers[victim].road;
        road.delay(Traffic::Artifacts, Duration::from_millis(80), Duration::ZERO)?;
        self.hold(1_500..3_000).await;
        let worker = &mut self.cluster.workers[victim];
        worker.road.heal()?;
        worker.kill();
        self.cluster.start_worker(victim).await
    }

    pub(super) async fn disk_full(&mut self) {
        let victim = self.victim();
        let leave = if self.dice.percent(50) { 0 } else { self.dice.within(1..4) << 20 };
        self.note(format!("worker-{victim}, {} MiB left", leave >> 20));
        let begun = Instant::now();
        let time = self.dice.millis(1_500..4_000);
        while begun.elapsed() < time {
            // Whatever the worker gives up is taken too.
            self.cluster.workers[victim].cache.fill(leave);
            sleep(Duration::from_millis(100)).await;
        }
        self.cluster.workers[victim].cache.empty();
    }

    /// Every file operation of a worker takes longer.
    pub(super) async fn slow_disk(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let delay = self.dice.millis(1..21);
        self.note(format!("worker-{victim}, {} ms for each operation", delay.as_millis()));
        let worker = &self.cluster.workers[victim];
        let Some(process) = worker.process.as_ref().map(Process::id) else { return Ok(()) };
        let failed = |name: &str| {
            let name = format!("strace of {name}");
            move |source| ChaosError::Process { name, source }
        };
        let slow = SlowDisk::of(process, delay).map_err(failed(worker.name()))?;
        self.hold(1_500..4_000).await;
        slow.end().map_err(failed(self.cluster.workers[victim].name()))
    }

    /// Does something to every artifact of a worker that is seen on its disk, for a while. Gives
    /// how often it could be done.
    async fn visit_artifacts(&mut self, worker: usize, act: fn(&Path) -> bool) -> usize {
        let spool = self.cluster.workers[worker].cache.path().join("spool");
        let begun = Instant::now();
        let time = self.dice.millis(1_500..3_500);
        let mut seen = std::collections::BTreeSet::new();
        let mut done = 0;
        while begun.elapsed() < time {
            for path in files(&spool) {
                if act(&path) && seen.insert(path) {
                    done += 1;
                }
            }
            sleep(VISIT).await;
        }
        done
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()));
    entries.map_or_else(|_| Vec::new(), Iterator::collect)
}

/// Changes one byte in the middle of a file.
fn flip_a_byte(path: &Path) -> bool {
    let flip = || -> std::io::Result<bool> {
        let file = File::options().read(true).write(true).open(path)?;
        let size = file.metadata()?.len();
        if size == 0 {
            return Ok(false);
        }
        let mut byte = [0];
        file.read_exact_at(&mut byte, size / 2)?;
        byte[0] ^= 0x10;
        file.write_all_at(&byte, size / 2)?;
        Ok(true)
    };
    flip().unwrap_or(false)
}
