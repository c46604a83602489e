//! What an operator does with two floats. Knows nothing of series and steps.

use crate::frame::present;
use crate::op::BinaryOp;
use crate::window::ABSENT;

/// An operator made ready for many pairs of floats.
#[derive(Clone, Copy, Debug)]
pub(super) enum Calculation {
    /// A new number.
    Number(fn(f64, f64) -> f64),
    /// A value passes or is gone.
    Filter(fn(f64, f64) -> bool),
    /// 1 or 0.
    Answer(fn(f64, f64) -> bool),
}

impl Calculation {
    /// The calculation of an operator; none for those that do nothing with two floats: the set
    /// operators, and those that trim histograms.
    pub(super) fn of(op: BinaryOp, return_bool: bool) -> Option<Self> {
        let comparison = |test| if return_bool { Self::Answer(test) } else { Self::Filter(test) };
        Some(match op {
            BinaryOp::Add => Self::Number(|left, right| left + right),
            BinaryOp::Sub => Self::Number(|left, right| left - right),
            BinaryOp::Mul => Self::Number(|left, right| left * right),
            BinaryOp::Div => Self::Number(|left, right| left / right),
            // The sign is that of the dividend; what has no remainder is NaN.
            BinaryOp::Mod => Self::Number(|left, right| left % right),
            BinaryOp::Pow => Self::Number(power),
            BinaryOp::Atan2 => Self::Number(f64::atan2),
            BinaryOp::Equal => comparison(|left, right| left == right),
            BinaryOp::NotEqual => comparison(|left, right| left != right),
            BinaryOp::Less => comparison(|left, right| left < right),
            BinaryOp::LessOrEqual => comparison(|left, right| left <= right),
            BinaryOp::Greater => comparison(|left, right| left > right),
            BinaryOp::GreaterOrEqual => comparison(|left, right| left >= right),
            BinaryOp::TrimUpper
            | BinaryOp::TrimLower
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Unless => return None,
        })
    }

    /// The result for two floats; a filter keeps the left one. Nothing passed it: `ABSENT`.
    #[inline]
    pub(super) fn apply(self, left: f64, right: f64) -> f64 {
        self.apply_keeping(left, right, left)
    }

    /// The result for two floats, where a filter keeps the one given.
    #[inline]
    pub(super) fn apply_keeping(self, left: f64, right: f64, kept: f64) -> f64 {
        match self {
            Self::Number(function) => present(function(left, right)),
            Self::Filter(test) if test(left, right) => present(kept),
            Self::Filter(_) => ABSENT,
            Self::Answer(test) => f64::from(u8::from(test(left, right))),
        }
    }

    /// Whether the result means something else than the operand did, so that its metric's name no
    /// longer fits.
    pub(super) const fn changes_meaning(self) -> bool {
        !matches!(self, Self::Filter(_))
    }
}

/// A power. Square roots are the correctly rounded ones, as Prometheus has them.
fn power(base: f64, exponent: f64) -> f64 {
    if base > 0.0 && exponent == 0.5 {
        base.sqrt()
    } else if base > 0.0 && exponent == -0.5 {
        1.0 / base.sqrt()
    } else {
        base.powf(exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::is_absent;

    const INF: f64 = f64::INFINITY;

    fn of(left: f64, op: BinaryOp, right: f64) -> f64 {
        Calculation::of(op, false).unwrap().apply(left, right)
    }

    #[test]
    fn powers_of_the_unusual_are_those_of_prometheus() {
        let pow = |base, exponent| of(base, BinaryOp::Pow, exponent);
        assert_eq!(pow(f64::NAN, 0.0), 1.0);
        assert_eq!(pow(f64::NAN, -0.0), 1.0);
        assert_eq!(pow(1.0, f64::NAN), 1.0);
        assert!(pow(f64::NAN, 1.0).is_nan());
        assert!(pow(2.0, f64::NAN).is_nan());
        assert_eq!(pow(-0.0, -3.0), -INF);
        assert_eq!(pow(0.0, -3.0), INF);
        assert_eq!(pow(-0.0, -2.0), INF);
        assert_eq!(pow(-0.0, -INF), INF);
        assert_eq!(pow(-0.0, INF).to_bits(), 0.0_f64.to_bits());
        assert_eq!(pow(-0.0, 3.0).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(pow(-0.0, 0.5).to_bits(), 0.0_f64.to_bits());
        assert_eq!(pow(-1.0, INF), 1.0);
        assert_eq!(pow(-1.0, -INF), 1.0);
        assert_eq!(pow(-2.0, INF), INF);
        assert_eq!(pow(0.5, -INF), INF);
        assert_eq!(pow(0.5, INF), 0.0);
        assert_eq!(pow(-INF, 3.0), -INF);
        assert_eq!(pow(-INF, 0.5), INF);
        assert_eq!(pow(-INF, -0.5), 0.0);
        assert_eq!(pow(-INF, -3.0).to_bits(), (-0.0_f64).to_bits());
        assert!(pow(-8.0, 1.0 / 3.0).is_nan());
        assert!(pow(-4.0, 0.5).is_nan());
        assert_eq!(pow(INF, 0.5), INF);
        assert_eq!(pow(2.0, 0.5), std::f64::consts::SQRT_2);
        assert_eq!(pow(4.0, -0.5), 0.5);
    }

    #[test]
    fn remainders_have_the_sign_of_the_dividend() {
        let modulo = |left, right| of(left, BinaryOp::Mod, right);
        assert_eq!(modulo(-7.0, 3.0), -1.0);
        assert_eq!(modulo(7.0, -3.0), 1.0);
        assert_eq!(modulo(-6.0, 3.0).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(modulo(5.0, INF), 5.0);
        assert!(modulo(INF, 5.0).is_nan());
        assert!(modulo(5.0, 0.0).is_nan());
        assert!(modulo(f64::NAN, 5.0).is_nan());
    }

    #[test]
    fn angles_know_their_quadrant_and_the_sign_of_zero() {
        use std::f64::consts::PI;
        let atan2 = |left, right| of(left, BinaryOp::Atan2, right);
        assert_eq!(atan2(0.0, -1.0), PI);
        assert_eq!(atan2(-0.0, -1.0), -PI);
        assert_eq!(atan2(-0.0, 0.0).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(atan2(INF, -INF), 3.0 * PI / 4.0);
        assert!(atan2(f64::NAN, 0.0).is_nan());
    }

    #[test]
    fn nan_passes_only_the_test_for_being_different() {
        assert!(is_absent(of(f64::NAN, BinaryOp::Equal, f64::NAN)));
        assert!(is_absent(of(f64::NAN, BinaryOp::LessOrEqual, f64::NAN)));
        let kept = of(f64::NAN, BinaryOp::NotEqual, f64::NAN);
        assert!(kept.is_nan() && !is_absent(kept));
    }

    #[test]
    fn a_result_with_the_bits_of_absence_is_an_ordinary_nan() {
        let sum = of(ABSENT, BinaryOp::Add, 1.0);
        assert!(sum.is_nan() && !is_absent(sum));
        assert!(!is_absent(of(ABSENT, BinaryOp::NotEqual, 1.0)));
    }
}
