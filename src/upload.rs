//! One attempt at bringing segments into a data directory: a folder of its own, files that get
//! their final names there, and the registration that makes them visible, all at once. An attempt
//! that is given up takes its folder with it; what a killed one leaves is for `segments gc`.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use core_workcoord::id::TenantId;
use tributary_catalog::{
    Block, Catalog, DataDir, LocalFile, MetricNames, NewSegment, ObjectPath, Segment, SegmentId,
    Shard, Store,
};
use tributary_segment::ImportedSegment;

use crate::cli::Problem;
use crate::clock;

/// An attempt on its way.
pub(crate) struct Upload {
    tenant: TenantId,
    name: String,
    store: Store,
    folder: PathBuf,
    is_registered: bool,
}

impl Upload {
    /// Makes the folder. Its name begins with `origin`, so that whose segments these are can be told
    /// from where they lie; no other attempt has the same.
    pub(crate) fn begin(
        data_dir: &DataDir,
        tenant: &TenantId,
        origin: &str,
    ) -> Result<Self, Problem> {
        let store = data_dir.store().map_err(Problem::failed)?;
        let name = format!("{origin}{}", unique_name());
        let folder = ObjectPath::of_upload(tenant, &name).map_err(Problem::failed)?;
        let folder = data_dir.path().join(folder.as_str());
        make_new(&folder).map_err(|error| Problem::File { path: folder.clone(), error })?;
        Ok(Self { tenant: tenant.clone(), name, store, folder, is_registered: false })
    }

    /// Where segments are written at first, and what has to be put aside on the way.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives the files of segments their final names, which follow from their content. Nobody sees
    /// them yet.
    pub(crate) async fn place(
        &self,
        segments: &[ImportedSegment],
    ) -> Result<Vec<NewSegment>, Problem> {
        let mut placed = Vec::with_capacity(segments.len());
        for segment in segments {
            placed.push(self.place_one(segment).await?);
        }
        Ok(placed)
    }

    async fn place_one(&self, imported: &ImportedSegment) -> Result<NewSegment, Problem> {
        let series = LocalFile::measure(&imported.paths.series).map_err(Problem::failed)?;
        let samples = LocalFile::measure(&imported.paths.samples).map_err(Problem::failed)?;
        let id = SegmentId::of_content(&self.tenant, series.checksum, samples.checksum);
        let (series_path, samples_path) =
            ObjectPath::of_segment(&self.tenant, &self.name, &id).map_err(Problem::failed)?;
        let series_file = self.store.take(&series_path, series).await.map_err(Problem::failed)?;
        let samples_file =
            self.store.take(&samples_path, samples).await.map_err(Problem::failed)?;
        let (key, stats) = (&imported.key, &imported.stats);
        let segment = Segment {
            id,
            tenant: self.tenant.clone(),
            block: Block { start_ms: key.block_start, end_ms: key.block_end },
            min_ts: stats.min_ts,
            max_ts: stats.max_ts,
            shard: Shard { index: key.shard, count: key.shards },
            series_file,
            samples_file,
            series_count: u64::from(stats.series),
            sample_count: stats.samples,
            written_ms: clock::now_ms(),
            sequence: 0,
        };
        let metrics = MetricNames::new(&stats.metrics).map_err(Problem::failed)?;
        Ok(NewSegment { segment, metrics })
    }

    /// Registers all of them in one step. Gives how many are new; the files of those that the
    /// catalog knew already are removed.
    pub(crate) async fn register(
        mut self,
        catalog: &Catalog,
        segments: &[NewSegment],
    ) -> Result<usize, Problem> {
        let registered = catalog.register(segments, clock::now_ms()).await;
        // Where the answer got lost they may be registered all the same: then nothing is removed.
        self.is_registered = !matches!(&registered, Err(error) if !error.is_transient());
        let changed = registered.map_err(Problem::failed)?;
        if changed.added < segments.len() {
            self.remove_known(catalog, segments).await?;
        }
        Ok(changed.added)
    }

    /// Puts the output of a compaction in the place of its input, in one step.
    pub(crate) async fn replace(
        mut self,
        catalog: &Catalog,
        segments: &[NewSegment],
        retire: &[SegmentId],
    ) -> Result<(), Problem> {
        let replaced = catalog.replace(&self.tenant, segments, retire, clock::now_ms()).await;
        self.is_registered = !matches!(&replaced, Err(error) if !error.is_transient());
        replaced.map_err(Problem::failed)?;
        Ok(())
    }

    async fn remove_known(
        &self,
        catalog: &Catalog,
        segments: &[NewSegment],
    ) -> Result<(), Problem> {
        for NewSegment { segment, .. } in segments {
            let known = catalog.details(&self.tenant, &segment.id).await;
            let known = known.map_err(Problem::failed)?.map(|details| details.segment);
            let is_ours =
                known.is_none_or(|known| known.series_file.path == segment.series_file.path);
            if !is_ours {
                for file in [&segment.series_file, &segment.samples_file] {
                    self.store.delete(&file.path).await.map_err(Problem::failed)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_registered {
            // What ended the attempt says more than that its rests could not be removed, and
            // `gc` finds them.
            let _ = fs::remove_dir_all(&self.folder);
        }
        // Both are removed only where they are empty: nothing came of the attempt, nothing new
        // or nothing at all.
        let _ = fs::remove_dir(&self.folder);
        if let Some(tenant) = self.folder.parent() {
            let _ = fs::remove_dir(tenant);
        }
    }
}

/// A name that no other attempt has: the time, for people, and a random number.
fn unique_name() -> String {
    let now = clock::now_ms();
    format!("{now}-{:016x}", RandomState::new().hash_one((now, std::process::id())))
}

/// Makes a folder that must be new, in folders that need not be.
fn make_new(folder: &Path) -> io::Result<()> {
    let parent = folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Another import that ends may take the folder above away while it is empty.
    for _ in 0..10 {
        fs::create_dir_all(parent)?;
        match fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
    }
    fs::create_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_is_given_up_leaves_nothing() {
        let top = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open_or_create(top.path()).unwrap();
        let tenant = TenantId::new("t").unwrap();
        let upload = Upload::begin(&data_dir, &tenant, "").unwrap();
        let other = Upload::begin(&data_dir, &tenant, "").unwrap();
        assert_ne!(upload.folder(), other.folder());
        fs::write(upload.folder().join("half"), "").unwrap();
        let folder = upload.folder().to_owned();
        drop(upload);
        assert!(!folder.exists() && other.folder().exists());
        drop(other);
        assert!(!top.path().join("segments/t").exists());
    }
}
