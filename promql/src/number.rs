//! Numbers as text: what a number literal is worth, and how a float is printed. Follows Go's
//! `strconv`, by which Prometheus reads and prints numbers.

/// Why a text the lexer took for a number has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFault {
    /// It is no number after all.
    Syntax,
    /// It is beyond the largest float.
    Range,
}

impl NumberFault {
    /// The fault in the words of an error message.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Syntax => "invalid syntax",
            Self::Range => "value out of range",
        }
    }
}

/// The value of a number literal: decimal, octal with a leading zero, hexadecimal, float, `Inf` or
/// `NaN`, with underscores between digits.
pub(crate) fn parse_number(text: &str) -> Result<f64, NumberFault> {
    if text.eq_ignore_ascii_case("inf") {
        return Ok(f64::INFINITY);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    if text.contains('_') {
        if !underscores_separate_digits(text) {
            return Err(NumberFault::Syntax);
        }
        return parse_plain_number(&text.replace('_', ""));
    }
    parse_plain_number(text)
}

fn parse_plain_number(text: &str) -> Result<f64, NumberFault> {
    let whole = match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => i64::from_str_radix(&text[2..], 16),
        [b'0', _, ..] => i64::from_str_radix(&text[1..], 8),
        _ => text.parse(),
    };
    // What is no whole number of 64 bits gets a second chance as a float, octal digits and all.
    if let Ok(whole) = whole {
        return Ok(whole as f64);
    }
    let float: f64 = text.parse().map_err(|_| NumberFault::Syntax)?;
    if float.is_infinite() { Err(NumberFault::Range) } else { Ok(float) }
}

/// An underscore stands between two digits, or between a base prefix and a digit.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let is_digit = |byte: Option<&u8>| {
        byte.is_some_and(|b| b.is_ascii_digit() || (is_hex && b.is_ascii_hexdigit()))
    };
    (0..bytes.len()).filter(|at| bytes[*at] == b'_').all(|at| {
        let after_digit = at > 0 && (is_digit(bytes.get(at - 1)) || (is_hex && at == 2));
        after_digit && is_digit(bytes.get(at + 1))
    })
}

/// Prints a float in full, without an exponent.
pub(crate) fn in_full(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    // NaN prints as `NaN` either way.
    value.to_string()
}

/// Prints a float with as many digits as tell it apart from all others, and with an exponent where
/// it is below a ten-thousandth or a million and more.
pub(crate) fn in_short(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return in_full(value);
    };
    let exponent: i32 = exponent.parse().expect("the exponent was just printed");
    if value == 0.0 || (-4..6).contains(&exponent) {
        return in_full(value);
    }
    with_exponent(digits, exponent)
}

/// Prints a float with at most two digits that count.
pub(crate) fn in_two_digits(value: f64) -> String {
    let scientific = format!("{value:.1e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return in_full(value);
    };
    let exponent: i32 = exponent.parse().expect("the exponent was just printed");
    if (-4..2).contains(&exponent) {
        let rounded: f64 = scientific.parse().expect("it was just printed");
        return in_full(rounded);
    }
    with_exponent(digits.strip_suffix(".0").unwrap_or(digits), exponent)
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Prints a float as OpenMetrics writes bounds and quantiles: never like a whole number.
pub(crate) fn in_open_metrics(value: f64) -> String {
    if value == 0.0 {
        return "0.0".to_owned();
    }
    let text = in_short(value);
    let is_plain = value.is_finite() && !text.contains(['e', '.']);
    if is_plain { format!("{text}.0") } else { text }
}

/// The value of a whole text that is a float, as of a label. None for what is no float and for what
/// is beyond the largest one. Hexadecimal floats are left out.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let digits = text.contains(|char: char| char.is_ascii_digit());
    let signed_nan = value.is_nan() && text.len() > 3;
    if signed_nan || (value.is_infinite() && digits) { None } else { Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_every_form_have_their_value() {
        for (text, value) in [
            ("1", 1.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("5e-3", 0.005),
            ("0755", 493.0),
            ("08", 8.0),
            ("09.5", 9.5),
            ("0", 0.0),
            ("0xc", 12.0),
            ("0X_1f", 31.0),
            ("1_000", 1000.0),
            ("1_00.5_0e1_0", 100.5e10),
            ("0_17", 15.0),
            ("99999999999999999999", 1e20),
            ("9223372036854775807", 9_223_372_036_854_775_807.0),
            ("iNf", f64::INFINITY),
        ] {
            assert_eq!(parse_number(text), Ok(value), "{text}");
        }
        assert!(parse_number("NaN").is_ok_and(f64::is_nan));
    }

    #[test]
    fn what_the_lexer_lets_through_may_still_be_no_number() {
        for text in ["0x", "1e", "1e+", ".5.3", "0x1e+2", "0xffffffffffffffff", "1_.5", "1.e_3"] {
            assert_eq!(parse_number(text), Err(NumberFault::Syntax), "{text}");
        }
        assert_eq!(parse_number("1e309"), Err(NumberFault::Range));
    }

    #[test]
    fn floats_print_in_full_and_in_short() {
        assert_eq!(in_full(1e21), "1000000000000000000000");
        assert_eq!(in_full(1e-7), "0.0000001");
        assert_eq!(in_full(-0.0), "-0");
        assert_eq!(in_full(f64::INFINITY), "+Inf");
        assert_eq!(in_full(f64::NAN), "NaN");
        assert_eq!(in_short(1e21), "1e+21");
        assert_eq!(in_short(-1.5e-7), "-1.5e-07");
        assert_eq!(in_short(123_456.5), "123456.5");
        assert_eq!(in_short(999_999.0), "999999");
        assert_eq!(in_short(123_456_789.5), "1.234567895e+08");
        assert_eq!(in_short(1e6), "1e+06");
        assert_eq!(in_short(0.0001), "0.0001");
        assert_eq!(in_short(1e300), "1e+300");
        assert_eq!(in_short(f64::NEG_INFINITY), "-Inf");
        assert_eq!(in_short(0.0), "0");
    }
    #[test]
    fn two_digits_are_enough_for_a_difference() {
        for (value, text) in [
            (10.0, "10"),
            (100.0, "1e+02"),
            (1.0, "1"),
            (1.26, "1.3"),
            (99.7, "1e+02"),
            (0.5, "0.5"),
            (0.000_123, "0.00012"),
            (0.000_012_3, "1.2e-05"),
            (f64::INFINITY, "+Inf"),
            (0.0, "0"),
        ] {
            assert_eq!(in_two_digits(value), text);
        }
    }

    #[test]
    fn quantiles_are_written_with_a_point() {
        for (value, text) in [
            (1.0, "1.0"),
            (-0.0, "0.0"),
            (0.25, "0.25"),
            (-3.0, "-3.0"),
            (1e-7, "1e-07"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(in_open_metrics(value), text);
        }
    }

    #[test]
    fn bounds_of_buckets_are_floats_of_any_form() {
        assert_eq!(parse_float(".2"), Some(0.2));
        assert_eq!(parse_float("1e0"), Some(1.0));
        assert_eq!(parse_float("+inf"), Some(f64::INFINITY));
        assert_eq!(parse_float("-Infinity"), Some(f64::NEG_INFINITY));
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
        for text in ["", "Hello World", "1e309", "+NaN", "1_000", "1 ", "0x1p-2"] {
            assert_eq!(parse_float(text), None, "{text}");
        }
    }
}
