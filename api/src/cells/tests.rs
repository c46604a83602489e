//! Cells hold every segment once, and no series is in two of them at any time.

use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use proptest::prelude::*;
use tributary_catalog::{Block, ObjectPath, SegmentId, StoredFile};

use super::*;

fn segment(number: usize, start: i64, length: i64, shard: Shard) -> Arc<Segment> {
    let tenant = TenantId::new("t").unwrap();
    let id = SegmentId::new(&format!("s{number}")).unwrap();
    let (series, samples) = ObjectPath::of_segment(&tenant, "u", &id).unwrap();
    let file = |path| StoredFile { path, size_bytes: 1, checksum: Checksum([0; 32]) };
    Arc::new(Segment {
        id,
        tenant,
        block: Block { start_ms: start, end_ms: start + length },
        min_ts: start,
        max_ts: start + length - 1,
        shard,
        series_file: file(series),
        samples_file: file(samples),
        series_count: 1,
        sample_count: 10,
        written_ms: 0,
        sequence: number as u64,
    })
}

#[test]
fn blocks_of_a_shard_are_joined_and_their_ends_are_open() {
    let shard = |index| Shard { index, count: 2 };
    let segments = [
        segment(0, 0, 100, shard(0)),
        segment(1, 0, 100, shard(1)),
        segment(2, 100, 100, shard(0)),
        segment(3, 300, 100, shard(0)),
    ];
    let size = CellSize { max_samples: 20, max_segments: 8, align_ms: 1_000 };
    let cells = cells_of(&segments, size);
    let seen: Vec<_> =
        cells.iter().map(|cell| (cell.span.from, cell.span.to, cell.segments.len())).collect();
    assert_eq!(seen, [(i64::MIN, 300, 2), (i64::MIN, i64::MAX, 1), (300, i64::MAX, 1)]);
}

#[test]
fn segments_of_one_block_and_shard_are_one_cell_the_newest_last() {
    let segments = [segment(2, 0, 100, Shard::WHOLE), segment(1, 0, 100, Shard::WHOLE)];
    let cells = cells_of(&segments, CellSize::default());
    assert_eq!(cells.len(), 1);
    let ages: Vec<u64> = cells[0].segments.iter().map(|segment| segment.sequence).collect();
    assert_eq!(ages, [1, 2]);
}

#[test]
fn a_chain_of_segments_that_its_last_link_closes_is_one_cell() {
    let shard = |index| Shard { index, count: 3 };
    // The last one has all series, and so brings together what was apart before.
    let segments = [
        segment(1, 0, 110, shard(0)),
        segment(2, 100, 110, shard(2)),
        segment(3, 190, 30, shard(0)),
        segment(4, 210, 10, Shard::WHOLE),
    ];
    assert_eq!(cells_of(&segments, CellSize::default()).len(), 1);
}

proptest! {
    #[test]
    fn no_series_is_in_two_cells_at_any_time(
        sketches in prop::collection::vec((0..40_i64, 1..20_i64, 1..5_u32, 0..4_u32), 0..14),
        max_samples in 1..80_u64,
        turn in 0..14_usize,
    ) {
        let mut segments: Vec<_> = (0..)
            .zip(sketches)
            .map(|(number, (start, length, count, index))| {
                segment(number, start * 10, length * 10, Shard { index: index % count, count })
            })
            .collect();
        let size = CellSize { max_samples, max_segments: 4, align_ms: 25 };
        let cells = cells_of(&segments, size);
        let held: usize = cells.iter().map(|cell| cell.segments.len()).sum();
        prop_assert_eq!(held, segments.len());
        for (at, cell) in cells.iter().enumerate() {
            for segment in &cell.segments {
                prop_assert!(cell.span.from <= segment.block.start_ms);
                prop_assert!(segment.block.end_ms <= cell.span.to);
                for other in cells.iter().enumerate().filter(|(other, _)| *other != at) {
                    let shares =
                        other.1.segments.iter().any(|theirs| theirs.shard.overlaps(segment.shard));
                    let meets = other.1.span.from < cell.span.to && cell.span.from < other.1.span.to;
                    prop_assert!(!(shares && meets), "{cell:?} and {other:?}");
                }
            }
        }
        // The order in which segments come makes no difference.
        let turn = turn.min(segments.len());
        segments.rotate_left(turn);
        let ids = |cells: &[Cell]| -> Vec<(TimeSpan, u32, Vec<String>)> {
            let of = |cell: &Cell| cell.segments.iter().map(|s| s.id.to_string()).collect();
            cells.iter().map(|cell| (cell.span, cell.place, of(cell))).collect()
        };
        prop_assert_eq!(ids(&cells_of(&segments, size)), ids(&cells));
    }
}

#[test]
fn many_segments_are_put_into_cells_in_little_time() {
    let shard = |index| Shard { index, count: 16 };
    let blocks = (0..1_000_i64).flat_map(|block| (0..16).map(move |index| (block, index)));
    let segments: Vec<_> = (0..)
        .zip(blocks)
        .map(|(number, (block, index))| segment(number, block * 100, 100, shard(index)))
        .collect();
    let size = CellSize { max_samples: 20, max_segments: 8, align_ms: 1_000 };
    let cells = cells_of(&segments, size);
    assert_eq!(cells.len(), 16 * 500);
    assert_eq!(cells.iter().map(|cell| cell.segments.len()).sum::<usize>(), segments.len());
}
