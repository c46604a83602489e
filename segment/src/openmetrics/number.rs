//! Numbers in text: fast for the ones that are common, exact for all, and refused where Prometheus
//! refuses them.

/// What Prometheus makes of every NaN it reads as text.
pub(super) const NORMAL_NAN: u64 = 0x7ff8_0000_0000_0001;

const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Takes a number from the front of a text, up to the next blank, with its length.
pub(super) fn scan(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let start = at;
    let mut digits = 0_u64;
    let mut fraction_at = None;
    loop {
        match text.get(at) {
            Some(digit @ b'0'..=b'9') => {
                digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            }
            Some(b'.') if fraction_at.is_none() => fraction_at = Some(at + 1),
            None | Some(b' ' | b'\t') => break,
            Some(_) => return scan_slowly(text),
        }
        at += 1;
    }
    let fraction = fraction_at.map_or(0, |from| at - from);
    let count = at - start - usize::from(fraction_at.is_some());
    // Both the digits and the power of ten are exact doubles, so their quotient is rounded once,
    // which is what reading a number exactly means.
    if count == 0 || count > 19 || digits > 1 << 53 || fraction >= POWERS_OF_TEN.len() {
        return scan_slowly(text);
    }
    #[expect(clippy::cast_precision_loss, reason = "checked to be exact")]
    let value = digits as f64 / POWERS_OF_TEN[fraction];
    Some((if negative { -value } else { value }, at))
}

fn scan_slowly(text: &[u8]) -> Option<(f64, usize)> {
    let len = text.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    parse(std::str::from_utf8(&text[..len]).ok()?).map(|value| (value, len))
}

/// Reads a number as Go does with the formats it had before hexadecimal floats.
pub(super) fn parse(text: &str) -> Option<f64> {
    if text.contains(['p', 'P', '_']) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.is_nan() {
        let unsigned = !text.starts_with(['+', '-']);
        return unsigned.then_some(f64::from_bits(NORMAL_NAN));
    }
    // A number beyond all doubles is out of range; infinity must be said.
    let said = |text: &str| text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
    (value.is_finite() || said(text)).then_some(value)
}

/// Seconds to milliseconds as Prometheus does it: multiplied as a double, then cut off.
pub(super) fn seconds_to_millis(seconds: f64) -> Option<i64> {
    let millis = seconds * 1_000.0;
    // The bound is 2^63, exactly.
    let in_range = millis.abs() < 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    in_range.then_some(millis as i64)
}

/// Takes milliseconds, which are digits only, from the front of a text.
pub(super) fn scan_millis(text: &[u8]) -> Option<(i64, usize)> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[..len]).ok()?;
    Some((digits.parse().ok()?, len))
}

/// Writes a bound of a bucket or a quantile as OpenMetrics wants it: `1.0`, `+Inf`, `1e+06`.
pub(super) fn format_bound(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return "0.0".to_owned();
    }
    // As Go's shortest form: digits and exponent, written out where the exponent is small.
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("the form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') { plain } else { format!("{plain}.0") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_is_read_exactly(bits: u64, digits in "-?[0-9]{0,22}[.]?[0-9]{0,24}") {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                for text in [format!("{value}"), format!("{value:e}")] {
                    let read = scan(text.as_bytes()).unwrap();
                    prop_assert_eq!((read.0.to_bits(), read.1), (bits, text.len()));
                }
            }
            let exact: Option<f64> = digits.parse().ok();
            let read = scan(digits.as_bytes()).map(|read| read.0.to_bits());
            prop_assert_eq!(read, exact.map(f64::to_bits));
        }
    }

    #[test]
    fn words_and_limits() {
        let bits = |text: &str| parse(text).map(f64::to_bits);
        for nan in ["NaN", "nan"] {
            assert_eq!(bits(nan), Some(NORMAL_NAN));
        }
        for (text, value) in [("+Inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY), ("1e3", 1e3)] {
            assert_eq!(bits(text), Some(value.to_bits()));
        }
        for bad in ["", "-", ".", "1e999", "0x10", "0x1p3", "1_000", "+nan", "1 ", "--1", "١"] {
            assert_eq!(bits(bad), None, "{bad}");
        }
        assert_eq!(scan(b"12.5 7").unwrap(), (12.5, 4));
        assert_eq!(scan(b"-0").unwrap().0.to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn timestamps_are_cut_off_as_prometheus_does() {
        assert_eq!(seconds_to_millis(1_767_225_600.123), Some(1_767_225_600_123));
        // 1.005 * 1000 is 1004.9999999999999 in doubles.
        assert_eq!(seconds_to_millis(1.005), Some(1_004));
        assert_eq!(seconds_to_millis(-1.5), Some(-1_500));
        for bad in [f64::NAN, f64::INFINITY, 1e16, -1e300] {
            assert_eq!(seconds_to_millis(bad), None);
        }
        assert_eq!(scan_millis(b"1767225600123 x"), Some((1_767_225_600_123, 13)));
        assert_eq!(scan_millis(b"-5"), None);
        assert_eq!(scan_millis(b"99999999999999999999"), None);
    }

    #[test]
    fn bounds_have_one_spelling() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (-1.0, "-1.0"),
            (0.005, "0.005"),
            (2.5, "2.5"),
            (1e-5, "1e-05"),
            (1e21, "1e+21"),
            (1e6, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (100_000.0, "100000.0"),
            (0.000_1, "0.0001"),
            (-0.0, "0.0"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(format_bound(value), text);
        }
    }
}
