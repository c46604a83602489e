//! Label matchers as PromQL has them: `=`, `!=`, `=~`, `!~`. A label that a series does not have
//! counts as the empty text. Which series match is the index's business.

mod cache;
mod pattern;

use std::fmt;
use std::sync::Arc;

use tributary_promql::matcher::Condition;
use tributary_promql::pattern::Pattern as Syntax;

pub use cache::PatternCache;
pub use pattern::{BadPattern, Pattern};

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchOp {
    /// The value is the text.
    Equal,
    /// The value is not the text.
    NotEqual,
    /// The whole value matches the regular expression.
    Regex,
    /// The whole value does not match the regular expression.
    NotRegex,
}

impl MatchOp {
    /// As PromQL writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Regex => "=~",
            Self::NotRegex => "!~",
        }
    }
}

/// What a matcher asks of a value, before the negation of `!=` and `!~`.
#[derive(Clone, Debug)]
enum Test {
    Text(String),
    Pattern(Arc<Pattern>),
}

/// One condition on one label.
#[derive(Clone, Debug)]
pub struct Matcher {
    name: String,
    op: MatchOp,
    test: Test,
}

impl Matcher {
    /// Makes a matcher. Regular expressions are compiled; a [`PatternCache`] saves that work for
    /// the next query.
    pub fn new(name: &str, op: MatchOp, value: &str) -> Result<Self, BadPattern> {
        let test = match op {
            MatchOp::Equal | MatchOp::NotEqual => Test::Text(value.to_owned()),
            MatchOp::Regex | MatchOp::NotRegex => Test::Pattern(Arc::new(Pattern::new(value)?)),
        };
        Ok(Self { name: name.to_owned(), op, test })
    }

    /// The matcher of a parsed selector, ready to be run.
    pub fn of(matcher: &tributary_promql::Matcher) -> Result<Self, BadPattern> {
        Self::with(matcher, |pattern| Pattern::of(pattern).map(Arc::new))
    }

    fn with(
        matcher: &tributary_promql::Matcher,
        compile: impl FnOnce(&Syntax) -> Result<Arc<Pattern>, BadPattern>,
    ) -> Result<Self, BadPattern> {
        let (op, test) = match &matcher.condition {
            Condition::Equal(text) => (MatchOp::Equal, Test::Text(text.clone())),
            Condition::NotEqual(text) => (MatchOp::NotEqual, Test::Text(text.clone())),
            Condition::Matches(pattern) => (MatchOp::Regex, Test::Pattern(compile(pattern)?)),
            Condition::MatchesNot(pattern) => (MatchOp::NotRegex, Test::Pattern(compile(pattern)?)),
        };
        Ok(Self { name: matcher.name.clone(), op, test })
    }

    /// The label it looks at.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it compares.
    pub fn op(&self) -> MatchOp {
        self.op
    }

    /// The text or regular expression it compares with.
    pub fn value(&self) -> &str {
        match &self.test {
            Test::Text(text) => text,
            Test::Pattern(pattern) => pattern.as_str(),
        }
    }

    /// True where a label with this value matches; the empty text stands for no label.
    pub fn matches(&self, value: &str) -> bool {
        self.test_holds(value) != self.is_negative()
    }

    /// True for `!=` and `!~`.
    pub(crate) fn is_negative(&self) -> bool {
        matches!(self.op, MatchOp::NotEqual | MatchOp::NotRegex)
    }

    /// Whether the value is the text or matches the expression, negation aside.
    pub(crate) fn test_holds(&self, value: &str) -> bool {
        match &self.test {
            Test::Text(text) => text == value,
            Test::Pattern(pattern) => pattern.is_match(value),
        }
    }

    /// The only values for which the test can hold, where they are few and known.
    pub(crate) fn test_values(&self) -> Option<&[String]> {
        match &self.test {
            Test::Text(text) => Some(std::slice::from_ref(text)),
            Test::Pattern(pattern) => pattern.values(),
        }
    }

    /// A text that every value begins with for which the test can hold.
    pub(crate) fn test_prefix(&self) -> &str {
        match &self.test {
            Test::Text(text) => text,
            Test::Pattern(pattern) => pattern.prefix(),
        }
    }
}

impl TryFrom<&tributary_promql::Matcher> for Matcher {
    type Error = BadPattern;

    fn try_from(matcher: &tributary_promql::Matcher) -> Result<Self, BadPattern> {
        Self::of(matcher)
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.op, self.value()) == (&other.name, other.op, other.value())
    }
}

impl Eq for Matcher {}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{:?}", self.name, self.op.as_str(), self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negations_are_the_opposite_for_every_value() {
        let pairs = [(MatchOp::Equal, MatchOp::NotEqual), (MatchOp::Regex, MatchOp::NotRegex)];
        for (yes, no) in pairs {
            for text in ["", "a", "a|b", "a.*", "b+"] {
                let yes = Matcher::new("x", yes, text).unwrap();
                let no = Matcher::new("x", no, text).unwrap();
                for value in ["", "a", "b", "ab", "a|b", "bbb"] {
                    assert_ne!(yes.matches(value), no.matches(value), "{yes} on {value}");
                }
            }
        }
    }

    #[test]
    fn a_parsed_selector_gives_the_same_matchers() {
        let options = tributary_promql::Options::default();
        let text = r#"{a="x", b!="y", c=~"h.*|up", d!~"[0-9]+"}"#;
        let parsed = tributary_promql::parse_selector(text, &options).unwrap();
        let made: Vec<Matcher> = parsed.iter().map(|m| m.try_into().unwrap()).collect();
        let expected = [
            ("a", MatchOp::Equal, "x"),
            ("b", MatchOp::NotEqual, "y"),
            ("c", MatchOp::Regex, "h.*|up"),
            ("d", MatchOp::NotRegex, "[0-9]+"),
        ];
        let expected = expected.map(|(name, op, value)| Matcher::new(name, op, value).unwrap());
        assert_eq!(made, expected);
        for (made, parsed) in made.iter().zip(&parsed) {
            assert_eq!(made.matches(""), parsed.matches_empty(), "{made}");
        }
        assert!(made[2].matches("host") && made[3].matches("x7") && !made[3].matches("7"));
    }

    #[test]
    fn a_bad_expression_names_itself() {
        let error = Matcher::new("x", MatchOp::Regex, "a(b").unwrap_err();
        assert!(error.to_string().contains("a(b"), "{error}");
        assert!(Matcher::new("x", MatchOp::Equal, "a(b").is_ok());
    }
}
