//! Where something stands in the text of a query: byte ranges, and the line and column people read.
//! Knows nothing of what stands there.

use std::fmt;

/// A range of bytes of the query's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to, not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the start of this span to the end of a later one.
    pub const fn to(self, later: Self) -> Self {
        Self { start: self.start, end: later.end }
    }
}

/// A place in a text: both count from one, the column in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line.
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

impl LineColumn {
    /// The place of the byte at `offset`. An empty text has no places, and neither has a text
    /// beyond its end.
    pub fn of(text: &str, offset: usize) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let before = text.as_bytes().get(..offset)?;
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(line_break) => offset - line_break,
            None => offset + 1,
        };
        Some(Self { line, column })
    }
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one_and_lines_start_over() {
        let place = |text, offset| LineColumn::of(text, offset).map(|place| place.to_string());
        assert_eq!(place("foo", 0).as_deref(), Some("1:1"));
        assert_eq!(place("foo", 3).as_deref(), Some("1:4"));
        assert_eq!(place("foo\nbar", 3).as_deref(), Some("1:4"));
        assert_eq!(place("foo\nbar", 4).as_deref(), Some("2:1"));
        assert_eq!(place("foo\n\nbar", 7).as_deref(), Some("3:3"));
        assert_eq!(place("", 0), None);
        assert_eq!(place("foo", 4), None);
    }
}
