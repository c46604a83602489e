//! The simulated network behind the seams of API node and worker: ports, dialling, and a client that
//! fetches artifacts, for the real one can't run here. It behaves as the real one does: a deadline
//! for connecting and for every read, a few tries, and nothing unchecked is handed on.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::Endpoint;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint as Address};
use tributary_api::fetch::{Get, Got};
use tributary_api::stream::{Dial, DialError};
use tributary_artifact_store::{FetchConfig, FetchError, Mismatch, VerifiedArtifact};
use tributary_process::port::Port;
use turmoil::net::{TcpListener, TcpStream};

/// A port of a simulated host.
pub(super) struct SimPort(TcpListener);

impl SimPort {
    pub(super) async fn open(port: u16) -> io::Result<Self> {
        TcpListener::bind(("0.0.0.0", port)).await.map(Self)
    }
}

impl Port for SimPort {
    type Arrival = TcpStream;
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.0.accept().await
    }

    async fn greet(arrival: TcpStream, _: Duration) -> io::Result<TcpStream> {
        Ok(arrival)
    }
}

/// Dials simulated workers.
pub(super) struct SimDial;

impl Dial for SimDial {
    fn dial(
        &self,
        endpoint: &Endpoint,
    ) -> Pin<Box<dyn Future<Output = Result<Channel, DialError>> + Send>> {
        let endpoint = endpoint.clone();
        Box::pin(async move {
            let address = Address::from_shared(format!("http://{endpoint}"))
                .map_err(|source| DialError::Address { endpoint: endpoint.clone(), source })?;
            let connector =
                tower::service_fn(|uri: Uri| async move { connect(&uri).await.map(TokioIo::new) });
            let connected = address.connect_with_connector(connector).await;
            connected.map_err(|source| DialError::Connect { endpoint, source })
        })
    }
}

async fn connect(uri: &Uri) -> io::Result<TcpStream> {
    let host = uri.host().unwrap_or_default().to_owned();
    TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await
}

/// Fetches artifacts from simulated workers.
pub(super) struct SimGet {
    pub(super) terms: FetchConfig,
    /// Takes whatever comes for what was announced: a deliberate fault.
    pub(super) trusts_bytes: bool,
}

/// Why a try came to nothing.
enum Failed {
    /// It may do better next time.
    Broken,
    Final(FetchError),
}

impl SimGet {
    async fn attempt(&self, url: &str, token: &str, artifact: &Artifact) -> Result<Bytes, Failed> {
        let broken = |_| Failed::Broken;
        let bad = || Failed::Final(FetchError::BadUrl { reason: "it is not an address" });
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let patience = self.terms.read_timeout;
        let stream = timeout(self.terms.connect_timeout, connect(&uri)).await;
        let stream = stream.map_err(|_| Failed::Broken)?.map_err(|_| Failed::Broken)?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(broken)?;
        // Ends with its sender, or with the connection.
        tokio::spawn(async move { drop(connection.await) });
        let request = Request::get(uri.path())
            .header("host", uri.authority().map_or("", |it| it.as_str()))
            .header("authorization", format!("Bearer {token}"))
            .body(Empty::<Bytes>::new())
            .map_err(|_| bad())?;
        let response = timeout(patience, sender.send_request(request)).await;
        let response = response.map_err(|_| Failed::Broken)?.map_err(broken)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Err(Failed::Final(FetchError::Gone)),
            status if status.is_server_error() => return Err(Failed::Broken),
            status => {
                let status = status.as_u16();
                return Err(Failed::Final(FetchError::Answer { status }));
            }
        }
        let (mut body, mut bytes) = (response.into_body(), BytesMut::new());
        while let Some(frame) = timeout(patience, body.frame()).await.map_err(|_| Failed::Broken)? {
            if let Ok(piece) = frame.map_err(broken)?.into_data() {
                bytes.extend_from_slice(&piece);
            }
            let actual = bytes.len() as u64;
            if actual > artifact.size_bytes {
                let mismatch = Mismatch::Size { expected: artifact.size_bytes, actual };
                return Err(Failed::Final(mismatch.into()));
            }
        }
        Ok(bytes.freeze())
    }

    async fn fetch(
        &self,
        url: &str,
        token: &str,
        artifact: &Artifact,
    ) -> Result<VerifiedArtifact, FetchError> {
        let mut pause = self.terms.backoff;
        for _ in 0..self.terms.attempts {
            match self.attempt(url, token, artifact).await {
                Ok(bytes) => {
                    let (mut size, mut checksum) = (artifact.size_bytes, artifact.checksum);
                    if self.trusts_bytes {
                        size = bytes.len() as u64;
                        checksum = Checksum(Sha256::digest(&bytes).into());
                    }
                    return Ok(VerifiedArtifact::check(bytes, size, checksum)?);
                }
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Broken) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.terms.backoff_max);
                }
            }
        }
        // The error of a client that is none: the coordinator hears the same of both.
        Err(FetchError::Answer { status: StatusCode::GATEWAY_TIMEOUT.as_u16() })
    }
}

impl Get for SimGet {
    fn get<'a>(
        &'a self,
        url: &'a str,
        token: &'a str,
        artifact: &'a Artifact,
    ) -> Pin<Box<dyn Future<Output = Result<Got, FetchError>> + Send + 'a>> {
        Box::pin(async move { self.fetch(url, token, artifact).await.map(Got::InMemory) })
    }
}
