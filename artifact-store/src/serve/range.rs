//! The `Range` header: one range of bytes of a file whose size is known. Pure.

use std::ops::Range;

/// What a peer wants of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// All of it: no range, several, or none that can be understood. HTTP lets a server ignore
    /// those.
    All,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes that it does not have.
    Beyond,
}

/// Reads the header's text.
pub(super) fn parse(text: &str, size_bytes: u64) -> Asked {
    let Some(spec) = text.trim().strip_prefix("bytes=") else { return Asked::All };
    let Some((first, last)) = spec.trim().split_once('-') else { return Asked::All };
    match (number(first), number(last)) {
        (Parsed::Number(first), Parsed::Number(last)) if last < first => Asked::All,
        (Parsed::Number(first), Parsed::Number(last)) => {
            part(first, last.saturating_add(1).min(size_bytes))
        }
        (Parsed::Number(first), Parsed::Nothing) => part(first, size_bytes),
        (Parsed::Nothing, Parsed::Number(suffix)) => {
            part(size_bytes - suffix.min(size_bytes), size_bytes)
        }
        _ => Asked::All,
    }
}

fn part(start: u64, end: u64) -> Asked {
    if start < end { Asked::Part(start..end) } else { Asked::Beyond }
}

enum Parsed {
    Number(u64),
    Nothing,
    Nonsense,
}

/// Digits alone. More of them than a number has are a number beyond every file.
fn number(text: &str) -> Parsed {
    let text = text.trim();
    if text.is_empty() {
        return Parsed::Nothing;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Parsed::Nonsense;
    }
    Parsed::Number(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_range_is_understood_in_all_its_forms() {
        for (text, asked) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-5", Asked::Part(2..6)),
            ("bytes=2-", Asked::Part(2..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=9-99999999999999999999999", Asked::Part(9..10)),
            ("bytes=10-", Asked::Beyond),
            ("bytes=10-12", Asked::Beyond),
            ("bytes=99999999999999999999999-", Asked::Beyond),
            ("bytes=-0", Asked::Beyond),
            ("bytes=5-2", Asked::All),
            ("bytes=-", Asked::All),
            ("bytes=", Asked::All),
            ("bytes=0-1,3-4", Asked::All),
            ("bytes=a-b", Asked::All),
            ("bytes=+1-2", Asked::All),
            ("lines=1-2", Asked::All),
            ("", Asked::All),
        ] {
            assert_eq!(parse(text, 10), asked, "{text}");
        }
        assert_eq!(parse("bytes=0-", 0), Asked::Beyond);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_nothing_beyond_the_end_is_given(text in "(bytes=)?[-0-9,a ]{0,24}", size in 0_u64..100) {
            if let Asked::Part(range) = parse(&text, size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
