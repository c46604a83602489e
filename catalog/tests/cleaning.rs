//! Cleaning, on both databases: what nobody names goes after its grace period, what is named stays,
//! and a segment without its files is told of.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::{TestDatabase, id, live, metrics, put_files, segment, tenant, with_metrics};
use tributary_catalog::gc::{GcConfig, GcPlan, GcReport, plan_gc, run_gc, survey};
use tributary_catalog::{Catalog, NewSegment, ObjectPath, Store};

on_both_databases!(
    files_without_a_row_go_after_their_grace_period,
    a_removed_segment_keeps_its_files_for_the_grace_period,
    a_file_that_is_registered_after_the_survey_stays,
    a_segment_restored_after_the_plan_is_not_forgotten,
    a_segment_without_its_files_is_told_of_and_kept,
    metric_lists_go_with_their_last_segment,
    what_is_not_ours_is_left_alone,
);

const HOUR: Duration = Duration::from_secs(3_600);

/// Files get the machine's time, so these stories go by it.
fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn after(duration: Duration) -> i64 {
    now_ms() + i64::try_from(duration.as_millis()).unwrap()
}

fn written_now(mut new: NewSegment) -> NewSegment {
    new.segment.written_ms = now_ms();
    new
}

async fn plan(catalog: &Catalog, store: &Store, grace: Duration, now_ms: i64) -> GcPlan {
    plan_gc(&survey(catalog, store).await.unwrap(), GcConfig { grace }, now_ms)
}

async fn clean(catalog: &Catalog, store: &Store, grace: Duration, now_ms: i64) -> GcReport {
    let plan = plan(catalog, store, grace, now_ms).await;
    run_gc(catalog, store, &plan).await.unwrap()
}

async fn file_count(store: &Store) -> usize {
    store.list(&ObjectPath::parse("segments").unwrap()).await.unwrap().objects.len()
}

async fn files_without_a_row_go_after_their_grace_period(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let (kept, lost) = (written_now(segment("t", "kept")), segment("t", "lost"));
    // A writer that died between its files and its rows.
    put_files(&store, &lost).await;
    put_files(&store, &kept).await;
    catalog.register(std::slice::from_ref(&kept), now_ms()).await.unwrap();
    assert_eq!(live(&catalog, "t").await, ["kept"], "nothing of it can be seen");

    let young = plan(&catalog, &store, HOUR, now_ms()).await;
    assert_eq!((young.orphans.len(), young.young), (0, 2));
    let report = clean(&catalog, &store, HOUR, after(2 * HOUR)).await;
    assert_eq!((report.files_removed, report.segments_forgotten), (2, 0));
    let sizes = [&lost.segment.series_file, &lost.segment.samples_file].map(|f| f.size_bytes);
    assert_eq!(report.bytes_removed, sizes.iter().sum::<u64>());
    assert!(report.dangling.is_empty(), "{report:?}");
    assert_eq!(file_count(&store).await, 2);
    assert_eq!(clean(&catalog, &store, HOUR, after(2 * HOUR)).await, GcReport::default());
}

async fn a_removed_segment_keeps_its_files_for_the_grace_period(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let new = written_now(segment("t", "a"));
    put_files(&store, &new).await;
    catalog.register(std::slice::from_ref(&new), now_ms()).await.unwrap();
    // The files are older than the grace period, the removal is not.
    let removed = after(5 * HOUR);
    catalog.remove(&tenant("t"), &[id("a")], removed).await.unwrap();
    let report = clean(&catalog, &store, HOUR, removed + 1_000).await;
    assert_eq!(report, GcReport::default());
    assert_eq!(file_count(&store).await, 2);

    let report = clean(&catalog, &store, HOUR, removed + 3_600_000).await;
    assert_eq!((report.files_removed, report.segments_forgotten), (2, 1));
    assert_eq!(file_count(&store).await, 0);
    assert!(catalog.entries().await.unwrap().is_empty());
    // Forgotten is forgotten: the same data may come again.
    put_files(&store, &new).await;
    assert_eq!(catalog.register(&[new], now_ms()).await.unwrap().added, 1);
}

async fn a_file_that_is_registered_after_the_survey_stays(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let new = written_now(segment("t", "slow"));
    put_files(&store, &new).await;
    let plan = plan(&catalog, &store, Duration::ZERO, after(HOUR)).await;
    assert_eq!(plan.orphans.len(), 2);
    catalog.register(std::slice::from_ref(&new), now_ms()).await.unwrap();
    assert_eq!(run_gc(&catalog, &store, &plan).await.unwrap(), GcReport::default());
    assert_eq!(file_count(&store).await, 2);
}

async fn a_segment_restored_after_the_plan_is_not_forgotten(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let new = written_now(segment("t", "a"));
    put_files(&store, &new).await;
    catalog.register(std::slice::from_ref(&new), now_ms()).await.unwrap();
    catalog.remove(&tenant("t"), &[id("a")], now_ms()).await.unwrap();
    let plan = plan(&catalog, &store, Duration::ZERO, after(HOUR)).await;
    assert_eq!(plan.expired, [id("a")]);
    // Removed anew since, with a grace period of its own; and then not removed at all.
    let again = format!("UPDATE segments SET removed_ms = {}", after(2 * HOUR));
    for meanwhile in [again.as_str(), "UPDATE segments SET removed_ms = NULL"] {
        database.meddle(meanwhile).await;
        assert_eq!(run_gc(&catalog, &store, &plan).await.unwrap(), GcReport::default());
        assert_eq!(file_count(&store).await, 2);
    }
    assert_eq!(live(&catalog, "t").await, ["a"]);
}

async fn a_segment_without_its_files_is_told_of_and_kept(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let batch = ["whole", "half", "none", "short"].map(|name| written_now(segment("t", name)));
    for new in &batch {
        put_files(&store, new).await;
    }
    catalog.register(&batch, now_ms()).await.unwrap();
    store.delete(&batch[1].segment.series_file.path).await.unwrap();
    store.delete(&batch[2].segment.series_file.path).await.unwrap();
    store.delete(&batch[2].segment.samples_file.path).await.unwrap();
    store.put(&batch[3].segment.samples_file.path, "cut".into()).await.unwrap();

    let report = clean(&catalog, &store, Duration::ZERO, after(HOUR)).await;
    let mut told: Vec<_> =
        report.dangling.iter().map(|d| (d.segment.to_string(), d.found_bytes)).collect();
    told.sort();
    let expected = [("half", None), ("none", None), ("none", None), ("short", Some(3))];
    assert_eq!(told, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    assert_eq!((report.files_removed, report.segments_forgotten), (0, 0));
    assert_eq!(live(&catalog, "t").await, ["half", "none", "short", "whole"]);

    // Files that are back by the time of the doing are not told of.
    let plan = plan(&catalog, &store, Duration::ZERO, after(HOUR)).await;
    for new in &batch {
        put_files(&store, new).await;
    }
    assert!(run_gc(&catalog, &store, &plan).await.unwrap().dangling.is_empty());
}

async fn metric_lists_go_with_their_last_segment(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let batch = [
        with_metrics(written_now(segment("t", "a")), &["shared"]),
        with_metrics(written_now(segment("u", "b")), &["shared"]),
        with_metrics(written_now(segment("t", "c")), &["own"]),
    ];
    catalog.register(&batch, now_ms()).await.unwrap();
    catalog.remove(&tenant("t"), &[id("a"), id("c")], now_ms()).await.unwrap();
    assert_eq!(clean(&catalog, &store, Duration::ZERO, after(HOUR)).await.segments_forgotten, 2);
    let left = catalog.details(&tenant("u"), &id("b")).await.unwrap().unwrap();
    assert_eq!(left.metrics, metrics(&["shared"]));
    // Were the other list still there, these would be two rows of one name, and refused.
    database
        .meddle("INSERT INTO metric_sets (digest, names) SELECT 'probe', names FROM metric_sets")
        .await;
}

async fn what_is_not_ours_is_left_alone(database: &TestDatabase) {
    let (catalog, store) = (database.open().await, database.store());
    let notes = ObjectPath::parse("segments/notes.txt").unwrap();
    store.put(&notes, "hands off".into()).await.unwrap();
    let beside = ObjectPath::parse("other/x.series.parquet").unwrap();
    store.put(&beside, "hands off".into()).await.unwrap();
    let folder = database.dir.path().join("store/segments");
    std::fs::write(folder.join("a b.series.parquet"), "hands off").unwrap();
    std::fs::write(folder.join("left.samples.parquet#1"), "half").unwrap();
    std::fs::write(folder.join("draft#1"), "hands off").unwrap();

    let plan = plan(&catalog, &store, Duration::ZERO, after(HOUR)).await;
    let mut foreign = plan.foreign.clone();
    foreign.sort();
    assert_eq!(foreign, ["segments/a b.series.parquet", "segments/notes.txt"]);
    let report = run_gc(&catalog, &store, &plan).await.unwrap();
    assert_eq!((report.files_removed, report.leftovers_removed), (0, 1));
    assert_eq!(store.get(&notes).await.unwrap(), "hands off");
    assert_eq!(store.get(&beside).await.unwrap(), "hands off");
    assert!(folder.join("draft#1").exists() && !folder.join("left.samples.parquet#1").exists());
}
