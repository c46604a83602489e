//! The real Prometheus as the one to be equal to: finds its binary, starts it on loopback with
//! settings of our choice, writes samples to it and asks it questions. What its answers mean is
//! `outcome`'s business.

mod http;
mod json;
mod write;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tributary_promqltest::DataSet;

use super::grammar::{Question, When};
use super::outcome::Outcome;
use http::Connection;

/// Names the binary to use.
pub const BINARY: &str = "TRIBUTARY_PROMETHEUS";

/// Samples in one request to write.
const BATCH: usize = 5_000;

/// A Prometheus of version 3 or later, not running yet.
#[derive(Clone, Debug)]
pub struct Binary {
    path: PathBuf,
    /// What it says about itself.
    pub version: String,
}

/// A running Prometheus. It ends, and its data goes, when this is dropped.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    address: String,
    // Deleted with everything in it; after `Drop` has ended the process.
    _home: TempDir,
}

/// One connection to a running Prometheus.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
}

/// Why the peer could not be used. Nothing here is about the answers themselves.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// A file, a process or a socket failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What went wrong.
        source: std::io::Error,
    },
    /// It did not come up; the end of its log.
    #[error("Prometheus did not come up:\n{0}")]
    NotReady(String),
    /// It refused samples.
    #[error("Prometheus refused samples with {status}: {body}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        body: String,
    },
    /// It answered something that is no answer.
    #[error("no answer of Prometheus: {0}")]
    NoAnswer(String),
}

impl PeerError {
    fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

impl Binary {
    /// The binary that [`BINARY`] names, or the one on the path; none if it is older than 3.
    pub fn find() -> Option<Self> {
        let named = env::var_os(BINARY).filter(|path| !path.is_empty());
        let path = PathBuf::from(named.unwrap_or_else(|| OsString::from("prometheus")));
        let output = Command::new(&path).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.strip_prefix("prometheus, version ")?.split(' ').next()?.to_owned();
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major >= 3).then_some(Self { path, version })
    }

    /// Starts it, without any data, and waits until it answers.
    pub fn start(&self, delayed_name_removal: bool) -> Result<Prometheus, PeerError> {
        let home = tempfile::Builder::new()
            .prefix("tributary-differential-")
            .tempdir()
            .map_err(PeerError::io("a folder for Prometheus"))?;
        let config = home.path().join("prometheus.yml");
        fs::write(&config, "global:\n  scrape_interval: 1h\n  evaluation_interval: 1m\n")
            .map_err(PeerError::io("the configuration of Prometheus"))?;
        let log = home.path().join("log");
        let stderr = File::create(&log).map_err(PeerError::io("the log of Prometheus"))?;
        let mut features = "promql-experimental-functions,promql-duration-expr".to_owned();
        if delayed_name_removal {
            features.push_str(",promql-delayed-name-removal");
        }
        let child = Command::new(&self.path)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", home.path().join("data").display()))
            .arg("--storage.tsdb.retention.time=100y")
            // Everything stays in memory, in the order in which series were first written.
            .args(["--storage.tsdb.min-block-duration=3y", "--storage.tsdb.max-block-duration=3y"])
            .args(["--web.listen-address=127.0.0.1:0", "--web.enable-remote-write-receiver"])
            .arg(format!("--enable-feature={features}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(PeerError::io("starting Prometheus"))?;
        let mut prometheus = Prometheus { child, address: String::new(), _home: home };
        prometheus.address = prometheus.wait(&log)?;
        Ok(prometheus)
    }
}

impl Prometheus {
    /// Waits until it listens and answers; gives its address.
    fn wait(&mut self, log: &Path) -> Result<String, PeerError> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let text = fs::read_to_string(log).map_err(PeerError::io("the log of Prometheus"))?;
            if let Some(address) = listening_on(&text) {
                let mut connection = Connection::to(address.clone());
                if connection.get("/-/ready").is_ok_and(|(status, _)| status == 200) {
                    return Ok(address);
                }
            }
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        Err(PeerError::NotReady(lines[lines.len().saturating_sub(10)..].join("\n")))
    }

    /// A new connection to it.
    pub fn connect(&self) -> Client {
        Client { connection: Connection::to(self.address.clone()) }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // There is nothing worth keeping, so it need not leave in good order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// Stores samples. Times must not go back far from what was stored before.
    pub fn write(&mut self, data: &DataSet) -> Result<(), PeerError> {
        let mut all: Vec<_> = data
            .series()
            .iter()
            .flat_map(|(labels, samples)| samples.iter().map(move |(t, v)| (t, labels, v)))
            .collect();
        // By time first: the head takes nothing much older than its newest sample.
        all.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        for batch in all.chunks(BATCH) {
            let (status, body) = self
                .connection
                .post("/api/v1/write", &write::HEADERS, &write::request(batch))
                .map_err(PeerError::io("writing samples to Prometheus"))?;
            if !(200..300).contains(&status) {
                let body = String::from_utf8_lossy(&body).into_owned();
                return Err(PeerError::Refused { status, body });
            }
        }
        Ok(())
    }

    /// Asks a question.
    pub fn ask(&mut self, question: &Question) -> Result<Outcome, PeerError> {
        let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
        let mut form = http::Form::default();
        form.add("query", &question.text);
        form.add("lookback_delta", &seconds(question.lookback));
        let path = match question.when {
            When::Instant(t) => {
                form.add("time", &seconds(t));
                "/api/v1/query"
            }
            When::Range { start, end, step } => {
                form.add("start", &seconds(start));
                form.add("end", &seconds(end));
                form.add("step", &seconds(step));
                "/api/v1/query_range"
            }
        };
        let (status, body) = self
            .connection
            .post(path, &[("Content-Type", "application/x-www-form-urlencoded")], &form.0)
            .map_err(PeerError::io("asking Prometheus"))?;
        json::outcome(status, &body)
    }
}

/// The address in the log line that says so.
fn listening_on(log: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains("msg=\"Listening on\""))?;
    Some(line.split("address=").nth(1)?.split_whitespace().next()?.to_owned())
}
