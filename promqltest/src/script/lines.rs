//! The lines of a script, one after the other, with their numbers. What they mean is read elsewhere.

use super::ScriptError;

/// One line without the space around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Its number, the first being 1.
    pub(super) number: usize,
    /// What stands in it.
    pub(super) text: &'a str,
}

/// The lines that are left.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    lines: Vec<&'a str>,
    next: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { lines: text.lines().map(str::trim).collect(), next: 0 }
    }

    /// The next line.
    pub(super) fn take(&mut self) -> Option<Line<'a>> {
        self.take_if(|_| true)
    }

    /// The next line, if it is wanted.
    pub(super) fn take_if(&mut self, wanted: impl Fn(Line<'a>) -> bool) -> Option<Line<'a>> {
        let text = self.lines.get(self.next)?;
        let line = Line { number: self.next + 1, text };
        if !wanted(line) {
            return None;
        }
        self.next += 1;
        Some(line)
    }
}

impl<'a> Line<'a> {
    /// What stands in it, nothing if it is a comment.
    pub(super) fn content(self) -> &'a str {
        if self.text.starts_with('#') { "" } else { self.text }
    }

    pub(super) fn error(self, message: impl Into<String>) -> ScriptError {
        ScriptError { line: self.number, message: message.into() }
    }
}
