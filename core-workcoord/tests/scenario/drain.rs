//! Workers that leave: draining, out of discovery, named again.

use core_workcoord::coordinator::CloseReason;
use core_workcoord::message::CancelReason;
use core_workcoord::roster::Standing;

use crate::support::scenario::Scenario;
use crate::support::words::{HasItems, Q1, Q2, W1, W2, accepting, plan_with_keys, seconds};

/// Two workers with all of a query's four items on the first: one ready, one running, one accepted,
/// one just assigned.
fn four_items_on_w1() -> Scenario {
    let mut s = Scenario::seeded(7).slots(4).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(4)));
    s.expect_all_work_on(W1);
    s.produce(Q1.item(0));
    s.run(Q1.item(1));
    s.accept(Q1.item(2));
    s
}

#[test]
fn a_draining_worker_gives_unstarted_work_back_and_finishes_the_rest() {
    let mut s = four_items_on_w1();
    let unstarted = [s.at(Q1.item(2)), s.at(Q1.item(3))];
    s.drain(W1);
    s.expect_standing(W1, Standing::Draining);
    s.expect_cancelled(&unstarted, CancelReason::Draining);
    assert_eq!(s.counts().reassigned_drained, 2);
    for item in [2, 3] {
        s.expect_on(W2, Q1.item(item));
        assert_eq!(s.at(Q1.item(item)).work.attempt.0, 2);
    }
    s.expect_on(W1, Q1.item(0));
    s.expect_on(W1, Q1.item(1));
    s.confirm_cancels();
    s.ready(Q1.item(1));
    (0..2).for_each(|item| s.fetch(Q1.item(item)));
    (2..4).for_each(|item| s.finish(Q1.item(item)));
    s.expect_complete(Q1);
}

#[test]
fn a_draining_worker_gets_nothing_new() {
    let mut s = Scenario::seeded(7).workers(2);
    s.drain(W1);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(3)));
    s.expect_all_work_on(W2);
}

#[test]
fn work_drained_with_nobody_else_there_waits() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.drain(W1);
    s.expect_waiting(1);
    s.confirm_cancels();
    s.join(W2);
    s.expect_all_work_on(W2);
}

#[test]
fn what_a_drained_worker_still_says_of_the_cancelled_attempts_is_late() {
    let mut s = four_items_on_w1();
    let old = s.at(Q1.item(2));
    s.drain(W1);
    s.expect_all_late(|s| s.start(old), 1);
    s.news();
    s.ready(old);
    assert_eq!(s.acknowledged_to(W1), [], "the cancellation removes it");
    assert_eq!(s.counts().duplicates, 1);
    s.confirm_cancel(old);
    s.expect_no_stream_closed();
}

#[test]
fn a_worker_that_leaves_discovery_while_draining_keeps_its_stream_until_its_work_is_fetched() {
    let mut s = four_items_on_w1();
    s.drain(W1);
    s.undiscover(W1);
    s.expect_no_stream_closed();
    s.confirm_cancels();
    s.ready(Q1.item(1));
    s.fetch(Q1.item(0));
    s.expect_no_stream_closed();
    s.news();
    s.fetch(Q1.item(1));
    assert_eq!(s.acknowledged_to(W1), [Q1.item(1)], "acknowledged before it is closed");
    s.expect_closed(W1, CloseReason::Retired);
    s.pass(seconds(9));
    assert_eq!(s.counts().dials, 2, "nobody dials it again");
    assert_eq!(s.view().workers.len(), 1);
}

#[test]
fn a_stream_is_not_retired_while_a_cancellation_is_unconfirmed() {
    let mut s = four_items_on_w1();
    let cancelled = s.at(Q1.item(3));
    s.drain(W1);
    s.confirm_cancel(s.attempt(Q1.item(2), 1));
    s.undiscover(W1);
    s.ready(Q1.item(1));
    s.fetch(Q1.item(0));
    s.fetch(Q1.item(1));
    s.expect_no_stream_closed();
    s.confirm_cancel(cancelled);
    s.expect_closed(W1, CloseReason::Retired);
}

#[test]
fn an_idle_worker_that_leaves_discovery_is_let_go_at_once() {
    let mut s = Scenario::seeded(7).workers(1);
    s.undiscover(W1);
    s.expect_closed(W1, CloseReason::Retired);
    assert_eq!(s.view().workers, []);
}

#[test]
fn a_worker_that_leaves_discovery_without_draining_gets_nothing_new_and_keeps_what_it_has() {
    let mut s = four_items_on_w1();
    s.undiscover(W1);
    s.expect_standing(W1, Standing::NotAccepting);
    s.submit(plan_with_keys(Q2, s.keys_of(W1).take(1)));
    s.expect_on(W2, Q2.item(0));
    assert_eq!(s.items_on(W1), 4);
    s.fetch(Q1.item(0));
    s.complete(Q1.item(1));
    s.start(Q1.item(2));
    s.complete(Q1.item(2));
    s.expect_no_stream_closed();
    s.finish(Q1.item(3));
    s.expect_closed(W1, CloseReason::Retired);
    s.expect_complete(Q1);
}

#[test]
fn a_worker_that_is_lost_after_it_left_discovery_is_forgotten() {
    let mut s = four_items_on_w1();
    s.undiscover(W1);
    s.lose(W1);
    s.expect_all_work_on(W2);
    s.pass(seconds(9));
    assert_eq!((s.counts().dials, s.view().workers.len()), (2, 1));
}

#[test]
fn a_worker_that_is_named_again_is_back_in_rotation() {
    let mut s = four_items_on_w1();
    s.undiscover(W1);
    s.discover(W1);
    assert_eq!(s.counts().dials, 2, "its stream is still up");
    s.expect_standing(W1, Standing::Accepting);
    s.finish(Q1.item(3));
    s.submit(plan_with_keys(Q2, s.keys_of(W1).take(1)));
    s.expect_on(W1, Q2.item(0));
    s.cancel(Q1);
    s.cancel(Q2);
    s.confirm_cancels();
    s.expect_no_stream_closed();
}

#[test]
fn a_worker_that_stops_draining_takes_work_again() {
    let mut s = Scenario::seeded(7).workers(1);
    s.drain(W1);
    s.submit(plan_with_keys(Q1, [1]));
    s.expect_waiting(1);
    s.report(W1, accepting(2));
    s.expect_all_work_on(W1);
}
