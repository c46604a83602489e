//! A worker: its process, its name and cache that outlive it, the road to it, and the link over which it
//! reads the store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{CacheDir, Program, Road};
use crate::bucket::Access;
use crate::error::ChaosError;
use crate::link::Link;
use crate::process::Process;

/// Settings of every worker of a run: artifacts that were fetched go soon, so that work is done and
/// not only looked up.
const SETTINGS: [&str; 3] =
    ["artifacts.ttl_after_ack=300ms", "artifacts.ttl=2m", "drain.timeout=20s"];

/// Where Debian keeps the library that lies about the time.
const FAKE_CLOCKS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// A worker, running or not.
#[derive(Debug)]
pub struct WorkerNode {
    /// Its process, where it runs.
    pub process: Option<Process>,
    /// API nodes reach it over this.
    pub road: Road,
    /// Where it keeps its files.
    pub cache: CacheDir,
    program: Program,
    /// The store is read over it where there is no wire.
    store_link: Link,
    /// The store itself.
    access: Access,
    name: String,
    log: PathBuf,
    clock: PathBuf,
    settings: Vec<String>,
    /// Settings of its next life alone.
    next_settings: Vec<String>,
}

impl WorkerNode {
    /// One that does not run yet.
    pub(super) async fn new(
        program: Program,
        number: usize,
        folder: &Path,
        road: Road,
        access: Access,
        settings: Vec<String>,
    ) -> Result<Self, ChaosError> {
        let name = format!("worker-{number}");
        let store = access.address;
        let this = Self {
            process: None,
            road,
            store_link: Link::new().await?,
            cache: CacheDir::new(folder.join(&name))?,
            program,
            access,
            log: folder.join(format!("{name}.log")),
            clock: folder.join(format!("{name}.clock")),
            name,
            settings,
            next_settings: Vec::new(),
        };
        this.store_link.lead_to(Some(store));
        this.set_clock(0)?;
        Ok(this)
    }

    pub(super) async fn start(&mut self) -> Result<(), ChaosError> {
        let wire = self.road.wire();
        let mut command = self.program.command_at(wire);
        command.args(["worker", "--worker-id", &self.name, "--slots", "2"]);
        command.args(["--store", &format!("s3://{}", self.access.bucket)]);
        command.arg("--cache-dir").arg(self.cache.path());
        // A wire has its ports for good; on loopback any will do.
        let [grpc, http] = wire
            .map_or(["127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned()], |wire| {
                [wire.control(), wire.artifacts()].map(|at| format!("0.0.0.0:{}", at.port()))
            });
        let store =
            wire.map_or(self.store_link.address(), |wire| wire.hub(self.access.address.port()));
        command.args(["--grpc", &grpc, "--http", &http]);
        command.args(["--advertise", &format!("http://{}", self.road.artifacts())]);
        let more = self.settings.iter().chain(&self.next_settings).map(String::as_str);
        for setting in SETTINGS.into_iter().chain(more) {
            command.args(["--set", setting]);
        }
        self.next_settings.clear();
        command.envs([
            ("AWS_ENDPOINT", format!("http://{store}").as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false"),
            ("AWS_REGION", self.access.region),
            ("AWS_ACCESS_KEY_ID", &self.access.key_id),
            ("AWS_SECRET_ACCESS_KEY", &self.access.secret),
        ]);
        if let Some(library) = fake_clock() {
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &self.clock);
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let process = Process::start(&self.name, command, &self.log).await?;
        self.road.lead_to(&process);
        self.process = Some(process);
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its log, of all its lives.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its control port, where it runs.
    pub fn grpc(&self) -> Option<SocketAddr> {
        self.road.grpc_of(self.process.as_ref()?)
    }

    /// Its HTTP port, where it runs.
    pub fn http(&self) -> Option<SocketAddr> {
        self.road.http_of(self.process.as_ref()?)
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(Process::is_running)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Its next life has these settings too.
    pub fn next_life_with(&mut self, settings: &[&str]) {
        self.next_settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    }

    /// Whether its clock can be set.
    pub fn has_fake_clock(&self) -> bool {
        fake_clock().is_some()
    }

    /// Sets its clock this many seconds ahead of everybody's, or behind.
    pub fn set_clock(&self, seconds: i64) -> Result<(), ChaosError> {
        std::fs::write(&self.clock, format!("{seconds:+}\n")).map_err(ChaosError::file(&self.clock))
    }
}

fn fake_clock() -> Option<&'static str> {
    FAKE_CLOCKS.into_iter().find(|path| Path::new(path).exists())
}
