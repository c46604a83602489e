//! Where connections come from: a TCP port, inside TLS or not. Behind a trait, so that what serves
//! real ports can serve those of a simulated network.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use crate::tls::{ServerTls, Wire};

/// Takes connections. Dropped, it takes no more.
pub trait Port: Send + Sync + 'static {
    /// A connection that has come and was not greeted.
    type Arrival: Send + 'static;
    /// One that can be read and written.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection, and gives it with the address of its peer.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Arrival, SocketAddr)>> + Send;

    /// Does what comes before the first byte is read. The peer has this long for its part of it.
    fn greet(
        arrival: Self::Arrival,
        patience: Duration,
    ) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// A TCP port, inside TLS where that is given.
#[derive(Debug)]
pub struct TcpPort {
    listener: TcpListener,
    tls: Option<ServerTls>,
}

impl TcpPort {
    /// Connections come to this listener. Keeping TLS fresh is left to the caller.
    pub fn new(listener: TcpListener, tls: Option<ServerTls>) -> Self {
        Self { listener, tls }
    }

    /// Connections are inside TLS, where it is given.
    pub fn with_tls(self, tls: Option<ServerTls>) -> Self {
        Self { tls, ..self }
    }
}

impl Port for TcpPort {
    type Arrival = (TcpStream, Option<ServerTls>);
    type Stream = Wire;

    async fn accept(&self) -> io::Result<(Self::Arrival, SocketAddr)> {
        let (stream, peer) = self.listener.accept().await?;
        Ok(((stream, self.tls.clone()), peer))
    }

    async fn greet((stream, tls): Self::Arrival, patience: Duration) -> io::Result<Wire> {
        // Answers are small and wanted at once.
        stream.set_nodelay(true)?;
        match tls {
            Some(tls) => tls.accept(stream, patience).await,
            None => Ok(Wire::Plain(stream)),
        }
    }
}
