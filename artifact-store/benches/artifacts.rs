//! How long an artifact takes to be committed, and how fast it is fetched, beside the same bytes
//! given by a bare route from memory in the same run.
//!
//! `cargo bench -p tributary-artifact-store`. One line a measurement; times are medians.
#![allow(clippy::unwrap_used, reason = "a measurement that can't go on has failed")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tributary_artifact_store::{
    DiskConfig, Facts, FetchConfig, Fetcher, ReuseKey, ServeConfig, SpooledArtifact, WorkerDisk,
    serve,
};
use tributary_catalog::Store;

const SESSION: SessionId = SessionId(1);
const FACTS: Facts = Facts { row_count: 0, min_ts: 0, max_ts: 0, parquet_schema_version: 1 };
const SIZES: [(usize, usize); 3] = [(4 << 10, 500), (1 << 20, 60), (32 << 20, 8)];

fn main() {
    // Under `cargo test` a bench only shows that it runs.
    let rounds = |n: usize| if std::env::args().any(|arg| arg == "--bench") { n } else { 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for sync_artifacts in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let disk = open(folder.path(), sync_artifacts);
        for (size, n) in SIZES {
            let took = runtime.block_on(commits(&disk, size, rounds(n)));
            let sync = if sync_artifacts { ", on the disk itself" } else { "" };
            report(&format!("commit{sync}"), size, took);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), false);
    for (size, n) in SIZES {
        let (ours, bare) = runtime.block_on(fetches(&disk, size, rounds(n)));
        report("fetch and verify", size, ours);
        report("fetch and verify, bare route", size, bare);
    }
}

fn open(folder: &std::path::Path, sync_artifacts: bool) -> WorkerDisk {
    let folder = folder.to_owned();
    let config = DiskConfig { folder, sync_artifacts, ..DiskConfig::default() };
    WorkerDisk::open(&config, Store::in_memory()).unwrap().0
}

fn report(what: &str, size: usize, took: Duration) {
    #[expect(clippy::cast_precision_loss, reason = "a few megabytes, for people")]
    let rate = size as f64 / 1e6 / took.as_secs_f64();
    println!("{what}: {} KiB in {took:.1?}, {rate:.0} MB/s", size >> 10);
}

async fn make(disk: &WorkerDisk, key: u64, bytes: &[u8]) -> SpooledArtifact {
    let mut reuse = [0; 32];
    reuse[..8].copy_from_slice(&key.to_le_bytes());
    let mut writer = disk.spool().turn(ReuseKey(reuse)).await.begin().unwrap();
    writer.write_all(bytes).unwrap();
    writer.commit(SESSION, FACTS, Moment::ZERO).unwrap()
}

async fn commits(disk: &WorkerDisk, size: usize, rounds: usize) -> Duration {
    let bytes = vec![7; size];
    let mut times = Vec::new();
    for round in 0..rounds {
        let begun = Instant::now();
        let artifact = make(disk, round as u64, &bytes).await;
        times.push(begun.elapsed());
        disk.spool().release(artifact.id);
    }
    median(times)
}

async fn fetches(disk: &WorkerDisk, size: usize, rounds: usize) -> (Duration, Duration) {
    let bytes = Bytes::from(vec![7; size]);
    let token = disk.spool().open_session(SESSION).reveal();
    let artifact = make(disk, 0, &bytes).await;
    let given = bytes.clone();
    let bare = Router::new().route("/", get(|| async move { given }));
    let ours = start(serve::routes(disk.spool().clone())).await;
    let bare = start(bare).await;
    let checksum = Checksum(Sha256::digest(&bytes).into());
    let fetcher = Fetcher::new(FetchConfig::default()).unwrap();
    let (mut with_spool, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begun = Instant::now();
        let url = artifact.announce(&ours).url;
        fetcher.fetch(&url, &token, size as u64, checksum).await.unwrap();
        with_spool.push(begun.elapsed());
        let begun = Instant::now();
        fetcher.fetch(&bare, &token, size as u64, checksum).await.unwrap();
        without.push(begun.elapsed());
    }
    disk.spool().release(artifact.id);
    (median(with_spool), median(without))
}

async fn start(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve::serve(listener, routes, ServeConfig::default(), std::future::pending()));
    format!("http://{address}")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
