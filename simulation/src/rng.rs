//! Chance made from numbers. A draw belongs to a lane and a number within it, so that taking one
//! event out of a story leaves the luck of all the others as it was.

/// Spreads every bit of `x` over the whole word (the finaliser of splitmix64).
pub(crate) fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The draw with this number in this lane of this seed.
pub(crate) fn draw(seed: u64, lane: Lane, number: u64) -> u64 {
    mix(mix(seed ^ lane.word()).wrapping_add(number))
}

/// Brings a draw into `from..=to`.
pub(crate) fn within(draw: u64, from: u64, to: u64) -> u64 {
    let span = u128::from(to.saturating_sub(from)) + 1;
    let share = (u128::from(draw) * span) >> 64;
    from + u64::try_from(share).expect("a share of a span below 2^64 fits")
}

/// True for so many of a thousand draws.
pub(crate) fn chance(draw: u64, per_mille: u64) -> bool {
    within(draw, 0, 999) < per_mille
}

/// What a draw is for; `index` tells the links, nodes or queries of one purpose apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    purpose: Purpose,
    index: u32,
}

/// The purposes chance serves in a running world.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Delay = 1,
    Clock,
    Timer,
    RunEnding,
    StopTime,
    Fetch,
    Discovery,
    Restart,
    Lie,
    Eviction,
    Late,
    Machine,
    Resume,
}

impl Lane {
    pub(crate) fn new(purpose: Purpose, index: usize) -> Self {
        Self { purpose, index: u32::try_from(index).unwrap_or(u32::MAX) }
    }

    fn word(self) -> u64 {
        (self.purpose as u64) << 56 ^ u64::from(self.index).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }
}

/// A stream of draws, for writing a story.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// Dice of their own for one part of a story: how often they are thrown disturbs no other part.
    pub(crate) fn branch(&self, part: u64) -> Self {
        Self { state: mix(self.state ^ mix(part)) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number of `from..=to`.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        within(self.next(), from, to)
    }

    /// A small number of `from..=to`.
    pub(crate) fn small(&mut self, from: u32, to: u32) -> u32 {
        u32::try_from(self.within(from.into(), to.into())).expect("the bounds are small")
    }

    /// An index below `len`, which must not be zero.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let last = u64::try_from(len).expect("a length fits").saturating_sub(1);
        usize::try_from(self.within(0, last)).expect("it is below a length")
    }

    /// True in so many of a thousand throws.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        chance(self.next(), per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_throw_gives_the_same_number_and_another_lane_another() {
        let lane = |index| Lane::new(Purpose::Delay, index);
        assert_eq!(draw(1, lane(2), 3), draw(1, lane(2), 3));
        let others = [draw(2, lane(2), 3), draw(1, lane(3), 3), draw(1, lane(2), 4)];
        assert!(others.iter().all(|other| *other != draw(1, lane(2), 3)));
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut dice = Dice::new(7);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[dice.index(5)] = true;
            assert!((3..=9).contains(&dice.within(3, 9)));
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(within(u64::MAX, 0, u64::MAX), u64::MAX);
        assert_eq!(within(0, 4, 4), 4);
        assert!(!chance(u64::MAX, 999) && chance(u64::MAX, 1_000) && !chance(0, 0));
    }
}
