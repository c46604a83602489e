//! What happens when the database is away, hangs, or is held by somebody else: the last universe
//! stays and says how old it is, writers get an error that tells them to come back, and all is well
//! again when the database is.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod support;

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _};
use support::{NOW_MS, TestDatabase, impatient, live, names, segment, tenant};
use tributary_catalog::{Catalog, CatalogConfig, CatalogError, UniverseFeed, UniverseReader};

/// One story after the other on the spare server: each of them stops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_goes_away_comes_back() {
    let Some(database) = TestDatabase::postgres_at("TRIBUTARY_TEST_POSTGRES_SPARE").await else {
        return;
    };
    a_server_is_stopped_and_started(&database).await;
    a_server_hangs_and_goes_on(&database).await;
    a_server_comes_back_with_a_backup(&database).await;
    database.drop().await;
}

async fn a_server_is_stopped_and_started(database: &TestDatabase) {
    let catalog = database.open_with(impatient()).await;
    catalog.register(&[segment("t", "a")], NOW_MS).await.unwrap();
    let feed = UniverseFeed::start(&catalog).await.unwrap();
    let reader = feed.reader();

    control("stop");
    until("the failure is noticed", || reader.freshness().failures >= 3).await;
    let freshness = reader.freshness();
    let told = freshness.last_error.unwrap();
    assert!(told.contains("can't be reached"), "{told}");
    assert_eq!(reader.current().segment_count(), 1, "the last universe stays");
    let error = catalog.register(&[segment("t", "b")], NOW_MS).await.unwrap_err();
    assert!(matches!(error, CatalogError::Away { .. }) && error.is_transient(), "{error:?}");
    assert!(UniverseFeed::start(&catalog).await.is_err(), "no feed begins with an empty universe");
    let older = reader.freshness().age;
    assert!(older >= freshness.age);

    control("start");
    recovers(&catalog, reader, "b").await;
}

async fn a_server_hangs_and_goes_on(database: &TestDatabase) {
    let catalog = database.open_with(impatient()).await;
    let feed = UniverseFeed::start(&catalog).await.unwrap();
    let reader = feed.reader();

    control("freeze");
    until("the silence is noticed", || reader.freshness().failures >= 2).await;
    let told = reader.freshness().last_error.unwrap();
    assert!(told.contains("did not answer within"), "{told}");
    let asked = Instant::now();
    let error = catalog.register(&[segment("t", "c")], NOW_MS).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(asked.elapsed() < Duration::from_secs(5), "a caller waits {:?}", asked.elapsed());
    // A query is answered from memory, at once.
    let asked = Instant::now();
    assert_eq!(reader.current().segment_count(), 2);
    assert!(asked.elapsed() < Duration::from_millis(50));

    control("thaw");
    recovers(&catalog, reader, "c").await;
}

async fn a_server_comes_back_with_a_backup(database: &TestDatabase) {
    let config = CatalogConfig {
        poll_interval: Duration::from_millis(500),
        backoff_max: Duration::from_secs(4),
        ..impatient()
    };
    let catalog = database.open_with(config).await;
    let feed = UniverseFeed::start(&catalog).await.unwrap();
    let reader = feed.reader();
    assert_eq!(reader.current().segment_count(), 3);
    control("stop");
    until("the failure is noticed", || reader.freshness().failures >= 2).await;
    control("start");
    // The same number of changes, but not the same ones: no difference would tell.
    database.meddle("DELETE FROM segments WHERE id = 'b'").await;
    assert!(reader.freshness().failures >= 2, "the backup was there before the next look");
    until("it answers again", || reader.freshness().failures == 0).await;
    assert_eq!(names(reader.current().tenant(&tenant("t")).iter().map(|s| &**s)), ["a", "c"]);
}

/// Registering works again without anybody's help, and the feed sees it within a second of that.
async fn recovers(catalog: &Catalog, mut reader: UniverseReader, name: &str) {
    let begun = Instant::now();
    let changed = loop {
        match catalog.register(&[segment("t", name)], NOW_MS).await {
            Ok(changed) => break changed,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the database is back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let universe = tokio::time::timeout(Duration::from_secs(5), reader.seen(changed)).await;
    println!("back after {:?}", begun.elapsed());
    let universe = universe.expect("seen in time").expect("the feed lives");
    assert!(names(universe.tenant(&tenant("t")).iter().map(|s| &**s)).contains(&name.to_owned()));
    until("nothing is wrong any more", || {
        let freshness = reader.freshness();
        freshness.failures == 0 && freshness.age < Duration::from_secs(1)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_locked_by_another_process_is_busy_for_writers_and_open_for_readers() {
    let database = TestDatabase::sqlite().await;
    let catalog = database.open_with(impatient()).await;
    catalog.register(&[segment("t", "a")], NOW_MS).await.unwrap();
    let feed = UniverseFeed::start(&catalog).await.unwrap();
    let mut holder = LockHolder::start(&database.url);

    let asked = Instant::now();
    let error = catalog.register(&[segment("t", "b")], NOW_MS).await.unwrap_err();
    assert!(matches!(error, CatalogError::Busy { .. }) && error.is_transient(), "{error:?}");
    let waited = asked.elapsed();
    assert!(waited >= Duration::from_millis(250) && waited < Duration::from_secs(5), "{waited:?}");
    // Readers are not held up: neither the feed nor one that opens the catalog only now.
    let asked = Instant::now();
    assert_eq!(live(&database.open_with(impatient()).await, "t").await, ["a"]);
    assert!(asked.elapsed() < Duration::from_millis(250), "{:?}", asked.elapsed());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(feed.reader().freshness().failures, 0);

    // A writer that has the patience gets its turn when the other is done.
    let patient = database.open().await;
    let write = tokio::spawn(async move { patient.register(&[segment("t", "b")], NOW_MS).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    holder.release();
    let changed = write.await.unwrap().unwrap();
    feed.reader().seen(changed).await.unwrap();

    // And one whose holder is killed gets it too: nothing of the dead one's transaction is left.
    let holder = LockHolder::start(&database.url);
    holder.kill();
    catalog.register(&[segment("t", "c")], NOW_MS).await.unwrap();
    assert_eq!(live(&catalog, "t").await, ["a", "b", "c"]);
}

/// The other process: this test again, told to hold the lock until its input ends.
#[tokio::test]
async fn holder_of_the_lock() {
    let Ok(url) = std::env::var("TRIBUTARY_TEST_HOLD_LOCK") else { return };
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
    connection.execute("BEGIN IMMEDIATE").await.unwrap();
    connection.execute("DELETE FROM segments").await.unwrap();
    println!("holding");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    connection.execute("ROLLBACK").await.unwrap();
}

/// The other process, and its output, which it must be able to write to the end.
struct LockHolder {
    process: Child,
    _output: Lines<BufReader<ChildStdout>>,
}

impl LockHolder {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holder_of_the_lock", "--nocapture"])
            .env("TRIBUTARY_TEST_HOLD_LOCK", url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("holding")), "the other process failed");
        Self { process: child, _output: lines }
    }

    fn release(&mut self) {
        self.process.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn control(command: &str) {
    let program = std::env::var("TRIBUTARY_TEST_POSTGRES_SPARE_CTL").unwrap();
    assert!(Command::new(program).arg(command).status().unwrap().success(), "{command}");
}

async fn until(what: &str, mut come_true: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if come_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain until {what}");
}
