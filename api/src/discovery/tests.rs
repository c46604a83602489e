//! Discovery with a fixed list and with names that a script resolves; what APIs of others say has suites
//! of its own.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use tokio::time::Instant;

use super::dns::{DnsSource, Resolve};
use super::*;

/// A name server that follows a script: addresses, or a failure where there are none. The last line
/// holds for ever.
struct Scripted {
    lines: VecDeque<&'static [&'static str]>,
    asked: mpsc::Sender<Instant>,
}

impl Resolve for Scripted {
    async fn resolve(&mut self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        assert_eq!((host, port), ("workers.local", 9470));
        let _ = self.asked.send(Instant::now()).await;
        let line = if self.lines.len() > 1 { self.lines.pop_front() } else { None };
        let line = line.unwrap_or_else(|| self.lines[0]);
        if line.is_empty() {
            return Err(io::Error::other("no such host"));
        }
        Ok(line.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).collect())
    }
}

fn scripted(lines: &[&'static [&'static str]]) -> (Scripted, mpsc::Receiver<Instant>) {
    let (asked, asks) = mpsc::channel(1_000);
    (Scripted { lines: lines.iter().copied().collect(), asked }, asks)
}

async fn next(changes: &mut mpsc::Receiver<Change>) -> String {
    match changes.recv().await.expect("discovery goes on") {
        Change::Appeared(endpoint) => format!("+{endpoint}"),
        Change::Gone(endpoint) => format!("-{endpoint}"),
    }
}

#[tokio::test]
async fn a_fixed_list_is_told_once() {
    let (mut discovery, mut changes) = Discovery::new(Pace::default(), 1);
    discovery.ask_at(&"static:b:1,a:1".parse().unwrap()).unwrap();
    assert_eq!(
        (next(&mut changes).await, next(&mut changes).await),
        ("+a:1".into(), "+b:1".into())
    );
    assert_eq!(discovery.figures().sources()[0].endpoints, 2);
    drop(discovery);
    assert_eq!(changes.recv().await, None, "nothing more was to be told");
}

#[tokio::test(start_paused = true)]
async fn names_are_looked_up_again_and_every_address_is_a_worker() {
    let (resolver, mut asks) =
        scripted(&[&["10.0.0.1", "10.0.0.2"], &["10.0.0.2", "::1"], &["::1"]]);
    let (mut discovery, mut changes) = Discovery::new(Pace::default(), 1);
    let pace = Pace::default();
    discovery.add("dns", DnsSource::new("workers.local", 9470, resolver, &pace));
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(next(&mut changes).await);
    }
    let expected =
        ["+10.0.0.1:9470", "+10.0.0.2:9470", "+[::1]:9470", "-10.0.0.1:9470", "-10.0.0.2:9470"];
    assert_eq!(told, expected);
    let (first, second) = (asks.recv().await.unwrap(), asks.recv().await.unwrap());
    assert_eq!(second - first, pace.dns_interval);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_keeps_its_answer_and_is_asked_again_after_growing_pauses() {
    let (resolver, mut asks) =
        scripted(&[&["10.0.0.1"], &[], &[], &[], &[], &["10.0.0.1", "10.0.0.2"]]);
    let pace = Pace::default();
    let (mut discovery, mut changes) = Discovery::new(pace, 7);
    discovery.add("dns", DnsSource::new("workers.local", 9470, resolver, &pace));
    assert_eq!(next(&mut changes).await, "+10.0.0.1:9470");
    // Nothing is told of the failures: the next thing that is heard is the second worker.
    assert_eq!(next(&mut changes).await, "+10.0.0.2:9470");
    let view = discovery.figures().sources().remove(0);
    assert_eq!((view.failures, view.is_failing, view.endpoints), (4, false, 2));
    let mut times = Vec::new();
    for _ in 0..6 {
        times.push(asks.recv().await.unwrap());
    }
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (failures, pause) in (1..).zip(&pauses[1..]) {
        let expected = reconnect::pause(7, "dns", failures, pace.retry_base, pace.retry_max);
        // Tokio's clock moves in whole milliseconds.
        assert!(pause.abs_diff(expected) < Duration::from_millis(2), "{pause:?} {expected:?}");
    }
    assert!(pauses[4] > pauses[1] * 2, "{pauses:?}");
}

/// A source that never answers.
struct Mute;

impl Resolve for Mute {
    async fn resolve(&mut self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_server_that_does_not_answer_is_a_failure() {
    let pace = Pace::default();
    let mut source = DnsSource::new("workers.local", 9470, Mute, &pace);
    let error = source.next().await.unwrap_err();
    assert!(matches!(error, SourceError::Silent { after } if after == pace.answer_timeout));
}

#[tokio::test]
async fn too_many_workers_are_not_believed() {
    let endpoints = (0..=ENDPOINTS_MAX).map(|n| Endpoint::new(&format!("w{n}:1")).unwrap());
    let endpoints: BTreeSet<_> = endpoints.collect();
    assert!(matches!(checked(endpoints.clone()), Err(SourceError::TooMany { .. })));
    assert!(checked(endpoints.into_iter().skip(1).collect()).is_ok());
}

#[tokio::test]
async fn the_resolver_of_the_system_knows_this_machine() {
    let mut resolver = dns::SystemResolver;
    let found = resolver.resolve("localhost", 9470).await.unwrap();
    assert!(found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
}

#[cfg(not(any(feature = "kubernetes", feature = "ecs")))]
#[tokio::test]
async fn a_build_without_a_source_says_so() {
    let (mut discovery, _changes) = Discovery::new(Pace::default(), 1);
    for (place, feature) in [("kubernetes:a/b:1", "kubernetes"), ("ecs:a/b:1", "ecs")] {
        let error = discovery.ask_at(&place.parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains(feature), "{error}");
    }
}
