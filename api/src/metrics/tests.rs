//! Everything that is counted has a name, and every name its head.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{Coordinator, Input, QueryFailure, Refusal, Times};
use core_workcoord::id::{ApiId, Endpoint, QueryId, WorkId};
use core_workcoord::message::FailureCode;
use core_workcoord::moment::Moment;
use tributary_promql::{Options, parse};

use super::*;
use crate::cores::BrokeOff;
use crate::error::QueryError;
use crate::figures::outcome_name;

/// A node that knows one worker, with every count at another number.
fn sight() -> Sight {
    let api = ApiId::new("api-1").unwrap();
    let mut coordinator = Coordinator::new(CoordinatorConfig::default(), api, 1).unwrap();
    let endpoint = Endpoint::new("w1:9470").unwrap();
    coordinator.handle(Moment::ZERO, Input::WorkerDiscovered { endpoint });
    let mut times = Times::default();
    times.fetch.observe(Duration::from_millis(3));
    let view = View { snapshot: coordinator.snapshot(Moment::ZERO), counts: numbered(), times };
    let queries = QueryFigures {
        ended: BTreeMap::from([("answered", 5), ("timeout", 2)]),
        ..QueryFigures::default()
    };
    let age = Duration::from_millis(1_500);
    let source = SourceView {
        name: "dns:\"w\":1".into(),
        answers: 4,
        failures: 3,
        is_failing: true,
        endpoints: 1,
    };
    Sight {
        view,
        queries,
        memory_bytes: 77,
        freshness: Freshness { age, failures: 2, last_error: None },
        segments: 12,
        sources: vec![source],
    }
}

/// Counts that are all different, far above anything else in the text.
fn numbered() -> Counts {
    let mut counts = Counts {
        dials: 1,
        sessions: 2,
        disconnects: 3,
        lost_silent: 4,
        violations: 5,
        unanswered: 6,
        duplicate_workers: 7,
        assigned: 8,
        first_choice: 9,
        accepted: 10,
        started: 11,
        rejected: 12,
        ready: 13,
        failed_retryable: 14,
        failed_final: 15,
        reassigned: 16,
        reassigned_lost: 17,
        reassigned_drained: 18,
        reassigned_artifact: 19,
        hedged: 20,
        hedges_won: 21,
        late: 22,
        duplicates: 23,
        diverged: 24,
        cancels: 25,
        cancels_confirmed: 26,
        fetched: 27,
        fetch_failed: 28,
        mismatches: 29,
        artifacts_lost: 30,
        delivered: 31,
        queries: 32,
        queries_refused: 33,
        queries_complete: 34,
        queries_cancelled: 35,
        queries_deadline: 36,
        queries_work_failed: 37,
        queries_exhausted: 38,
        queries_poisonous: 39,
        queries_too_large: 40,
    };
    let large = counts.clone();
    for _ in 0..999 {
        counts.merge(&large);
    }
    counts
}

fn text() -> String {
    let mut text = Text::new(PREFIX);
    write(&mut text, &sight());
    text.into_string()
}

#[test]
fn everything_that_is_counted_is_told() {
    let text = text();
    let told: BTreeSet<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    for (name, count) in numbered().each() {
        // Of all reassigned ones it is told why.
        if name != "reassigned" {
            assert!(told.contains(count.to_string().as_str()), "{name} is not told: {text}");
        }
    }
    for line in [
        "tributary_api_queries_total{outcome=\"answered\"} 5",
        "tributary_api_queries_total{outcome=\"poisonous\"} 0",
        "tributary_api_workers{standing=\"connecting\"} 1",
        "tributary_api_catalog_age_seconds 1.5",
        "tributary_api_catalog_segments 12",
        "tributary_api_result_memory_bytes 77",
        "tributary_api_discovery_failing{source=\"dns:\\\"w\\\":1\"} 1",
        "tributary_api_discovery_failures_total 3",
        "tributary_api_fetch_seconds_count 1",
        "tributary_api_queue_depth 0",
    ] {
        assert!(text.lines().any(|told| told == line), "{line} is missing in {text}");
    }
}

#[test]
fn every_metric_has_one_head_and_a_name_of_its_kind() {
    let text = text();
    let mut heads = BTreeMap::new();
    for head in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = head.split_once(' ').unwrap();
        assert_eq!(heads.insert(name, kind), None, "{name} is told twice");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        assert_eq!(
            name.ends_with("_seconds"),
            kind == "histogram" || name.contains("_age_"),
            "{name}"
        );
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        assert!(heads.contains_key(name) || heads.contains_key(family.unwrap_or(name)), "{name}");
    }
}

#[test]
fn every_ending_of_a_query_is_on_the_list() {
    use tributary_promql::eval::EvalError;
    let work = WorkId { query: QueryId(1), item: 0 };
    let deadline = |no_workers| QueryFailure::Deadline { done: 0, total: 1, no_workers };
    let (message, last) = (String::new(), String::new());
    let endings = [
        parse("rate(", &Options::default()).unwrap_err().into(),
        EvalError::Limit { what: "x", limit: 1, setting: "y" }.into(),
        EvalError::invalid("no").into(),
        Refusal::TooManyQueries { limit: 1 }.into(),
        deadline(true).into(),
        deadline(false).into(),
        QueryFailure::WorkFailed { work, code: FailureCode::Internal, message }.into(),
        QueryFailure::AttemptsExhausted { work, attempts: 1, last }.into(),
        QueryFailure::Poisonous { work, workers: 3 }.into(),
        QueryFailure::ArtifactTooLarge { work, size_bytes: 2, limit_bytes: 1 }.into(),
        QueryError::Timeout { timeout: Duration::ZERO },
        QueryError::OutOfMemory { limit_bytes: 1 },
        QueryError::BrokeOff(BrokeOff),
        QueryError::Cancelled,
        QueryError::ShuttingDown,
    ];
    let names =
        endings.iter().map(|ending| outcome_name(Err(ending))).chain([outcome_name(Ok(()))]);
    let names: BTreeSet<&str> = names.collect();
    assert_eq!(names, BTreeSet::from(OUTCOMES));
}
