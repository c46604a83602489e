//! Variance of any number of terms in any order: count, exact sum and exact sum of squares.
//!
//! Squares of very large or very small terms leave the range of a double, so the sums are kept at
//! one of three scales, a power of two apart: the scale of the largest term so far. Scaling by a
//! power of two rounds nothing but what is hundreds of bits below the result.

mod wire;

use crate::exact::{ExactSum, two_product};

/// From one scale to the next. The square of the largest double at the upper scale leaves room for
/// the squared sum of millions of them.
const SCALE_BITS: i32 = 540;
/// Terms from here on need the upper scale. The squared sum of many smaller ones stays finite.
const LARGE: f64 = 1e140;
/// Terms below this need the lower scale.
const SMALL: f64 = 1e-130;

/// The state of a variance.
#[derive(Clone, Debug)]
pub struct Deviation {
    count: u64,
    sum: ExactSum,
    squares: ExactSum,
    scale: i32,
}

impl Default for Deviation {
    fn default() -> Self {
        let (sum, squares) = (ExactSum::default(), ExactSum::default());
        Self { count: 0, sum, squares, scale: -1 }
    }
}

fn scale_of(term: f64) -> i32 {
    match term.abs() {
        size if size >= LARGE => 1,
        size if size < SMALL => -1,
        _ => 0,
    }
}

fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

impl Deviation {
    /// Adds a term.
    pub fn add(&mut self, term: f64) {
        self.rescale(scale_of(term));
        self.count += 1;
        let term = term * power(-SCALE_BITS * self.scale);
        self.sum.add(term);
        let (square, rest) = two_product(term, term);
        self.squares.add(square);
        if square.is_finite() {
            self.squares.add(rest);
        }
    }

    /// Adds another state.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        self.rescale(other.scale);
        other.rescale(self.scale);
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
    }

    fn rescale(&mut self, scale: i32) {
        while self.scale < scale {
            self.sum = self.sum.scaled(power(-SCALE_BITS));
            self.squares = self.squares.scaled(power(-SCALE_BITS)).scaled(power(-SCALE_BITS));
            self.scale += 1;
        }
    }

    /// How many terms.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean of the squared distances from the mean.
    pub fn variance(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let n = self.count as f64;
        // n · Σx² − (Σx)², exactly: every product is two doubles without a rounding error.
        let mut difference = ExactSum::default();
        for part in self.squares.parts() {
            let (product, rest) = two_product(n, part);
            difference.add(product);
            difference.add(rest);
        }
        let parts: Vec<f64> = self.sum.parts().collect();
        for a in &parts {
            for b in &parts {
                let (product, rest) = two_product(*a, *b);
                difference.add(-product);
                difference.add(-rest);
            }
        }
        let factor = power(SCALE_BITS * self.scale);
        difference.value() / n / n * factor * factor
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_variance_of_the_largest_numbers_is_infinite_and_no_nan() {
        let mut state = Deviation::default();
        for term in [f64::MAX, 1.0, f64::MIN, f64::MAX] {
            state.add(term);
        }
        assert_eq!(state.variance(), f64::INFINITY);
        let mut state = Deviation::default();
        for term in [5e-324, 1.6875541936948713, -f64::MAX] {
            state.add(term);
        }
        assert_eq!(state.variance(), f64::INFINITY);
        let mut state = Deviation::default();
        for _ in 0..1_000_000 {
            state.add(9e139);
        }
        assert_eq!(state.variance(), 0.0);
    }

    fn variance(terms: &[f64]) -> f64 {
        let mut state = Deviation::default();
        terms.iter().for_each(|term| state.add(*term));
        state.variance()
    }

    #[test]
    fn known_variances() {
        assert_eq!(variance(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 4.0);
        assert_eq!(variance(&[7.0]), 0.0);
        assert_eq!(variance(&[0.1; 10]), 0.0, "equal terms have none, exactly");
        assert_eq!(variance(&[1e15 + 1.0, 1e15 + 3.0]), 1.0);
        assert_eq!(variance(&[1e200; 3]), 0.0);
        assert_eq!(variance(&[1e-200; 3]), 0.0);
        assert_eq!(variance(&[1e160, -1e160]), f64::INFINITY);
        let tiny = variance(&[1e-150, 3e-150]);
        assert!((tiny / 1e-300 - 1.0).abs() < 1e-12, "{tiny:e}");
        assert!(variance(&[1.0, f64::INFINITY]).is_nan());
        assert!(variance(&[1.0, f64::NAN]).is_nan());
    }

    proptest! {
        #[test]
        fn order_and_cut_do_not_matter(
            terms in prop::collection::vec(prop_oneof![-1e3..1e3, -1e200..1e200, -1e-140..1e-140], 1..30),
            cut in 0..30_usize,
        ) {
            let expected = variance(&terms);
            let mut reversed = terms.clone();
            reversed.reverse();
            prop_assert_eq!(variance(&reversed).to_bits(), expected.to_bits());
            let (left, right) = terms.split_at(cut.min(terms.len()));
            let mut merged = Deviation::default();
            for part in [right, left] {
                let mut state = Deviation::default();
                part.iter().for_each(|term| state.add(*term));
                merged.merge(&state);
            }
            prop_assert_eq!(merged.variance().to_bits(), expected.to_bits());
        }

        #[test]
        fn it_is_the_mean_squared_distance(terms in prop::collection::vec(-1e3..1e3, 1..30)) {
            let n = terms.len() as f64;
            let mean = terms.iter().sum::<f64>() / n;
            let expected = terms.iter().map(|term| (term - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((variance(&terms) - expected).abs() <= 1e-9 * expected.max(1e-9));
        }
    }
}
