//! A writer that is killed at any moment leaves nothing half visible: every batch is there as a
//! whole or not at all, every segment has its files, and what is left over can be cleaned up.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::{Dice, TestDatabase, put_files, segment};
use tributary_catalog::gc::{GcConfig, plan_gc, run_gc, survey};
use tributary_catalog::{Catalog, CatalogConfig, Store};

const SIZE: usize = 5;

on_both_databases!(a_writer_killed_at_any_moment_leaves_whole_batches_and_orphans);

async fn a_writer_killed_at_any_moment_leaves_whole_batches_and_orphans(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let seed = 3;
    let mut dice = Dice(seed);
    let mut batches = 0;
    for life in 0..12 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer_that_will_be_killed", "--nocapture"])
            .env("TRIBUTARY_TEST_WRITER", &database.url)
            .env("TRIBUTARY_TEST_WRITER_STORE", database.dir.path().join("store"))
            .env("TRIBUTARY_TEST_WRITER_LIFE", life.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(60 + dice.roll(300))).await;
        writer.kill().unwrap();
        writer.wait().unwrap();

        let seen = survey(&catalog, &store).await.unwrap();
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for entry in &seen.entries {
            let (batch, _) = entry.segment.id.as_str().rsplit_once('-').unwrap();
            *found.entry(batch.to_owned()).or_default() += 1;
        }
        assert!(found.values().all(|count| *count == SIZE), "seed {seed}, life {life}: {found:?}");
        batches = found.len();
        let plan = plan_gc(&seen, GcConfig::default(), now_ms());
        assert_eq!(plan.dangling, [], "seed {seed}, life {life}");
        assert_eq!(plan.orphans, [], "they are too young");
    }
    let plan = plan_gc(
        &survey(&catalog, &store).await.unwrap(),
        GcConfig { grace: Duration::ZERO },
        now_ms() + 1_000,
    );
    let report = run_gc(&catalog, &store, &plan).await.unwrap();
    println!(
        "{batches} batches, {} orphans, {} leftovers",
        plan.orphans.len(),
        plan.leftovers.len()
    );
    assert!(batches > 0, "the writers got something done");
    assert_eq!(report.dangling, []);
    let seen = survey(&catalog, &store).await.unwrap();
    assert_eq!(seen.listing.objects.len(), batches * SIZE * 2);
    assert_eq!(seen.leftovers, []);
}

/// The other process: this test again, told to write until it is killed.
#[tokio::test]
async fn writer_that_will_be_killed() {
    let Ok(url) = std::env::var("TRIBUTARY_TEST_WRITER") else { return };
    let folder = std::env::var("TRIBUTARY_TEST_WRITER_STORE").unwrap();
    let life = std::env::var("TRIBUTARY_TEST_WRITER_LIFE").unwrap();
    let store = Store::in_folder(folder.as_ref()).unwrap();
    let catalog = Catalog::open(url.parse().unwrap(), CatalogConfig::default()).await.unwrap();
    for batch in 0.. {
        let batch: Vec<_> = (0..SIZE)
            .map(|n| {
                let mut new = segment("t", &format!("l{life}-b{batch}-{n}"));
                new.segment.written_ms = now_ms();
                new
            })
            .collect();
        for new in &batch {
            put_files(&store, new).await;
        }
        catalog.register(&batch, now_ms()).await.unwrap();
    }
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
