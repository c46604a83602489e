//! The bare thing: a tonic server on a thread of its own that gives back every message as it came,
//! and a client that counts them.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::client::Grpc as Client;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

/// Starts the server. It lives until the process ends.
pub(super) fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    listener.set_nonblocking(true).expect("a socket can do that");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is bound");
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let serving = Server::builder().add_service(Echo).serve_with_incoming(incoming);
            serving.await.expect("it serves for ever");
        });
    });
    address
}

/// Messages a second that come back, so many of them on their way at once.
pub(super) async fn rate(
    address: SocketAddr,
    message: Bytes,
    in_flight: usize,
    span: Duration,
) -> f64 {
    let channel = Channel::from_shared(format!("http://{address}")).expect("an address is a URL");
    let mut client = Client::new(channel.connect_lazy());
    client.ready().await.expect("the port is open");
    let (say, stream) = mpsc::channel(1_024);
    let path = PathAndQuery::from_static("/bench.Echo/Echo");
    let request = Request::new(ReceiverStream::new(stream));
    let mut said = client.streaming(request, path, Raw).await.expect("it opens").into_inner();
    for _ in 0..in_flight {
        say.send(message.clone()).await.expect("the stream is open");
    }
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < span {
        said.next().await.expect("the stream is open").expect("it comes back");
        say.send(message.clone()).await.expect("the stream is open");
        count += 1;
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(Grpc::new(Raw).streaming(Echo, request).await) })
    }
}

impl StreamingService<Bytes> for Echo {
    type Response = Bytes;
    type ResponseStream = Streaming<Bytes>;
    type Future = Pin<
        Box<dyn Future<Output = Result<Response<Self::ResponseStream>, Status>> + Send + 'static>,
    >;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move { Ok(Response::new(request.into_inner())) })
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
