//! A set of steps, one bit for each.

use crate::window::is_absent;

/// Some of the steps of a query.
#[derive(Clone, Debug)]
pub(super) struct StepSet {
    words: Vec<u64>,
}

impl StepSet {
    /// None of so many steps.
    pub(super) fn none(steps: usize) -> Self {
        Self { words: vec![0; steps.div_ceil(64)] }
    }

    /// Adds a step; false if it was there already.
    #[inline]
    pub(super) fn insert(&mut self, step: usize) -> bool {
        let word = &mut self.words[step / 64];
        let bit = 1 << (step % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Adds the steps at which there is a value.
    pub(super) fn insert_present(&mut self, values: &[f64]) {
        for (word, values) in self.words.iter_mut().zip(values.chunks(64)) {
            for (bit, value) in values.iter().enumerate() {
                *word |= u64::from(!is_absent(*value)) << bit;
            }
        }
    }

    /// Whether a step is among them.
    #[inline]
    pub(super) fn contains(&self, step: usize) -> bool {
        self.words[step / 64] >> (step % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::ABSENT;

    #[test]
    fn a_set_remembers_its_steps_beyond_one_word() {
        let mut set = StepSet::none(130);
        assert!(set.insert(129));
        assert!(!set.insert(129));
        let mut values = vec![ABSENT; 130];
        values[64] = f64::NAN;
        set.insert_present(&values);
        let members: Vec<usize> = (0..130).filter(|step| set.contains(*step)).collect();
        assert_eq!(members, [64, 129]);
    }
}
