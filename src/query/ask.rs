//! Asks the SSE endpoint and hands out the frames of its answer, one by one. Dropped, the connection
//! closes, and the server cancels the work.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::frame::{BadFrame, Frame};
use super::sse::{EventReader, EventTooLong};

/// Where questions are asked.
const PATH: &str = "/api/v1/metrics/query";

/// A server must take the connection this soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that says nothing for this long, not even that it is alive, is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// Of a refusal so much is read.
const REFUSAL_MAX_BYTES: usize = 64 << 10;

/// What is asked, in the words of the endpoint.
#[derive(Debug, Serialize)]
pub(super) struct Question<'a> {
    /// The expression.
    pub(super) q: &'a str,
    /// First and last instant.
    pub(super) s: &'a str,
    pub(super) e: &'a str,
    /// From one instant to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<&'a str>,
    /// Figures about each series are wanted too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) summary: bool,
}

/// Why there is no answer, or no more of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The address is none.
    #[error("{url:?} is no address of a server: {reason}")]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key can't be sent.
    #[error("the API key has characters that no header can carry")]
    BadKey,
    /// The server can't be reached, or the connection broke.
    #[error("{url} can't be asked")]
    Connection {
        /// Who was asked.
        url: String,
        /// Why not.
        source: reqwest::Error,
    },
    /// The server does not want to answer.
    #[error("{message} ({status})")]
    Refused {
        /// With which status.
        status: StatusCode,
        /// What it says.
        message: String,
    },
    /// The answer ended before its end was told.
    #[error("the answer broke off")]
    BrokenOff,
    /// A frame can't be understood.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// A frame is too long.
    #[error(transparent)]
    TooLong(#[from] EventTooLong),
}

/// An answer on its way.
pub(super) struct Answer {
    url: String,
    response: Response,
    reader: EventReader,
    waiting: VecDeque<String>,
}

/// Asks, and waits until the answer begins.
pub(super) async fn ask(
    base: &str,
    key: Option<&str>,
    question: &Question<'_>,
) -> Result<Answer, AskError> {
    let url = format!("{}{PATH}", base.trim_end_matches('/'));
    let bad_url = |reason: String| AskError::BadUrl { url: base.to_owned(), reason };
    let parsed = reqwest::Url::parse(&url).map_err(|error| bad_url(error.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(bad_url("it begins with neither http:// nor https://".to_owned()));
    }
    let failed = |source| AskError::Connection { url: base.to_owned(), source };
    let client = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE)
        .build()
        .map_err(failed)?;
    let body = serde_json::to_vec(question).expect("texts can be written as JSON");
    let mut request = client
        .post(parsed)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream")
        .body(body);
    if let Some(key) = key {
        let mut value =
            HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| AskError::BadKey)?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let response = request.send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let (reader, waiting) = (EventReader::default(), VecDeque::new());
    Ok(Answer { url: base.to_owned(), response, reader, waiting })
}

impl Answer {
    /// The next frame, as it came and as it is understood. An answer ends with a `Done` frame.
    pub(super) async fn next(&mut self) -> Result<(String, Frame), AskError> {
        loop {
            if let Some(text) = self.waiting.pop_front() {
                let frame = Frame::parse(&text)?;
                return Ok((text, frame));
            }
            let chunk = self.response.chunk().await;
            match chunk.map_err(|source| AskError::Connection { url: self.url.clone(), source })? {
                Some(bytes) => self.waiting.extend(self.reader.read(&bytes)?),
                None => return Err(AskError::BrokenOff),
            }
        }
    }

    /// More frames are here already.
    pub(super) fn has_more(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// What a server says that does not want to answer: a message in JSON, in one of the forms that
/// servers have, or a text.
async fn refusal(mut response: Response) -> AskError {
    let status = response.status();
    let mut body = Vec::new();
    // What can be read of it is better than nothing.
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > REFUSAL_MAX_BYTES {
            break;
        }
    }
    let text = String::from_utf8_lossy(&body);
    let message = serde_json::from_str::<Value>(&text).ok().and_then(|json| {
        let known = ["/data/message", "/message", "/error", "/error/message"];
        known.iter().find_map(|path| json.pointer(path)?.as_str().map(str::to_owned))
    });
    let message = message.unwrap_or_else(|| text.trim().to_owned());
    let message = if message.is_empty() { "the server refused".to_owned() } else { message };
    AskError::Refused { status, message }
}
