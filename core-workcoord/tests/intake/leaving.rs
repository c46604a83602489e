//! Leaving: no new work, what runs is finished and fetched, then the process may end.

use core_workcoord::intake::{DiskReport, Input};

use crate::support::words::{HasItems, Q1, millis, seconds};
use crate::support::workshop::{S1, S2, S3, Workshop};

#[test]
fn an_idle_worker_leaves_at_once() {
    let mut w = Workshop::open().apis(2);
    w.tell(Input::Drain);
    let expected = [
        "s1 draining, 0 queued, 0 running",
        "s2 draining, 0 queued, 0 running",
        "close s1 Drained",
        "close s2 Drained",
        "exit clean",
    ];
    w.expect(&expected);
}

#[test]
fn a_draining_worker_finishes_what_runs_and_waits_until_it_is_fetched() {
    let mut w = Workshop::open().apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    w.finish(S1, Q1.item(0));
    w.news();
    w.tell(Input::Drain);
    w.expect(&["s1 draining, 0 queued, 1 running"]);
    w.tell(Input::Drain);
    w.expect(&[]);
    w.acknowledge(S1, Q1.item(0));
    w.finish(S1, Q1.item(1));
    w.expect(&["s1 ready 1"]);
    w.acknowledge(S1, Q1.item(1));
    w.expect(&["close s1 Drained", "delete 0 of s1", "delete 1 of s1", "exit clean"]);
}

#[test]
fn a_draining_worker_takes_and_starts_nothing() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    w.tell(Input::Drain);
    w.news();
    w.assign(S1, Q1.item(2));
    w.expect(&["s1 rejected 2 Draining"]);
    w.finish(S1, Q1.item(0));
    w.expect(&["s1 ready 0"]);
    w.acknowledge(S1, Q1.item(0));
    w.expect(&[]);
    w.cancel(S1, Q1.item(1));
    w.expect(&["s1 cancelled 1", "close s1 Drained", "delete 0 of s1", "exit clean"]);
}

#[test]
fn a_drain_waits_for_what_was_told_to_stop() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.cancel(S1, Q1.item(0));
    w.tell(Input::Drain);
    w.news();
    w.pass(millis(10));
    w.expect(&[]);
    w.stopped(S1, Q1.item(0));
    w.expect(&["s1 cancelled 0", "close s1 Drained", "exit clean"]);
}

#[test]
fn a_drain_that_takes_too_long_ends_all_the_same() {
    let mut w = Workshop::open().apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    w.finish(S1, Q1.item(0));
    w.tell(Input::Drain);
    w.pass(millis(299_999));
    w.news();
    w.pass(millis(1));
    w.expect(&["close s1 Drained", "delete 0 of s1", "stop 1 of s1", "exit late"]);
    w.stopped(S1, Q1.item(1));
    w.pass(seconds(600));
    w.tell(Input::Drain);
    w.expect(&[]);
}

#[test]
fn an_api_node_that_comes_during_the_drain_is_told_so() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.tell(Input::Drain);
    w.news();
    w.greet(S2);
    w.expect(&["s2 welcome", "s2 draining, 0 queued, 1 running"]);
    w.assign(S2, Q1.item(1));
    w.expect(&["s2 rejected 1 Draining"]);
}

#[test]
fn a_stream_that_comes_after_the_end_is_closed() {
    let mut w = Workshop::open().apis(1);
    w.tell(Input::Drain);
    w.news();
    w.open_stream(S3);
    w.expect(&["close s3 Drained"]);
    w.tell(Input::Disk(DiskReport { room: true, ..DiskReport::default() }));
    w.expect(&[]);
    assert!(!w.core.accepts());
}

#[test]
fn losing_the_last_session_ends_the_drain_when_its_runs_have_stopped() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.tell(Input::Drain);
    w.news();
    w.lose(S1);
    w.expect(&["stop 0 of s1"]);
    w.stopped(S1, Q1.item(0));
    w.expect(&["exit clean"]);
}

#[test]
fn queued_work_whose_time_is_up_does_not_hold_up_the_drain() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(1);
    w.assign_attempt(S1, Q1.item(0), 1, millis(200));
    w.assign_attempt(S1, Q1.item(1), 1, millis(500));
    w.tell(Input::Drain);
    w.news();
    w.pass(millis(500));
    w.expect(&["stop 0 of s1", "s1 failed 0 Deadline", "s1 failed 1 Deadline"]);
    w.stopped(S1, Q1.item(0));
    w.expect(&["close s1 Drained", "exit clean"]);
}
