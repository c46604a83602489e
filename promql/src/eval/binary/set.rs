//! `and`, `or` and `unless`: which series of two vectors are there at a step, whatever their values.

use super::matching::MatchGroups;
use super::merge::merged;
use super::step_set::StepSet;
use crate::eval::{Context, EvalError};
use crate::expr::VectorMatching;
use crate::frame::{Frame, Row};
use crate::window::ABSENT;

/// The left side where the right side has a match.
pub(super) fn and(matching: &VectorMatching, mut lhs: Frame, rhs: &Frame, ctx: &Context) -> Frame {
    let groups = MatchGroups::of(&matching.labels, &lhs, rhs);
    let presence = Presence::of(rhs, &groups.second, groups.keys.len(), ctx.steps.count);
    presence.restrict(&mut lhs, &groups.first, true);
    lhs
}

/// The left side where the right side has no match.
pub(super) fn unless(
    matching: &VectorMatching,
    mut lhs: Frame,
    rhs: &Frame,
    ctx: &Context,
) -> Frame {
    let groups = MatchGroups::of(&matching.labels, &lhs, rhs);
    let presence = Presence::of(rhs, &groups.second, groups.keys.len(), ctx.steps.count);
    presence.restrict(&mut lhs, &groups.first, false);
    lhs
}

/// The left side, and the right side where the left has no match.
pub(super) fn or(
    matching: &VectorMatching,
    mut lhs: Frame,
    mut rhs: Frame,
    ctx: &Context,
) -> Result<Frame, EvalError> {
    let groups = MatchGroups::of(&matching.labels, &lhs, &rhs);
    let presence = Presence::of(&lhs, &groups.first, groups.keys.len(), ctx.steps.count);
    presence.restrict(&mut rhs, &groups.second, false);
    lhs.rows.retain(Row::has_values);
    lhs.rows.append(&mut rhs.rows);
    // Equal labels match each other, so at a single step no two of them are left.
    let rows = if ctx.steps.count == 1 { lhs.rows } else { merged(lhs.rows)? };
    Ok(Frame { rows })
}

/// When each group has a series on one side.
struct Presence {
    /// None where the side never has any.
    groups: Vec<Option<StepSet>>,
}

impl Presence {
    fn of(side: &Frame, group_of_row: &[usize], groups: usize, steps: usize) -> Self {
        let mut presence = vec![None; groups];
        for (row, group) in side.rows.iter().zip(group_of_row) {
            let set = presence[*group].get_or_insert_with(|| StepSet::none(steps));
            set.insert_present(&row.values);
        }
        Self { groups: presence }
    }

    /// Keeps of the other side what has a match, or what has none. Rows without a value go.
    fn restrict(&self, side: &mut Frame, group_of_row: &[usize], wanted: bool) {
        let mut groups = group_of_row.iter();
        side.rows.retain_mut(|row| {
            let group = *groups.next().expect("every row has its group");
            let Some(present) = &self.groups[group] else { return !wanted && row.has_values() };
            for (step, value) in row.values.iter_mut().enumerate() {
                if present.contains(step) != wanted {
                    *value = ABSENT;
                }
            }
            Row::has_values(row)
        });
    }
}
