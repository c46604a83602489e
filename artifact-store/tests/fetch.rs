//! Fetching from good workers and from bad ones: only what was announced ever comes out.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod common;

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use common::{Server, make, noise};
use core_workcoord::artifact::Checksum;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tributary_artifact_store::{
    FetchConfig, FetchError, Fetcher, Mismatch, ServeConfig, VerifiedFile,
};

fn fetcher() -> Fetcher {
    let config = FetchConfig {
        backoff: Duration::from_millis(1),
        backoff_max: Duration::from_millis(4),
        read_timeout: Duration::from_millis(300),
        ..FetchConfig::default()
    };
    Fetcher::new(config).unwrap()
}

/// A worker that gives these answers, one a connection, then no more. Gives its address, and what
/// it was asked.
async fn liar(answers: Vec<Vec<u8>>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/artifacts/00", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            asked.push(String::from_utf8(request).unwrap());
            _ = stream.write_all(&answer).await;
        }
        asked
    });
    (address, asked)
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    [
        format!("HTTP/1.1 {}\r\nConnection: close\r\n\r\n", head.replace('\n', "\r\n")).as_bytes(),
        body,
    ]
    .concat()
}

fn read(artifact: &VerifiedFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    artifact.file().read_to_end(&mut bytes).unwrap();
    bytes
}

fn sum(bytes: &[u8]) -> Checksum {
    Checksum(Sha256::digest(bytes).into())
}

#[tokio::test]
async fn what_was_announced_is_fetched_and_verified() {
    let server = Server::start(ServeConfig::default()).await;
    let bytes = noise(3, 5 << 20);
    let artifact = make(&server.disk, [1; 32], &bytes).await.unwrap();
    let announced = artifact.announce(&server.base());
    let token = server.token.reveal();
    let fetcher = fetcher();
    let fetch = async |token: &str, size: u64, checksum| {
        fetcher.fetch(&announced.url, token, size, checksum).await
    };
    let got = fetch(&token, announced.size_bytes, announced.checksum).await.unwrap();
    assert!(got.bytes() == &Bytes::from(bytes));
    let (size, checksum) = (announced.size_bytes, announced.checksum);
    let filed = fetcher.fetch_to_file(&announced.url, &token, size, checksum).await.unwrap();
    assert!(read(&filed) == got.bytes().as_ref());
    let gone = fetch("wrong", announced.size_bytes, announced.checksum).await;
    assert!(matches!(gone, Err(FetchError::Gone)), "{gone:?}");
    for size in [announced.size_bytes - 1, announced.size_bytes + 1] {
        let wrong = fetch(&token, size, announced.checksum).await;
        assert!(matches!(wrong, Err(FetchError::Mismatch(Mismatch::Size { .. }))), "{wrong:?}");
    }
    let wrong = fetch(&token, announced.size_bytes, Checksum([1; 32])).await;
    assert!(matches!(wrong, Err(FetchError::Mismatch(Mismatch::Checksum { .. }))), "{wrong:?}");
    server.disk.spool().release(artifact.id);
    let gone = fetch(&token, announced.size_bytes, announced.checksum).await;
    assert!(matches!(gone, Err(FetchError::Gone)), "{gone:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_broken_connection_is_taken_up_where_it_broke() {
    let (address, asked) = liar(vec![
        answer("200 OK\nContent-Length: 10", b"01234"),
        answer("206 Partial Content\nContent-Length: 5\nContent-Range: bytes 5-9/10", b"567"),
        answer("206 Partial Content\nContent-Length: 2\nContent-Range: bytes 8-9/10", b"89"),
    ])
    .await;
    let got = fetcher().fetch(&address, "t", 10, sum(b"0123456789")).await.unwrap();
    assert_eq!(got.bytes().as_ref(), b"0123456789");
    let asked = asked.await.unwrap();
    let ranges: Vec<_> = asked.iter().map(|text| text.to_lowercase()).collect();
    assert!(ranges.iter().all(|text| text.contains("authorization: bearer t\r\n")));
    assert!(!ranges[0].contains("range:"));
    assert!(ranges[1].contains("\r\nrange: bytes=5-\r\n"));
    assert!(ranges[1].contains(&format!("if-range: \"{}\"", sum(b"0123456789"))));
    assert!(ranges[2].contains("\r\nrange: bytes=8-\r\n"));
}

#[tokio::test]
async fn a_worker_that_starts_over_is_listened_to_from_the_start() {
    let (address, _asked) = liar(vec![
        answer("200 OK\nContent-Length: 10", b"01234"),
        answer("200 OK\nContent-Length: 10", b"0123456789"),
    ])
    .await;
    let got = fetcher().fetch(&address, "t", 10, sum(b"0123456789")).await.unwrap();
    assert_eq!(got.bytes().len(), 10);
}

#[tokio::test]
async fn into_a_file_too_it_is_taken_up_where_it_broke_or_from_the_start() {
    for second in [
        answer("206 Partial Content\nContent-Length: 5\nContent-Range: bytes 5-9/10", b"56789"),
        answer("200 OK\nContent-Length: 10", b"0123456789"),
    ] {
        let (address, _asked) =
            liar(vec![answer("200 OK\nContent-Length: 10", b"01234"), second]).await;
        let got = fetcher().fetch_to_file(&address, "t", 10, sum(b"0123456789")).await.unwrap();
        assert_eq!(read(&got), b"0123456789");
    }
}

#[tokio::test]
async fn more_bytes_than_announced_are_not_taken() {
    // Without a length and without an end.
    let (address, _asked) = liar(vec![answer("200 OK", &vec![b'x'; 8 << 20])]).await;
    let wrong = fetcher().fetch(&address, "t", 1000, sum(b"x")).await;
    assert!(
        matches!(wrong, Err(FetchError::Mismatch(Mismatch::Size { expected: 1000, .. }))),
        "{wrong:?}"
    );
}

#[tokio::test]
async fn other_bytes_than_announced_are_refused() {
    let (address, _asked) = liar(vec![answer("200 OK\nContent-Length: 4", b"evil")]).await;
    let wrong = fetcher().fetch(&address, "t", 4, sum(b"good")).await;
    assert!(matches!(wrong, Err(FetchError::Mismatch(Mismatch::Checksum { .. }))), "{wrong:?}");
}

#[tokio::test]
async fn a_range_that_starts_elsewhere_is_refused() {
    let (address, _asked) = liar(vec![
        answer("200 OK\nContent-Length: 10", b"01234"),
        answer("206 Partial Content\nContent-Length: 5\nContent-Range: bytes 4-8/10", b"45678"),
    ])
    .await;
    let wrong = fetcher().fetch(&address, "t", 10, sum(b"0123456789")).await;
    assert!(matches!(wrong, Err(FetchError::Answer { status: 206 })), "{wrong:?}");
}

#[tokio::test]
async fn nobody_is_followed_elsewhere() {
    let server = Server::start(ServeConfig::default()).await;
    let artifact = make(&server.disk, [1; 32], b"elsewhere").await.unwrap();
    let target =
        format!("{}?token={}", artifact.announce(&server.base()).url, server.token.reveal());
    let (address, _asked) =
        liar(vec![answer(&format!("302 Found\nLocation: {target}"), b"")]).await;
    let wrong = fetcher().fetch(&address, "t", 9, artifact.checksum).await;
    assert!(matches!(wrong, Err(FetchError::Answer { status: 302 })), "{wrong:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_worker_that_falls_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/artifacts/00", listener.local_addr().unwrap());
    let silent = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    let begun = std::time::Instant::now();
    let wrong = fetcher().fetch(&address, "t", 4, sum(b"good")).await;
    assert!(matches!(wrong, Err(FetchError::Unreachable(_))), "{wrong:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    silent.abort();
}
