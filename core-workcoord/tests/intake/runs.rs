//! Work on the worker: accepted or refused, started in turn, cancelled, out of time, ended.

use core_workcoord::config::{BadConfig, IntakeConfig};
use core_workcoord::id::RunId;
use core_workcoord::intake::{Action, DiskReport, Input};
use core_workcoord::message::{FailureCode, RejectReason, WorkerMessage};

use crate::support::words::{
    HasItems, Q1, Q2, W1, artifact_of, lasting_failure, millis, passing_failure, seconds,
};
use crate::support::workshop::{S1, S2, S3, Workshop};

#[test]
fn work_is_accepted_started_and_announced() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.expect(&["s1 accepted 0", "start 0 of s1", "s1 started 0"]);
    w.pass(millis(300));
    w.finish(S1, Q1.item(0));
    w.expect(&["s1 ready 0"]);
    assert_eq!(w.core.times().run.max(), millis(300));
    let counts = w.core.counts();
    assert_eq!((counts.accepted, counts.started, counts.finished), (1, 1, 1));
}

#[test]
fn the_executor_and_the_api_node_are_told_everything() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    let actions = w.actions();
    let start = actions.iter().find_map(|action| match action {
        Action::Start { work, .. } => Some(work.clone()),
        _ => None,
    });
    let work = start.expect("it is started");
    assert_eq!((work.work_id, work.tenant.as_str()), (Q1.item(0), "acme"));
    assert_eq!(&work.spec[..], b"a leaf over some cells");
    w.finish(S1, Q1.item(0));
    let actions = w.actions();
    let [Action::Send { message: WorkerMessage::Ready(ready), .. }] = actions.as_slice() else {
        panic!("expected Ready, found {actions:?}")
    };
    assert_eq!(ready.artifact, artifact_of(W1, Q1.item(0)));
}

#[test]
fn work_beyond_the_slots_waits_for_one() {
    let mut w = Workshop::open().apis(1);
    (0..3).for_each(|item| w.assign(S1, Q1.item(item)));
    w.news();
    let snapshot = w.core.snapshot(w.now);
    assert_eq!((snapshot.status.running, snapshot.status.queued), (2, 1));
    assert_eq!((snapshot.sessions[0].queued, snapshot.sessions[0].owned), (1, 3));
    w.pass(millis(200));
    w.finish(S1, Q1.item(1));
    w.expect(&["s1 ready 1", "start 2 of s1", "s1 started 2"]);
    assert_eq!(w.core.times().queue_wait.max(), millis(200));
}

#[test]
fn work_beyond_slots_and_queue_is_refused_and_the_room_is_told_when_it_returns() {
    let mut w = Workshop::open().apis(2);
    (0..4).for_each(|item| w.assign(S1, Q1.item(item)));
    w.news();
    w.assign(S2, Q2.item(0));
    w.expect(&["s2 rejected 0 Full"]);
    w.pass(seconds(3));
    w.expect(&["s1 accepting, 2 queued, 2 running"]);
    w.finish(S1, Q1.item(0));
    let expected =
        ["s1 ready 0", "start 2 of s1", "s1 started 2", "s2 accepting, 1 queued, 2 running"];
    w.expect(&expected);
    w.assign(S2, Q2.item(0));
    w.expect(&["s2 accepted 0"]);
    assert_eq!(w.core.counts().rejected, 1);
}

#[test]
fn everybody_who_was_refused_is_told_of_the_room_once() {
    let mut w = Workshop::open().apis(3);
    (0..4).for_each(|item| w.assign(S1, Q1.item(item)));
    w.assign(S2, Q2.item(0));
    w.assign(S2, Q2.item(1));
    w.assign(S3, Q2.item(2));
    w.news();
    w.cancel(S1, Q1.item(3));
    let expected = [
        "s1 cancelled 3",
        "s2 accepting, 1 queued, 2 running",
        "s3 accepting, 1 queued, 2 running",
    ];
    w.expect(&expected);
    w.cancel(S1, Q1.item(2));
    w.expect(&["s1 cancelled 2"]);
}

#[test]
fn the_queue_is_fair_between_sessions() {
    let mut w = Workshop::with_config(|config| {
        config.slots = 1;
        config.queue_limit = 16;
    });
    [S1, S2, S3].into_iter().for_each(|session| w.greet(session));
    (0..4).for_each(|item| w.assign(S1, Q1.item(item)));
    (10..12).for_each(|item| w.assign(S2, Q1.item(item)));
    w.assign(S3, Q1.item(20));
    let mut order = Vec::new();
    while let Some(run) = w.executing.first().copied() {
        order.extend(w.news().into_iter().filter(|word| word.starts_with("start ")));
        w.finish_run(run, artifact_of(W1, Q1.item(0)));
    }
    let expected = [
        "start 0 of s1",
        "start 10 of s2",
        "start 20 of s3",
        "start 1 of s1",
        "start 11 of s2",
        "start 2 of s1",
        "start 3 of s1",
    ];
    assert_eq!(order, expected);
}

#[test]
fn a_failure_is_passed_on_and_frees_the_slot() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(1);
    (0..3).for_each(|item| w.assign(S1, Q1.item(item)));
    w.news();
    w.fail(S1, Q1.item(0), passing_failure());
    w.expect(&["s1 failed 0 StoreUnavailable", "start 1 of s1", "s1 started 1"]);
    w.fail(S1, Q1.item(1), lasting_failure());
    w.expect(&["s1 failed 1 SegmentCorrupt", "start 2 of s1", "s1 started 2"]);
    assert_eq!(w.core.counts().failed, 2);
}

#[test]
fn a_run_that_stops_of_itself_has_failed() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.actions();
    w.stopped(S1, Q1.item(0));
    let actions = w.actions();
    let [Action::Send { message: WorkerMessage::Failed(failed), .. }] = actions.as_slice() else {
        panic!("expected Failed, found {actions:?}")
    };
    assert_eq!((failed.failure.code, failed.failure.retryable), (FailureCode::Internal, true));
}

#[test]
fn cancelling_queued_work_is_confirmed_at_once() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(1);
    (0..3).for_each(|item| w.assign(S1, Q1.item(item)));
    w.news();
    w.cancel(S1, Q1.item(1));
    w.expect(&["s1 cancelled 1"]);
    w.finish(S1, Q1.item(0));
    w.expect(&["s1 ready 0", "start 2 of s1", "s1 started 2"]);
}

#[test]
fn a_cancelled_run_holds_its_slot_until_it_has_stopped() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    w.news();
    w.cancel(S1, Q1.item(0));
    w.expect(&["stop 0 of s1"]);
    assert_eq!(w.core.snapshot(w.now).stopping, 1);
    w.pass(millis(40));
    w.expect(&[]);
    w.stopped(S1, Q1.item(0));
    w.expect(&["s1 cancelled 0", "start 1 of s1", "s1 started 1"]);
    assert_eq!(w.core.times().stop.max(), millis(40));
    assert_eq!((w.core.counts().cancels, w.core.counts().stopped), (1, 1));
}

#[test]
fn a_cancelled_run_that_ends_on_its_own_is_confirmed_and_leaves_nothing() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.assign(S1, Q1.item(1));
    w.cancel(S1, Q1.item(0));
    w.cancel(S1, Q1.item(1));
    w.news();
    w.finish(S1, Q1.item(0));
    w.expect(&["delete 0 of s1", "s1 cancelled 0"]);
    w.fail(S1, Q1.item(1), passing_failure());
    w.expect(&["s1 cancelled 1"]);
}

#[test]
fn cancelling_finished_work_removes_its_artifact() {
    let mut w = Workshop::open().apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    (0..2).for_each(|item| w.finish(S1, Q1.item(item)));
    w.acknowledge(S1, Q1.item(1));
    w.news();
    w.cancel(S1, Q1.item(0));
    w.expect(&["delete 0 of s1", "s1 cancelled 0"]);
    w.cancel(S1, Q1.item(1));
    w.expect(&["delete 1 of s1", "s1 cancelled 1"]);
}

#[test]
fn cancelling_unknown_work_is_confirmed() {
    let mut w = Workshop::open().apis(1);
    w.cancel(S1, Q1.item(9));
    w.expect(&["s1 cancelled 9"]);
}

#[test]
fn cancelling_the_same_run_twice_breaks_the_protocol() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.cancel(S1, Q1.item(0));
    w.news();
    w.cancel(S1, Q1.item(0));
    w.expect(&["close s1 Violation(OutOfOrder)"]);
}

#[test]
fn assigning_the_same_work_twice_breaks_the_protocol() {
    let stages: [fn(&mut Workshop); 3] = [
        |_| {},
        |w| w.finish(S1, Q1.item(0)),
        |w| {
            w.finish(S1, Q1.item(0));
            w.acknowledge(S1, Q1.item(0));
        },
    ];
    for (attempt, stage) in [1, 2].into_iter().flat_map(|n| stages.map(|stage| (n, stage))) {
        let mut w = Workshop::open().apis(1);
        w.assign(S1, Q1.item(0));
        stage(&mut w);
        w.news();
        w.assign_attempt(S1, Q1.item(0), attempt, seconds(1));
        let closed = w.news().remove(0);
        assert_eq!(closed, "close s1 Violation(OutOfOrder)");
    }
}

#[test]
fn a_second_attempt_may_come_as_soon_as_the_first_is_cancelled() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.cancel(S1, Q1.item(0));
    w.news();
    w.assign_attempt(S1, Q1.item(0), 2, seconds(60));
    w.expect(&["s1 accepted 0#2", "start 0#2 of s1", "s1 started 0#2"]);
    let mut w2 = Workshop::open().apis(1);
    w2.assign(S1, Q1.item(0));
    w2.cancel(S1, Q1.item(0));
    w2.news();
    w2.assign(S1, Q1.item(0));
    w2.expect(&["close s1 Violation(OutOfOrder)"]);
}

#[test]
fn two_sessions_may_have_the_same_work() {
    let mut w = Workshop::open().apis(2);
    w.assign(S1, Q1.item(0));
    w.assign(S2, Q1.item(0));
    w.news();
    w.cancel(S1, Q1.item(0));
    w.stopped(S1, Q1.item(0));
    w.expect(&["stop 0 of s1", "s1 cancelled 0"]);
    w.finish(S2, Q1.item(0));
    w.expect(&["s2 ready 0"]);
}

#[test]
fn a_run_that_is_out_of_time_is_stopped_and_told() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(1);
    w.assign_attempt(S1, Q1.item(0), 1, millis(500));
    w.assign_attempt(S1, Q1.item(1), 1, millis(700));
    w.news();
    w.pass(millis(499));
    w.expect(&[]);
    w.pass(millis(1));
    w.expect(&["stop 0 of s1", "s1 failed 0 Deadline"]);
    w.pass(millis(200));
    w.expect(&["s1 failed 1 Deadline"]);
    assert_eq!(w.core.counts().out_of_time, 2);
    assert_eq!(w.core.runs().count(), 1, "it has not stopped yet");
    w.stopped(S1, Q1.item(0));
    w.expect(&[]);
    assert!(w.core.is_idle());
}

#[test]
fn a_run_out_of_time_can_still_be_cancelled_once() {
    let mut w = Workshop::open().apis(1);
    w.assign_attempt(S1, Q1.item(0), 1, millis(500));
    w.pass(millis(500));
    w.news();
    w.cancel(S1, Q1.item(0));
    w.expect(&[]);
    w.stopped(S1, Q1.item(0));
    w.expect(&["s1 cancelled 0"]);
    w.cancel(S1, Q1.item(0));
    w.expect(&["s1 cancelled 0"]);
}

#[test]
fn time_that_is_up_means_nothing_to_work_that_is_done() {
    let mut w = Workshop::open().apis(1);
    w.assign_attempt(S1, Q1.item(0), 1, millis(500));
    w.finish(S1, Q1.item(0));
    w.news();
    w.pass(millis(600));
    w.expect(&[]);
}

#[test]
fn results_of_unknown_runs_are_late_and_leave_nothing_on_disk() {
    let mut w = Workshop::open().apis(1);
    w.finish_run(RunId(99), artifact_of(W1, Q1.item(0)));
    w.expect(&["delete unknown r99"]);
    w.tell(Input::RunFailed { run: RunId(99), failure: passing_failure() });
    w.tell(Input::RunStopped { run: RunId(99) });
    w.tell(Input::ArtifactEvicted { run: RunId(99) });
    w.expect(&[]);
    assert_eq!(w.core.counts().late, 4);
}

#[test]
fn results_that_come_twice_are_late() {
    let mut w = Workshop::open().apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    let (ready, running) = (w.run_of(S1, Q1.item(0)), w.run_of(S1, Q1.item(1)));
    w.finish(S1, Q1.item(0));
    w.news();
    w.finish(S1, Q1.item(0));
    w.tell(Input::RunFailed { run: ready, failure: passing_failure() });
    w.tell(Input::RunStopped { run: ready });
    w.tell(Input::ArtifactEvicted { run: running });
    w.expect(&[]);
    assert_eq!(w.core.counts().late, 4);
    assert_eq!(w.core.artifacts().collect::<Vec<_>>(), [ready]);
}

#[test]
fn knobs_that_do_not_fit_together_are_named() {
    let check = |turn: fn(&mut IntakeConfig)| {
        let mut config = IntakeConfig::default();
        turn(&mut config);
        config.check()
    };
    let order = |larger, smaller| Err(BadConfig::Order { larger, smaller });
    let silent = check(|config| config.heartbeat_timeout = config.heartbeat_interval);
    assert_eq!(silent, order("heartbeat_timeout", "heartbeat_interval"));
    let lingering = check(|config| config.artifact_ttl_after_ack = config.artifact_ttl);
    assert_eq!(lingering, order("artifact_ttl", "artifact_ttl_after_ack"));
}

#[test]
fn a_queue_as_long_as_can_be_is_never_full() {
    // The largest number is how people write "no limit".
    let config = IntakeConfig { queue_limit: u32::MAX, ..IntakeConfig::default() };
    assert_eq!(config.check(), Ok(()));
    let mut w = Workshop::with_config(|turned| *turned = config).apis(1);
    (0..9).for_each(|item| w.assign(S1, Q1.item(item)));
    assert_eq!((w.core.counts().accepted, w.core.counts().rejected), (9, 0));
}

#[test]
fn a_full_disk_refuses_work_for_its_own_reason() {
    let mut w = Workshop::open().apis(1);
    w.tell(Input::Disk(DiskReport { room: false, ..DiskReport::default() }));
    w.news();
    w.assign(S1, Q1.item(0));
    let reason = RejectReason::NotAccepting;
    w.expect(&[format!("s1 rejected 0 {reason:?}").as_str()]);
}
