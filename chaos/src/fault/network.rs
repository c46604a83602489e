//! Faults of the network between API nodes and workers.

use std::time::Duration;

use super::Deed;
use crate::cluster::Road;
use crate::error::ChaosError;
use crate::network::Traffic;

impl Deed<'_> {
    /// Cuts the control streams of a worker, and its artifacts with them.
    pub(super) async fn cut(&mut self, there: bool, back: bool) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.road(victim).cut(Traffic::All, there, back)?;
        // Around the limit of silence: sometimes it is noticed, sometimes not.
        self.hold(500..6_000).await;
        self.road(victim).heal()
    }

    pub(super) async fn cut_artifacts(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.road(victim).cut(Traffic::Artifacts, true, true)?;
        self.hold(500..4_000).await;
        self.road(victim).heal()
    }

    pub(super) async fn delay(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let delay = self.dice.millis(20..400);
        self.note(format!("worker-{victim} by {} ms each way", delay.as_millis()));
        self.road(victim).delay(Traffic::All, delay, delay)?;
        self.hold(1_500..4_000).await;
        self.road(victim).heal()
    }

    pub(super) async fn loss(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let percent = self.dice.within(2..30);
        self.note(format!("worker-{victim}, {percent} of 100 packets each way"));
        self.road(victim).lose(percent)?;
        self.hold(1_500..6_000).await;
        self.road(victim).heal()
    }

    pub(super) async fn resets(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        for _ in 0..self.dice.within(3..9) {
            self.road(victim).reset(Traffic::All)?;
            self.hold(50..400).await;
        }
        Ok(())
    }

    pub(super) async fn bandwidth(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let rate = self.dice.within(4..64) << 10;
        self.note(format!("worker-{victim} with {} KiB/s", rate >> 10));
        self.road(victim).limit(rate)?;
        self.hold(1_500..4_000).await;
        self.road(victim).heal()
    }

    pub(super) async fn half_open(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.road(victim).leave_half_open()?;
        // Only silence tells: three seconds of it.
        self.hold(3_200..4_500).await;
        self.road(victim).heal()
    }

    pub(super) async fn wire_flips(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let flip_in = self.dice.within(200..8_000);
        self.note(format!("worker-{victim}, one bit in {flip_in} bytes"));
        self.road(victim).flip(flip_in)?;
        self.hold(1_500..4_000).await;
        self.road(victim).heal()?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(())
    }

    fn road(&mut self, worker: usize) -> &mut Road {
        &mut self.cluster.workers[worker].road
    }
}
