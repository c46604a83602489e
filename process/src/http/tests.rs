//! Connections come and go: their addresses are known, and closing waits for what runs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Closing, HttpConfig, Server};
use crate::config::Span;

struct Port {
    address: SocketAddr,
    told: CancellationToken,
    ended: JoinHandle<usize>,
}

async fn port(grace: Duration) -> Port {
    let routes = Router::new()
        .route(
            "/who",
            get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }),
        )
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                "done"
            }),
        )
        .route("/echo", post(|body: String| async { body }))
        .route("/never", get(|| async { std::future::pending::<String>().await }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = Closing { told: CancellationToken::new(), grace };
    let told = closing.told.clone();
    let config = HttpConfig { request_timeout: Span::millis(400), ..HttpConfig::default() };
    let server = Server::new(listener, routes, config);
    Port { address, told, ended: tokio::spawn(server.serve(closing)) }
}

async fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn handlers_know_the_peer() {
    let port = port(Duration::ZERO).await;
    let mut stream = ask(port.address, "/who").await;
    let own = stream.local_addr().unwrap().to_string();
    let mut answer = vec![0; 512];
    let length = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.ends_with(&own), "{answer}");
}

#[tokio::test]
async fn closing_lets_what_runs_end_and_closes_what_is_idle() {
    let port = port(Duration::from_secs(20)).await;
    let slow = ask(port.address, "/slow").await;
    let idle = TcpStream::connect(port.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    port.told.cancel();
    let (slow, idle, cut) = tokio::join!(rest(slow), rest(idle), port.ended);
    assert!(slow.ends_with("done"), "{slow}");
    assert_eq!((idle.as_str(), cut.unwrap()), ("", 0));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(TcpStream::connect(port.address).await.is_err());
}

#[tokio::test]
async fn closing_cuts_what_does_not_end() {
    let port = port(Duration::from_millis(100)).await;
    let mut never = ask(port.address, "/never").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    port.told.cancel();
    assert_eq!(port.ended.await.unwrap(), 1);
    let mut nothing = [0; 1];
    assert!(matches!(never.read(&mut nothing).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_ends_its_request() {
    let port = port(Duration::ZERO).await;
    let head =
        "POST /echo HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
    let mut whole = TcpStream::connect(port.address).await.unwrap();
    whole.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    whole.write_all(b"body").await.unwrap();
    assert!(rest(whole).await.ends_with("\r\n\r\nbody"));
    let mut slow = TcpStream::connect(port.address).await.unwrap();
    slow.write_all(format!("{head}bo").as_bytes()).await.unwrap();
    let begun = Instant::now();
    let answer = tokio::time::timeout(Duration::from_secs(20), rest(slow)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
}
