//! Makes connections for a gRPC channel: over plain TCP or inside TLS, within a deadline that covers
//! the name, the connection and the handshake. When to connect again is left to the caller.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::tls::{ClientTls, Protocol, Wire};

/// For `Endpoint::connect_with_connector`. The scheme of the endpoint counts for nothing, so that
/// `http://host:port` serves for both: with TLS given here, connections are inside it.
#[derive(Clone, Debug)]
pub struct Connector {
    tls: Option<Arc<ClientConfig>>,
    patience: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address names no host and port.
    #[error("{0} names no host and port")]
    BadAddress(Uri),
    /// It can't be reached, or does not shake hands.
    #[error("{address} can't be connected to")]
    Unreachable {
        /// Whom.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// It took too long.
    #[error("{address} did not answer within {patience:?}")]
    TooSlow {
        /// Who.
        address: String,
        /// How long that is.
        patience: Duration,
    },
}

impl Connector {
    /// Connections are made within this time, inside TLS where it is given.
    pub fn new(tls: Option<&ClientTls>, patience: Duration) -> Self {
        let tls = tls.map(|tls| Arc::new(tls.config(Some(Protocol::Http2))));
        Self { tls, patience }
    }

    /// Makes one.
    pub async fn connect(self, uri: Uri) -> Result<Wire, ConnectError> {
        let (Some(host), Some(port)) = (uri.host(), uri.port_u16()) else {
            return Err(ConnectError::BadAddress(uri));
        };
        // An IPv6 address stands in brackets in a URI, and nowhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let address = format!("{host}:{port}");
        match tokio::time::timeout(self.patience, open(host, port, self.tls)).await {
            Ok(Ok(wire)) => Ok(wire),
            Ok(Err(source)) => Err(ConnectError::Unreachable { address, source }),
            Err(_) => Err(ConnectError::TooSlow { address, patience: self.patience }),
        }
    }
}

async fn open(host: String, port: u16, tls: Option<Arc<ClientConfig>>) -> io::Result<Wire> {
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    // Messages are small and wanted at once.
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Wire::Plain(stream)) };
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(tls).connect(name, stream).await?;
    Ok(Wire::Encrypted(Box::new(stream.into())))
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.clone().connect(uri);
        Box::pin(async { connecting.await.map(TokioIo::new) })
    }
}
