//! Streams from API nodes: introduced, heard of, superseded, lost with exactly what they own.

use core_workcoord::id::SessionId;
use core_workcoord::intake::{Action, Input};
use core_workcoord::message::{ApiMessage, Heartbeat, Hello, PROTOCOL_VERSION, WorkerMessage};
use core_workcoord::moment::Moment;

use crate::support::words::{HasItems, Q1, Q2, W1, api, millis, seconds};
use crate::support::workshop::{S1, S2, S3, Workshop};

#[test]
fn hello_is_answered_by_welcome_and_status() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    w.expect(&[]);
    w.hello(S1, "api-1", 7);
    let actions = w.actions();
    let [
        Action::Send { message: WorkerMessage::Welcome(welcome), .. },
        Action::Send { message: WorkerMessage::Status(status), .. },
    ] = actions.as_slice()
    else {
        panic!("expected Welcome and Status, found {actions:?}")
    };
    assert_eq!((&welcome.worker_id, welcome.slots), (&W1.id(), 2));
    assert_eq!((&welcome.version[..], &welcome.artifact_base_url), ("1", &W1.base_url()));
    assert_eq!(welcome.artifact_token, "token of s1", "this session's and no other's");
    assert!(status.alive && status.accepting_work && !status.draining);
    let view = &w.core.snapshot(w.now).sessions[0];
    assert_eq!((view.session, &view.api), (S1, &Some(api("api-1"))));
}

#[test]
fn a_stream_on_which_nobody_says_hello_is_closed() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    w.pass(millis(1_999));
    w.expect(&[]);
    w.pass(millis(1));
    w.expect(&["close s1 HelloTimeout"]);
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    let protocol_version = PROTOCOL_VERSION + 1;
    let hello = Hello { api_id: api("api-1"), session_id: SessionId(1), protocol_version };
    w.say(S1, ApiMessage::Hello(hello));
    w.expect(&["close s1 Violation(Version)"]);
}

#[test]
fn whoever_breaks_the_protocol_loses_the_stream() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    w.say(S1, ApiMessage::Heartbeat(Heartbeat::default()));
    w.expect(&["close s1 Violation(NotIntroduced)"]);
    w.greet(S2);
    w.news();
    w.hello(S2, "api-2", 9);
    w.expect(&["close s2 Violation(IntroducedTwice)"]);
    w.greet(S3);
    w.assign(S3, Q1.item(0));
    w.news();
    w.tell(Input::Malformed { session: S3 });
    w.expect(&["close s3 Violation(Malformed)", "stop 0 of s3"]);
    assert_eq!((w.core.counts().violations, w.core.counts().streams_ended), (3, 3));
}

#[test]
fn a_heartbeat_is_answered_at_once() {
    let mut w = Workshop::open().apis(1);
    w.pass(millis(137));
    w.actions();
    let beat = Heartbeat { seq: 41, ..Heartbeat::default() };
    w.say(S1, ApiMessage::Heartbeat(beat));
    let [answer] = w.heartbeats(S1)[..] else { panic!("one heartbeat for one heartbeat") };
    assert_eq!(answer.echo_seq, 41);
}

#[test]
fn a_quiet_api_node_hears_a_heartbeat_every_second_and_is_lost_after_three() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.mute(S1);
    w.actions();
    w.pass(millis(2_999));
    assert_eq!(w.heartbeats(S1).len(), 2, "the first one was sent when it came");
    w.pass(millis(1));
    w.expect(&["close s1 Silent", "stop 0 of s1"]);
    assert_eq!(w.core.counts().lost_silent, 1);
}

#[test]
fn a_busy_worker_is_heard_of_all_the_same() {
    let mut w = Workshop::open().apis(1);
    (0..4).for_each(|item| w.assign(S1, Q1.item(item)));
    w.actions();
    w.pass(seconds(10));
    let beats = w.heartbeats(S1).len();
    assert!(beats >= 10, "{beats} heartbeats in ten seconds");
}

#[test]
fn a_change_of_its_figures_is_told_with_the_next_heartbeat() {
    let mut w = Workshop::open().apis(1);
    w.assign(S1, Q1.item(0));
    w.news();
    w.pass(seconds(1));
    w.expect(&["s1 accepting, 0 queued, 1 running"]);
    w.pass(seconds(5));
    w.expect(&[]);
}

#[test]
fn the_loss_of_a_session_cancels_exactly_what_it_owned() {
    let mut w = Workshop::with_config(|config| config.slots = 4).apis(2);
    for session in [S1, S2] {
        (0..2).for_each(|item| w.assign(session, Q1.item(item)));
    }
    w.finish(S1, Q1.item(0));
    w.finish(S2, Q1.item(0));
    w.assign(S1, Q1.item(2));
    w.assign(S2, Q1.item(2));
    w.assign(S1, Q1.item(3));
    w.assign(S2, Q1.item(3));
    w.acknowledge(S1, Q1.item(0));
    w.news();
    w.lose(S1);
    w.expect(&["delete 0 of s1", "stop 1 of s1", "stop 2 of s1"]);
    assert_eq!(w.core.counts().orphans_stopped, 2);
    w.stopped(S1, Q1.item(1));
    w.expect(&["start 3 of s2", "s2 started 3"]);
    w.stopped(S1, Q1.item(2));
    w.expect(&[]);
    (1..4).for_each(|item| w.finish(S2, Q1.item(item)));
    w.expect(&["s2 ready 1", "s2 ready 2", "s2 ready 3"]);
}

#[test]
fn an_orphan_that_finishes_leaves_nothing_on_disk() {
    let mut w = Workshop::open().apis(1);
    (0..2).for_each(|item| w.assign(S1, Q1.item(item)));
    w.cancel(S1, Q1.item(1));
    w.news();
    w.lose(S1);
    w.expect(&["stop 0 of s1"]);
    w.finish(S1, Q1.item(0));
    w.expect(&["delete 0 of s1"]);
    w.stopped(S1, Q1.item(1));
    w.expect(&[]);
}

#[test]
fn an_orphan_holds_its_slot_until_it_has_stopped() {
    let mut w = Workshop::with_config(|config| config.slots = 1).apis(2);
    w.assign(S1, Q1.item(0));
    w.lose(S1);
    w.assign(S2, Q2.item(0));
    w.news();
    assert_eq!(w.core.snapshot(w.now).status.running, 1);
    w.stopped(S1, Q1.item(0));
    w.expect(&["start 0 of s2", "s2 started 0"]);
}

#[test]
fn a_newer_stream_of_the_same_api_node_supersedes_the_older() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    w.hello(S1, "api-1", 4);
    w.assign(S1, Q1.item(0));
    w.open_stream(S2);
    w.news();
    w.hello(S2, "api-1", 5);
    let expected =
        ["close s1 Superseded", "stop 0 of s1", "s2 welcome", "s2 accepting, 0 queued, 1 running"];
    w.expect(&expected);
    w.assign_attempt(S2, Q1.item(0), 2, seconds(60));
    w.expect(&["s2 accepted 0#2", "start 0#2 of s2", "s2 started 0#2"]);
}

#[test]
fn an_older_stream_that_comes_later_is_refused() {
    for number in [4, 5] {
        let mut w = Workshop::open();
        w.open_stream(S1);
        w.hello(S1, "api-1", 5);
        w.open_stream(S2);
        w.news();
        w.hello(S2, "api-1", number);
        w.expect(&["close s2 Violation(OutOfOrder)"]);
        assert_eq!(w.core.snapshot(w.now).sessions.len(), 1, "the newer one lives");
    }
}

#[test]
fn an_api_node_that_is_gone_may_come_back_with_any_number() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    w.hello(S1, "api-1", 5);
    w.lose(S1);
    w.open_stream(S2);
    w.news();
    w.hello(S2, "api-1", 1);
    w.expect(&["s2 welcome", "s2 accepting, 0 queued, 0 running"]);
}

#[test]
fn too_many_streams_are_refused() {
    let mut w = Workshop::with_config(|config| config.max_sessions = 2).apis(2);
    w.open_stream(S3);
    w.expect(&["close s3 TooManySessions"]);
    assert_eq!((w.core.counts().streams, w.core.counts().streams_refused), (2, 1));
    w.lose(S1);
    w.open_stream(S3);
    w.expect(&[]);
}

#[test]
fn whatever_comes_of_a_stream_that_is_over_is_late() {
    let mut w = Workshop::open().apis(1);
    w.lose(S1);
    w.lose(S1);
    w.tell(Input::Malformed { session: S1 });
    w.say(S1, ApiMessage::Heartbeat(Heartbeat::default()));
    w.assign(S1, Q1.item(0));
    w.cancel(S1, Q1.item(0));
    w.acknowledge(S1, Q1.item(0));
    w.expect(&[]);
    assert_eq!((w.core.counts().late, w.core.counts().streams_ended), (6, 1));
}

#[test]
fn a_clock_that_goes_backwards_changes_nothing() {
    let mut w = Workshop::open().apis(1);
    w.pass(seconds(10));
    w.actions();
    let (present, due) = (w.now, w.core.poll_timeout());
    w.now = Moment::ZERO;
    w.tell(Input::Tick);
    assert_eq!((w.actions(), w.core.poll_timeout()), (vec![], due));
    w.assign_attempt(S1, Q1.item(0), 1, millis(100));
    w.now = present;
    w.news();
    w.pass(millis(100));
    w.expect(&["stop 0 of s1", "s1 failed 0 Deadline"]);
}

#[test]
fn secrets_are_not_printed() {
    let mut w = Workshop::open();
    w.open_stream(S1);
    w.hello(S1, "api-1", 1);
    let input = Input::StreamOpened { session: S1, token: "token of s1".into() };
    let printed = format!("{input:?} {:?}", w.actions());
    assert!(!printed.contains("token of"), "{printed}");
}
