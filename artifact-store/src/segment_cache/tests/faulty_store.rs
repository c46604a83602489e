//! An object store in memory that fails, hangs, lies and counts, as it is told.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Semaphore;
use tokio_stream::Stream;

type Listed<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send>>;

/// What is wrong with the store.
#[derive(Debug)]
pub(super) struct Faults {
    /// So many requests fail.
    pub(super) failures: AtomicU64,
    /// So many requests are never answered.
    pub(super) silences: AtomicU64,
    /// A byte of every answer is wrong.
    pub(super) lies: AtomicBool,
    /// Requests need one of these each, for good.
    pub(super) tickets: Semaphore,
    /// Requests that were answered.
    pub(super) answered: AtomicU64,
    at_once: AtomicUsize,
    /// The most there were at a time.
    pub(super) most_at_once: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct FaultyStore {
    inner: InMemory,
    pub(super) faults: Arc<Faults>,
}

impl FaultyStore {
    pub(super) fn new() -> Self {
        let faults = Faults {
            failures: AtomicU64::new(0),
            silences: AtomicU64::new(0),
            lies: AtomicBool::new(false),
            tickets: Semaphore::new(Semaphore::MAX_PERMITS),
            answered: AtomicU64::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        };
        Self { inner: InMemory::new(), faults: Arc::new(faults) }
    }
}

impl Faults {
    fn takes_one(count: &AtomicU64) -> bool {
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, o: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, bytes, o).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            return self.inner.get_opts(at, options).await;
        }
        if Faults::takes_one(&self.faults.silences) {
            std::future::pending::<()>().await;
        }
        let now = self.faults.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.faults.most_at_once.fetch_max(now, Ordering::SeqCst);
        self.faults.tickets.acquire().await.expect("never closed").forget();
        tokio::task::yield_now().await;
        self.faults.at_once.fetch_sub(1, Ordering::SeqCst);
        if Faults::takes_one(&self.faults.failures) {
            let source = "out of order".into();
            return Err(object_store::Error::Generic { store: "faulty", source });
        }
        let answer = self.inner.get_opts(at, options).await?;
        self.faults.answered.fetch_add(1, Ordering::SeqCst);
        if !self.faults.lies.load(Ordering::SeqCst) {
            return Ok(answer);
        }
        let (meta, range) = (answer.meta.clone(), answer.range.clone());
        let (attributes, extensions) = (answer.attributes.clone(), answer.extensions.clone());
        let mut bytes = answer.bytes().await?.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let payload = GetResultPayload::Stream(Box::pin(tokio_stream::once(Ok(bytes.into()))));
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(&self, at: Listed<Path>) -> Listed<Path> {
        self.inner.delete_stream(at)
    }

    fn list(&self, prefix: Option<&Path>) -> Listed<ObjectMeta> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
