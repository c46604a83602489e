//! A worker whose ports speak TLS, and API nodes with the right certificates, the wrong ones and
//! none.

#[path = "../../process/src/tls/tests/authority.rs"]
mod authority;
mod support;

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authority::Authority;
use core_workcoord::artifact::Checksum;
use support::{Api, PATIENCE, Stage, config, stage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tributary_artifact_store::{FetchConfig, FetchError, Fetcher};
use tributary_process::connect::Connector;
use tributary_process::tls::{ClientTls, ClientTlsConfig};
use tributary_worker::config::{Span, WorkerConfig};

fn encrypted(ours: &Authority, client_ca: Option<&Authority>) -> WorkerConfig {
    let mut config = config(1);
    config.tls.cert = ours.file("cert.pem");
    config.tls.key = ours.file("key.pem");
    config.tls.client_ca = client_ca.and_then(|authority| authority.file("ca.pem"));
    config.tls.reload_interval = Span::millis(100);
    config.control.hello_timeout = Span::millis(500);
    config
}

fn client(trusted: &Authority, own: Option<&Authority>) -> ClientTls {
    let config = ClientTlsConfig {
        enabled: true,
        ca: trusted.file("ca.pem"),
        cert: own.and_then(|authority| authority.file("cert.pem")),
        key: own.and_then(|authority| authority.file("key.pem")),
        ..ClientTlsConfig::default()
    };
    ClientTls::load(&config).expect("the files are good").expect("it is on")
}

fn channel(grpc: SocketAddr, tls: &ClientTls) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{grpc}")).expect("an address is a URL");
    endpoint.connect_with_connector_lazy(Connector::new(Some(tls), PATIENCE))
}

/// An artifact from the assignment to the acknowledgement, all of it inside TLS.
async fn works(stage: &Stage, tls: &ClientTls) {
    let mut api = Api::over(channel(stage.grpc(), tls)).await.expect("it opens");
    api.greet("api-2", 1).await;
    api.start(0, "size:6").await;
    let artifact = api.ready(0).await;
    assert!(artifact.url.starts_with("https://127.0.0.1:"), "{}", artifact.url);
    let fetcher = Fetcher::with_tls(FetchConfig::default(), tls.config(None)).expect("a client");
    let (size, checksum) = (artifact.size_bytes, artifact.checksum);
    let fetched = fetcher.fetch(&artifact.url, api.token(), size, checksum).await;
    assert_eq!(fetched.expect("it is served").bytes().as_ref(), b"size:6");
    api.acknowledge(0, &artifact).await;
}

/// Whether a fetch fails for want of a connection, whatever would be answered inside it.
async fn is_unreachable(http: SocketAddr, tls: &ClientTls) -> bool {
    let config = FetchConfig { attempts: 1, ..FetchConfig::default() };
    let fetcher = Fetcher::with_tls(config, tls.config(None)).expect("a client");
    let url = format!("https://{http}/artifacts/x");
    let fetched = fetcher.fetch(&url, "", 1, Checksum([0; 32])).await;
    matches!(fetched, Err(FetchError::Unreachable(_)))
}

#[tokio::test]
async fn both_ports_speak_tls_with_those_who_trust_them() {
    let (ours, strangers) = (Authority::new(), Authority::new());
    ours.sign("127.0.0.1");
    let stage = stage(&encrypted(&ours, None)).await;
    let known = client(&ours, None);
    works(&stage, &known).await;
    assert!(!is_unreachable(stage.http(), &known).await);
    let stranger = client(&strangers, None);
    assert!(Api::over(channel(stage.grpc(), &stranger)).await.is_err());
    assert!(is_unreachable(stage.http(), &stranger).await);
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_is_told_nothing() {
    let ours = Authority::new();
    ours.sign("127.0.0.1");
    let stage = stage(&encrypted(&ours, None)).await;
    for port in [stage.grpc(), stage.http()] {
        let mut stream = TcpStream::connect(port).await.expect("the port is open");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.expect("it is taken");
        let mut heard = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
        // An alert at most.
        assert!(ended.is_ok() && heard.len() < 16, "{heard:?}");
    }
}

#[tokio::test]
async fn where_it_is_mutual_an_api_node_without_a_certificate_is_refused() {
    let (ours, apis, strangers) = (Authority::new(), Authority::new(), Authority::new());
    ours.sign("127.0.0.1");
    apis.sign("api-1");
    strangers.sign("api-1");
    let stage = stage(&encrypted(&ours, Some(&apis))).await;
    works(&stage, &client(&ours, Some(&apis))).await;
    for own in [None, Some(&strangers)] {
        let tls = client(&ours, own);
        assert!(Api::over(channel(stage.grpc(), &tls)).await.is_err());
        assert!(is_unreachable(stage.http(), &tls).await);
    }
}

#[tokio::test]
async fn peers_that_shake_no_hands_are_let_go_and_take_a_place_until_then() {
    let ours = Authority::new();
    ours.sign("127.0.0.1");
    let mut config = encrypted(&ours, None);
    config.control.max_connections = 2;
    config.serving.max_connections = 2;
    config.serving.request_timeout = Span::millis(500);
    let stage = stage(&config).await;
    let known = client(&ours, None);
    for port in [stage.grpc(), stage.http()] {
        let begun = Instant::now();
        let mut silent = Vec::new();
        for _ in 0..2 {
            silent.push(TcpStream::connect(port).await.expect("the port is open"));
        }
        if port == stage.grpc() {
            assert!(Api::over(channel(port, &known)).await.is_err(), "there is a third place");
            assert!(begun.elapsed() < Duration::from_millis(400), "{:?}", begun.elapsed());
        }
        for stream in &mut silent {
            let mut heard = Vec::new();
            let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
            assert!(ended.is_ok() && heard.is_empty(), "{heard:?}");
        }
        assert!(begun.elapsed() > Duration::from_millis(400), "{:?}", begun.elapsed());
    }
    // All places are free again.
    works(&stage, &known).await;
}

#[tokio::test]
async fn a_new_certificate_is_taken_up_while_old_streams_go_on() {
    let (ours, later) = (Authority::new(), Authority::new());
    ours.sign("127.0.0.1");
    later.sign("127.0.0.1");
    let stage = stage(&encrypted(&ours, None)).await;
    let mut old = Api::over(channel(stage.grpc(), &client(&ours, None))).await.expect("it opens");
    old.greet("api-1", 1).await;
    let renewed = client(&later, None);
    assert!(is_unreachable(stage.http(), &renewed).await);
    for file in ["cert.pem", "key.pem"] {
        fs::copy(later.path().join(file), ours.path().join(file)).expect("it is copied");
    }
    let begun = Instant::now();
    while is_unreachable(stage.http(), &renewed).await
        || Api::over(channel(stage.grpc(), &renewed)).await.is_err()
    {
        assert!(begun.elapsed() < PATIENCE, "the new certificate is not taken up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    works(&stage, &renewed).await;
    old.start(7, "size:1").await;
    old.ready(7).await;
}
