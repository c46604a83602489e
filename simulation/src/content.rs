//! What the work is and what comes out of it, as far as the simulation needs bytes: a spec that
//! names the item, and an artifact whose checksum follows from the spec alone.

use bytes::Bytes;
use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::{QueryId, RunId, WorkId};

use crate::rng::mix;

/// The name of a query: its number in the story, beside the seed.
pub(crate) fn query_id(seed: u64, number: u32) -> QueryId {
    QueryId(u128::from(mix(seed)) << 64 | u128::from(number))
}

/// The number of a query of this seed, if it is one.
pub(crate) fn query_number(seed: u64, id: QueryId) -> Option<u32> {
    let [high, low] = [id.0 >> 64, id.0 & u128::from(u64::MAX)];
    (high == u128::from(mix(seed))).then(|| u32::try_from(low).ok()).flatten()
}

/// What a worker is told to do for an item.
pub(crate) fn spec(number: u32, item: u32) -> Bytes {
    let mut text = [0; 8];
    text[..4].copy_from_slice(&number.to_le_bytes());
    text[4..].copy_from_slice(&item.to_le_bytes());
    Bytes::copy_from_slice(&text)
}

/// The number of the query and the item that a spec names.
pub(crate) fn read_spec(spec: &[u8]) -> Option<(u32, u32)> {
    let (number, item) = spec.split_first_chunk::<4>()?;
    let item: [u8; 4] = item.try_into().ok()?;
    Some((u32::from_le_bytes(*number), u32::from_le_bytes(item)))
}

/// The checksum of the artifact that an item's spec comes to.
pub(crate) fn right_checksum(number: u32, item: u32) -> Checksum {
    checksum(u64::from(number) << 32 | u64::from(item))
}

/// The checksum of some bytes that are told apart by a word.
pub(crate) fn checksum(word: u64) -> Checksum {
    let mut sum = [0; 32];
    for (at, part) in (0_u64..).zip(sum.chunks_exact_mut(8)) {
        part.copy_from_slice(&mix(word ^ at << 61).to_le_bytes());
    }
    Checksum(sum)
}

/// Where bytes went wrong: each kind of wrong is another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    OnDisk,
    OnTheWire,
    Announced,
}

/// The checksum of bytes that went wrong.
pub(crate) fn wrong(sum: Checksum, wrong: Wrong) -> Checksum {
    let mut bytes = sum.0;
    bytes[wrong as usize] ^= 0x10;
    Checksum(bytes)
}

/// Whether these are the bytes that the item asks for.
pub(crate) fn is_right(work: WorkId, seed: u64, bytes: Checksum) -> bool {
    query_number(seed, work.query).is_some_and(|number| right_checksum(number, work.item) == bytes)
}

/// The artifact of a run.
pub(crate) fn artifact(base_url: &str, run: RunId, sum: Checksum, size_bytes: u64) -> Artifact {
    Artifact {
        url: format!("{base_url}{run}"),
        size_bytes,
        checksum: sum,
        row_count: size_bytes / 16,
        min_ts: 0,
        max_ts: 1,
        parquet_schema_version: 1,
    }
}

/// The run that an address below `base_url` leads to.
pub(crate) fn run_of(url: &str, base_url: &str) -> Option<RunId> {
    url.strip_prefix(base_url)?.strip_prefix('r')?.parse().ok().map(RunId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_specs_and_addresses_read_back() {
        assert_eq!(query_number(7, query_id(7, 31)), Some(31));
        assert_eq!(query_number(8, query_id(7, 31)), None);
        assert_eq!(read_spec(&spec(31, 5)), Some((31, 5)));
        assert_eq!(read_spec(b"short"), None);
        let it = artifact("http://w/", RunId(12), right_checksum(31, 5), 99);
        assert_eq!(run_of(&it.url, "http://w/"), Some(RunId(12)));
        assert_eq!(run_of(&it.url, "http://v/"), None);
        let work = WorkId { query: query_id(7, 31), item: 5 };
        assert!(is_right(work, 7, it.checksum));
        assert!(!is_right(work, 7, wrong(it.checksum, Wrong::OnDisk)));
        assert!(!is_right(WorkId { item: 6, ..work }, 7, it.checksum));
    }
}
