//! The catalog's promises, each on SQLite and on PostgreSQL: changes are atomic, may be repeated,
//! keep tenants apart and keep the order of age.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod support;

use std::time::Duration;

use support::{
    BLOCK_MS, NOW_MS, TestDatabase, id, in_block, in_shard, live, names, segment, tenant,
    with_metrics,
};
use tributary_catalog::{
    Catalog, CatalogConfig, CatalogError, MetricChoice, Segment, Shard, Universe, Wanted,
};

on_both_databases!(
    what_is_registered_reads_back_as_it_was,
    a_segment_is_found_by_metric_time_and_shard,
    a_batch_is_registered_as_a_whole_or_not_at_all,
    registering_twice_registers_once,
    a_name_with_other_content_is_a_conflict,
    a_removed_segment_is_gone_for_readers_and_does_not_come_back,
    tenants_do_not_see_each_other,
    a_compaction_takes_the_place_of_its_input_and_its_age,
    a_compaction_may_not_leave_out_a_segment_in_the_middle,
    a_compaction_of_what_was_removed_meanwhile_is_refused,
    files_that_waited_too_long_are_not_registered,
    many_nodes_may_open_a_new_catalog_at_once,
    a_newer_schema_is_refused,
    a_damaged_row_is_named,
    writers_at_once_lose_nothing,
    a_big_batch_goes_in_and_comes_out,
);

async fn what_is_registered_reads_back_as_it_was(database: &TestDatabase) {
    let catalog = database.open().await;
    let odd_names =
        ["", "up", "métrique \u{1f30a}", "with\nnewline", "nul\0inside", "'; DROP TABLE--"];
    let mut new = with_metrics(segment("t-1.x:[y]", "s-1_x"), &odd_names);
    new.segment.block.start_ms = i64::MIN;
    new.segment.block.end_ms = i64::MAX;
    new.segment.min_ts = i64::MIN;
    new.segment.max_ts = i64::MAX - 1;
    new.segment.shard = Shard { index: 65_535, count: 65_536 };
    new.segment.sample_count = u64::try_from(i64::MAX).unwrap();
    catalog.register(std::slice::from_ref(&new), NOW_MS).await.unwrap();

    let found = catalog.details(&new.segment.tenant, &new.segment.id).await.unwrap().unwrap();
    assert_eq!(found.segment, Segment { sequence: 1, ..new.segment.clone() });
    assert_eq!(found.metrics, new.metrics);
    assert_eq!(found.removed_ms, None);
    let universe = catalog.universe().await.unwrap();
    let tenant = universe.tenant(&new.segment.tenant);
    assert_eq!(tenant.iter().map(|s| (**s).clone()).collect::<Vec<_>>(), [found.segment]);
    let names = tenant.metrics(&(0..=0));
    assert_eq!(
        names.iter().map(|n| &**n).collect::<Vec<_>>(),
        new.metrics.iter().collect::<Vec<_>>()
    );
    assert_eq!(catalog.details(&new.segment.tenant, &id("other")).await.unwrap(), None);
}

async fn a_segment_is_found_by_metric_time_and_shard(database: &TestDatabase) {
    let catalog = database.open().await;
    let batch = [
        with_metrics(in_shard(segment("t", "early-0"), 0, 2), &["cpu", "up"]),
        with_metrics(in_shard(segment("t", "early-1"), 1, 2), &["mem", "up"]),
        with_metrics(in_block(segment("t", "late"), 5), &["cpu", "disk"]),
    ];
    catalog.register(&batch, NOW_MS).await.unwrap();
    let universe = catalog.universe().await.unwrap();
    let found = |metrics, time, shard| {
        let segments = universe.tenant(&tenant("t")).find(&Wanted { time, metrics, shard });
        names(segments.iter().map(|s| &**s))
    };
    let always = || i64::MIN..=i64::MAX;
    let named = MetricChoice::Named;
    assert_eq!(found(MetricChoice::All, always(), Shard::WHOLE), ["early-0", "early-1", "late"]);
    assert_eq!(found(named("cpu"), always(), Shard::WHOLE), ["early-0", "late"]);
    assert_eq!(found(named("up"), always(), Shard { index: 1, count: 2 }), ["early-1"]);
    assert_eq!(found(named("up"), always(), Shard { index: 3, count: 4 }), ["early-1"]);
    assert_eq!(found(named("cpu"), 0..=BLOCK_MS * 5 - 1, Shard::WHOLE), ["early-0"]);
    assert_eq!(found(named("cpu"), BLOCK_MS - 1..=BLOCK_MS * 5, Shard::WHOLE), ["early-0", "late"]);
    assert!(found(named("cpu"), BLOCK_MS..=BLOCK_MS * 5 - 1, Shard::WHOLE).is_empty());
    assert!(found(named("cp"), always(), Shard::WHOLE).is_empty());
    let vowel_at_end = |name: &str| name.ends_with('u');
    assert_eq!(
        found(MetricChoice::Passing(&vowel_at_end), always(), Shard::WHOLE),
        ["early-0", "late"]
    );
    let metrics = |time| {
        let names = universe.tenant(&tenant("t")).metrics(&time);
        names.iter().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(metrics(0..=0), ["cpu", "mem", "up"]);
    assert_eq!(metrics(BLOCK_MS * 5..=BLOCK_MS * 9), ["cpu", "disk"]);
}

async fn a_batch_is_registered_as_a_whole_or_not_at_all(database: &TestDatabase) {
    let catalog = database.open().await;
    catalog.register(&[segment("t", "a")], NOW_MS).await.unwrap();
    let mut wrong = segment("t", "c");
    wrong.segment.max_ts = BLOCK_MS;
    for last in [wrong, in_block(segment("t", "a"), 3)] {
        let batch = [segment("t", "b"), last];
        let error = catalog.register(&batch, NOW_MS).await.unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert_eq!(live(&catalog, "t").await, ["a"]);
    }
    let changed = catalog.register(&[segment("t", "b"), segment("t", "c")], NOW_MS).await.unwrap();
    assert_eq!((changed.change_seq, changed.added, changed.retired), (2, 2, 0));
    assert_eq!(live(&catalog, "t").await, ["a", "b", "c"]);
}

async fn registering_twice_registers_once(database: &TestDatabase) {
    let catalog = database.open().await;
    let mut batch = vec![segment("t", "a"), segment("t", "b")];
    let first = catalog.register(&batch, NOW_MS).await.unwrap();
    // The same data, written again at another place by an import that was started over.
    for new in &mut batch {
        let series = new.segment.series_file.path.as_str().replace("upload-1", "upload-2");
        new.segment.series_file.path = tributary_catalog::ObjectPath::parse(&series).unwrap();
        new.segment.written_ms += 1;
    }
    let again = catalog.register(&batch, NOW_MS).await.unwrap();
    assert_eq!((again.added, again.change_seq), (0, first.change_seq));
    batch.push(segment("t", "c"));
    let more = catalog.register(&batch, NOW_MS).await.unwrap();
    assert_eq!((more.added, more.change_seq), (1, first.change_seq + 1));
    let universe = catalog.universe().await.unwrap();
    let tenant = universe.tenant(&tenant("t"));
    assert!(tenant.iter().all(|s| s.series_file.path.as_str().contains("upload-1")));
    assert_eq!(ages(&universe), [("a", 1), ("b", 2), ("c", 3)].map(|(n, a)| (n.to_owned(), a)));
    let nothing = catalog.register(&[], NOW_MS).await.unwrap();
    assert_eq!((nothing.added, nothing.change_seq), (0, more.change_seq));
}

async fn a_name_with_other_content_is_a_conflict(database: &TestDatabase) {
    let catalog = database.open().await;
    catalog.register(&[segment("t", "a")], NOW_MS).await.unwrap();
    let mut other = segment("t", "a");
    other.segment.samples_file.checksum.0[0] ^= 1;
    let stranger = segment("other-tenant", "a");
    for batch in [vec![other], vec![stranger], vec![segment("t", "b"), segment("t", "b")]] {
        let error = catalog.register(&batch, NOW_MS).await.unwrap_err();
        assert!(matches!(error, CatalogError::Conflict { .. }), "{error}");
    }
    let mut misnamed = segment("t", "c");
    misnamed.segment.samples_file.path = segment("t", "a").segment.samples_file.path;
    let error = catalog.register(&[misnamed], NOW_MS).await.unwrap_err();
    assert!(matches!(error, CatalogError::BadSegment { .. }), "{error}");
}

async fn a_removed_segment_is_gone_for_readers_and_does_not_come_back(database: &TestDatabase) {
    let catalog = database.open().await;
    let batch = ["a", "b", "c"].map(|name| segment("t", name));
    catalog.register(&batch, NOW_MS).await.unwrap();
    let error = catalog.remove(&tenant("t"), &[id("a"), id("x")], NOW_MS).await.unwrap_err();
    assert!(matches!(&error, CatalogError::Unknown { segment } if *segment == id("x")), "{error}");
    assert_eq!(live(&catalog, "t").await, ["a", "b", "c"]);

    let removed = catalog.remove(&tenant("t"), &[id("a"), id("b")], NOW_MS + 5).await.unwrap();
    assert_eq!(removed.retired, 2);
    assert_eq!(live(&catalog, "t").await, ["c"]);
    let again = catalog.remove(&tenant("t"), &[id("a"), id("b")], NOW_MS + 9).await.unwrap();
    assert_eq!((again.retired, again.change_seq), (0, removed.change_seq));
    let details = catalog.details(&tenant("t"), &id("a")).await.unwrap().unwrap();
    assert_eq!(details.removed_ms, Some(NOW_MS + 5));
    let error = catalog.register(&batch, NOW_MS).await.unwrap_err();
    assert!(matches!(error, CatalogError::Retired { .. }), "{error}");
    assert_eq!(catalog.entries().await.unwrap().len(), 3);
}

async fn tenants_do_not_see_each_other(database: &TestDatabase) {
    let catalog = database.open().await;
    let batch = [segment("one", "a"), segment("two", "b"), segment("One", "c")];
    catalog.register(&batch, NOW_MS).await.unwrap();
    assert_eq!(live(&catalog, "one").await, ["a"]);
    assert_eq!(live(&catalog, "two").await, ["b"]);
    assert_eq!(live(&catalog, "on").await, [""; 0]);
    assert_eq!(catalog.universe().await.unwrap().tenants().len(), 3);
    assert_eq!(catalog.details(&tenant("two"), &id("a")).await.unwrap(), None);
    for error in [
        catalog.remove(&tenant("two"), &[id("a")], NOW_MS).await.unwrap_err(),
        catalog.replace(&tenant("two"), &[], &[id("b"), id("a")], NOW_MS).await.unwrap_err(),
    ] {
        assert!(matches!(error, CatalogError::Unknown { .. }), "{error}");
    }
    let smuggled = [segment("one", "d")];
    let error = catalog.replace(&tenant("two"), &smuggled, &[id("b")], NOW_MS).await.unwrap_err();
    assert!(matches!(error, CatalogError::BadSegment { .. }), "{error}");
    assert_eq!(live(&catalog, "two").await, ["b"]);
}

async fn a_compaction_takes_the_place_of_its_input_and_its_age(database: &TestDatabase) {
    let catalog = database.open().await;
    let t = tenant("t");
    catalog.register(&[segment("t", "a"), segment("t", "b")], NOW_MS).await.unwrap();
    // Late samples arrive while the compaction is under way.
    catalog.register(&[segment("t", "late")], NOW_MS).await.unwrap();
    let output = [segment("t", "ab")];
    let input = [id("a"), id("b")];
    let changed = catalog.replace(&t, &output, &input, NOW_MS).await.unwrap();
    assert_eq!((changed.added, changed.retired), (1, 2));
    let universe = catalog.universe().await.unwrap();
    assert_eq!(ages(&universe), [("ab".to_owned(), 2), ("late".to_owned(), 3)]);

    let again = catalog.replace(&t, &output, &input, NOW_MS).await.unwrap();
    assert_eq!((again.added, again.retired, again.change_seq), (0, 0, changed.change_seq));
    catalog.register(&[segment("t", "next")], NOW_MS).await.unwrap();
    assert_eq!(ages(&catalog.universe().await.unwrap())[2], ("next".to_owned(), 4));
}

async fn a_compaction_may_not_leave_out_a_segment_in_the_middle(database: &TestDatabase) {
    let catalog = database.open().await;
    let t = tenant("t");
    let batch = [
        in_shard(segment("t", "old"), 0, 2),
        in_shard(segment("t", "other-shard"), 1, 2),
        in_block(segment("t", "other-block"), 1),
        in_shard(segment("t", "middle"), 2, 4),
        in_shard(segment("t", "new"), 0, 2),
    ];
    catalog.register(&batch, NOW_MS).await.unwrap();
    let output = [in_shard(segment("t", "old-new"), 0, 2)];
    let error = catalog.replace(&t, &output, &[id("old"), id("new")], NOW_MS).await.unwrap_err();
    assert!(
        matches!(&error, CatalogError::LeftOut { segment } if *segment == id("middle")),
        "{error}"
    );
    assert_eq!(live(&catalog, "t").await.len(), 5);
    let all = [id("old"), id("middle"), id("new")];
    catalog.replace(&t, &output, &all, NOW_MS).await.unwrap();
    assert_eq!(live(&catalog, "t").await, ["old-new", "other-block", "other-shard"]);
}

async fn a_compaction_of_what_was_removed_meanwhile_is_refused(database: &TestDatabase) {
    let catalog = database.open().await;
    let t = tenant("t");
    catalog.register(&[segment("t", "a"), segment("t", "b")], NOW_MS).await.unwrap();
    catalog.remove(&t, &[id("a")], NOW_MS).await.unwrap();
    let output = [segment("t", "ab")];
    let error = catalog.replace(&t, &output, &[id("a"), id("b")], NOW_MS).await.unwrap_err();
    assert!(matches!(&error, CatalogError::Retired { segment } if *segment == id("a")), "{error}");
    assert_eq!(live(&catalog, "t").await, ["b"]);
}

async fn files_that_waited_too_long_are_not_registered(database: &TestDatabase) {
    let catalog = database.open().await;
    let window_ms =
        i64::try_from(tributary_catalog::store::REGISTRATION_WINDOW.as_millis()).unwrap();
    let batch = [segment("t", "a")];
    let error = catalog.register(&batch, NOW_MS + window_ms + 1).await.unwrap_err();
    assert!(matches!(error, CatalogError::TooLate { .. }), "{error}");
    assert!(catalog.register(&batch, NOW_MS + window_ms).await.is_ok());
}

async fn many_nodes_may_open_a_new_catalog_at_once(database: &TestDatabase) {
    let nodes: Vec<_> = (0..8)
        .map(|_| tokio::spawn(Catalog::open(database.catalog_url(), CatalogConfig::default())))
        .collect();
    for (number, node) in nodes.into_iter().enumerate() {
        let catalog = node.await.unwrap().unwrap();
        catalog.register(&[segment("t", &format!("s{number}"))], NOW_MS).await.unwrap();
    }
    assert_eq!(live(&database.open().await, "t").await.len(), 8);
}

async fn a_newer_schema_is_refused(database: &TestDatabase) {
    database.open().await;
    database.meddle("UPDATE catalog_schema SET version = 99").await;
    let error = Catalog::open(database.catalog_url(), CatalogConfig::default()).await.unwrap_err();
    assert!(matches!(error, CatalogError::NewerSchema { found: 99, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("schema version 99"), "{error}");
    assert!(!error.is_transient());
}

async fn a_damaged_row_is_named(database: &TestDatabase) {
    let catalog = database.open().await;
    for (damage, repair) in [
        ("UPDATE segments SET series_path = '../../etc/passwd' WHERE id = 'b'", "series_path"),
        ("UPDATE segments SET samples_sha256 = 'x' WHERE id = 'b'", "samples_sha256"),
        ("UPDATE segments SET shard_index = -1 WHERE id = 'b'", "shard_index"),
        ("UPDATE segments SET max_ts = block_end_ms WHERE id = 'b'", "max_ts"),
    ] {
        catalog.register(&[segment("t", "a"), segment("t", "b")], NOW_MS).await.unwrap();
        database.meddle(damage).await;
        let error = catalog.universe().await.err().unwrap();
        assert!(matches!(error, CatalogError::Corrupt { .. }), "{repair}: {error}");
        assert!(error.to_string().contains("segment \"b\""), "{error}");
        database.meddle("DELETE FROM segments").await;
    }
    catalog.register(&[segment("t", "a")], NOW_MS).await.unwrap();
    database
        .meddle(
            "UPDATE metric_sets SET names = CAST('x' AS {BYTES})"
                .replace(
                    "{BYTES}",
                    if database.url.starts_with("sqlite") { "BLOB" } else { "BYTEA" },
                )
                .as_str(),
        )
        .await;
    let error = catalog.universe().await.err().unwrap();
    assert!(error.to_string().contains("metric set"), "{error}");
}

async fn writers_at_once_lose_nothing(database: &TestDatabase) {
    const WRITERS: usize = 4;
    const BATCHES: usize = 10;
    const SIZE: usize = 5;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let url = database.catalog_url();
            let config =
                CatalogConfig { lock_timeout: Duration::from_secs(30), ..CatalogConfig::default() };
            tokio::spawn(async move {
                let catalog = Catalog::open(url, config).await.unwrap();
                for batch in 0..BATCHES {
                    let segments: Vec<_> = (0..SIZE)
                        .map(|n| segment("t", &format!("w{writer}-b{batch}-{n}")))
                        .collect();
                    catalog.register(&segments, NOW_MS).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let universe = database.open().await.universe().await.unwrap();
    assert_eq!(universe.change_seq(), (WRITERS * BATCHES) as u64);
    let mut ages: Vec<u64> = ages(&universe).into_iter().map(|(_, age)| age).collect();
    ages.sort_unstable();
    assert_eq!(ages, (1..=(WRITERS * BATCHES * SIZE) as u64).collect::<Vec<_>>());
}

async fn a_big_batch_goes_in_and_comes_out(database: &TestDatabase) {
    let catalog = database.open().await;
    let batch: Vec<_> = (0..1_234)
        .map(|n| {
            with_metrics(
                in_block(segment("t", &format!("s{n}")), n),
                &["up", &format!("m{}", n % 7)],
            )
        })
        .collect();
    catalog.register(&batch, NOW_MS).await.unwrap();
    assert_eq!(catalog.register(&batch, NOW_MS).await.unwrap().added, 0);
    let ids: Vec<_> = batch.iter().map(|new| new.segment.id.clone()).collect();
    let universe = catalog.universe().await.unwrap();
    let wanted = Wanted {
        time: BLOCK_MS * 100..=BLOCK_MS * 199 + 5,
        metrics: MetricChoice::Named("m3"),
        shard: Shard::WHOLE,
    };
    let found = universe.tenant(&tenant("t")).find(&wanted);
    assert_eq!(found.len(), (100..200).filter(|n| n % 7 == 3).count());
    assert_eq!(catalog.remove(&tenant("t"), &ids, NOW_MS).await.unwrap().retired, 1_234);
    assert_eq!(catalog.universe().await.unwrap().tenants().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    // Nothing listens on port 1 of this machine.
    let url = "postgres://me:hunter2@127.0.0.1:1/segments?password=hunter2";
    let error = Catalog::open(url.parse().unwrap(), CatalogConfig::default()).await.unwrap_err();
    assert!(matches!(error, CatalogError::Away { .. }) && error.is_transient(), "{error}");
    let mut printed = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        printed += &format!(" {next} {next:?}");
        cause = next.source();
    }
    assert!(printed.contains("postgres://127.0.0.1:1/segments"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

/// The names of tenant `t`'s segments with their ages, by name.
fn ages(universe: &Universe) -> Vec<(String, u64)> {
    let tenant = universe.tenant(&tenant("t"));
    let mut ages: Vec<_> = tenant.iter().map(|s| (s.id.to_string(), s.sequence)).collect();
    ages.sort();
    ages
}
