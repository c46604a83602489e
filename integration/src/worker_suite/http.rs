//! Requests over plain sockets, one connection each, so that a suite can send what no client would.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its head, as it came.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Asks for something, with these header lines.
pub async fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    request(address, "GET", path, headers).await
}

/// One request over a connection of its own.
pub async fn request(address: SocketAddr, method: &str, path: &str, headers: &[&str]) -> Answer {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.expect("the port is open");
        let head = head(address, method, path, headers, "close");
        stream.write_all(head.as_bytes()).await.expect("it is taken");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("it answers");
        answer
    };
    let answer = timeout(PATIENCE, exchange).await.expect("it answers in time");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head and a body");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    Answer { status, head, body: answer[end + 4..].to_vec() }
}

/// The head of a request, the empty line included.
pub fn head(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    connection: &str,
) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    for line in headers {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str(&format!("Connection: {connection}\r\nContent-Length: 0\r\n\r\n"));
    head
}

/// Reads until the other side hangs up, and gives what came.
pub async fn hung_up(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // Reset or ended, it is over either way.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is hung up");
    rest
}
