//! The end that is connected to: a certificate and its key, and whether peers need one too.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::SingleCertAndKey;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::files::{Contents, Files};
use super::fresh::Fresh;
use super::{Protocol, TlsError, Wire, provider};
use crate::config::{OutOfRange, Span, within};
use crate::knobs;

knobs! {
    /// TLS of the ports.
    TlsConfig {
        /// The certificate with its chain, as a PEM file; with it and its key the ports speak TLS
        /// and nothing else (default: none, and no TLS).
        cert: Option<PathBuf> = None,
        /// The private key of the certificate, as a PEM file (default: none).
        key: Option<PathBuf> = None,
        /// Authorities, as a PEM file: a peer needs a certificate of one of them, on every port,
        /// probes included (default: none, and no peer needs one).
        client_ca: Option<PathBuf> = None,
        /// The files are looked at this often, and new ones are used for connections that come
        /// after (default 10s). Longer: a new certificate is taken up later.
        reload_interval: Span = Span::seconds(10),
    }
}

impl TlsConfig {
    /// Checks what can be checked without looking at the files, as of the section `tls`.
    pub fn check(&self) -> Result<(), BadTls> {
        let missing = |given, missing| Err(BadTls::Incomplete { given, missing });
        match (&self.cert, &self.key, &self.client_ca) {
            (Some(_), None, _) => return missing("tls.cert", "tls.key"),
            (None, Some(_), _) => return missing("tls.key", "tls.cert"),
            (None, None, Some(_)) => return missing("tls.client_ca", "tls.cert"),
            (Some(_), Some(_), _) | (None, None, None) => {}
        }
        let interval = self.reload_interval.as_millis();
        Ok(within("tls.reload_interval (ms)", interval, 100, 86_400_000)?)
    }

    /// Whether the ports speak TLS.
    pub fn is_on(&self) -> bool {
        self.cert.is_some()
    }
}

/// Knobs of TLS that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTls {
    /// One file is given where two belong together.
    #[error("{given} is given without {missing}")]
    Incomplete {
        /// What is there.
        given: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// A value outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
}

/// TLS of one port. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServerTls {
    fresh: Arc<Fresh<ServerConfig>>,
    interval: Duration,
    failed: Arc<AtomicU64>,
}

/// How TLS of a port does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsFigures {
    /// Handshakes that came to nothing.
    pub failed: u64,
    /// The files can't be used as they are, and older ones are in use.
    pub stale: bool,
}

impl ServerTls {
    /// Reads the files; `None` where TLS is off. Blocks.
    pub fn load(config: &TlsConfig, protocol: Protocol) -> Result<Option<Self>, TlsError> {
        if !config.is_on() {
            return Ok(None);
        }
        let TlsConfig { cert, key, client_ca, reload_interval } = config.clone();
        let make = move |contents: &Contents| server_config(contents, protocol);
        let fresh = Fresh::load(Files { cert, key, ca: client_ca }, make)?;
        Ok(Some(Self { fresh, interval: reload_interval.get(), failed: Arc::default() }))
    }

    /// Shakes hands with a peer, who has this long for it.
    pub async fn accept(&self, stream: TcpStream, patience: Duration) -> io::Result<Wire> {
        let acceptor = TlsAcceptor::from(self.fresh.current());
        let error = match tokio::time::timeout(patience, acceptor.accept(stream)).await {
            Ok(Ok(accepted)) => return Ok(Wire::Encrypted(Box::new(accepted.into()))),
            Ok(Err(error)) => error,
            Err(_) => io::Error::new(io::ErrorKind::TimedOut, "no handshake came in time"),
        };
        self.failed.fetch_add(1, Ordering::Relaxed);
        Err(error)
    }

    /// How it does.
    pub fn figures(&self) -> TlsFigures {
        TlsFigures { failed: self.failed.load(Ordering::Relaxed), stale: self.fresh.is_stale() }
    }

    /// Keeps the certificates fresh until dropped.
    pub async fn keep_fresh(self) {
        self.fresh.keep(self.interval).await;
    }

    #[cfg(test)]
    pub(super) fn look(&self) -> super::fresh::Look {
        self.fresh.look()
    }
}

fn server_config(contents: &Contents, protocol: Protocol) -> Result<ServerConfig, TlsError> {
    let provider = provider();
    let certified = contents.certified(&provider)?;
    let certified =
        certified.ok_or(TlsError::Incomplete { given: "client_ca", missing: "cert" })?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let builder = match contents.authorities()? {
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Authorities)?)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = protocol.alpn();
    Ok(config)
}
