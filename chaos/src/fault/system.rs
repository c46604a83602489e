//! Faults of the system a worker runs on, and of the worker itself: clocks that jump, no more files, no
//! more memory, and a worker that lies.

use std::time::Duration;

use rustix::process::Resource;

use super::Deed;
use crate::error::ChaosError;
use crate::liar::Liar;

impl Deed<'_> {
    pub(super) async fn clock_steps(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let far = i64::try_from(self.dice.within(60..86_400)).unwrap_or(60);
        self.note(format!("worker-{victim} by {far} s, forth and back"));
        for seconds in [far, -far, 0] {
            self.cluster.workers[victim].set_clock(seconds)?;
            self.hold(500..1_200).await;
        }
        Ok(())
    }

    pub(super) async fn few_files(&mut self) {
        let victim = self.victim();
        let worker = &self.cluster.workers[victim];
        let Some(process) = &worker.process else { return };
        let open = process.footprint().map_or(32, |now| now.open_files as u64);
        let was = process.limit(Resource::Nofile, Some(open + 2));
        self.note(format!("worker-{victim} may have {} files open", open + 2));
        self.hold(1_500..3_000).await;
        if let Some(process) = &self.cluster.workers[victim].process {
            process.limit(Resource::Nofile, was);
        }
    }

    /// A process that gets no memory ends: like a kill, but from inside.
    pub(super) async fn little_memory(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        self.note(format!("worker-{victim}"));
        if let Some(process) = &self.cluster.workers[victim].process {
            process.limit(Resource::As, Some(64 << 20));
        }
        self.hold(1_500..3_000).await;
        let survived = self.cluster.workers[victim].is_running();
        self.note(if survived { "it went on" } else { "it ended" }.to_owned());
        self.cluster.workers[victim].kill();
        self.cluster.start_worker(victim).await
    }

    pub(super) async fn liar(&mut self) -> Result<(), ChaosError> {
        let victim = self.victim();
        let Some(honest) = self.cluster.workers[victim].grpc() else { return Ok(()) };
        let mut liar = Liar::before(honest, self.dice.fork(7)).await?;
        self.cluster.workers[victim].road.usurp(liar.address())?;
        self.hold(2_500..5_000).await;
        self.note(format!("worker-{victim}, {} lies", liar.told()));
        self.cluster.workers[victim].road.heal()?;
        liar.stop().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(())
    }
}
