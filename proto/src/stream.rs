//! The way into a session: what the peer says, one message after the other, and how that can end.
//! The same on both sides; `server` and `client` open it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

use crate::decode::DecodeError;

/// Why a stream could not be opened, or what went wrong on it.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The peer sent something that is no message. The stream itself is whole: what comes next can
    /// still be read, where the reader wants to.
    #[error("the peer sent what is no message")]
    Malformed(#[source] DecodeError),
    /// The peer sent a message larger than any may be. Nothing can be read after it.
    #[error("the peer sent a message of more than {max_bytes} bytes")]
    TooLarge {
        /// The most a message may have on this side.
        max_bytes: usize,
    },
    /// The stream did not open in time.
    #[error("the stream was not open after {0:?}")]
    NotOpened(Duration),
    /// The connection broke, or the peer ended the stream with an error.
    #[error("the stream broke")]
    Broken(#[source] Box<Status>),
}

impl StreamError {
    /// Whether the peer broke the protocol, as opposed to the network breaking the stream.
    pub fn is_violation(&self) -> bool {
        match self {
            Self::Malformed(_) | Self::TooLarge { .. } => true,
            Self::NotOpened(_) | Self::Broken(_) => false,
        }
    }
}

/// What the peer says. Read one message at a time: a reader that does not read makes the peer wait,
/// by the flow control of HTTP/2. Ends with `None` when the peer ended the stream; after any error
/// but [`StreamError::Malformed`] it has ended too. Dropping it tells the peer that nobody listens.
pub struct Inbound<M> {
    /// Gone once nothing can be read any more.
    messages: Option<Streaming<Bytes>>,
    decode: fn(Bytes) -> Result<M, DecodeError>,
    max_bytes: usize,
}

impl<M> Inbound<M> {
    pub(crate) fn new(
        messages: Streaming<Bytes>,
        decode: fn(Bytes) -> Result<M, DecodeError>,
        max_bytes: usize,
    ) -> Self {
        Self { messages: Some(messages), decode, max_bytes }
    }
}

impl<M> Stream for Inbound<M> {
    type Item = Result<M, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(messages) = &mut self.messages else { return Poll::Ready(None) };
        match ready!(Pin::new(messages).poll_next(context)) {
            Some(Ok(bytes)) => {
                Poll::Ready(Some((self.decode)(bytes).map_err(StreamError::Malformed)))
            }
            Some(Err(status)) => {
                self.messages = None;
                Poll::Ready(Some(Err(broken(status, self.max_bytes))))
            }
            None => {
                self.messages = None;
                Poll::Ready(None)
            }
        }
    }
}

impl<M> std::fmt::Debug for Inbound<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbound").field("open", &self.messages.is_some()).finish_non_exhaustive()
    }
}

/// The transport has no other word for a message beyond the limit, and neither side of this
/// protocol uses the code for anything else.
fn broken(status: Status, max_bytes: usize) -> StreamError {
    match status.code() {
        Code::OutOfRange => StreamError::TooLarge { max_bytes },
        _ => StreamError::Broken(Box::new(status)),
    }
}
