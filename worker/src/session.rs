//! One API node's stream: what it says goes to the desk, in order, until either side ends it. Its
//! answers come from the desk; what they are is decided by the intake.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use core_workcoord::coordinator::Violation;
use core_workcoord::id::SessionId;
use core_workcoord::intake::CloseReason;
use core_workcoord::message::{ApiMessage, WorkerMessage};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use tracing::{debug, warn};
use tributary_proto::lanes::{Outbound, OutboundStream, lanes};
use tributary_proto::server::ControlHandler;
use tributary_proto::stream::{Inbound, StreamError};

use crate::artifacts::Artifacts;
use crate::connection::{Connections, Hold};
use crate::desk::Event;

/// A peer that does not take the end of its stream for this long is cut off.
const PATIENCE_WITH_THE_END: Duration = Duration::from_secs(1);

/// Takes the streams that API nodes open, each as a session of its own.
pub(crate) struct Reception {
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) send_queue: usize,
    pub(crate) sessions_begun: AtomicU64,
}

/// The desk's end of a session. Dropped, the stream ends.
#[derive(Debug)]
pub(crate) struct Line {
    /// What is said to the API node.
    pub(crate) outbound: Outbound<WorkerMessage>,
    /// Set when nothing it says is wanted any more.
    pub(crate) over: CancellationToken,
    /// Where it comes from, for logs.
    pub(crate) peer: Option<SocketAddr>,
}

impl ControlHandler for Reception {
    fn accept(
        &self,
        inbound: Inbound<ApiMessage>,
        peer: Option<SocketAddr>,
    ) -> OutboundStream<WorkerMessage> {
        let session = SessionId(self.sessions_begun.fetch_add(1, Ordering::Relaxed) + 1);
        let (outbound, stream) = lanes(self.send_queue);
        let hold = peer.and_then(|peer| self.connections.opened(peer));
        // Known before the token is, so that the first fetch can't come too soon.
        let token = self.artifacts.admit(session);
        let line = Line { outbound, over: CancellationToken::new(), peer };
        tokio::spawn(listen(session, inbound, line, token, hold, self.events.clone()));
        stream
    }
}

/// Hears one API node out.
async fn listen(
    session: SessionId,
    mut inbound: Inbound<ApiMessage>,
    line: Line,
    token: String,
    hold: Option<Hold>,
    events: mpsc::Sender<Event>,
) {
    let over = line.over.clone();
    let gone = line.outbound.over();
    if events.send(Event::Opened { session, token, line }).await.is_err() {
        return;
    }
    loop {
        let heard = tokio::select! {
            biased;
            () = over.cancelled() => break,
            heard = inbound.next() => heard,
        };
        let (event, last) = match heard {
            Some(Ok(message)) => (Event::Told { session, message }, false),
            Some(Err(error)) if error.is_violation() => {
                warn!(%session, error = why(&error), "an API node broke the protocol");
                (Event::Malformed { session }, true)
            }
            Some(Err(error)) => {
                debug!(%session, error = why(&error), "a stream broke");
                (Event::Ended { session }, true)
            }
            None => (Event::Ended { session }, true),
        };
        if events.send(event).await.is_err() || last {
            break;
        }
    }
    drop(inbound);
    if tokio::time::timeout(PATIENCE_WITH_THE_END, gone).await.is_err()
        && let Some(hold) = &hold
    {
        warn!(%session, "an API node does not take the end of its stream and is cut off");
        hold.cut();
    }
}

/// An error with what it comes from.
fn why(error: &StreamError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// What an API node reads when its stream is ended.
pub(crate) fn status_of(reason: CloseReason) -> Status {
    let (code, words) = match reason {
        CloseReason::TooManySessions => (Code::ResourceExhausted, "too many control streams"),
        CloseReason::HelloTimeout => (Code::DeadlineExceeded, "no Hello came in time"),
        CloseReason::Silent => (Code::DeadlineExceeded, "nothing was heard for too long"),
        CloseReason::Superseded => (Code::Aborted, "the same API node opened a newer stream"),
        CloseReason::Drained => (Code::Unavailable, "the worker has drained"),
        CloseReason::Violation(violation) => match violation {
            Violation::Malformed => (Code::InvalidArgument, "what was sent is no message"),
            Violation::NotIntroduced => (Code::FailedPrecondition, "Hello must come first"),
            Violation::IntroducedTwice => (Code::FailedPrecondition, "Hello came twice"),
            Violation::Version => {
                (Code::FailedPrecondition, "this version of the protocol is not spoken here")
            }
            Violation::OutOfOrder => {
                (Code::FailedPrecondition, "a message can't follow what was said before")
            }
            Violation::ForeignUrl => (Code::InvalidArgument, "a URL is not the worker's own"),
        },
    };
    Status::new(code, words)
}
