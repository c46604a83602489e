//! Questions to the catalog's database, and its rows turned back into segments. Nothing is
//! believed: a row this crate can't have written is an error that names it.

use std::collections::{BTreeMap, BTreeSet};

use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _};
use tokio_stream::StreamExt as _;

use crate::catalog_url::Dialect;
use crate::error::CatalogError;
use crate::metric_names::MetricNames;
use crate::object_path::ObjectPath;
use crate::segment_row::{Block, Segment, SegmentId, Shard, StoredFile};
use crate::store::link::Trouble;

/// Ids in one statement. Both databases take far more.
pub(crate) const IDS_A_STATEMENT: usize = 500;

/// The columns of a segment, in the order they are read and written.
pub(crate) const COLUMNS: &str = "id, tenant, block_start_ms, block_end_ms, min_ts, max_ts, \
     shard_index, shard_count, series_path, series_bytes, series_sha256, samples_path, \
     samples_bytes, samples_sha256, series_count, sample_count, written_ms, sequence, metric_set";

/// A segment's row.
pub(crate) struct Row {
    pub segment: Segment,
    /// Digest of its metric names.
    pub metric_set: String,
    /// When it was marked as removed, if it was.
    pub removed_ms: Option<i64>,
}

/// What changed since a reader last looked.
pub(crate) struct Changes {
    /// The state this leads to.
    pub change_seq: i64,
    /// It is everything there is, not a difference.
    pub whole: bool,
    /// Rows that are new or removed since; of the whole, the live ones.
    pub rows: Vec<Row>,
    /// Every list of metric names that live rows of these need, by digest. As stored: most readers
    /// know most of them already.
    pub sets: BTreeMap<String, Vec<u8>>,
}

/// The number of the last committed change.
pub(crate) async fn change_seq(connection: &mut AnyConnection) -> Result<i64, Trouble> {
    let seq = sqlx::query_scalar("SELECT change_seq FROM catalog_clock").fetch_one(connection);
    Ok(seq.await?)
}

/// Everything that changed after `known`, or everything if that can't be told any more. One
/// transaction sees one state, so what was committed together is read together.
pub(crate) async fn changes(
    connection: &mut AnyConnection,
    dialect: Dialect,
    known: Option<i64>,
) -> Result<Changes, Trouble> {
    let mut state = connection.begin_with(dialect.begin_snapshot()).await?;
    let clock = sqlx::query("SELECT change_seq, purged_seq FROM catalog_clock")
        .fetch_one(&mut *state)
        .await?;
    let (change_seq, purged_seq): (i64, i64) = (clock.try_get(0)?, clock.try_get(1)?);
    // A number from the future is one of another life of this database: it came from a backup.
    let base = known.filter(|known| (purged_seq..=change_seq).contains(known));
    let which = match base {
        Some(_) => "change_seq > $1",
        None => "change_seq > $1 AND removed_ms IS NULL",
    };
    let since = base.unwrap_or(-1);
    let text = format!("SELECT {COLUMNS}, removed_ms FROM segments WHERE {which}");
    let mut rows = Vec::new();
    let query = sqlx::query(AssertSqlSafe(text)).bind(since);
    let mut found = query.fetch(&mut *state);
    while let Some(row) = found.next().await {
        rows.push(read_row(&row?)?);
    }
    drop(found);
    let mut sets = BTreeMap::new();
    let query = sqlx::query(
        "SELECT digest, names FROM metric_sets WHERE digest IN \
         (SELECT metric_set FROM segments WHERE change_seq > $1 AND removed_ms IS NULL)",
    )
    .bind(since);
    let mut found = query.fetch(&mut *state);
    while let Some(row) = found.next().await {
        let row = row?;
        sets.insert(row.try_get(0)?, row.try_get(1)?);
    }
    drop(found);
    state.commit().await?;
    Ok(Changes { change_seq, whole: base.is_none(), rows, sets })
}

/// The rows of these segments, removed ones included; unknown names have none.
pub(crate) async fn rows_of(
    connection: &mut AnyConnection,
    ids: impl IntoIterator<Item = &SegmentId>,
) -> Result<Vec<Row>, Trouble> {
    let ids: Vec<&SegmentId> = ids.into_iter().collect();
    let mut rows = Vec::new();
    for ids in ids.chunks(IDS_A_STATEMENT) {
        let text = format!(
            "SELECT {COLUMNS}, removed_ms FROM segments WHERE id IN ({})",
            placeholders(1, ids.len())
        );
        let mut query = sqlx::query(AssertSqlSafe(text));
        for id in ids {
            query = query.bind(id.as_str());
        }
        for row in query.fetch_all(&mut *connection).await? {
            rows.push(read_row(&row)?);
        }
    }
    Ok(rows)
}

/// Every row, removed ones included.
pub(crate) async fn all_rows(connection: &mut AnyConnection) -> Result<Vec<Row>, Trouble> {
    let text = format!("SELECT {COLUMNS}, removed_ms FROM segments");
    let mut rows = Vec::new();
    let mut found = sqlx::query(AssertSqlSafe(text)).fetch(connection);
    while let Some(row) = found.next().await {
        rows.push(read_row(&row?)?);
    }
    Ok(rows)
}

/// The names of the metrics in a live or removed segment.
pub(crate) async fn metric_names(
    connection: &mut AnyConnection,
    digest: &str,
) -> Result<MetricNames, Trouble> {
    let names: Vec<u8> = sqlx::query_scalar("SELECT names FROM metric_sets WHERE digest = $1")
        .bind(digest)
        .fetch_one(connection)
        .await?;
    Ok(unpack(&names, digest)?)
}

/// A stored list of metric names.
pub(crate) fn unpack(bytes: &[u8], digest: &str) -> Result<MetricNames, CatalogError> {
    MetricNames::decode(bytes, digest).map_err(|error| CatalogError::Corrupt {
        what: format!("metric set {digest}"),
        reason: error.to_string(),
    })
}

/// The live segments of the tenant in a span of time that are newer than `oldest`, up to `newest`.
pub(crate) async fn newer_than(
    connection: &mut AnyConnection,
    tenant: &TenantId,
    (min_ts, max_ts): (i64, i64),
    (oldest, newest): (i64, i64),
) -> Result<Vec<Segment>, Trouble> {
    let text = format!(
        "SELECT {COLUMNS}, removed_ms FROM segments WHERE tenant = $1 AND removed_ms IS NULL \
         AND min_ts <= $3 AND max_ts >= $2 AND sequence > $4 AND sequence <= $5"
    );
    let query = sqlx::query(AssertSqlSafe(text))
        .bind(tenant.as_str())
        .bind(min_ts)
        .bind(max_ts)
        .bind(oldest)
        .bind(newest);
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(|row| Ok(read_row(row)?.segment)).collect()
}

/// `$4, $5, $6` for `(4, 3)`.
pub(crate) fn placeholders(first: usize, count: usize) -> String {
    let numbers: Vec<String> = (first..first + count).map(|n| format!("${n}")).collect();
    numbers.join(", ")
}

/// Names that no row has, out of those the paths would belong to.
pub(crate) async fn unnamed(
    connection: &mut AnyConnection,
    paths: &[ObjectPath],
) -> Result<Vec<ObjectPath>, Trouble> {
    let owners: BTreeSet<SegmentId> = paths.iter().filter_map(ObjectPath::segment).collect();
    let named: BTreeSet<ObjectPath> = rows_of(connection, &owners)
        .await?
        .into_iter()
        .flat_map(|row| [row.segment.series_file.path, row.segment.samples_file.path])
        .collect();
    Ok(paths.iter().filter(|path| !named.contains(path)).cloned().collect())
}

fn read_row(row: &AnyRow) -> Result<Row, Trouble> {
    let mut fields = Fields { row, next: 0 };
    let segment = Segment {
        id: fields.parsed(SegmentId::new)?,
        tenant: fields.parsed(TenantId::new)?,
        block: Block { start_ms: fields.number()?, end_ms: fields.number()? },
        min_ts: fields.number()?,
        max_ts: fields.number()?,
        shard: Shard { index: fields.unsigned()?, count: fields.unsigned()? },
        series_file: fields.file()?,
        samples_file: fields.file()?,
        series_count: fields.unsigned()?,
        sample_count: fields.unsigned()?,
        written_ms: fields.number()?,
        sequence: fields.unsigned()?,
    };
    segment.check().map_err(|error| fields.corrupt(error.to_string()))?;
    Ok(Row { segment, metric_set: fields.text()?, removed_ms: row.try_get(fields.next)? })
}

/// A row's columns, one after the other.
struct Fields<'r> {
    row: &'r AnyRow,
    next: usize,
}

impl Fields<'_> {
    fn step(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn number(&mut self) -> Result<i64, Trouble> {
        Ok(self.row.try_get(self.step())?)
    }

    fn text(&mut self) -> Result<String, Trouble> {
        Ok(self.row.try_get(self.step())?)
    }

    fn unsigned<T: TryFrom<i64>>(&mut self) -> Result<T, Trouble> {
        let number = self.number()?;
        T::try_from(number)
            .map_err(|_| self.corrupt(format!("the number {number} is out of range")))
    }

    fn parsed<T, E: ToString>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Trouble> {
        parse(&self.text()?).map_err(|error| self.corrupt(error.to_string()))
    }

    fn file(&mut self) -> Result<StoredFile, Trouble> {
        Ok(StoredFile {
            path: self.parsed(ObjectPath::parse)?,
            size_bytes: self.unsigned()?,
            checksum: self.parsed(str::parse::<Checksum>)?,
        })
    }

    fn corrupt(&self, reason: String) -> Trouble {
        let id: String = self.row.try_get(0).unwrap_or_default();
        CatalogError::Corrupt { what: format!("segment {id:?}"), reason }.into()
    }
}
