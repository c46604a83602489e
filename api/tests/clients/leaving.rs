//! Clients that are slow, and clients that go away, over connections of a few bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tributary_artifact_store::serve::{ServeConfig, serve_connection};

use crate::memory::{Told, done, values_at};
use crate::reply::over_shared;

/// A connection that holds so many bytes, with a request already sent.
async fn connect(
    routes: Router,
    holds: usize,
    address: &str,
    tasks: &mut JoinSet<()>,
) -> DuplexStream {
    let (near, mut far) = duplex(holds);
    tasks.spawn(async move {
        let never = std::future::pending();
        _ = serve_connection(near, routes, &ServeConfig::default(), never).await;
    });
    let request = format!("GET {address} HTTP/1.1\r\nHost: test\r\n\r\n");
    far.write_all(request.as_bytes()).await.unwrap();
    far
}

/// A query whose results never end, and how many chunks of it somebody took.
fn endless() -> (Router, Arc<AtomicUsize>, mpsc::Receiver<()>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let (dropped, drops) = mpsc::channel(8);
    let told = {
        let taken = Arc::clone(&taken);
        Told::by(move |_, sender| {
            let (taken, dropped) = (Arc::clone(&taken), dropped.clone());
            async move {
                let ts: Vec<i64> = (0..1_000).collect();
                while sender.send(values_at(&ts, 0.5)).await.is_ok() {
                    taken.fetch_add(1, Ordering::SeqCst);
                }
                dropped.send(()).await.unwrap();
            }
        })
    };
    (over_shared(told), taken, drops)
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_makes_the_query_wait() {
    let (routes, taken, _drops) = endless();
    let mut tasks = JoinSet::new();
    let mut client = connect(routes, 4096, "/api/v1/metrics/query?q=up", &mut tasks).await;
    // Somebody who reads nothing gets what fits into buffers on the way, and then nothing happens.
    sleep(Duration::from_secs(5)).await;
    let waiting = taken.load(Ordering::SeqCst);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(taken.load(Ordering::SeqCst), waiting, "nothing is produced for nobody");
    assert!(waiting < 20, "{waiting} chunks wait somewhere");
    // Reading on, it goes on.
    let mut read = vec![0; 1 << 20];
    client.read_exact(&mut read).await.unwrap();
    assert!(taken.load(Ordering::SeqCst) > waiting);
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_drops_the_query_at_once() {
    let (routes, _, mut drops) = endless();
    let mut tasks = JoinSet::new();
    for read_first in [1, 10_000] {
        let mut client =
            connect(routes.clone(), 4096, "/api/v1/metrics/query?q=up", &mut tasks).await;
        client.read_exact(&mut vec![0; read_first]).await.unwrap();
        drop(client);
        let dropped = timeout(Duration::from_secs(5), drops.recv()).await;
        assert_eq!(dropped, Ok(Some(())), "after {read_first} bytes");
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_nothing_flows_drops_the_query_too() {
    for path in
        ["metrics/query?q=up", "query?query=up", "query_range?query=up&start=0&end=1&step=1"]
    {
        let (dropped, mut drops) = mpsc::channel(1);
        let (begun, mut begins) = mpsc::channel(1);
        let told = Told::by(move |_, sender| {
            let (begun, dropped) = (begun.clone(), dropped.clone());
            async move {
                begun.send(()).await.unwrap();
                sender.closed().await;
                dropped.send(()).await.unwrap();
            }
        });
        let mut tasks = JoinSet::new();
        let address = format!("/api/v1/{path}");
        let routes = over_shared(told);
        let client = connect(routes.clone(), 4096, &address, &mut tasks).await;
        begins.recv().await.unwrap();
        drop(client);
        let dropped = timeout(Duration::from_secs(5), drops.recv()).await;
        assert_eq!(dropped, Ok(Some(())), "{path}");
    }
}

#[tokio::test]
async fn results_flow_before_the_query_is_done() {
    let go_on = Arc::new(Notify::new());
    let told = {
        let go_on = Arc::clone(&go_on);
        Told::by(move |_, sender| {
            let go_on = Arc::clone(&go_on);
            async move {
                sender.send(values_at(&[0], 1.0)).await.unwrap();
                go_on.notified().await;
                sender.send(done()).await.unwrap();
            }
        })
    };
    let mut tasks = JoinSet::new();
    let mut client =
        connect(over_shared(told), 1 << 16, "/api/v1/metrics/query?q=up", &mut tasks).await;
    let mut seen = String::new();
    while !seen.contains("\"result\"") {
        seen.push_str(&read_some(&mut client).await);
    }
    assert!(!seen.contains("\"done\""));
    go_on.notify_one();
    while !seen.contains("\"done\"") {
        seen.push_str(&read_some(&mut client).await);
    }
}

async fn read_some(client: &mut DuplexStream) -> String {
    let mut buffer = [0; 4096];
    let read = timeout(Duration::from_secs(5), client.read(&mut buffer)).await.unwrap().unwrap();
    assert!(read > 0, "the stream ended early");
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}
