//! A worker's disk under load, killed at random moments and opened again: what an earlier life left
//! is never seen, never served and never counted wrongly.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod common;

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use common::{FACTS, SESSION, noise};
use core_workcoord::moment::Moment;
use object_store::memory::InMemory;
use sha2::{Digest as _, Sha256};
use tributary_artifact_store::{
    DiskConfig, DownloadConfig, ReuseKey, SegmentFetchError, SegmentFile, WorkerDisk,
};
use tributary_catalog::{ObjectPath, Store};
use tributary_segment::ByteSource as _;

/// Where the child works; its presence makes this process the child.
const CHILD_FOLDER: &str = "TRIBUTARY_TEST_KILLED_FOLDER";

/// How often to kill; more where somebody has the time.
const KILLS: &str = "TRIBUTARY_TEST_KILLS";

fn disk_config(top: &Path, capacity_bytes: u64) -> DiskConfig {
    DiskConfig {
        folder: top.join("disk"),
        capacity_bytes: Some(capacity_bytes),
        keep_free_bytes: 0,
        read_in_place: false,
        download: DownloadConfig { part_bytes: 8192, ..DownloadConfig::default() },
        ..DiskConfig::default()
    }
}

async fn fill_store(store: &Store) -> Vec<SegmentFile> {
    let mut files = Vec::new();
    for i in 0..12 {
        let path = ObjectPath::parse(&format!("segments/t/u/{i}.samples.parquet")).unwrap();
        let bytes = noise(i, 300_000 + 1000 * usize::try_from(i).unwrap());
        files.push(SegmentFile::from(&store.put(&path, bytes.into()).await.unwrap()));
    }
    files
}

/// Makes, fetches and removes until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_that_is_killed() {
    let Some(top) = env::var_os(CHILD_FOLDER) else { return };
    let top = Path::new(&top);
    let store = Store::in_folder(&top.join("store")).unwrap();
    let files = fill_store(&Store::in_memory()).await;
    // Tight, so that things have to yield.
    let (disk, _lost) = WorkerDisk::open(&disk_config(top, 3 << 20), store).unwrap();
    fs::write(top.join("ready"), "").unwrap();
    let mut all = tokio::task::JoinSet::new();
    for task in 0..4_u64 {
        let (disk, files) = (disk.clone(), files.clone());
        all.spawn(async move {
            for turn in 0_u64.. {
                let dice = u64::from_le_bytes(noise(task << 32 | turn, 8).try_into().unwrap());
                if task % 2 == 0 {
                    let file = &files[usize::try_from(dice % 12).unwrap()];
                    _ = disk.segments().file(file).await;
                } else {
                    work(&disk, dice, turn).await;
                }
            }
        });
    }
    all.join_all().await;
}

async fn work(disk: &WorkerDisk, dice: u64, turn: u64) {
    let size = usize::try_from(dice % 400_000).unwrap();
    let now = Moment::from_millis(turn);
    let work = disk.spool().turn(ReuseKey([u8::try_from(dice >> 56).unwrap(); 32])).await;
    let disk = disk.clone();
    let done = tokio::task::spawn_blocking(move || {
        if work.reuse(SESSION, now).is_some() {
            return;
        }
        let Ok(mut writer) = work.begin() else { return };
        if writer.write_all(&noise(dice, size)).is_err() || dice & 7 == 0 {
            return;
        }
        let Ok(artifact) = writer.commit(SESSION, FACTS, now) else { return };
        match dice & 3 {
            0 => disk.spool().release(artifact.id),
            1 => assert!(disk.spool().acknowledge(artifact.id, now)),
            _ => disk.sweep(now),
        }
    });
    done.await.unwrap();
}

/// Kills the child as soon as it is ready and a random time has passed.
fn run_and_kill(top: &Path, after: Duration) {
    let ready = top.join("ready");
    _ = fs::remove_file(&ready);
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_child_that_is_killed"])
        .env(CHILD_FOLDER, top)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    for _ in 0..10_000 {
        if ready.exists() {
            break;
        }
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(after);
    assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn whenever_it_is_killed_the_next_life_starts_with_exact_books() {
    if env::var_os(CHILD_FOLDER).is_some() {
        return;
    }
    let kills: u64 = env::var(KILLS).map_or(25, |kills| kills.parse().unwrap());
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("store")).unwrap();
    let store = Store::in_folder(&top.path().join("store")).unwrap();
    let files = fill_store(&store).await;
    // A store of the same name that has nothing: what is read comes from the disk.
    let empty = Store::over(Arc::new(InMemory::new()), &store.to_string());
    let (mut left, mut kept) = (0, 0);
    for kill in 0..kills {
        run_and_kill(top.path(), Duration::from_micros(u64::from(noise(kill, 1)[0]) * 150));
        let folder = top.path().join("disk");
        left += fs::read_dir(folder.join("spool")).unwrap().count();
        let config = disk_config(top.path(), 64 << 20);
        let (disk, _lost) = WorkerDisk::open(&config, empty.clone()).unwrap();
        disk.audit().unwrap();
        let figures = disk.figures();
        assert_eq!((figures.spool_bytes, figures.artifacts), (0, 0));
        assert_eq!(fs::read_dir(folder.join("spool")).unwrap().count(), 0);
        // Whatever of the cache survived is whole.
        for file in &files {
            let pinned = match disk.segments().file(file).await {
                Ok(pinned) => pinned,
                Err(SegmentFetchError::Missing { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let bytes = pinned.read_range(0..pinned.size_bytes()).unwrap();
            assert_eq!(file.checksum.unwrap().0, <[u8; 32]>::from(Sha256::digest(&bytes)));
        }
        let survivors = disk.figures().segments;
        assert_eq!(disk.figures().counts.segment_hits, survivors);
        assert_eq!(survivors, figures.segments);
        kept += survivors;
        disk.audit().unwrap();
    }
    println!("{kills} kills left {left} files of artifacts and kept {kept} of segments");
    assert!(left > 0 && kept > 0, "the kills came at no interesting moment");
}
