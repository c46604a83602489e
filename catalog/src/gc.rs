//! Cleans up: files that no segment names, segments whose removal is long past, and what writers
//! that died left behind. First a survey, then a plan, which is pure, then the doing. A segment
//! whose files are missing is told of, and never removed in silence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::error::{GcError, ObjectError};
use crate::object_path::ObjectPath;
use crate::objects::{Leftover, Listing, ObjectInfo, Store};
use crate::segment_row::SegmentId;
use crate::store::{Catalog, CatalogEntry, REGISTRATION_WINDOW};

/// Paths that are checked against the catalog and deleted in one go.
const PATHS_A_ROUND: usize = 500;

/// How careful cleaning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcConfig {
    /// A file without a segment is kept this long after it was written, and the files of a removed
    /// segment this long after its removal (24 h). Shorter than `REGISTRATION_WINDOW` or than the
    /// longest query is only for a store that nobody else uses. Longer: more disk.
    pub grace: Duration,
}

impl Default for GcConfig {
    fn default() -> Self {
        Self { grace: 2 * REGISTRATION_WINDOW }
    }
}

/// What is in the store and what is in the catalog.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Files under the segments' prefix.
    pub listing: Listing,
    /// Files that were never finished.
    pub leftovers: Vec<Leftover>,
    /// Rows, read after the files were listed: a file listed before its row was written has it.
    pub entries: Vec<CatalogEntry>,
}

/// What cleaning would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcPlan {
    /// Files that no row names, old enough to be removed.
    pub orphans: Vec<ObjectInfo>,
    /// Unfinished files, old enough to be removed.
    pub leftovers: Vec<Leftover>,
    /// Segments whose removal is long enough past to forget them and remove their files.
    pub expired: Vec<SegmentId>,
    /// Segments marked as removed until this time, in milliseconds of the Unix epoch, are expired.
    pub removed_until_ms: i64,
    /// Live segments whose files were not found where they should be, or not in their size.
    pub dangling: Vec<Dangling>,
    /// Files that no row names and that are too young to be removed.
    pub young: usize,
    /// Files that are not named as ours are. Left alone.
    pub foreign: Vec<String>,
}

/// A live segment with a file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// The segment.
    pub segment: SegmentId,
    /// Its file.
    pub path: ObjectPath,
    /// The size it should have.
    pub expected_bytes: u64,
    /// The size it has; none if it is missing.
    pub found_bytes: Option<u64>,
}

/// What cleaning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Files removed: orphans and those of expired segments.
    pub files_removed: usize,
    /// Their size, as far as it is known.
    pub bytes_removed: u64,
    /// Unfinished files removed.
    pub leftovers_removed: usize,
    /// Segments forgotten.
    pub segments_forgotten: usize,
    /// Live segments with a missing or wrong file, looked at once more. They need a human.
    pub dangling: Vec<Dangling>,
}

/// Looks at the store and then at the catalog.
pub async fn survey(catalog: &Catalog, store: &Store) -> Result<Survey, GcError> {
    let segments = segments_prefix();
    let listing = store.list(&segments).await?;
    let leftovers = store.leftovers(&segments).await?;
    // This order is what makes it safe: a file that is registered after it was listed is named by
    // the rows, which are read later.
    let entries = catalog.entries().await?;
    Ok(Survey { listing, leftovers, entries })
}

/// What there is to do, given what was seen, and the time.
pub fn plan_gc(survey: &Survey, config: GcConfig, now_ms: i64) -> GcPlan {
    let grace_ms = i64::try_from(config.grace.as_millis()).unwrap_or(i64::MAX);
    let old_until_ms = now_ms.saturating_sub(grace_ms);
    let mut plan = GcPlan {
        removed_until_ms: old_until_ms,
        foreign: survey.listing.foreign.clone(),
        ..GcPlan::default()
    };
    let found: BTreeMap<&ObjectPath, u64> =
        survey.listing.objects.iter().map(|object| (&object.path, object.size_bytes)).collect();
    let mut named = BTreeSet::new();
    for CatalogEntry { segment, removed_ms } in &survey.entries {
        for file in [&segment.series_file, &segment.samples_file] {
            named.insert(&file.path);
            let found_bytes = found.get(&file.path).copied();
            if removed_ms.is_none() && found_bytes != Some(file.size_bytes) {
                plan.dangling.push(Dangling {
                    segment: segment.id.clone(),
                    path: file.path.clone(),
                    expected_bytes: file.size_bytes,
                    found_bytes,
                });
            }
        }
        if removed_ms.is_some_and(|removed| removed <= old_until_ms) {
            plan.expired.push(segment.id.clone());
        }
    }
    for object in survey.listing.objects.iter().filter(|object| !named.contains(&object.path)) {
        if object.path.segment().is_none() {
            plan.foreign.push(object.path.to_string());
        } else if object.modified_ms <= old_until_ms {
            plan.orphans.push(object.clone());
        } else {
            plan.young += 1;
        }
    }
    let old = |leftover: &&Leftover| leftover.modified_ms <= old_until_ms;
    plan.leftovers = survey.leftovers.iter().filter(old).cloned().collect();
    plan
}

/// Carries a plan out. What changed since it was made is respected: a file that is named by now
/// stays, and a segment whose files are there by now is not told of.
pub async fn run_gc(catalog: &Catalog, store: &Store, plan: &GcPlan) -> Result<GcReport, GcError> {
    let mut report = GcReport::default();
    for expired in plan.expired.chunks(PATHS_A_ROUND) {
        // Rows go first: if this stops half-way, what is left are orphans, which the next run finds.
        for segment in catalog.purge(expired, plan.removed_until_ms).await? {
            for file in [&segment.series_file, &segment.samples_file] {
                store.delete(&file.path).await?;
                report.files_removed += 1;
                report.bytes_removed += file.size_bytes;
            }
            report.segments_forgotten += 1;
        }
    }
    for orphans in plan.orphans.chunks(PATHS_A_ROUND) {
        let paths: Vec<ObjectPath> = orphans.iter().map(|orphan| orphan.path.clone()).collect();
        let unnamed: BTreeSet<ObjectPath> = catalog.unnamed(&paths).await?.into_iter().collect();
        for orphan in orphans.iter().filter(|orphan| unnamed.contains(&orphan.path)) {
            store.delete(&orphan.path).await?;
            report.files_removed += 1;
            report.bytes_removed += orphan.size_bytes;
        }
    }
    for leftover in &plan.leftovers {
        leftover.remove().await?;
        report.leftovers_removed += 1;
    }
    for dangling in &plan.dangling {
        let found_bytes = match store.head(&dangling.path).await {
            Ok(info) => Some(info.size_bytes),
            Err(ObjectError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if found_bytes != Some(dangling.expected_bytes) {
            report.dangling.push(Dangling { found_bytes, ..dangling.clone() });
        }
    }
    Ok(report)
}

fn segments_prefix() -> ObjectPath {
    ObjectPath::parse(ObjectPath::SEGMENTS).expect("the prefix is a plain word")
}

#[cfg(test)]
mod tests {
    use core_workcoord::artifact::Checksum;
    use core_workcoord::id::TenantId;
    use proptest::prelude::*;

    use super::*;
    use crate::segment_row::{Block, Segment, Shard, StoredFile};

    const NOW_MS: i64 = 1_000_000;
    const GRACE_MS: i64 = 1_000;

    fn entry(name: &str, removed_ms: Option<i64>) -> CatalogEntry {
        let tenant = TenantId::new("t").unwrap();
        let id = SegmentId::new(name).unwrap();
        let (series, samples) = ObjectPath::of_segment(&tenant, "u", &id).unwrap();
        let file = |path| StoredFile { path, size_bytes: 5, checksum: Checksum([0; 32]) };
        let segment = Segment {
            id,
            tenant,
            block: Block { start_ms: 0, end_ms: 10 },
            min_ts: 0,
            max_ts: 9,
            shard: Shard::WHOLE,
            series_file: file(series),
            samples_file: file(samples),
            series_count: 1,
            sample_count: 1,
            written_ms: 0,
            sequence: 1,
        };
        CatalogEntry { segment, removed_ms }
    }

    fn files(name: &str, modified_ms: i64) -> [ObjectInfo; 2] {
        let segment = entry(name, None).segment;
        [segment.series_file, segment.samples_file].map(|file| ObjectInfo {
            path: file.path,
            size_bytes: file.size_bytes,
            modified_ms,
        })
    }

    /// What becomes of a segment's row and files.
    #[derive(Clone, Copy, Debug)]
    struct Fate {
        row: Option<Option<i64>>,
        files: Option<i64>,
    }

    fn fate() -> impl Strategy<Value = Fate> {
        let time = || NOW_MS - 2 * GRACE_MS..NOW_MS + GRACE_MS;
        let row = prop::option::of(prop::option::of(time()));
        (row, prop::option::of(time())).prop_map(|(row, files)| Fate { row, files })
    }

    proptest! {
        #[test]
        fn every_file_and_row_meets_its_fate(fates in prop::collection::vec(fate(), 0..20)) {
            let mut survey = Survey::default();
            let mut expected = (0, 0, 0, 0);
            for (number, fate) in fates.iter().enumerate() {
                let name = format!("s{number}");
                survey.entries.extend(fate.row.map(|removed_ms| entry(&name, removed_ms)));
                survey.listing.objects.extend(fate.files.iter().flat_map(|at| files(&name, *at)));
                let old = |at: i64| at <= NOW_MS - GRACE_MS;
                match (fate.row, fate.files) {
                    (Some(None), None) => expected.0 += 2,
                    (Some(Some(removed)), _) if old(removed) => expected.1 += 1,
                    (None, Some(at)) if old(at) => expected.2 += 2,
                    (None, Some(_)) => expected.3 += 2,
                    _ => {}
                }
            }
            let grace = Duration::from_millis(GRACE_MS.unsigned_abs());
            let plan = plan_gc(&survey, GcConfig { grace }, NOW_MS);
            let found =
                (plan.dangling.len(), plan.expired.len(), plan.orphans.len(), plan.young);
            prop_assert_eq!(found, expected);
            let named = |path: &ObjectPath| survey.entries.iter().any(|entry| {
                [&entry.segment.series_file, &entry.segment.samples_file]
                    .iter()
                    .any(|file| file.path == *path)
            });
            prop_assert!(plan.orphans.iter().all(|orphan| !named(&orphan.path)));
        }
    }

    #[test]
    fn the_grace_period_covers_the_window_of_registration() {
        assert!(GcConfig::default().grace > REGISTRATION_WINDOW);
        let survey = Survey {
            listing: Listing { objects: files("s", i64::MIN).into(), foreign: Vec::new() },
            ..Survey::default()
        };
        let for_ever = GcConfig { grace: Duration::MAX };
        assert_eq!(plan_gc(&survey, for_ever, i64::MIN).orphans.len(), 2);
        let survey = Survey {
            listing: Listing { objects: files("s", 0).into(), foreign: Vec::new() },
            ..Survey::default()
        };
        assert_eq!(plan_gc(&survey, for_ever, NOW_MS).orphans, []);
    }
}
