//! Peers that ask for what is not theirs, ask and never finish, or never read: each costs itself a
//! refusal or a closed connection, and the worker nothing that stays.

use std::time::Duration;

use core_workcoord::message::ApiMessage;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tributary_integration::worker_suite::PATIENCE;
use tributary_integration::worker_suite::api::{Api, assignment, hello};
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::http::{get, head, hung_up, request};

use super::{comes_to_rest, still_works, until_files, worker_on};

#[tokio::test]
async fn wrong_tokens_forged_names_and_ranges_beyond_the_end_are_refused() {
    let field = Field::sown();
    let worker = worker_on(&field, &[]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    let other = Api::greeted(worker.grpc, "api-2", 1).await;
    api.start(0, field.tiny().spec(0)).await;
    let artifact = api.ready(0).await;
    let path = artifact.url.strip_prefix(&format!("http://{}", worker.http)).expect("it is here");
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let right = bearer(api.token());

    let mut almost = api.token().to_owned();
    let last = if almost.ends_with('0') { "1" } else { "0" };
    almost.replace_range(almost.len() - 1.., last);
    let mut refused = 0;
    for token in [almost.as_str(), "", "x", other.token(), &"x".repeat(6_000)] {
        let answer = get(worker.http, path, &[&bearer(token)]).await;
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{token}");
        refused += 1;
    }
    assert_eq!(get(worker.http, path, &[]).await.status, 404, "no token at all");
    refused += 1;
    for path in [
        "/artifacts/../../etc/passwd",
        "/artifacts/..%2f..%2f..%2fetc%2fpasswd",
        "/artifacts/%2e%2e/tributary-worker.lock",
        "/artifacts/%00",
        "/artifacts/",
        "/artifacts/no-such",
        "/spool/",
    ] {
        let status = get(worker.http, path, &[&right]).await.status;
        assert!(status == 404 || status == 400, "{path}: {status}");
    }
    assert!(worker.metric("artifacts_refused_total").await >= refused);

    let size = artifact.size_bytes;
    for range in [format!("bytes={size}-"), format!("bytes={}-{}", u64::MAX - 1, u64::MAX)] {
        let answer = get(worker.http, path, &[&right, &format!("Range: {range}")]).await;
        assert_eq!((answer.status, answer.body.len()), (416, 0), "{range}");
        assert_eq!(answer.header("content-range"), Some(&*format!("bytes */{size}")));
    }
    let cut = get(worker.http, path, &[&right, &format!("Range: bytes=0-{}", size * 2)]).await;
    assert_eq!((cut.status, cut.body.len() as u64), (206, size), "what there is");
    for nonsense in ["bytes=9-3", "bytes=-", "lines=1-2", "bytes=0-1,3-4", "bytes=x"] {
        let answer = get(worker.http, path, &[&right, &format!("Range: {nonsense}")]).await;
        assert!([200, 416].contains(&answer.status), "{nonsense}: {}", answer.status);
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(request(worker.http, method, path, &[&right]).await.status, 405, "{method}");
    }
    api.fetch(&artifact).await.expect("after all that it is still there, and whole");
    drop((api, other));
    comes_to_rest(&worker).await;
}

#[tokio::test]
async fn slow_askers_and_fetchers_that_never_read_are_hung_up_on_and_leave_nothing() {
    let field = Field::sown();
    let settings = [
        "serving.request_timeout=300ms",
        "serving.write_timeout=300ms",
        "artifacts.ttl_after_ack=100ms",
    ];
    let worker = worker_on(&field, &settings);
    still_works(&worker, &field, "api-warm", 0).await;
    comes_to_rest(&worker).await;
    let before = worker.footprint();

    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    api.start(0, field.large().spec(0)).await;
    let artifact = api.ready(0).await;
    assert!(artifact.size_bytes > 10 << 20, "more than sockets hold: {artifact:?}");
    let path = artifact.url.strip_prefix(&format!("http://{}", worker.http)).expect("it is here");
    let bearer = format!("Authorization: Bearer {}", api.token());
    let mut stuck = Vec::new();
    for n in 0..50 {
        let mut stream = TcpStream::connect(worker.http).await.expect("the port is open");
        let asked = match n % 3 {
            // Nothing at all, half a head, and a whole one whose answer is never read.
            0 => String::new(),
            1 => format!("GET {path} HTTP/1.1\r\nHost: "),
            _ => head(worker.http, "GET", path, &[&bearer], "keep-alive"),
        };
        stream.write_all(asked.as_bytes()).await.expect("it is taken");
        stuck.push(stream);
    }
    // Everybody else is served meanwhile.
    api.fetch(&artifact).await.expect("it is served to its owner");
    // A head that comes a byte at a time is not in time either.
    let mut drip = TcpStream::connect(worker.http).await.expect("the port is open");
    let dripping = async {
        for byte in head(worker.http, "GET", "/healthz", &[], "close").bytes() {
            if drip.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        hung_up(&mut drip).await
    };
    let heard = timeout(PATIENCE, dripping).await.expect("nobody waits for ever");
    assert!(!heard.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&heard));
    // An artifact that somebody still reads is gone from the books; its file goes with the reader.
    api.acknowledge(0, &artifact).await;
    worker.until("artifacts", 0).await;
    drop(api);
    comes_to_rest(&worker).await;
    until_files(&worker, before.open_files).await;
    for mut stream in stuck {
        hung_up(&mut stream).await;
    }
}

#[tokio::test]
async fn a_peer_that_talks_and_never_listens_is_cut_off() {
    let field = Field::sown();
    let settings = ["execution.slots=1", "execution.queue_limit=0", "control.send_queue=16"];
    let worker = worker_on(&field, &settings);
    still_works(&worker, &field, "api-warm", 0).await;
    worker.until("connections", 0).await;
    let before = worker.footprint();
    let deaf = Api::open(worker.grpc).await;
    deaf.tell(hello("api-deaf", 1)).await;
    // The first is taken, each further one is refused, and nobody hears it.
    let spec = field.endless().spec(0);
    let talking = async {
        for item in 0.. {
            let work = ApiMessage::AssignWork(assignment(item, spec.clone()));
            if deaf.say.send(work).await.is_err() {
                return;
            }
        }
    };
    timeout(PATIENCE, talking).await.expect("nobody listens for ever");
    assert_eq!(worker.metric("streams_closed_total{reason=\"slow_reader\"}").await, 1);
    for name in ["streams", "connections", "running", "stopping"] {
        worker.until(name, 0).await;
    }
    until_files(&worker, before.open_files).await;
    still_works(&worker, &field, "api-good", 1).await;
}
