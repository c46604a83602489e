//! Peers that break the protocol, and messages that are merely late. A violation costs its stream
//! and no work; what is late is counted and changes nothing.

use core_workcoord::artifact::Artifact;
use core_workcoord::coordinator::{CloseReason, FetchResult, Input, Violation};
use core_workcoord::id::{Attempt, QueryId};
use core_workcoord::message::{Heartbeat, WorkRef, WorkerMessage};

use crate::support::scenario::Scenario;
use crate::support::verbs::At;
use crate::support::words::{
    HasItems, Q1, Q2, W1, W2, artifact_of, lasting_failure, passing_failure, plan_with_keys,
};

/// Two workers, and two items on the first one, of which the first is as far as `prepare` takes it.
fn two_items_on_w1(prepare: impl Fn(&mut Scenario)) -> Scenario {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.expect_all_work_on(W1);
    prepare(&mut s);
    s
}

/// The first worker breaks the protocol: its stream is closed for it, and nothing else is lost.
#[track_caller]
fn expect_violation(mut s: Scenario, violation: Violation, commit: impl Fn(&mut Scenario)) {
    commit(&mut s);
    s.expect_closed(W1, CloseReason::Violation(violation));
    assert_eq!(s.counts().violations, 1);
    s.expect_all_work_on(W2);
    s.finish(Q1.item(0));
    s.finish(Q1.item(1));
    s.expect_delivered(Q1, &[0, 1]);
    s.expect_complete(Q1);
}

#[test]
fn bytes_that_are_no_message_close_the_stream_and_lose_nothing() {
    expect_violation(two_items_on_w1(|_| {}), Violation::Malformed, |s| {
        s.tell(Input::Malformed { session: s.session(W1) });
    });
}

#[test]
fn a_second_introduction_closes_the_stream_and_loses_nothing() {
    expect_violation(two_items_on_w1(|_| {}), Violation::IntroducedTwice, |s| s.welcome(W1));
}

#[test]
fn an_artifact_at_a_foreign_url_closes_the_stream_and_loses_nothing() {
    for foreign in ["http://w2:8080/artifacts/1", "http://w1:8080.evil.test/1", "http://w1:8080"] {
        expect_violation(two_items_on_w1(|s| s.run(Q1.item(0))), Violation::ForeignUrl, |s| {
            let artifact = artifact_of(W1, Q1.item(0));
            let url = foreign.to_owned();
            s.ready_with(Q1.item(0), Artifact { url, ..artifact });
        });
    }
}

#[test]
fn a_base_url_may_end_with_a_slash_or_not() {
    let mut s = two_items_on_w1(|s| s.run(Q1.item(0)));
    let artifact = artifact_of(W1, Q1.item(0));
    let url = format!("{}//{}", W1.base_url(), "artifacts/1");
    s.ready_with(Q1.item(0), Artifact { url, ..artifact });
    s.expect_no_stream_closed();
}

#[test]
fn what_can_not_follow_closes_the_stream_and_loses_nothing() {
    type Tell = fn(&mut Scenario);
    let assigned: Tell = |_| {};
    let accepted: Tell = |s| s.accept(Q1.item(0));
    let running: Tell = |s| s.run(Q1.item(0));
    let fetching: Tell = |s| s.produce(Q1.item(0));
    let accept: Tell = |s| s.accept(Q1.item(0));
    let start: Tell = |s| s.start(Q1.item(0));
    let reject: Tell = |s| s.reject(Q1.item(0));
    let ready: Tell = |s| s.ready(Q1.item(0));
    let retry: Tell = |s| s.fail(Q1.item(0), passing_failure());
    let fail: Tell = |s| s.fail(Q1.item(0), lasting_failure());
    let lose: Tell = |s| s.lose_artifact(Q1.item(0));
    let confirm: Tell = |s| s.confirm_cancel(Q1.item(0));
    let cases: [(Tell, &[Tell]); 4] = [
        (assigned, &[start, ready, retry, fail, lose, confirm]),
        (accepted, &[accept, reject, lose, confirm]),
        (running, &[accept, start, reject, lose, confirm]),
        (fetching, &[accept, start, reject, ready, retry, fail, confirm]),
    ];
    for (prepare, wrong) in cases {
        for tell in wrong {
            expect_violation(two_items_on_w1(prepare), Violation::OutOfOrder, tell);
        }
    }
}

#[test]
fn a_message_before_the_introduction_closes_the_stream() {
    for opened in [false, true] {
        let mut s = Scenario::seeded(7);
        s.discover(W1);
        if opened {
            s.open(W1);
        }
        s.say(W1, WorkerMessage::Heartbeat(Heartbeat::default()));
        s.expect_closed(W1, CloseReason::Violation(Violation::NotIntroduced));
        assert_eq!(s.counts().sessions, 0, "it was never a worker of ours");
        s.reconnect(W1);
    }
}

#[test]
fn answers_about_work_that_is_over_are_late() {
    let mut s = two_items_on_w1(|_| {});
    let (first, second) = (s.at(Q1.item(0)), s.at(Q1.item(1)));
    s.finish(first);
    s.finish(second);
    s.expect_complete(Q1);
    let answers = |s: &mut Scenario| {
        s.accept(first);
        s.start(first);
        s.fail(first, passing_failure());
        s.fail(first, lasting_failure());
        s.lose_artifact(second);
        s.confirm_cancel(second);
        s.fetch_ends(second, FetchResult::Verified);
        s.fetch_ends(second, FetchResult::Mismatch);
        s.cancel(Q1);
        s.consume(Q1, 2);
    };
    s.expect_all_late(answers, 10);
    s.expect_no_stream_closed();
}

#[test]
fn answers_about_done_items_of_a_running_query_are_late() {
    let mut s = two_items_on_w1(|_| {});
    let done = s.at(Q1.item(0));
    s.finish(done);
    let answers = |s: &mut Scenario| {
        s.accept(done);
        s.start(done);
        s.fail(done, lasting_failure());
        s.lose_artifact(done);
        s.confirm_cancel(done);
        s.fetch_ends(done, FetchResult::Failed);
    };
    s.expect_all_late(answers, 6);
    s.finish(Q1.item(1));
    s.expect_complete(Q1);
}

#[test]
fn answers_about_unknown_work_are_late() {
    let mut s = two_items_on_w1(|_| {});
    let present = s.at(Q1.item(0));
    let unknown = [Q2.item(0), Q1.item(99), QueryId(u128::MAX).item(u32::MAX)];
    let answers = |s: &mut Scenario| {
        for work_id in unknown {
            let at = At { work: WorkRef { work_id, attempt: Attempt::FIRST }, ..present };
            s.accept(at);
            s.start(at);
            s.fail(at, lasting_failure());
            s.lose_artifact(at);
            s.confirm_cancel(at);
            s.fetch_ends(at, FetchResult::Gone);
        }
        s.consume(Q2, 1);
        s.cancel(Q2);
    };
    s.expect_all_late(answers, 20);
}

#[test]
fn an_answer_for_another_attempt_on_the_present_session_is_late() {
    let mut s = two_items_on_w1(|_| {});
    let present = s.at(Q1.item(0));
    let other = WorkRef { attempt: Attempt(2), ..present.work };
    let other = At { work: other, ..present };
    let answers = |s: &mut Scenario| {
        s.accept(other);
        s.start(other);
        s.lose_artifact(other);
        s.fail(other, lasting_failure());
    };
    s.expect_all_late(answers, 4);
    s.finish(present);
}

#[test]
fn whatever_comes_of_a_session_that_is_over_is_late() {
    let mut s = Scenario::seeded(7).workers(1);
    let over = s.session(W1);
    s.lose(W1);
    s.reconnect(W1);
    let present = s.session(W1);
    let late = |s: &mut Scenario| {
        s.tell(Input::StreamOpened { session: over });
        s.tell(Input::StreamClosed { session: over });
        s.tell(Input::Malformed { session: over });
        s.say_on(over, WorkerMessage::Heartbeat(Heartbeat::default()));
        s.tell(Input::StreamOpened { session: present });
    };
    s.expect_all_late(late, 5);
}

#[test]
fn an_artifact_nobody_wants_is_counted_and_let_go_of() {
    let mut s = two_items_on_w1(|_| {});
    let first = s.at(Q1.item(0));
    s.finish(first);
    s.news();
    s.ready(first);
    assert_eq!(s.acknowledged_to(W1), [Q1.item(0)], "so that its worker can clean up");
    assert_eq!((s.counts().duplicates, s.counts().diverged, s.counts().late), (1, 0, 1));
    let mut other = artifact_of(W1, Q1.item(0));
    other.checksum.0[31] ^= 1;
    s.ready_with(first, other);
    assert_eq!((s.counts().duplicates, s.counts().diverged), (2, 1), "not the same bytes");
    s.finish(Q1.item(1));
    s.expect_delivered(Q1, &[0, 1]);
    s.ready(first);
    assert_eq!(s.counts().duplicates, 3, "long after its query, too");
}
