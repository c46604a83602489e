//! Stragglers: a second attempt elsewhere, the first completion wins, the budget that limits it.

use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{CloseReason, FetchResult, Submission};
use core_workcoord::message::CancelReason;

use crate::support::scenario::Scenario;
use crate::support::verbs::At;
use crate::support::words::{
    HasItems, Q1, Q2, W, W1, W2, W3, artifact_of, millis, passing_failure, plan, plan_with_keys,
    seconds,
};

/// Two workers and a query of two items, of which the second one straggles: the first took 20 ms,
/// so patience ends 60 ms after the assignment.
fn a_straggler() -> Scenario {
    a_straggler_with(|_| {})
}

fn a_straggler_with(turn: impl FnOnce(&mut CoordinatorConfig)) -> Scenario {
    let mut s = Scenario::with_config(7, turn).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.run(Q1.item(1));
    s.produce(Q1.item(0));
    s.pass(millis(20));
    s.fetch(Q1.item(0));
    s
}

/// The same, hedged: the attempts on the slow worker and on the other one.
fn a_hedged_straggler() -> (Scenario, At, At) {
    let mut s = a_straggler();
    let lead = s.at(Q1.item(1));
    s.pass(millis(40));
    let hedge = s.at(Q1.item(1));
    assert_eq!((lead.worker, hedge.worker), (W1, W2));
    assert_eq!((lead.work.attempt.0, hedge.work.attempt.0), (1, 2));
    assert_eq!(s.counts().hedged, 1);
    (s, lead, hedge)
}

#[test]
fn a_straggler_gets_a_second_attempt_when_patience_ends() {
    let mut s = a_straggler();
    s.pass(millis(39));
    assert_eq!(s.counts().hedged, 0, "three times the 20 ms of its sibling are not over");
    s.pass(millis(1));
    assert_eq!(s.counts().hedged, 1);
    s.expect_on(W2, Q1.item(1));
    s.pass(seconds(5));
    assert_eq!(s.counts().hedged, 1, "two attempts at once are enough");
}

#[test]
fn the_second_attempt_wins_when_it_is_first_and_the_straggler_is_cancelled() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.finish(hedge);
    s.expect_delivered(Q1, &[0, 1]);
    s.expect_complete(Q1);
    s.expect_cancelled(&[lead], CancelReason::Superseded);
    assert_eq!(s.counts().hedges_won, 1);
    s.confirm_cancel(lead);
    assert_eq!(s.items_on(W1), 0);
}

#[test]
fn the_straggler_wins_when_it_is_first_after_all_and_the_second_attempt_is_cancelled() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.run(hedge);
    s.complete(lead);
    s.expect_complete(Q1);
    s.expect_cancelled(&[hedge], CancelReason::Superseded);
    assert_eq!(s.counts().hedges_won, 0);
}

#[test]
fn a_completion_that_comes_second_is_counted_once_and_never_delivered() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.submit(plan(Q2, 1));
    s.finish(hedge);
    s.news();
    s.ready(lead);
    s.expect_delivered(Q1, &[0, 1]);
    assert_eq!((s.counts().duplicates, s.counts().diverged), (1, 0));
    assert_eq!(s.acknowledged_to(W1), [], "the cancellation that is on its way removes it");
    s.confirm_cancel(lead);
    s.expect_no_stream_closed();
}

#[test]
fn completions_that_differ_are_noticed_while_the_query_runs() {
    let mut s = Scenario::seeded(7).workers(2);
    let keys: Vec<u64> = s.keys_of(W1).take(2).chain(s.keys_of(W2).take(1)).collect();
    s.submit(plan_with_keys(Q1, keys));
    let straggler = s.at(Q1.item(1));
    s.run(straggler);
    s.run(Q1.item(2));
    s.finish(Q1.item(0));
    s.pass(millis(50));
    s.finish(Q1.item(1));
    let mut other = artifact_of(W1, Q1.item(1));
    other.checksum.0[31] ^= 1;
    s.ready_with(straggler, other);
    assert_eq!((s.counts().duplicates, s.counts().diverged), (1, 1));
    s.expect_going_on(Q1);
}

#[test]
fn the_second_attempt_goes_on_when_the_stragglers_worker_is_lost() {
    let (mut s, _, hedge) = a_hedged_straggler();
    s.accept(hedge);
    s.lose(W1);
    s.expect_all_work_on(W2);
    assert_eq!(s.counts().assigned, 3, "no third attempt");
    s.start(hedge);
    s.complete(hedge);
    s.expect_complete(Q1);
}

#[test]
fn the_straggler_goes_on_when_the_second_attempt_is_lost() {
    let (mut s, lead, _) = a_hedged_straggler();
    s.lose(W2);
    s.expect_all_work_on(W1);
    s.complete(lead);
    s.expect_complete(Q1);
}

#[test]
fn the_straggler_goes_on_when_the_second_attempt_fails_or_is_refused() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.reject(hedge);
    s.expect_all_work_on(W1);
    s.complete(lead);
    s.expect_complete(Q1);

    let (mut s, lead, hedge) = a_hedged_straggler();
    s.run(hedge);
    s.fail(hedge, passing_failure());
    s.expect_all_work_on(W1);
    s.fail(lead, passing_failure());
    assert_eq!(s.at(Q1.item(1)).work.attempt.0, 3, "both came to nothing");
}

#[test]
fn the_second_attempt_leads_when_the_straggler_is_drained_or_refused() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.produce(Q1.item(0));
    s.pass(millis(20));
    s.fetch(Q1.item(0));
    let lead = s.at(Q1.item(1));
    s.pass(millis(40));
    let hedge = s.at(Q1.item(1));
    assert_eq!(hedge.worker, W2, "an answer that does not come makes a straggler, too");
    s.reject(lead);
    s.expect_all_work_on(W2);
    assert_eq!(s.counts().assigned, 3, "no third attempt");
    s.drain(W2);
    s.expect_cancelled(&[hedge], CancelReason::Draining);
    s.expect_waiting(1);
}

#[test]
fn of_two_finished_attempts_one_is_fetched_and_the_other_kept_in_case() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.produce(hedge);
    s.ready(lead);
    assert_eq!((s.view().fetches, s.view().fetches_waiting), (1, 0));
    s.fetch_ends(hedge, FetchResult::Mismatch);
    s.expect_cancelled(&[hedge], CancelReason::ArtifactUnusable);
    assert_eq!(s.view().fetches, 1, "the other one is fetched at once");
    s.fetch(lead);
    s.expect_delivered(Q1, &[0, 1]);
    s.expect_complete(Q1);
    assert_eq!(s.counts().assigned, 3, "no third attempt");
}

#[test]
fn a_kept_artifact_whose_worker_is_lost_leaves_the_other_alone() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.produce(hedge);
    s.ready(lead);
    s.lose(W1);
    assert_eq!(s.view().fetches, 1);
    s.fetch(hedge);
    s.expect_complete(Q1);
}

#[test]
fn both_attempts_are_cancelled_with_their_query() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.cancel(Q1);
    s.expect_cancelled(&[lead, hedge], CancelReason::ClientGone);
}

#[test]
fn both_workers_lost_send_the_work_back_once() {
    let (mut s, lead, hedge) = a_hedged_straggler();
    s.run(hedge);
    s.lose(lead.worker);
    s.lose(hedge.worker);
    s.expect_waiting(1);
    s.join(W3);
    s.finish(Q1.item(1));
    s.expect_complete(Q1);
}

#[test]
fn no_straggler_is_hedged_on_its_own_worker() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 2);
    s.run(Q1.item(1));
    s.finish(Q1.item(0));
    s.pass(seconds(2));
    assert_eq!(s.counts().hedged, 0, "nobody else is there");
    s.join(W2);
    s.pass(seconds(1));
    s.expect_on(W2, Q1.item(1));
    assert_eq!(s.counts().hedged, 1, "somebody is there: the clock looks again");
}

#[test]
fn a_full_worker_gets_no_second_attempt() {
    let mut s =
        Scenario::with_config(7, |config| config.worker_queue_ahead = 0).slots(2).workers(2);
    s.submit(plan_with_keys(Q2, s.keys_of(W2).take(2)));
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    (0..2).for_each(|item| s.run(Q2.item(item)));
    s.run(Q1.item(1));
    s.finish(Q1.item(0));
    s.pass(seconds(1));
    assert_eq!(s.counts().hedged, 0);
    s.complete(Q2.item(0));
    s.pass(seconds(1));
    s.expect_on(W2, Q1.item(1));
}

#[test]
fn nothing_is_hedged_while_other_work_of_the_query_waits_or_too_little_is_done() {
    let mut s =
        Scenario::with_config(7, |config| config.worker_queue_ahead = 0).slots(2).workers(1);
    s.join(W2);
    s.submit(plan(Q1, 6));
    let slow: Vec<_> = (0..4).map(|item| s.at(Q1.item(item))).collect();
    slow.iter().for_each(|at| s.run(*at));
    s.pass(seconds(2));
    assert_eq!(s.counts().hedged, 0, "two items wait");
    s.complete(slow[0]);
    s.complete(slow[1]);
    [4, 5].into_iter().for_each(|item| s.run(Q1.item(item)));
    s.pass(seconds(20));
    assert_eq!(s.counts().hedged, 0, "two of six tell too little");
}

#[test]
fn nothing_is_hedged_before_the_floor() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.run(Q1.item(1));
    s.finish(Q1.item(0));
    s.pass(millis(49));
    assert_eq!(s.counts().hedged, 0, "its sibling took no time at all");
    s.pass(millis(1));
    assert_eq!(s.counts().hedged, 1);
}

#[test]
fn hedges_are_a_share_of_finished_work() {
    let mut s = a_straggler_with(|config| config.hedge_budget_per_mille = 100);
    let straggle = |s: &mut Scenario, query: u128| -> bool {
        let query = core_workcoord::id::QueryId(query);
        let before = s.counts().hedged;
        s.submit(plan_with_keys(query, s.keys_of(W1).take(2)));
        s.run(query.item(1));
        s.finish(query.item(0));
        s.pass(millis(300));
        let hedged = s.counts().hedged > before;
        s.cancel(query);
        s.confirm_cancels();
        hedged
    };
    s.cancel(Q1);
    s.confirm_cancels();
    assert!(straggle(&mut s, 10), "one is paid in advance");
    assert!(!straggle(&mut s, 11), "the next one must be earned");
    let rounds = (12..40).take_while(|query| !straggle(&mut s, *query)).count();
    assert!((6..=9).contains(&rounds), "ten finished items pay for one hedge: {rounds}");
}

#[test]
fn no_share_means_no_hedge() {
    let mut s = a_straggler_with(|config| config.hedge_budget_per_mille = 0);
    s.pass(seconds(5));
    assert_eq!(s.counts().hedged, 0);
}

#[test]
fn the_last_attempt_is_not_spent_on_a_hedge() {
    let mut s = a_straggler_with(|config| config.max_attempts = 1);
    s.pass(seconds(5));
    assert_eq!(s.counts().hedged, 0);
    s.complete(Q1.item(1));
    s.expect_complete(Q1);
}

#[test]
fn a_second_attempt_that_is_not_answered_costs_its_stream_and_nothing_else() {
    let (mut s, lead, _) = a_hedged_straggler();
    s.pass(seconds(11));
    s.expect_closed(W2, CloseReason::Unanswered);
    s.expect_all_work_on(W1);
    s.complete(lead);
    s.expect_complete(Q1);
}

#[test]
fn several_stragglers_are_hedged_while_the_budget_lasts() {
    let mut s = Scenario::with_config(7, |config| config.hedge_budget_per_mille = 1_000).slots(8);
    s.join(W1);
    s.submit(plan(Q1, 4));
    (2..4).for_each(|item| s.run(Q1.item(item)));
    (0..2).for_each(|item| s.finish(Q1.item(item)));
    s.join(W2);
    s.pass(millis(50));
    assert_eq!(s.counts().hedged, 2);
    let workers: Vec<W> = (2..4).map(|item| s.at(Q1.item(item)).worker).collect();
    assert_eq!(workers, [W2, W2]);
}

#[test]
fn a_straggler_that_holds_up_a_full_window_is_hedged() {
    // Items one to three are done and can't be delivered before item zero; the window lets nothing
    // else go out. The query waits for nothing but the straggler, although two items are queued.
    let mut s = Scenario::seeded(7).slots(4).workers(2);
    s.submit(Submission { window: 4, ..plan_with_keys(Q1, s.keys_of(W1).take(6)) });
    s.run(Q1.item(0));
    (1..4).for_each(|item| s.finish(Q1.item(item)));
    assert_eq!((s.view().running, s.view().queued), (1, 2));
    s.pass(seconds(5));
    assert_eq!(s.counts().hedged, 1, "the query stands still until its deadline otherwise");
    s.expect_on(W2, Q1.item(0));
}
