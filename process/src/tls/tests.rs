//! Handshakes with certificates made for the moment: who is refused, and how new files are taken up.

mod authority;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use authority::Authority;
use hyper::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::fresh::Look;
use super::{ClientTls, ClientTlsConfig, Protocol, ServerTls, TlsConfig, TlsError, Wire};
use crate::config::Span;
use crate::connect::{ConnectError, Connector};

const PATIENCE: Duration = Duration::from_secs(10);

/// What a client says of a certificate that it does not trust.
const STRANGER: &str = "invalid peer certificate";

impl Authority {
    fn server(&self, client_ca: Option<&Self>) -> TlsConfig {
        TlsConfig {
            cert: self.file("cert.pem"),
            key: self.file("key.pem"),
            client_ca: client_ca.and_then(|authority| authority.file("ca.pem")),
            reload_interval: Span::millis(100),
        }
    }

    /// A client that trusts this authority, with a certificate of another one or without.
    fn client(&self, own: Option<&Self>) -> ClientTlsConfig {
        ClientTlsConfig {
            enabled: true,
            ca: self.file("ca.pem"),
            cert: own.and_then(|authority| authority.file("cert.pem")),
            key: own.and_then(|authority| authority.file("key.pem")),
            reload_interval: Span::millis(100),
        }
    }
}

/// A port that says a word to everybody who comes through the handshake.
struct Port {
    address: SocketAddr,
    tls: ServerTls,
    _serving: JoinSet<()>,
}

async fn port(config: &TlsConfig) -> Port {
    let tls = ServerTls::load(config, Protocol::Http2).unwrap().expect("it is on");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    let accepting = tls.clone();
    serving.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut wire) = accepting.accept(stream, Duration::from_millis(300)).await {
                let said = async {
                    wire.write_all(b"welcome").await?;
                    wire.shutdown().await
                };
                // A client that refuses our certificate is gone by now.
                let _ = said.await;
            }
        }
    });
    Port { address, tls, _serving: serving }
}

impl Port {
    /// What a client hears. Under TLS 1.3 it learns only by reading that it was refused.
    async fn greets(&self, client: &ClientTls, name: &str) -> io::Result<String> {
        let uri: Uri = format!("http://{name}:{}", self.address.port()).parse().unwrap();
        let connected = Connector::new(Some(client), PATIENCE).connect(uri).await;
        let mut wire = match connected {
            Ok(wire) => wire,
            Err(ConnectError::Unreachable { source, .. }) => return Err(source),
            Err(other) => panic!("{other}"),
        };
        assert!(matches!(wire, Wire::Encrypted(_)));
        let mut heard = String::new();
        wire.read_to_string(&mut heard).await?;
        Ok(heard)
    }
}

fn client(config: &ClientTlsConfig) -> ClientTls {
    ClientTls::load(config).unwrap().expect("it is on")
}

#[track_caller]
fn refused(heard: io::Result<String>, why: &str) {
    let error = heard.expect_err("it is refused").to_string();
    assert!(error.contains(why), "{error}");
}

#[tokio::test]
async fn a_trusted_server_is_spoken_with_and_others_are_not() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.sign("localhost");
    let port = port(&ours.server(None)).await;
    assert_eq!(port.greets(&client(&ours.client(None)), "localhost").await.unwrap(), "welcome");
    refused(port.greets(&client(&theirs.client(None)), "localhost").await, STRANGER);
    refused(port.greets(&client(&ours.client(None)), "127.0.0.1").await, "not valid for name");
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_or_nothing_is_refused() {
    let ours = Authority::new();
    ours.sign("localhost");
    let port = port(&ours.server(None)).await;
    for words in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"GET / HTTP/1.1\r\n\r\n", b""] {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        stream.write_all(words).await.unwrap();
        let mut heard = Vec::new();
        // An alert or nothing, and then the end.
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
        assert!(ended.is_ok() && !heard.windows(7).any(|part| part == b"welcome"), "{heard:?}");
    }
    assert_eq!(port.tls.figures().failed, 3);
}

#[tokio::test]
async fn where_it_is_mutual_a_peer_needs_a_certificate_of_the_right_authority() {
    let (ours, peers, strangers) = (Authority::new(), Authority::new(), Authority::new());
    ours.sign("localhost");
    peers.sign("api-1");
    strangers.sign("api-1");
    let port = port(&ours.server(Some(&peers))).await;
    let known = client(&ours.client(Some(&peers)));
    assert_eq!(port.greets(&known, "localhost").await.unwrap(), "welcome");
    refused(port.greets(&client(&ours.client(None)), "localhost").await, "CertificateRequired");
    let stranger = client(&ours.client(Some(&strangers)));
    assert!(port.greets(&stranger, "localhost").await.is_err());
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let (ours, later) = (Authority::new(), Authority::new());
    ours.sign("localhost");
    later.sign("localhost");
    let port = port(&ours.server(None)).await;
    let (old, new) = (client(&ours.client(None)), client(&later.client(None)));
    assert_eq!(port.tls.look(), Look::Unchanged);
    let cert = ours.path().join("cert.pem");
    fs::copy(later.path().join("cert.pem"), &cert).unwrap();
    // A certificate whose key has not come yet.
    assert_eq!(port.tls.look(), Look::Kept);
    for broken in ["", "-----BEGIN CERTIFICATE-----\nnot", "no PEM at all"] {
        fs::write(&cert, broken).unwrap();
        assert_eq!(port.tls.look(), Look::Kept, "{broken}");
    }
    fs::remove_file(&cert).unwrap();
    assert_eq!(port.tls.look(), Look::Kept);
    assert!(port.tls.figures().stale);
    assert_eq!(port.greets(&old, "localhost").await.unwrap(), "welcome");
    refused(port.greets(&new, "localhost").await, STRANGER);
    for file in ["cert.pem", "key.pem"] {
        fs::copy(later.path().join(file), ours.path().join(file)).unwrap();
    }
    let mut keeping = JoinSet::new();
    keeping.spawn(port.tls.clone().keep_fresh());
    let renewed = async {
        while port.greets(&new, "localhost").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, renewed).await.expect("the new certificate is taken up");
    refused(port.greets(&old, "localhost").await, STRANGER);
    assert!(!port.tls.figures().stale);
}

#[tokio::test]
async fn a_client_takes_up_new_authorities_and_a_new_certificate_of_its_own() {
    let (ours, peers) = (Authority::new(), Authority::new());
    ours.sign("localhost");
    peers.sign("api-1");
    let port = port(&ours.server(Some(&peers))).await;
    let files = Authority::new();
    files.sign("api-1");
    let client = client(&files.client(Some(&files)));
    refused(port.greets(&client, "localhost").await, STRANGER);
    fs::copy(ours.path().join("ca.pem"), files.path().join("ca.pem")).unwrap();
    assert_eq!(client.look(), Look::Renewed);
    assert!(port.greets(&client, "localhost").await.is_err(), "its own is a stranger's");
    for file in ["cert.pem", "key.pem"] {
        fs::copy(peers.path().join(file), files.path().join(file)).unwrap();
    }
    assert_eq!(client.look(), Look::Renewed);
    assert_eq!(port.greets(&client, "localhost").await.unwrap(), "welcome");
}

#[test]
fn files_that_can_not_be_used_are_named_at_the_start() {
    let ours = Authority::new();
    ours.sign("localhost");
    let complaint = |config: &TlsConfig| {
        let error = ServerTls::load(config, Protocol::Http1).expect_err("it can't be used");
        error.to_string()
    };
    let mut config = ours.server(None);
    config.key = Some(ours.path().join("cert.pem"));
    assert!(complaint(&config).contains("there is no private key in"), "{}", complaint(&config));
    config.key = None;
    assert_eq!(complaint(&config), "cert is given without key");
    assert_eq!(config.check().unwrap_err().to_string(), "tls.cert is given without tls.key");
    config.key = Some(ours.path().join("nothing.pem"));
    assert!(complaint(&config).contains("nothing.pem can't be read"));
    let half = ClientTlsConfig { cert: None, ..ours.client(Some(&ours)) };
    let complaint = half.check("workers").unwrap_err().to_string();
    assert_eq!(complaint, "workers.key is given without workers.cert");
    let off = TlsConfig::default();
    assert!(matches!(ServerTls::load(&off, Protocol::Http1), Ok(None)));
    let no_ca = ClientTlsConfig { ca: Some(ours.path().join("key.pem")), ..ours.client(None) };
    assert!(matches!(ClientTls::load(&no_ca), Err(TlsError::Empty { what: "certificate", .. })));
}
