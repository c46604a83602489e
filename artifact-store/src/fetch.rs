//! Fetches an artifact from the worker that announced it: no more bytes than announced, checked on
//! their way, from where it broke off where the connection breaks. Trusts the address for nothing:
//! no redirects, no proxies.

use std::io;
use std::time::Duration;

use core_workcoord::artifact::Checksum;
use core_workcoord::reconnect;
use reqwest::header::{CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use reqwest::{Client, ClientBuilder, Response, StatusCode, redirect};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use tokio::time;
use tracing::debug;
use url::Url;

use crate::verify::{Mismatch, Sink, VerifiedArtifact, VerifiedFile, Verifier};

/// How artifacts are fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchConfig {
    /// The largest artifact that is taken (4 GiB).
    pub artifact_max_bytes: u64,
    /// A connection must be made this soon (2 s).
    pub connect_timeout: Duration,
    /// The next bytes must come this soon (10 s). Longer: a worker that hangs is given up later.
    pub read_timeout: Duration,
    /// Tries (3). More: a worker that is gone is given up later.
    pub attempts: u32,
    /// The pause after the first failure (50 ms); it doubles.
    pub backoff: Duration,
    /// The longest pause (1 s).
    pub backoff_max: Duration,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            artifact_max_bytes: 4 << 30,
            connect_timeout: Duration::from_secs(2),
            read_timeout: Duration::from_secs(10),
            attempts: 3,
            backoff: Duration::from_millis(50),
            backoff_max: Duration::from_secs(1),
        }
    }
}

/// Why an artifact was not fetched. Whatever it is, its work can be done again.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address can't be one of a worker.
    #[error("bad artifact address: {reason}")]
    BadUrl {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More than this node is willing to hold.
    #[error("the artifact has {size_bytes} bytes, the limit is {limit_bytes}")]
    TooLarge {
        /// As announced.
        size_bytes: u64,
        /// The most that is taken.
        limit_bytes: u64,
    },
    /// The worker does not have it, or not for us.
    #[error("the artifact is gone")]
    Gone,
    /// The worker gave something else.
    #[error("the worker answered {status}")]
    Answer {
        /// The status of its answer.
        status: u16,
    },
    /// The bytes are not those that were announced.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// There is no place for it on this node's disk.
    #[error("the artifact can't be kept")]
    Disk(#[source] io::Error),
    /// The worker did not answer, or broke off, however often it was asked.
    #[error("the artifact can't be fetched")]
    Unreachable(#[source] reqwest::Error),
}

/// Fetches artifacts. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: Client,
    config: FetchConfig,
}

impl Fetcher {
    /// A fetcher without connections yet.
    pub fn new(config: FetchConfig) -> Result<Self, FetchError> {
        Self::built(config, Client::builder())
    }

    /// A fetcher that trusts, and shows, the certificates of this configuration.
    pub fn with_tls(config: FetchConfig, tls: ClientConfig) -> Result<Self, FetchError> {
        Self::built(config, Client::builder().tls_backend_preconfigured(tls))
    }

    fn built(config: FetchConfig, builder: ClientBuilder) -> Result<Self, FetchError> {
        let client = builder
            .redirect(redirect::Policy::none())
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(config.connect_timeout)
            .read_timeout(config.read_timeout)
            .build()
            .map_err(FetchError::Unreachable)?;
        Ok(Self { client, config })
    }

    /// Fetches an artifact and checks it against its announcement.
    pub async fn fetch(
        &self,
        url: &str,
        token: &str,
        size_bytes: u64,
        checksum: Checksum,
    ) -> Result<VerifiedArtifact, FetchError> {
        let url = self.check(url, size_bytes)?;
        let mut verifier = Verifier::in_memory(size_bytes, checksum);
        self.attempts(&url, token, checksum, &mut verifier).await?;
        // All there is, by the worker's own word: right or wrong, it stays that.
        Ok(verifier.finish()?)
    }

    /// The same into a file without a name among the system's temporary files, for artifacts that
    /// are too large to lie in memory whole.
    pub async fn fetch_to_file(
        &self,
        url: &str,
        token: &str,
        size_bytes: u64,
        checksum: Checksum,
    ) -> Result<VerifiedFile, FetchError> {
        let url = self.check(url, size_bytes)?;
        let mut verifier = Verifier::in_file(size_bytes, checksum).map_err(FetchError::Disk)?;
        self.attempts(&url, token, checksum, &mut verifier).await?;
        verifier.finish().await?.map_err(FetchError::Disk)
    }

    fn check(&self, url: &str, size_bytes: u64) -> Result<Url, FetchError> {
        let limit_bytes = self.config.artifact_max_bytes;
        if size_bytes > limit_bytes {
            return Err(FetchError::TooLarge { size_bytes, limit_bytes });
        }
        check_url(url)
    }

    /// Asks until all is here, or there is no hope.
    async fn attempts(
        &self,
        url: &Url,
        token: &str,
        checksum: Checksum,
        verifier: &mut Verifier<impl Sink>,
    ) -> Result<(), FetchError> {
        let mut failures = 0;
        loop {
            let error = match self.attempt(url, token, checksum, verifier).await {
                Ok(()) => return Ok(()),
                Err(error @ FetchError::Unreachable(_)) => error,
                // A worker that is overloaded or restarting may do better.
                Err(error @ FetchError::Answer { status: 500.. }) => error,
                Err(error) => return Err(error),
            };
            failures += 1;
            if failures >= self.config.attempts {
                return Err(error);
            }
            debug!(%error, failures, "artifact is asked for again");
            let FetchConfig { backoff, backoff_max, .. } = self.config;
            let pause = reconnect::pause(0, url.as_str(), failures, backoff, backoff_max);
            time::sleep(pause).await;
        }
    }

    /// One request, for what is still missing.
    async fn attempt(
        &self,
        url: &Url,
        token: &str,
        checksum: Checksum,
        verifier: &mut Verifier<impl Sink>,
    ) -> Result<(), FetchError> {
        let etag = format!("\"{checksum}\"");
        let mut request = self.client.get(url.clone()).bearer_auth(token);
        let have = verifier.len();
        if have > 0 && !verifier.is_complete() {
            request = request.header(RANGE, format!("bytes={have}-")).header(IF_RANGE, &etag);
        }
        let mut response = request.send().await.map_err(FetchError::Unreachable)?;
        match response.status() {
            StatusCode::OK => verifier.clear().map_err(FetchError::Disk)?,
            StatusCode::PARTIAL_CONTENT if starts_at(&response, have) => {}
            StatusCode::NOT_FOUND => return Err(FetchError::Gone),
            status => return Err(FetchError::Answer { status: status.as_u16() }),
        }
        if let Some(given) = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok())
            && given != etag
            && let Ok(actual) = given.trim_matches('"').parse()
        {
            // Something else, by its own word: no need to look at it.
            return Err(Mismatch::Checksum { expected: checksum, actual }.into());
        }
        while let Some(piece) = response.chunk().await.map_err(FetchError::Unreachable)? {
            verifier.take(&piece)?;
            verifier.put(&piece).await.map_err(FetchError::Disk)?;
        }
        Ok(())
    }
}

fn check_url(text: &str) -> Result<Url, FetchError> {
    let bad = |reason| Err(FetchError::BadUrl { reason });
    let Ok(url) = Url::parse(text) else { return bad("it is not an address") };
    if !matches!(url.scheme(), "http" | "https") {
        return bad("it is neither http: nor https:");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("it has a user or a password");
    }
    Ok(url)
}

fn starts_at(response: &Response, at: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {at}-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_no_worker_has_are_refused() {
        assert!(check_url("http://10.0.0.1:9002/artifacts/0f").is_ok());
        for bad in ["", "/artifacts/0f", "file:///etc/passwd", "ftp://h/x", "http://u:p@h/x"] {
            assert!(matches!(check_url(bad), Err(FetchError::BadUrl { .. })), "{bad}");
        }
    }

    #[tokio::test]
    async fn an_artifact_beyond_the_limit_is_not_even_asked_for() {
        let config = FetchConfig { artifact_max_bytes: 10, ..FetchConfig::default() };
        let fetcher = Fetcher::new(config).unwrap();
        let refused = fetcher.fetch("http://127.0.0.1:1/x", "t", 11, Checksum([0; 32])).await;
        assert!(matches!(refused, Err(FetchError::TooLarge { limit_bytes: 10, .. })));
    }
}
