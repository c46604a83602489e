//! Runs seeds and demands that every promise is kept, that a seed always gives the same world, and
//! that neither the number of threads nor a journal changes anything.

use core_workcoord::journal::replay;
use tributary_simulation::{
    Check, Fault, FaultKind, Options, SimBug, Story, Summary, run, run_seeds, shrink, shrink_with,
    tell, tell_with,
};

/// Seeds whose promises are checked here. Far more are run by `tributary simulate`.
const SEEDS: u64 = 300;

fn assert_kept(summary: &Summary) {
    if let Some(violation) = summary.violations.first() {
        let story = tell(&shrink(&Story::of(violation.seed)));
        panic!("{violation}\n\nThe shortest story that still breaks it:\n\n{story}");
    }
}

#[test]
fn every_promise_is_kept() {
    let summary = run_seeds(0, SEEDS, 2, |_| {}, false);
    println!("{summary}");
    assert_kept(&summary);
    assert_eq!(summary.seeds, SEEDS);
    let tally = &summary.tally;
    // A world in which something never happens shows nothing about it.
    assert!(summary.faults().all(|(_, count)| count > 0), "{summary}");
    assert!(tally.each().all(|(_, count)| count > 0), "{summary}");
    assert!(summary.faultless > SEEDS / 20, "{summary}");
    let ended = tally.complete + tally.cancelled + tally.refused + tally.failed();
    assert_eq!(ended + tally.queries_lost, tally.queries, "every query has one end");
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..40 {
        let once = run(&Story::of(seed), &Options::default());
        let again = run(&Story::of(seed), &Options::default());
        assert_eq!(once.fingerprint, again.fingerprint, "seed {seed}");
        assert_eq!(once.tally, again.tally, "seed {seed}");
    }
}

#[test]
fn watching_does_not_change_the_world() {
    for seed in 0..20 {
        let unseen = run(&Story::of(seed), &Options::default());
        let watched = Options { trace: true, journal: true, ..Options::default() };
        let watched = run(&Story::of(seed), &watched);
        let outside = Options { from_outside_only: true, ..Options::default() };
        let outside = run(&Story::of(seed), &outside);
        assert_eq!(unseen.fingerprint, watched.fingerprint, "seed {seed}");
        assert_eq!(unseen.fingerprint, outside.fingerprint, "seed {seed}");
    }
}

#[test]
fn one_thread_or_three_the_summary_is_the_same() {
    let alone = run_seeds(1_000, 60, 1, |_| {}, false);
    let together = run_seeds(1_000, 60, 3, |_| {}, false);
    assert_eq!(alone, together);
}

#[test]
fn every_journal_replays_to_the_same_decisions() {
    for seed in 0..6 {
        let report = run(&Story::of(seed), &Options { journal: true, ..Options::default() });
        assert!(!report.journals.is_empty());
        for journal in &report.journals {
            let (_, replayed) = replay(&journal.bytes, |_| {}).expect("it is whole");
            assert_eq!(replayed.different, 0, "{} of seed {seed}", journal.name);
            assert!(!replayed.truncated);
        }
    }
}

#[test]
fn a_broken_promise_is_shrunk_and_told() {
    let options = Options { sim_bug: Some(SimBug::FileLeftAfterCrash), ..Options::default() };
    let seed = (0..20)
        .find(|seed| run(&Story::of(*seed), &options).violation.is_some())
        .expect("the bug is found within 20 seeds");
    let long = Story::of(seed);
    let found = run(&long, &options).violation.expect("just found");
    let short = shrink_with(&long, &options);
    let still = run(&short, &options).violation.expect("shrinking keeps the promise broken");
    assert_eq!(still.number, found.number);
    assert!(matches!(found.number, Check::Simulation(17)), "{found}");
    let length = |story: &Story| {
        story.faults.len() + story.queries.iter().map(|query| 1 + query.items.len()).sum::<usize>()
    };
    assert!(length(&short) * 3 < length(&long), "{} of {}", length(&short), length(&long));
    let text = tell_with(&short, &options);
    assert!(
        text.contains("The files on a worker's disk") && text.contains("begins life"),
        "{text}"
    );
    assert!(text.lines().count() < 120, "{text}");
}

#[test]
fn a_fault_at_somebody_who_is_not_there_is_nothing() {
    let mut story = Story::of(3);
    let kinds = [
        FaultKind::WorkerCrash { worker: 99, moves: true },
        FaultKind::ApiHang { api: 99 },
        FaultKind::LinkCut { api: 0, worker: 99, to_worker: true, to_api: true },
    ];
    story.faults = kinds.map(|kind| Fault { at: 1_000_000_000, lasts: 1_000_000_000, kind }).into();
    let report = run(&story, &Options::default());
    assert_eq!(report.violation, None);
    assert_eq!(report.tally.faults.iter().sum::<u64>(), 0);
}
