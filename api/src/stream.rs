//! Control streams to workers: a task for each opens one and hears it out. Which worker is dialled,
//! what is said, and what follows from the answers is decided by the coordinator.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use core_workcoord::id::{Endpoint, SessionId};
use core_workcoord::message::{ApiMessage, WorkerMessage};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tracing::{debug, warn};
use tributary_proto::client::open;
use tributary_proto::lanes::{Outbound, lanes};
use tributary_proto::stream::{Inbound, StreamError};

/// Makes connections to workers.
pub trait Dial: Send + Sync + 'static {
    /// Connects to a worker's control port. Whoever asks gives up after a while.
    fn dial(
        &self,
        endpoint: &Endpoint,
    ) -> Pin<Box<dyn Future<Output = Result<Channel, DialError>> + Send>>;
}

/// A worker can't be reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Its address is none.
    #[error("{endpoint} is no address")]
    Address {
        /// What discovery says.
        endpoint: Endpoint,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// There is no connection.
    #[error("{endpoint} can't be reached")]
    Connect {
        /// Where.
        endpoint: Endpoint,
        /// Why not.
        source: tonic::transport::Error,
    },
}

/// What is heard of a stream.
#[derive(Debug)]
pub enum Heard {
    /// It is open.
    Opened(Outbound<ApiMessage>),
    /// The worker said something.
    Told(WorkerMessage),
    /// It said something that is no message.
    Malformed,
    /// It is over, or never came to be.
    Ended,
}

/// How a stream is opened.
#[derive(Clone, Debug)]
pub struct StreamTerms {
    /// A connection and the stream over it must be there this soon.
    pub open_timeout: Duration,
    /// Messages that may wait for a worker that reads slowly.
    pub send_queue: usize,
}

/// Opens a stream and hears it out, until either side ends it.
pub async fn run(
    session: SessionId,
    endpoint: Endpoint,
    dial: impl Future<Output = Result<Channel, DialError>>,
    terms: StreamTerms,
    over: CancellationToken,
    tell: mpsc::Sender<(SessionId, Heard)>,
) {
    let listening = async {
        let opened = open_stream(dial, &terms).await;
        let (mut inbound, outbound) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                debug!(%session, %endpoint, reason, "no stream to a worker");
                return;
            }
        };
        if tell.send((session, Heard::Opened(outbound))).await.is_err() {
            return;
        }
        while let Some(heard) = inbound.next().await {
            let heard = match heard {
                Ok(message) => Heard::Told(message),
                Err(error) if error.is_violation() => {
                    warn!(%session, %endpoint, error = why(&error), "a worker broke the protocol");
                    Heard::Malformed
                }
                Err(error) => {
                    debug!(%session, %endpoint, error = why(&error), "a stream broke");
                    return;
                }
            };
            let last = matches!(heard, Heard::Malformed);
            if tell.send((session, heard)).await.is_err() || last {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = over.cancelled() => return,
        () = listening => {}
    }
    // Where nobody listens any more, the node is gone.
    drop(tell.send((session, Heard::Ended)).await);
}

/// Connects and opens, both within one deadline: over a cut link a connect can succeed and the
/// opening then wait for ever.
async fn open_stream(
    dial: impl Future<Output = Result<Channel, DialError>>,
    terms: &StreamTerms,
) -> Result<(Inbound<WorkerMessage>, Outbound<ApiMessage>), String> {
    let opening = async {
        let channel = dial.await.map_err(|error| why(&error))?;
        let (outbound, stream) = lanes(terms.send_queue);
        let inbound = open(channel, stream, terms.open_timeout).await;
        Ok((inbound.map_err(|error| why(&error))?, outbound))
    };
    match tokio::time::timeout(terms.open_timeout, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(StreamError::NotOpened(terms.open_timeout).to_string()),
    }
}

/// An error with what it comes from.
fn why(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
