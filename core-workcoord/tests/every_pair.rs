//! Every pair of a work item's state and event, by name: one readable table for answers from the
//! present place, and the rule that answers from anywhere else are late. What follows from a step
//! is told in `scenario`.
//!
//! The names come from matches without a wildcard: a new state or event stops the build here until
//! it has its row or column.

use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::{Attempt, SessionId};
use core_workcoord::moment::Moment;
use core_workcoord::work_state::{From, Place, Step, WorkEvent, WorkState};

/// What each event (row) makes of each state (column), when it comes from the present place. A
/// state's name means that the item moves there; `late` and `VIOLATION` mean that it stays.
const TABLE: &str = "
.            Queued    Assigned  Accepted  Running   Ready     Fetching  Done Failed Cancelled
Assign       Assigned  late      late      late      late      late      late late   late
Accepted     late      Accepted  VIOLATION VIOLATION VIOLATION VIOLATION late late   late
Started      late      VIOLATION Running   VIOLATION VIOLATION VIOLATION late late   late
Rejected     late      Queued    VIOLATION VIOLATION VIOLATION VIOLATION late late   late
Ready        late      VIOLATION Ready     Ready     VIOLATION VIOLATION late late   late
Failed/retry late      VIOLATION Queued    Queued    VIOLATION VIOLATION late late   late
Failed/final late      VIOLATION Failed    Failed    VIOLATION VIOLATION late late   late
ArtifactLost late      VIOLATION VIOLATION VIOLATION Queued    Queued    late late   late
FetchStarted late      late      late      late      Fetching  late      late late   late
Fetched      late      late      late      late      late      Done      late late   late
FetchFailed  late      late      late      late      late      Queued    late late   late
SessionLost  late      Queued    Queued    Queued    Queued    Queued    late late   late
Draining     late      Queued    Queued    late      late      late      late late   late
Cancel       Cancelled Cancelled Cancelled Cancelled Cancelled Cancelled late late   late
GiveUp       Failed    Failed    Failed    Failed    Failed    Failed    late late   late
";

const HERE: Place = Place { on: SessionId(7), attempt: Attempt(2), since: Moment::from_millis(40) };
const ELSEWHERE: SessionId = SessionId(8);

fn state_name(state: &WorkState) -> &'static str {
    match state {
        WorkState::Queued => "Queued",
        WorkState::Assigned(_) => "Assigned",
        WorkState::Accepted(_) => "Accepted",
        WorkState::Running(_) => "Running",
        WorkState::Ready(..) => "Ready",
        WorkState::Fetching(..) => "Fetching",
        WorkState::Done(..) => "Done",
        WorkState::Failed => "Failed",
        WorkState::Cancelled => "Cancelled",
    }
}

fn event_name(event: &WorkEvent) -> &'static str {
    match event {
        WorkEvent::Assign(_) => "Assign",
        WorkEvent::Accepted(_) => "Accepted",
        WorkEvent::Started(_) => "Started",
        WorkEvent::Rejected(_) => "Rejected",
        WorkEvent::Ready(..) => "Ready",
        WorkEvent::Failed { retryable: true, .. } => "Failed/retry",
        WorkEvent::Failed { retryable: false, .. } => "Failed/final",
        WorkEvent::ArtifactLost(_) => "ArtifactLost",
        WorkEvent::FetchStarted => "FetchStarted",
        WorkEvent::Fetched(_) => "Fetched",
        WorkEvent::FetchFailed(_) => "FetchFailed",
        WorkEvent::SessionLost(_) => "SessionLost",
        WorkEvent::Draining(_) => "Draining",
        WorkEvent::Cancel => "Cancel",
        WorkEvent::GiveUp => "GiveUp",
    }
}

/// What a step came to, in the words of the table.
fn outcome_name(step: &Step) -> &'static str {
    match step {
        Step::To(next) => state_name(next),
        Step::Late(_) => "late",
        Step::Violation(_) => "VIOLATION",
    }
}

fn artifact() -> Box<Artifact> {
    Box::new(Artifact {
        url: "http://w1:8080/artifacts/1".into(),
        size_bytes: 1_000,
        checksum: Checksum([9; 32]),
        row_count: 10,
        min_ts: 0,
        max_ts: 1,
        parquet_schema_version: 1,
    })
}

/// Every state, at the present place where it has one.
fn states() -> Vec<WorkState> {
    vec![
        WorkState::Queued,
        WorkState::Assigned(HERE),
        WorkState::Accepted(HERE),
        WorkState::Running(HERE),
        WorkState::Ready(HERE, artifact()),
        WorkState::Fetching(HERE, artifact()),
        WorkState::Done(HERE.attempt, artifact().checksum),
        WorkState::Failed,
        WorkState::Cancelled,
    ]
}

/// The events that answer for an attempt.
fn answers(session: SessionId, attempt: Attempt) -> Vec<WorkEvent> {
    let from = From { session, attempt };
    vec![
        WorkEvent::Accepted(from),
        WorkEvent::Started(from),
        WorkEvent::Rejected(from),
        WorkEvent::Ready(from, artifact()),
        WorkEvent::Failed { from, retryable: true },
        WorkEvent::Failed { from, retryable: false },
        WorkEvent::ArtifactLost(from),
        WorkEvent::Fetched(from),
        WorkEvent::FetchFailed(from),
    ]
}

/// Every event, from the present place where it comes from one.
fn events() -> Vec<WorkEvent> {
    let mut all = answers(HERE.on, HERE.attempt);
    all.extend([
        WorkEvent::Assign(Place { on: ELSEWHERE, attempt: Attempt(3), since: Moment::ZERO }),
        WorkEvent::FetchStarted,
        WorkEvent::SessionLost(HERE.on),
        WorkEvent::Draining(HERE.on),
        WorkEvent::Cancel,
        WorkEvent::GiveUp,
    ]);
    all
}

/// The table's entry for a pair; fails where there is none.
#[track_caller]
fn expected(state: &str, event: &str) -> &'static str {
    let mut lines = TABLE.lines().filter(|line| !line.trim().is_empty());
    let head = lines.next().expect("the table has a head").split_whitespace();
    let column = head.into_iter().position(|name| name == state);
    let column = column.unwrap_or_else(|| panic!("the table has no column for the state {state}"));
    let row = lines.find(|line| line.split_whitespace().next() == Some(event));
    let row = row.unwrap_or_else(|| panic!("the table has no row for the event {event}"));
    row.split_whitespace().nth(column).expect("every row is full")
}

/// Holds one column of the table against the step function.
#[track_caller]
fn check_state(name: &str) {
    let state = states().into_iter().find(|state| state_name(state) == name);
    let state = state.expect("every state has a sample");
    let mut wrong = Vec::new();
    for event in events() {
        let event_name = event_name(&event);
        let step = state.clone().step(event);
        let (found, expected) = (outcome_name(&step), expected(name, event_name));
        if found != expected {
            wrong.push(format!("{name} + {event_name}: expected {expected}, it is {found}"));
        }
        // What does not move stays exactly as it was.
        if let Step::Late(same) | Step::Violation(same) = &step
            && *same != state
        {
            wrong.push(format!("{name} + {event_name}: left {same:?} behind"));
        }
        // A middle state keeps its place until it is given back.
        if let Step::To(next) = &step
            && let (Some(before), Some(after)) = (state.place(), next.place())
            && before != after
        {
            wrong.push(format!("{name} + {event_name}: moved from {before:?} to {after:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn queued_work_is_assigned_or_ended_and_nothing_else() {
    check_state("Queued");
}

#[test]
fn assigned_work_is_accepted_rejected_or_given_back() {
    check_state("Assigned");
}

#[test]
fn accepted_work_starts_is_ready_fails_or_is_given_back() {
    check_state("Accepted");
}

#[test]
fn running_work_is_ready_fails_or_is_lost_but_is_never_drained() {
    check_state("Running");
}

#[test]
fn ready_work_is_fetched_or_loses_its_artifact() {
    check_state("Ready");
}

#[test]
fn fetching_work_is_done_or_comes_back() {
    check_state("Fetching");
}

#[test]
fn done_work_is_final() {
    check_state("Done");
}

#[test]
fn failed_work_is_final() {
    check_state("Failed");
}

#[test]
fn cancelled_work_is_final() {
    check_state("Cancelled");
}

#[test]
fn the_table_has_every_pair_and_no_other() {
    let words: Vec<Vec<&str>> = TABLE
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    let columns: Vec<_> = states().iter().map(state_name).collect();
    assert_eq!(words[0][1..], columns, "a state without a column, or a column without a state");
    let mut rows: Vec<_> = words[1..].iter().map(|row| row[0]).collect();
    let mut named: Vec<_> = events().iter().map(event_name).collect();
    rows.sort_unstable();
    named.sort_unstable();
    assert_eq!(rows, named, "an event without a row, or a row without an event");
    assert!(words.iter().all(|row| row.len() == columns.len() + 1), "a row is not full");
    assert_eq!((columns.len(), named.len()), (9, 15));
}

#[test]
fn an_answer_from_another_session_is_late_in_every_state() {
    everything_is_late(&answers(ELSEWHERE, HERE.attempt));
}

#[test]
fn an_answer_of_an_old_attempt_is_late_in_every_state() {
    everything_is_late(&answers(HERE.on, Attempt::FIRST));
}

#[test]
fn an_answer_of_an_attempt_yet_to_come_is_late_in_every_state() {
    everything_is_late(&answers(HERE.on, HERE.attempt.next()));
}

#[test]
fn the_end_of_another_session_is_late_in_every_state() {
    everything_is_late(&[WorkEvent::SessionLost(ELSEWHERE), WorkEvent::Draining(ELSEWHERE)]);
}

#[track_caller]
fn everything_is_late(events: &[WorkEvent]) {
    for state in states() {
        for event in events {
            let step = state.clone().step(event.clone());
            let pair = format!("{} + {}", state_name(&state), event_name(event));
            assert_eq!(step, Step::Late(state.clone()), "{pair}");
        }
    }
}

#[test]
fn a_fetched_item_remembers_which_attempt_and_which_bytes_counted() {
    let from = From { session: HERE.on, attempt: HERE.attempt };
    let step = WorkState::Fetching(HERE, artifact()).step(WorkEvent::Fetched(from));
    assert_eq!(step, Step::To(WorkState::Done(HERE.attempt, artifact().checksum)));
}

#[test]
fn the_questions_about_a_state_agree_with_each_other() {
    for state in states() {
        let name = state_name(&state);
        let middle = !matches!(name, "Queued" | "Done" | "Failed" | "Cancelled");
        assert_eq!(state.place().is_some(), middle, "{name} has a place");
        assert_eq!(state.is_final(), matches!(name, "Done" | "Failed" | "Cancelled"), "{name}");
        assert_eq!(state.occupies(), matches!(name, "Assigned" | "Accepted" | "Running"), "{name}");
        assert_eq!(state.is_unstarted(), matches!(name, "Assigned" | "Accepted"), "{name}");
    }
}
