//! The three files of one end: its certificate, its key, and the authorities it trusts. Reads them
//! and takes them apart; what is made of them is left to `client` and `server`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::TlsError;

/// Where they are.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
}

/// What was in them.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    cert: Option<File>,
    key: Option<File>,
    ca: Option<File>,
}

#[derive(PartialEq, Eq)]
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Files {
    /// Reads all of them. Blocks.
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(File::read).transpose();
        Ok(Contents { cert: read(&self.cert)?, key: read(&self.key)?, ca: read(&self.ca)? })
    }
}

impl Contents {
    /// The certificate with its key, checked against each other.
    pub(super) fn certified(
        &self,
        provider: &CryptoProvider,
    ) -> Result<Option<Arc<CertifiedKey>>, TlsError> {
        let (cert, key) = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => (cert, key),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(TlsError::Incomplete { given: "cert", missing: "key" }),
            (None, Some(_)) => return Err(TlsError::Incomplete { given: "key", missing: "cert" }),
        };
        let chain = cert.certificates()?;
        let certified = CertifiedKey::from_der(chain, key.key()?, provider)
            .map_err(|source| TlsError::Unusable { path: cert.path.clone(), source })?;
        Ok(Some(Arc::new(certified)))
    }

    /// The authorities, where some are given.
    pub(super) fn authorities(&self) -> Result<Option<RootCertStore>, TlsError> {
        let Some(file) = &self.ca else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in file.certificates()? {
            roots
                .add(certificate)
                .map_err(|source| TlsError::Unusable { path: file.path.clone(), source })?;
        }
        Ok(Some(roots))
    }
}

impl File {
    fn read(path: &Path) -> Result<Self, TlsError> {
        match fs::read(path) {
            Ok(bytes) => Ok(Self { path: path.into(), bytes }),
            Err(source) => Err(TlsError::File { path: path.into(), source }),
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match all {
            Ok(all) if all.is_empty() => Err(self.lacks("certificate")),
            Ok(all) => Ok(all),
            Err(source) => Err(TlsError::Pem { path: self.path.clone(), source }),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            pem::Error::NoItemsFound => self.lacks("private key"),
            source => TlsError::Pem { path: self.path.clone(), source },
        })
    }

    fn lacks(&self, what: &'static str) -> TlsError {
        TlsError::Empty { path: self.path.clone(), what }
    }
}
