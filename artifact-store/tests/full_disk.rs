//! A disk that is really full: a small tmpfs that somebody else fills. The cache yields, then work
//! fails as retryable, and nothing but time is lost. Runs in a mount namespace of its own, where the
//! machine lets it make one.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod common;

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use common::{SESSION, make, noise};
use core_workcoord::moment::Moment;
use tributary_artifact_store::{
    DiskConfig, DiskError, LostArtifact, SegmentFetchError, SegmentFile, WorkerDisk,
};
use tributary_catalog::{ObjectPath, Store};

/// The tmpfs; its presence makes this process the one inside.
const INSIDE: &str = "TRIBUTARY_TEST_TMPFS";

/// The machine does not let us mount.
const NOT_PERMITTED: i32 = 77;

const SCRIPT: &str = r#"mount -t tmpfs -o size=8m none "$TRIBUTARY_TEST_TMPFS" || exit 77
exec "$0" --exact inside_the_small_disk --nocapture"#;

#[test]
fn a_full_disk_costs_nothing_but_time() {
    if env::var_os(INSIDE).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["--mount"][..], &["--mount", "--user", "--map-root-user"]] {
        let inside = Command::new("unshare")
            .args(flags)
            .args(["sh", "-c", SCRIPT])
            .arg(env::current_exe().unwrap())
            .env(INSIDE, folder.path())
            .output();
        let Ok(output) = inside else { break };
        let told = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{told}");
            return;
        }
        let refused = output.status.code() == Some(NOT_PERMITTED) || told.contains("unshare");
        assert!(refused, "{told}{}", String::from_utf8_lossy(&output.stdout));
    }
    println!("skipped: this machine lets nobody mount a tmpfs");
}

/// Fills what is left of the disk.
fn hog(folder: &Path) {
    let mut file = File::options().append(true).create(true).open(folder.join("hog")).unwrap();
    let chunk = [1; 4096];
    while file.write(&chunk).is_ok() {}
}

fn usual_suspect(error: &DiskError) -> bool {
    matches!(error, DiskError::Full { .. }) && error.is_retryable()
}

#[tokio::test]
async fn inside_the_small_disk() {
    let Some(top) = env::var_os(INSIDE) else { return };
    let top = Path::new(&top);
    let store = Store::in_memory();
    let mut files = Vec::new();
    for i in 0..3 {
        let path = ObjectPath::parse(&format!("segments/{i}")).unwrap();
        let stored = store.put(&path, noise(i, 1 << 20).into()).await.unwrap();
        files.push(SegmentFile::from(&stored));
    }
    let config = DiskConfig {
        folder: top.join("worker"),
        keep_free_bytes: 0,
        sync_artifacts: true,
        ..DiskConfig::default()
    };
    let (disk, mut lost) = WorkerDisk::open(&config, store).unwrap();
    let token = disk.spool().open_session(SESSION);
    assert_eq!(disk.figures().capacity_bytes, 8 << 20, "as much as the disk has");
    let kept = make(&disk, [1; 32], &noise(9, 1 << 20)).await.unwrap();
    for file in &files {
        disk.segments().file(file).await.unwrap();
    }

    // Full, though the books know of room: the cache yields.
    hog(top);
    let made = make(&disk, [2; 32], &noise(10, 1 << 20)).await.unwrap();
    assert!(disk.figures().counts.disk_full > 0);
    assert!(disk.figures().counts.segments_evicted > 0);
    disk.audit().unwrap();

    // Full, and nothing left that could yield: work fails, and may be tried again elsewhere.
    hog(top);
    let failed = make(&disk, [3; 32], &noise(11, 4 << 20)).await.unwrap_err();
    assert!(usual_suspect(&failed), "{failed}");
    hog(top);
    disk.sweep(Moment::ZERO);
    assert!(!disk.report().room, "{:?}", disk.figures());
    let failed = disk.segments().file(&files[0]).await.unwrap_err();
    assert!(matches!(&failed, SegmentFetchError::Disk(error) if usual_suspect(error)), "{failed}");
    disk.audit().unwrap();
    for artifact in [&kept, &made] {
        let open = disk.spool().open(artifact.id, &token.reveal()).unwrap();
        assert_eq!(open.file().unwrap().metadata().unwrap().len(), 1 << 20);
    }
    assert_eq!(lost.try_next(), None);

    // What finishes all the same takes the place of what has waited longest, and that is told.
    let tiny = make(&disk, [4; 32], b"tiny").await.unwrap();
    assert_eq!(lost.try_next(), Some(LostArtifact { id: kept.id, session: SESSION }));
    assert_eq!(lost.try_next(), None);
    assert!(disk.spool().open(tiny.id, &token.reveal()).is_some());
    disk.audit().unwrap();

    // With room again all goes on.
    fs::remove_file(top.join("hog")).unwrap();
    disk.sweep(Moment::ZERO);
    assert!(disk.report().room);
    disk.segments().file(&files[0]).await.unwrap();
    make(&disk, [3; 32], &noise(11, 2 << 20)).await.unwrap();
    disk.audit().unwrap();
}
