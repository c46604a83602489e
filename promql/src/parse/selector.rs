//! Selectors: a metric's name and matchers on labels.

use super::cursor::{Cursor, Fault, Parsed};
use crate::expr::VectorSelector;
use crate::matcher::{Condition, METRIC_NAME, Matcher};
use crate::op::BinaryOp;
use crate::pattern::{Pattern, PatternError};
use crate::quote::{quoted, unquoted};
use crate::span::Span;
use crate::token::{Kind, Token};

const CONTEXT: &str = "label matching";

impl Cursor<'_> {
    /// A selector and nothing around it.
    pub(super) fn lone_selector(&mut self) -> Parsed<VectorSelector> {
        match self.peek()? {
            Kind::LeftBrace => self.selector(None),
            kind if kind.may_name_a_metric() => {
                let name = self.take()?;
                self.selector(Some(name))
            }
            _ => Err(Fault::Unexpected),
        }
    }

    /// The rest of a selector whose name is read, if it has one.
    pub(super) fn selector(&mut self, name: Option<Token>) -> Parsed<VectorSelector> {
        let ahead = self.peek_token()?;
        let start = name.unwrap_or(ahead).span.start;
        let mut matchers =
            if ahead.kind == Kind::LeftBrace { self.matchers()? } else { Vec::new() };
        let name = name.map(|name| self.text_of(name).to_owned());
        // Last, where the check for a second name expects it.
        matchers.extend(name.as_deref().map(Matcher::named));
        Ok(VectorSelector {
            name,
            matchers,
            offset: None,
            at: None,
            extension: None,
            span: Span::new(start, self.taken_end),
        })
    }

    fn matchers(&mut self) -> Parsed<Vec<Matcher>> {
        self.expect(Kind::LeftBrace)?;
        let mut matchers = Vec::new();
        while !self.take_if(Kind::RightBrace)? {
            let most = self.options.limits.max_matchers;
            let start = self.taken_end;
            let matcher = self.matcher();
            matchers.push(self.within(CONTEXT, "identifier or \"}\"", matcher)?);
            if matchers.len() > most {
                let message = format!("a selector has more than {most} matchers");
                return Err(self.beyond_limit(Span::new(start, self.taken_end), message));
            }
            match self.peek()? {
                Kind::Comma => {
                    self.take()?;
                }
                Kind::RightBrace => {}
                _ => return Err(self.unexpected(CONTEXT, "\",\" or \"}\"")),
            }
        }
        Ok(matchers)
    }

    fn matcher(&mut self) -> Parsed<Matcher> {
        match self.peek()? {
            Kind::Identifier => {
                let name = self.take()?;
                let text = self.text_of(name).to_owned();
                if !is_match_operator(self.peek()?) {
                    return Err(self.unexpected(CONTEXT, "label matching operator"));
                }
                self.condition(name, text)
            }
            Kind::String => {
                let name = self.take()?;
                let text = self.string_text(name)?;
                if is_match_operator(self.peek()?) {
                    return self.condition(name, text);
                }
                // A lone string is the metric's name.
                let condition = Condition::Equal(text);
                Ok(Matcher { name: METRIC_NAME.to_owned(), condition })
            }
            _ => Err(Fault::Unexpected),
        }
    }

    /// The operator and the value after a label's name.
    fn condition(&mut self, label: Token, name: String) -> Parsed<Matcher> {
        let operator = self.take()?.kind;
        let literal = self.expect(Kind::String);
        let literal = self.within(CONTEXT, "string", literal)?;
        let value = self.string_text(literal)?;
        let span = label.span.to(literal.span);
        let condition = match operator {
            Kind::Assign => Condition::Equal(value),
            Kind::MatchRegex => Condition::Matches(self.pattern(&value, span)?),
            Kind::NotMatchRegex => Condition::MatchesNot(self.pattern(&value, span)?),
            _ => Condition::NotEqual(value),
        };
        Ok(Matcher { name, condition })
    }

    fn pattern(&mut self, value: &str, span: Span) -> Parsed<Pattern> {
        let pattern = Pattern::parse(value, self.options.limits.max_pattern_size);
        let pattern = pattern.map_err(|error| match error {
            PatternError::Syntax { .. } => self.refused(span, error.to_string()),
            PatternError::TooLarge { .. } => self.beyond_limit(span, error.to_string()),
        })?;
        self.count_pattern(span, pattern.size())?;
        Ok(pattern)
    }

    /// What a string stands for, where it names a label or is a label's value. Labels are UTF-8
    /// here: a matcher on other bytes could only be a mistake.
    pub(super) fn string_text(&self, literal: Token) -> Parsed<String> {
        String::from_utf8(unquoted(self.text_of(literal))).map_err(|error| {
            let bytes = quoted(error.as_bytes());
            self.beyond_limit(literal.span, format!("labels are UTF-8, and {bytes} is not"))
        })
    }
}

fn is_match_operator(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Assign | Kind::Operator(BinaryOp::NotEqual) | Kind::MatchRegex | Kind::NotMatchRegex
    )
}
