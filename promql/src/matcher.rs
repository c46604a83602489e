//! Matchers: which series a selector means, one label at a time. Matching regular expressions
//! against labels is left to whoever holds the labels; their patterns are checked in `pattern`.

use std::fmt;

use crate::pattern::Pattern;
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

    fn operator(&self) -> &'static str {
        match &self.condition {
            Condition::Equal(_) => "=",
            Condition::NotEqual(_) => "!=",
            Condition::Matches(_) => "=~",
            Condition::MatchesNot(_) => "!~",
        }
    }
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
