//! Stories of segments on their way: from a store that fails, hangs and lies, to a disk that is
//! short of room, for many users at once.

mod faulty_store;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::time;
use tributary_segment::{Family, Labels, ScanBuffers, SegmentWriter, TimeRange, WriteOptions};

use super::*;
use crate::{DiskConfig, DownloadConfig, WorkerDisk};
use faulty_store::{Faults, FaultyStore};

/// A disk, its store, what is wrong with that, and a segment in it.
struct Scene {
    disk: WorkerDisk,
    faults: Arc<Faults>,
    store: Store,
    config: DiskConfig,
    series: SegmentFile,
    samples: SegmentFile,
    _folder: tempfile::TempDir,
}

const SERIES: usize = 20;
const SAMPLES: u16 = 400;

impl Scene {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut DiskConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = DiskConfig {
            folder: folder.path().to_owned(),
            capacity_bytes: Some(10 << 20),
            keep_free_bytes: 0,
            download: DownloadConfig {
                part_bytes: 4096,
                backoff: Duration::from_millis(1),
                backoff_max: Duration::from_millis(4),
                request_timeout: Duration::from_millis(500),
                ..DownloadConfig::default()
            },
            ..DiskConfig::default()
        };
        change(&mut config);
        let faulty = FaultyStore::new();
        let faults = Arc::clone(&faulty.faults);
        let store = Store::over(Arc::new(faulty), "faulty");
        let (series, samples) = put_segment(&store, "a", 1).await;
        let (disk, _) = WorkerDisk::open(&config, store.clone()).unwrap();
        Self { disk, faults, store, config, series, samples, _folder: folder }
    }

    /// The same worker, started again.
    async fn restarted(self) -> Self {
        let Self { disk, faults, store, config, series, samples, _folder } = self;
        drop(disk);
        let (disk, _) = loop {
            match WorkerDisk::open(&config, store.clone()) {
                // A task that was told to stop has not yet.
                Err(DiskError::InUse { .. }) => time::sleep(Duration::from_millis(1)).await,
                other => break other.unwrap(),
            }
        };
        disk.audit().unwrap();
        Self { disk, faults, store, config, series, samples, _folder }
    }

    async fn read(&self) -> Result<usize, SegmentFetchError> {
        let segment = self.disk.segments().segment(&self.series, &self.samples).await?;
        let all = segment.index().select(&[], TimeRange::ALL);
        let mut samples = 0;
        let read = segment.for_each(&all, TimeRange::ALL, &mut ScanBuffers::default(), |series| {
            samples += series.ts.len();
            Ok::<_, SegmentError>(())
        });
        read.map_err(|e| unreadable(&self.samples.path, e))?;
        Ok(samples)
    }

    fn answered(&self) -> u64 {
        self.faults.answered.load(SeqCst)
    }

    fn parts(&self) -> u64 {
        self.series.size_bytes.div_ceil(4096) + self.samples.size_bytes.div_ceil(4096)
    }

    fn cached(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.config.folder.join("segments")).unwrap();
        all.map(|entry| entry.unwrap().path()).collect()
    }
}

/// A segment whose samples take several parts.
async fn put_segment(store: &Store, name: &str, mut dice: u64) -> (SegmentFile, SegmentFile) {
    let (mut series, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    for i in 0..SERIES {
        let host = format!("host_{i:02}");
        let labels = Labels::new([("__name__", "up"), ("host", &host)]).unwrap();
        let ts: Vec<i64> = (0..i64::from(SAMPLES)).map(|t| t * 1000).collect();
        let values: Vec<f64> = (0..SAMPLES)
            .map(|_| {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                f64::from_bits(dice >> 2)
            })
            .collect();
        writer.series(&labels, &Arc::new(Family::default()), &ts, &values).unwrap();
    }
    writer.finish(&mut series).unwrap();
    let put = async |kind: &str, bytes: Vec<u8>| {
        let path = ObjectPath::parse(&format!("segments/t/u/{name}.{kind}.parquet")).unwrap();
        SegmentFile::from(&store.put(&path, bytes.into()).await.unwrap())
    };
    let files = (put("series", series).await, put("samples", samples).await);
    assert!(files.1.size_bytes > 5 * 4096, "the samples take several parts");
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_users_at_once_cost_one_download() {
    let patient = Duration::from_secs(30);
    let scene = Arc::new(Scene::with(|c| c.download.request_timeout = patient).await);
    scene.disk.segments().file(&scene.series).await.unwrap();
    // No part of the samples is answered before as many as may be are asked for.
    scene.faults.tickets.forget_permits(usize::MAX >> 3);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let scene = Arc::clone(&scene);
        all.spawn(async move { scene.read().await.unwrap() });
    }
    let side_by_side = async {
        while scene.faults.most_at_once.load(SeqCst) < scene.config.download.parts_at_once {
            time::sleep(Duration::from_millis(1)).await;
        }
    };
    time::timeout(patient, side_by_side).await.expect("parts are fetched side by side");
    scene.faults.tickets.add_permits(1000);
    assert!(all.join_all().await.into_iter().all(|n| n == SERIES * usize::from(SAMPLES)));
    assert_eq!(scene.answered(), scene.parts());
    assert_eq!(scene.disk.figures().counts.segment_misses, 2);
    assert_eq!(scene.faults.most_at_once.load(SeqCst), scene.config.download.parts_at_once);
    scene.disk.audit().unwrap();
    assert_eq!(scene.disk.figures().segments, 2);
    let bytes = scene.series.size_bytes + scene.samples.size_bytes;
    assert_eq!(scene.disk.figures().cache_bytes, bytes);
}

#[tokio::test]
async fn requests_that_fail_are_repeated() {
    let scene = Scene::new().await;
    scene.faults.failures.store(4, SeqCst);
    scene.read().await.unwrap();
    assert_eq!(scene.disk.figures().counts.segment_retries, 4);
    assert_eq!(scene.answered(), scene.parts());
}

#[tokio::test]
async fn a_request_that_is_never_answered_is_repeated() {
    let scene = Scene::with(|c| c.download.request_timeout = Duration::from_millis(20)).await;
    scene.faults.silences.store(1, SeqCst);
    scene.read().await.unwrap();
    assert_eq!(scene.disk.figures().counts.segment_retries, 1);
}

#[tokio::test]
async fn what_a_failed_download_has_is_not_asked_for_again() {
    let scene = Scene::with(|c| c.download.attempts = 1).await;
    scene.disk.segments().file(&scene.series).await.unwrap();
    let before = scene.answered();
    // Three parts come, the fourth does not.
    scene.faults.tickets.forget_permits(usize::MAX >> 3);
    scene.faults.tickets.add_permits(3);
    let failed = time::timeout(Duration::from_secs(5), scene.read()).await.unwrap();
    let failed = failed.unwrap_err();
    assert!(matches!(failed, SegmentFetchError::Unreachable { source: None, .. }), "{failed}");
    assert!(failed.is_retryable());
    scene.disk.audit().unwrap();
    let had = scene.answered() - before;
    assert!(had > 0);
    scene.faults.tickets.add_permits(1000);
    scene.read().await.unwrap();
    assert_eq!(scene.answered(), scene.parts(), "each part came once");
    assert_eq!(scene.disk.figures().counts.segment_resumes, 1);
}

#[tokio::test]
async fn a_user_who_goes_away_halfway_leaves_what_came_to_the_next() {
    let scene = Scene::new().await;
    scene.faults.tickets.forget_permits(usize::MAX >> 3);
    scene.faults.tickets.add_permits(4);
    let gone = time::timeout(Duration::from_millis(100), scene.read()).await;
    assert!(gone.is_err());
    let usage = scene.disk.figures();
    assert!(usage.cache_bytes > 0);
    scene.disk.audit().unwrap();
    scene.faults.tickets.add_permits(1000);
    scene.read().await.unwrap();
    assert_eq!(scene.answered(), scene.parts());
    scene.disk.audit().unwrap();
}

#[tokio::test]
async fn half_a_download_does_not_survive_a_start_and_whole_files_do() {
    let scene = Scene::new().await;
    scene.disk.segments().file(&scene.series).await.unwrap();
    scene.faults.tickets.forget_permits(usize::MAX >> 3);
    scene.faults.tickets.add_permits(1);
    let slow = scene.disk.segments().file(&scene.samples);
    assert!(time::timeout(Duration::from_millis(50), slow).await.is_err());
    assert_eq!(scene.cached().len(), 2);
    let scene = scene.restarted().await;
    assert_eq!(scene.cached().len(), 1);
    assert_eq!(scene.disk.figures().cache_bytes, scene.series.size_bytes);
    scene.faults.tickets.add_permits(1000);
    scene.read().await.unwrap();
    let scene = scene.restarted().await;
    let before = scene.answered();
    scene.read().await.unwrap();
    assert_eq!(scene.answered(), before, "everything was here");
    assert_eq!(scene.disk.figures().counts.segment_hits, 2);
}

#[tokio::test]
async fn a_missing_object_is_named_and_not_asked_for_twice() {
    let mut scene = Scene::new().await;
    scene.series.path = ObjectPath::parse("segments/t/u/b.series.parquet").unwrap();
    let missing = scene.read().await.unwrap_err();
    assert_eq!(missing.to_string(), "segment file segments/t/u/b.series.parquet is missing");
    assert!(!missing.is_retryable());
    assert_eq!(scene.disk.figures().counts.segment_retries, 0);
    assert_eq!(scene.disk.figures().cache_bytes, 0, "no room is kept for what does not exist");
    scene.disk.audit().unwrap();
}

#[tokio::test]
async fn an_object_of_another_size_is_corrupt() {
    for change in [-1_i64, 1] {
        let mut scene = Scene::with(|c| c.download.attempts = 2).await;
        scene.samples.checksum = None;
        scene.samples.size_bytes = scene.samples.size_bytes.checked_add_signed(change).unwrap();
        let error = scene.read().await.unwrap_err();
        assert!(matches!(error, SegmentFetchError::Corrupt { .. }), "{change}: {error:?}");
        assert!(error.to_string().contains("a.samples.parquet"), "{error}");
        scene.disk.audit().unwrap();
    }
}

#[tokio::test]
async fn bytes_damaged_on_their_way_are_found_by_checksum_or_seal() {
    for with_checksum in [true, false] {
        let mut scene = Scene::new().await;
        if !with_checksum {
            scene.series.checksum = None;
        }
        scene.faults.lies.store(true, SeqCst);
        let error = scene.read().await.unwrap_err();
        assert!(matches!(error, SegmentFetchError::Corrupt { .. }), "{error:?}");
        scene.disk.audit().unwrap();
        scene.faults.lies.store(false, SeqCst);
        scene.read().await.unwrap();
    }
}

#[tokio::test]
async fn a_copy_that_rots_on_disk_is_fetched_anew() {
    let mut scene = Scene::new().await;
    scene.read().await.unwrap();
    for file in scene.cached() {
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 0xff;
        fs::write(&file, bytes).unwrap();
    }
    scene = scene.restarted().await;
    scene.read().await.unwrap();
    assert_eq!(scene.disk.figures().counts.segments_distrusted, 2);
    scene.disk.audit().unwrap();
}

#[tokio::test]
async fn a_good_file_in_the_place_of_another_is_not_kept() {
    for takes_samples in [false, true] {
        let mut scene = Scene::new().await;
        let (series, samples) = put_segment(&scene.store, "b", 3).await;
        // A worker is not told checksums.
        (scene.series.checksum, scene.samples.checksum) = (None, None);
        let (file, other) = match takes_samples {
            true => (scene.samples.clone(), samples),
            false => (scene.series.clone(), series),
        };
        assert_eq!(file.size_bytes, other.size_bytes, "nothing but the content tells them apart");
        let right = scene.store.get(&file.path).await.unwrap();
        let wrong = scene.store.get(&other.path).await.unwrap();
        scene.store.put(&file.path, wrong).await.unwrap();
        let error = scene.read().await.unwrap_err();
        assert!(error.to_string().contains("is not the samples file of"), "{error}");
        scene.store.put(&file.path, right).await.unwrap();
        scene.read().await.unwrap();
        scene.disk.audit().unwrap();
    }
}

#[tokio::test]
async fn a_copy_found_damaged_while_it_is_read_can_be_given_up() {
    let scene = Scene::new().await;
    let segment = scene.disk.segments().segment(&scene.series, &scene.samples).await.unwrap();
    segment.source().distrust();
    segment.source().distrust();
    let misses = scene.disk.figures().counts.segment_misses;
    scene.read().await.unwrap();
    assert_eq!(scene.disk.figures().counts.segment_misses, misses + 1);
    drop(segment);
    assert_eq!(scene.disk.figures().segments, 2);
    scene.disk.audit().unwrap();
}

#[tokio::test]
async fn segments_in_use_stay_and_idle_ones_yield_to_artifacts() {
    use std::io::Write as _;

    let scene = Scene::with(|c| c.capacity_bytes = Some(250_000)).await;
    let segment = scene.disk.segments().segment(&scene.series, &scene.samples).await.unwrap();
    let make = async |key: u8, size: usize| {
        let turn = scene.disk.spool().turn(crate::ReuseKey([key; 32])).await;
        let mut writer = turn.begin().unwrap();
        writer.write_all(&vec![0; size]).unwrap();
        let facts = crate::Facts { row_count: 0, min_ts: 0, max_ts: 0, parquet_schema_version: 1 };
        writer.commit(core_workcoord::id::SessionId(1), facts, core_workcoord::moment::Moment::ZERO)
    };
    make(1, 190_000).await.unwrap();
    assert_eq!(scene.disk.figures().segments, 1, "the file of series was idle");
    assert!(Path::new(&segment.source().pin.as_ref().unwrap().path()).exists());
    drop(segment);
    make(2, 60_000).await.unwrap();
    assert_eq!((scene.disk.figures().segments, scene.disk.figures().cache_bytes), (0, 0));
    scene.disk.audit().unwrap();
    let refused = scene.read().await.unwrap_err();
    assert!(matches!(refused, SegmentFetchError::Disk(DiskError::Full { .. })), "{refused:?}");
    assert!(refused.is_retryable());
    scene.disk.audit().unwrap();
}

#[tokio::test]
async fn an_index_in_memory_needs_no_file() {
    let scene = Scene::new().await;
    scene.read().await.unwrap();
    assert!(scene.disk.figures().index_bytes > 0);
    let before = scene.disk.figures().counts;
    scene.read().await.unwrap();
    let after = scene.disk.figures().counts;
    assert_eq!(after.index_hits - before.index_hits, 2);
    assert_eq!(after.segment_hits - before.segment_hits, 1, "the samples alone are opened");
}

#[tokio::test]
async fn no_memory_for_indexes_costs_time_and_nothing_else() {
    let scene = Scene::with(|c| c.index_memory_bytes = 0).await;
    scene.read().await.unwrap();
    scene.read().await.unwrap();
    assert_eq!((scene.disk.figures().index_bytes, scene.disk.figures().counts.index_hits), (0, 0));
}

#[tokio::test]
async fn segments_in_a_folder_are_read_in_place_or_copied_as_configured() {
    for in_place in [true, false] {
        let data = tempfile::tempdir().unwrap();
        let mut scene = Scene::with(|c| c.read_in_place = in_place).await;
        let store = Store::in_folder(data.path()).unwrap();
        (scene.series, scene.samples) = put_segment(&store, "a", 1).await;
        scene.store = store;
        let mut scene = scene.restarted().await;
        scene.read().await.unwrap();
        assert_eq!(scene.cached().len(), if in_place { 0 } else { 2 });
        if in_place {
            scene.samples.size_bytes += 1;
            let error = scene.read().await.unwrap_err();
            assert!(matches!(error, SegmentFetchError::Corrupt { .. }), "{error:?}");
            scene.samples.path = ObjectPath::parse("segments/nowhere").unwrap();
            let error = scene.read().await.unwrap_err();
            assert!(matches!(error, SegmentFetchError::Missing { .. }), "{error:?}");
        }
    }
}
