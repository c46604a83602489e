//! A real S3-compatible server: a bucket of our own on it, its objects, and requests of workers that are
//! passed on to it as they are, signatures and all.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::Signer as _;
use reqwest::{Client, Url};

use super::{Access, Answer};
use crate::client::client;
use crate::error::ChaosError;

/// The server answers within this, or is taken for one that can't be reached.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request is signed for this long.
const SIGNED_FOR: Duration = Duration::from_secs(300);

/// In this region a bucket is made without naming one.
const REGION: &str = "us-east-1";

/// Keys where the environment names none: servers for tests take any.
const TEST_KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// The server, and the bucket on it.
#[derive(Debug)]
pub(super) struct Server {
    /// `http://HOST:PORT`.
    endpoint: String,
    bucket: String,
    key_id: String,
    secret: String,
    signer: AmazonS3,
    client: Client,
}

impl Server {
    /// Makes the bucket.
    pub(super) async fn with_new_bucket(endpoint: &str) -> Result<Self, ChaosError> {
        let not_s3 = || ChaosError::NotAnEndpoint { endpoint: endpoint.to_owned() };
        let url = Url::parse(endpoint).map_err(|_| not_s3())?;
        if url.scheme() != "http" || url.path() != "/" || !url.has_host() {
            return Err(not_s3());
        }
        let endpoint = url.as_str().trim_end_matches('/').to_owned();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let bucket = format!("tributary-chaos-{}-{}", std::process::id(), now.as_millis());
        let [key_id, secret] = TEST_KEYS
            .map(|(variable, usual)| std::env::var(variable).unwrap_or_else(|_| usual.to_owned()));
        let signer = AmazonS3Builder::new()
            .with_endpoint(&endpoint)
            .with_allow_http(true)
            .with_region(REGION)
            .with_bucket_name(&bucket)
            .with_access_key_id(&key_id)
            .with_secret_access_key(&secret)
            .build()
            .map_err(ChaosError::Signing)?;
        let this = Self { endpoint, bucket, key_id, secret, signer, client: client()? };
        this.ask(Method::PUT, "", Bytes::new()).await?;
        Ok(this)
    }

    pub(super) fn access(&self, address: SocketAddr) -> Access {
        Access {
            address,
            bucket: self.bucket.clone(),
            region: REGION,
            key_id: self.key_id.clone(),
            secret: self.secret.clone(),
        }
    }

    pub(super) fn words(&self) -> String {
        let place = self.endpoint.trim_start_matches("http://");
        format!("the S3 server at {place}, with a bucket for this run")
    }

    /// Passes a request on. Who asked signed the name of the host too, so it stays.
    pub(super) async fn answer(&self, method: Method, uri: &Uri, headers: HeaderMap) -> Answer {
        let passed = async {
            let url = format!("{}{uri}", self.endpoint);
            let asked = self.client.request(method, url).headers(headers).timeout(PATIENCE);
            let told = asked.send().await?;
            let (status, mut headers) = (told.status(), told.headers().clone());
            headers.remove(CONNECTION);
            headers.remove(TRANSFER_ENCODING);
            Ok::<_, reqwest::Error>(Answer { status, headers, body: told.bytes().await? })
        };
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        passed.await.unwrap_or(Answer { status: StatusCode::BAD_GATEWAY, headers, body })
    }

    pub(super) async fn read(&self, name: &str) -> Result<Bytes, ChaosError> {
        self.ask(Method::GET, name, Bytes::new()).await
    }

    pub(super) async fn write(&self, name: &str, bytes: Bytes) -> Result<(), ChaosError> {
        self.ask(Method::PUT, name, bytes).await.map(drop)
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), ChaosError> {
        self.ask(Method::DELETE, name, Bytes::new()).await.map(drop)
    }

    /// Removes the bucket and these objects, and waits for that: whoever lets go of a run, for
    /// whatever reason, leaves nothing on the server.
    pub(super) fn remove_bucket(&self, names: &[String]) {
        let removing = async {
            for name in names {
                self.remove(name).await?;
            }
            self.remove("").await
        };
        // Not on the runtime of the run: that can't be waited for here.
        let thread = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // A server that is gone by now has nothing to remove.
            runtime.map(|runtime| runtime.block_on(removing).is_ok())
        };
        std::thread::scope(|scope| drop(scope.spawn(thread).join()));
    }

    /// Asks for an object of the bucket, or with no name for the bucket itself.
    async fn ask(&self, method: Method, name: &str, body: Bytes) -> Result<Bytes, ChaosError> {
        let endpoint = || self.endpoint.clone();
        let url = self.signer.signed_url(method.clone(), &Path::from(name), SIGNED_FOR).await;
        let url = url.map_err(ChaosError::Signing)?;
        // A length of zero is not told by itself, and servers want one.
        let length = body.len();
        let asked = self.client.request(method, url).header(CONTENT_LENGTH, length).body(body);
        let asked = asked.timeout(PATIENCE);
        let told = async {
            let told = asked.send().await?;
            Ok((told.status(), told.bytes().await?))
        };
        let told = told.await.map_err(|source: reqwest::Error| ChaosError::NoServer {
            endpoint: endpoint(),
            source: source.without_url(),
        });
        let (status, bytes) = told?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&bytes).chars().take(300).collect();
            return Err(ChaosError::Refused { endpoint: endpoint(), status, said });
        }
        Ok(bytes)
    }
}
