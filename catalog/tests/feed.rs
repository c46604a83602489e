//! The universe's promises, on both databases: news within a second, whole batches only, and a
//! difference leads to the same universe as reading everything.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::{
    BLOCK_MS, Dice, NOW_MS, TestDatabase, id, impatient, in_block, names, segment, tenant,
    with_metrics,
};
use tributary_catalog::gc::{GcConfig, plan_gc, run_gc, survey};
use tributary_catalog::{CatalogConfig, MetricChoice, Shard, Universe, UniverseFeed, Wanted};

on_both_databases!(
    new_segments_are_seen_within_a_second,
    a_batch_is_seen_as_a_whole_or_not_at_all,
    differences_lead_to_the_same_universe_as_reading_everything,
    a_reader_that_missed_a_purge_reads_everything,
    a_database_from_a_backup_is_read_anew,
    a_feed_ends_with_its_owner,
    a_universe_in_hand_does_not_change,
);

async fn new_segments_are_seen_within_a_second(database: &TestDatabase) {
    let writer = database.open().await;
    let feed = UniverseFeed::start(&database.open().await).await.unwrap();
    let mut reader = feed.reader();
    let mut slowest = Duration::ZERO;
    for number in 0..10 {
        let batch = [segment("t", &format!("s{number}"))];
        let changed = writer.register(&batch, NOW_MS).await.unwrap();
        let registered = Instant::now();
        let universe = reader.seen(changed).await.unwrap();
        slowest = slowest.max(registered.elapsed());
        assert_eq!(universe.segment_count(), number + 1);
        // Not in step with the poll.
        tokio::time::sleep(Duration::from_millis(37 * number as u64 % 250)).await;
    }
    println!("slowest of 10: {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(reader.freshness().age < Duration::from_secs(1));
    assert_eq!(reader.freshness().failures, 0);
}

async fn a_batch_is_seen_as_a_whole_or_not_at_all(database: &TestDatabase) {
    const SIZE: usize = 7;
    const ROUNDS: usize = 60;
    let feed = UniverseFeed::start(&database.open_with(impatient()).await).await.unwrap();
    let reader = feed.reader();
    let done = Arc::new(AtomicBool::new(false));
    let watch = tokio::spawn({
        let (done, catalog) = (done.clone(), database.open().await);
        async move {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                // Through the feed and straight from the database alike.
                for universe in [reader.current(), Arc::new(catalog.universe().await.unwrap())] {
                    whole_batches_only(&universe, SIZE);
                    looks += 1;
                }
                tokio::task::yield_now().await;
            }
            looks
        }
    });
    let writer = database.open().await;
    let mut dice = Dice(7);
    let mut standing: Vec<Vec<_>> = Vec::new();
    for round in 0..ROUNDS {
        let fresh: Vec<_> = (0..SIZE).map(|n| segment("t", &format!("r{round}-{n}"))).collect();
        let ids: Vec<_> = fresh.iter().map(|new| new.segment.id.clone()).collect();
        match dice.roll(3) {
            // A compaction of the newest batch: the one is gone when the other is there.
            0 if !standing.is_empty() => {
                let old = standing.pop().unwrap();
                writer.replace(&tenant("t"), &fresh, &old, NOW_MS).await.unwrap();
                standing.push(ids);
            }
            1 if !standing.is_empty() => {
                let old = standing.remove(0);
                writer.remove(&tenant("t"), &old, NOW_MS).await.unwrap();
            }
            _ => {
                writer.register(&fresh, NOW_MS).await.unwrap();
                standing.push(ids);
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    let looks = watch.await.unwrap();
    println!("{looks} looks at {ROUNDS} changes");
    assert!(looks > ROUNDS / 2);
}

fn whole_batches_only(universe: &Universe, size: usize) {
    let mut batches: BTreeMap<String, usize> = BTreeMap::new();
    for segment in universe.tenant(&tenant("t")).iter() {
        let (batch, _) = segment.id.as_str().split_once('-').unwrap();
        *batches.entry(batch.to_owned()).or_default() += 1;
    }
    for (batch, count) in batches {
        assert_eq!(count, size, "batch {batch} at change {}", universe.change_seq());
    }
}

async fn differences_lead_to_the_same_universe_as_reading_everything(database: &TestDatabase) {
    let store = database.store();
    let catalog = database.open().await;
    let feed = UniverseFeed::start(&database.open_with(impatient()).await).await.unwrap();
    let mut reader = feed.reader();
    let mut dice = Dice(11);
    let mut standing = Vec::new();
    let mut next = 0;
    for step in 0..60 {
        let owner = ["one", "two"][usize::try_from(dice.roll(2)).unwrap()];
        let mut fresh = |dice: &mut Dice| {
            next += 1;
            let metrics = [format!("m{}", dice.roll(5)), format!("m{}", dice.roll(200))];
            let new = segment(owner, &format!("s{next}"));
            let new = in_block(new, i64::try_from(dice.roll(50)).unwrap());
            with_metrics(new, &[&metrics[0], &metrics[1]])
        };
        let of_owner =
            |standing: &Vec<(String, _)>| standing.iter().position(|(tenant, _)| tenant == owner);
        let changed = match (dice.roll(4), of_owner(&standing)) {
            (0, Some(place)) => {
                let (_, gone) = standing.swap_remove(place);
                catalog.remove(&tenant(owner), &[gone], NOW_MS).await.unwrap()
            }
            (1, Some(place)) => {
                let (_, gone) = standing.swap_remove(place);
                let new = fresh(&mut dice);
                standing.push((owner.to_owned(), new.segment.id.clone()));
                catalog.replace(&tenant(owner), &[new], &[gone], NOW_MS).await.unwrap()
            }
            (2, _) if step % 7 == 0 => {
                let plan = plan_gc(
                    &survey(&catalog, &store).await.unwrap(),
                    GcConfig { grace: Duration::ZERO },
                    NOW_MS,
                );
                run_gc(&catalog, &store, &plan).await.unwrap();
                continue;
            }
            _ => {
                let batch: Vec<_> = (0..=dice.roll(6)).map(|_| fresh(&mut dice)).collect();
                let ids = batch.iter().map(|new| (owner.to_owned(), new.segment.id.clone()));
                standing.extend(ids);
                catalog.register(&batch, NOW_MS).await.unwrap()
            }
        };
        let followed = reader.seen(changed).await.unwrap();
        assert_same(&followed, &catalog.universe().await.unwrap());
    }
}

fn assert_same(left: &Universe, right: &Universe) {
    assert_eq!(left.change_seq(), right.change_seq());
    assert_eq!(left.tenants().collect::<Vec<_>>(), right.tenants().collect::<Vec<_>>());
    for tenant in right.tenants() {
        let (left, right) = (left.tenant(tenant), right.tenant(tenant));
        assert_eq!(left.iter().collect::<Vec<_>>(), right.iter().collect::<Vec<_>>());
        let always = i64::MIN..=i64::MAX;
        let names = right.metrics(&always);
        assert_eq!(left.metrics(&always), names);
        for name in &names {
            let wanted = Wanted {
                time: 10 * BLOCK_MS..=30 * BLOCK_MS,
                metrics: MetricChoice::Named(name),
                shard: Shard::WHOLE,
            };
            assert_eq!(left.find(&wanted), right.find(&wanted), "{name}");
        }
    }
}

async fn a_reader_that_missed_a_purge_reads_everything(database: &TestDatabase) {
    let store = database.store();
    let catalog = database.open().await;
    catalog.register(&[segment("t", "a"), segment("t", "b")], NOW_MS).await.unwrap();
    let slow =
        CatalogConfig { poll_interval: Duration::from_millis(700), ..CatalogConfig::default() };
    let feed = UniverseFeed::start(&database.open_with(slow).await).await.unwrap();
    let mut reader = feed.reader();
    // Removed and forgotten between two looks: the mark is never seen.
    catalog.remove(&tenant("t"), &[id("a")], NOW_MS).await.unwrap();
    let seen = survey(&catalog, &store).await.unwrap();
    let plan = plan_gc(&seen, GcConfig { grace: Duration::ZERO }, NOW_MS);
    let report = run_gc(&catalog, &store, &plan).await.unwrap();
    assert_eq!(report.segments_forgotten, 1);
    assert_eq!(reader.current().segment_count(), 2, "the purge came before the second look");
    let changed = catalog.register(&[segment("t", "c")], NOW_MS).await.unwrap();
    let universe = reader.seen(changed).await.unwrap();
    assert_eq!(names(universe.tenant(&tenant("t")).iter().map(|s| &**s)), ["b", "c"]);
}

async fn a_database_from_a_backup_is_read_anew(database: &TestDatabase) {
    let catalog = database.open().await;
    catalog.register(&[segment("t", "a")], NOW_MS).await.unwrap();
    catalog.register(&[segment("t", "b")], NOW_MS).await.unwrap();
    let feed = UniverseFeed::start(&database.open_with(impatient()).await).await.unwrap();
    let reader = feed.reader();
    assert_eq!(reader.current().segment_count(), 2);
    let from_backup = "BEGIN; DELETE FROM segments WHERE id = 'b'; \
                       UPDATE catalog_clock SET change_seq = 1; COMMIT";
    database.meddle(from_backup).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if reader.current().change_seq() == 1 {
            break;
        }
    }
    assert_eq!(names(reader.current().tenant(&tenant("t")).iter().map(|s| &**s)), ["a"]);
}

async fn a_feed_ends_with_its_owner(database: &TestDatabase) {
    let catalog = database.open_with(impatient()).await;
    for way in ["drop", "stop"] {
        let feed = UniverseFeed::start(&catalog).await.unwrap();
        let mut reader = feed.reader();
        match way {
            "drop" => drop(feed),
            _ => feed.stop().await,
        }
        let changed = catalog.register(&[segment("t", way)], NOW_MS).await.unwrap();
        let seen = tokio::time::timeout(Duration::from_secs(5), reader.seen(changed)).await;
        assert_eq!(seen.expect("the reader is told").map(|_| ()), None, "{way}");
        // What a query holds stays good.
        reader.current().segment_count();
    }
}

async fn a_universe_in_hand_does_not_change(database: &TestDatabase) {
    let catalog = database.open_with(impatient()).await;
    catalog.register(&[segment("t", "a"), segment("u", "z")], NOW_MS).await.unwrap();
    let feed = UniverseFeed::start(&catalog).await.unwrap();
    let mut reader = feed.reader();
    let before = reader.current();
    let changed = catalog.remove(&tenant("t"), &[id("a")], NOW_MS).await.unwrap();
    let after = reader.seen(changed).await.unwrap();
    assert_eq!((before.segment_count(), after.segment_count()), (2, 1));
    // A tenant that did not change is shared, not built again.
    assert!(Arc::ptr_eq(&before.tenant(&tenant("u")), &after.tenant(&tenant("u"))));
}
