//! Stories of artifacts: made once, served to several, gone in time, never half there.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tributary_catalog::Store;

use super::*;
use crate::{DiskConfig, LostArtifacts, WorkerDisk};

const FACTS: Facts = Facts { row_count: 7, min_ts: -1, max_ts: 9, parquet_schema_version: 1 };
const S1: SessionId = SessionId(1);
const S2: SessionId = SessionId(2);

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

fn config(folder: &Path) -> DiskConfig {
    DiskConfig {
        folder: folder.to_owned(),
        capacity_bytes: Some(1000),
        keep_free_bytes: 0,
        ..DiskConfig::default()
    }
}

fn open(config: &DiskConfig) -> (WorkerDisk, LostArtifacts) {
    WorkerDisk::open(config, Store::in_memory()).unwrap()
}

async fn try_make(
    disk: &WorkerDisk,
    key: u8,
    size: usize,
    session: SessionId,
    now: Moment,
) -> Result<SpooledArtifact, DiskError> {
    let turn = disk.spool().turn(ReuseKey([key; 32])).await;
    let mut writer = turn.begin()?;
    writer.write_all(&vec![key; size]).unwrap();
    writer.commit(session, FACTS, now)
}

async fn make(disk: &WorkerDisk, key: u8, size: usize, now: Moment) -> SpooledArtifact {
    try_make(disk, key, size, S1, now).await.unwrap()
}

fn read(disk: &WorkerDisk, id: ArtifactId, token: &Token) -> Option<Vec<u8>> {
    let open = disk.spool().open(id, &token.reveal())?;
    let mut bytes = Vec::new();
    open.file().unwrap().read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

#[tokio::test]
async fn an_artifact_is_there_from_its_commit_until_its_release() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, _lost) = open(&config(folder.path()));
    let token = disk.spool().open_session(S1);
    let artifact = make(&disk, 5, 100, at(0)).await;
    assert_eq!((artifact.size_bytes, artifact.facts), (100, FACTS));
    assert_eq!(artifact.checksum.0, <[u8; 32]>::from(Sha256::digest([5; 100])));
    assert_eq!(read(&disk, artifact.id, &token), Some(vec![5; 100]));
    assert_eq!(disk.figures().spool_bytes, 100);
    let announced = artifact.announce("http://w1:9002/");
    assert_eq!(announced.url, format!("http://w1:9002/artifacts/{}", artifact.id));
    disk.audit().unwrap();
    disk.spool().release(artifact.id);
    assert_eq!(read(&disk, artifact.id, &token), None);
    assert_eq!(disk.figures().spool_bytes, 0);
    disk.audit().unwrap();
}

#[tokio::test]
async fn what_is_not_committed_was_never_there() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, _lost) = open(&config(folder.path()));
    let turn = disk.spool().turn(ReuseKey([1; 32])).await;
    let mut writer = turn.begin().unwrap();
    writer.write_all(&[1; 50]).unwrap();
    assert_eq!(writer.size_bytes(), 50);
    drop(writer);
    disk.audit().unwrap();
    let turn = disk.spool().turn(ReuseKey([1; 32])).await;
    assert_eq!(turn.reuse(S1, at(0)), None);
    assert_eq!((disk.figures().spool_bytes, disk.figures().counts.artifacts_abandoned), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_work_asked_for_by_many_at_once_is_done_once() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, _lost) = open(&config(folder.path()));
    let tokens: Vec<_> = (0..20).map(|i| disk.spool().open_session(SessionId(i))).collect();
    let mut all = tokio::task::JoinSet::new();
    for i in 0..20 {
        let disk = disk.clone();
        all.spawn(async move {
            let turn = disk.spool().turn(ReuseKey([3; 32])).await;
            if let Some(artifact) = turn.reuse(SessionId(i), at(0)) {
                return (i, artifact);
            }
            // Slow work, off the threads of the runtime.
            let made = tokio::task::spawn_blocking(move || {
                let mut writer = turn.begin().unwrap();
                std::thread::sleep(Duration::from_millis(20));
                writer.write_all(b"slow work").unwrap();
                writer.commit(SessionId(i), FACTS, at(0)).unwrap()
            });
            (i, made.await.unwrap())
        });
    }
    let made = all.join_all().await;
    let counts = disk.figures().counts;
    assert_eq!((counts.artifacts_committed, counts.artifacts_reused), (1, 19));
    for (i, artifact) in &made {
        let token = &tokens[usize::try_from(*i).unwrap()];
        assert_eq!(read(&disk, artifact.id, token).as_deref(), Some(&b"slow work"[..]));
        let stranger = &tokens[usize::try_from((i + 1) % 20).unwrap()];
        assert_eq!(read(&disk, artifact.id, stranger), None, "each has a name of its own");
    }
    assert_eq!((disk.figures().artifacts, disk.figures().spool_bytes), (20, 9));
    (0..20).for_each(|i| disk.spool().close_session(SessionId(i)));
    assert_eq!((disk.figures().artifacts, disk.figures().spool_bytes), (0, 0));
    disk.audit().unwrap();
}

#[tokio::test]
async fn when_the_first_gives_up_the_next_in_line_does_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, _lost) = open(&config(folder.path()));
    let first = disk.spool().turn(ReuseKey([3; 32])).await;
    let mut writer = first.begin().unwrap();
    writer.write_all(b"half of").unwrap();
    let second = tokio::spawn({
        let spool = disk.spool().clone();
        async move { spool.turn(ReuseKey([3; 32])).await.reuse(S2, at(0)) }
    });
    tokio::task::yield_now().await;
    assert!(!second.is_finished());
    drop(writer);
    assert_eq!(second.await.unwrap(), None, "there is nothing: it is the second one's to make");
}

#[tokio::test]
async fn artifacts_go_when_their_time_is_up_and_the_owner_is_told_of_those_it_did_not_fetch() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut lost) = open(&config(folder.path()));
    let fetched = make(&disk, 1, 10, at(0)).await;
    let ignored = make(&disk, 2, 10, at(0)).await;
    assert!(disk.spool().acknowledge(fetched.id, at(1_000)));
    assert!(!disk.spool().acknowledge(fetched.id, at(2_000)));
    disk.sweep(at(30_999));
    assert_eq!(disk.figures().artifacts, 2);
    disk.sweep(at(31_000));
    assert_eq!((disk.figures().artifacts, lost.try_next()), (1, None));
    disk.sweep(at(599_999));
    assert_eq!(disk.figures().artifacts, 1);
    disk.sweep(at(600_000));
    assert_eq!(lost.try_next(), Some(crate::LostArtifact { id: ignored.id, session: S1 }));
    assert_eq!((disk.figures().spool_bytes, disk.figures().counts.artifacts_expired), (0, 2));
    disk.audit().unwrap();
}

#[tokio::test]
async fn for_want_of_room_fetched_artifacts_go_first_and_lost_ones_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut lost) = open(&config(folder.path()));
    let token = disk.spool().open_session(S1);
    let oldest = make(&disk, 1, 300, at(0)).await;
    let fetched = make(&disk, 2, 300, at(1)).await;
    disk.spool().acknowledge(fetched.id, at(2));
    let waiting = make(&disk, 3, 300, at(3)).await;
    let fourth = make(&disk, 4, 300, at(4)).await;
    assert_eq!(lost.try_next(), None);
    assert_eq!(disk.figures().counts.artifacts_evicted, 1);
    assert_eq!(read(&disk, fetched.id, &token), None);
    // A reader holds the next in line, so that the one after it goes.
    let reader = disk.spool().open(oldest.id, &token.reveal()).unwrap();
    make(&disk, 5, 300, at(5)).await;
    assert_eq!(lost.try_next().map(|lost| lost.id), Some(waiting.id));
    assert_eq!(reader.file().unwrap().metadata().unwrap().len(), 300);
    drop(reader);
    let full = try_make(&disk, 6, 1001, S1, at(6)).await.unwrap_err();
    assert!(matches!(full, DiskError::Full { .. }) && full.is_retryable());
    assert_eq!(lost.try_next(), None, "nothing goes for what does not fit anyway");
    assert_eq!(read(&disk, fourth.id, &token), Some(vec![4; 300]));
    disk.audit().unwrap();
}

#[tokio::test]
async fn a_released_artifact_that_is_being_read_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, _lost) = open(&config(folder.path()));
    let token = disk.spool().open_session(S1);
    let artifact = make(&disk, 1, 300, at(0)).await;
    let reader = disk.spool().open(artifact.id, &token.reveal()).unwrap();
    disk.spool().release(artifact.id);
    assert!(disk.spool().open(artifact.id, &token.reveal()).is_none());
    assert_eq!(disk.figures().spool_bytes, 300, "it is on disk, and counted");
    let mut bytes = Vec::new();
    reader.file().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, vec![1; 300]);
    drop(reader);
    assert_eq!(disk.figures().spool_bytes, 0);
    disk.audit().unwrap();
}

#[tokio::test]
async fn a_failed_write_says_why_to_whoever_asks_later() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, _lost) = open(&config(folder.path()));
    let mut writer = disk.spool().turn(ReuseKey([1; 32])).await.begin().unwrap();
    let failed = writer.write_all(&vec![0; 1 << 20]).unwrap_err();
    assert_eq!(failed.kind(), std::io::ErrorKind::StorageFull);
    assert!(writer.write_all(b"more").is_err());
    assert!(matches!(writer.failure(), Some(DiskError::Full { .. })));
}

#[tokio::test]
async fn the_next_life_finds_an_empty_spool_whatever_the_last_one_left() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let (disk, _lost) = open(&config);
    make(&disk, 1, 100, at(0)).await;
    let mut writer = disk.spool().turn(ReuseKey([2; 32])).await.begin().unwrap();
    writer.write_all(&[0; 100]).unwrap();
    let busy = WorkerDisk::open(&config, Store::in_memory());
    assert!(matches!(busy, Err(DiskError::InUse { .. })));
    // As if killed: nothing is cleaned up. What it left is looked at in a folder of its own, since
    // this process still has the lock.
    std::mem::forget(writer);
    let spool = folder.path().join("spool");
    std::fs::write(spool.join("0123.artifact"), "left").unwrap();
    let copy = tempfile::tempdir().unwrap();
    std::fs::write(copy.path().join("tributary-worker.lock"), "").unwrap();
    for name in ["spool", "segments"] {
        std::fs::rename(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let (next, _lost) = open(&DiskConfig { folder: copy.path().to_owned(), ..config.clone() });
    assert_eq!((next.figures().spool_bytes, next.figures().artifacts), (0, 0));
    next.audit().unwrap();
}

#[tokio::test]
async fn after_thousands_of_artifacts_nothing_is_left_in_any_table() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut lost) = open(&config(folder.path()));
    for round in 0..3_000_u64 {
        let session = SessionId(round / 100);
        if round % 100 == 0 {
            disk.spool().open_session(session);
        }
        let key = u8::try_from(round % 7).unwrap();
        let turn = disk.spool().turn(ReuseKey([key; 32])).await;
        let artifact = match turn.reuse(session, at(round)) {
            Some(artifact) => artifact,
            None => {
                let mut writer = turn.begin().unwrap();
                writer.write_all(&vec![key; 40 * usize::from(key)]).unwrap();
                writer.commit(session, FACTS, at(round)).unwrap()
            }
        };
        match round % 5 {
            0 => disk.spool().release(artifact.id),
            1 | 2 => assert!(disk.spool().acknowledge(artifact.id, at(round))),
            3 => disk.sweep(at(round)),
            _ => {}
        }
        if round % 100 == 99 {
            disk.spool().close_session(session);
            while lost.try_next().is_some() {}
        }
    }
    disk.audit().unwrap();
    let figures = disk.figures();
    assert_eq!((figures.artifacts, figures.spool_bytes), (0, 0));
    assert_eq!(disk.spool().turns.len(), 0);
    assert_eq!(std::fs::read_dir(folder.path().join("spool")).unwrap().count(), 0);
}
