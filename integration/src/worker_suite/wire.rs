//! A peer that sends bytes of its own making where messages belong.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::PATIENCE;

/// Says these bytes, each as one message, and then nothing. Gives how the worker ended the stream.
pub async fn say(grpc: SocketAddr, messages: Vec<Bytes>) -> Status {
    timeout(PATIENCE, exchange(grpc, messages)).await.expect("the worker ends the stream")
}

async fn exchange(grpc: SocketAddr, messages: Vec<Bytes>) -> Status {
    let channel = Channel::from_shared(format!("http://{grpc}")).expect("an address is a URL");
    let mut client = Grpc::new(channel.connect_lazy());
    client.ready().await.expect("the port is open");
    // The stream stays open on this side, so that only the worker can end it.
    let stream = tokio_stream::iter(messages).chain(tokio_stream::pending());
    let path = PathAndQuery::from_static("/tributary.workcoord.v1.WorkControl/Control");
    let answer = match client.streaming(Request::new(stream), path, Raw).await {
        Ok(answer) => answer,
        Err(status) => return status,
    };
    let mut said = answer.into_inner();
    loop {
        match said.next().await {
            Some(Ok(_)) => {}
            Some(Err(status)) => return status,
            None => return Status::ok(""),
        }
    }
}

/// Passes messages through as they are.
#[derive(Clone, Copy, Debug, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, wire: &mut EncodeBuf<'_>) -> Result<(), Status> {
        wire.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, wire: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(wire.copy_to_bytes(wire.remaining())))
    }
}
