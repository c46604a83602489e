//! Matchers: which series a selector means, one label at a time. The patterns of their regular
//! expressions are checked in `pattern`; which series there are is the index's business.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::pattern::{Pattern, PatternError};
use crate::quote::quoted;

/// The label that holds a metric's name.
pub const METRIC_NAME: &str = "__name__";

/// A condition on one label. A label that a series lacks counts as empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// The label.
    pub name: String,
    /// What its value must be.
    pub condition: Condition,
}

/// What the value of a label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `=`: this value.
    Equal(String),
    /// `!=`: any other value.
    NotEqual(String),
    /// `=~`: a value that the pattern matches from end to end.
    Matches(Pattern),
    /// `!~`: a value that the pattern does not match from end to end.
    MatchesNot(Pattern),
}

impl Matcher {
    /// The metric's name is this.
    pub(crate) fn named(name: &str) -> Self {
        let condition = Condition::Equal(name.to_owned());
        Self { name: METRIC_NAME.to_owned(), condition }
    }

    /// Lets through series that lack the label.
    pub fn matches_empty(&self) -> bool {
        match &self.condition {
            Condition::Equal(value) => value.is_empty(),
            Condition::NotEqual(value) => !value.is_empty(),
            Condition::Matches(pattern) => pattern.matches_empty(),
            Condition::MatchesNot(pattern) => !pattern.matches_empty(),
        }
    }

    /// The value or pattern as it was written.
    pub fn value(&self) -> &str {
        match &self.condition {
            Condition::Equal(value) | Condition::NotEqual(value) => value,
            Condition::Matches(pattern) | Condition::MatchesNot(pattern) => pattern.as_str(),
        }
    }

    /// Makes it ready to be tried on many values.
    pub fn compile(&self) -> Result<CompiledMatcher, PatternError> {
        let test = match &self.condition {
            Condition::Equal(value) => Test::Equal(value.clone()),
            Condition::NotEqual(value) => Test::NotEqual(value.clone()),
            Condition::Matches(pattern) => Test::Matches(compiled(pattern.translated())?),
            Condition::MatchesNot(pattern) => Test::MatchesNot(compiled(pattern.translated())?),
        };
        Ok(CompiledMatcher { name: self.name.clone(), test })
    }

    fn operator(&self) -> &'static str {
        match &self.condition {
            Condition::Equal(_) => "=",
            Condition::NotEqual(_) => "!=",
            Condition::Matches(_) => "=~",
            Condition::MatchesNot(_) => "!~",
        }
    }
}

/// A matcher that is ready to be tried on many values.
#[derive(Clone, Debug)]
pub struct CompiledMatcher {
    name: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Equal(String),
    NotEqual(String),
    Matches(Regex),
    MatchesNot(Regex),
}

impl CompiledMatcher {
    /// The label it is about.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it lets a value through; a label that a series lacks has the empty one.
    pub fn matches(&self, value: &str) -> bool {
        match &self.test {
            Test::Equal(wanted) => value == wanted,
            Test::NotEqual(unwanted) => value != unwanted,
            Test::Matches(regex) => regex.is_match(value),
            Test::MatchesNot(regex) => !regex.is_match(value),
        }
    }
}

/// Compiles a translated pattern. What it may cost is bounded by the size of patterns; the limit
/// here is far beyond that.
pub(crate) fn compiled(translated: &str) -> Result<Regex, PatternError> {
    const MOST_BYTES: usize = 256 << 20;
    RegexBuilder::new(translated)
        .size_limit(MOST_BYTES)
        .build()
        .map_err(|_| PatternError::TooLarge { what: "bytes when compiled", most: MOST_BYTES })
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain_label_name(&self.name) {
            f.write_str(&self.name)?;
        } else {
            f.write_str(&quoted(self.name.as_bytes()))?;
        }
        write!(f, "{}{}", self.operator(), quoted(self.value().as_bytes()))
    }
}

/// A label name that needs no quotes: letters, digits and underscores, no digit first.
pub(crate) fn is_plain_label_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|char: char| char.is_ascii_digit())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_for_whole_values() {
        let pattern = Pattern::parse("a.c|b*", 100).unwrap();
        for (condition, yes, no) in [
            (Condition::Equal("abc".into()), "abc", "ab"),
            (Condition::NotEqual("abc".into()), "", "abc"),
            (Condition::Matches(pattern.clone()), "a\nc", "abcd"),
            (Condition::MatchesNot(pattern), "abcd", ""),
        ] {
            let matcher = Matcher { name: "job".into(), condition };
            let compiled = matcher.compile().unwrap();
            assert_eq!(compiled.name(), "job");
            assert!(compiled.matches(yes), "{matcher}");
            assert!(!compiled.matches(no), "{matcher}");
            assert_eq!(compiled.matches(""), matcher.matches_empty(), "{matcher}");
        }
    }
}
