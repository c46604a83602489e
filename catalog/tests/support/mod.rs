//! What the suites share: a fresh catalog on either database, and segments to put into it.
#![allow(dead_code, reason = "every suite uses a part of it")]

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tempfile::TempDir;
use tributary_catalog::{
    Block, Catalog, CatalogConfig, CatalogUrl, MetricNames, NewSegment, ObjectPath, Segment,
    SegmentId, Shard, Store, StoredFile,
};

/// The wall clock of the stories: some day in 2023.
pub const NOW_MS: i64 = 1_700_000_000_000;

/// The length of a block.
pub const BLOCK_MS: i64 = 7_200_000;

/// A database of its own for one test.
pub struct TestDatabase {
    pub url: String,
    pub dir: TempDir,
    admin: Option<(String, String)>,
}

impl TestDatabase {
    pub async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("catalog.db").display());
        Self { url, dir, admin: None }
    }

    /// None, and a line that says so, if there is no server to test with.
    pub async fn postgres() -> Option<Self> {
        Self::postgres_at("TRIBUTARY_TEST_POSTGRES").await
    }

    pub async fn postgres_at(variable: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = require(variable)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tributary_test_{}_{number}", std::process::id());
        execute(&server, &format!("CREATE DATABASE {name}")).await;
        let url = server.replacen("/postgres?", &format!("/{name}?"), 1);
        assert_ne!(url, server, "{variable} must name the database postgres and some option");
        let dir = tempfile::tempdir().unwrap();
        Some(Self { url, dir, admin: Some((server, name)) })
    }

    pub async fn open(&self) -> Catalog {
        self.open_with(CatalogConfig::default()).await
    }

    pub async fn open_with(&self, config: CatalogConfig) -> Catalog {
        Catalog::open(self.catalog_url(), config).await.unwrap()
    }

    pub fn catalog_url(&self) -> CatalogUrl {
        self.url.parse().unwrap()
    }

    /// A store beside the catalog.
    pub fn store(&self) -> Store {
        let folder = self.dir.path().join("store");
        std::fs::create_dir_all(&folder).unwrap();
        Store::in_folder(&folder).unwrap()
    }

    /// Says something to the database behind the catalog's back.
    pub async fn meddle(&self, statement: &str) {
        execute(&self.url, statement).await;
    }

    pub async fn drop(self) {
        if let Some((server, name)) = self.admin {
            execute(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

/// The value of a variable, or a line that says what is left out without it.
pub fn require(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok();
    if value.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Straight to the terminal, in one piece: what a passing test prints the usual way is not
        // shown.
        let line = format!("\nSKIPPED {test}: {variable} is not set\n");
        _ = std::io::stderr().write_all(line.as_bytes());
    }
    value
}

async fn execute(url: &str, statement: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))).await.unwrap();
    connection.close().await.unwrap();
}

/// Makes each story a test on SQLite, and one on PostgreSQL where there is a server.
#[macro_export]
macro_rules! on_both_databases {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let database = $crate::support::TestDatabase::sqlite().await;
                super::$story(&database).await;
                database.drop().await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let Some(database) = $crate::support::TestDatabase::postgres().await else {
                    return;
                };
                super::$story(&database).await;
                database.drop().await;
            })*
        }
    };
}

pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub fn id(name: &str) -> SegmentId {
    SegmentId::new(name).unwrap()
}

/// A segment of the first block with the metric `up`, at the place it belongs to.
pub fn segment(owner: &str, name: &str) -> NewSegment {
    let (series, samples) = ObjectPath::of_segment(&tenant(owner), "upload-1", &id(name)).unwrap();
    let file = |path: ObjectPath| StoredFile {
        checksum: Checksum(Sha256::digest(path.as_str()).into()),
        size_bytes: path.as_str().len() as u64,
        path,
    };
    NewSegment {
        segment: Segment {
            id: id(name),
            tenant: tenant(owner),
            block: Block { start_ms: 0, end_ms: BLOCK_MS },
            min_ts: 0,
            max_ts: BLOCK_MS - 1,
            shard: Shard::WHOLE,
            series_file: file(series),
            samples_file: file(samples),
            series_count: 10,
            sample_count: 1_000,
            written_ms: NOW_MS,
            sequence: 0,
        },
        metrics: metrics(&["up"]),
    }
}

pub fn metrics(names: &[&str]) -> MetricNames {
    MetricNames::new(names).unwrap()
}

/// The segment's block is the one with this number.
pub fn in_block(mut new: NewSegment, number: i64) -> NewSegment {
    let start_ms = number * BLOCK_MS;
    new.segment.block = Block { start_ms, end_ms: start_ms + BLOCK_MS };
    (new.segment.min_ts, new.segment.max_ts) = (start_ms, start_ms + BLOCK_MS - 1);
    new
}

pub fn in_shard(mut new: NewSegment, index: u32, count: u32) -> NewSegment {
    new.segment.shard = Shard { index, count };
    new
}

pub fn with_metrics(mut new: NewSegment, names: &[&str]) -> NewSegment {
    new.metrics = metrics(names);
    new
}

/// Puts two files into the store where the segment says they are, with that size.
pub async fn put_files(store: &Store, new: &NewSegment) {
    for file in [&new.segment.series_file, &new.segment.samples_file] {
        let bytes = file.path.as_str().as_bytes().to_vec();
        assert_eq!(store.put(&file.path, bytes.into()).await.unwrap(), *file);
    }
}

/// The names of all live segments of a tenant, sorted.
pub async fn live(catalog: &Catalog, owner: &str) -> Vec<String> {
    names(catalog.universe().await.unwrap().tenant(&tenant(owner)).iter().map(|s| &**s))
}

pub fn names<'a>(segments: impl Iterator<Item = &'a Segment>) -> Vec<String> {
    let mut names: Vec<String> = segments.map(|segment| segment.id.to_string()).collect();
    names.sort();
    names
}

/// Knobs for tests in which nobody should wait long.
pub fn impatient() -> CatalogConfig {
    CatalogConfig {
        poll_interval: Duration::from_millis(20),
        poll_timeout: Duration::from_millis(500),
        lock_timeout: Duration::from_millis(300),
        operation_timeout: Duration::from_secs(20),
        backoff_max: Duration::from_millis(200),
    }
}

/// A small generator for stories with chance in them; the seed is printed by whoever fails.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}
