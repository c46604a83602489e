//! The demo's own data directory: it holds the demo's segments and nothing else, and one demo at a
//! time writes into it. Says how far the data reaches, and fills what is missing.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use core_workcoord::id::TenantId;
use tributary_catalog::{Catalog, CatalogConfig, CatalogEntry, DataDir, NewSegment, Segment};
use tributary_segment::{ImportedSegment, WriteError};

use super::fleet::Fleet;
use super::scrape;
use crate::cli::{DEFAULT_TENANT, Problem};
use crate::upload::Upload;

/// What the names of the demo's uploads begin with.
const ORIGIN: &str = "demo-";

/// Who writes here holds it. Hidden, so that the folder counts as unused before there is a catalog.
const LOCK_FILE: &str = ".demo.lock";

/// The data of a demo. Cheap to share; the folder is ours until the last of them is dropped.
#[derive(Clone)]
pub(super) struct DemoData {
    pub(super) data_dir: DataDir,
    pub(super) catalog: Catalog,
    pub(super) tenant: TenantId,
    pub(super) fleet: Arc<Fleet>,
    _lock: Arc<File>,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// Segments.
    pub(super) segments: u64,
    /// Samples in them.
    pub(super) samples: u64,
    /// Most series that one of them has.
    pub(super) series: u64,
    /// Bytes of their files.
    pub(super) bytes: u64,
}

impl DemoData {
    /// Opens the folder, or makes it. One with other data in it is refused, and so is one in which
    /// another demo is at work.
    pub(super) async fn open(path: &Path) -> Result<Self, Problem> {
        let data_dir = DataDir::open_or_create(path).map_err(Problem::failed)?;
        let lock = lock(&path.join(LOCK_FILE))?;
        let catalog = data_dir.catalog(CatalogConfig::default()).await.map_err(Problem::failed)?;
        let tenant = TenantId::new(DEFAULT_TENANT).map_err(Problem::failed)?;
        let data = Self {
            data_dir,
            catalog,
            tenant,
            fleet: Arc::new(Fleet::new()),
            _lock: Arc::new(lock),
        };
        let entries = data.catalog.entries().await.map_err(Problem::failed)?;
        if entries.iter().any(|entry| !is_ours(&entry.segment)) {
            return Err(Problem::SenselessOption {
                option: "--data-dir",
                reason: "the folder holds other data than the demo's; `tributary up` serves it",
            });
        }
        data.remove_rests(&entries)?;
        Ok(data)
    }

    /// Removes what demos that were killed left of segments they had under way. Nobody else writes
    /// here, so whatever no segment names is such a rest.
    fn remove_rests(&self, entries: &[CatalogEntry]) -> Result<(), Problem> {
        let store = self.data_dir.store().map_err(Problem::failed)?;
        let files = entries.iter().map(|entry| &entry.segment.series_file.path);
        let named: BTreeSet<PathBuf> =
            files.filter_map(|path| Some(store.local_path(path)?.parent()?.to_owned())).collect();
        // Its folder lies beside those of all uploads.
        let uploads = self.begin()?.folder().parent().map(Path::to_owned);
        let Some(uploads) = uploads.filter(|uploads| uploads.exists()) else { return Ok(()) };
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| Problem::File { path, error }
        };
        for upload in fs::read_dir(&uploads).map_err(failed(&uploads))? {
            let path = upload.map_err(failed(&uploads))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(ORIGIN) && !named.contains(&path) {
                fs::remove_dir_all(&path).map_err(failed(&path))?;
            }
        }
        Ok(())
    }

    /// The first millisecond that has no samples yet; none where there are no samples at all.
    pub(super) async fn covered_until(&self) -> Result<Option<i64>, Problem> {
        let latest = self.live().await?.iter().map(|segment| segment.max_ts).max();
        Ok(latest.map(|latest| latest + 1))
    }

    /// The demo's live segments, by time.
    pub(super) async fn live(&self) -> Result<Vec<Segment>, Problem> {
        let entries = self.catalog.entries().await.map_err(Problem::failed)?;
        let live = entries.into_iter().filter(|entry| entry.removed_ms.is_none());
        let mut live: Vec<Segment> = live.map(|entry| entry.segment).collect();
        live.sort_by_key(|segment| segment.min_ts);
        Ok(live)
    }

    /// Starts an attempt at bringing segments in.
    pub(super) fn begin(&self) -> Result<Upload, Problem> {
        Upload::begin(&self.data_dir, &self.tenant, ORIGIN)
    }

    /// Makes all samples from `from_ms` until before `to_ms` and shows them, all or nothing. Blocks
    /// for as long as it takes; `on_part` is told how many parts of how many are done.
    pub(super) fn fill(
        &self,
        (from_ms, to_ms): (i64, i64),
        runtime: &tokio::runtime::Handle,
        on_part: impl Fn(usize, usize) + Sync,
    ) -> Result<Made, Problem> {
        let upload = self.begin()?;
        let spans = scrape::spans(from_ms, to_ms);
        let written = self.write_all(upload.folder(), &spans, &on_part).map_err(Problem::failed)?;
        if written.is_empty() {
            return Ok(Made::default());
        }
        runtime.block_on(async {
            let segments = upload.place(&written).await?;
            upload.register(&self.catalog, &segments).await?;
            Ok(Made::of(&segments))
        })
    }

    /// Writes the segments of some spans, as many at once as there are cores.
    fn write_all(
        &self,
        folder: &Path,
        spans: &[(i64, i64)],
        on_part: &(impl Fn(usize, usize) + Sync),
    ) -> Result<Vec<ImportedSegment>, WriteError> {
        let threads = std::thread::available_parallelism().map_or(1, Into::into).min(spans.len());
        let queue = Mutex::new((spans.iter(), Vec::new()));
        let work = || -> Result<(), WriteError> {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).0.next();
                let Some(span) = next else { return Ok(()) };
                let written = scrape::write(&self.fleet, folder, *span)?;
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.1.push(written);
                on_part(queue.1.len(), spans.len());
            }
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let joined = started.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect::<Result<Vec<()>, WriteError>>()
        })?;
        let (_, written) = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut written: Vec<ImportedSegment> = written.into_iter().flatten().collect();
        written.sort_by_key(|segment| segment.stats.min_ts);
        Ok(written)
    }
}

impl Made {
    fn of(segments: &[NewSegment]) -> Self {
        let all = || segments.iter().map(|new| &new.segment);
        Self {
            segments: segments.len() as u64,
            samples: all().map(|segment| segment.sample_count).sum(),
            series: all().map(|segment| segment.series_count).max().unwrap_or_default(),
            bytes: all().map(|s| s.series_file.size_bytes + s.samples_file.size_bytes).sum(),
        }
    }
}

/// The demo wrote it: that can be told from where it lies.
fn is_ours(segment: &Segment) -> bool {
    let upload = segment.series_file.path.as_str().rsplit('/').nth(1);
    upload.is_some_and(|upload| upload.starts_with(ORIGIN))
}

fn lock(path: &Path) -> Result<File, Problem> {
    let failed = |error| Problem::File { path: path.to_owned(), error };
    let file = File::create(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(failed(error)),
        Err(TryLockError::WouldBlock) => Err(Problem::SenselessOption {
            option: "--data-dir",
            reason: "another demo is at work in the folder",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000_000;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_filled_is_found_again_and_only_one_demo_works_in_a_folder() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("demo");
        let data = DemoData::open(&path).await.unwrap();
        assert_eq!(data.covered_until().await.unwrap(), None);
        let handle = tokio::runtime::Handle::current();
        let filling = data.clone();
        let span = (NOW - 60_000, NOW);
        let made = tokio::task::spawn_blocking(move || filling.fill(span, &handle, |_, _| {}));
        let made = made.await.unwrap().unwrap();
        assert!(made.samples > 8_000 && made.segments > 0 && made.bytes > 0, "{made:?}");
        assert!(DemoData::open(&path).await.is_err_and(|p| p.to_string().contains("at work")));
        let uploads = path.join("segments/default");
        let folders = || fs::read_dir(&uploads).unwrap().count();
        let before = folders();
        let rest = data.begin().unwrap();
        fs::write(rest.folder().join("half"), "").unwrap();
        std::mem::forget(rest);
        assert_eq!(folders(), before + 1);
        drop(data);

        let again = DemoData::open(&path).await.unwrap();
        let covered = again.covered_until().await.unwrap().unwrap();
        assert!((NOW - 15_000..=NOW).contains(&covered), "{covered}");
        assert_eq!(folders(), before, "what a killed demo left is gone");
    }

    #[tokio::test]
    async fn a_folder_with_other_data_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open_or_create(top.path()).unwrap();
        let catalog = data_dir.catalog(CatalogConfig::default()).await.unwrap();
        let tenant = TenantId::new("default").unwrap();
        let upload = Upload::begin(&data_dir, &tenant, "").unwrap();
        let span = (NOW, NOW + 15_000);
        let one = scrape::write(&Fleet::new(), upload.folder(), span).unwrap().unwrap();
        let placed = upload.place(&[one]).await.unwrap();
        upload.register(&catalog, &placed).await.unwrap();
        let refused = DemoData::open(top.path()).await;
        assert!(refused.is_err_and(|problem| problem.to_string().contains("other data")));
    }
}
