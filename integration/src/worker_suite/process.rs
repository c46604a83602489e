//! A worker as a process of its own, on loopback. It is killed when its handle goes, however the
//! test ends; what it wrote to its log is there for the post-mortem.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::PATIENCE;
use super::http::get;

/// A running worker.
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
    log: NamedTempFile,
    /// Where control streams are opened.
    pub grpc: SocketAddr,
    /// Where artifacts, metrics and probes are served.
    pub http: SocketAddr,
}

/// What a worker holds at one moment, as the system sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Memory in RAM.
    pub rss_bytes: u64,
    /// Open file descriptors.
    pub open_files: usize,
}

impl WorkerProcess {
    /// Starts `binary worker` over a store with a folder for its cache, and waits until it is ready.
    /// `settings` are what `--set` takes. Nothing of the environment's configuration counts.
    pub fn start(binary: &str, store: &Path, cache: &Path, settings: &[&str]) -> Self {
        let mut command = Command::new(binary);
        command.arg("worker").arg("--store").arg(store).arg("--cache-dir").arg(cache);
        Self::start_command(command, settings)
    }

    /// Starts a command that is a worker but for its addresses, name and settings.
    pub fn start_command(mut command: Command, settings: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a log can be made");
        let stderr = log.reopen().expect("the log can be written");
        command.args(["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        command.args(["--worker-id", "worker-1"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TRIBUTARY_") {
                command.env_remove(name);
            }
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn();
        let nowhere = ([0, 0, 0, 0], 0).into();
        let child = child.expect("the binary starts");
        // From here on a panic kills it.
        let mut this = Self { child, log, grpc: nowhere, http: nowhere };
        let line = this.first_line();
        let words: Vec<_> = line.split_whitespace().collect();
        let ["ready", http, grpc] = words[..] else {
            panic!("it said {line:?} and wrote {}", this.log())
        };
        let address = |word: &str, prefix| {
            word.strip_prefix(prefix).expect("it is named").parse().expect("an address")
        };
        (this.http, this.grpc) = (address(http, "http="), address(grpc, "grpc="));
        this
    }

    fn first_line(&mut self) -> String {
        let stdout = self.child.stdout.take().expect("it is piped");
        let (tell, told) = mpsc::channel();
        // Ends with the line or with the process, whichever is first.
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = tell.send(read.map(|_| line));
        });
        let line = told.recv_timeout(PATIENCE);
        line.unwrap_or_else(|_| panic!("it is not ready: {}", self.log())).expect("it is text")
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log.path()).expect("the log is text")
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it was started here");
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            match self.child.try_wait().expect("it was started here") {
                Some(status) => return status,
                None => assert!(begun.elapsed() < PATIENCE, "it does not end: {}", self.log()),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything at `/metrics`.
    pub async fn metrics(&self) -> String {
        let answer = get(self.http, "/metrics", &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    }

    /// One metric's value; the name begins after `tributary_worker_`, labels belong to it.
    pub async fn metric(&self, name: &str) -> u64 {
        let text = self.metrics().await;
        value_of(&text, name).unwrap_or_else(|| panic!("{name} is missing in {text}"))
    }

    /// Waits until a metric has this value.
    pub async fn until(&self, name: &str, value: u64) {
        let begun = Instant::now();
        loop {
            let text = self.metrics().await;
            if value_of(&text, name) == Some(value) {
                return;
            }
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "{name} never came to {value}: {text}\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Memory and open files, from `/proc`.
    pub fn footprint(&self) -> Footprint {
        let folder = Path::new("/proc").join(self.id().to_string());
        let status = fs::read_to_string(folder.join("status")).expect("it runs");
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has RAM");
        let rss_kib: u64 = rss.trim().trim_end_matches(" kB").parse().expect("a number");
        let open_files = fs::read_dir(folder.join("fd")).expect("it runs").count();
        Footprint { rss_bytes: rss_kib * 1024, open_files }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One metric's value in the text of all.
pub fn value_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| {
        line.strip_prefix("tributary_worker_")?.strip_prefix(name)?.strip_prefix(' ')
    });
    line?.parse().ok()
}
