//! The API node's end of the control stream, in domain types. Which worker to dial, and when to try
//! again, is left to the API node.

use std::time::Duration;

use core_workcoord::message::{ApiMessage, WorkerMessage};
use tokio_stream::StreamExt;
use tonic::transport::Channel;

use crate::lanes::OutboundStream;
use crate::limits::WORKER_MESSAGE_MAX_BYTES;
use crate::stream::{Inbound, StreamError};
use crate::wire::work_control_client::WorkControlClient;
use crate::{decode, encode};

/// Opens the control stream over a channel: `outbound` is said to the worker, and what comes back
/// is what it says. Gives up after `deadline`, for over a cut link a connect can succeed and the
/// open then wait for ever. The deadline is for the opening alone, and includes the connect where
/// the channel has not made it yet.
pub async fn open(
    channel: Channel,
    outbound: OutboundStream<ApiMessage>,
    deadline: Duration,
) -> Result<Inbound<WorkerMessage>, StreamError> {
    let mut client =
        WorkControlClient::new(channel).max_decoding_message_size(WORKER_MESSAGE_MAX_BYTES);
    let opening = client.control(outbound.map(encode::api_message));
    let response = tokio::time::timeout(deadline, opening)
        .await
        .map_err(|_| StreamError::NotOpened(deadline))?
        .map_err(|status| StreamError::Broken(Box::new(status)))?;
    Ok(Inbound::new(response.into_inner(), decode::worker_message, WORKER_MESSAGE_MAX_BYTES))
}
