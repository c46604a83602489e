//! TLS for both ends of a connection. Certificates come from files that are looked at again and
//! again: new ones are taken up without a restart, and where they are bad the old ones stay. Who may
//! ask what is left to others; here a peer has a certificate or it has none.

mod client;
mod files;
mod fresh;
mod server;
mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use client::{BadClientTls, ClientTls, ClientTlsConfig};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem;
use rustls::server::VerifierBuilderError;
pub use server::{BadTls, ServerTls, TlsConfig, TlsFigures};
pub use wire::Wire;

/// What is spoken inside: both ends agree on it while they shake hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, as gRPC needs it.
    Http2,
}

impl Protocol {
    fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
        }
    }
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One file is given where two belong together.
    #[error("{given} is given without {missing}")]
    Incomplete {
        /// What is there.
        given: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// A file can't be read.
    #[error("{} can't be read", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is no PEM.
    #[error("{} is no PEM file", path.display())]
    Pem {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A file lacks what it is there for.
    #[error("there is no {what} in {}", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// A certificate, a key or both together can't be used.
    #[error("{} can't be used: {source}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// Nobody can be checked against these authorities.
    #[error("peers can't be checked: {0}")]
    Authorities(#[source] VerifierBuilderError),
    /// The system has no authorities that it trusts.
    #[error("this system trusts no certificate authority, so one has to be given")]
    NoSystemAuthorities,
    /// The library refuses its own defaults.
    #[error("TLS can't be set up")]
    Setup(#[source] rustls::Error),
}

/// The cryptography, chosen here and not by whoever comes first in the process.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests;
