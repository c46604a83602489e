//! One process of the binary, in a group of its own: started, signalled, limited, watched from
//! outside. It is killed when its handle goes, and with it whatever it started.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::time::{Instant, sleep, timeout};

use crate::error::ChaosError;

/// A process must say that it is ready this soon.
const READY: Duration = Duration::from_secs(30);

/// A running process.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    ready: String,
    /// How it ended, once it has.
    ended: Option<ExitStatus>,
}

/// What a process holds at one moment, as the system sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Footprint {
    /// Memory in RAM.
    pub rss_bytes: u64,
    /// Open file descriptors.
    pub open_files: usize,
    /// Threads.
    pub threads: usize,
}

impl Process {
    /// Starts a command and waits for the one line that says it is ready. What it writes to standard
    /// error is added to the log.
    pub async fn start(name: &str, mut command: Command, log: &Path) -> Result<Self, ChaosError> {
        let failed = |source| ChaosError::Process { name: name.to_owned(), source };
        let lines = OpenOptions::new().create(true).append(true).open(log).map_err(failed)?;
        for (variable, _) in std::env::vars_os() {
            // Nothing of the environment's configuration counts.
            let is_ours = variable.to_string_lossy().starts_with("TRIBUTARY_");
            if is_ours && command.get_envs().all(|(name, _)| name != variable) {
                command.env_remove(variable);
            }
        }
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(lines);
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take();
        let (log, name) = (log.to_owned(), name.to_owned());
        // From here on an error kills it.
        let mut this = Self { name, child, log, ready: String::new(), ended: None };
        let first = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line)).transpose()?;
            Ok::<_, io::Error>(line)
        });
        let line = match timeout(READY, first).await {
            Ok(Ok(Ok(line))) => line,
            Ok(_) | Err(_) => String::new(),
        };
        if !line.starts_with("ready ") {
            this.kill();
            return Err(ChaosError::NotReady { name: this.name.clone(), log: this.last_lines(20) });
        }
        this.ready = line;
        Ok(this)
    }

    /// The address it said it listens at, by the word before it: `http` or `grpc`.
    pub fn address(&self, word: &str) -> Option<SocketAddr> {
        let named = |part: &str| part.strip_prefix(word)?.strip_prefix('=')?.parse().ok();
        self.ready.split_whitespace().find_map(named)
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its name in this run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends it a signal. Where it has ended, nothing happens.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none()
            && let Some(pid) = self.pid()
        {
            // It may end at this very moment.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Kills it and everything it started, and waits until it is gone.
    pub fn kill(&mut self) {
        if self.ended.is_some() {
            return;
        }
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        self.ended = self.child.wait().ok();
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_none()
    }

    /// Waits for its end; none where it takes longer.
    pub async fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + patience;
        while self.is_running() {
            if Instant::now() >= until {
                return None;
            }
            sleep(Duration::from_millis(5)).await;
        }
        self.ended
    }

    /// Limits how many files it may have open, or how much memory it may ask for. Gives what the
    /// limit was.
    pub fn limit(&self, resource: Resource, current: Option<u64>) -> Option<u64> {
        let pid = self.pid()?;
        let was = rustix::process::prlimit(Some(pid), resource, Rlimit { current, maximum: None });
        match was {
            Ok(was) => was.current,
            Err(_) => {
                // Raising the hard limit may be forbidden: then it stays what it is.
                let now = rustix::process::getrlimit(resource);
                let limit = Rlimit { current, maximum: now.maximum };
                rustix::process::prlimit(Some(pid), resource, limit).ok()?.current
            }
        }
    }

    /// Memory, open files and threads, from `/proc`; none once it has ended.
    pub fn footprint(&self) -> Option<Footprint> {
        let folder = Path::new("/proc").join(self.child.id().to_string());
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let figure = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Footprint {
            rss_bytes: figure("VmRSS:")? * 1024,
            open_files: fs::read_dir(folder.join("fd")).ok()?.count(),
            threads: usize::try_from(figure("Threads:")?).unwrap_or(usize::MAX),
        })
    }

    /// Where its log is.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    pub fn last_lines(&self, count: usize) -> String {
        let lines: Vec<String> = File::open(&self.log).map_or_else(
            |_| Vec::new(),
            |log| BufReader::new(log).lines().map_while(Result::ok).collect(),
        );
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is stopped can't hear anything else than this.
        self.kill();
    }
}
