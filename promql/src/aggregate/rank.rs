//! `topk` and `bottomk`: the first of each group at every step. Ranking a part of the series first
//! and the survivors again gives what ranking all of them gives.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::expr::Grouping;
use crate::frame::Row;
use crate::window::{ABSENT, is_absent};

/// How many of a group stay, and from which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// How many.
    pub count: usize,
    /// The largest, or the smallest.
    pub largest: bool,
}

impl Rank {
    /// Which of two values comes first. NaN comes last either way.
    pub fn compare(self, one: f64, other: f64) -> Ordering {
        match (one.is_nan(), other.is_nan()) {
            (false, false) if self.largest => other.partial_cmp(&one).unwrap_or(Ordering::Equal),
            (false, false) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
            (one, other) => one.cmp(&other),
        }
    }
}

/// Takes away every value that is not among the first of its group at its step, and rows without
/// any. Of equal values the one in the earlier row comes first.
pub fn keep_ranked(rows: &mut Vec<Row>, grouping: &Grouping, rank_at: impl Fn(usize) -> Rank) {
    let steps = rows.first().map_or(0, |row| row.values.len());
    let mut in_hand: Vec<(f64, usize)> = Vec::new();
    for members in members_of_groups(rows, grouping) {
        for step in 0..steps {
            let rank = rank_at(step);
            in_hand.clear();
            let values = members.iter().map(|index| (rows[*index].values[step], *index));
            in_hand.extend(values.filter(|(value, _)| !is_absent(*value)));
            if in_hand.len() <= rank.count {
                continue;
            }
            let order = |one: &(f64, usize), other: &(f64, usize)| {
                rank.compare(one.0, other.0).then(one.1.cmp(&other.1))
            };
            let mut beaten = in_hand.as_slice();
            if rank.count > 0 {
                beaten = in_hand.select_nth_unstable_by(rank.count - 1, order).2;
            }
            for (_, index) in beaten {
                rows[*index].values[step] = ABSENT;
            }
        }
    }
    rows.retain(Row::has_values);
}

/// The numbers of the rows of each group, groups in the order of their first rows.
pub fn members_of_groups(rows: &[Row], grouping: &Grouping) -> Vec<Vec<usize>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let place = *places.entry(grouping.key(&row.labels)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(index);
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::labels::Labels;

    fn row(index: usize, values: &[f64]) -> Row {
        let labels = Labels::new([("i", format!("{index:03}"))]).unwrap();
        Row { labels, drop_name: false, values: values.to_vec() }
    }

    #[test]
    fn the_largest_stay_and_nan_is_last() {
        let mut rows: Vec<Row> = [f64::NAN, 1.0, 3.0, 3.0, ABSENT]
            .iter()
            .enumerate()
            .map(|(index, value)| row(index, &[*value]))
            .collect();
        let all = rows.clone();
        let by = Grouping::default();
        keep_ranked(&mut rows, &by, |_| Rank { count: 1, largest: true });
        assert_eq!(
            rows.iter().map(|row| row.labels.to_string()).collect::<Vec<_>>(),
            [r#"{i="002"}"#]
        );
        let mut rows = all.clone();
        keep_ranked(&mut rows, &by, |_| Rank { count: 2, largest: false });
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].values[0], rows[1].values[0]), (1.0, 3.0));
        let mut rows = all;
        keep_ranked(&mut rows, &by, |_| Rank { count: 0, largest: false });
        assert!(rows.is_empty());
    }

    proptest! {
        #[test]
        fn ranking_parts_first_changes_nothing(
            values in prop::collection::vec(prop_oneof![
                4 => (0..5_i32).prop_map(f64::from),
                1 => Just(ABSENT),
                1 => Just(f64::NAN),
            ], 1..30),
            cut in 0..30_usize,
            count in 0..6_usize,
            largest: bool,
        ) {
            let rows: Vec<Row> =
                values.iter().enumerate().map(|(index, value)| row(index, &[*value])).collect();
            let by = Grouping::default();
            let rank = |_| Rank { count, largest };
            let mut whole = rows.clone();
            keep_ranked(&mut whole, &by, rank);
            let (left, right) = rows.split_at(cut.min(rows.len()));
            let mut parts = Vec::new();
            for part in [left, right] {
                let mut part = part.to_vec();
                keep_ranked(&mut part, &by, rank);
                parts.extend(part);
            }
            keep_ranked(&mut parts, &by, rank);
            let names = |rows: &[Row]| rows.iter().map(|row| row.labels.clone()).collect::<Vec<_>>();
            prop_assert_eq!(names(&whole), names(&parts));
        }
    }
}
