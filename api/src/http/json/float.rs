//! Floats as Go prints them, which is what clients of Prometheus read: as few digits as tell a float
//! apart from all others, in full from a millionth up to 10²¹, with an exponent beyond.

/// Below this the shortest digits of a whole number are all of its digits.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Writes a float as samples have it.
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    let in_full = size == 0.0 || (1e-6..1e21).contains(&size);
    push(out, value, in_full);
}

/// Writes a float without an exponent, however long it gets. Prometheus prints scalars so.
pub fn push_float_in_full(out: &mut Vec<u8>, value: f64) {
    push(out, value, true);
}

fn push(out: &mut Vec<u8>, value: f64, in_full: bool) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let size = value.abs();
    if size.is_infinite() {
        if value > 0.0 {
            out.push(b'+');
        }
        out.extend_from_slice(b"Inf");
        return;
    }
    // Counters and counts are whole numbers as a rule.
    if size < EXACT_WHOLE && size.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, small")]
        let whole = size as u64;
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let printed = buffer.format_finite(size).as_bytes();
    let has_exponent = printed[printed.len().saturating_sub(5)..].contains(&b'e');
    if in_full && !has_exponent {
        // `0.25` is what it is in both; only whole numbers end differently.
        out.extend_from_slice(printed.strip_suffix(b".0").unwrap_or(printed));
        return;
    }
    Digits::of(printed).push(out, in_full);
}

/// A float as its digits and the place of its point: 0.d₁d₂d₃… × 10^point.
struct Digits {
    digits: [u8; 24],
    count: usize,
    point: i32,
}

impl Digits {
    /// Takes apart what was printed, in whichever form: `12.5`, `0.0001`, `1.25e-7`, `1e21`.
    fn of(printed: &[u8]) -> Self {
        let mut this = Self { digits: [b'0'; 24], count: 0, point: 0 };
        let mut rest = printed.iter();
        let mut is_fraction = false;
        for byte in rest.by_ref() {
            match byte {
                b'.' => is_fraction = true,
                b'e' | b'E' => break,
                // Zeros before the first digit that counts only move the point.
                b'0' if this.count == 0 => this.point -= i32::from(is_fraction),
                digit => {
                    if this.count < this.digits.len() {
                        this.digits[this.count] = *digit;
                        this.count += 1;
                    }
                    this.point += i32::from(!is_fraction);
                }
            }
        }
        let exponent = std::str::from_utf8(rest.as_slice()).unwrap_or_default();
        this.point += exponent.parse::<i32>().unwrap_or(0);
        while this.count > 1 && this.digits[this.count - 1] == b'0' {
            this.count -= 1;
        }
        this
    }

    fn push(&self, out: &mut Vec<u8>, in_full: bool) {
        let digits = &self.digits[..self.count];
        if !in_full {
            let (first, rest) = digits.split_at(1);
            out.extend_from_slice(first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
            let exponent = self.point - 1;
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.abs() < 10 {
                out.push(b'0');
            }
            out.extend_from_slice(itoa::Buffer::new().format(exponent.abs()).as_bytes());
            return;
        }
        let zeros = |out: &mut Vec<u8>, count: usize| out.extend(std::iter::repeat_n(b'0', count));
        match usize::try_from(self.point) {
            Ok(point) if point >= digits.len() => {
                out.extend_from_slice(digits);
                zeros(out, point - digits.len());
            }
            Ok(point) if point > 0 => {
                out.extend_from_slice(&digits[..point]);
                out.push(b'.');
                out.extend_from_slice(&digits[point..]);
            }
            _ => {
                out.extend_from_slice(b"0.");
                zeros(out, usize::try_from(self.point.unsigned_abs()).unwrap_or_default());
                out.extend_from_slice(digits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        push_float(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn printed_in_full(value: f64) -> String {
        let mut out = Vec::new();
        push_float_in_full(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.0, "-1"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (100.0, "100"),
            (123_456.75, "123456.75"),
            (1e6, "1000000"),
            (1e-6, "0.000001"),
            (1.5e-6, "0.0000015"),
            (0.000_012_34, "0.00001234"),
            (9.99e-7, "9.99e-07"),
            (-1.25e-7, "-1.25e-07"),
            (1e-10, "1e-10"),
            (1.5e-100, "1.5e-100"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1e16, "10000000000000000"),
            (12_345_678_901_234_567.0, "12345678901234568"),
            (1.234_567_890_123_456_8e19, "12345678901234567000"),
            (1e20, "100000000000000000000"),
            (1.5e20, "150000000000000000000"),
            (999_999_999_999_999_900_000.0, "999999999999999900000"),
            (1e21, "1e+21"),
            (-1.5e21, "-1.5e+21"),
            (1e23, "1e+23"),
            (6.02214076e23, "6.02214076e+23"),
            (1e100, "1e+100"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::from_bits(1), "5e-324"),
            (f64::EPSILON, "2.220446049250313e-16"),
            (std::f64::consts::PI, "3.141592653589793"),
            (1_435_781_451.781, "1435781451.781"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
        ] {
            assert_eq!(printed(value), text);
        }
    }

    #[test]
    fn scalars_have_no_exponent() {
        assert_eq!(printed_in_full(1e22), "10000000000000000000000");
        assert_eq!(printed_in_full(1.5e-8), "0.000000015");
        assert_eq!(printed_in_full(-2.5), "-2.5");
        assert_eq!(printed_in_full(f64::INFINITY), "+Inf");
        let smallest = printed_in_full(f64::from_bits(1));
        assert_eq!((smallest.len(), smallest.ends_with("0005")), (326, true));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn every_float_reads_back_to_the_same_bits(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            for text in [printed(value), printed_in_full(value)] {
                let read: f64 = text.parse().unwrap();
                prop_assert_eq!(read.is_nan(), value.is_nan());
                prop_assert!(value.is_nan() || read.to_bits() == bits, "{} as {}", value, text);
            }
        }

        #[test]
        fn floats_of_everyday_size_agree_with_the_standard_library(
            value in prop_oneof![-1e21..1e21, -1e6..1e6, -1.0..1.0],
        ) {
            // Rust prints the shortest digits too, and never an exponent.
            prop_assert_eq!(printed_in_full(value), value.to_string());
            if value.abs() >= 1e-6 {
                prop_assert_eq!(printed(value), value.to_string());
            }
        }

        #[test]
        fn digits_with_an_exponent_are_the_shortest(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let size = value.abs();
            prop_assume!(value.is_finite() && size > 0.0 && !(1e-6..1e21).contains(&size));
            let scientific = format!("{value:e}");
            let (digits, exponent) = scientific.split_once('e').unwrap();
            let exponent: i32 = exponent.parse().unwrap();
            let sign = if exponent < 0 { '-' } else { '+' };
            prop_assert_eq!(printed(value), format!("{digits}e{sign}{:02}", exponent.abs()));
        }
    }
}
