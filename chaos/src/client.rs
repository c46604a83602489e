//! A client: asks one question over a connection of its own and tells how that ended. Reads as fast as
//! it can, slowly, or leaves in the middle.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::question::{How, Question};

/// How a client reads its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As it comes.
    Eager,
    /// With a pause before every piece.
    Slow(Duration),
    /// Not to the end: after so long it is gone.
    Leaves(Duration),
}

/// How a question ended, from the client's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Answered, with these bytes: a body, or the frames that carry results.
    Answered(Vec<u8>),
    /// The server said that it has no answer, and why.
    Refused(String),
    /// The connection broke, or was never made.
    Broken(String),
    /// The answer broke the protocol.
    Malformed(String),
    /// The client left, as it wanted to.
    Left,
    /// Nothing came to an end in all the time there was.
    Hung,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Told {
    /// How it ended.
    pub ending: Ending,
    /// From the question to the first result, where there was one before the end.
    pub first_result: Option<Duration>,
    /// The name the server gave to the query, where it came to that.
    pub query_id: Option<String>,
}

/// A client for all questions: nothing is kept from one to the next.
pub fn client() -> Result<Client, reqwest::Error> {
    Client::builder()
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_secs(5))
        .no_proxy()
        .build()
}

/// Asks, and reads the answer in this manner, for no longer than is allowed.
pub async fn ask(
    client: &Client,
    api: SocketAddr,
    question: &Question,
    manner: Manner,
    patience: Duration,
) -> Told {
    let mut seen = Seen::default();
    let asking = read(client, api, question, manner, &mut seen);
    let ending = match manner {
        Manner::Leaves(after) => timeout(after, asking).await.unwrap_or(Ending::Left),
        Manner::Eager | Manner::Slow(_) => timeout(patience, asking).await.unwrap_or(Ending::Hung),
    };
    let Seen { first_result, query_id } = seen;
    Told { ending, first_result, query_id }
}

/// What was seen before the end.
#[derive(Debug, Default)]
struct Seen {
    first_result: Option<Duration>,
    query_id: Option<String>,
}

async fn read(
    client: &Client,
    api: SocketAddr,
    question: &Question,
    manner: Manner,
    seen: &mut Seen,
) -> Ending {
    let begun = Instant::now();
    let request = match &question.how {
        How::Stream(body) => client
            .post(format!("http://{api}/api/v1/metrics/query"))
            .header("content-type", "application/json")
            .body(body.clone()),
        How::Prometheus(path) => client.get(format!("http://{api}{path}")),
    };
    let request = request.header("x-scope-orgid", question.tenant);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return Ending::Broken(chain(&error)),
    };
    let id = response.headers().get("x-query-id").and_then(|id| id.to_str().ok());
    seen.query_id = id.map(str::to_owned);
    let status = response.status().as_u16();
    let is_stream = matches!(question.how, How::Stream(_)) && status == 200;
    let mut frames = Frames::default();
    let mut body = Vec::new();
    let mut response: Response = response;
    loop {
        if let Manner::Slow(pause) = manner {
            sleep(pause).await;
        }
        match response.chunk().await {
            Ok(Some(piece)) if is_stream => {
                if let Err(wrong) = frames.take(&piece) {
                    return Ending::Malformed(wrong);
                }
                if seen.first_result.is_none() && !frames.results.is_empty() {
                    seen.first_result = Some(begun.elapsed());
                }
            }
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break,
            Err(error) => return Ending::Broken(chain(&error)),
        }
    }
    if is_stream { frames.ending() } else { of_prometheus(status, body) }
}

fn of_prometheus(status: u16, body: Vec<u8>) -> Ending {
    let said: Value = match serde_json::from_slice(&body) {
        Ok(said) => said,
        Err(error) => return Ending::Malformed(format!("{status}: {error}")),
    };
    match (status, said["status"].as_str()) {
        (200, Some("success")) => Ending::Answered(body),
        (200, other) => Ending::Malformed(format!("200 with status {other:?}")),
        (status, _) => {
            let why = said["error"].as_str().or_else(|| said["message"].as_str());
            Ending::Refused(format!("{status}: {}", why.unwrap_or_default()))
        }
    }
}

/// The frames of a stream of events as they come.
#[derive(Debug, Default)]
struct Frames {
    waiting: Vec<u8>,
    /// All that carries results, byte for byte.
    results: Vec<u8>,
    error: Option<String>,
    done: Option<String>,
}

impl Frames {
    fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        self.waiting.extend_from_slice(piece);
        while let Some(end) = self.waiting.windows(2).position(|two| two == b"\n\n") {
            let frame: Vec<u8> = self.waiting.drain(..end + 2).collect();
            self.frame(&frame)?;
        }
        Ok(())
    }

    fn frame(&mut self, frame: &[u8]) -> Result<(), String> {
        let show = || String::from_utf8_lossy(&frame[..frame.len().min(200)]).into_owned();
        if self.done.is_some() {
            return Err(format!("a frame after the last one: {}", show()));
        }
        // Most frames are results, and known by how they begin.
        if frame.starts_with(b"data: {\"type\":\"result\"") {
            self.results.extend_from_slice(frame);
            return Ok(());
        }
        let text = frame.strip_prefix(b"data: ").ok_or_else(|| format!("no data: {}", show()))?;
        let said: Value =
            serde_json::from_slice(text).map_err(|error| format!("{error}: {}", show()))?;
        match said["type"].as_str() {
            Some("summary") => self.results.extend_from_slice(frame),
            Some("heartbeat" | "progress" | "waiting_scale_up") => {}
            Some("error") => {
                let (code, message) = (&said["data"]["code"], &said["data"]["message"]);
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                if self.error.replace(format!("{}: {}", text(code), text(message))).is_some() {
                    return Err("two errors".to_owned());
                }
            }
            Some("done") => {
                self.done = said["data"]["status"].as_str().map(str::to_owned);
                if self.done.is_none() {
                    return Err(format!("an end without a status: {}", show()));
                }
            }
            _ => return Err(format!("an unknown frame: {}", show())),
        }
        Ok(())
    }

    fn ending(self) -> Ending {
        match (self.done.as_deref(), self.error) {
            (Some("ok"), None) => Ending::Answered(self.results),
            (Some("error"), Some(error)) => Ending::Refused(error),
            (None, _) => Ending::Broken("the answer ended before its end was told".to_owned()),
            (Some(status), error) => {
                Ending::Malformed(format!("ended with {status:?} and the error {error:?}"))
            }
        }
    }
}

/// An error with what it comes from.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frames: &[&str]) -> Result<Ending, String> {
        let mut all = Frames::default();
        for frame in frames {
            all.take(frame.as_bytes())?;
        }
        Ok(all.ending())
    }

    const RESULT: &str = "data: {\"type\":\"result\",\"data\":{}}\n\n";
    const OK: &str = "data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n";

    #[test]
    fn what_counts_of_an_answer_are_its_results() {
        let progress = "data: {\"type\":\"progress\",\"data\":{\"done\":1,\"total\":2}}\n\n";
        let answered = read(&[progress, &RESULT[..9], &RESULT[9..], progress, OK]).unwrap();
        assert_eq!(answered, Ending::Answered(RESULT.into()));
    }

    #[test]
    fn an_answer_ends_once_and_says_so() {
        assert!(matches!(read(&[RESULT]).unwrap(), Ending::Broken(_)));
        assert!(read(&[OK, RESULT]).unwrap_err().contains("after the last"));
        assert!(read(&[OK, OK]).unwrap_err().contains("after the last"));
        let error =
            "data: {\"type\":\"error\",\"data\":{\"code\":\"timeout\",\"message\":\"m\"}}\n\n";
        assert!(matches!(read(&[error, OK]).unwrap(), Ending::Malformed(_)));
        let failed = "data: {\"type\":\"done\",\"data\":{\"status\":\"error\"}}\n\n";
        assert_eq!(read(&[error, failed]).unwrap(), Ending::Refused("timeout: m".into()));
        assert!(read(&["event: x\n\n"]).is_err());
    }
}
