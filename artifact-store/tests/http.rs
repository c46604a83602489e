//! Artifacts over a real socket: what a good peer gets, and what bad ones do not.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod common;

use std::time::Duration;

use common::{Server, eventually, make, noise};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tributary_artifact_store::ServeConfig;

/// Limits that are reached within a test.
fn impatient() -> ServeConfig {
    ServeConfig {
        head_timeout: Duration::from_millis(300),
        stall_timeout: Duration::from_millis(300),
        stop_timeout: Duration::from_millis(500),
        ..ServeConfig::default()
    }
}

#[tokio::test]
async fn an_artifact_is_served_whole_with_its_checksum_as_etag() {
    let server = Server::start(ServeConfig::default()).await;
    // In one piece, in several, and nothing at all.
    for size in [1000, 3 << 20, 0] {
        let bytes = noise(size as u64, size);
        let artifact = make(&server.disk, [1; 32], &bytes).await.unwrap();
        let answer = server.get(&artifact, &[]).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == bytes, "{size}");
        let etag = format!("\"{}\"", artifact.checksum);
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
        assert_eq!(answer.header("content-length"), Some(size.to_string().as_str()));
        assert_eq!(answer.header("accept-ranges"), Some("bytes"));
        let target = format!("/artifacts/{}?token={}", artifact.id, server.token.reveal());
        assert!(server.ask("GET", &target, &[]).await.body == bytes, "the token in the address");
        let head = server.ask("HEAD", &target, &[]).await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.headers, answer.headers);
        server.disk.spool().release(artifact.id);
    }
    server.stop().await;
}

#[tokio::test]
async fn ranges_are_served_and_those_beyond_the_end_refused() {
    let server = Server::start(ServeConfig::default()).await;
    let bytes = noise(7, 1 << 20);
    let artifact = make(&server.disk, [1; 32], &bytes).await.unwrap();
    let last = bytes.len() - 1;
    for (range, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=100-700000".to_owned(), 100, 700_001),
        ("bytes=1000000-".to_owned(), 1_000_000, bytes.len()),
        (format!("bytes={last}-99999999"), last, bytes.len()),
        ("bytes=-10".to_owned(), bytes.len() - 10, bytes.len()),
    ] {
        let answer = server.get(&artifact, &[("Range", &range)]).await;
        assert_eq!(answer.status, 206, "{range}");
        assert!(answer.body == bytes[from..to], "{range}");
        let told = format!("bytes {from}-{}/{}", to - 1, bytes.len());
        assert_eq!(answer.header("content-range"), Some(told.as_str()));
    }
    for beyond in
        ["bytes=1048576-", "bytes=1048576-1048577", "bytes=99999999999999999999-", "bytes=-0"]
    {
        let answer = server.get(&artifact, &[("Range", beyond)]).await;
        assert_eq!((answer.status, answer.body.len()), (416, 0), "{beyond}");
        assert_eq!(answer.header("content-range"), Some("bytes */1048576"));
    }
    for ignored in ["bytes=0-1,5-6", "bytes=5-1", "lines=1-2", "bytes=x-"] {
        let answer = server.get(&artifact, &[("Range", ignored)]).await;
        assert_eq!((answer.status, answer.body.len()), (200, bytes.len()), "{ignored}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_a_peer_has_already_is_not_sent_again() {
    let server = Server::start(ServeConfig::default()).await;
    let artifact = make(&server.disk, [1; 32], b"hello").await.unwrap();
    let etag = format!("\"{}\"", artifact.checksum);
    let answer = server.get(&artifact, &[("If-None-Match", &etag)]).await;
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    let answer = server.get(&artifact, &[("If-None-Match", "\"other\"")]).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
    let answer = server.get(&artifact, &[("Range", "bytes=1-2"), ("If-Range", &etag)]).await;
    assert_eq!((answer.status, answer.body.as_slice()), (206, &b"el"[..]));
    let answer = server.get(&artifact, &[("Range", "bytes=1-2"), ("If-Range", "\"x\"")]).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_token_a_wrong_name_and_a_forged_path_all_look_the_same() {
    let server = Server::start(ServeConfig::default()).await;
    let artifact = make(&server.disk, [1; 32], b"secret").await.unwrap();
    let good = format!("Bearer {}", server.token.reveal());
    let stranger = server.disk.spool().open_session(core_workcoord::id::SessionId(2));
    let stranger = format!("Bearer {}", stranger.reveal());
    let here = format!("/artifacts/{}", artifact.id);
    let unknown = "/artifacts/00000000000000000000000000000000";
    let reference = server.ask("GET", unknown, &[("Authorization", &good)]).await;
    assert_eq!((reference.status, reference.body.len()), (404, 0));
    let upper = server.token.reveal().to_uppercase();
    let tokens =
        [&stranger, "Bearer ", "Bearer x", "Basic x", "Bearer", &format!("Bearer {upper}")];
    for token in tokens {
        assert_eq!(
            server.ask("GET", &here, &[("Authorization", token)]).await,
            reference,
            "{token}"
        );
    }
    for target in
        [here.clone(), format!("{here}?token="), format!("{here}?token=%00"), format!("{here}?x")]
    {
        assert_eq!(server.ask("GET", &target, &[]).await, reference, "{target}");
    }
    for forged in [
        "/artifacts/..%2f..%2fetc%2fpasswd",
        "/artifacts/%2e%2e%2f%2e%2e%2ftributary-worker.lock",
        "/artifacts/..",
        "/artifacts/%00",
        "/artifacts/%ff%fe",
        "/artifacts/C:%5cwindows",
        "/artifacts/*",
        &format!("{here}.artifact"),
        &here.to_uppercase().replace("/ARTIFACTS/", "/artifacts/x"),
        &format!("/artifacts/{}", "0".repeat(8000)),
    ] {
        let answer = server.ask("GET", forged, &[("Authorization", &good)]).await;
        assert_eq!(answer, reference, "{forged}");
    }
    for forged in ["/artifacts/../../etc/passwd", "/../spool", "/artifacts/", "/"] {
        let answer = server.ask("GET", forged, &[("Authorization", &good)]).await;
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{forged}");
    }
    for method in ["POST", "PUT", "DELETE", "TRACE"] {
        assert_eq!(server.ask(method, &here, &[("Authorization", &good)]).await.status, 405);
    }
    assert_eq!(server.get(&artifact, &[]).await.body, b"secret", "it was here all the time");
    assert!(server.disk.figures().counts.artifacts_refused > 15);
    server.stop().await;
}

#[tokio::test]
async fn nonsense_and_giants_are_refused_without_harm() {
    let server = Server::start(impatient()).await;
    let artifact = make(&server.disk, [1; 32], b"fine").await.unwrap();
    let giant = format!("GET / HTTP/1.1\r\nHost: w\r\nX: {}\r\n\r\n", "x".repeat(64 << 10));
    assert_eq!(server.say(&giant).await.status, 431);
    for nonsense in
        ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(nonsense.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = timeout(Duration::from_secs(2), stream.read_to_end(&mut answer)).await;
        read.expect("it is closed").unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{nonsense:?}");
    }
    assert_eq!(server.get(&artifact, &[]).await.body, b"fine");
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let server = Server::start(impatient()).await;
    let begun = Instant::now();
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut dripping = TcpStream::connect(server.address).await.unwrap();
    let drip = async {
        for letter in "GET /artifacts/0 HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".chars() {
            if dripping.write_all(letter.to_string().as_bytes()).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        let mut rest = Vec::new();
        _ = dripping.read_to_end(&mut rest).await;
    };
    let wait = async {
        let mut nothing = Vec::new();
        _ = silent.read_to_end(&mut nothing).await;
    };
    timeout(Duration::from_secs(5), async { tokio::join!(drip, wait) }).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4));
    server.stop().await;
}

/// Starts to read a large answer and stops; gives the connection back.
async fn stalled(server: &Server, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: w\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.read_exact(&mut [0; 100]).await.unwrap();
    stream
}

#[tokio::test]
async fn a_peer_that_never_reads_or_only_drips_is_cut_off_and_its_artifact_let_go() {
    let server = Server::start(impatient()).await;
    let bytes = noise(1, 48 << 20);
    let artifact = make(&server.disk, [1; 32], &bytes).await.unwrap();
    let target = format!("/artifacts/{}?token={}", artifact.id, server.token.reveal());
    let never = stalled(&server, &target).await;
    let mut drips = stalled(&server, &target).await;
    // Released while both have it open: it stays on disk for them, and for nobody else.
    server.disk.spool().release(artifact.id);
    assert_eq!(server.ask("GET", &target, &[]).await.status, 404);
    assert_eq!(server.disk.figures().spool_bytes, bytes.len() as u64);
    let drip = async {
        let mut one = [0; 1];
        while drips.read_exact(&mut one).await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let disk = server.disk.clone();
    tokio::select! {
        () = eventually("letting go", || disk.figures().spool_bytes == 0) => {}
        () = drip => {}
    }
    eventually("letting go", || disk.figures().spool_bytes == 0).await;
    drop(never);
    server.disk.audit().unwrap();
    server.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_and_are_served_later() {
    let server = Server::start(ServeConfig { connections: 2, ..impatient() }).await;
    let artifact = make(&server.disk, [1; 32], b"patience").await.unwrap();
    let first = TcpStream::connect(server.address).await.unwrap();
    let second = TcpStream::connect(server.address).await.unwrap();
    // Both say nothing and are cut off in time; then it is our turn.
    let answer = timeout(Duration::from_secs(5), server.get(&artifact, &[])).await.unwrap();
    assert_eq!(answer.body, b"patience");
    drop((first, second));
    server.stop().await;
}

#[tokio::test]
async fn an_answer_under_way_is_finished_when_the_server_stops() {
    let server = Server::start(ServeConfig::default()).await;
    let bytes = noise(1, 16 << 20);
    let artifact = make(&server.disk, [1; 32], &bytes).await.unwrap();
    let target = format!("/artifacts/{}?token={}", artifact.id, server.token.reveal());
    let mut stream = stalled(&server, &target).await;
    let rest = tokio::spawn(async move {
        sleep(Duration::from_millis(100)).await;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    });
    server.stop().await;
    assert!(rest.await.unwrap().ends_with(&bytes[bytes.len() - 1000..]));
}
