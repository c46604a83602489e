//! Queries from their beginning to their one end: limits, deadlines, cancellation, answers that do
//! not come, and what can be seen meanwhile.

use core_workcoord::config::{BadConfig, CoordinatorConfig};
use core_workcoord::coordinator::{
    Action, CloseReason, Coordinator, Outcome, QueryFailure, Refusal, Submission,
};
use core_workcoord::id::QueryId;
use core_workcoord::message::{ApiMessage, CancelReason, WorkerStatus};
use core_workcoord::moment::Moment;

use crate::support::scenario::Scenario;
use crate::support::words::{
    HasItems, Q1, Q2, Q3, W1, W2, W3, accepting, api, millis, passing_failure, plan,
    plan_with_keys, seconds, tenant,
};

fn due_in(s: &Scenario, millis: u64) -> Moment {
    s.now + std::time::Duration::from_millis(millis)
}

#[test]
fn a_worker_is_told_all_it_needs_to_know() {
    let mut s = Scenario::seeded(7).workers(1);
    let deadline = due_in(&s, 900);
    s.pass(millis(100));
    let submission = Submission { deadline, ..plan(Q1, 1) };
    let wanted = submission.clone();
    s.news();
    s.submit(submission);
    let news = s.news();
    let [Action::Send { message: ApiMessage::AssignWork(work), .. }] = news.as_slice() else {
        panic!("expected one assignment, found {news:?}")
    };
    assert_eq!((work.query_id, work.work_id, work.attempt.0), (Q1, Q1.item(0), 1));
    assert_eq!(work.leaf_id, wanted.items[0].leaf);
    assert_eq!(work.affinity_key, wanted.items[0].affinity_key);
    assert_eq!(work.spec, wanted.items[0].spec);
    assert_eq!((&work.tenant, &work.traceparent), (&wanted.tenant, &wanted.traceparent));
    assert_eq!(work.deadline, millis(800), "the time left, whatever the worker's clock says");
}

#[test]
fn a_query_of_no_items_is_complete_at_once() {
    let s = Scenario::seeded(7).query(Q1, 0);
    s.expect_complete(Q1);
    assert_eq!((s.counts().queries, s.counts().queries_complete), (1, 1));
}

#[test]
fn a_second_query_of_the_same_name_is_refused_while_the_first_runs() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1).query(Q1, 2);
    s.expect_end(Q1, &Outcome::Refused(Refusal::DuplicateQuery));
    assert_eq!(s.view().queries.len(), 1);
    s.finish(Q1.item(0));
    s.expect_delivered(Q1, &[0]);
    assert_eq!((s.counts().queries_refused, s.counts().queries_complete), (1, 1));
}

#[test]
fn a_name_may_be_used_again_only_when_nothing_of_it_is_left() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 1);
    s.run(Q1.item(0));
    s.cancel(Q1);
    s.submit(plan(Q1, 1));
    assert_eq!(s.counts().queries_refused, 1, "its old work has not stopped yet");
    s.confirm_cancels();
    s.submit(plan(Q1, 1));
    s.finish(Q1.item(0));
    s.expect_delivered(Q1, &[0]);
    assert_eq!(s.counts().queries_complete, 1);
}

#[test]
fn too_many_queries_are_refused_with_the_limit() {
    let mut s = Scenario::with_config(7, |config| config.max_queries = 2);
    let mut s2 = Scenario::with_config(7, |config| config.max_tenant_queries = 2);
    for s in [&mut s, &mut s2] {
        s.submit(plan(Q1, 1));
        s.submit(Submission { tenant: tenant("other"), ..plan(Q2, 1) });
        s.submit(plan(Q3, 1));
    }
    let refused = Refusal::TooManyQueries { limit: 2 };
    assert_eq!(refused.to_string(), "2 queries are running already");
    s.expect_end(Q3, &Outcome::Refused(refused));
    s2.expect_going_on(Q3);
    s2.submit(plan(QueryId(4), 1));
    let refused = Refusal::TooManyTenantQueries { limit: 2 };
    s2.expect_end(QueryId(4), &Outcome::Refused(refused));
    s2.cancel(Q1);
    s2.submit(plan(QueryId(5), 1));
    s2.expect_going_on(QueryId(5));
}

#[test]
fn too_many_items_are_refused_with_the_limit() {
    let limits = |config: &mut CoordinatorConfig| {
        config.max_query_items = 5;
        config.max_queued_items = 8;
    };
    let mut s = Scenario::with_config(7, limits).query(Q1, 5).query(Q2, 6).query(Q3, 4);
    let refused = Refusal::TooManyItems { limit: 5, needed: 6 };
    s.expect_end(Q2, &Outcome::Refused(refused));
    let refused = Refusal::QueueFull { limit: 8, queued: 5, needed: 4 };
    assert_eq!(refused.to_string(), "the queue holds 5 of 8 work items; 4 more do not fit");
    s.expect_end(Q3, &Outcome::Refused(refused));
    s.join(W1);
    s.submit(plan(QueryId(4), 4));
    s.expect_going_on(QueryId(4));
    assert_eq!(s.counts().queries_refused, 2);
}

#[test]
fn a_query_ends_at_its_deadline_and_its_work_is_cancelled() {
    let mut s = Scenario::seeded(7).workers(1);
    s.submit(Submission { deadline: due_in(&s, 500), ..plan(Q1, 3) });
    s.finish(Q1.item(0));
    let rest = [s.at(Q1.item(1)), s.at(Q1.item(2))];
    s.pass(millis(499));
    s.expect_going_on(Q1);
    s.pass(millis(1));
    let failure = QueryFailure::Deadline { done: 1, total: 3, no_workers: false };
    assert_eq!(failure.to_string(), "deadline exceeded with 1 of 3 work items done");
    s.expect_failed(Q1, failure);
    s.expect_cancelled(&rest, CancelReason::Deadline);
    assert_eq!(s.counts().queries_deadline, 1);
}

#[test]
fn with_no_worker_a_query_waits_until_its_deadline_and_says_so() {
    let mut s = Scenario::seeded(7);
    s.submit(Submission { deadline: due_in(&s, 60_000), ..plan(Q1, 3) });
    s.pass(millis(59_999));
    s.expect_going_on(Q1);
    let view = s.view();
    assert_eq!((view.depth(), view.queued, view.in_rotation), (3, 3, 0));
    assert_eq!(view.oldest_age, millis(59_999));
    s.pass(millis(1));
    s.expect_failed(Q1, QueryFailure::Deadline { done: 0, total: 3, no_workers: true });
}

#[test]
fn a_pool_scaled_to_zero_can_come_up_in_time() {
    let mut s = Scenario::seeded(7);
    s.submit(Submission { deadline: due_in(&s, 60_000), ..plan(Q1, 2) });
    s.pass(seconds(40));
    s.join(W1);
    s.finish(Q1.item(0));
    s.finish(Q1.item(1));
    s.expect_complete(Q1);
    assert_eq!(s.core.times().assignment_wait.max(), seconds(40));
}

#[test]
fn a_query_that_comes_too_late_ends_at_once() {
    let mut s = Scenario::seeded(7).workers(1);
    s.submit(Submission { deadline: s.now, ..plan(Q1, 1) });
    s.expect_failed(Q1, QueryFailure::Deadline { done: 0, total: 1, no_workers: false });
    assert_eq!(s.counts().assigned, 0);
}

#[test]
fn clients_are_told_of_missing_workers_once_for_every_time_that_nobody_is_there() {
    let mut s = Scenario::seeded(7);
    s.submit(plan(Q1, 2));
    assert_eq!(s.told_of_scale_up(), [Q1]);
    s.submit(plan(Q2, 1));
    assert_eq!(s.told_of_scale_up(), [Q2], "the first one knows");
    s.pass(seconds(30));
    assert_eq!(s.told_of_scale_up(), []);
    s.join(W1);
    s.submit(plan(Q3, 1));
    assert_eq!(s.told_of_scale_up(), []);
    s.finish(Q2.item(0));
    s.lose(W1);
    assert_eq!(s.told_of_scale_up(), [Q1, Q3], "nobody is there again");
    s.reconnect(W1);
    s.report(W1, WorkerStatus { accepting_work: false, ..accepting(2) });
    assert_eq!(s.told_of_scale_up(), [], "nothing waits: all is on a worker that takes no more");
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    assert_eq!(s.told_of_scale_up(), [Q1], "now something does");
}

#[test]
fn clients_of_waiting_work_are_told_when_the_last_worker_takes_no_more() {
    let mut s = Scenario::seeded(7).slots(1).workers(1).query(Q1, 9).query(Q2, 1);
    assert_eq!(s.told_of_scale_up(), [], "a worker is there, if a busy one");
    s.report(W1, WorkerStatus { accepting_work: false, ..accepting(1) });
    let told = s.told_of_scale_up();
    let waiting = s.view().queries.into_iter().filter(|query| query.queued > 0);
    assert_eq!(told, waiting.map(|query| query.query).collect::<Vec<_>>());
    assert!(told.contains(&Q1), "most of it waits");
}

#[test]
fn a_cancelled_query_is_cancelled_wherever_its_work_is() {
    let mut s = Scenario::seeded(7).slots(2).workers(1).query(Q1, 6);
    s.produce(Q1.item(0));
    s.run(Q1.item(1));
    s.accept(Q1.item(2));
    let all: Vec<_> = (0..5).map(|item| s.at(Q1.item(item))).collect();
    s.cancel(Q1);
    s.expect_end(Q1, &Outcome::Cancelled);
    s.expect_cancelled(&all, CancelReason::ClientGone);
    assert_eq!((s.view().depth(), s.view().cancelling), (0, 5));
    s.expect_delivered(Q1, &[]);
}

#[test]
fn a_cancelled_attempt_keeps_its_room_until_the_worker_confirms() {
    let mut s = Scenario::with_config(7, |config| config.worker_queue_ahead = 0).workers(1);
    s.submit(plan(Q1, 2));
    let cancelled = [s.at(Q1.item(0)), s.at(Q1.item(1))];
    s.run(cancelled[0]);
    s.cancel(Q1);
    s.submit(plan(Q2, 2));
    s.expect_waiting(2);
    s.pass(millis(70));
    s.confirm_cancel(cancelled[0]);
    s.expect_waiting(1);
    s.expect_on(W1, Q2.item(0));
    s.confirm_cancel(cancelled[1]);
    s.expect_waiting(0);
    assert_eq!((s.counts().cancels, s.counts().cancels_confirmed), (2, 2));
    assert_eq!(s.core.times().cancel.max(), millis(70));
}

#[test]
fn an_answer_that_crossed_the_cancellation_is_late() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 2);
    let (refused, failed) = (s.at(Q1.item(0)), s.at(Q1.item(1)));
    s.run(failed);
    s.cancel(Q1);
    s.fail(failed, passing_failure());
    s.reject(refused);
    assert_eq!(s.counts().late, 2);
    s.expect_no_stream_closed();
    s.confirm_cancels();
    assert_eq!((s.view().cancelling, s.counts().cancels_confirmed), (0, 2));
    s.expect_all_late(|s| s.confirm_cancel(failed), 1);
}

#[test]
fn a_cancellation_that_is_never_confirmed_closes_the_stream() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(1)));
    s.run(Q1.item(0));
    s.cancel(Q1);
    s.submit(plan_with_keys(Q2, s.keys_of(W1).take(1)));
    s.run(Q2.item(0));
    s.pass(millis(9_900));
    s.expect_no_stream_closed();
    s.pass(millis(100));
    s.expect_closed(W1, CloseReason::Unanswered);
    assert_eq!(s.counts().unanswered, 1);
    s.expect_all_work_on(W2);
}

#[test]
fn an_assignment_that_is_never_answered_closes_the_stream() {
    let mut s = Scenario::seeded(7).workers(2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(2)));
    s.accept(Q1.item(0));
    s.pass(millis(9_900));
    s.expect_no_stream_closed();
    s.pass(millis(100));
    s.expect_closed(W1, CloseReason::Unanswered);
    s.expect_all_work_on(W2);
}

#[test]
fn work_that_was_answered_may_take_as_long_as_it_likes() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 3);
    s.accept(Q1.item(0));
    s.run(Q1.item(1));
    s.produce(Q1.item(2));
    s.pass(seconds(600));
    s.expect_no_stream_closed();
    s.expect_all_work_on(W1);
}

#[test]
fn the_way_to_the_first_result_and_to_the_last_is_timed() {
    let mut s = Scenario::seeded(7).workers(1).query(Q1, 2);
    s.pass(millis(100));
    s.finish(Q1.item(0));
    s.pass(millis(200));
    s.finish(Q1.item(1));
    let times = s.core.times();
    assert_eq!((times.first_delivery.max(), times.query.max()), (millis(100), millis(300)));
    assert_eq!((times.first_delivery.count(), times.query.count()), (1, 1));
}

#[test]
fn everything_can_be_seen() {
    let mut s = Scenario::with_config(7, |config| config.worker_queue_ahead = 0).workers(1);
    s.submit(plan(Q1, 4));
    s.finish(Q1.item(0));
    s.pass(seconds(2));
    s.submit(Submission { tenant: tenant("other"), ..plan(Q2, 1) });
    s.pass(seconds(1));
    let view = s.view();
    assert_eq!((view.queued, view.running, view.depth()), (2, 2, 4));
    assert_eq!((view.active_streams, view.in_rotation), (1, 1));
    assert_eq!(view.oldest_age, seconds(3), "since it was submitted");
    let [first, second] = view.queries.as_slice() else { panic!("two queries: {view:?}") };
    assert_eq!((first.query, first.tenant.as_str(), first.age), (Q1, "acme", seconds(3)));
    let items = (first.total, first.queued, first.running, first.done, first.delivered);
    assert_eq!(items, (4, 1, 2, 1, 1));
    assert_eq!((second.query, second.tenant.as_str(), second.age), (Q2, "other", seconds(1)));
    let worker = s.view_of(W1);
    assert_eq!((worker.items, worker.status), (2, Some(accepting(2))));
    assert_eq!(worker.session, Some(s.session(W1)));
}

#[test]
fn the_age_of_work_aside_is_seen() {
    let mut s = Scenario::with_config(7, |config| config.worker_queue_ahead = 0).slots(1);
    s.join(W1);
    s.join(W2);
    s.submit(plan_with_keys(Q1, s.keys_of(W1).take(1)));
    s.submit(plan_with_keys(Q2, s.keys_of(W2).take(1)));
    s.run(Q2.item(0));
    s.run(Q1.item(0));
    s.fail(Q1.item(0), passing_failure());
    s.pass(seconds(4));
    assert_eq!((s.view().queued, s.view().oldest_age), (1, seconds(4)));
}

#[test]
fn knobs_that_do_not_fit_together_are_refused_before_anything_starts() {
    let config = CoordinatorConfig { max_fetches: 0, ..CoordinatorConfig::default() };
    let refused = Coordinator::new(config, api("api-1"), 7).map(|_| ());
    assert_eq!(refused, Err(BadConfig::Zero { knob: "max_fetches" }));
}

#[test]
fn names_are_printed_as_they_are_written() {
    let at = Scenario::seeded(7).workers(1).query(Q1, 1).at(Q1.item(0));
    let printed = format!("{} {} {} {:?}", W1.id(), W1.endpoint(), at.work.attempt, at.session);
    assert_eq!(printed, "w1 w1:9001 1 s1");
}

#[test]
fn counts_have_names_and_can_be_added() {
    let s = Scenario::seeded(7).workers(3).query(Q1, 2);
    let count = |name: &str| s.counts().each().find(|(known, _)| *known == name);
    assert_eq!(count("assigned"), Some(("assigned", 2)));
    let mut twice = s.counts().clone();
    twice.merge(s.counts());
    assert_eq!((twice.assigned, twice.dials), (4, 6));
    assert_eq!(s.core.config().max_attempts, 6);
    s.expect_standing(W3, core_workcoord::roster::Standing::Accepting);
}
