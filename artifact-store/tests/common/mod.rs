//! What the tests share: a worker's disk in a folder of its own, artifacts in it, a server before it.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tributary_artifact_store::{
    DiskConfig, DiskError, Facts, LostArtifacts, ReuseKey, ServeConfig, SpooledArtifact, Token,
    WorkerDisk, serve,
};
use tributary_catalog::Store;

pub const FACTS: Facts = Facts { row_count: 1, min_ts: 0, max_ts: 9, parquet_schema_version: 1 };
pub const SESSION: SessionId = SessionId(1);

pub fn config(folder: &Path) -> DiskConfig {
    DiskConfig {
        folder: folder.to_owned(),
        capacity_bytes: Some(256 << 20),
        keep_free_bytes: 0,
        ..DiskConfig::default()
    }
}

pub fn open(config: &DiskConfig) -> (WorkerDisk, LostArtifacts) {
    WorkerDisk::open(config, Store::in_memory()).unwrap()
}

/// Bytes that are all over the place, the same for the same seed.
pub fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut dice = seed.wrapping_mul(2).wrapping_add(1);
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(dice >> 24).to_le_bytes()[..4]);
    }
    bytes.truncate(size);
    bytes
}

pub async fn make(
    disk: &WorkerDisk,
    key: [u8; 32],
    bytes: &[u8],
) -> Result<SpooledArtifact, DiskError> {
    let turn = disk.spool().turn(ReuseKey(key)).await;
    let mut writer = turn.begin()?;
    if writer.write_all(bytes).is_err() {
        return Err(writer.failure().expect("it says why"));
    }
    writer.commit(SESSION, FACTS, Moment::ZERO)
}

/// A worker's HTTP side on a real socket.
pub struct Server {
    pub disk: WorkerDisk,
    pub token: Token,
    pub address: SocketAddr,
    pub lost: LostArtifacts,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// An answer, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Server {
    pub async fn start(serve_config: ServeConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (disk, lost) = open(&config(folder.path()));
        let token = disk.spool().open_session(SESSION);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let routes = serve::routes(disk.spool().clone());
        let served = tokio::spawn(serve::serve(listener, routes, serve_config, async {
            _ = stopped.await;
        }));
        Self { disk, token, address, lost, stop, served, _folder: folder }
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(5), self.served).await.unwrap().unwrap();
    }

    /// Sends bytes as they are, with a wish to close, and takes the answer apart.
    pub async fn say(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        // The server may close while we still have something to say.
        _ = stream.read_to_end(&mut bytes).await;
        Answer::parse(&bytes)
    }

    pub async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: w\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.say(&format!("{request}\r\n")).await
    }

    /// Asks for an artifact with the right token.
    pub async fn get(&self, artifact: &SpooledArtifact, headers: &[(&str, &str)]) -> Answer {
        let bearer = format!("Bearer {}", self.token.reveal());
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend(headers);
        self.ask("GET", &format!("/artifacts/{}", artifact.id), &all).await
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .filter(|(name, _)| name != "date")
            .collect();
        headers.sort();
        Self { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Waits until something holds, and fails if it does not for long.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}
