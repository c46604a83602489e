//! States of groups as columns and bytes.

use super::{Group, Groups, Reduction, State};
use crate::bytes::{BadState, Reader};
use crate::deviation::Deviation;
use crate::exact::ExactSum;
use crate::labels::Labels;

/// The state of a group at a step, in columns; what does not fit into them is bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateColumns {
    /// An extreme, or a sum rounded.
    pub value: f64,
    /// What rounding took from the sum.
    pub low: f64,
    /// How many values.
    pub count: u64,
    /// The state where columns are not enough.
    pub bytes: Option<Vec<u8>>,
}

impl Groups {
    /// Every group by labels: whether its name goes, and its state at every step that has one.
    pub fn columns(&self) -> impl Iterator<Item = GroupColumns<'_>> {
        self.groups.iter().map(|(labels, group)| {
            let states = group.states.iter().enumerate().filter(|(_, state)| state.is_there());
            let states = states.map(|(step, state)| (step, state.columns())).collect();
            GroupColumns { labels, drop_name: group.drop_name, states }
        })
    }

    /// Sets the state of a group at a step.
    pub fn set(
        &mut self,
        labels: &Labels,
        drop_name: bool,
        step: usize,
        columns: &StateColumns,
    ) -> Result<(), BadState> {
        let reduction = self.reduction;
        let state = State::of_columns(reduction, columns)?;
        if !state.is_there() {
            return Err(BadState);
        }
        let group: &mut Group = self.group(labels.clone());
        group.drop_name |= drop_name;
        let place = group.states.get_mut(step).ok_or(BadState)?;
        *place = state;
        Ok(())
    }
}

/// A group and its states.
#[derive(Clone, Debug)]
pub struct GroupColumns<'a> {
    /// The group's labels.
    pub labels: &'a Labels,
    /// The metric's name goes at the end.
    pub drop_name: bool,
    /// The states, by step.
    pub states: Vec<(usize, StateColumns)>,
}

impl State {
    fn columns(&self) -> StateColumns {
        let mut columns = StateColumns::default();
        match self {
            Self::Sum(sum, count) => {
                columns.count = *count;
                match sum.two() {
                    Some((hi, lo)) => (columns.value, columns.low) = (hi, lo),
                    None => {
                        let mut bytes = Vec::new();
                        sum.write(&mut bytes);
                        columns.bytes = Some(bytes);
                    }
                }
            }
            Self::Count(count) => columns.count = *count,
            Self::Extreme(value, _) => {
                columns.value = *value;
                columns.count = 1;
            }
            Self::Deviation(deviation) => {
                let mut bytes = Vec::new();
                deviation.write(&mut bytes);
                columns.count = deviation.count();
                columns.bytes = Some(bytes);
            }
        }
        columns
    }

    fn of_columns(reduction: Reduction, columns: &StateColumns) -> Result<Self, BadState> {
        let count = columns.count;
        if count == 0 || count >= 1 << 48 {
            return Err(BadState);
        }
        let bytes = columns.bytes.as_deref();
        Ok(match (Self::new(reduction), bytes) {
            (Self::Sum(..), None) => Self::Sum(ExactSum::of_two(columns.value, columns.low), count),
            (Self::Sum(..), Some(bytes)) => {
                let mut input = Reader::new(bytes);
                let sum = ExactSum::read(&mut input)?;
                input.end()?;
                Self::Sum(sum, count)
            }
            (Self::Count(_), None) => Self::Count(count),
            (Self::Extreme(..), None) => Self::Extreme(columns.value, true),
            (Self::Deviation(_), Some(bytes)) => {
                let mut input = Reader::new(bytes);
                let deviation = Deviation::read(&mut input)?;
                input.end()?;
                if deviation.count() != count {
                    return Err(BadState);
                }
                Self::Deviation(Box::new(deviation))
            }
            _ => return Err(BadState),
        })
    }
}
