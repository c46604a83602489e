//! Peers that break the protocol: each hears why its stream ends, and the next session works.

use bytes::Bytes;
use core_workcoord::id::{ApiId, SessionId};
use core_workcoord::message::{ApiMessage, Heartbeat, Hello, PROTOCOL_VERSION};
use tonic::Code;
use tributary_integration::worker_suite::api::{assignment, hello};
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::wire::say;
use tributary_proto::encode::api_message;
use tributary_proto::limits::SPEC_MAX_BYTES;

use super::{comes_to_rest, still_works, until_files, worker_on};

fn greeting() -> Bytes {
    api_message(hello("api-bad", 1))
}

fn assigned() -> Bytes {
    api_message(ApiMessage::AssignWork(assignment(0, Bytes::from_static(b"spec"))))
}

/// A message with some of its bytes replaced by as many others.
fn forged(message: &Bytes, what: &str, by: &str) -> Bytes {
    assert_eq!(what.len(), by.len(), "a forger keeps lengths");
    let mut bytes = message.to_vec();
    let mut found = 0;
    for at in 0..bytes.len() - what.len() {
        if bytes[at..].starts_with(what.as_bytes()) {
            bytes[at..at + by.len()].copy_from_slice(by.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "{what} is in no place of it");
    bytes.into()
}

#[tokio::test]
async fn whoever_breaks_the_protocol_is_told_why_and_the_next_session_works() {
    let field = Field::sown();
    let worker = worker_on(&field, &["artifacts.ttl_after_ack=200ms"]);
    still_works(&worker, &field, "api-warm", 0).await;
    comes_to_rest(&worker).await;
    let before = worker.footprint();

    let beat = api_message(ApiMessage::Heartbeat(Heartbeat::default()));
    let another_version = api_message(ApiMessage::Hello(Hello {
        api_id: ApiId::new("api-bad").expect("a plain name"),
        session_id: SessionId(1),
        protocol_version: PROTOCOL_VERSION + 1,
    }));
    let with_spec = |length| {
        let spec = vec![7; length].into();
        api_message(ApiMessage::AssignWork(assignment(0, spec)))
    };
    let query = "0000feed";
    let stories: Vec<(&str, Vec<Bytes>, Code)> = vec![
        ("work before the introduction", vec![assigned()], Code::FailedPrecondition),
        ("a heartbeat before the introduction", vec![beat.clone()], Code::FailedPrecondition),
        ("two introductions", vec![greeting(), greeting()], Code::FailedPrecondition),
        ("a version of tomorrow", vec![another_version], Code::FailedPrecondition),
        ("noise", vec![greeting(), vec![0xff; 100].into()], Code::InvalidArgument),
        ("noise before the introduction", vec![vec![0; 9].into()], Code::InvalidArgument),
        ("a message of no kind", vec![greeting(), Bytes::new()], Code::InvalidArgument),
        ("half a message", vec![greeting(), assigned().slice(..40)], Code::InvalidArgument),
        (
            "a name that is a path",
            vec![forged(&greeting(), "api-bad", "../../x")],
            Code::InvalidArgument,
        ),
        (
            "work that is a path",
            vec![greeting(), forged(&assigned(), query, "../../et")],
            Code::InvalidArgument,
        ),
        (
            "a tenant that is a path",
            vec![greeting(), forged(&assigned(), "acme", "../x")],
            Code::InvalidArgument,
        ),
        (
            "a spec beyond its limit",
            vec![greeting(), with_spec(SPEC_MAX_BYTES + 1)],
            Code::InvalidArgument,
        ),
        (
            "a message beyond all limits",
            vec![greeting(), with_spec(3 * SPEC_MAX_BYTES)],
            Code::InvalidArgument,
        ),
        ("silence", vec![], Code::DeadlineExceeded),
    ];
    let count = stories.len() as u64;
    for (number, (story, messages, code)) in (1..).zip(stories) {
        let status = say(worker.grpc, messages).await;
        assert_eq!(status.code(), code, "{story}: {status:?}\n{}", worker.log());
        assert!(!status.message().is_empty(), "{story}: {status:?}");
        still_works(&worker, &field, "api-good", number).await;
    }
    comes_to_rest(&worker).await;
    assert_eq!(worker.metric("streams_ended_total").await, 2 * count + 1);
    until_files(&worker, before.open_files).await;
}
