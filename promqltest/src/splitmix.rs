//! Numbers that look random and follow from a seed alone: splitmix64. Good enough to choose test
//! data, and the same on every machine.

/// A generator of numbers.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Starts from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next number below `limit`, which is at least one.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// One of the items of a list that is not empty.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len() as u64);
        &items[usize::try_from(at).expect("an index below the length of a list")]
    }

    /// Brings a list into an order of its own.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let at = self.below(end as u64 + 1);
            items.swap(end, usize::try_from(at).expect("an index below the length of a list"));
        }
    }
}

/// A number that depends on every bit of another.
pub const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // The first outputs for the seed 1234567, as published with the algorithm.
        let mut dice = SplitMix::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| dice.next()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        SplitMix::new(3).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
