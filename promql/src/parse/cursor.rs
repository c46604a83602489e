//! A place in a text: the token ahead, and everything an error needs. Looks at most one token ahead,
//! and only when a decision hangs on it, because an error in the next token must not come before
//! one in what was already read.

use crate::error::ParseError;
use crate::expr::Expr;
use crate::features::Options;
use crate::lex::Lexer;
use crate::span::Span;
use crate::token::{Kind, Token};

/// Why reading ended.
#[derive(Debug)]
pub(super) enum Fault {
    /// The token ahead fits nowhere. What was expected instead, the innermost construct that has
    /// words for it will say.
    Unexpected,
    /// Said already.
    Refused(Box<ParseError>),
}

pub(super) type Parsed<T> = Result<T, Fault>;

/// A tree and its height.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) expr: Expr,
    pub(super) height: usize,
}

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) options: &'a Options,
    lexer: Lexer<'a>,
    /// The token ahead, once looked at.
    ahead: Option<Token>,
    /// The last token cut: the one ahead or the last one taken. Unexpected tokens are named by it.
    last_cut: Token,
    /// The end of the last token taken.
    pub(super) taken_end: usize,
    nesting: usize,
    /// Size of all regular expressions so far.
    patterns_size: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of a query or a selector.
    pub(super) fn of_query(text: &'a str, options: &'a Options) -> Result<Self, ParseError> {
        Self::new(text, options, Lexer::of_query(text))
    }

    /// At the start of the description of a series.
    pub(super) fn of_series(text: &'a str, options: &'a Options) -> Result<Self, ParseError> {
        Self::new(text, options, Lexer::of_series(text))
    }

    fn new(text: &'a str, options: &'a Options, lexer: Lexer<'a>) -> Result<Self, ParseError> {
        let max_bytes = options.limits.max_bytes;
        if text.len() > max_bytes {
            let message = format!("{} bytes of text, at most {max_bytes} are allowed", text.len());
            return Err(ParseError::limit(text, Span::default(), message));
        }
        let last_cut = Token { kind: Kind::End, span: Span::default() };
        Ok(Self {
            text,
            options,
            lexer,
            ahead: None,
            last_cut,
            taken_end: 0,
            nesting: 0,
            patterns_size: 0,
        })
    }

    /// The kind of the token ahead.
    pub(super) fn peek(&mut self) -> Parsed<Kind> {
        Ok(self.peek_token()?.kind)
    }

    /// The token ahead.
    pub(super) fn peek_token(&mut self) -> Parsed<Token> {
        if let Some(token) = self.ahead {
            return Ok(token);
        }
        match self.lexer.next() {
            Ok(token) => {
                self.ahead = Some(token);
                self.last_cut = token;
                Ok(token)
            }
            Err(fault) => Err(self.refused(Span::new(fault.at, self.text.len()), fault.message)),
        }
    }

    /// Takes the token ahead, whatever it is.
    pub(super) fn take(&mut self) -> Parsed<Token> {
        let token = self.peek_token()?;
        self.ahead = None;
        self.taken_end = token.span.end;
        Ok(token)
    }

    /// Takes the token ahead if it is of this kind.
    pub(super) fn take_if(&mut self, kind: Kind) -> Parsed<bool> {
        let fits = self.peek()? == kind;
        if fits {
            self.take()?;
        }
        Ok(fits)
    }

    /// Takes the token ahead, which must be of this kind.
    pub(super) fn expect(&mut self, kind: Kind) -> Parsed<Token> {
        if self.peek()? == kind { self.take() } else { Err(Fault::Unexpected) }
    }

    /// The text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'a str {
        token.text(self.text)
    }

    /// Gives an unexpected token inside `result` the words of the construct it was met in.
    pub(super) fn within<T>(&self, context: &str, expected: &str, result: Parsed<T>) -> Parsed<T> {
        result.map_err(|fault| match fault {
            Fault::Unexpected => self.unexpected(context, expected),
            Fault::Refused(_) => fault,
        })
    }

    /// The token ahead fits nowhere in this construct.
    pub(super) fn unexpected(&self, context: &str, expected: &str) -> Fault {
        Fault::Refused(Box::new(self.unexpected_token(context, expected)))
    }

    fn unexpected_token(&self, context: &str, expected: &str) -> ParseError {
        let mut message = format!("unexpected {}", self.last_cut.described(self.text));
        if !context.is_empty() {
            message.push_str(" in ");
            message.push_str(context);
        }
        if !expected.is_empty() {
            message.push_str(", expected ");
            message.push_str(expected);
        }
        ParseError::language(self.text, self.last_cut.span, message)
    }

    /// A broken rule of the language.
    pub(super) fn refused(&self, span: Span, message: impl Into<String>) -> Fault {
        Fault::Refused(Box::new(ParseError::language(self.text, span, message)))
    }

    /// Goes beyond a limit of ours.
    pub(super) fn beyond_limit(&self, span: Span, message: impl Into<String>) -> Fault {
        Fault::Refused(Box::new(ParseError::limit(self.text, span, message)))
    }

    /// Turns what was read into an answer.
    pub(super) fn finish<T>(&self, parsed: Parsed<T>) -> Result<T, ParseError> {
        parsed.map_err(|fault| match fault {
            Fault::Refused(error) => *error,
            Fault::Unexpected => self.unexpected_token("", ""),
        })
    }

    /// Reads something inside what is being read now.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let most = self.options.limits.max_nesting;
        if self.nesting == most {
            let message = format!("expressions nest more than {most} levels deep");
            return Err(self.beyond_limit(self.last_cut.span, message));
        }
        self.nesting += 1;
        let parsed = read(self)?;
        self.nesting -= 1;
        Ok(parsed)
    }

    /// Counts a regular expression, which costs time and memory wherever the query is evaluated.
    pub(super) fn count_pattern(&mut self, span: Span, size: usize) -> Parsed<()> {
        let most = self.options.limits.max_patterns_size;
        self.patterns_size = self.patterns_size.saturating_add(size);
        if self.patterns_size > most {
            let message = format!(
                "regular expressions too large together: characters and classes, repetitions \
                 written out, at most {most} are allowed"
            );
            return Err(self.beyond_limit(span, message));
        }
        Ok(())
    }

    /// The height of a tree on top of one that is `below` high.
    pub(super) fn above(&self, below: usize) -> Parsed<usize> {
        let most = self.options.limits.max_height;
        if below >= most {
            let message = format!("operators and calls stack more than {most} levels high");
            return Err(self.beyond_limit(self.last_cut.span, message));
        }
        Ok(below + 1)
    }
}
