//! The worker's end of the control stream, in domain types. One call of the handler per stream; what
//! a session does is left to it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use core_workcoord::message::{ApiMessage, WorkerMessage};
use tokio_stream::Stream;
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::lanes::OutboundStream;
use crate::limits::API_MESSAGE_MAX_BYTES;
use crate::stream::Inbound;
use crate::wire::work_control_server::{WorkControl, WorkControlServer};
use crate::{decode, encode};

/// Takes the streams that API nodes open.
pub trait ControlHandler: Send + Sync + 'static {
    /// An API node opened a stream: `inbound` is what it says, and what is returned is said to it.
    /// Called before anything is read, and not to block: a session runs in a task of the handler's
    /// own. The stream ends when the last [`Outbound`](crate::lanes::Outbound) of it is dropped, with
    /// the reason given there.
    /// `peer` is the address of the other side, for logs, where the transport knows it.
    fn accept(
        &self,
        inbound: Inbound<ApiMessage>,
        peer: Option<SocketAddr>,
    ) -> OutboundStream<WorkerMessage>;
}

/// The control service, to be served by a tonic server.
pub fn routes<H: ControlHandler>(handler: H) -> Routes {
    let service = WorkControlServer::new(Control { handler })
        .max_decoding_message_size(API_MESSAGE_MAX_BYTES);
    Routes::new(service)
}

struct Control<H> {
    handler: H,
}

#[tonic::async_trait]
impl<H: ControlHandler> WorkControl for Control<H> {
    type ControlStream = BoxStream<Bytes>;

    async fn control(
        &self,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<Self::ControlStream>, Status> {
        let peer = request.remote_addr();
        let inbound =
            Inbound::new(request.into_inner(), decode::api_message, API_MESSAGE_MAX_BYTES);
        let outbound = self.handler.accept(inbound, peer);
        Ok(Response::new(Box::pin(Answers { outbound: Some(outbound) })))
    }
}

/// What is said to an API node, and at last why no more is.
struct Answers {
    outbound: Option<OutboundStream<WorkerMessage>>,
}

impl Stream for Answers {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(outbound) = &mut self.outbound else { return Poll::Ready(None) };
        match ready!(Pin::new(outbound).poll_next(context)) {
            Some(message) => Poll::Ready(Some(Ok(encode::worker_message(message)))),
            None => {
                let outbound = self.outbound.take();
                Poll::Ready(outbound.and_then(|outbound| outbound.ending()).map(Err))
            }
        }
    }
}
