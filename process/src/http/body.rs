//! A request's body that must be there in time, so that nobody can hold a connection and a handler by
//! sending slowly.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};
use tokio::time::Sleep;

/// The body and when it must have ended.
#[derive(Debug)]
pub(super) struct Timely<B> {
    body: B,
    end: Pin<Box<Sleep>>,
}

impl<B> Timely<B> {
    /// It must have ended this long from now.
    pub(super) fn new(body: B, patience: Duration) -> Self {
        Self { body, end: Box::pin(tokio::time::sleep(patience)) }
    }
}

impl<B> HttpBody for Timely<B>
where
    B: HttpBody + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => {
                let slow = io::Error::new(io::ErrorKind::TimedOut, "the body did not come in time");
                Poll::Ready(Some(Err(slow.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
