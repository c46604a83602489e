//! The catalog's database: which segments exist. SQLite in a file or PostgreSQL, by one schema and
//! one set of queries. Changes are atomic and may be repeated; reading for queries goes through
//! `universe`, so that no query waits for a database.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use core_workcoord::id::TenantId;
use sqlx::AnyConnection;
use tokio::sync::Mutex;

use crate::catalog_url::CatalogUrl;
use crate::config::CatalogConfig;
use crate::error::CatalogError;
use crate::metric_names::MetricNames;
use crate::object_path::ObjectPath;
use crate::segment_row::{NewSegment, Segment, SegmentId};
use crate::universe::Universe;

pub(crate) mod link;
pub(crate) mod read;
mod schema;
mod write;

use link::{Idle, Link, Terms, Trouble};
use write::Change;

/// Files must be registered this soon after they were written. Cleaning with a grace period beyond
/// this never takes a file that may still be registered.
pub const REGISTRATION_WINDOW: Duration = Duration::from_secs(12 * 60 * 60);

/// A handle to the catalog. Clones share one connection; operations on it take turns.
#[derive(Clone)]
pub struct Catalog {
    terms: Arc<Terms>,
    link: Arc<Mutex<Link>>,
}

/// What a change came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Readers whose universe has this number, or a higher one, see the change.
    pub change_seq: u64,
    /// Segments that are new. The others of the batch were registered before.
    pub added: usize,
    /// Segments that were live and are now marked as removed.
    pub retired: usize,
}

/// Everything the catalog knows of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentDetails {
    /// What readers see of it.
    pub segment: Segment,
    /// The names of all metrics in it.
    pub metrics: MetricNames,
    /// When it was marked as removed, in milliseconds of the Unix epoch, if it was.
    pub removed_ms: Option<i64>,
}

/// A segment's row as cleaning sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The segment.
    pub segment: Segment,
    /// When it was marked as removed, in milliseconds of the Unix epoch, if it was.
    pub removed_ms: Option<i64>,
}

impl Catalog {
    /// Connects, creates or upgrades the tables, and refuses those of a newer release.
    pub async fn open(url: CatalogUrl, config: CatalogConfig) -> Result<Self, CatalogError> {
        config.check()?;
        let terms = Arc::new(Terms::new(url, config));
        let link = Arc::new(Mutex::new(Link::new(terms.clone())));
        let catalog = Self { terms, link };
        catalog.run(async |_| Ok(())).await?;
        Ok(catalog)
    }

    /// Registers segments, all or none. Their files must be in the object store already: whoever
    /// reads the catalog from now on may open them. Segments that are registered already, with the
    /// same content, are left as they are.
    pub async fn register(
        &self,
        segments: &[NewSegment],
        now_ms: i64,
    ) -> Result<Changed, CatalogError> {
        self.change(&Change { add: segments, retire: None, now_ms }).await
    }

    /// Marks segments of a tenant as removed, all or none. Readers forget them; their files stay
    /// until they are cleaned up, for queries that are under way.
    pub async fn remove(
        &self,
        tenant: &TenantId,
        segments: &[SegmentId],
        now_ms: i64,
    ) -> Result<Changed, CatalogError> {
        self.change(&Change { add: &[], retire: Some((tenant, segments)), now_ms }).await
    }

    /// Puts the output of a compaction in the place of its input, in one step: readers see the one
    /// or the other. The output is as old as the newest input, so what came later still wins.
    pub async fn replace(
        &self,
        tenant: &TenantId,
        add: &[NewSegment],
        retire: &[SegmentId],
        now_ms: i64,
    ) -> Result<Changed, CatalogError> {
        self.change(&Change { add, retire: Some((tenant, retire)), now_ms }).await
    }

    /// One segment of a tenant, be it live or removed; none if there is no such segment.
    pub async fn details(
        &self,
        tenant: &TenantId,
        segment: &SegmentId,
    ) -> Result<Option<SegmentDetails>, CatalogError> {
        self.run(async |connection| {
            let rows = read::rows_of(connection, [segment]).await?;
            let Some(row) = rows.into_iter().find(|row| row.segment.tenant == *tenant) else {
                return Ok(None);
            };
            let metrics = read::metric_names(connection, &row.metric_set).await?;
            Ok(Some(SegmentDetails { segment: row.segment, metrics, removed_ms: row.removed_ms }))
        })
        .await
    }

    /// All live segments of every tenant, or of one, by tenant, time, shard and age.
    pub async fn live(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<Vec<SegmentDetails>, CatalogError> {
        let dialect = self.terms.dialect;
        let changes =
            self.run(async |connection| read::changes(connection, dialect, None).await).await?;
        let mut sets: BTreeMap<String, MetricNames> = BTreeMap::new();
        for (digest, names) in &changes.sets {
            sets.insert(digest.clone(), read::unpack(names, digest)?);
        }
        let mut live = Vec::new();
        for row in changes.rows {
            if tenant.is_some_and(|tenant| row.segment.tenant != *tenant) {
                continue;
            }
            let missing = || CatalogError::Corrupt {
                what: format!("segment {}", row.segment.id),
                reason: "its metric names are missing".to_owned(),
            };
            let metrics = sets.get(&row.metric_set).cloned().ok_or_else(missing)?;
            live.push(SegmentDetails { segment: row.segment, metrics, removed_ms: None });
        }
        live.sort_by(|a, b| {
            let key = |s: &Segment| (s.block, s.shard, s.sequence);
            let (a, b) = (&a.segment, &b.segment);
            a.tenant.cmp(&b.tenant).then_with(|| key(a).cmp(&key(b)))
        });
        Ok(live)
    }

    /// Every segment of every tenant, the removed ones included, in no particular order.
    pub async fn entries(&self) -> Result<Vec<CatalogEntry>, CatalogError> {
        let rows = self.run(async |connection| read::all_rows(connection).await).await?;
        let entry =
            |row: read::Row| CatalogEntry { segment: row.segment, removed_ms: row.removed_ms };
        Ok(rows.into_iter().map(entry).collect())
    }

    /// The universe as it is now, read once. A server keeps a `UniverseFeed` instead.
    pub async fn universe(&self) -> Result<Universe, CatalogError> {
        let dialect = self.terms.dialect;
        let changes =
            self.run(async |connection| read::changes(connection, dialect, None).await).await?;
        Universe::default().after(changes)
    }

    /// The catalog's address, safe to print.
    pub fn url(&self) -> &CatalogUrl {
        &self.terms.url
    }

    /// Forgets segments marked as removed until the given time, and returns those forgotten.
    pub(crate) async fn purge(
        &self,
        segments: &[SegmentId],
        removed_until_ms: i64,
    ) -> Result<Vec<Segment>, CatalogError> {
        let dialect = self.terms.dialect;
        self.run(async |connection| {
            write::purge(connection, dialect, segments, removed_until_ms).await
        })
        .await
    }

    /// Those of the paths that no row names, be it live or removed.
    pub(crate) async fn unnamed(
        &self,
        paths: &[ObjectPath],
    ) -> Result<Vec<ObjectPath>, CatalogError> {
        self.run(async |connection| read::unnamed(connection, paths).await).await
    }

    /// A connection of its own for whoever must not wait for these operations.
    pub(crate) fn new_link(&self) -> Link {
        Link::new(self.terms.clone())
    }

    async fn change(&self, change: &Change<'_>) -> Result<Changed, CatalogError> {
        let dialect = self.terms.dialect;
        self.run(async |connection| write::apply(connection, dialect, change).await).await
    }

    async fn run<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, Trouble>,
    ) -> Result<T, CatalogError> {
        let limit = self.terms.config.operation_timeout;
        self.link.lock().await.run(Idle::Ask, limit, operation).await
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Catalog {{ {} }}", self.terms.url)
    }
}
