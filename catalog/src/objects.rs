//! The object store: where segments' files lie. A folder of this machine, memory, or S3 and what
//! speaks its protocol. Paths are always relative and can't lead out; a written file is whole or
//! not there. Which files belong to segments is the catalog's knowledge.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as RawPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_stream::StreamExt as _;
use url::Url;

use crate::error::ObjectError;
use crate::object_path::ObjectPath;
use crate::segment_row::StoredFile;

mod leftover;
mod local_file;

pub use leftover::Leftover;
pub use local_file::LocalFile;

/// Bytes of a file held at once while it is stored.
const CHUNK_BYTES: usize = 8 << 20;

/// A handle to an object store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    /// Its address, without secrets.
    name: Arc<str>,
    /// The folder, if it is one.
    folder: Option<Arc<Path>>,
}

/// Settings of a store that are not part of its address, such as `aws_region` or
/// `aws_secret_access_key`; what is not set here comes from the environment. Never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoreOptions(BTreeMap<String, String>);

/// What a store says of an object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Where it is.
    pub path: ObjectPath,
    /// Its length.
    pub size_bytes: u64,
    /// When it was written, in milliseconds of the Unix epoch, by the store's clock.
    pub modified_ms: i64,
}

/// What lies under a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The objects, in no particular order.
    pub objects: Vec<ObjectInfo>,
    /// Names that no object of ours can have.
    pub foreign: Vec<String>,
}

impl StoreOptions {
    /// Takes the settings as they are; the store refuses those it does not know.
    pub fn new(settings: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(settings.into_iter().collect())
    }
}

impl fmt::Debug for StoreOptions {
    /// The names alone: some values are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Store {
    /// Opens the store at an address: `file:///dir`, a plain path, `memory:` or, with the feature
    /// `s3`, `s3://bucket/prefix`. A folder must exist.
    pub fn open(address: &str, options: &StoreOptions) -> Result<Self, ObjectError> {
        if address.starts_with("s3://") {
            return Self::open_s3(address, options);
        }
        if let Some(name) = options.0.keys().next() {
            return bad_url(format!("this kind of store has no setting {name:?}"));
        }
        if address == "memory:" {
            return Ok(Self::in_memory());
        }
        if address.starts_with("file:") {
            let path = Url::parse(address).ok().and_then(|url| url.to_file_path().ok());
            return match path.filter(|_| address.starts_with("file:///")) {
                Some(path) => Self::in_folder(&path),
                None => bad_url("file: needs an absolute path, as in file:///dir"),
            };
        }
        if address.contains("://") {
            return bad_url("it is neither a folder nor file:, memory: or s3:");
        }
        Self::in_folder(Path::new(address))
    }

    /// A store in a folder of this machine, which must exist. What was stored is on disk.
    pub fn in_folder(folder: &Path) -> Result<Self, ObjectError> {
        let local_file = |source| ObjectError::LocalFile { path: folder.to_owned(), source };
        let folder = folder.canonicalize().map_err(local_file)?;
        let inner = LocalFileSystem::new_with_prefix(&folder)
            .map_err(|source| failed(folder.display(), source))?
            .with_fsync(true)
            .with_automatic_cleanup(true);
        Ok(Self {
            inner: Arc::new(inner),
            name: folder.display().to_string().into(),
            folder: Some(folder.into()),
        })
    }

    /// A store that lives as long as its handles.
    pub fn in_memory() -> Self {
        Self { inner: Arc::new(InMemory::new()), name: "memory:".into(), folder: None }
    }

    /// Any other kind of store, under a name for logs and errors.
    pub fn over(inner: Arc<dyn ObjectStore>, name: &str) -> Self {
        Self { inner, name: name.into(), folder: None }
    }

    #[cfg(feature = "s3")]
    fn open_s3(address: &str, options: &StoreOptions) -> Result<Self, ObjectError> {
        use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

        let Ok(url) = Url::parse(address) else {
            return bad_url("it is not of the form s3://bucket/prefix");
        };
        let Some(bucket) = url.host_str() else {
            return bad_url("s3: needs a bucket, as in s3://bucket/prefix");
        };
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return bad_url("keys and settings are given as options or in the environment");
        }
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        for (name, value) in &options.0 {
            let Ok(key) = name.parse::<AmazonS3ConfigKey>() else {
                return bad_url(format!("S3 has no setting {name:?}"));
            };
            builder = builder.with_config(key, value);
        }
        let store = builder.build().map_err(|source| failed(bucket, source))?;
        let prefix = url.path().trim_matches('/');
        let inner: Arc<dyn ObjectStore> = if prefix.is_empty() {
            Arc::new(store)
        } else {
            let prefix = ObjectPath::parse(prefix)?;
            Arc::new(object_store::prefix::PrefixStore::new(store, raw(&prefix)))
        };
        Ok(Self { inner, name: format!("s3://{bucket}/{prefix}").into(), folder: None })
    }

    #[cfg(not(feature = "s3"))]
    fn open_s3(_: &str, _: &StoreOptions) -> Result<Self, ObjectError> {
        bad_url("this build can't reach S3")
    }

    /// Stores bytes: afterwards they are there as a whole, whatever was there before.
    pub async fn put(&self, path: &ObjectPath, bytes: Bytes) -> Result<StoredFile, ObjectError> {
        let size_bytes = bytes.len() as u64;
        let checksum = Checksum(Sha256::digest(&bytes).into());
        self.inner.put(&raw(path), bytes.into()).await.map_err(|source| failed(path, source))?;
        Ok(StoredFile { path: path.clone(), size_bytes, checksum })
    }

    /// Stores a file of this machine, a piece at a time: afterwards it is there as a whole.
    pub async fn put_file(
        &self,
        path: &ObjectPath,
        file: &Path,
    ) -> Result<StoredFile, ObjectError> {
        let mut writer = BufWriter::with_capacity(self.inner.clone(), raw(path), CHUNK_BYTES);
        let stored = copy(path, file, &mut writer).await;
        if stored.is_err() {
            // What was wrong is told already; this only spares the store some rubbish.
            _ = writer.abort().await;
        }
        stored
    }

    /// Moves a file of this machine into the store: afterwards it is there as a whole, and gone
    /// from where it was.
    pub async fn take(
        &self,
        path: &ObjectPath,
        file: LocalFile,
    ) -> Result<StoredFile, ObjectError> {
        let LocalFile { size_bytes, checksum, .. } = file;
        let stored = StoredFile { path: path.clone(), size_bytes, checksum };
        if let Some(folder) = self.folder.clone() {
            let (path, file) = (path.clone(), file.clone());
            let moved = tokio::task::spawn_blocking(move || file.rename_into(&folder, &path));
            if moved.await.expect("renaming does not panic and is never cancelled")? {
                return Ok(stored);
            }
        }
        if self.put_file(path, &file.path).await? != stored {
            let source = std::io::Error::other("it changed while it was stored");
            return Err(ObjectError::LocalFile { path: file.path, source });
        }
        let removed = tokio::fs::remove_file(&file.path).await;
        removed.map_err(|source| ObjectError::LocalFile { path: file.path, source })?;
        Ok(stored)
    }

    /// All bytes of an object.
    pub async fn get(&self, path: &ObjectPath) -> Result<Bytes, ObjectError> {
        let result = self.inner.get(&raw(path)).await.map_err(|source| failed(path, source))?;
        result.bytes().await.map_err(|source| failed(path, source))
    }

    /// Some bytes of an object. Asking beyond its end is an error or gives less, as the store has it.
    pub async fn get_range(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
    ) -> Result<Bytes, ObjectError> {
        let bytes = self.inner.get_range(&raw(path), range).await;
        bytes.map_err(|source| failed(path, source))
    }

    /// Size and time of an object.
    pub async fn head(&self, path: &ObjectPath) -> Result<ObjectInfo, ObjectError> {
        let meta = self.inner.head(&raw(path)).await.map_err(|source| failed(path, source))?;
        Ok(info(path.clone(), &meta))
    }

    /// Everything under a prefix, which ends where a part of the path ends.
    pub async fn list(&self, prefix: &ObjectPath) -> Result<Listing, ObjectError> {
        let mut listing = Listing::default();
        let prefix_raw = raw(prefix);
        let mut found = self.inner.list(Some(&prefix_raw));
        while let Some(meta) = found.next().await {
            let meta = meta.map_err(|source| failed(prefix, source))?;
            match ObjectPath::parse(meta.location.as_ref()) {
                Ok(path) => listing.objects.push(info(path, &meta)),
                Err(_) => listing.foreign.push(meta.location.to_string()),
            }
        }
        Ok(listing)
    }

    /// Removes an object. One that is not there is removed already.
    pub async fn delete(&self, path: &ObjectPath) -> Result<(), ObjectError> {
        match self.inner.delete(&raw(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(failed(path, source)),
        }
    }

    /// Where an object is on this machine, if the store is a folder of it: there it can be read
    /// without the store. Whether it exists is not looked at.
    pub fn local_path(&self, path: &ObjectPath) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(path.as_str()))
    }

    /// What writers that died left half-written under a prefix. Only folders have such: S3 drops
    /// unfinished uploads by a rule of the bucket.
    pub async fn leftovers(&self, prefix: &ObjectPath) -> Result<Vec<Leftover>, ObjectError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let top: PathBuf = folder.join(prefix.as_str());
        tokio::task::spawn_blocking(move || leftover::find(&top))
            .await
            .expect("looking through a folder does not panic and is never cancelled")
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store {{ {} }}", self.name)
    }
}

async fn copy(
    path: &ObjectPath,
    file: &Path,
    writer: &mut BufWriter,
) -> Result<StoredFile, ObjectError> {
    let local_file = |source| ObjectError::LocalFile { path: file.to_owned(), source };
    let mut open = tokio::fs::File::open(file).await.map_err(local_file)?;
    let mut hash = Sha256::new();
    let mut size_bytes = 0;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let mut piece = (&mut open).take(CHUNK_BYTES as u64);
        let read = piece.read_to_end(&mut chunk).await.map_err(local_file)?;
        if read == 0 {
            break;
        }
        size_bytes += read as u64;
        hash.update(&chunk);
        writer.put(chunk.into()).await.map_err(|source| failed(path, source))?;
    }
    writer.shutdown().await.map_err(|error| {
        failed(path, object_store::Error::Generic { store: "upload", source: error.into() })
    })?;
    Ok(StoredFile { path: path.clone(), size_bytes, checksum: Checksum(hash.finalize().into()) })
}

fn raw(path: &ObjectPath) -> RawPath {
    RawPath::parse(path.as_str()).expect("our rule for paths is stricter than the store's")
}

fn info(path: ObjectPath, meta: &ObjectMeta) -> ObjectInfo {
    ObjectInfo { path, size_bytes: meta.size, modified_ms: meta.last_modified.timestamp_millis() }
}

fn failed(path: impl fmt::Display, source: object_store::Error) -> ObjectError {
    match source {
        object_store::Error::NotFound { .. } => ObjectError::NotFound { path: path.to_string() },
        source => ObjectError::Failed { path: path.to_string(), source },
    }
}

fn bad_url<T>(reason: impl Into<String>) -> Result<T, ObjectError> {
    Err(ObjectError::BadUrl { reason: reason.into() })
}
