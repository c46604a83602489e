//! Times and lengths of time as clients write them: Prometheus' seconds and durations, RFC 3339, and
//! the milliseconds and relative times of the SSE endpoint. All become milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tributary_promql::duration::PromDuration;
use tributary_promql::quote::quoted;

/// The earliest and the latest instant that is asked for where a client names none.
pub(crate) const EVER: (i64, i64) = (-(i64::MAX / 16), i64::MAX / 16);

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Prometheus' own edges of time, which some clients send back.
const PROMETHEUS_EDGES: (&str, &str) =
    ("-292273086-05-16T16:47:06Z", "+292277025-08-18T07:12:54.999999999Z");

/// Now, in milliseconds.
pub(crate) fn now() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// A time in Prometheus' API: seconds, or RFC 3339.
pub(crate) fn prometheus_time(text: &str) -> Result<i64, String> {
    let cannot = || format!("cannot parse {} to a valid timestamp", quoted(text.as_bytes()));
    if let Ok(seconds) = text.parse::<f64>() {
        return millis_of_seconds(seconds).ok_or_else(cannot);
    }
    match text {
        earliest if earliest == PROMETHEUS_EDGES.0 => Ok(EVER.0),
        latest if latest == PROMETHEUS_EDGES.1 => Ok(EVER.1),
        _ => rfc3339(text).ok_or_else(cannot),
    }
}

fn millis_of_seconds(seconds: f64) -> Option<i64> {
    let whole = seconds.trunc() * 1000.0;
    let millis = whole + (seconds.fract() * 1000.0).round();
    in_range(millis)
}

/// What evaluation can reckon with. What is beyond is refused there too, but in other words.
fn in_range(millis: f64) -> Option<i64> {
    let farthest = EVER.1 as f64;
    #[expect(clippy::cast_possible_truncation, reason = "checked")]
    (millis.abs() <= farthest).then_some(millis as i64)
}

/// A length of time in Prometheus' API: seconds, or a duration such as `1m30s`. In nanoseconds, as
/// Prometheus counts, so that nothing is rounded before it is judged.
pub(crate) fn prometheus_duration_nanos(text: &str) -> Result<i64, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        let nanos = seconds * 1e9;
        if nanos.is_nan() || nanos.abs() >= i64::MAX as f64 {
            let text = quoted(text.as_bytes());
            return Err(format!("cannot parse {text} to a valid duration. It overflows int64"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        return Ok(nanos as i64);
    }
    match PromDuration::parse(text) {
        Ok(duration) => Ok(duration.as_millis().saturating_mul(1_000_000)),
        Err(_) => Err(format!("cannot parse {} to a valid duration", quoted(text.as_bytes()))),
    }
}

/// How long a query may run: as long as the client says, but no longer than allowed.
pub(crate) fn timeout_of(text: Option<&str>, most: Duration) -> Result<Duration, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(most) };
    let nanos = prometheus_duration_nanos(text)?;
    Ok(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)).min(most))
}

/// A time of the SSE endpoint: milliseconds since 1970, RFC 3339, `now`, or `now-1h30m`.
pub(crate) fn stream_time(text: &str, now: i64) -> Result<i64, String> {
    let text = text.trim();
    let cannot = || {
        let text = quoted(text.as_bytes());
        format!(
            "cannot read {text} as a time; milliseconds since 1970, RFC 3339, now or now-1h are"
        )
    };
    if let Some(rest) = text.strip_prefix("now") {
        let (sign, length) = match rest.trim_start().split_at_checked(1) {
            None => return Ok(now),
            Some(("-", length)) => (-1, length),
            Some(("+", length)) => (1, length),
            Some(_) => return Err(cannot()),
        };
        let length = PromDuration::parse(length.trim()).map_err(|_| cannot())?;
        return Ok(now.saturating_add(sign * length.as_millis()));
    }
    if let Ok(millis) = text.parse::<f64>() {
        return in_range(millis.trunc()).ok_or_else(cannot);
    }
    rfc3339(text).ok_or_else(cannot)
}

/// The step of a stream that names none, by the length of its range.
pub(crate) fn default_step(range_ms: i64) -> i64 {
    const STEPS: [(i64, i64); 4] = [
        (65 * MINUTE, 10 * SECOND),
        (12 * HOUR, MINUTE),
        (24 * HOUR, 5 * MINUTE),
        (72 * HOUR, 20 * MINUTE),
    ];
    let step = STEPS.iter().find(|(up_to, _)| range_ms <= *up_to);
    step.map_or(HOUR, |(_, step)| *step)
}

/// `2024-05-06T07:08:09.123Z`, or with an offset in place of the `Z`. Finer than a millisecond is
/// cut off.
fn rfc3339(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, offset) = match clock.strip_suffix('Z') {
        Some(clock) => (clock, 0),
        None => {
            let at = clock.rfind(['+', '-'])?;
            let [hours, minutes] = numbers(&clock[at + 1..], ':', [2, 2])?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            let length = hours * HOUR + minutes * MINUTE;
            (&clock[..at], if clock.as_bytes()[at] == b'-' { -length } else { length })
        }
    };
    let (clock, fraction) = clock
        .split_once(['.', ','])
        .map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let millis = match fraction {
        None => 0,
        Some(digits) => {
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let first: String = digits.chars().chain("00".chars()).take(3).collect();
            first.parse().ok()?
        }
    };
    let clock = hour * HOUR + minute * MINUTE + second * SECOND + millis;
    Some(days_since_1970(year, month, day) * DAY + clock - offset)
}

/// Numbers of so many digits each, with something between them.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut parts = text.split(between);
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Days from 1970 to a day of the Gregorian calendar. Years begin in March here, so that the day
/// that is there only now and then is their last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_times_are_seconds_or_rfc_3339() {
        for (text, millis) in [
            ("0", 0),
            ("1435781451.781", 1_435_781_451_781),
            ("1.4357814517815e9", 1_435_781_451_782),
            ("-1.5", -1_500),
            ("1970-01-01T00:00:01Z", 1_000),
            ("2015-07-01T20:10:51.781Z", 1_435_781_451_781),
            ("2015-07-01T22:10:51.7819+02:00", 1_435_781_451_781),
            ("2015-06-30T23:10:51-21:00", 1_435_781_451_000),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("1969-12-31T23:59:59.999Z", -1),
            ("-292273086-05-16T16:47:06Z", EVER.0),
            ("+292277025-08-18T07:12:54.999999999Z", EVER.1),
        ] {
            assert_eq!(prometheus_time(text), Ok(millis), "{text}");
        }
        for text in [
            "",
            "now",
            "NaN",
            "1e300",
            "2015-07-01",
            "2023-02-29T00:00:00Z",
            "2015-13-01T00:00:00Z",
            "2015-07-01T24:00:00Z",
            "2015-07-01T20:10:51.Z",
            "2015-07-01t20:10:51z",
            "15-7-1T2:1:5Z",
        ] {
            let why = prometheus_time(text).unwrap_err();
            assert_eq!(why, format!("cannot parse {text:?} to a valid timestamp"));
        }
    }

    #[test]
    fn prometheus_durations_are_seconds_or_units() {
        assert_eq!(prometheus_duration_nanos("15"), Ok(15_000_000_000));
        assert_eq!(prometheus_duration_nanos("0.25"), Ok(250_000_000));
        assert_eq!(prometheus_duration_nanos("1m30s"), Ok(90_000_000_000));
        assert_eq!(prometheus_duration_nanos("-5"), Ok(-5_000_000_000));
        assert_eq!(
            prometheus_duration_nanos("1e30").unwrap_err(),
            r#"cannot parse "1e30" to a valid duration. It overflows int64"#
        );
        assert_eq!(
            prometheus_duration_nanos("five").unwrap_err(),
            r#"cannot parse "five" to a valid duration"#
        );
        let most = Duration::from_secs(120);
        assert_eq!(timeout_of(Some("1s"), most), Ok(Duration::from_secs(1)));
        assert_eq!(timeout_of(Some("1h"), most), Ok(most));
        assert_eq!(timeout_of(Some(""), most), Ok(most));
        assert_eq!(timeout_of(Some("-1"), most), Ok(Duration::ZERO));
    }

    #[test]
    fn times_of_a_stream_may_be_relative() {
        let now = 1_700_000_000_000;
        for (text, millis) in [
            ("1700000000123", 1_700_000_000_123),
            ("1.7e12", now),
            ("now", now),
            (" now ", now),
            ("now-1h", now - 3_600_000),
            ("now - 1h30m", now - 5_400_000),
            ("now+5m", now + 300_000),
            ("2023-11-14T22:13:20Z", now),
        ] {
            assert_eq!(stream_time(text, now), Ok(millis), "{text}");
        }
        for text in ["", "nowish", "now-", "now-5x", "yesterday", "inf", "1e99"] {
            assert!(stream_time(text, now).unwrap_err().contains(&format!("{text:?}")), "{text}");
        }
    }

    #[test]
    fn steps_grow_with_the_range() {
        for (range, step) in [
            (0, 10 * SECOND),
            (65 * MINUTE, 10 * SECOND),
            (65 * MINUTE + 1, MINUTE),
            (12 * HOUR, MINUTE),
            (12 * HOUR + 1, 5 * MINUTE),
            (DAY, 5 * MINUTE),
            (DAY + 1, 20 * MINUTE),
            (3 * DAY, 20 * MINUTE),
            (3 * DAY + 1, HOUR),
        ] {
            assert_eq!(default_step(range), step, "{range}");
        }
    }
}
