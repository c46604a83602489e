//! From an announced artifact to the part it holds: fetched from the worker that announced it, and
//! from nowhere else, checked, and read. Whether it is fetched, and what follows where it can't be, is
//! decided by the coordinator.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use core_workcoord::artifact::Artifact;
use core_workcoord::coordinator::FetchResult;
use core_workcoord::id::Endpoint;
use core_workcoord::message::WorkRef;
use tracing::warn;
use tributary_artifact_store::{FetchError, Fetcher, VerifiedArtifact, VerifiedFile};
use tributary_promql::leaf::LeafPart;
use url::Url;

use crate::cores::Cores;
use crate::error::QueryError;
use crate::memory::{Charge, Memory};
use crate::plan::{Item, Unreadable};

/// Bytes that a value of a part takes in memory, its share of everything around it included.
const BYTES_PER_VALUE: u64 = 16;

/// Gets artifacts over the network.
pub trait Get: Send + Sync + 'static {
    /// Gets an artifact and checks its size and checksum against what was announced. A large one
    /// lies in a file, so that it is never in memory whole.
    fn get<'a>(
        &'a self,
        url: &'a str,
        token: &'a str,
        artifact: &'a Artifact,
    ) -> Pin<Box<dyn Future<Output = Result<Got, FetchError>> + Send + 'a>>;
}

/// An artifact that is as it was announced.
#[derive(Debug)]
pub enum Got {
    /// In memory.
    InMemory(VerifiedArtifact),
    /// In a file.
    InFile(VerifiedFile),
}

/// Gets artifacts from workers by HTTP.
#[derive(Clone, Debug)]
pub struct HttpGet {
    /// Gets them.
    pub fetcher: Fetcher,
    /// Larger ones go into a file.
    pub in_memory_max_bytes: u64,
}

impl Get for HttpGet {
    fn get<'a>(
        &'a self,
        url: &'a str,
        token: &'a str,
        artifact: &'a Artifact,
    ) -> Pin<Box<dyn Future<Output = Result<Got, FetchError>> + Send + 'a>> {
        Box::pin(async move {
            let (size, checksum) = (artifact.size_bytes, artifact.checksum);
            Ok(if size > self.in_memory_max_bytes {
                Got::InFile(self.fetcher.fetch_to_file(url, token, size, checksum).await?)
            } else {
                Got::InMemory(self.fetcher.fetch(url, token, size, checksum).await?)
            })
        })
    }
}

/// What came of a work item, ready to be merged.
#[derive(Debug)]
pub struct Fetched {
    /// The part.
    pub part: LeafPart,
    /// Bytes of its artifact.
    pub size_bytes: u64,
    /// Rows of its artifact.
    pub rows: u64,
    /// The memory it takes.
    pub charge: Charge,
}

/// How a fetch ended.
#[derive(Debug)]
pub enum FetchEnd {
    /// The part is here.
    Here(Box<Fetched>),
    /// It is not, and the coordinator is told why.
    Not(FetchResult),
    /// It never will be: the query can't be answered.
    Hopeless(QueryError),
}

/// What all fetches share.
#[derive(Clone)]
pub struct Fetching {
    /// Gets bytes.
    pub get: Arc<dyn Get>,
    /// Reads them.
    pub cores: Arc<Cores>,
    /// Holds them.
    pub memory: Arc<Memory>,
    /// Larger artifacts lie in a file until they are read.
    pub in_memory_max_bytes: u64,
    /// Workers are believed about the host of their artifacts, instead of being asked where they
    /// were dialled.
    pub trust_advertised_host: bool,
}

impl Fetching {
    /// Fetches and reads what was announced for an item of a query.
    pub async fn fetch(
        &self,
        work: WorkRef,
        items: &Arc<Vec<Item>>,
        endpoint: &Endpoint,
        token: &str,
        artifact: &Artifact,
    ) -> FetchEnd {
        // One that goes into a file takes none before it is read.
        let mut charge = match self.memory.charge(artifact.size_bytes.min(self.in_memory_max_bytes))
        {
            Ok(charge) => charge,
            Err(error) => return FetchEnd::Hopeless(error),
        };
        let url = if self.trust_advertised_host {
            Some(artifact.url.clone())
        } else {
            on_host_of(&artifact.url, endpoint)
        };
        let Some(url) = url else { return FetchEnd::Not(FetchResult::Failed) };
        let got = match self.get.get(&url, token, artifact).await {
            Ok(got) => got,
            Err(error) => {
                warn!(query_id = %work.work_id.query, work_id = %work.work_id, %endpoint, %error,
                    "an artifact could not be fetched");
                return FetchEnd::Not(result_of(&error));
            }
        };
        let reading = {
            let (items, announced) = (Arc::clone(items), artifact.clone());
            move || items.get(work.work_id.item as usize).map(|it| it.read(&got, &announced))
        };
        let part = match self.cores.run(reading).await {
            Ok(Some(Ok(part))) => part,
            Ok(Some(Err(Unreadable::TooMuch(error)))) => return FetchEnd::Hopeless(error.into()),
            Ok(Some(Err(Unreadable::Malformed(reason)))) => {
                warn!(query_id = %work.work_id.query, work_id = %work.work_id, %endpoint, reason,
                    "a worker made an artifact that can't be read");
                return FetchEnd::Not(FetchResult::Mismatch);
            }
            Ok(None) => return FetchEnd::Not(FetchResult::Failed),
            Err(broke_off) => return FetchEnd::Hopeless(broke_off.into()),
        };
        if let Err(error) = charge.change_to(part.size().saturating_mul(BYTES_PER_VALUE)) {
            return FetchEnd::Hopeless(error);
        }
        let (size_bytes, rows) = (artifact.size_bytes, artifact.row_count);
        FetchEnd::Here(Box::new(Fetched { part, size_bytes, rows, charge }))
    }
}

fn result_of(error: &FetchError) -> FetchResult {
    match error {
        FetchError::Gone => FetchResult::Gone,
        FetchError::Mismatch(_) => FetchResult::Mismatch,
        FetchError::BadUrl { .. }
        | FetchError::TooLarge { .. }
        | FetchError::Answer { .. }
        | FetchError::Disk(_)
        | FetchError::Unreachable(_) => FetchResult::Failed,
    }
}

/// The URL on the host where the worker was dialled: a worker names a port and a path, and nobody
/// else's machine.
fn on_host_of(url: &str, endpoint: &Endpoint) -> Option<String> {
    let (host, _) = endpoint.as_str().rsplit_once(':')?;
    let mut url = Url::parse(url).ok()?;
    url.set_host(Some(host)).ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_are_fetched_where_the_worker_was_dialled() {
        for (url, endpoint, fetched) in [
            (
                "http://other:81/artifacts/0f",
                "10.0.0.7:80",
                Some("http://10.0.0.7:81/artifacts/0f"),
            ),
            ("https://x:81/artifacts/0f", "[::1]:80", Some("https://[::1]:81/artifacts/0f")),
            ("http://x/a", "worker-3.pool:80", Some("http://worker-3.pool/a")),
            ("artifacts/0f", "10.0.0.7:80", None),
            ("http://x/a", "nowhere", None),
        ] {
            let endpoint = Endpoint::new(endpoint).unwrap();
            assert_eq!(on_host_of(url, &endpoint).as_deref(), fetched, "{url} {endpoint}");
        }
    }
}
