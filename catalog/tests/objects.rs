//! The object store's promises, the same for a folder, memory and S3 where there is one:
//! `TRIBUTARY_TEST_S3` is the URL of a server that speaks its protocol and takes any key.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod support;

use core_workcoord::artifact::Checksum;
use sha2::{Digest, Sha256};
use support::require;
use tributary_catalog::{LocalFile, ObjectError, ObjectPath, Store, StoreOptions};

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

#[tokio::test]
async fn a_folder_keeps_what_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file://{}", folder.path().display());
    keeps_what_it_is_given(&Store::open(&address, &StoreOptions::default()).unwrap()).await;
    let plain = folder.path().display().to_string();
    let store = Store::open(&plain, &StoreOptions::default()).unwrap();
    store.put(&path("a/b"), "x".into()).await.unwrap();
    assert_eq!(std::fs::read(folder.path().join("a/b")).unwrap(), b"x");
}

#[tokio::test]
async fn memory_keeps_what_it_is_given() {
    let store = Store::open("memory:", &StoreOptions::default()).unwrap();
    keeps_what_it_is_given(&store).await;
    assert!(store.leftovers(&path("segments")).await.unwrap().is_empty());
}

#[cfg(feature = "s3")]
#[tokio::test]
async fn s3_keeps_what_it_is_given() {
    let Some(endpoint) = require("TRIBUTARY_TEST_S3") else { return };
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let options = StoreOptions::new([
        setting("aws_endpoint", &endpoint),
        setting("aws_allow_http", "true"),
        setting("aws_region", "us-east-1"),
        setting("aws_access_key_id", "tester"),
        setting("aws_secret_access_key", "hunter2"),
    ]);
    let store = Store::open("s3://segments-test/some/prefix", &options).unwrap();
    keeps_what_it_is_given(&store).await;
    let printed = format!("{store} {store:?} {options:?}");
    assert!(!printed.contains("hunter2") && printed.contains("some/prefix"), "{printed}");
    // The prefix holds: from outside, the object has its whole name.
    store.put(&path("a/b"), "x".into()).await.unwrap();
    let outside = Store::open("s3://segments-test", &options).unwrap();
    assert_eq!(outside.get(&path("some/prefix/a/b")).await.unwrap(), "x");
}

async fn keeps_what_it_is_given(store: &Store) {
    let place = path("segments/t/u/s.series.parquet");
    let stored = store.put(&place, "0123456789".into()).await.unwrap();
    assert_eq!((stored.size_bytes, &stored.path), (10, &place));
    assert_eq!(stored.checksum, Checksum(Sha256::digest("0123456789").into()));
    assert_eq!(store.get(&place).await.unwrap(), "0123456789");
    assert_eq!(store.get_range(&place, 3..7).await.unwrap(), "3456");
    let info = store.head(&place).await.unwrap();
    assert_eq!((info.size_bytes, &info.path), (10, &place));
    assert!(info.modified_ms > 1_600_000_000_000);

    let other = path("segments/t/u/s.samples.parquet");
    store.put(&other, "x".into()).await.unwrap();
    store.put(&path("segments-2/x"), "beside".into()).await.unwrap();
    let listing = store.list(&path("segments")).await.unwrap();
    let mut found: Vec<_> = listing.objects.iter().map(|object| object.path.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, [other.as_str(), place.as_str()]);
    assert!(store.list(&path("segments/none")).await.unwrap().objects.is_empty());

    store.put(&place, "again".into()).await.unwrap();
    assert_eq!(store.get(&place).await.unwrap(), "again");
    for _ in 0..2 {
        store.delete(&place).await.unwrap();
        let missing = store.get(&place).await.unwrap_err();
        assert!(matches!(missing, ObjectError::NotFound { .. }), "{missing}");
        let missing = store.head(&place).await.unwrap_err();
        assert!(missing.to_string().contains(place.as_str()), "{missing}");
    }

    // One file that goes in one piece, one that needs several.
    let folder = tempfile::tempdir().unwrap();
    for size in [0, 1_000, 17 << 20] {
        let bytes: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[1]).collect();
        let file = folder.path().join("file");
        std::fs::write(&file, &bytes).unwrap();
        let stored = store.put_file(&place, &file).await.unwrap();
        assert_eq!(
            (stored.size_bytes, stored.checksum),
            (u64::from(size), Checksum(Sha256::digest(&bytes).into()),)
        );
        assert!(store.get(&place).await.unwrap() == bytes, "{size} bytes");
    }
    let error = store.put_file(&place, &folder.path().join("none")).await.unwrap_err();
    assert!(matches!(error, ObjectError::LocalFile { .. }), "{error}");
    assert!(store.list(&path("segments")).await.unwrap().foreign.is_empty());
}

#[test]
fn an_address_that_is_none_is_refused_and_not_repeated() {
    for bad in [
        "s3://key:hunter2@bucket/prefix",
        "s3://?secret=hunter2",
        "ftp://me:hunter2@host/",
        "file://host/hunter2",
        "file:hunter2/relative",
    ] {
        let error = Store::open(bad, &StoreOptions::default()).unwrap_err();
        assert!(matches!(error, ObjectError::BadUrl { .. }), "{bad}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
    let secret = StoreOptions::new([("aws_secret_access_key".to_owned(), "hunter2".to_owned())]);
    assert!(!format!("{secret:?}").contains("hunter2"));
    let error = Store::open("memory:", &secret).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    let missing = Store::open("/no/such/folder", &StoreOptions::default()).unwrap_err();
    assert!(matches!(missing, ObjectError::LocalFile { .. }), "{missing}");
}

#[cfg(not(feature = "s3"))]
#[test]
fn a_build_without_s3_says_so() {
    _ = require;
    let error = Store::open("s3://bucket/prefix", &StoreOptions::default()).unwrap_err();
    assert!(error.to_string().contains("S3"), "{error}");
}

#[tokio::test]
async fn a_measured_file_moves_into_any_store() {
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::in_memory(), Store::in_folder(folder.path()).unwrap()] {
        let file = outside.path().join("made-here");
        std::fs::write(&file, "0123456789").unwrap();
        let measured = LocalFile::measure(&file).unwrap();
        assert_eq!(measured.checksum, Checksum(Sha256::digest("0123456789").into()));
        let place = path("segments/t/u/s.series.parquet");
        let stored = store.take(&place, measured.clone()).await.unwrap();
        assert_eq!((&stored.path, stored.size_bytes), (&place, 10));
        assert_eq!(store.get(&place).await.unwrap(), "0123456789");
        assert!(!file.exists());
        let again = store.take(&path("segments/t/u/t.series.parquet"), measured).await;
        assert!(matches!(again, Err(ObjectError::LocalFile { .. })), "{again:?}");
    }
}
