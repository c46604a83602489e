//! Writes the story of a seed: its world and its faults; the queries are written by `queries`. Each
//! part has dice of its own. Most seeds have only some kinds of fault, each seed others: what is
//! always everywhere hides what only a few faults together show.

use std::time::Duration;

use core_workcoord::config::{CoordinatorConfig, IntakeConfig};

use super::queries::{self, Crowd, MAX_ARTIFACT_BYTES};
use super::{MS, SECOND, Shape, Story};
use crate::fault::{ApiLie, FAULT_KINDS, Fault, FaultKind, WorkerLie};
use crate::rng::Dice;

/// When every fault is over.
const HEAL_AT: u64 = 35 * SECOND;
/// When everything must have settled.
const END_AT: u64 = 60 * SECOND;
/// How often a kind of fault is drawn, against the others, in the order of `FAULT_NAMES`.
const WEIGHTS: [u64; FAULT_KINDS] =
    [8, 4, 5, 5, 4, 2, 3, 2, 2, 4, 2, 2, 1, 3, 3, 6, 4, 2, 5, 5, 2, 1, 2, 2, 3, 1, 1, 3];

/// The story of a seed.
pub(super) fn story(seed: u64) -> Story {
    let dice = Dice::new(seed);
    let mut shape = shape(&mut dice.branch(1));
    let crowd = match dice.branch(4).within(0, 99) {
        0..=5 if !shape.quiet => Crowd::Newcomers,
        6..=11 if !shape.quiet => Crowd::Large,
        _ => Crowd::Usual,
    };
    fit(&mut shape, crowd);
    let queries = queries::write(&mut dice.branch(2), &shape, crowd);
    let begins: Vec<u64> = queries.iter().map(|query| query.at).collect();
    let faults = match shape.quiet {
        true => Vec::new(),
        false => faults(&mut dice.branch(3), &shape, &begins),
    };
    Story { seed, shape, queries, faults }
}

fn shape(dice: &mut Dice) -> Shape {
    let quiet = dice.chance(100);
    let usual_size = dice.chance(500);
    let apis = if usual_size { 3 } else { dice.small(1, 4) };
    let workers = match (usual_size, quiet) {
        (true, _) => 12,
        (false, true) => dice.small(6, 16),
        (false, false) => dice.small(1, 16),
    };
    Shape {
        apis,
        workers,
        spare_workers: if quiet || dice.chance(600) { 0 } else { dice.small(1, 4) },
        quiet,
        heal_at: HEAL_AT,
        end_at: END_AT,
        pipe_limit: if quiet || dice.chance(600) { 64 } else { dice.small(6, 24) as usize },
        heartbeats_first: dice.chance(500),
        bytes_per_micro: [1, 10, 100][dice.index(3)],
        failing_runs_per_mille: if quiet || dice.chance(500) { 0 } else { dice.small(1, 60) },
        coordinator: coordinator(dice),
        intake: intake(dice, apis),
    }
}

/// Makes a world in which a crowd has to wait for each other.
fn fit(shape: &mut Shape, crowd: Crowd) {
    match crowd {
        Crowd::Usual => {}
        Crowd::Newcomers => {
            shape.workers = shape.workers.min(2);
            shape.intake.slots = 1;
        }
        Crowd::Large => {
            shape.failing_runs_per_mille = 150;
            shape.coordinator.max_attempts = 6;
        }
    }
}

pub(super) fn millis(dice: &mut Dice, from: u64, to: u64) -> Duration {
    Duration::from_millis(dice.within(from, to))
}

/// A limit that is out of the way in most seeds and narrow in some.
fn seldom(dice: &mut Dice, per_mille: u64, (from, to): (u32, u32), usual: u32) -> u32 {
    if dice.chance(per_mille) { dice.small(from, to) } else { usual }
}

fn coordinator(dice: &mut Dice) -> CoordinatorConfig {
    let max_attempts = dice.small(3, 6);
    CoordinatorConfig {
        heartbeat_interval: Duration::from_secs(1),
        heartbeat_timeout: Duration::from_secs(3),
        dial_timeout: millis(dice, 1_000, 2_000),
        welcome_timeout: millis(dice, 1_000, 2_000),
        answer_timeout: Duration::from_secs(4),
        backoff_base: millis(dice, 50, 200),
        backoff_max: millis(dice, 1_000, 3_000),
        backoff_reset_after: millis(dice, 1_000, 5_000),
        worker_queue_ahead: dice.small(0, 3),
        query_window: seldom(dice, 300, (1, 8), 64),
        max_queries: seldom(dice, 100, (2, 6), 2_000),
        max_tenant_queries: seldom(dice, 100, (1, 3), 500),
        max_queued_items: seldom(dice, 100, (10, 60), 200_000),
        max_query_items: seldom(dice, 50, (8, 20), 100_000),
        max_attempts,
        poison_workers: dice.small(2, 3),
        max_fetches: seldom(dice, 300, (1, 4), 64),
        max_fetch_bytes: u64::from(seldom(dice, 300, (50_000, 400_000), 256 << 20)),
        max_artifact_bytes: MAX_ARTIFACT_BYTES,
        hedge_factor: f64::from(dice.small(15, 50)) / 10.0,
        hedge_floor: millis(dice, 10, 100),
        hedge_budget_per_mille: [0, 50, 300, 1_000][dice.index(4)],
        ..CoordinatorConfig::default()
    }
}

fn intake(dice: &mut Dice, apis: u32) -> IntakeConfig {
    IntakeConfig {
        slots: dice.small(1, 4),
        queue_limit: dice.small(0, 8),
        // A worker may still hold a session of an API's last life beside the present one. In some
        // stories it has no room for both.
        max_sessions: if dice.chance(300) { apis } else { 2 * apis + dice.small(0, 4) },
        heartbeat_interval: Duration::from_secs(1),
        heartbeat_timeout: Duration::from_secs(3),
        hello_timeout: millis(dice, 1_000, 2_000),
        artifact_ttl: Duration::from_secs(8),
        artifact_ttl_after_ack: Duration::from_secs(1),
        drain_timeout: Duration::from_secs(5),
    }
}

fn faults(dice: &mut Dice, shape: &Shape, begins: &[u64]) -> Vec<Fault> {
    let count = match dice.index(10) {
        0..=2 => dice.small(1, 5),
        3..=7 => dice.small(5, 25),
        _ => dice.small(25, 70),
    };
    let per_mille = [150, 500, 1_000][dice.index(3)];
    let mut weights = WEIGHTS;
    for weight in &mut weights {
        if !dice.chance(per_mille) {
            *weight = 0;
        }
    }
    if weights.iter().all(|weight| *weight == 0) {
        weights = WEIGHTS;
    }
    let mut faults: Vec<Fault> = (0..count)
        .map(|_| {
            let index = pick(dice, &weights);
            let (kind, lasts) = kind(dice, shape, index);
            // Things go wrong at any time, and often just when a query is on its way.
            let at = match dice.chance(600) && !begins.is_empty() {
                true => begins[dice.index(begins.len())] + dice.within(0, 600 * MS),
                false => dice.within(SECOND / 2, HEAL_AT - SECOND),
            };
            Fault { at, lasts: lasts.min(HEAL_AT - at), kind }
        })
        .collect();
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn pick(dice: &mut Dice, weights: &[u64; FAULT_KINDS]) -> usize {
    let mut left = dice.within(1, weights.iter().sum());
    for (index, weight) in weights.iter().enumerate() {
        if left <= *weight {
            return index;
        }
        left -= weight;
    }
    FAULT_KINDS - 1
}

/// A fault of the kind with this index, somewhere, and how long it lasts.
fn kind(dice: &mut Dice, shape: &Shape, index: usize) -> (FaultKind, u64) {
    let worker = dice.small(0, shape.workers + shape.spare_workers - 1);
    let api = dice.small(0, shape.apis - 1);
    let moves = dice.chance(300);
    let (to_worker, to_api) =
        [(true, true), (true, true), (true, false), (false, true)][dice.index(4)];
    let mut lasts = |from, to| dice.within(from * MS, to * MS);
    match index {
        0 => (FaultKind::WorkerCrash { worker, moves }, lasts(50, 4_000)),
        1 => (FaultKind::WorkerVanish { worker, moves }, lasts(500, 8_000)),
        2 => (FaultKind::WorkerHang { worker }, lasts(100, 8_000)),
        3 => (FaultKind::WorkerDrain { worker }, lasts(100, 2_000)),
        4 => (
            FaultKind::WorkerSlow { worker, factor: dice.small(3, 40) },
            dice.within(SECOND, 12 * SECOND),
        ),
        5 => (FaultKind::DiskFull { worker }, lasts(300, 6_000)),
        6 => (FaultKind::Evictions { worker }, lasts(500, 8_000)),
        7 => (FaultKind::DiskCorrupt { worker }, lasts(300, 6_000)),
        8 => (FaultKind::StoreErrors { worker }, lasts(300, 6_000)),
        9 => {
            let lasts = lasts(500, 6_000);
            let lie = WorkerLie::ALL[dice.index(WorkerLie::ALL.len())];
            (FaultKind::WorkerLies { worker, lie }, lasts)
        }
        10 => (FaultKind::OpenHangs { worker }, lasts(500, 6_000)),
        11 => (FaultKind::ApiCrash { api }, lasts(50, 3_000)),
        12 => (FaultKind::ApiVanish { api }, lasts(500, 4_000)),
        13 => (FaultKind::ApiHang { api }, lasts(100, 6_000)),
        14 => {
            let lasts = lasts(500, 6_000);
            (FaultKind::ApiLies { api, lie: ApiLie::ALL[dice.index(ApiLie::ALL.len())] }, lasts)
        }
        15 => (FaultKind::LinkCut { api, worker, to_worker, to_api }, lasts(100, 14_000)),
        16 => (FaultKind::WorkerIsolated { worker, to_worker, to_api }, lasts(100, 10_000)),
        17 => (FaultKind::ApiIsolated { api, to_worker, to_api }, lasts(100, 8_000)),
        18 => {
            let lasts = lasts(500, 12_000);
            (FaultKind::LinkSlow { api, worker, slowest_ms: dice.small(5, 400) }, lasts)
        }
        19 => (FaultKind::StreamReset { api, worker }, 0),
        20 => (FaultKind::WireCorrupt { api, worker }, lasts(500, 6_000)),
        21 => (FaultKind::ApiClockStep { api, by_ms: dice.small(100, 30_000) }, 0),
        22 => (FaultKind::WorkerClockStep { worker, by_ms: dice.small(100, 30_000) }, 0),
        23 => (FaultKind::DiscoveryOutage { api }, lasts(500, 10_000)),
        24 => (FaultKind::DiscoveryFlap { api, worker }, lasts(200, 6_000)),
        25 => (FaultKind::ScaleToZero, lasts(1_000, 8_000)),
        27 => (FaultKind::FetchErrors { worker }, lasts(300, 6_000)),
        _ => (FaultKind::ScaleUp, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_story_has_a_configuration_that_fits_together_and_faults_that_end_in_time() {
        let mut quiet = 0;
        let mut kinds = [0; FAULT_KINDS];
        for seed in 0..2_000 {
            let story = Story::of(seed);
            assert_eq!(story.shape.coordinator.check(), Ok(()), "seed {seed}");
            assert_eq!(story.shape.intake.check(), Ok(()), "seed {seed}");
            assert!(story.faults.iter().all(|fault| fault.at + fault.lasts <= HEAL_AT));
            assert!(story.queries.is_sorted_by_key(|query| query.at));
            quiet += usize::from(story.shape.quiet);
            for fault in &story.faults {
                kinds[fault.kind.index()] += 1;
            }
        }
        assert!((120..300).contains(&quiet), "{quiet} of 2,000 seeds are quiet");
        assert!(kinds.iter().all(|count| *count > 100), "{kinds:?}");
    }
}
