//! Work that goes wrong: failures, the limit on attempts, work that kills workers.

use core_workcoord::coordinator::{FetchResult, QueryFailure};
use core_workcoord::message::{CancelReason, FailureCode};

use crate::support::scenario::Scenario;
use crate::support::words::{
    HasItems, Q1, Q2, W1, W2, W3, W4, lasting_failure, passing_failure, plan_with_keys,
};

#[test]
fn a_passing_failure_is_tried_again_on_another_worker() {
    let mut s = Scenario::seeded(7).workers(2).query(Q1, 1);
    let first = s.at(Q1.item(0));
    s.run(first);
    s.fail(first, passing_failure());
    let second = s.at(Q1.item(0));
    assert_eq!(second.work.attempt.0, 2);
    assert_ne!(second.worker, first.worker);
    s.accept(second);
    s.fail(second, passing_failure());
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
    assert_eq!((s.counts().failed_retryable, s.counts().reassigned), (2, 2));
}

#[test]
fn a_lasting_failure_ends_its_query_and_cancels_the_rest() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 3).query(Q2, 1);
    s.run(Q1.item(0));
    let siblings = [s.at(Q1.item(1)), s.at(Q1.item(2))];
    s.fail(Q1.item(0), lasting_failure());
    let failure = QueryFailure::WorkFailed {
        work: Q1.item(0),
        code: FailureCode::SegmentCorrupt,
        message: "segment 17 is corrupt".into(),
    };
    assert_eq!(failure.to_string(), format!("work {} failed: segment 17 is corrupt", Q1.item(0)));
    s.expect_failed(Q1, failure);
    s.expect_cancelled(&siblings, CancelReason::QueryFailed);
    assert_eq!((s.counts().failed_final, s.counts().queries_work_failed), (1, 1));
    s.confirm_cancels();
    s.expect_all_work_on(W1);
    s.expect_going_on(Q2);
}

#[test]
fn attempts_are_limited_and_the_last_one_is_told() {
    let mut s = Scenario::seeded(7).workers(2).query(Q1, 1);
    for attempt in 1..=6 {
        s.expect_going_on(Q1);
        assert_eq!(s.at(Q1.item(0)).work.attempt.0, attempt);
        s.run(Q1.item(0));
        s.fail(Q1.item(0), passing_failure());
    }
    let last = "the object store did not answer".to_owned();
    let work = Q1.item(0);
    s.expect_failed(Q1, QueryFailure::AttemptsExhausted { work, attempts: 6, last });
    assert_eq!((s.counts().assigned, s.counts().queries_exhausted), (6, 1));
}

#[test]
fn every_way_an_attempt_can_end_counts_and_is_told() {
    type Spoil = fn(&mut Scenario);
    fn fetch_ends(s: &mut Scenario, result: FetchResult) {
        s.produce(Q1.item(0));
        s.fetch_ends(Q1.item(0), result);
    }
    fn lose_artifact(s: &mut Scenario) {
        s.produce(Q1.item(0));
        s.lose_artifact(Q1.item(0));
    }
    let ways: [(Spoil, &str); 6] = [
        (|s| s.lose(W1), "its worker was lost"),
        (|s| s.drain(W1), "its worker was leaving"),
        (lose_artifact, "its artifact was gone before it was fetched"),
        (|s| fetch_ends(s, FetchResult::Gone), "its artifact was gone before it was fetched"),
        (|s| fetch_ends(s, FetchResult::Mismatch), "its artifact had wrong bytes"),
        (|s| fetch_ends(s, FetchResult::Failed), "its artifact could not be fetched"),
    ];
    for (spoil, told) in ways {
        let mut s = Scenario::with_config(7, |config| config.max_attempts = 1).workers(1);
        s.submit(plan_with_keys(Q1, [5]));
        spoil(&mut s);
        let (work, last) = (Q1.item(0), told.to_owned());
        s.expect_failed(Q1, QueryFailure::AttemptsExhausted { work, attempts: 1, last });
    }
}

#[test]
fn work_that_was_running_on_three_workers_when_they_died_is_poisonous() {
    let mut s = Scenario::seeded(7).workers(4).query(Q1, 1);
    for deaths in 1..=3 {
        s.expect_going_on(Q1);
        s.run(Q1.item(0));
        s.lose(s.at(Q1.item(0)).worker);
        assert_eq!(s.view().active_streams, 4 - deaths);
    }
    let failure = QueryFailure::Poisonous { work: Q1.item(0), workers: 3 };
    s.expect_failed(Q1, failure);
    assert_eq!(s.counts().queries_poisonous, 1);
    assert_eq!(s.view().active_streams, 1, "the fourth worker lives");
}

#[test]
fn dying_on_the_same_worker_again_and_again_is_not_poison() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    for _ in 0..5 {
        s.run(Q1.item(0));
        s.lose(W1);
        s.reconnect(W1);
    }
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
}

#[test]
fn work_that_had_not_started_is_not_suspected_of_having_killed_its_worker() {
    let mut s = Scenario::seeded(7).workers(4).query(Q1, 1);
    for _ in 0..3 {
        s.accept(Q1.item(0));
        s.lose(s.at(Q1.item(0)).worker);
    }
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
}

#[test]
fn poison_takes_its_siblings_on_the_lost_worker_along() {
    let mut s = Scenario::seeded(7).slots(4).workers(3);
    s.submit(plan_with_keys(Q1, [5; 2]));
    s.submit(plan_with_keys(Q2, [5; 2]));
    for _ in 0..3 {
        (0..2).for_each(|item| s.run(Q1.item(item)));
        s.lose(s.at(Q1.item(0)).worker);
    }
    s.expect_failed(Q1, QueryFailure::Poisonous { work: Q1.item(0), workers: 3 });
    s.expect_going_on(Q2);
    s.expect_waiting(2);
    s.join(W4);
    s.finish(Q2.item(0));
    s.finish(Q2.item(1));
    s.expect_complete(Q2);
}

#[test]
fn work_avoids_every_worker_it_failed_on_while_another_is_there() {
    let mut s = Scenario::seeded(7).workers(3).query(Q1, 1);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let at = s.at(Q1.item(0));
        seen.push(at.worker);
        s.run(at);
        s.fail(at, passing_failure());
    }
    seen.sort_unstable();
    assert_eq!(seen, [W1, W2, W3]);
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    s.expect_going_on(Q1);
}
