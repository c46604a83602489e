//! Checks of single fields, each named for its error. What fields a message has is left to
//! `decode`.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::{Attempt, BadId};

use super::DecodeError;
use crate::limits::DEADLINE_MAX_SECONDS;

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// A text that must be there.
pub(super) fn present(field: &'static str, text: String) -> Result<String, DecodeError> {
    if text.is_empty() { Err(DecodeError::Missing { field }) } else { Ok(text) }
}

/// A text of bounded length.
pub(super) fn bounded(
    field: &'static str,
    text: String,
    max: usize,
) -> Result<String, DecodeError> {
    check_length(field, text.len(), max)?;
    Ok(text)
}

/// A text of bounded length that can be part of an HTTP request.
pub(super) fn printable(
    field: &'static str,
    text: String,
    max: usize,
) -> Result<String, DecodeError> {
    let text = bounded(field, text, max)?;
    match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
        Some(at) => Err(DecodeError::NotPrintable { field, at }),
        None => Ok(text),
    }
}

/// Refuses what is longer than `max`.
pub(super) fn check_length(field: &'static str, len: usize, max: usize) -> Result<(), DecodeError> {
    if len > max { Err(DecodeError::TooLong { field, len, max }) } else { Ok(()) }
}

/// A name, by its own check.
pub(super) fn name<T>(
    field: &'static str,
    text: &str,
    check: fn(&str) -> Result<T, BadId>,
) -> Result<T, DecodeError> {
    if text.is_empty() {
        return Err(DecodeError::Missing { field });
    }
    check(text).map_err(|source| DecodeError::Id { field, source })
}

/// An identifier with exactly one spelling.
pub(super) fn id<T: FromStr<Err = BadId>>(
    field: &'static str,
    text: &str,
) -> Result<T, DecodeError> {
    name(field, text, str::parse)
}

/// An attempt; they count from one, so zero was forgotten.
pub(super) fn attempt(field: &'static str, value: u32) -> Result<Attempt, DecodeError> {
    if value == 0 { Err(DecodeError::Missing { field }) } else { Ok(Attempt(value)) }
}

/// A checksum.
pub(super) fn checksum(field: &'static str, text: &str) -> Result<Checksum, DecodeError> {
    if text.is_empty() {
        return Err(DecodeError::Missing { field });
    }
    text.parse().map_err(|source| DecodeError::Checksum { field, source })
}

/// A number within its bounds.
pub(super) fn within(
    field: &'static str,
    value: u32,
    allowed: RangeInclusive<u32>,
) -> Result<u32, DecodeError> {
    if allowed.contains(&value) {
        Ok(value)
    } else {
        Err(DecodeError::OutOfRange { field, value, min: *allowed.start(), max: *allowed.end() })
    }
}

/// A span of time from now on: never negative, and spelled the one way the format has for it.
pub(super) fn span(
    field: &'static str,
    span: Option<prost_types::Duration>,
) -> Result<Duration, DecodeError> {
    let span = span.ok_or(DecodeError::Missing { field })?;
    let bad = || DecodeError::BadDuration { field, seconds: span.seconds, nanos: span.nanos };
    let seconds = u64::try_from(span.seconds).map_err(|_| bad())?;
    let nanos = u32::try_from(span.nanos).map_err(|_| bad())?;
    let beyond = seconds > DEADLINE_MAX_SECONDS || (seconds == DEADLINE_MAX_SECONDS && nanos > 0);
    if nanos >= NANOS_PER_SECOND || beyond {
        return Err(bad());
    }
    Ok(Duration::new(seconds, nanos))
}
