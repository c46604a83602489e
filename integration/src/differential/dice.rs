//! Chance from a seed: the same seed throws the same dice on every machine, for ever. Knows nothing
//! of what is decided with them.

/// A stream of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice that are told apart by a seed and a purpose, so that one purpose's throws never shift
    /// another's.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut dice = Self { state: seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95) };
        dice.throw();
        dice
    }

    /// 64 random bits.
    pub fn throw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least one.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a usize has at most 64 bits");
        usize::try_from(self.throw() % bound).expect("the remainder is less than a usize")
    }

    /// A whole number of `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.throw() % high.abs_diff(low).saturating_add(1))
            .expect("the ranges asked for are far shorter than all numbers")
    }

    /// True `percent` times of a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A fraction of `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let bits = (self.throw() >> 11) as f64;
        bits / (1_u64 << 53) as f64
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of several by weight: the chance of each is its weight over the sum of all.
    pub fn weighted<T: Copy>(&mut self, of: &[(usize, T)]) -> T {
        let sum = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(sum);
        for (weight, choice) in of {
            if at < *weight {
                return *choice;
            }
            at -= weight;
        }
        unreachable!("the throw is below the sum of the weights")
    }

    /// Some of several, in their order, possibly none.
    pub fn some<'a, T>(&mut self, of: &'a [T], percent: usize) -> Vec<&'a T> {
        of.iter().filter(|_| self.percent(percent)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_throws_the_same_for_ever() {
        let mut dice = Dice::new(7, 1);
        let throws: Vec<_> = (0..4).map(|_| dice.below(1000)).collect();
        let mut again = Dice::new(7, 1);
        assert_eq!(throws, (0..4).map(|_| again.below(1000)).collect::<Vec<_>>());
        assert_ne!(throws, {
            let mut other = Dice::new(7, 2);
            (0..4).map(|_| other.below(1000)).collect::<Vec<_>>()
        });
    }

    #[test]
    fn every_side_comes_up() {
        let mut dice = Dice::new(1, 1);
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[dice.below(6)] += 1;
        }
        assert!(seen.iter().all(|count| (50..150).contains(count)), "{seen:?}");
        assert!((0..100).all(|_| (0.0..1.0).contains(&dice.fraction())));
        assert!((0..100).all(|_| (-3..=3).contains(&dice.between(-3, 3))));
        assert_eq!(dice.weighted(&[(0, 'a'), (1, 'b')]), 'b');
    }
}
