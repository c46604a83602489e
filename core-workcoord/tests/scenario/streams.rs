//! Streams to workers: dialled, opened, introduced, heard of, lost, dialled again.

use core_workcoord::coordinator::{Action, CloseReason, Input};
use core_workcoord::message::{ApiMessage, Heartbeat, WorkerMessage, WorkerStatus};
use core_workcoord::moment::Moment;
use core_workcoord::roster::Standing;

use crate::support::scenario::Scenario;
use crate::support::words::{
    HasItems, Q1, W1, W2, accepting, millis, passing_failure, plan, plan_with_keys, seconds,
};

#[test]
fn a_lost_session_gives_its_work_to_another_worker_at_once() {
    let mut s = Scenario::seeded(7).workers(2).query(Q1, 3);
    let on_w1 = u64::from(s.items_on(W1));
    assert!(on_w1 > 0, "the story needs work on both");
    s.lose(W1);
    s.expect_all_work_on(W2);
    assert_eq!(s.counts().reassigned_lost, on_w1);
    s.expect_standing(W1, Standing::Lost);
}

#[test]
fn everything_not_yet_fetched_is_given_back_however_far_it_was() {
    let mut s = Scenario::with_config(7, |config| config.max_fetches = 1).slots(6).workers(1);
    s.submit(plan(Q1, 6));
    s.finish(Q1.item(0));
    s.accept(Q1.item(2));
    s.run(Q1.item(3));
    s.produce(Q1.item(4));
    s.produce(Q1.item(5));
    let view = s.view();
    assert_eq!((view.fetches, view.fetches_waiting), (1, 1));
    s.join(W2);
    s.lose(W1);
    s.expect_all_work_on(W2);
    assert_eq!(s.items_on(W2), 5, "all but the one that was fetched");
    assert_eq!(s.view().fetches, 0, "nobody fetches from a worker that is gone");
    (1..6).for_each(|item| s.finish(Q1.item(item)));
    s.expect_delivered(Q1, &[0, 1, 2, 3, 4, 5]);
    s.expect_complete(Q1);
}

#[test]
fn a_reconnected_worker_has_a_new_session_and_its_old_answers_are_late() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.run(Q1.item(0));
    let old = s.at(Q1.item(0));
    s.lose(W1);
    s.reconnect(W1);
    s.expect_on(W1, Q1.item(0));
    let new = s.at(Q1.item(0));
    assert_eq!((old.work.attempt.0, new.work.attempt.0), (1, 2));
    assert_ne!(old.session, new.session);
    let answers = |s: &mut Scenario| {
        s.accept(old);
        s.start(old);
        s.reject(old);
        s.ready(old);
        s.fail(old, passing_failure());
        s.lose_artifact(old);
        s.confirm_cancel(old);
        s.say_on(old.session, WorkerMessage::Heartbeat(Heartbeat::default()));
        s.say_on(old.session, WorkerMessage::Status(accepting(2)));
    };
    s.expect_all_late(answers, 9);
    s.finish(new);
    s.expect_complete(Q1);
    assert_eq!(s.view_of(W1).worker, Some(W1.id()), "its name stays");
    assert_eq!(s.core.times().reconnect.count(), 1);
}

#[test]
fn a_worker_is_in_rotation_only_when_it_has_spoken_of_itself() {
    let mut s = Scenario::seeded(7).query(Q1, 1);
    s.discover(W1);
    s.expect_standing(W1, Standing::Connecting);
    s.open(W1);
    s.expect_standing(W1, Standing::Connecting);
    s.welcome(W1);
    s.expect_standing(W1, Standing::NotAccepting);
    s.expect_waiting(1);
    s.report(W1, accepting(2));
    s.expect_standing(W1, Standing::Accepting);
    s.expect_all_work_on(W1);
}

#[test]
fn the_first_word_on_a_stream_is_hello() {
    let mut s = Scenario::seeded(7);
    s.discover(W1);
    s.news();
    s.open(W1);
    let news = s.news();
    let [Action::Send { message: ApiMessage::Hello(hello), .. }] = news.as_slice() else {
        panic!("expected Hello, found {news:?}")
    };
    assert_eq!((hello.api_id.as_str(), hello.session_id), ("api-1", s.session(W1)));
    assert_eq!(hello.protocol_version, core_workcoord::message::PROTOCOL_VERSION);
}

#[test]
fn a_stream_that_does_not_open_is_given_up_and_dialled_again() {
    let mut s = Scenario::seeded(7);
    s.discover(W1);
    s.pass(millis(1_999));
    s.expect_no_stream_closed();
    s.pass(millis(1));
    s.expect_closed(W1, CloseReason::DialTimeout);
    s.reconnect(W1);
    s.expect_standing(W1, Standing::Accepting);
}

#[test]
fn a_stream_on_which_nobody_introduces_himself_is_closed() {
    let mut s = Scenario::seeded(7);
    s.discover(W1);
    s.pass(millis(1_000));
    s.open(W1);
    s.pass(millis(1_999));
    s.expect_no_stream_closed();
    s.pass(millis(1));
    s.expect_closed(W1, CloseReason::WelcomeTimeout);
    s.reconnect(W1);
    s.expect_standing(W1, Standing::Accepting);
}

#[test]
fn three_seconds_of_silence_mean_lost() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.expect_all_work_on(W1);
    s.mute(W1);
    s.pass(millis(2_999));
    s.expect_all_work_on(W1);
    s.pass(millis(1));
    s.expect_closed(W1, CloseReason::Silent);
    s.expect_all_work_on(W2);
    assert_eq!((s.counts().lost_silent, s.counts().disconnects), (1, 1));
}

#[test]
fn anything_heard_is_a_sign_of_life() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.mute(W1);
    s.pass(millis(2_500));
    s.accept(Q1.item(0));
    s.pass(millis(2_500));
    s.expect_no_stream_closed();
    assert_eq!(s.view_of(W1).silent_for, millis(2_500));
    s.pass(millis(500));
    s.expect_closed(W1, CloseReason::Silent);
}

#[test]
fn heartbeats_go_every_second_and_their_echo_is_timed() {
    let mut s = Scenario::seeded(7).workers(1);
    s.news();
    s.pass(seconds(10));
    let is_beat =
        |action: &&Action| matches!(action, Action::Send { message: ApiMessage::Heartbeat(_), .. });
    let beats = s.news().iter().filter(is_beat).count();
    assert!((10..=11).contains(&beats), "{beats} heartbeats in ten seconds");
    assert_eq!(s.core.times().heartbeat_rtt.count(), beats as u64);
    s.expect_no_stream_closed();
}

#[test]
fn a_heartbeat_echoes_the_last_one_heard() {
    let mut s = Scenario::seeded(7).workers(1);
    s.mute(W1);
    let beat = Heartbeat { seq: 41, ..Heartbeat::default() };
    s.say(W1, WorkerMessage::Heartbeat(beat));
    s.news();
    s.pass(seconds(1));
    let echoes = s.news().iter().any(|action| {
        matches!(action, Action::Send { message: ApiMessage::Heartbeat(beat), .. }
            if beat.echo_seq == 41)
    });
    assert!(echoes);
}

#[test]
fn pauses_between_dials_double_up_to_their_limit() {
    let mut s = Scenario::seeded(7);
    s.discover(W1);
    for full in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000] {
        s.lose(W1);
        let pause = s.wait_for_dial(W1);
        assert!(pause >= millis(full) / 2 && pause <= millis(full), "{pause:?} of {full} ms");
    }
    assert_eq!(s.counts().dials, 10);
}

#[test]
fn a_session_that_lived_long_enough_starts_the_pauses_over() {
    let mut s = Scenario::seeded(7);
    s.discover(W1);
    for _ in 0..5 {
        s.lose(W1);
        s.wait_for_dial(W1);
    }
    s.connect(W1);
    s.pass(millis(4_999));
    s.lose(W1);
    let pause = s.wait_for_dial(W1);
    assert!(pause > millis(1_000), "a short life changes nothing: {pause:?}");
    s.connect(W1);
    s.pass(seconds(5));
    s.lose(W1);
    let pause = s.wait_for_dial(W1);
    assert!(pause <= millis(100), "a good life starts over: {pause:?}");
}

#[test]
fn nobody_dials_a_worker_that_discovery_names_no_more() {
    let mut s = Scenario::seeded(7);
    s.discover(W1);
    s.lose(W1);
    s.undiscover(W1);
    s.pass(seconds(60));
    assert_eq!(s.counts().dials, 1);
    assert_eq!(s.view().workers, [], "it is forgotten");
    s.discover(W1);
    assert_eq!(s.counts().dials, 2, "named again, dialled again");
}

#[test]
fn a_worker_that_leaves_discovery_before_its_stream_is_up_is_forgotten() {
    for opened in [false, true] {
        let mut s = Scenario::seeded(7);
        s.discover(W1);
        if opened {
            s.open(W1);
        }
        s.undiscover(W1);
        s.expect_closed(W1, CloseReason::Retired);
        s.pass(seconds(60));
        assert_eq!(s.counts().dials, 1, "opened: {opened}");
        assert_eq!(s.view().workers, [], "opened: {opened}");
    }
}

#[test]
fn naming_a_worker_twice_is_naming_it_once() {
    let mut s = Scenario::seeded(7).workers(1);
    s.discover(W1);
    assert_eq!(s.counts().dials, 1);
    s.undiscover(W2);
    assert_eq!(s.view().workers.len(), 1, "nobody knew the other one");
    s.submit(plan(Q1, 1));
    s.undiscover(W1);
    s.undiscover(W1);
    s.expect_all_work_on(W1);
}

#[test]
fn a_second_worker_of_the_same_name_is_refused_until_the_first_is_gone() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.discover(W2);
    s.open(W2);
    s.welcome_as(W2, W1);
    s.expect_closed(W2, CloseReason::DuplicateWorker);
    assert_eq!(s.counts().duplicate_workers, 1);
    s.expect_all_work_on(W1);
    s.lose(W1);
    s.undiscover(W1);
    s.wait_for_dial(W2);
    s.open(W2);
    s.welcome_as(W2, W1);
    s.report(W2, accepting(2));
    s.expect_all_work_on(W2);
}

#[test]
fn a_worker_that_says_it_can_not_go_on_is_left_at_once() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.report(W1, WorkerStatus { alive: false, ..accepting(2) });
    s.expect_closed(W1, CloseReason::NotAlive);
    s.expect_all_work_on(W2);
}

#[test]
fn a_clock_that_goes_backwards_changes_nothing() {
    let mut s = Scenario::seeded(7).workers(1);
    s.pass(seconds(10));
    let (due, present) = (s.core.poll_timeout(), s.now);
    s.now = Moment::ZERO;
    s.news();
    s.tell(Input::Tick);
    assert_eq!(s.news(), [], "nothing is due that was not due before");
    assert_eq!(s.core.poll_timeout(), due);
    s.submit(plan(Q1, 1));
    s.finish(Q1.item(0));
    s.expect_complete(Q1);
    s.now = present;
    s.pass(seconds(10));
    s.expect_no_stream_closed();
    assert!(s.core.times().query.max() <= seconds(1), "no time has passed for the query");
}
