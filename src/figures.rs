//! How figures, sizes, times and tables look on the terminal.

use std::io::{self, Write};
use std::time::Duration;

/// Digits in groups of three.
pub(crate) fn grouped(figure: u64) -> String {
    let digits = figure.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio or a rate; zero where there is nothing to divide by.
pub(crate) fn ratio(of: u64, to: f64) -> f64 {
    // Exact up to 2^53.
    if to > 0.0 { of as f64 / to } else { 0.0 }
}

/// A rate in whole things a second, in groups of three digits.
pub(crate) fn per_second(things: u64, time: Duration) -> String {
    let rate = ratio(things, time.as_secs_f64()).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative, and one beyond 2^64 is none"
    )]
    grouped(rate as u64)
}

/// A moment in milliseconds of the Unix epoch, as RFC 3339 has it, in UTC; the milliseconds
/// themselves where the year is beyond what it can say.
pub(crate) fn moment(ms: i64) -> String {
    let days = ms.div_euclid(86_400_000);
    let rest = ms.rem_euclid(86_400_000);
    let (year, month, day) = civil(days);
    if !(0..=9_999).contains(&year) {
        return format!("{ms} ms");
    }
    let (hours, minutes, seconds) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    let millis = rest % 1_000;
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}{fraction}Z")
}

/// The time of day of a moment, in UTC.
pub(crate) fn clock_time(ms: i64) -> String {
    let seconds = ms.rem_euclid(86_400_000) / 1_000;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// A value in few letters, with four digits that count and a letter for thousands.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    let (scaled, letter) = match size {
        _ if size >= 1e12 => (value / 1e12, "T"),
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        at if at >= 1_000.0 => 0,
        at if at >= 100.0 => 1,
        at if at >= 10.0 => 2,
        at if at >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{scaled:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{letter}")
}

/// The date of a day, counted from the Unix epoch, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is their last; 400 of them have the same
    // number of days always.
    const DAYS_OF_400_YEARS: i64 = 146_097;
    const FROM_MARCH_OF_YEAR_0: i64 = 719_468;
    let days = days.saturating_add(FROM_MARCH_OF_YEAR_0);
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let day_of_era = days.rem_euclid(DAYS_OF_400_YEARS);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// To which side a column's texts are pushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Writes rows under their heads, each column as wide as its widest text.
pub(crate) fn write_table<const N: usize>(
    out: &mut impl Write,
    columns: [(&str, Side); N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let heads = columns.map(|(head, _)| head.to_owned());
    let width = |at: usize| {
        let texts = std::iter::once(&heads).chain(rows).map(|row| row[at].chars().count());
        texts.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for ((text, width), (_, side)) in row.iter().zip(&widths).zip(columns) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(&match side {
                Side::Left => format!("{text:<width$}"),
                Side::Right => format!("{text:>width$}"),
            });
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_groups_of_three() {
        for (figure, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")]
        {
            assert_eq!(grouped(figure), text);
        }
    }

    #[test]
    fn values_in_short_keep_their_first_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.5, "-0.5"),
            (1.0, "1"),
            (0.001_234, "0.0012"),
            (1_234.5, "1234"),
            (12_345.6, "12.35k"),
            (-8.4e9, "-8.4G"),
            (999_999.9, "1000k"),
            (2.5e-9, "2.50e-9"),
            (1.5e300, "1.50e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(short(value), text, "{value}");
        }
        assert_eq!(clock_time(86_400_000 + 3_723_999), "01:02:03");
    }

    #[test]
    fn rates_of_nothing_are_nothing() {
        assert_eq!(per_second(5, Duration::ZERO), "0");
        assert_eq!(per_second(3_000, Duration::from_millis(500)), "6,000");
    }

    #[test]
    fn moments_are_told_in_utc() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_767_225_600_050, "2026-01-01T00:00:00.050Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00Z"),
            (i64::MAX, "9223372036854775807 ms"),
            (i64::MIN, "-9223372036854775808 ms"),
        ] {
            assert_eq!(moment(ms), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let mut out = Vec::new();
        let rows = [["é".to_owned(), "1".to_owned()], ["long".to_owned(), "1,000".to_owned()]];
        write_table(&mut out, [("id", Side::Left), ("n", Side::Right)], &rows).unwrap();
        let expected = "id        n\né         1\nlong  1,000\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
