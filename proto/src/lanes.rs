//! The way out of a session: two bounded queues in front of one stream. The express lane carries
//! the introduction and heartbeats, the work lane everything else; the stream takes from the
//! express lane first, so a sign of life never waits behind work. Within a lane order is kept, and
//! nothing is ever dropped: a full lane waits, or says so. What to do about a full lane is left to
//! the session. A worker's stream may end with a reason, which the API node reads as its status.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use core_workcoord::message::{ApiMessage, WorkerMessage};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tonic::Status;

/// Room in the express lane. With one heartbeat a second it is only ever full when nothing has
/// gone out for longer than any peer waits.
pub const EXPRESS_LANE_MESSAGES: usize = 8;

/// The most room a work lane can have.
pub const WORK_LANE_MAX_MESSAGES: usize = 65_536;

/// Makes the two ends of a way out. The work lane has room for `work_messages`, at least one and
/// at most [`WORK_LANE_MAX_MESSAGES`]. More: more memory when the peer reads slowly, up to the size
/// of the messages, which may be as large as a spec.
pub fn lanes<M: Laned>(work_messages: usize) -> (Outbound<M>, OutboundStream<M>) {
    let (express, express_end) = mpsc::channel(EXPRESS_LANE_MESSAGES);
    let (work, work_end) = mpsc::channel(work_messages.clamp(1, WORK_LANE_MAX_MESSAGES));
    let (held, over) = watch::channel(());
    let ending = Arc::new(OnceLock::new());
    let stream = OutboundStream {
        express: express_end,
        work: work_end,
        ending: Arc::clone(&ending),
        _held: held,
    };
    (Outbound { express, work, ending, over }, stream)
}

/// A message that knows its lane.
pub trait Laned {
    /// Which lane it takes.
    fn lane(&self) -> Lane;
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Taken from first.
    Express,
    /// Taken from when the express lane is empty.
    Work,
}

impl Laned for ApiMessage {
    /// `Hello` goes with the heartbeats, or they would overtake it.
    fn lane(&self) -> Lane {
        match self {
            Self::Hello(_) | Self::Heartbeat(_) => Lane::Express,
            Self::AssignWork(_) | Self::CancelWork(_) | Self::ArtifactAck(_) => Lane::Work,
        }
    }
}

impl Laned for WorkerMessage {
    /// `Welcome` goes with the heartbeats, or they would overtake it.
    fn lane(&self) -> Lane {
        match self {
            Self::Welcome(_) | Self::Heartbeat(_) => Lane::Express,
            // A status keeps its place among the answers about work: a rejection reads differently
            // before and after it.
            Self::Status(_)
            | Self::Accepted(_)
            | Self::Started(_)
            | Self::Rejected(_)
            | Self::Ready(_)
            | Self::Failed(_)
            | Self::Cancelled(_)
            | Self::ArtifactLost(_) => Lane::Work,
        }
    }
}

/// The end messages are put into. Cheap to clone; when the last clone is dropped, the stream ends
/// after what was sent before.
#[derive(Debug)]
pub struct Outbound<M> {
    express: mpsc::Sender<M>,
    work: mpsc::Sender<M>,
    ending: Arc<OnceLock<Status>>,
    over: watch::Receiver<()>,
}

/// The stream is over: nothing can be sent on it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is over")]
pub struct Closed;

/// A message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent<M> {
    /// Its lane is full. Here it is back.
    #[error("the lane is full")]
    Full(M),
    /// The stream is over.
    #[error("the stream is over")]
    Closed,
}

impl<M> Clone for Outbound<M> {
    fn clone(&self) -> Self {
        Self {
            express: self.express.clone(),
            work: self.work.clone(),
            ending: Arc::clone(&self.ending),
            over: self.over.clone(),
        }
    }
}

impl<M: Laned> Outbound<M> {
    /// Sends a message, and waits for as long as its lane is full. A sender that waits for room in
    /// the work lane can't send heartbeats meanwhile: a session does that from elsewhere, or uses
    /// [`try_send`](Self::try_send).
    pub async fn send(&self, message: M) -> Result<(), Closed> {
        self.lane_of(&message).send(message).await.map_err(|_| Closed)
    }

    /// Sends a message, or says at once why not.
    pub fn try_send(&self, message: M) -> Result<(), NotSent<M>> {
        self.lane_of(&message).try_send(message).map_err(|not_sent| match not_sent {
            TrySendError::Full(message) => NotSent::Full(message),
            TrySendError::Closed(_) => NotSent::Closed,
        })
    }

    /// Says how the stream ends once the last clone of this is dropped and all messages are out. The
    /// first reason counts. Only the worker, who answers the call, can give one: an API node's
    /// stream simply ends.
    pub fn end_with(&self, reason: Status) {
        // A reason that came too late is no loss: the stream ends for the first one.
        drop(self.ending.set(reason));
    }

    /// Waits until the transport has let go of the stream, sent or not, without holding it open.
    pub fn over(&self) -> impl Future<Output = ()> + Send + use<M> {
        let mut over = self.over.clone();
        async move {
            // Nothing is ever sent on it, so the only change is that the other end is dropped.
            drop(over.changed().await);
        }
    }

    fn lane_of(&self, message: &M) -> &mpsc::Sender<M> {
        match message.lane() {
            Lane::Express => &self.express,
            Lane::Work => &self.work,
        }
    }
}

/// The end messages come out of.
#[derive(Debug)]
pub struct OutboundStream<M> {
    express: mpsc::Receiver<M>,
    work: mpsc::Receiver<M>,
    ending: Arc<OnceLock<Status>>,
    _held: watch::Sender<()>,
}

impl<M> OutboundStream<M> {
    /// The reason given for the end, if one was; final once the stream has given its last message.
    pub(crate) fn ending(&self) -> Option<Status> {
        self.ending.get().cloned()
    }
}

impl<M> Stream for OutboundStream<M> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<M>> {
        if let Poll::Ready(Some(message)) = self.express.poll_recv(context) {
            return Poll::Ready(Some(message));
        }
        match self.work.poll_recv(context) {
            // Something may have been sent on the express lane between the first look at it and
            // the end of the work lane.
            Poll::Ready(None) => self.express.poll_recv(context),
            ready_or_pending => ready_or_pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use core_workcoord::id::{ApiId, Attempt, QueryId, SessionId, WorkId};
    use core_workcoord::message::{CancelReason, CancelWork, Heartbeat, Hello};
    use tokio_stream::StreamExt;

    use super::*;

    fn hello() -> ApiMessage {
        let api_id = ApiId::new("api-1").unwrap();
        ApiMessage::Hello(Hello { api_id, session_id: SessionId(1), protocol_version: 1 })
    }

    fn beat(seq: u64) -> ApiMessage {
        ApiMessage::Heartbeat(Heartbeat { seq, ..Default::default() })
    }

    fn cancel(item: u32) -> ApiMessage {
        ApiMessage::CancelWork(CancelWork {
            work_id: WorkId { query: QueryId(1), item },
            attempt: Attempt::FIRST,
            reason: CancelReason::Superseded,
        })
    }

    #[tokio::test]
    async fn heartbeats_overtake_work_but_never_the_introduction() {
        let (out, stream) = lanes(4);
        out.send(hello()).await.unwrap();
        for message in [cancel(0), cancel(1), beat(1), cancel(2), beat(2)] {
            out.send(message).await.unwrap();
        }
        drop(out);
        let heard: Vec<_> = stream.collect().await;
        assert_eq!(heard, [hello(), beat(1), beat(2), cancel(0), cancel(1), cancel(2)]);
    }

    #[tokio::test]
    async fn a_full_work_lane_gives_the_message_back_and_still_passes_heartbeats() {
        let (out, mut stream) = lanes(1);
        assert_eq!(out.try_send(cancel(0)), Ok(()));
        assert_eq!(out.try_send(cancel(1)), Err(NotSent::Full(cancel(1))));
        assert_eq!(out.try_send(beat(1)), Ok(()));
        assert_eq!(stream.next().await, Some(beat(1)));
        assert_eq!(stream.next().await, Some(cancel(0)));
        assert_eq!(out.try_send(cancel(1)), Ok(()));
        drop(stream);
        assert_eq!(out.try_send(cancel(2)), Err(NotSent::Closed));
        assert_eq!(out.send(beat(2)).await, Err(Closed));
    }

    #[tokio::test]
    async fn a_sender_waits_for_room_and_nothing_is_lost() {
        let (out, mut stream) = lanes(1);
        let sender = tokio::spawn(async move {
            for item in 0..100 {
                out.send(cancel(item)).await.unwrap();
            }
        });
        for item in 0..100 {
            assert_eq!(stream.next().await, Some(cancel(item)));
        }
        assert_eq!(stream.next().await, None);
        sender.await.unwrap();
    }

    #[tokio::test]
    async fn a_message_on_either_lane_wakes_the_stream() {
        let (out, mut stream) = lanes(0);
        let reader = tokio::spawn(async move { (stream.next().await, stream.next().await) });
        tokio::task::yield_now().await;
        out.send(beat(1)).await.unwrap();
        tokio::task::yield_now().await;
        out.send(cancel(0)).await.unwrap();
        assert_eq!(reader.await.unwrap(), (Some(beat(1)), Some(cancel(0))));
    }

    #[tokio::test]
    async fn the_end_of_the_work_lane_is_not_the_end_of_the_stream() {
        let (Outbound { express, work, .. }, mut stream) = lanes(1);
        drop(work);
        let reader = tokio::spawn(async move { (stream.next().await, stream.next().await) });
        tokio::task::yield_now().await;
        express.send(beat(1)).await.unwrap();
        drop(express);
        assert_eq!(reader.await.unwrap(), (Some(beat(1)), None));
    }

    #[tokio::test]
    async fn whoever_waits_for_the_end_does_not_put_it_off() {
        let (out, mut stream) = lanes::<ApiMessage>(1);
        let over = tokio::spawn(out.over());
        out.end_with(Status::aborted("first"));
        out.end_with(Status::internal("second"));
        drop(out);
        assert_eq!(stream.next().await, None);
        assert_eq!(stream.ending().map(|status| status.message().to_owned()), Some("first".into()));
        assert!(!over.is_finished());
        drop(stream);
        over.await.unwrap();
    }
}
