//! Who gets which work, and when: affinity, bounded load, rejections, fair turns, windows.

use core_workcoord::coordinator::Submission;
use core_workcoord::id::QueryId;
use core_workcoord::message::WorkerStatus;

use crate::support::scenario::Scenario;
use crate::support::words::{
    HasItems, Q1, Q2, Q3, W, W1, W2, W3, accepting, passing_failure, plan, plan_with_keys, seconds,
    tenant,
};

/// Workers that hold nothing beyond their slots.
fn without_queue_ahead() -> Scenario {
    Scenario::with_config(7, |config| config.worker_queue_ahead = 0)
}

/// One worker with one slot: work goes out one item at a time, in the order of the turns.
fn one_at_a_time() -> Scenario {
    without_queue_ahead().slots(1).workers(1)
}

/// Finishes what is on its way, one item after the other, and gives the order of the items.
#[track_caller]
fn order_of(s: &mut Scenario, items: usize) -> Vec<(u128, u32)> {
    let mut order = Vec::new();
    while order.len() < items {
        let [(work, _)] = s.newly_assigned()[..] else { panic!("one item at a time: {order:?}") };
        order.push((work.query.0, work.item));
        s.finish(work);
    }
    order
}

#[test]
fn a_key_meets_its_own_worker_while_that_has_a_slot() {
    let mut s = Scenario::seeded(7).workers(3);
    for (query, worker) in [(Q1, W1), (Q2, W2), (Q3, W3)] {
        s.submit(plan_with_keys(query, s.keys_of(worker).take(2)));
        s.expect_on(worker, query.item(0));
        s.expect_on(worker, query.item(1));
    }
    assert_eq!((s.counts().assigned, s.counts().first_choice), (6, 6));
}

#[test]
fn a_hot_key_spills_to_its_next_candidates() {
    let mut s = without_queue_ahead().workers(3);
    let hot = s.keys_of(W2).next().expect("there are many keys");
    s.submit(plan_with_keys(Q1, [hot; 6]));
    let order: Vec<W> = s.newly_assigned().into_iter().map(|(_, worker)| worker).collect();
    assert_eq!(order[..2], [W2, W2], "its own worker first");
    assert_eq!(order[2], order[3], "then the next candidate");
    assert_eq!(order[4], order[5], "then the last one");
    assert!([W1, W2, W3].iter().all(|worker| s.items_on(*worker) == 2));
    assert_eq!(s.counts().first_choice, 2);
}

#[test]
fn a_free_slot_elsewhere_is_better_than_a_queue_at_home() {
    let mut s = Scenario::seeded(7).slots(1).workers(2);
    let hot = s.keys_of(W1).next().expect("there are many keys");
    s.submit(plan_with_keys(Q1, [hot; 4]));
    let order: Vec<W> = s.newly_assigned().into_iter().map(|(_, worker)| worker).collect();
    assert_eq!(order, [W1, W2, W1, W1], "slots first, then the queue at home");
}

#[test]
fn a_worker_gets_no_more_than_its_slots_and_its_queue_ahead() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 9);
    assert_eq!(s.items_on(W1), 4, "two slots and two ahead");
    s.expect_waiting(5);
    s.produce(Q1.item(0));
    assert_eq!(s.items_on(W1), 5, "an artifact takes no slot");
    s.report(W1, accepting(4));
    assert_eq!(s.items_on(W1), 7, "it says that it has more slots");
    s.expect_waiting(2);
    s.report(W1, accepting(0));
    s.produce(Q1.item(1));
    s.produce(Q1.item(2));
    assert_eq!(s.items_on(W1), 7, "it says that it has none");
}

#[test]
fn a_worker_that_boasts_of_its_slots_is_not_believed_beyond_the_limit() {
    let mut s = Scenario::with_config(7, |config| {
        config.max_worker_slots = 3;
        config.worker_queue_ahead = 1;
    });
    s.join(W1);
    s.report(W1, accepting(u32::MAX));
    s.submit(plan(Q1, 9));
    assert_eq!(s.items_on(W1), 4);
}

#[test]
fn a_rejection_costs_no_attempt() {
    let mut s = Scenario::with_config(7, |config| config.max_attempts = 1).workers(3).query(Q1, 1);
    for _ in 0..2 {
        let at = s.at(Q1.item(0));
        assert_eq!(at.work.attempt.0, 1);
        s.reject(at);
        assert_ne!(s.at(Q1.item(0)).worker, at.worker, "another one is asked");
    }
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
    assert_eq!((s.counts().rejected, s.counts().reassigned), (2, 0));
}

#[test]
fn a_worker_that_refused_is_not_asked_again_until_it_has_spoken_of_itself() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.reject(Q1.item(0));
    s.expect_waiting(1);
    assert!(s.view_of(W1).held);
    s.submit(plan(Q2, 1));
    s.pass(seconds(5));
    s.expect_waiting(2);
    assert_eq!(s.counts().assigned, 1, "heartbeats say nothing of its room");
    s.report(W1, accepting(2));
    s.expect_all_work_on(W1);
    assert!(!s.view_of(W1).held);
}

#[test]
fn two_full_workers_never_play_ping_pong() {
    let mut s = Scenario::seeded(7).workers(2).query(Q1, 1);
    s.reject(Q1.item(0));
    s.reject(Q1.item(0));
    s.expect_waiting(1);
    s.pass(seconds(5));
    assert_eq!(s.counts().assigned, 2, "each was asked once");
    s.report(W2, accepting(2));
    s.expect_all_work_on(W2);
    s.reject(Q1.item(0));
    s.pass(seconds(5));
    assert_eq!(s.counts().assigned, 3, "and is asked once for every word of its own");
}

#[test]
fn what_was_given_back_goes_out_before_what_never_went() {
    let mut s = one_at_a_time().query(Q1, 3);
    s.reject(Q1.item(0));
    s.report(W1, accepting(1));
    s.newly_assigned();
    s.expect_on(W1, Q1.item(0));
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    assert_eq!(order_of(&mut s, 3), [(1, 0), (1, 1), (1, 2)]);
}

#[test]
fn what_was_given_back_together_goes_out_in_time_order() {
    let mut s = without_queue_ahead().slots(4).workers(1).query(Q1, 5);
    s.slots = 1;
    s.lose(W1);
    s.expect_waiting(5);
    s.newly_assigned();
    s.join(W2);
    assert_eq!(order_of(&mut s, 5), [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
}

#[test]
fn items_of_a_query_go_out_in_time_order() {
    let mut s = one_at_a_time().query(Q1, 5);
    assert_eq!(order_of(&mut s, 5), [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
}

#[test]
fn queries_of_a_tenant_take_turns() {
    let mut s = one_at_a_time().query(Q1, 3).query(Q2, 3);
    let order = order_of(&mut s, 6);
    assert_eq!(order, [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
}

#[test]
fn tenants_share_whatever_number_of_queries_each_has() {
    let mut s = one_at_a_time().query(Q1, 3).query(Q2, 3);
    s.submit(Submission { tenant: tenant("small"), ..plan(Q3, 4) });
    let order = order_of(&mut s, 8);
    let small = order.iter().filter(|(query, _)| *query == Q3.0).count();
    assert_eq!(small, 4, "half of the turns: {order:?}");
    let big: Vec<_> = order.iter().filter(|(query, _)| *query != Q3.0).collect();
    assert_eq!(big, [&(1, 0), &(2, 0), &(1, 1), &(2, 1)], "and turns within the other");
}

#[test]
fn a_stream_of_small_queries_does_not_starve_a_long_one() {
    let mut s = one_at_a_time().query(Q1, 10);
    let mut order = Vec::new();
    for round in 0..10 {
        s.submit(plan(QueryId(100 + round), 1));
        order.extend(order_of(&mut s, 1));
    }
    let long = order.iter().filter(|(query, _)| *query == Q1.0).count();
    // One of two at first, and fewer as more of the small ones wait to be served as well.
    assert!(long >= 3, "the long query had {long} of 10 turns: {order:?}");
}

#[test]
fn a_query_has_no_more_on_its_way_than_its_window() {
    let mut s = Scenario::seeded(7).workers(3);
    s.submit(Submission { window: 2, ..plan(Q1, 6) });
    assert_eq!((s.view().running, s.view().queued), (2, 4));
    s.finish(Q1.item(1));
    assert_eq!(s.view().running, 1, "the window begins at the first item still needed");
    s.finish(Q1.item(0));
    s.expect_delivered(Q1, &[0, 1]);
    assert_eq!(s.view().running, 0, "delivered is not consumed");
    s.consume(Q1, 1);
    assert_eq!(s.view().running, 1);
    s.consume(Q1, 1);
    s.consume(Q1, 0);
    assert_eq!(s.view().running, 1, "to consume twice is to consume once");
    s.consume(Q1, u32::MAX);
    assert_eq!(s.view().running, 2, "nobody can consume what was not delivered");
    s.expect_on(s.at(Q1.item(3)).worker, Q1.item(3));
}

#[test]
fn a_window_is_clipped_to_the_limit_and_is_never_zero() {
    let mut s = Scenario::with_config(7, |config| config.query_window = 3).workers(3);
    s.submit(Submission { window: 100, ..plan(Q1, 6) });
    s.submit(Submission { window: 0, ..plan(Q2, 6) });
    let running: Vec<u32> = s.view().queries.iter().map(|query| query.running).collect();
    assert_eq!(running, [3, 1]);
}

#[test]
fn what_is_given_back_within_the_window_goes_out_again() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(Submission { window: 2, ..plan(Q1, 6) });
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    assert_eq!(s.at(Q1.item(0)).work.attempt.0, 2);
    assert_eq!(s.view().running, 2);
}

#[test]
fn a_worker_that_takes_no_work_is_out_of_rotation_at_once() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.expect_all_work_on(W1);
    let closed = WorkerStatus { accepting_work: false, ..accepting(2) };
    s.report(W1, closed);
    s.submit(plan_with_keys(Q2, s.keys_of(W1).take(2)));
    s.expect_on(W2, Q2.item(0));
    s.expect_on(W2, Q2.item(1));
    assert_eq!(s.items_on(W1), 2, "what it has it keeps");
    s.finish(Q1.item(0));
    s.report(W1, accepting(2));
    s.submit(plan_with_keys(Q3, s.keys_of(W1).take(1)));
    s.expect_on(W1, Q3.item(0));
}

#[test]
fn work_that_failed_on_the_only_free_worker_waits_for_the_other() {
    let mut s = without_queue_ahead().slots(1).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(1)));
    s.submit(plan_with_keys(Q2, s.keys_of(W2).take(1)));
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    s.expect_waiting(1);
    assert_eq!(s.items_on(W1), 0, "it failed there, and the other one will have room");
    s.finish(Q2.item(0));
    s.expect_on(W2, Q1.item(0));
}

#[test]
fn work_that_failed_on_the_only_worker_is_tried_there_again() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    s.expect_on(W1, Q1.item(0));
    assert_eq!(s.at(Q1.item(0)).work.attempt.0, 2);
}

#[test]
fn work_that_waits_for_another_worker_is_content_with_the_old_one_when_the_other_leaves() {
    let mut s = without_queue_ahead().slots(1).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(1)));
    s.submit(plan_with_keys(Q2, s.keys_of(W2).take(1)));
    s.run(Q1.item(0));
    s.run(Q2.item(0));
    s.fail(Q1.item(0), passing_failure());
    s.expect_waiting(1);
    s.drain(W2);
    s.expect_on(W1, Q1.item(0));
}

#[test]
fn work_aside_does_not_keep_its_query_from_giving_out_more() {
    let mut s = without_queue_ahead().slots(1).workers(2);
    let keys: Vec<u64> = s.keys_of(W1).take(3).collect();
    s.submit(plan_with_keys(Q1, keys));
    s.expect_on(W1, Q1.item(0));
    s.expect_on(W2, Q1.item(1));
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    s.expect_on(W1, Q1.item(2));
    s.expect_waiting(1);
    s.finish(Q1.item(1));
    s.expect_on(W2, Q1.item(0));
}

#[test]
fn work_aside_is_found_behind_many_others_that_can_not_go_yet() {
    // Forty items failed on both free workers and wait for the third, which is busy for long. One
    // more failed on the first only: the second is free, and it must not wait with the others.
    let mut s = Scenario::with_config(7, |config| config.worker_queue_ahead = 0).slots(41);
    s.join(W1);
    s.submit(plan(Q1, 41));
    s.join(W2);
    (0..41).for_each(|item| s.run(Q1.item(item)));
    (0..40).for_each(|item| s.fail(Q1.item(item), passing_failure()));
    s.join(W3);
    s.submit(plan_with_keys(Q2, s.keys_of(W3).take(41)));
    assert_eq!(s.items_on(W3), 41, "the third worker is full");
    (0..41).for_each(|item| s.run(Q2.item(item)));
    (0..40).for_each(|item| {
        s.expect_on(W2, Q1.item(item));
        s.run(Q1.item(item));
    });
    // The second worker takes no more for a moment, while the last item fails on the first.
    s.submit(plan_with_keys(QueryId(9), s.keys_of(W2).take(1)));
    s.expect_on(W2, QueryId(9).item(0));
    s.fail(Q1.item(40), passing_failure());
    s.expect_waiting(1);
    let full = WorkerStatus { slots: 0, ..accepting(0) };
    s.report(W2, full);
    (0..40).for_each(|item| s.fail(Q1.item(item), passing_failure()));
    s.expect_waiting(41);
    s.report(W2, accepting(41));
    s.pass(seconds(5));
    s.expect_on(W2, Q1.item(40));
}
