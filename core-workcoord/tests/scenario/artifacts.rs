//! Artifacts on their way: fetched within limits, wrong, gone, too large, lost, let go of.

use core_workcoord::artifact::Artifact;
use core_workcoord::coordinator::{Action, FetchResult, QueryFailure};
use core_workcoord::message::CancelReason;

use crate::support::scenario::Scenario;
use crate::support::verbs::At;
use crate::support::words::{HasItems, Q1, Q2, W1, W2, artifact_of, millis, plan_with_keys};

#[test]
fn a_fetched_artifact_is_acknowledged_and_delivered() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.produce(Q1.item(0));
    let news = s.news();
    let fetch = Action::Fetch {
        work: s.at(Q1.item(0)).work,
        session: s.session(W1),
        artifact: Box::new(artifact_of(W1, Q1.item(0))),
    };
    assert_eq!(news.iter().filter(|action| **action == fetch).count(), 1);
    s.pass(millis(30));
    s.fetch(Q1.item(0));
    assert_eq!(s.acknowledged_to(W1), [Q1.item(0)]);
    s.expect_delivered(Q1, &[0]);
    s.expect_complete(Q1);
    assert_eq!(s.core.times().fetch.max(), millis(30));
}

#[test]
fn a_worker_may_answer_from_an_artifact_it_still_has() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.accept(Q1.item(0));
    s.ready(Q1.item(0));
    s.fetch(Q1.item(0));
    s.expect_complete(Q1);
    assert_eq!((s.counts().accepted, s.counts().started, s.counts().ready), (1, 0, 1));
}

/// An artifact that can't be had sends its work to another worker.
#[track_caller]
fn expect_run_elsewhere(result: FetchResult) -> Scenario {
    let mut s = Scenario::seeded(7).workers(2).query(Q1, 1);
    let first = s.at(Q1.item(0));
    s.produce(first);
    s.fetch_ends(first, result);
    s.expect_cancelled(&[first], CancelReason::ArtifactUnusable);
    let second = s.at(Q1.item(0));
    assert_eq!(second.work.attempt.0, 2);
    assert_ne!(second.worker, first.worker, "the other worker is preferred");
    assert_eq!(s.counts().reassigned_artifact, 1);
    s.expect_delivered(Q1, &[]);
    s.confirm_cancels();
    s.finish(second);
    s.expect_delivered(Q1, &[0]);
    s.expect_complete(Q1);
    s
}

#[test]
fn wrong_bytes_send_the_work_to_another_worker() {
    let s = expect_run_elsewhere(FetchResult::Mismatch);
    assert_eq!(s.counts().mismatches, 1);
}

#[test]
fn an_artifact_that_is_gone_sends_the_work_to_another_worker() {
    let s = expect_run_elsewhere(FetchResult::Gone);
    assert_eq!(s.counts().artifacts_lost, 1);
}

#[test]
fn an_artifact_out_of_reach_sends_the_work_to_another_worker() {
    let s = expect_run_elsewhere(FetchResult::Failed);
    assert_eq!(s.counts().fetch_failed, 1);
}

#[test]
fn after_a_failed_fetch_work_waits_for_the_other_worker_even_while_that_is_full() {
    let mut s = Scenario::with_config(7, |config| config.worker_queue_ahead = 0).slots(1);
    s.join(W1);
    s.join(W2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(1)));
    s.submit(plan_with_keys(Q2, s.keys_of(W2).take(1)));
    s.produce(Q1.item(0));
    s.fetch_ends(Q1.item(0), FetchResult::Mismatch);
    s.expect_waiting(1);
    s.confirm_cancels();
    s.expect_waiting(1);
    assert_eq!(s.items_on(W1), 0);
    s.finish(Q2.item(0));
    s.expect_on(W2, Q1.item(0));
}

#[test]
fn after_a_failed_fetch_the_only_worker_may_try_again() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    let first = s.at(Q1.item(0));
    s.produce(first);
    s.fetch_ends(first, FetchResult::Mismatch);
    s.expect_on(W1, Q1.item(0));
    s.expect_cancelled(&[first], CancelReason::ArtifactUnusable);
    s.confirm_cancel(first);
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
}

#[test]
fn an_artifact_lost_before_its_fetch_sends_the_work_back() {
    let mut s = Scenario::with_config(7, |config| config.max_fetches = 1).workers(1).query(Q1, 2);
    s.produce(Q1.item(0));
    s.produce(Q1.item(1));
    assert_eq!(s.view().fetches_waiting, 1);
    s.lose_artifact(Q1.item(1));
    assert_eq!((s.view().fetches_waiting, s.view().fetches), (0, 1));
    assert_eq!(s.at(Q1.item(1)).work.attempt.0, 2);
    assert_eq!((s.counts().artifacts_lost, s.counts().reassigned_artifact), (1, 1));
    s.fetch(Q1.item(0));
    s.finish(Q1.item(1));
    s.expect_complete(Q1);
}

#[test]
fn work_whose_artifact_was_lost_goes_to_another_worker() {
    let mut s = Scenario::seeded(7).workers(2).query(Q1, 1);
    let first = s.at(Q1.item(0));
    s.produce(first);
    s.lose_artifact(first);
    let second = s.at(Q1.item(0));
    assert_ne!(second.worker, first.worker, "the same worker would lose it again");
    s.finish(second);
    s.expect_complete(Q1);
}

#[test]
fn an_artifact_lost_during_its_fetch_ends_the_fetch_and_sends_the_work_back() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    let first = s.at(Q1.item(0));
    s.produce(first);
    s.news();
    s.lose_artifact(first);
    let abandon = Action::AbandonFetch { work: first.work, session: first.session };
    assert!(s.news().contains(&abandon));
    s.expect_all_late(|s| s.fetch_ends(first, FetchResult::Verified), 1);
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
}

#[test]
fn the_end_of_a_fetch_that_was_not_asked_for_is_late() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    let at = s.at(Q1.item(0));
    s.expect_all_late(|s| s.fetch_ends(at, FetchResult::Verified), 1);
    s.run(at);
    s.expect_all_late(|s| s.fetch_ends(at, FetchResult::Gone), 1);
    s.complete(at);
    s.expect_complete(Q1);
}

#[test]
fn an_artifact_that_is_too_large_fails_its_query() {
    let mut s = Scenario::with_config(7, |config| config.max_artifact_bytes = 5_000).workers(1);
    s.submit(plan_with_keys(Q1, [1, 2]));
    s.run(Q1.item(0));
    let all = [s.at(Q1.item(0)), s.at(Q1.item(1))];
    let artifact = Artifact { size_bytes: 5_001, ..artifact_of(W1, Q1.item(0)) };
    s.ready_with(Q1.item(0), artifact);
    let failure =
        QueryFailure::ArtifactTooLarge { work: Q1.item(0), size_bytes: 5_001, limit_bytes: 5_000 };
    assert!(failure.to_string().ends_with("has 5001 bytes; 5000 are allowed"));
    s.expect_failed(Q1, failure);
    s.expect_cancelled(&all, CancelReason::QueryFailed);
    assert_eq!((s.view().fetches, s.counts().queries_too_large), (0, 1));
}

#[test]
fn fetches_are_limited_in_number() {
    let mut s = Scenario::with_config(7, |config| config.max_fetches = 2).slots(4).workers(1);
    s.submit(plan_with_keys(Q1, 0..4));
    (0..4).rev().for_each(|item| s.produce(Q1.item(item)));
    let under_way = |s: &Scenario| (s.view().fetches, s.view().fetches_waiting);
    assert_eq!(under_way(&s), (2, 2));
    s.pass(millis(20));
    s.fetch(Q1.item(3));
    s.fetch(Q1.item(2));
    assert_eq!(under_way(&s), (2, 0), "first ready, first fetched");
    s.fetch(Q1.item(1));
    s.fetch(Q1.item(0));
    s.expect_delivered(Q1, &[0, 1, 2, 3]);
    assert_eq!(s.core.times().ready_to_fetch.max(), millis(20));
}

#[test]
fn fetches_are_limited_in_bytes_but_one_may_always_go() {
    let mut s =
        Scenario::with_config(7, |config| config.max_fetch_bytes = 2_500).slots(4).workers(1);
    s.submit(plan_with_keys(Q1, 0..4));
    let large = Artifact { size_bytes: 9_000, ..artifact_of(W1, Q1.item(0)) };
    s.run(Q1.item(0));
    s.ready_with(Q1.item(0), large);
    (1..4).for_each(|item| s.produce(Q1.item(item)));
    assert_eq!((s.view().fetches, s.view().fetch_bytes), (1, 9_000), "however large");
    s.fetch(Q1.item(0));
    assert_eq!((s.view().fetches, s.view().fetch_bytes), (2, 2_000));
    s.fetch(Q1.item(1));
    assert_eq!((s.view().fetches, s.view().fetches_waiting), (2, 0));
}

#[test]
fn the_end_of_a_query_ends_its_fetches_and_makes_room_for_others() {
    let mut s = Scenario::with_config(7, |config| config.max_fetches = 1).workers(1);
    s.submit(plan_with_keys(Q1, [1]));
    s.submit(plan_with_keys(Q2, [2]));
    s.produce(Q1.item(0));
    s.produce(Q2.item(0));
    let first: At = s.at(Q1.item(0));
    s.news();
    s.cancel(Q1);
    let news = s.news();
    assert!(news.iter().any(|action| matches!(action, Action::AbandonFetch { .. })));
    assert!(news.iter().any(|action| matches!(action, Action::Fetch { .. })), "the next one goes");
    s.expect_cancelled(&[first], CancelReason::ClientGone);
    s.fetch(Q2.item(0));
    s.expect_complete(Q2);
}

#[test]
fn results_are_delivered_in_order_whatever_order_they_come_in() {
    let mut s = Scenario::seeded(7).slots(4).workers(1).query(Q1, 4);
    s.finish(Q1.item(3));
    s.finish(Q1.item(1));
    s.expect_delivered(Q1, &[]);
    s.finish(Q1.item(0));
    s.expect_delivered(Q1, &[0, 1]);
    s.finish(Q1.item(2));
    s.expect_delivered(Q1, &[0, 1, 2, 3]);
    s.expect_complete(Q1);
}
