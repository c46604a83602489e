//! An API node: its process, its address, and where it finds each worker.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::Program;
use crate::error::ChaosError;
use crate::process::Process;

/// Settings of every API node of a run: small work items, so that a query has many; redials soon,
/// so that a run has time for many faults; and a time within which every query must end.
const SETTINGS: [&str; 4] = [
    "work.max_samples=2500",
    "control.backoff_max=500ms",
    "query.timeout=45s",
    "shutdown.timeout=5s",
];

/// An API node.
#[derive(Debug)]
pub struct ApiNode {
    /// Its process, where it runs.
    pub process: Option<Process>,
    program: Program,
    name: String,
    log: PathBuf,
    http: SocketAddr,
    /// Where it finds workers, by their number.
    workers: Vec<SocketAddr>,
    settings: Vec<String>,
}

impl ApiNode {
    /// A node that does not run yet, for workers at these addresses.
    pub(super) fn new(
        program: Program,
        number: usize,
        folder: &Path,
        workers: Vec<SocketAddr>,
    ) -> Self {
        let name = format!("api-{number}");
        let log = folder.join(format!("{name}.log"));
        Self {
            process: None,
            program,
            name,
            log,
            http: ([127, 0, 0, 1], 0).into(),
            workers,
            settings: Vec::new(),
        }
    }

    pub(super) fn with_settings(self, settings: Vec<String>) -> Self {
        Self { settings, ..self }
    }

    /// Starts it. From the first start on it has its address for good.
    pub(super) async fn start(&mut self, data: &Path) -> Result<(), ChaosError> {
        let mut command = self.program.command();
        command.arg("api").arg("--data-dir").arg(data);
        command.args(["--http", &self.http.to_string()]);
        for worker in &self.workers {
            command.args(["--worker", &worker.to_string()]);
        }
        let more = self.settings.iter().map(String::as_str);
        for setting in SETTINGS.into_iter().chain(more) {
            command.args(["--set", setting]);
        }
        command.args(["--set", &format!("api_id={}", self.name)]);
        let process = Process::start(&self.name, command, &self.log).await?;
        self.http = process.address("http").unwrap_or(self.http);
        self.process = Some(process);
        Ok(())
    }

    /// Where clients ask it.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Asks it to leave.
    pub fn ask_to_leave(&self) {
        if let Some(process) = &self.process {
            process.signal(Signal::TERM);
        }
    }
}
