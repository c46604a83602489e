//! `tributary query` as a real process, against a small server that speaks frames: whole ones, cut
//! ones, broken ones, and none at all.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

mod support;

use support::finished;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const DONE: &str = "data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n";

/// What a client asked: the head of the request, and its body.
struct Asked {
    head: String,
    body: serde_json::Value,
}

/// A server that answers one request.
struct Server {
    url: String,
    asked: Receiver<Asked>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Answers by what `answer` writes.
    fn start(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (tell, asked) = channel();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            tell.send(read_request(&mut stream)).expect("the test listens");
            answer(&mut stream);
        });
        Self { url, asked, thread }
    }

    /// Answers with these frames.
    fn answering(frames: &'static str) -> Self {
        Self::start(move |stream| {
            write(stream, HEAD);
            write(stream, frames);
        })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        command.args(["query", "--url", &self.url]).args(args).stdin(Stdio::null());
        command.env_remove("TRIBUTARY_API_KEY").env_remove("TRIBUTARY_URL");
        command
    }

    #[track_caller]
    fn run(self, args: &[&str]) -> (Output, Asked) {
        let output = self.command(args).output().expect("the binary starts");
        self.thread.join().expect("the server answers");
        (output, self.asked.recv().expect("it was asked"))
    }
}

fn write(stream: &mut TcpStream, text: &str) {
    // A client that has seen enough may be gone.
    let _ = stream.write_all(text.as_bytes());
}

fn read_request(stream: &mut TcpStream) -> Asked {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("the head comes"), 0, "{head}");
    }
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
    });
    let mut body = vec![0; length.expect("it has a body").parse().expect("a number")];
    reader.read_exact(&mut body).expect("the body comes");
    Asked { head, body: serde_json::from_slice(&body).expect("the body is JSON") }
}

const FRAMES: &str = "\
: hello\r\n\r\n\
data: {\"type\":\"progress\",\"data\":{\"done\":0,\"total\":2}}\n\n\
data: {\"type\":\"result\",\"data\":{\"tags\":{\"job\":\"a\"},\"value\":1.25,\"timestamp\":60000,\"label\":\"x\"}}\r\n\r\n\
data: {\"type\":\"heartbeat\",\"data\":{\"status\":\"alive\"}}\n\n\
data: {\"type\":\"result\",\"data\":{\"tags\":{\"job\":\"a\"},\"value\":\"+Inf\",\"timestamp\":120000,\"label\":\"x\"}}\n\n\
data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n";

#[test]
fn an_answer_is_a_table_where_nobody_looks() {
    let (output, asked) = Server::answering(FRAMES).run(&["sum by (job) (up)"]);
    let (text, complaint) = finished(output, 0);
    assert_eq!(
        text,
        "series     values   min  mean   max  last\n{job=\"a\"}       2  1.25  +Inf  +Inf  +Inf\n"
    );
    assert_eq!(complaint, "");
    assert!(asked.head.starts_with("POST /api/v1/metrics/query HTTP/1.1\r\n"), "{}", asked.head);
    assert!(!asked.head.to_ascii_lowercase().contains("authorization"));
    let expected = serde_json::json!({"q": "sum by (job) (up)", "s": "now-1h", "e": "now"});
    assert_eq!(asked.body, expected);
}

#[test]
fn times_step_summary_and_key_are_passed_on() {
    let server = Server::answering(DONE);
    let args = ["--start", "-1000", "--end", "2026-01-01T00:00:00Z", "--step", "30s", "--summary"];
    let mut command = server.command(&args);
    let output = command.args(["--key", "s3cret", "up"]).output().expect("the binary starts");
    finished(output, 1);
    let asked = server.asked.recv().expect("it was asked");
    let expected = serde_json::json!({
        "q": "up", "s": "-1000", "e": "2026-01-01T00:00:00Z", "step": "30s", "summary": true
    });
    assert_eq!(asked.body, expected);
    assert!(asked.head.to_ascii_lowercase().contains("authorization: bearer s3cret\r\n"));
    server.thread.join().expect("the server answers");

    let server = Server::answering(DONE);
    let output = server.command(&["up"]).env("TRIBUTARY_API_KEY", "other").output();
    finished(output.expect("the binary starts"), 1);
    let asked = server.asked.recv().expect("it was asked");
    assert!(asked.head.to_ascii_lowercase().contains("authorization: bearer other\r\n"));
}

#[test]
fn json_is_every_frame_as_it_came_and_csv_every_value() {
    let (text, _) = finished(Server::answering(FRAMES).run(&["--json", "up"]).0, 0);
    let frames: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let kinds: Vec<&str> = frames.iter().map(|f| f["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["progress", "result", "heartbeat", "result", "done"]);
    let (text, _) = finished(Server::answering(FRAMES).run(&["--csv", "up"]).0, 0);
    let expected = "time,series,value\n1970-01-01T00:01:00Z,\"{job=\"\"a\"\"}\",1.25\n\
                    1970-01-01T00:02:00Z,\"{job=\"\"a\"\"}\",+Inf\n";
    assert_eq!(text, expected);
}

#[test]
fn a_chart_can_be_drawn_into_a_file() {
    let (text, _) = finished(Server::answering(FRAMES).run(&["--chart", "up"]).0, 0);
    assert!(text.contains('│') && text.contains("── {job=\"a\"}  last +Inf"), "{text}");
    assert!(!text.contains('\x1b'), "no colours and no moves outside a terminal: {text}");
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let server = Server::start(|stream| {
        stream.set_nodelay(true).expect("it is a socket");
        write(stream, HEAD);
        for piece in FRAMES.as_bytes().chunks(7) {
            let _ = stream.write_all(piece).and_then(|()| stream.flush());
            thread::sleep(Duration::from_millis(1));
        }
    });
    let (text, _) = finished(server.run(&["--csv", "up"]).0, 0);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn nothing_found_and_errors_have_exit_codes_of_their_own() {
    let (text, _) = finished(Server::answering(DONE).run(&["nothing"]).0, 1);
    assert_eq!(text, "");

    let failed = "data: {\"type\":\"error\",\"data\":{\"code\":\"timeout\",\"message\":\"too late\"}}\n\n\
                  data: {\"type\":\"done\",\"data\":{\"status\":\"error\"}}\n\n";
    let (_, complaint) = finished(Server::answering(failed).run(&["up"]).0, 3);
    assert_eq!(complaint, "tributary: timeout: too late\n");

    let refused = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n\
                   {\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:4: parse error\"}";
    let server = Server::start(move |stream| write(stream, refused));
    let (_, complaint) = finished(server.run(&["up{"]).0, 3);
    assert_eq!(complaint, "tributary: 400 Bad Request: 1:4: parse error\n");
}

#[test]
fn broken_answers_are_told_as_such() {
    let frame = "data: {\"type\":\"result\",\"data\":{\"tags\":{},\"value\":1,\"timestamp\":0,\"label\":\"x\"}}\n\n";
    // The connection ends without the last frame: what came is shown, and the end is told.
    let (text, complaint) = finished(Server::answering(frame).run(&["up"]).0, 2);
    assert!(text.starts_with("series"), "{text}");
    assert_eq!(complaint, "tributary: the answer broke off\n");
    // In the middle of a frame.
    let (_, complaint) = finished(Server::answering(&frame[..40]).run(&["up"]).0, 2);
    assert_eq!(complaint, "tributary: the answer broke off\n");
    for bad in
        ["data: {\"type\":\n\n", "data: 12\n\n", "data: {\"type\":\"result\",\"data\":{}}\n\n"]
    {
        let (_, complaint) = finished(Server::answering(bad).run(&["up"]).0, 2);
        assert!(complaint.contains("a frame of the answer can't be read"), "{complaint}");
    }
    // A chunk that is shorter than it says.
    let server = Server::start(move |stream| {
        write(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\ndata");
    });
    let (_, complaint) = finished(server.run(&["up"]).0, 2);
    assert!(complaint.contains("can't be asked"), "{complaint}");
}

#[test]
fn servers_that_are_none_are_told_as_such() {
    let run = |url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        let output = command.args(["query", "--url", url, "up"]).output();
        finished(output.expect("the binary starts"), 2).1
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    drop(listener);
    assert!(run(&url).contains("can't be asked"), "nobody listens there");
    assert!(run("nonsense").contains("is no address of a server"));
    assert!(run("ftp://127.0.0.1").contains("neither http://"));
}

#[test]
fn an_interruption_leaves_at_once() {
    let server = Server::start(|stream| {
        write(stream, HEAD);
        // Nothing more comes. The read ends when the client has closed the connection.
        let _ = stream.read(&mut [0]);
    });
    let child = server.command(&["--json", "up"]).stdout(Stdio::piped()).spawn();
    let child = child.expect("the binary starts");
    server.asked.recv().expect("it asks");
    thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    server.thread.join().expect("the server sees the connection close");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_query() {
    let server = Server::start(|stream| {
        write(stream, HEAD);
        let frame = FRAMES.split("\r\n\r\n").nth(1).expect("it has a second");
        let frame = format!("{frame}\r\n\r\n").repeat(100);
        // Without end: only the client can stop this.
        while stream.write_all(frame.as_bytes()).is_ok() {}
    });
    let child = server.command(&["--csv", "up"]).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("the binary starts");
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    reader.read_line(&mut line).expect("a line comes");
    assert_eq!(line, "time,series,value\n");
    drop(reader);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    server.thread.join().expect("the connection closes");
}

fn interrupt(child: &Child) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it is ours");
}
