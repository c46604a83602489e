//! Lengths of time as Prometheus writes them: `1h30m`, `90s`, `250ms`. Arithmetic on durations is
//! `duration_expr`'s.

use std::fmt;

use thiserror::Error;

use crate::quote::quoted;

/// A length of time in whole milliseconds, which is the resolution of timestamps; an offset may be
/// negative. At most about 292 years, because Prometheus counts nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PromDuration(i64);

const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_SECOND: f64 = 1e9;

/// Unit, its milliseconds, and whether it is printed only when nothing smaller is left over: 90d is
/// easier to read than 12w6d. Largest first, which is the order they are written in.
const UNITS: [(&str, i64, bool); 7] = [
    ("y", 365 * 24 * 3_600_000, true),
    ("w", 7 * 24 * 3_600_000, true),
    ("d", 24 * 3_600_000, false),
    ("h", 3_600_000, false),
    ("m", 60_000, false),
    ("s", 1_000, false),
    ("ms", 1, false),
];

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationFault {
    /// There is nothing.
    #[error("empty duration string")]
    Empty,
    /// A number or a unit is missing, too much, or in the wrong order.
    #[error("not a valid duration string: {}", quoted(text.as_bytes()))]
    Malformed {
        /// The whole text.
        text: String,
    },
    /// There is no such unit.
    #[error("unknown unit {} in duration {}", quoted(unit.as_bytes()), quoted(text.as_bytes()))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// It is longer than about 292 years.
    #[error("duration out of range")]
    OutOfRange,
}

impl PromDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The given number of milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// A number of seconds; what is finer than a millisecond is cut off. None if it is beyond about
    /// 292 years or not a number.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        if !is_in_range(seconds) {
            return None;
        }
        // To nanoseconds first, as Prometheus does: in a float, 1.001 is a little less than 1001
        // milliseconds. The one value on the edge is clamped by the cast.
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        let nanos = (seconds * NANOS_PER_SECOND).round() as i64;
        Some(Self(nanos / NANOS_PER_MILLI))
    }

    /// Reads a duration such as `1h30m`. The units stand in order, each at most once; a lone zero
    /// needs none.
    pub fn parse(text: &str) -> Result<Self, DurationFault> {
        match text {
            "" => return Err(DurationFault::Empty),
            "0" => return Ok(Self::ZERO),
            _ => {}
        }
        let malformed = || DurationFault::Malformed { text: text.to_owned() };
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut millis = 0_i64;
        while !rest.is_empty() {
            let (number, after) = split_where(rest, |char| !char.is_ascii_digit());
            let count: u64 = number.parse().map_err(|_| malformed())?;
            let (unit, after) = split_where(after, |char| char.is_ascii_digit());
            rest = after;
            if unit.is_empty() {
                return Err(malformed());
            }
            if !UNITS.iter().any(|(name, ..)| *name == unit) {
                return Err(DurationFault::UnknownUnit {
                    unit: unit.to_owned(),
                    text: text.to_owned(),
                });
            }
            // Whatever is skipped here can't come later any more.
            let (_, size, _) = units.find(|(name, ..)| *name == unit).ok_or_else(malformed)?;
            millis = i64::try_from(count)
                .ok()
                .and_then(|count| count.checked_mul(*size))
                .and_then(|length| millis.checked_add(length))
                .filter(|millis| *millis <= i64::MAX / NANOS_PER_MILLI)
                .ok_or(DurationFault::OutOfRange)?;
        }
        Ok(Self(millis))
    }

    /// All of it in milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// All of it in seconds.
    pub fn as_seconds(self) -> f64 {
        // In two parts, as Prometheus does, for the same rounding.
        (self.0 / 1_000) as f64 + (self.0 % 1_000) as f64 / 1_000.0
    }

    /// Below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

/// A number of seconds whose nanoseconds fit into 64 bits.
pub(crate) fn is_in_range(seconds: f64) -> bool {
    let most = i64::MAX as f64 / NANOS_PER_SECOND;
    (-most..=most).contains(&seconds)
}

/// Cuts a text before the first character that fits, or at its end.
fn split_where(text: &str, fits: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(fits).unwrap_or(text.len()))
}

impl fmt::Display for PromDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let mut left = self.0.unsigned_abs();
        if left == 0 {
            return f.write_str("0s");
        }
        for (unit, size, only_exact) in UNITS {
            let size = size.unsigned_abs();
            if left < size || (only_exact && !left.is_multiple_of(size)) {
                continue;
            }
            write!(f, "{}{unit}", left / size)?;
            left %= size;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Result<i64, String> {
        PromDuration::parse(text).map(PromDuration::as_millis).map_err(|fault| fault.to_string())
    }

    #[test]
    fn units_add_up_from_large_to_small() {
        assert_eq!(millis("5m"), Ok(300_000));
        assert_eq!(millis("1h30m"), Ok(5_400_000));
        assert_eq!(millis("1y2w3d4h5m6s7ms"), Ok(33_019_506_007));
        assert_eq!(millis("0"), Ok(0));
        assert_eq!(millis("0s"), Ok(0));
    }

    #[test]
    fn what_is_no_duration_is_refused_in_prometheus_words() {
        let refused = |text| millis(text).unwrap_err();
        assert_eq!(refused(""), "empty duration string");
        assert_eq!(refused("1"), r#"not a valid duration string: "1""#);
        assert_eq!(refused("5m1h"), r#"not a valid duration string: "5m1h""#);
        assert_eq!(refused("5m5m"), r#"not a valid duration string: "5m5m""#);
        assert_eq!(refused("-5m"), r#"not a valid duration string: "-5m""#);
        assert_eq!(refused("5hs"), r#"unknown unit "hs" in duration "5hs""#);
        assert_eq!(refused("5µs"), r#"unknown unit "µs" in duration "5µs""#);
        assert_eq!(refused("300y"), "duration out of range");
        assert_eq!(refused("99999999999999999999s"), {
            r#"not a valid duration string: "99999999999999999999s""#
        });
    }

    #[test]
    fn printing_prefers_days_to_weeks_and_reads_back() {
        for (text, printed) in [
            ("90d", "90d"),
            ("14d", "2w"),
            ("365d", "1y"),
            ("366d", "366d"),
            ("60m", "1h"),
            ("1001ms", "1s1ms"),
            ("0s", "0s"),
        ] {
            let duration = PromDuration::parse(text).unwrap();
            assert_eq!(duration.to_string(), printed);
            assert_eq!(PromDuration::parse(printed), Ok(duration));
        }
        assert_eq!(PromDuration::from_millis(-90_000).to_string(), "-1m30s");
    }

    #[test]
    fn seconds_are_cut_to_milliseconds_and_bounded() {
        assert_eq!(PromDuration::from_seconds(1.001).map(PromDuration::as_millis), Some(1_001));
        assert_eq!(PromDuration::from_seconds(0.4018).map(PromDuration::as_millis), Some(401));
        assert_eq!(PromDuration::from_seconds(-0.5).map(PromDuration::as_millis), Some(-500));
        assert_eq!(PromDuration::from_seconds(f64::NAN), None);
        assert_eq!(PromDuration::from_seconds(1e10), None);
        assert_eq!(PromDuration::from_millis(1_500).as_seconds(), 1.5);
    }
}
