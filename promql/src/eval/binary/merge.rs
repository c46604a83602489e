//! Rows whose labels became equal: one series, if they never meet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::frame::{Row, SameLabels};
use crate::labels::Labels;
use crate::window::is_absent;

/// Makes one row of those with equal labels, in the place of the first of them. Two that are there
/// at the same step are an error. Other rows stay as they are, and in their order.
pub(super) fn merged(rows: Vec<Row>) -> Result<Vec<Row>, SameLabels> {
    let mut places: BTreeMap<Labels, usize> = BTreeMap::new();
    let mut result: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match places.entry(row.labels.clone()) {
            Entry::Vacant(place) => {
                place.insert(result.len());
                result.push(row);
            }
            Entry::Occupied(place) => take_in(&mut result[*place.get()], row)?,
        }
    }
    Ok(result)
}

fn take_in(mine: &mut Row, theirs: Row) -> Result<(), SameLabels> {
    // Whether the name goes is decided by the value that comes first in time, as in Prometheus.
    if first_step(&theirs) < first_step(mine) {
        mine.drop_name = theirs.drop_name;
    }
    for (value, other) in mine.values.iter_mut().zip(theirs.values) {
        match (is_absent(*value), is_absent(other)) {
            (true, _) => *value = other,
            (false, true) => {}
            (false, false) => return Err(SameLabels),
        }
    }
    Ok(())
}

fn first_step(row: &Row) -> usize {
    let first = row.values.iter().position(|value| !is_absent(*value));
    first.unwrap_or(row.values.len())
}
