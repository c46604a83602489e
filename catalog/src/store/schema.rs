//! The tables, their versions, and how an older catalog becomes a current one. One text for both
//! databases; only the type of a column of bytes has two names.

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};

use crate::catalog_url::CatalogUrl;
use crate::error::CatalogError;
use crate::store::link::Trouble;

/// Every version's statements, the first version first. What has been released is never edited:
/// a change is a new entry at the end.
const VERSIONS: &[&[&str]] = &[&[
    // One row. `change_seq` counts committed changes: a writer takes the next number first of all
    // and so holds the row until it commits, which is why numbers become visible in their order.
    // `purged_seq` is the newest change of which a purge has removed the trace.
    "CREATE TABLE catalog_clock (
        only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
        change_seq BIGINT NOT NULL,
        segment_seq BIGINT NOT NULL,
        purged_seq BIGINT NOT NULL
    )",
    "INSERT INTO catalog_clock (only_row, change_seq, segment_seq, purged_seq) VALUES (1, 0, 0, 0)",
    // Most segments of a tenant have the same metrics: a list is kept once, by its SHA-256.
    "CREATE TABLE metric_sets (
        digest TEXT PRIMARY KEY,
        names {BYTES} NOT NULL
    )",
    "CREATE TABLE segments (
        id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        block_start_ms BIGINT NOT NULL,
        block_end_ms BIGINT NOT NULL,
        min_ts BIGINT NOT NULL,
        max_ts BIGINT NOT NULL,
        shard_index BIGINT NOT NULL,
        shard_count BIGINT NOT NULL,
        series_path TEXT NOT NULL,
        series_bytes BIGINT NOT NULL,
        series_sha256 TEXT NOT NULL,
        samples_path TEXT NOT NULL,
        samples_bytes BIGINT NOT NULL,
        samples_sha256 TEXT NOT NULL,
        series_count BIGINT NOT NULL,
        sample_count BIGINT NOT NULL,
        written_ms BIGINT NOT NULL,
        sequence BIGINT NOT NULL,
        metric_set TEXT NOT NULL REFERENCES metric_sets (digest),
        change_seq BIGINT NOT NULL,
        removed_ms BIGINT
    )",
    "CREATE INDEX segments_by_change ON segments (change_seq)",
    "CREATE INDEX segments_by_tenant_time ON segments (tenant, min_ts)",
    "CREATE INDEX segments_by_metric_set ON segments (metric_set)",
]];

/// The version this release writes.
pub(crate) fn known_version() -> i64 {
    i64::try_from(VERSIONS.len()).expect("versions are few")
}

/// Brings the database to the version of this release, or refuses one that is ahead of it.
pub(crate) async fn prepare(
    connection: &mut AnyConnection,
    url: &CatalogUrl,
) -> Result<(), Trouble> {
    // The usual case takes no lock.
    if check(found_version(connection, url).await?, url)? == known_version() {
        return Ok(());
    }
    let dialect = url.dialect();
    let mut change = connection.begin_with(dialect.begin_write()).await?;
    if let Some(lock) = dialect.schema_lock() {
        change.execute(lock).await?;
    }
    // Another node may have been faster.
    let found = check(found_version(&mut change, url).await?, url)?;
    if found == 0 {
        change.execute("CREATE TABLE catalog_schema (version BIGINT NOT NULL)").await?;
        change.execute("INSERT INTO catalog_schema (version) VALUES (0)").await?;
    }
    let done = usize::try_from(found).unwrap_or_default();
    for version in &VERSIONS[done..] {
        for statement in *version {
            let statement = statement.replace("{BYTES}", dialect.bytes_type());
            change.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await?;
        }
    }
    sqlx::query("UPDATE catalog_schema SET version = $1")
        .bind(known_version())
        .execute(&mut *change)
        .await?;
    change.commit().await?;
    Ok(())
}

async fn found_version(connection: &mut AnyConnection, url: &CatalogUrl) -> Result<i64, Trouble> {
    let tables: i64 =
        sqlx::query_scalar(url.dialect().has_schema()).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(0);
    }
    Ok(sqlx::query_scalar("SELECT version FROM catalog_schema").fetch_one(connection).await?)
}

fn check(found: i64, url: &CatalogUrl) -> Result<i64, CatalogError> {
    let known = known_version();
    if found > known {
        return Err(CatalogError::NewerSchema { catalog: url.to_string(), found, known });
    }
    if found < 0 {
        return Err(CatalogError::Corrupt {
            what: "schema version".to_owned(),
            reason: format!("{found} is less than zero"),
        });
    }
    Ok(found)
}
