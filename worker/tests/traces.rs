//! A leaf seen from its trace: the run continues the trace of whoever asked for it, and tells what it
//! did. One test alone: what makes traces is the whole process'.

#[path = "support/collector.rs"]
mod collector;
#[path = "support/segments.rs"]
mod segments;
mod support;

use collector::{Collector, Span};
use core_workcoord::message::WorkerMessage;
use segments::{give, put_segment, query, spec, start, store_in};
use support::{Api, PATIENCE, assign, work};
use tempfile::TempDir;
use tributary_process::logs::{self, LogConfig};
use tributary_process::traces::{Origin, Traces, TracesConfig};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_the_trace_of_its_query_with_a_span_for_each_of_its_stages() {
    let collector = Collector::start().await;
    let otlp_endpoint = collector.endpoint();
    // Nothing is begun here: what came with the work decides that it is recorded.
    let config = TracesConfig { otlp_endpoint, sample_ratio: 0.0, ..TracesConfig::default() };
    let origin = Origin { service: "tributary-worker", instance: "worker-1", version: "7" };
    let traces = Traces::start(&config, &origin).expect("it can be").expect("it is on");
    // What log lines are wanted does not decide which spans are.
    let log = LogConfig { filter: "error".into(), ..LogConfig::default() };
    logs::start_with(&log, Some(&traces)).expect("nobody else writes them");

    let folder = TempDir::new().expect("a folder");
    let store = store_in(&folder.path().join("store"));
    let asked = assign(1, "");
    let segment = put_segment(&store, asked.tenant.as_str()).await;
    let mut missing = segment.clone();
    missing.samples.0 = missing.samples.0.replace("/u1/", "/u2/");
    let worker = start(&folder.path().join("disk"), store).await;
    let plan = query();
    let mut api = Api::greeted(worker.grpc(), "api-1", 1).await;
    for (item, segment) in [(1, segment), (2, missing)] {
        give(&api, item, &spec(&plan, segment)).await;
        assert_eq!(api.answer().await, WorkerMessage::Accepted(work(item)));
        assert_eq!(api.answer().await, WorkerMessage::Started(work(item)));
        match api.answer().await {
            WorkerMessage::Ready(_) if item == 1 => {}
            WorkerMessage::Failed(_) if item == 2 => {}
            other => panic!("{other:?}"),
        }
    }
    tokio::time::timeout(PATIENCE, traces.finish()).await.expect("it ends in time");

    let spans = collector.spans();
    let run = |item: u32| {
        let work_id = work(item).work_id.to_string();
        let found = |span: &&Span| span.name == "run" && span.attributes["work_id"] == work_id;
        spans.iter().find(found).unwrap_or_else(|| panic!("run {item} is missing in {spans:#?}"))
    };
    let [done, failed] = [run(1), run(2)];
    for span in [done, failed] {
        assert_eq!(span.trace_id, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span.parent_id, "b7ad6b7169203331");
        let expected = [
            ("query_id", work(1).work_id.query.to_string()),
            ("attempt", "1".into()),
            ("tenant", "acme".into()),
            ("segments", "1".into()),
        ];
        for (name, value) in expected {
            assert_eq!(span.attributes.get(name), Some(&value), "{name} of {span:?}");
        }
    }
    assert_eq!((done.is_error, failed.is_error), (false, true));
    assert_eq!([done, failed].map(|run| run.attributes["outcome"].as_str()), ["ready", "failed"]);
    assert!(done.attributes["rows"].parse::<u64>().expect("a number") > 0, "{done:?}");
    assert!(done.attributes["bytes"].parse::<u64>().expect("a number") > 0, "{done:?}");
    let service = ["service.name", "service.instance.id", "service.version"];
    let service = service.map(|name| done.service[name].as_str());
    assert_eq!(service, ["tributary-worker", "worker-1", "7"]);
    let stages = |of: &Span| {
        let inside = spans.iter().filter(|span| span.parent_id == of.span_id);
        let mut names: Vec<_> = inside.map(|span| span.name.as_str()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(stages(done), ["download", "encode", "scan"]);
    assert_eq!(stages(failed), ["download"]);
    assert!(spans.iter().all(|span| span.trace_id == done.trace_id), "{spans:#?}");
}
