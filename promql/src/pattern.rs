//! Regular expressions of matchers, in the syntax Prometheus takes: Go's, which is RE2's. Checks
//! them, refuses them in Go's words, and says the same in the syntax of the `regex` crate, whose
//! classes, escapes and braces differ in small ways. Running them is left to whoever has labels.

mod class;
mod translate;
mod unicode;

use thiserror::Error;

/// A regular expression that was checked, matched against whole label values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: String,
    translated: String,
    matches_empty: bool,
    size: usize,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// It breaks the syntax.
    #[error("error parsing regexp: {problem}: `{fragment}`")]
    Syntax {
        /// What is wrong.
        problem: Problem,
        /// The part it is about.
        fragment: String,
    },
    /// It is too large for us.
    #[error("regular expression too large: {what}, at most {most} are allowed")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        most: usize,
    },
}

/// What is wrong with a pattern's syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// A class or a range of characters makes no sense.
    #[error("invalid character class range")]
    ClassRange,
    /// There is no such escape.
    #[error("invalid escape sequence")]
    Escape,
    /// A group's name is not closed or not a word.
    #[error("invalid named capture")]
    NamedCapture,
    /// A group opens with something unknown.
    #[error("invalid or unsupported Perl syntax")]
    PerlSyntax,
    /// A repetition follows a repetition.
    #[error("invalid nested repetition operator")]
    NestedRepetition,
    /// A repetition is too often, or its bounds are in the wrong order.
    #[error("invalid repeat count")]
    RepeatCount,
    /// A class is not closed.
    #[error("missing closing ]")]
    MissingBracket,
    /// A group is not closed.
    #[error("missing closing )")]
    MissingParen,
    /// There is nothing to repeat.
    #[error("missing argument to repetition operator")]
    MissingArgument,
    /// A backslash stands at the end.
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// A group is closed that was not opened.
    #[error("unexpected )")]
    UnexpectedParen,
}

impl Pattern {
    /// Checks a pattern of at most `max_size` characters and classes, counted after its repetitions
    /// are written out.
    pub fn parse(source: &str, max_size: usize) -> Result<Self, PatternError> {
        let translation = translate::translate(source, max_size, false)?;
        Ok(Self {
            source: source.to_owned(),
            translated: translation.text,
            matches_empty: translation.matches_empty,
            size: translation.size,
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The same pattern for the `regex` crate, bound to both ends of the value.
    pub fn translated(&self) -> &str {
        &self.translated
    }

    /// Characters and classes, repetitions written out.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// It matches the empty string.
    pub const fn matches_empty(&self) -> bool {
        self.matches_empty
    }
}

/// A regular expression that was checked and whose groups tell what they matched, for
/// `label_replace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturingPattern {
    translated: String,
    groups: Vec<Option<String>>,
    size: usize,
}

impl CapturingPattern {
    /// Checks a pattern as [`Pattern::parse`] does.
    pub fn parse(source: &str, max_size: usize) -> Result<Self, PatternError> {
        let translation = translate::translate(source, max_size, true)?;
        let size = translation.size;
        Ok(Self { translated: translation.text, groups: translation.captures, size })
    }

    /// Characters and classes, repetitions written out.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The same pattern for the `regex` crate, bound to both ends of the value. Its groups have
    /// numbers and no names, since Go lets several have the same.
    pub fn translated(&self) -> &str {
        &self.translated
    }

    /// The names of the groups, from the first on; the whole match is not among them.
    pub fn group_names(&self) -> &[Option<String>] {
        &self.groups
    }
}
