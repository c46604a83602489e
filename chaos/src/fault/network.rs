//! Faults of the network between API nodes and workers.

use std::time::Duration;

use super::Deed;
use crate::link::{Lane, Link};

impl Deed<'_> {
    /// Cuts the control streams of a worker, and its artifacts with them.
    pub(super) async fn cut(&mut self, there: bool, back: bool) {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.links(victim, |link| {
            link.change(|weather| (weather.there.is_cut, weather.back.is_cut) = (there, back));
        });
        // Around the limit of silence: sometimes it is noticed, sometimes not.
        self.hold(500..6_000).await;
        self.links(victim, Link::heal);
    }

    pub(super) async fn cut_artifacts(&mut self) {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        let link = &self.cluster.workers[victim].artifacts;
        link.change(|weather| (weather.there.is_cut, weather.back.is_cut) = (true, true));
        self.hold(500..4_000).await;
        self.cluster.workers[victim].artifacts.heal();
    }

    pub(super) async fn delay(&mut self) {
        let victim = self.victim();
        let delay = self.dice.millis(20..400);
        self.note(format!("worker-{victim} by {} ms each way", delay.as_millis()));
        let lane = Lane { delay, ..Lane::default() };
        self.links(victim, |link| {
            link.change(|weather| (weather.there, weather.back) = (lane, lane));
        });
        self.hold(1_500..4_000).await;
        self.links(victim, Link::heal);
    }

    pub(super) async fn resets(&mut self) {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        for _ in 0..self.dice.within(3..9) {
            self.links(victim, Link::reset);
            self.hold(50..400).await;
        }
    }

    pub(super) async fn bandwidth(&mut self) {
        let victim = self.victim();
        let rate = self.dice.within(4..64) << 10;
        self.note(format!("worker-{victim} with {} KiB/s", rate >> 10));
        let lane = Lane { bytes_per_second: Some(rate), ..Lane::default() };
        let link = &self.cluster.workers[victim].artifacts;
        link.change(|weather| (weather.there, weather.back) = (lane, lane));
        self.hold(1_500..4_000).await;
        self.cluster.workers[victim].artifacts.heal();
    }

    pub(super) async fn half_open(&mut self) {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        self.links(victim, Link::leave_half_open);
        // Only silence tells: three seconds of it.
        self.hold(3_200..4_500).await;
    }

    pub(super) async fn wire_flips(&mut self) {
        let victim = self.victim();
        let flip_in = self.dice.within(200..8_000);
        self.note(format!("worker-{victim}, one bit in {flip_in} bytes"));
        let link = &self.cluster.workers[victim].artifacts;
        link.change(|weather| weather.back.flip_in = Some(flip_in));
        self.hold(1_500..4_000).await;
        let worker = &self.cluster.workers[victim];
        worker.artifacts.heal();
        // A connection whose framing was hit may wait for ever: it is not kept.
        worker.artifacts.reset();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// All links between a worker and API nodes.
    fn links(&self, worker: usize, act: impl Fn(&Link)) {
        for api in &self.cluster.apis {
            act(&api.links[worker]);
        }
        act(&self.cluster.workers[worker].artifacts);
    }
}
