//! Chance, from a seed: the same seed draws the same faults, queries and pauses. When processes run
//! for real, what comes of them is not the same to the millisecond; what is done to them is.

use std::ops::Range;
use std::time::Duration;

/// Numbers that look random (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The dice of a seed.
    pub fn of(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Dice of their own for somebody else, so that neither disturbs the other's draws.
    pub fn fork(&mut self, purpose: u64) -> Self {
        Self(self.roll() ^ purpose.wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of a range, which must not be empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.roll() % (range.end - range.start)
    }

    /// A number below this one, which must not be zero.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit as u64).unwrap_or(0)
    }

    /// Whether something happens that happens so many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }

    /// A time between these, in milliseconds.
    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// One of these, of which there must be one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Puts them into any order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_draws_the_same() {
        let draw = |seed| {
            let mut dice = Dice::of(seed);
            let mut order: Vec<u32> = (0..20).collect();
            dice.shuffle(&mut order);
            (order, dice.millis(5..10), dice.fork(1).roll())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let (mut order, time, _) = draw(7);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..20));
        assert!((5..10).contains(&time.as_millis()));
    }
}
