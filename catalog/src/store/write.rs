//! Changes to the catalog, each one transaction: it happens as a whole or not at all, and doing it
//! twice does it once. Every change first takes the next number of the clock, and so waits for the
//! one before it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_workcoord::id::TenantId;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Connection as _, Row as _, Transaction};

use crate::catalog_url::Dialect;
use crate::error::CatalogError;
use crate::metric_names::MetricNames;
use crate::segment_row::{NewSegment, Segment, SegmentId};
use crate::store::link::Trouble;
use crate::store::read::{self, COLUMNS, IDS_A_STATEMENT, placeholders};
use crate::store::{Changed, REGISTRATION_WINDOW};

/// Segments in one statement.
const ROWS_A_STATEMENT: usize = 100;

/// A change of the catalog that is asked for.
pub(crate) struct Change<'a> {
    /// Segments to register.
    pub add: &'a [NewSegment],
    /// Segments of this tenant to remove.
    pub retire: Option<(&'a TenantId, &'a [SegmentId])>,
    /// The wall clock of the caller.
    pub now_ms: i64,
}

/// Carries out a change.
pub(crate) async fn apply(
    connection: &mut AnyConnection,
    dialect: Dialect,
    change: &Change<'_>,
) -> Result<Changed, Trouble> {
    check(change)?;
    let mut work = connection.begin_with(dialect.begin_write()).await?;
    let clock = Clock::advance(&mut work).await?;
    let fresh = not_yet_there(&mut work, change.add).await?;
    let retired = match change.retire {
        Some((tenant, ids)) => to_retire(&mut work, tenant, ids).await?,
        None => Retirement::default(),
    };
    if let Some(gone) = retired.gone
        && !fresh.is_empty()
    {
        // Somebody else removed an input of this compaction. Its output would bring that back.
        return Err(CatalogError::Retired { segment: gone }.into());
    }
    let changed = Changed {
        change_seq: u64::try_from(clock.change_seq).unwrap_or_default(),
        added: fresh.len(),
        retired: retired.live.len(),
    };
    if fresh.is_empty() && retired.live.is_empty() {
        // Nothing to do: the clock stays where it was.
        work.rollback().await?;
        return Ok(Changed { change_seq: changed.change_seq - 1, ..changed });
    }
    let inherited = match fresh.is_empty() {
        true => None,
        false => inherited_age(&mut work, &retired.live).await?,
    };
    let mut next_sequence = clock.segment_seq;
    let mut rows = Vec::with_capacity(fresh.len());
    for place in fresh {
        let sequence = inherited.unwrap_or_else(|| {
            next_sequence += 1;
            next_sequence
        });
        let NewSegment { segment, metrics } = &change.add[place];
        rows.push(FreshRow { segment, metric_set: metrics.digest(), metrics, sequence });
    }
    insert_sets(&mut work, &rows).await?;
    insert_segments(&mut work, &rows, clock.change_seq).await?;
    let ids: Vec<&SegmentId> = retired.live.iter().map(|segment| &segment.id).collect();
    mark_removed(&mut work, &ids, clock.change_seq, change.now_ms).await?;
    sqlx::query("UPDATE catalog_clock SET segment_seq = $1")
        .bind(next_sequence)
        .execute(&mut *work)
        .await?;
    work.commit().await?;
    Ok(changed)
}

/// Forgets segments that were marked as removed at or before the given time; others are left
/// alone. Returns what was forgotten: now nothing names their files.
pub(crate) async fn purge(
    connection: &mut AnyConnection,
    dialect: Dialect,
    ids: &[SegmentId],
    removed_until_ms: i64,
) -> Result<Vec<Segment>, Trouble> {
    let mut work = connection.begin_with(dialect.begin_write()).await?;
    // The lock of the clock without its next number: nothing a reader sees will change.
    sqlx::query("UPDATE catalog_clock SET change_seq = change_seq").execute(&mut *work).await?;
    let mut purged = Vec::new();
    let mut sets = Vec::new();
    for row in read::rows_of(&mut work, ids).await? {
        if row.removed_ms.is_some_and(|removed| removed <= removed_until_ms) {
            purged.push(row.segment);
            sets.push(row.metric_set);
        }
    }
    sets.sort_unstable();
    sets.dedup();
    let ids: Vec<&str> = purged.iter().map(|segment| segment.id.as_str()).collect();
    for ids in ids.chunks(IDS_A_STATEMENT) {
        let list = placeholders(1, ids.len());
        // A reader that knows only older changes has missed the mark that is deleted here: it must
        // read everything anew, and this number tells it so.
        let seen = format!(
            "UPDATE catalog_clock SET purged_seq = (SELECT max(seq) FROM (SELECT purged_seq AS seq \
             FROM catalog_clock UNION ALL SELECT change_seq FROM segments WHERE id IN ({list})) AS s)"
        );
        execute_with(&mut work, seen, ids).await?;
        execute_with(&mut work, format!("DELETE FROM segments WHERE id IN ({list})"), ids).await?;
    }
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    for sets in sets.chunks(IDS_A_STATEMENT) {
        let unused = format!(
            "DELETE FROM metric_sets WHERE digest IN ({}) AND NOT EXISTS \
             (SELECT 1 FROM segments WHERE metric_set = digest)",
            placeholders(1, sets.len())
        );
        execute_with(&mut work, unused, sets).await?;
    }
    work.commit().await?;
    Ok(purged)
}

/// The state of the clock inside a change.
struct Clock {
    change_seq: i64,
    segment_seq: i64,
}

impl Clock {
    async fn advance(work: &mut Transaction<'_, Any>) -> Result<Self, Trouble> {
        let row = sqlx::query(
            "UPDATE catalog_clock SET change_seq = change_seq + 1 RETURNING change_seq, segment_seq",
        )
        .fetch_one(&mut **work)
        .await?;
        Ok(Self { change_seq: row.try_get(0)?, segment_seq: row.try_get(1)? })
    }
}

/// Everything about the wish that can be told without the database.
fn check(change: &Change<'_>) -> Result<(), CatalogError> {
    let mut seen = BTreeSet::new();
    for NewSegment { segment, .. } in change.add {
        segment.check()?;
        let age_ms = u64::try_from(change.now_ms.saturating_sub(segment.written_ms)).unwrap_or(0);
        let age = Duration::from_millis(age_ms);
        if age > REGISTRATION_WINDOW {
            return Err(CatalogError::TooLate { segment: segment.id.clone(), age });
        }
        if !seen.insert(&segment.id) {
            return Err(CatalogError::Conflict { segment: segment.id.clone() });
        }
        if let Some((tenant, _)) = change.retire
            && *tenant != segment.tenant
        {
            let reason = format!("it can't replace segments of tenant {tenant}");
            return Err(CatalogError::BadSegment { segment: segment.id.clone(), reason });
        }
    }
    Ok(())
}

/// Which of the new segments are not registered yet, by their place in the list.
async fn not_yet_there(
    work: &mut Transaction<'_, Any>,
    add: &[NewSegment],
) -> Result<Vec<usize>, Trouble> {
    let there: BTreeMap<SegmentId, read::Row> =
        read::rows_of(work, add.iter().map(|new| &new.segment.id))
            .await?
            .into_iter()
            .map(|row| (row.segment.id.clone(), row))
            .collect();
    let mut fresh = Vec::new();
    for (place, NewSegment { segment, .. }) in add.iter().enumerate() {
        let id = || segment.id.clone();
        match there.get(&segment.id) {
            None => fresh.push(place),
            Some(row) if !row.segment.same_content(segment) => {
                return Err(CatalogError::Conflict { segment: id() }.into());
            }
            Some(row) if row.removed_ms.is_some() => {
                return Err(CatalogError::Retired { segment: id() }.into());
            }
            Some(_) => {}
        }
    }
    Ok(fresh)
}

/// What a removal meets.
#[derive(Default)]
struct Retirement {
    /// Segments to be marked now.
    live: Vec<Segment>,
    /// One that is marked already, if any.
    gone: Option<SegmentId>,
}

async fn to_retire(
    work: &mut Transaction<'_, Any>,
    tenant: &TenantId,
    ids: &[SegmentId],
) -> Result<Retirement, Trouble> {
    let mut there: BTreeMap<SegmentId, read::Row> = read::rows_of(work, ids)
        .await?
        .into_iter()
        .map(|row| (row.segment.id.clone(), row))
        .collect();
    let mut found = Retirement::default();
    for segment in ids.iter().collect::<BTreeSet<_>>().into_iter().cloned() {
        match there.remove(&segment) {
            // Another tenant's segment is as unknown as one that never was.
            Some(row) if row.segment.tenant == *tenant => match row.removed_ms {
                None => found.live.push(row.segment),
                Some(_) => found.gone = Some(segment),
            },
            _ => return Err(CatalogError::Unknown { segment }.into()),
        }
    }
    Ok(found)
}

/// The age of a compaction's output: that of its newest input, so that a segment registered since
/// still wins. A segment that is newer than an input of its own series and time, and not newer than
/// the output, would lose to samples it overruled before: it must be an input too.
async fn inherited_age(
    work: &mut Transaction<'_, Any>,
    retired: &[Segment],
) -> Result<Option<i64>, Trouble> {
    let ages = || retired.iter().map(|segment| segment.sequence);
    let (Some(oldest), Some(newest)) = (ages().min(), ages().max()) else {
        return Ok(None);
    };
    let number = |age: u64| i64::try_from(age).unwrap_or(i64::MAX);
    let time = retired.iter().fold((i64::MAX, i64::MIN), |(min, max), segment| {
        (min.min(segment.min_ts), max.max(segment.max_ts))
    });
    let ages = (number(oldest), number(newest));
    for other in read::newer_than(work, &retired[0].tenant, time, ages).await? {
        let overrules_an_input = || {
            retired.iter().any(|input| input.sequence < other.sequence && input.overlaps(&other))
        };
        if retired.iter().all(|input| input.id != other.id) && overrules_an_input() {
            return Err(CatalogError::LeftOut { segment: other.id }.into());
        }
    }
    Ok(Some(number(newest)))
}

/// A row to be written.
struct FreshRow<'a> {
    segment: &'a Segment,
    metrics: &'a MetricNames,
    /// Digest of the metric names.
    metric_set: String,
    sequence: i64,
}

async fn insert_sets(
    work: &mut Transaction<'_, Any>,
    rows: &[FreshRow<'_>],
) -> Result<(), Trouble> {
    let sets: BTreeMap<&str, &MetricNames> =
        rows.iter().map(|row| (row.metric_set.as_str(), row.metrics)).collect();
    for (digest, names) in sets {
        sqlx::query(
            "INSERT INTO metric_sets (digest, names) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
        )
        .bind(digest)
        .bind(names.encode())
        .execute(&mut **work)
        .await?;
    }
    Ok(())
}

async fn insert_segments(
    work: &mut Transaction<'_, Any>,
    rows: &[FreshRow<'_>],
    change_seq: i64,
) -> Result<(), Trouble> {
    let width = COLUMNS.split(',').count() + 1;
    for rows in rows.chunks(ROWS_A_STATEMENT) {
        let groups: Vec<String> = (0..rows.len())
            .map(|row| format!("({})", placeholders(row * width + 1, width)))
            .collect();
        let text =
            format!("INSERT INTO segments ({COLUMNS}, change_seq) VALUES {}", groups.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(text));
        for FreshRow { segment, metric_set, sequence, .. } in rows {
            let number =
                |n: u64| i64::try_from(n).expect("the check of the segment bounds its numbers");
            query = query
                .bind(segment.id.as_str())
                .bind(segment.tenant.as_str())
                .bind(segment.block.start_ms)
                .bind(segment.block.end_ms)
                .bind(segment.min_ts)
                .bind(segment.max_ts)
                .bind(i64::from(segment.shard.index))
                .bind(i64::from(segment.shard.count));
            for file in [&segment.series_file, &segment.samples_file] {
                query = query
                    .bind(file.path.as_str())
                    .bind(number(file.size_bytes))
                    .bind(file.checksum.to_string());
            }
            query = query
                .bind(number(segment.series_count))
                .bind(number(segment.sample_count))
                .bind(segment.written_ms)
                .bind(*sequence)
                .bind(metric_set.as_str())
                .bind(change_seq);
        }
        query.execute(&mut **work).await?;
    }
    Ok(())
}

async fn mark_removed(
    work: &mut Transaction<'_, Any>,
    ids: &[&SegmentId],
    change_seq: i64,
    now_ms: i64,
) -> Result<(), Trouble> {
    for ids in ids.chunks(IDS_A_STATEMENT) {
        let text = format!(
            "UPDATE segments SET removed_ms = $1, change_seq = $2 WHERE id IN ({})",
            placeholders(3, ids.len())
        );
        let mut query = sqlx::query(AssertSqlSafe(text)).bind(now_ms).bind(change_seq);
        for id in ids {
            query = query.bind(id.as_str());
        }
        query.execute(&mut **work).await?;
    }
    Ok(())
}

async fn execute_with(
    work: &mut Transaction<'_, Any>,
    text: String,
    values: &[&str],
) -> Result<(), Trouble> {
    let mut query = sqlx::query(AssertSqlSafe(text));
    for value in values {
        query = query.bind(*value);
    }
    query.execute(&mut **work).await?;
    Ok(())
}
