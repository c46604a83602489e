//! Durations as people write them: `250ms`, `30s`, `10m`, `2h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration, in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(Duration);

/// Units, largest first, in milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no duration; write a whole number with ms, s, m or h, as in 30s")]
pub struct BadSpan(String);

impl Span {
    /// So many milliseconds.
    pub const fn millis(count: u64) -> Self {
        Self(Duration::from_millis(count))
    }

    /// So many seconds.
    pub const fn seconds(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }

    /// In whole milliseconds.
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// The duration itself.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan(text.into());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, unit) = text.split_at(digits);
        let count: u64 = count.parse().map_err(|_| bad())?;
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        count.checked_mul(*millis).map(Self::millis).ok_or_else(bad)
    }
}

impl TryFrom<String> for Span {
    type Error = BadSpan;

    fn try_from(text: String) -> Result<Self, BadSpan> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Span {
    /// In the largest unit that holds it exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.as_millis();
        let fits = |(_, unit): &&(&str, u64)| millis.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().find(fits).expect("one millisecond divides everything");
        if millis == 0 { f.write_str("0s") } else { write!(f, "{}{name}", millis / unit) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_back_as_they_print() {
        for text in ["0s", "1ms", "250ms", "1s", "90s", "10m", "2h", "1500ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("60s".parse::<Span>().unwrap().to_string(), "1m");
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "10", "s", "1.5s", "-1s", "1 s", "1d", "99999999999999999999s"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("as in 30s"), "{error}");
        }
        assert!(format!("{}h", u64::MAX).parse::<Span>().is_err());
    }
}
