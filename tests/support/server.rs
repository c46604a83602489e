//! A server command as a real process: it is waited for, asked over HTTP, told to leave, and killed with
//! its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Whatever takes longer than this does not happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    complaints: Receiver<String>,
    /// What it said when it was ready.
    pub ready: String,
    /// How long that took.
    pub took: Duration,
}

/// The binary, without settings of whoever runs the tests.
pub fn tributary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TRIBUTARY_") {
            command.env_remove(name);
        }
    }
    command
}

impl Server {
    /// Starts it and waits until it says that it is ready.
    #[track_caller]
    pub fn start(args: &[&str]) -> Self {
        Self::started(&mut tributary(args))
    }

    /// As `start`, with its temporary files in a folder of their own.
    #[track_caller]
    pub fn start_in(folder: &Path, args: &[&str]) -> Self {
        Self::started(tributary(args).env("TMPDIR", folder))
    }

    #[track_caller]
    fn started(command: &mut Command) -> Self {
        let begun = Instant::now();
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut stderr = child.stderr.take().expect("it is piped");
        let (tell, complaints) = channel();
        thread::spawn(move || {
            let mut text = String::new();
            // It ends with the process.
            let _ = stderr.read_to_string(&mut text);
            let _ = tell.send(text);
        });
        let mut ready = String::new();
        output.read_line(&mut ready).expect("it says something");
        if !ready.starts_with("ready ") {
            let complaint = complaints.recv_timeout(PATIENCE).unwrap_or_default();
            panic!("not ready: {ready:?} {complaint}");
        }
        Self { child, output, complaints, ready, took: begun.elapsed() }
    }

    /// An address it named.
    #[track_caller]
    pub fn address(&self, name: &str) -> SocketAddr {
        let prefix = format!("{name}=");
        let found = self.ready.split_whitespace().find_map(|word| word.strip_prefix(&prefix));
        found.expect("it is named").parse().expect("an address")
    }

    /// Where it is asked.
    pub fn url(&self) -> String {
        format!("http://{}", self.address("http"))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is ours");
    }

    /// Waits for its end. Gives the exit code, what it printed after it was ready, and what it
    /// complained about.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, String, String) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("it was started here") {
                Some(status) => break status,
                None => assert!(begun.elapsed() < PATIENCE, "it does not end"),
            }
            thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("it is text");
        let complaint = self.complaints.recv_timeout(PATIENCE).expect("its end is seen");
        assert!(!complaint.contains("panicked"), "{complaint}");
        (status.code(), text, complaint)
    }

    /// Asks with GET. Gives the status and the body.
    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address("http")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            .expect("it takes requests");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), unchunked(head, body))
    }

    /// The one value of an instant query, if it has one.
    #[track_caller]
    pub fn value(&self, query: &str) -> Option<f64> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (status, body) = self.get(&format!("/api/v1/query?query={query}"));
        assert_eq!(status, 200, "{body}");
        let json: serde_json::Value = serde_json::from_str(&body).expect("it is JSON");
        let value = json.pointer("/data/result/0/value/1")?;
        Some(value.as_str().expect("a text").parse().expect("a number"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body, without the lengths of its chunks where it has such.
fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let mut whole = String::new();
    let mut rest = body;
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a chunk has a length");
        whole.push_str(&after[..length]);
        rest = after.get(length + 2..).unwrap_or_default();
    }
    whole
}
