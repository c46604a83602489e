//! Faults of whole processes: killed, drained, frozen, restarted, one by one or all at once.

use std::ops::Range;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use super::Deed;
use crate::error::ChaosError;

/// A drain that takes longer is no drain.
const DRAIN: Duration = Duration::from_secs(30);

impl Deed<'_> {
    pub(super) async fn kill_worker(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.cluster.workers[victim].kill();
        self.hold(300..2_500).await;
        self.cluster.start_worker(victim).await
    }

    pub(super) async fn restart_worker(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.cluster.workers[victim].kill();
        self.cluster.start_worker(victim).await?;
        self.hold(200..600).await;
        Ok(())
    }

    pub(super) async fn drain_worker(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.drain(victim).await;
        self.hold(100..1_000).await;
        self.cluster.start_worker(victim).await
    }

    pub(super) async fn rolling_restart(&mut self) -> Result<(), ChaosError> {
        for victim in self.cluster.running() {
            self.note(format!("worker-{victim}"));
            self.drain(victim).await;
            self.cluster.start_worker(victim).await?;
            self.hold(200..500).await;
        }
        Ok(())
    }

    pub(super) async fn freeze(&mut self, millis: Range<u64>) {
        let victim = self.victim();
        let time = self.dice.millis(millis);
        self.note(format!("worker-{victim} for {} ms", time.as_millis()));
        self.cluster.workers[victim].signal(Signal::STOP);
        tokio::time::sleep(time).await;
        self.cluster.workers[victim].signal(Signal::CONT);
    }

    pub(super) async fn all_workers_gone(&mut self) -> Result<(), ChaosError> {
        let running = self.cluster.running();
        self.note(format!("{} workers", running.len()));
        for victim in &running {
            self.cluster.workers[*victim].kill();
        }
        self.hold(500..3_000).await;
        for victim in running {
            self.cluster.start_worker(victim).await?;
        }
        Ok(())
    }

    pub(super) async fn scale(&mut self) -> Result<(), ChaosError> {
        let running = self.cluster.running();
        self.note(format!("{} workers, none, all", running.len()));
        for victim in &running {
            self.cluster.workers[*victim].signal(Signal::TERM);
        }
        for victim in &running {
            self.drain(*victim).await;
        }
        self.hold(300..1_500).await;
        for number in 0..self.cluster.workers.len() {
            self.cluster.start_worker(number).await?;
        }
        self.hold(1_000..2_500).await;
        for number in 0..self.cluster.workers.len() {
            if !running.contains(&number) {
                self.drain(number).await;
            }
        }
        Ok(())
    }

    pub(super) async fn kill_api(&mut self) -> Result<(), ChaosError> {
        let victim = self.dice.below(self.cluster.apis.len());
        self.note(format!("api-{victim}"));
        self.cluster.apis[victim].kill();
        self.hold(100..800).await;
        self.cluster.start_api(victim).await
    }

    pub(super) async fn restart_api(&mut self) -> Result<(), ChaosError> {
        let victim = self.dice.below(self.cluster.apis.len());
        self.note(format!("api-{victim}"));
        self.cluster.apis[victim].ask_to_leave();
        if let Some(process) = &mut self.cluster.apis[victim].process {
            let begun = Instant::now();
            let ended = process.ended(DRAIN).await;
            let took = begun.elapsed();
            let how = ended.map_or("killed".to_owned(), |status| status.to_string());
            self.note(format!("left after {} ms: {how}", took.as_millis()));
        }
        self.cluster.apis[victim].kill();
        self.cluster.start_api(victim).await
    }

    /// Drains a worker and waits until it is gone.
    async fn drain(&mut self, victim: usize) {
        let worker = &mut self.cluster.workers[victim];
        worker.signal(Signal::TERM);
        let begun = Instant::now();
        let ended = match &mut worker.process {
            Some(process) => process.ended(DRAIN).await,
            None => return,
        };
        worker.kill();
        self.drains.push(begun.elapsed());
        match ended {
            Some(status) if status.success() => {}
            Some(status) => self.note(format!("worker-{victim} drained with {status}")),
            None => self.note(format!("worker-{victim} did not drain and was killed")),
        }
    }
}
