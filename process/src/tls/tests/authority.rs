//! An authority made for the moment, and a folder for what it signs: `ca.pem`, `cert.pem`, `key.pem`.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// An authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    /// A new one, whom nobody trusts yet.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        let folder = TempDir::new().expect("a folder can be made");
        fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("it is written");
        Self { issuer, folder }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.path().join(name))
    }

    /// Puts a new certificate for this name, and its key, in place of the old ones.
    pub fn sign(&self, name: &str) {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a plain name");
        let cert = params.signed_by(&key, &self.issuer).expect("it is signed");
        fs::write(self.path().join("cert.pem"), cert.pem()).expect("it is written");
        fs::write(self.path().join("key.pem"), key.serialize_pem()).expect("it is written");
    }
}
