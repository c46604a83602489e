//! A set of series as bits: joining and cutting sets costs one bit a series and touches no list.

use std::ops::Range;

/// A set of numbers below a fixed size.
pub(super) struct Bits {
    words: Vec<u64>,
}

fn place(number: u32) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

impl Bits {
    /// No numbers below `size`.
    pub(super) fn none(size: u32) -> Self {
        Self { words: vec![0; size.div_ceil(64) as usize] }
    }

    /// Adds a range of numbers.
    pub(super) fn add_range(&mut self, range: Range<u32>) {
        // Whole words in between are set at once.
        let (first, last) = (range.start.next_multiple_of(64), range.end / 64 * 64);
        if first >= last {
            range.for_each(|number| self.add(number));
            return;
        }
        (range.start..first).chain(last..range.end).for_each(|number| self.add(number));
        self.words[(first / 64) as usize..(last / 64) as usize].fill(u64::MAX);
    }

    /// Adds numbers.
    pub(super) fn add_all(&mut self, numbers: &[u32]) {
        numbers.iter().for_each(|number| self.add(*number));
    }

    fn add(&mut self, number: u32) {
        let (word, bit) = place(number);
        self.words[word] |= bit;
    }

    /// Keeps only what the other set has too.
    pub(super) fn retain(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Removes what the other set has.
    pub(super) fn remove(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// True where no number is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The numbers in rising order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip((0..).step_by(64)).flat_map(|(word, base)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.checked_sub(1)?;
                Some(base + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_as_a_set(
            start in 0_u32..300,
            len in 0_u32..300,
            more in prop::collection::btree_set(0_u32..600, 0..20),
        ) {
            let more: Vec<u32> = more.into_iter().collect();
            let mut bits = Bits::none(600);
            bits.add_range(start..start + len);
            let range: BTreeSet<u32> = (start..start + len).collect();
            prop_assert!(bits.iter().eq(range.iter().copied()));
            prop_assert_eq!(bits.is_empty(), len == 0);
            let mut other = Bits::none(600);
            other.add_all(&more);
            let listed: BTreeSet<u32> = more.iter().copied().collect();
            let mut both = Bits::none(600);
            both.add_range(start..start + len);
            both.retain(&other);
            prop_assert!(both.iter().eq(range.intersection(&listed).copied()));
            bits.remove(&other);
            prop_assert!(bits.iter().eq(range.difference(&listed).copied()));
        }
    }
}
