//! Sums without rounding errors: whatever the order and however the terms were cut into parts, the
//! result is the exact sum, rounded once.
//!
//! Almost always two numbers are enough: `hi + lo` is the exact sum so far, `hi` its rounding. When
//! a term's bits do not fit into them any more, the sum goes on in a [`Wide`], a fixed-point number
//! as wide as all doubles together. Infinities and NaN behave as in ordinary addition.

mod wire;

use std::cmp::Ordering;

/// An exact sum of doubles.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    hi: f64,
    lo: f64,
    /// Takes over when `hi + lo` can't hold the sum; `hi` and `lo` are then zero.
    wide: Option<Box<Wide>>,
}

/// Adds two doubles: their rounded sum, and what the rounding took away. Exact for all finite terms
/// whose sum does not overflow.
#[inline]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// Multiplies two doubles: their rounded product, and what the rounding took away. Exact unless the
/// product overflows or its low part underflows.
#[inline]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl ExactSum {
    /// Adds a term.
    #[inline]
    pub fn add(&mut self, term: f64) {
        if self.wide.is_none() {
            let (sum, low) = two_sum(self.hi, term);
            let (low, lost) = two_sum(self.lo, low);
            // A sum that is not finite makes `lost` NaN: it takes the other way, too.
            if lost == 0.0 {
                (self.hi, self.lo) = two_sum(sum, low);
                return;
            }
        }
        self.add_wide(term);
    }

    #[cold]
    fn add_wide(&mut self, term: f64) {
        let wide = self.wide.get_or_insert_with(|| {
            let mut wide = Box::<Wide>::default();
            wide.add(std::mem::take(&mut self.hi));
            wide.add(std::mem::take(&mut self.lo));
            wide
        });
        wide.add(term);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        match &other.wide {
            None => {
                self.add(other.hi);
                self.add(other.lo);
            }
            Some(theirs) => {
                self.add_wide(0.0);
                if let Some(mine) = &mut self.wide {
                    mine.merge(theirs);
                }
            }
        }
    }

    /// The sum, rounded once, to the nearest double, ties to even.
    pub fn value(&self) -> f64 {
        match &self.wide {
            None => self.hi,
            Some(wide) => wide.value(),
        }
    }

    /// Doubles whose exact sum this is: two of them, or a few more where two are not enough. What
    /// is not finite is one.
    pub fn parts(&self) -> impl Iterator<Item = f64> {
        match &self.wide {
            None => vec![self.hi, self.lo],
            Some(wide) => wide.parts(),
        }
        .into_iter()
    }

    /// The sum times a power of two. Exact, but for what becomes too small for a double.
    pub fn scaled(&self, power: f64) -> Self {
        let mut scaled = Self::default();
        self.parts().for_each(|part| scaled.add(part * power));
        scaled
    }

    /// The sum divided by a count: the mean of its terms, finite even where the sum is too large
    /// for a double.
    pub fn mean(&self, count: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let count = count as f64;
        let value = self.value();
        match &self.wide {
            Some(wide) if value.is_infinite() && !wide.special() => {
                wide.scaled_down(64) / count * 2f64.powi(64)
            }
            _ => value / count,
        }
    }
}

/// Bits in one limb of a [`Wide`]; the rest of the word is room for carries.
const LIMB_BITS: u32 = 32;
/// Limbs for every bit from the smallest denormal (2^-1074) to the largest double (2^1024), and
/// room for the sum of 2^62 of them.
const LIMBS: usize = 68;
/// How many terms may be added before carries must be taken.
const ADDS_MAX: u32 = 1 << 29;

/// A fixed-point number as wide as all doubles: bit 0 of limb 0 is 2^-1074.
#[derive(Clone, Debug)]
pub struct Wide {
    limbs: [i64; LIMBS],
    adds: u32,
    plus_infinities: u64,
    minus_infinities: u64,
    nans: u64,
}

impl Default for Wide {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], adds: 0, plus_infinities: 0, minus_infinities: 0, nans: 0 }
    }
}

impl Wide {
    /// Adds a term.
    pub fn add(&mut self, term: f64) {
        if !term.is_finite() {
            self.nans += u64::from(term.is_nan());
            self.plus_infinities += u64::from(term == f64::INFINITY);
            self.minus_infinities += u64::from(term == f64::NEG_INFINITY);
            return;
        }
        let bits = term.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as u32;
        let fraction = bits & ((1 << 52) - 1);
        // A denormal has no hidden bit, and the exponent of the smallest normal number.
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let shift = exponent.max(1) - 1;
        let limb = (shift / LIMB_BITS) as usize;
        let wide = u128::from(mantissa) << (shift % LIMB_BITS);
        for (i, part) in [wide, wide >> 32, wide >> 64].into_iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
            let part = i64::from(part as u32);
            self.limbs[limb + i] += if term.is_sign_negative() { -part } else { part };
        }
        self.adds += 1;
        if self.adds >= ADDS_MAX {
            self.carry();
        }
    }

    /// Adds another number.
    pub fn merge(&mut self, other: &Self) {
        self.carry();
        let mut other = other.clone();
        other.carry();
        for (mine, theirs) in self.limbs.iter_mut().zip(other.limbs) {
            *mine += theirs;
        }
        self.adds = 2;
        self.plus_infinities += other.plus_infinities;
        self.minus_infinities += other.minus_infinities;
        self.nans += other.nans;
    }

    /// Takes carries, so that every limb but the last is between 0 and 2^32.
    fn carry(&mut self) {
        for i in 0..LIMBS - 1 {
            let carry = self.limbs[i] >> LIMB_BITS;
            self.limbs[i] -= carry << LIMB_BITS;
            self.limbs[i + 1] += carry;
        }
        self.adds = 0;
    }

    /// Whether a term was infinite or NaN.
    fn special(&self) -> bool {
        self.plus_infinities + self.minus_infinities + self.nans > 0
    }

    /// The number, rounded to the nearest double, ties to even.
    pub fn value(&self) -> f64 {
        self.scaled_down(0)
    }

    /// Doubles whose exact sum this is, largest first.
    fn parts(&self) -> Vec<f64> {
        let mut rest = self.clone();
        let mut parts = Vec::new();
        loop {
            let part = rest.value();
            parts.push(part);
            if part == 0.0 || !part.is_finite() {
                return parts;
            }
            rest.add(-part);
        }
    }

    /// The number times 2^-`halvings`, rounded to the nearest double, ties to even.
    fn scaled_down(&self, halvings: i32) -> f64 {
        match (self.plus_infinities > 0, self.minus_infinities > 0, self.nans > 0) {
            (_, _, true) | (true, true, _) => return f64::NAN,
            (true, false, false) => return f64::INFINITY,
            (false, true, false) => return f64::NEG_INFINITY,
            (false, false, false) => {}
        }
        let mut number = self.clone();
        number.carry();
        let negative = number.limbs[LIMBS - 1] < 0;
        if negative {
            number.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            number.carry();
        }
        let magnitude = number.round(halvings);
        if negative { -magnitude } else { magnitude }
    }

    /// Rounds a number that is not negative and whose carries were taken.
    fn round(&self, halvings: i32) -> f64 {
        let Some(top) = self.limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        // The top 96 bits, of which at least 65 count, and whether anything is below them.
        let limb = |i: usize| u128::from(self.limbs[i].unsigned_abs());
        let below = |n: usize| if top >= n { limb(top - n) } else { 0 };
        let mut head = limb(top) << 64 | below(1) << 32 | below(2);
        let tail = top >= 3 && self.limbs[..top - 2].iter().any(|limb| *limb != 0);
        // 2^exponent is the weight of the lowest bit of the head.
        #[expect(clippy::cast_possible_wrap, clippy::cast_possible_truncation, reason = "below 68")]
        let mut exponent = (top as i32 - 2) * LIMB_BITS as i32 - 1074;
        // A sticky bit below the head stands for the tail.
        head = head << 1 | u128::from(tail);
        exponent -= 1;
        scale(head, exponent - halvings)
    }
}

/// `head` · 2^`exponent`, rounded to the nearest double, ties to even.
fn scale(head: u128, exponent: i32) -> f64 {
    let bits = 128 - head.leading_zeros() as i32;
    // How many low bits must go: all but 53, and more where the result is a denormal.
    let lowest = (bits + exponent - 53).max(-1074);
    let drop = lowest - exponent;
    let mantissa = match drop.cmp(&0) {
        Ordering::Less | Ordering::Equal => head << -drop,
        Ordering::Greater if drop > 127 => 0,
        Ordering::Greater => {
            let kept = head >> drop;
            let rest = head & ((1 << drop) - 1);
            let half = 1_u128 << (drop - 1);
            match rest.cmp(&half) {
                Ordering::Less => kept,
                Ordering::Equal => kept + (kept & 1),
                Ordering::Greater => kept + 1,
            }
        }
    };
    // At most 2^53: exact as a double, and so are the powers of two.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
    let mantissa = mantissa as f64;
    let half = lowest / 2;
    mantissa * 2f64.powi(half) * 2f64.powi(lowest - half)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(terms: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        terms.iter().for_each(|term| sum.add(*term));
        sum.value()
    }

    fn wide(terms: &[f64]) -> f64 {
        let mut sum = Wide::default();
        terms.iter().for_each(|term| sum.add(*term));
        sum.value()
    }

    #[test]
    fn what_ordinary_addition_loses_is_kept() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[1e308, 1e308, -1e308]), 1e308);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::from_bits(1), -f64::MAX]), f64::from_bits(1));
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, f64::from_bits(1)]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[]), 0.0);
    }

    #[test]
    fn infinities_and_nan_behave_as_in_addition() {
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(sum(&[1.0, f64::NEG_INFINITY, 2.0]), f64::NEG_INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[1.0, f64::NAN, f64::INFINITY]).is_nan());
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    }

    #[test]
    fn a_mean_is_finite_where_the_sum_is_not() {
        let mut sum = ExactSum::default();
        (0..3).for_each(|_| sum.add(f64::MAX));
        assert_eq!(sum.mean(3), f64::MAX);
        assert_eq!(sum.value(), f64::INFINITY);
        sum.add(f64::INFINITY);
        assert_eq!(sum.mean(4), f64::INFINITY);
    }

    #[test]
    fn every_single_double_is_its_own_sum() {
        for bits in (0..0x7ff0_0000_0000_0000_u64).step_by(0x0003_1234_5678_9abc) {
            let number = f64::from_bits(bits);
            assert_eq!(wide(&[number]).to_bits(), bits);
            assert_eq!(wide(&[-number]), -number);
        }
    }

    /// Numbers with few bits at very different places: sums of them lie near rounding borders.
    fn spiky() -> impl Strategy<Value = f64> {
        (any::<bool>(), -1074..1023_i32, 0..8_u8).prop_map(|(minus, power, bits)| {
            let number = f64::from(bits) * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
            if minus { -number } else { number }
        })
    }

    proptest! {
        #[test]
        fn order_and_cut_do_not_matter(
            terms in prop::collection::vec(prop_oneof![any::<f64>(), spiky(), -1e6..1e6], 0..40),
            cut in 0..40_usize,
        ) {
            let expected = wide(&terms);
            let mut reversed = terms.clone();
            reversed.reverse();
            let (left, right) = terms.split_at(cut.min(terms.len()));
            let mut merged = ExactSum::default();
            for part in [right, left] {
                let mut sum = ExactSum::default();
                part.iter().for_each(|term| sum.add(*term));
                merged.merge(&sum);
            }
            for value in [sum(&terms), sum(&reversed), merged.value()] {
                prop_assert!(
                    value == expected || (value.is_nan() && expected.is_nan()),
                    "{value:e} is not {expected:e}"
                );
            }
        }

        #[test]
        fn integers_sum_as_integers(terms in prop::collection::vec(-(1_i64 << 52)..1 << 52, 0..100)) {
            let exact: i128 = terms.iter().map(|term| i128::from(*term)).sum();
            let terms: Vec<f64> = terms.iter().map(|term| *term as f64).collect();
            prop_assert_eq!(sum(&terms), exact as f64);
        }
    }
}
