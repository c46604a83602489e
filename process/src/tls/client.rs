//! The end that connects: whom it trusts, and the certificate it shows where it is asked for one.
//! Both are looked up anew in every handshake, so that a client that was set up once, an HTTP
//! client for instance, takes up new files as well.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::files::{Contents, Files};
use super::fresh::Fresh;
use super::{Protocol, TlsError, provider};
use crate::config::Span;
use crate::knobs;

knobs! {
    /// TLS of connections to others.
    ClientTlsConfig {
        /// Whether connections are encrypted (default false).
        enabled: bool = false,
        /// Authorities whose certificates are trusted, as a PEM file (default: those that the
        /// system trusts).
        ca: Option<PathBuf> = None,
        /// The certificate that is shown to those who ask for one, as a PEM file (default: none).
        cert: Option<PathBuf> = None,
        /// The private key of that certificate, as a PEM file (default: none).
        key: Option<PathBuf> = None,
        /// The files are looked at this often, and new ones are used for connections that are made
        /// after (default 10s). Longer: a new certificate is taken up later.
        reload_interval: Span = Span::seconds(10),
    }
}

impl ClientTlsConfig {
    /// Checks what can be checked without looking at the files, as of this section.
    pub fn check(&self, section: &'static str) -> Result<(), BadClientTls> {
        let missing = |given, missing| Err(BadClientTls { section, given, missing });
        match (&self.cert, &self.key) {
            (Some(_), None) => missing("cert", "key"),
            (None, Some(_)) => missing("key", "cert"),
            (Some(_), Some(_)) | (None, None) => Ok(()),
        }
    }
}

/// One file is given where two belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{section}.{given} is given without {section}.{missing}")]
pub struct BadClientTls {
    section: &'static str,
    given: &'static str,
    missing: &'static str,
}

/// TLS of connections to others. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientTls {
    fresh: Arc<Fresh<Trust>>,
    interval: Duration,
    plain: ClientConfig,
}

/// What is made of the files.
#[derive(Debug)]
struct Trust {
    verifier: Arc<WebPkiServerVerifier>,
    certified: Option<Arc<CertifiedKey>>,
}

impl ClientTls {
    /// Reads the files; `None` where TLS is off. Blocks.
    pub fn load(config: &ClientTlsConfig) -> Result<Option<Self>, TlsError> {
        if !config.enabled {
            return Ok(None);
        }
        let ClientTlsConfig { ca, cert, key, reload_interval, enabled: _ } = config.clone();
        let fresh = Fresh::load(Files { cert, key, ca }, trust_of)?;
        let looked_up = Arc::new(LookedUp(Arc::clone(&fresh)));
        let mut plain = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .dangerous()
            // It asks the usual one, made of the files as they are now.
            .with_custom_certificate_verifier(Arc::clone(&looked_up) as _)
            .with_client_cert_resolver(looked_up);
        // A resumed session would not look at certificates again, whatever is in the files now.
        plain.resumption = Resumption::disabled();
        Ok(Some(Self { fresh, interval: reload_interval.get(), plain }))
    }

    /// A configuration for whoever makes connections; it stays fresh by itself. For reqwest, which
    /// chooses its protocol itself, `None`.
    pub fn config(&self, protocol: Option<Protocol>) -> ClientConfig {
        let mut config = self.plain.clone();
        config.alpn_protocols = protocol.map(Protocol::alpn).unwrap_or_default();
        config
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

fn trust_of(contents: &Contents) -> Result<Trust, TlsError> {
    let provider = provider();
    let certified = contents.certified(&provider)?;
    let roots = match contents.authorities()? {
        Some(roots) => roots,
        None => system_authorities()?,
    };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = verifier.build().map_err(TlsError::Authorities)?;
    Ok(Trust { verifier, certified })
}

fn system_authorities() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    // Some of a system's may be of kinds that nobody uses any more.
    let (usable, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if usable == 0 { Err(TlsError::NoSystemAuthorities) } else { Ok(roots) }
}

/// Asks the files of this moment.
#[derive(Debug)]
struct LookedUp(Arc<Fresh<Trust>>);

impl ResolvesClientCert for LookedUp {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.current().certified.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.current().certified.is_some()
    }
}

impl ServerCertVerifier for LookedUp {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let trust = self.0.current();
        trust.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.current().verifier.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.current().verifier.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.current().verifier.supported_verify_schemes()
    }
}
