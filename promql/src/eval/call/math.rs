//! Functions of one value, and of a value and scalars.

use super::unnamed;
use crate::eval::{Context, EvalError};
use crate::frame::{Frame, present};
use crate::window::{ABSENT, is_absent};

/// Values from here on are so large that their square swallows a one.
const LARGE: f64 = 268_435_456.0;

/// The function of that name, if it is one of a single value.
pub(super) fn of_one_value(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "acosh" => acosh,
        "asin" => f64::asin,
        "asinh" => asinh,
        "atan" => f64::atan,
        "atanh" => f64::atanh,
        "ceil" => f64::ceil,
        "cos" => f64::cos,
        "cosh" => f64::cosh,
        "deg" => |radians| radians * 180.0 / std::f64::consts::PI,
        "exp" => f64::exp,
        "floor" => f64::floor,
        "ln" => f64::ln,
        "log10" => f64::log10,
        "log2" => f64::log2,
        "rad" => |degrees| degrees * std::f64::consts::PI / 180.0,
        "sgn" => sign,
        "sin" => f64::sin,
        "sinh" => f64::sinh,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        _ => return None,
    })
}

/// The standard library's is infinite for the largest values and coarse just above one.
fn acosh(value: f64) -> f64 {
    if value >= LARGE {
        return value.ln() + std::f64::consts::LN_2;
    }
    if value < 1.0 {
        // The root below is real for negative values, too.
        return f64::NAN;
    }
    let above = value - 1.0;
    (above + (above * (above + 2.0)).sqrt()).ln_1p()
}

/// The standard library's is infinite for the largest values.
fn asinh(value: f64) -> f64 {
    if value.abs() >= LARGE {
        return (value.abs().ln() + std::f64::consts::LN_2).copysign(value);
    }
    value.asinh()
}

fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if value > 0.0 {
        1.0
    } else {
        value
    }
}

/// The larger of two; NaN if one is, unless the other is infinite and so cannot be outdone.
pub(super) fn max(one: f64, other: f64) -> f64 {
    if one == f64::INFINITY || other == f64::INFINITY {
        f64::INFINITY
    } else if one.is_nan() || other.is_nan() {
        f64::NAN
    } else if one == other {
        // The two zeros are equal, and the positive one is larger.
        if one.is_sign_negative() { other } else { one }
    } else if one > other {
        one
    } else {
        other
    }
}

/// The smaller of two; NaN if one is, unless the other is infinite and so cannot be outdone.
pub(super) fn min(one: f64, other: f64) -> f64 {
    -max(-one, -other)
}

/// A function of two scalars, step by step.
pub(super) fn of_both(one: Vec<f64>, other: Vec<f64>, function: fn(f64, f64) -> f64) -> Vec<f64> {
    one.into_iter().zip(other).map(|(one, other)| present(function(one, other))).collect()
}

/// `clamp`, which has no result at steps where the bounds exclude each other.
pub(super) fn clamp(
    mut frame: Frame,
    lowest: &[f64],
    highest: &[f64],
    ctx: &Context,
) -> Result<Frame, EvalError> {
    for row in &mut frame.rows {
        for (value, (lowest, highest)) in row.values.iter_mut().zip(lowest.iter().zip(highest)) {
            if highest < lowest {
                *value = ABSENT;
            } else if !is_absent(*value) {
                *value = present(max(*lowest, min(*highest, *value)));
            }
        }
    }
    unnamed(frame, ctx)
}

/// `round`: to the nearest multiple, up where two are equally near.
pub(super) fn round(
    mut frame: Frame,
    nearest: Option<&[f64]>,
    ctx: &Context,
) -> Result<Frame, EvalError> {
    let whole = [1.0];
    // Multiplying by the inverse loses less than dividing does.
    let inverses: Vec<f64> =
        nearest.unwrap_or(&whole).iter().map(|nearest| 1.0 / nearest).collect();
    for row in &mut frame.rows {
        for (value, inverse) in row.values.iter_mut().zip(inverses.iter().cycle()) {
            if !is_absent(*value) {
                *value = present((*value * inverse + 0.5).floor() / inverse);
            }
        }
    }
    unnamed(frame, ctx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_and_the_smaller_of_two_treat_zeros_and_nan_as_prometheus_does() {
        assert_eq!(max(5.0, 3.0), 5.0);
        assert!(max(0.0, -0.0).is_sign_positive() && max(-0.0, 0.0).is_sign_positive());
        assert!(min(0.0, -0.0).is_sign_negative() && min(-0.0, 0.0).is_sign_negative());
        assert!(max(f64::NAN, 3.0).is_nan() && min(3.0, f64::NAN).is_nan());
        assert!(max(f64::NAN, f64::NEG_INFINITY).is_nan());
        assert_eq!(max(f64::NAN, f64::INFINITY), f64::INFINITY);
        assert_eq!(min(f64::NEG_INFINITY, f64::NAN), f64::NEG_INFINITY);
    }

    #[test]
    fn inverse_hyperbolic_functions_hold_from_end_to_end() {
        assert_eq!(acosh(1.0), 0.0);
        assert!(acosh(0.5).is_nan() && acosh(f64::NAN).is_nan() && acosh(-1e17).is_nan());
        assert!((acosh(10.0) - 2.993_222_846_126_381).abs() < 1e-15);
        assert!((acosh(20.0) - 3.688_253_867_361_296_6).abs() < 1e-15);
        assert!((acosh(f64::MAX) - 710.475_860_073_944).abs() < 1e-9);
        assert!((asinh(-f64::MAX) + 710.475_860_073_944).abs() < 1e-9);
        assert_eq!(acosh(f64::INFINITY), f64::INFINITY);
        for value in [LARGE * 0.999_999, LARGE] {
            assert!((value.asinh() / asinh(value) - 1.0).abs() < 1e-15);
            assert!((value.acosh() / acosh(value) - 1.0).abs() < 1e-15);
        }
    }
}
