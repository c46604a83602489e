//! Peers that do not play along: each costs itself a closed connection, and nobody else anything.

mod support;

use std::time::Duration;

use core_workcoord::message::ApiMessage;
use support::{Api, PATIENCE, Stage, assign, config, get, hello, stage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tributary_worker::config::Span;

/// Reads until the other side hangs up.
async fn hung_up(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // Reset or ended, it is over either way.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is hung up");
}

/// The worker still does its work.
async fn still_works(stage: &Stage) {
    let mut api = stage.api("api-good").await;
    api.start(0, "").await;
    api.ready(0).await;
}

#[tokio::test]
async fn a_peer_that_never_reads_is_hung_up_on_and_cut_off() {
    let mut config = config(1);
    config.execution.queue_limit = 0;
    config.control.send_queue = 16;
    let stage = stage(&config).await;
    let api = Api::open(stage.grpc()).await;
    api.tell(hello("api-deaf", 1)).await;
    // Each is answered by a refusal that nobody reads.
    let talking = async {
        for item in 0.. {
            let work = ApiMessage::AssignWork(assign(item, "sleep:300s"));
            if api.say.send(work).await.is_err() {
                break;
            }
        }
    };
    timeout(PATIENCE, talking).await.expect("nobody listens for ever");
    stage
        .until("the connection is cut", async |stage: &Stage| {
            stage.metric("streams").await == 0.0 && stage.metric("connections").await == 0.0
        })
        .await;
    let (_, text) = get(stage.http(), "/metrics", &[]).await;
    assert!(text.contains("streams_closed_total{reason=\"slow_reader\"} 1\n"), "{text}");
    drop(api);
    still_works(&stage).await;
}

#[tokio::test]
async fn a_connection_without_a_stream_is_cut() {
    let mut config = config(1);
    config.control.hello_timeout = Span::millis(100);
    let stage = stage(&config).await;
    let silent = TcpStream::connect(stage.grpc()).await.unwrap();
    let mut noisy = TcpStream::connect(stage.grpc()).await.unwrap();
    noisy.write_all(b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n").await.unwrap();
    hung_up(silent).await;
    hung_up(noisy).await;
    still_works(&stage).await;
}

#[tokio::test]
async fn a_connection_is_not_kept_after_its_stream() {
    let mut config = config(1);
    config.control.hello_timeout = Span::millis(100);
    let stage = stage(&config).await;
    let mut api = Api::open(stage.grpc()).await;
    api.end().await;
    stage
        .until("the connection is cut", async |stage: &Stage| {
            stage.metric("connections").await == 0.0
        })
        .await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    let mut config = config(1);
    config.control.max_connections = 2;
    let stage = stage(&config).await;
    let one = stage.api("api-1").await;
    let _two = stage.api("api-2").await;
    hung_up(TcpStream::connect(stage.grpc()).await.unwrap()).await;
    assert_eq!(stage.metric("connections_refused_total").await, 1.0);
    drop(one);
    stage
        .until("there is room", async |stage: &Stage| stage.metric("connections").await < 2.0)
        .await;
    still_works(&stage).await;
}

#[tokio::test]
async fn a_request_that_never_ends_is_given_up() {
    let mut config = config(1);
    config.serving.request_timeout = Span::millis(100);
    let stage = stage(&config).await;
    let mut slow = TcpStream::connect(stage.http()).await.unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").await.unwrap();
    hung_up(slow).await;
    assert_eq!(get(stage.http(), "/healthz", &[]).await.0, 200);
}

#[tokio::test]
async fn a_fetcher_that_stops_reading_is_given_up() {
    let mut config = config(1);
    config.serving.write_timeout = Span::millis(200);
    config.serving.max_connections = 1;
    let stage = stage(&config).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "size:60000000").await;
    let artifact = api.ready(0).await;
    let path = artifact.url.rsplit('/').next().unwrap();
    let mut stuck = TcpStream::connect(stage.http()).await.unwrap();
    let token = api.token();
    let request = format!(
        "GET /artifacts/{path} HTTP/1.1\r\nHost: w\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stuck.write_all(request.as_bytes()).await.unwrap();
    let mut some = [0; 1_000];
    stuck.read_exact(&mut some).await.unwrap();
    // The only connection there may be is free again although nobody closed it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(get(stage.http(), "/healthz", &[]).await.0, 200);
    drop(stuck);
}

#[tokio::test]
async fn forged_ids_and_unknown_paths_find_nothing() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "").await;
    let artifact = api.ready(0).await;
    let authorization = format!("Authorization: Bearer {}", api.token());
    for path in [
        "/artifacts/../../etc/passwd",
        "/artifacts/..%2f..%2fetc%2fpasswd",
        "/artifacts/%00",
        "/artifacts/",
        "/artifacts/no-such",
        "/etc/passwd",
    ] {
        let (status, _) = get(stage.http(), path, &[&authorization]).await;
        assert!(status == 404 || status == 400, "{path}: {status}");
    }
    assert_eq!(api.fetch(&artifact).await.0, 200);
}
