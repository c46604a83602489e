//! Everything that is done to a cluster, by name: what it is, whether this machine can do it, and which
//! errors it excuses. How it is done is in the files below.

mod disk;
mod network;
mod nodes;
mod store;
mod system;

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::error::ChaosError;
use crate::network::Network;
use crate::slow_disk;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// kill -9 of a worker, and back after a while.
    KillWorker,
    /// SIGTERM: the worker drains, and is back.
    DrainWorker,
    /// SIGSTOP for less than the heartbeat limit.
    FreezeShort,
    /// SIGSTOP for longer than the heartbeat limit.
    FreezeLong,
    /// Killed and back at once, under the same name.
    RestartWorker,
    /// Every worker in turn, by SIGTERM.
    RollingRestart,
    /// All workers killed, and back.
    AllWorkersGone,
    /// Three workers, none, five, three.
    Scale,
    /// kill -9 of an API node.
    KillApi,
    /// SIGTERM to an API node.
    RestartApi,
    /// What the API says reaches a worker no more.
    CutToWorker,
    /// What a worker says reaches the API no more.
    CutToApi,
    /// Neither.
    CutBoth,
    /// The control stream stands and artifacts can't be fetched.
    CutArtifacts,
    /// Everything comes late.
    Delay,
    /// Packets are lost.
    Loss,
    /// Connections are reset, again and again.
    Resets,
    /// Little bandwidth.
    Bandwidth,
    /// The API believes in connections that are no more.
    HalfOpen,
    /// Bits of artifacts are flipped on their way.
    WireFlips,
    /// Bytes of artifacts are flipped on disk.
    DiskFlips,
    /// Artifacts are deleted on disk.
    ArtifactsDeleted,
    /// Artifacts expire before they are fetched.
    ArtifactsExpire,
    /// A worker's disk is full.
    DiskFull,
    /// A worker's disk is slow.
    SlowDisk,
    /// Segments are not where the catalog says.
    SegmentsMissing,
    /// Segments are cut short.
    SegmentsTruncated,
    /// Segments stand in each other's place.
    SegmentsSwapped,
    /// The store answers with errors and breaks off.
    StoreErring,
    /// The store is slow.
    StoreSlow,
    /// A worker's clock jumps, forth and back.
    ClockSteps,
    /// A worker may open no more files.
    FewFiles,
    /// A worker may ask for no more memory.
    LittleMemory,
    /// A worker lies about checksums, rows, other work, and its address.
    Liar,
}

/// What a fault excuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excuses {
    /// Connections to API nodes may break.
    pub broken: bool,
    /// A query may end with an error in which one of these stands.
    pub errors: &'static [&'static str],
}

/// A fault as it happened.
#[derive(Clone, Debug)]
pub struct Happened {
    /// What kind.
    pub kind: Kind,
    /// To whom, and how.
    pub what: String,
    /// When it began, after the begin of the run.
    pub from: Duration,
    /// When it was taken back.
    pub healed: Duration,
    /// When everything was in its place again.
    pub recovered: Duration,
    /// How long a drain took, where there was one.
    pub drains: Vec<Duration>,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 34] = [
        Self::KillWorker,
        Self::DrainWorker,
        Self::FreezeShort,
        Self::FreezeLong,
        Self::RestartWorker,
        Self::RollingRestart,
        Self::AllWorkersGone,
        Self::Scale,
        Self::KillApi,
        Self::RestartApi,
        Self::CutToWorker,
        Self::CutToApi,
        Self::CutBoth,
        Self::CutArtifacts,
        Self::Delay,
        Self::Loss,
        Self::Resets,
        Self::Bandwidth,
        Self::HalfOpen,
        Self::WireFlips,
        Self::DiskFlips,
        Self::ArtifactsDeleted,
        Self::ArtifactsExpire,
        Self::DiskFull,
        Self::SlowDisk,
        Self::SegmentsMissing,
        Self::SegmentsTruncated,
        Self::SegmentsSwapped,
        Self::StoreErring,
        Self::StoreSlow,
        Self::ClockSteps,
        Self::FewFiles,
        Self::LittleMemory,
        Self::Liar,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::KillWorker => "kill-worker",
            Self::DrainWorker => "drain-worker",
            Self::FreezeShort => "freeze-short",
            Self::FreezeLong => "freeze-long",
            Self::RestartWorker => "restart-worker",
            Self::RollingRestart => "rolling-restart",
            Self::AllWorkersGone => "all-workers-gone",
            Self::Scale => "scale-3-0-5",
            Self::KillApi => "kill-api",
            Self::RestartApi => "restart-api",
            Self::CutToWorker => "cut-to-worker",
            Self::CutToApi => "cut-to-api",
            Self::CutBoth => "cut-both-ways",
            Self::CutArtifacts => "cut-artifacts",
            Self::Delay => "delay",
            Self::Loss => "loss",
            Self::Resets => "resets",
            Self::Bandwidth => "bandwidth",
            Self::HalfOpen => "half-open",
            Self::WireFlips => "wire-flips",
            Self::DiskFlips => "disk-flips",
            Self::ArtifactsDeleted => "artifacts-deleted",
            Self::ArtifactsExpire => "artifacts-expire",
            Self::DiskFull => "disk-full",
            Self::SlowDisk => "slow-disk",
            Self::SegmentsMissing => "segments-missing",
            Self::SegmentsTruncated => "segments-truncated",
            Self::SegmentsSwapped => "segments-swapped",
            Self::StoreErring => "store-erring",
            Self::StoreSlow => "store-slow",
            Self::ClockSteps => "clock-steps",
            Self::FewFiles => "few-files",
            Self::LittleMemory => "little-memory",
            Self::Liar => "liar",
        }
    }

    /// The errors that nobody could avoid while it lasts. Everything else is a violation.
    pub fn excuses(self) -> Excuses {
        match self {
            // A client talks to one API node. When that is gone, so is the answer.
            Self::KillApi => Excuses { broken: true, errors: &[] },
            Self::RestartApi => Excuses { broken: true, errors: &["shutting down"] },
            // A gap is never silent: the message names the file.
            Self::SegmentsMissing | Self::SegmentsTruncated | Self::SegmentsSwapped => {
                Excuses { broken: false, errors: &[".samples.parquet", ".series.parquet"] }
            }
            _ => Excuses::default(),
        }
    }

    /// Why this machine can't do it, where it can't.
    pub fn hindrance(self, cluster: &Cluster) -> Option<&'static str> {
        let workers = &cluster.workers;
        match self {
            Self::DiskFull if !workers.iter().all(|worker| worker.cache.can_be_filled()) => {
                Some("no disk in memory can be mounted here")
            }
            Self::ClockSteps if !workers.iter().all(|worker| worker.has_fake_clock()) => {
                Some("libfaketime is not installed")
            }
            Self::Loss if *cluster.network() != Network::Namespaces => {
                Some("a proxy has no packets to lose")
            }
            Self::SlowDisk => slow_disk::hindrance(),
            _ => None,
        }
    }

    /// Does it to a cluster, waits, takes it back, and waits until everything is in its place.
    pub async fn inflict(
        self,
        cluster: &mut Cluster,
        dice: &mut Dice,
        begun: Instant,
    ) -> Result<Happened, ChaosError> {
        let from = begun.elapsed();
        let mut deed = Deed { cluster, dice, what: String::new(), drains: Vec::new() };
        match self {
            Self::KillWorker => deed.kill_worker().await?,
            Self::DrainWorker => deed.drain_worker().await?,
            Self::FreezeShort => deed.freeze(200..2_000).await,
            Self::FreezeLong => deed.freeze(3_500..5_000).await,
            Self::RestartWorker => deed.restart_worker().await?,
            Self::RollingRestart => deed.rolling_restart().await?,
            Self::AllWorkersGone => deed.all_workers_gone().await?,
            Self::Scale => deed.scale().await?,
            Self::KillApi => deed.kill_api().await?,
            Self::RestartApi => deed.restart_api().await?,
            Self::CutToWorker => deed.cut(true, false).await?,
            Self::CutToApi => deed.cut(false, true).await?,
            Self::CutBoth => deed.cut(true, true).await?,
            Self::CutArtifacts => deed.cut_artifacts().await?,
            Self::Delay => deed.delay().await?,
            Self::Loss => deed.loss().await?,
            Self::Resets => deed.resets().await?,
            Self::Bandwidth => deed.bandwidth().await?,
            Self::HalfOpen => deed.half_open().await?,
            Self::WireFlips => deed.wire_flips().await?,
            Self::DiskFlips => deed.disk_flips().await,
            Self::ArtifactsDeleted => deed.artifacts_deleted().await,
            Self::ArtifactsExpire => deed.artifacts_expire().await?,
            Self::DiskFull => deed.disk_full().await,
            Self::SlowDisk => deed.slow_disk().await?,
            Self::SegmentsMissing => deed.segments_missing().await?,
            Self::SegmentsTruncated => deed.segments_truncated().await?,
            Self::SegmentsSwapped => deed.segments_swapped().await?,
            Self::StoreErring => deed.store_erring().await?,
            Self::StoreSlow => deed.store_slow().await?,
            Self::ClockSteps => deed.clock_steps().await?,
            Self::FewFiles => deed.few_files().await,
            Self::LittleMemory => deed.little_memory().await?,
            Self::Liar => deed.liar().await?,
        }
        let Deed { what, drains, .. } = deed;
        let healed = begun.elapsed();
        Ok(Happened { kind: self, what, from, healed, recovered: healed, drains })
    }
}

/// A fault under way.
struct Deed<'a> {
    cluster: &'a mut Cluster,
    dice: &'a mut Dice,
    /// To whom, and how.
    what: String,
    drains: Vec<Duration>,
}

impl Deed<'_> {
    /// Somebody who runs.
    fn victim(&mut self) -> usize {
        let running = self.cluster.running();
        if running.is_empty() { 0 } else { *self.dice.pick(&running) }
    }

    fn note(&mut self, what: String) {
        if !self.what.is_empty() {
            self.what.push_str(", ");
        }
        self.what.push_str(&what);
    }

    /// Waits for a time between these, in milliseconds.
    async fn hold(&mut self, millis: std::ops::Range<u64>) {
        let time = self.dice.millis(millis);
        tokio::time::sleep(time).await;
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("there is no fault {text:?}; known are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("weather".parse::<Kind>().unwrap_err().contains("kill-worker"));
    }
}
