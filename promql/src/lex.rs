//! Cuts a text into tokens, on demand. What a character means depends on where it stands: inside
//! braces every word is a label name, inside brackets durations are expected, and the values of a
//! series have a language of their own. Strings and numbers are cut in `lex/`; whether the tokens
//! make sense together is the parser's to say.

mod number;
mod string;

use crate::op::BinaryOp;
use crate::quote::quoted_char;
use crate::span::Span;
use crate::token::{Keyword, Kind, Token, kind_of_duration_word, kind_of_word};

/// A text that is no token, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexFault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

pub(crate) type Lexed = Result<Token, LexFault>;

/// What comes next outside of braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// An expression, or the name and labels of a series.
    Statement,
    /// A duration, just after an opening bracket.
    Duration,
    /// The values of a series.
    Values,
}

/// A text and how far it is cut.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    mode: Mode,
    /// The text describes a series: values follow its labels.
    is_series: bool,
    open_parens: usize,
    brace_open: bool,
    bracket_open: bool,
    /// A colon came since the bracket was opened.
    colon_seen: bool,
    /// A number came just after some bracket. Prometheus never forgets it, so neither does this.
    duration_seen: bool,
}

impl<'a> Lexer<'a> {
    /// Cuts an expression or a selector.
    pub(crate) fn of_query(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            mode: Mode::Statement,
            is_series: false,
            open_parens: 0,
            brace_open: false,
            bracket_open: false,
            colon_seen: false,
            duration_seen: false,
        }
    }

    /// Cuts the description of a series: its labels, then its values.
    pub(crate) fn of_series(text: &'a str) -> Self {
        Self { is_series: true, ..Self::of_query(text) }
    }

    /// The next token. After the end, the end again.
    pub(crate) fn next(&mut self) -> Lexed {
        if self.brace_open {
            self.skip_space_and_comments();
            return self.inside_braces();
        }
        match self.mode {
            Mode::Statement => {
                self.skip_space_and_comments();
                self.statement()
            }
            Mode::Duration => {
                self.skip_space();
                self.duration()
            }
            Mode::Values => self.value(),
        }
    }

    fn statement(&mut self) -> Lexed {
        let start = self.at;
        let Some(char) = self.bump() else {
            return self.end(start);
        };
        let kind = match char {
            ',' => Kind::Comma,
            '*' => Kind::Operator(BinaryOp::Mul),
            '/' => Kind::Operator(BinaryOp::Div),
            '%' => Kind::Operator(BinaryOp::Mod),
            '+' => Kind::Operator(BinaryOp::Add),
            '-' => Kind::Operator(BinaryOp::Sub),
            '^' => Kind::Operator(BinaryOp::Pow),
            '@' => Kind::At,
            '=' if self.take(b"=") => Kind::Operator(BinaryOp::Equal),
            '=' if self.peek() == Some('~') => {
                return fault(start, "unexpected character after '=': '~'");
            }
            '=' => Kind::Assign,
            '!' => match self.bump() {
                Some('=') => Kind::Operator(BinaryOp::NotEqual),
                other => {
                    let other = quoted_char(other);
                    return fault(start, format!("unexpected character after '!': {other}"));
                }
            },
            '<' if self.take(b"=") => Kind::Operator(BinaryOp::LessOrEqual),
            '<' if self.take(b"/") => Kind::Operator(BinaryOp::TrimUpper),
            '<' => Kind::Operator(BinaryOp::Less),
            '>' if self.take(b"=") => Kind::Operator(BinaryOp::GreaterOrEqual),
            '>' if self.take(b"/") => Kind::Operator(BinaryOp::TrimLower),
            '>' => Kind::Operator(BinaryOp::Greater),
            '0'..='9' => return self.number_or_duration(start),
            '.' if self.peek_is(|byte| byte.is_ascii_digit()) => {
                return self.number_or_duration(start);
            }
            '"' | '\'' | '`' => return self.string(start, char),
            ':' | '_' | 'a'..='z' | 'A'..='Z' if self.bracket_open => {
                return self.word_in_bracket(start, char);
            }
            ':' | '_' | 'a'..='z' | 'A'..='Z' => return Ok(self.word(start)),
            '(' => self.left_paren(),
            ')' => self.right_paren()?,
            '{' => {
                self.brace_open = true;
                Kind::LeftBrace
            }
            '[' if self.bracket_open => return fault(start, "unexpected left bracket '['"),
            '[' => {
                self.bracket_open = true;
                self.colon_seen = false;
                self.mode = Mode::Duration;
                Kind::LeftBracket
            }
            ']' if !self.bracket_open => return fault(start, "unexpected right bracket ']'"),
            ']' => {
                self.bracket_open = false;
                Kind::RightBracket
            }
            other => {
                let other = quoted_char(Some(other));
                return fault(start, format!("unexpected character: {other}"));
            }
        };
        Ok(self.token(kind, start))
    }

    /// The end of the text, unless something is still open.
    fn end(&self, start: usize) -> Lexed {
        if self.open_parens > 0 {
            return fault(start, "unclosed left parenthesis");
        }
        if self.bracket_open {
            return fault(start, "unclosed left bracket");
        }
        Ok(self.token(Kind::End, start))
    }

    fn left_paren(&mut self) -> Kind {
        self.open_parens += 1;
        Kind::LeftParen
    }

    fn right_paren(&mut self) -> Result<Kind, LexFault> {
        match self.open_parens.checked_sub(1) {
            Some(open_parens) => {
                self.open_parens = open_parens;
                Ok(Kind::RightParen)
            }
            // Prometheus places this one after the parenthesis.
            None => fault(self.at, "unexpected right parenthesis ')'"),
        }
    }

    /// A keyword or an identifier.
    fn word(&mut self, start: usize) -> Token {
        self.take_while(|byte| is_word_byte(byte) || byte == b':');
        let mut kind = kind_of_word(&self.text[start..self.at]);
        // These three came late to the language. As metric names they stay usable: only with a
        // parenthesis after them are they keywords.
        if let Kind::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight) = kind
            && !self.text[self.at..].trim_start_matches(is_space).starts_with('(')
        {
            kind = Kind::Identifier;
        }
        if self.is_series {
            let labels_follow = self.peek() == Some('{');
            self.mode = if labels_follow { Mode::Statement } else { Mode::Values };
        }
        self.token(kind, start)
    }

    /// A colon or a word after a duration in brackets.
    fn word_in_bracket(&mut self, start: usize, first: char) -> Lexed {
        if first == ':' {
            if self.colon_seen {
                return fault(start, "unexpected colon ':'");
            }
            self.colon_seen = true;
            return Ok(self.token(Kind::Colon, start));
        }
        self.duration_word(start, first).ok_or_else(|| LexFault {
            at: start,
            message: format!("unexpected character: {}, expected ':'", quoted_char(Some(first))),
        })
    }

    /// `step`, `range`, `max_of` or `min_of`.
    fn duration_word(&mut self, start: usize, first: char) -> Option<Token> {
        if !matches!(first, 's' | 'S' | 'r' | 'R' | 'm' | 'M') {
            return None;
        }
        self.take_while(|byte| byte == b'_' || byte.is_ascii_alphabetic());
        let kind = kind_of_duration_word(&self.text[start..self.at])?;
        Some(self.token(kind, start))
    }

    /// The first thing after an opening bracket, up to and including the first number.
    fn duration(&mut self) -> Lexed {
        let start = self.at;
        let Some(char) = self.bump() else {
            return fault(start, "unexpected end of input in duration expression");
        };
        let kind = match char {
            ']' => {
                self.bracket_open = false;
                self.colon_seen = false;
                self.mode = Mode::Statement;
                Kind::RightBracket
            }
            // Prometheus places these two after the colon.
            ':' if !self.duration_seen => {
                let message = "unexpected colon before duration in duration expression";
                return fault(self.at, message);
            }
            ':' if self.colon_seen => {
                return fault(self.at, "unexpected repeated colon in duration expression");
            }
            ':' => {
                self.colon_seen = true;
                Kind::Colon
            }
            '(' => self.left_paren(),
            ')' => self.right_paren()?,
            '+' => Kind::Operator(BinaryOp::Add),
            '-' => Kind::Operator(BinaryOp::Sub),
            '*' => Kind::Operator(BinaryOp::Mul),
            '/' => Kind::Operator(BinaryOp::Div),
            '%' => Kind::Operator(BinaryOp::Mod),
            '^' => Kind::Operator(BinaryOp::Pow),
            ',' => Kind::Comma,
            char if char.is_ascii_digit()
                || (char == '.' && self.peek_is(|byte| byte.is_ascii_digit())) =>
            {
                self.duration_seen = true;
                self.mode = Mode::Statement;
                return self.number_or_duration(start);
            }
            other => {
                return self.duration_word(start, other).ok_or_else(|| LexFault {
                    at: start,
                    message: format!(
                        "unexpected character in duration expression: {}",
                        quoted_char(Some(other))
                    ),
                });
            }
        };
        Ok(self.token(kind, start))
    }

    /// Names and matchers of a selector. Keywords are plain words here.
    fn inside_braces(&mut self) -> Lexed {
        let start = self.at;
        let Some(char) = self.bump() else {
            return fault(start, "unexpected end of input inside braces");
        };
        let kind = match char {
            '_' | 'a'..='z' | 'A'..='Z' => {
                self.take_while(is_word_byte);
                Kind::Identifier
            }
            ',' => Kind::Comma,
            '"' | '\'' | '`' => return self.string(start, char),
            '=' if self.take(b"~") => Kind::MatchRegex,
            '=' => Kind::Assign,
            '!' => match self.bump() {
                Some('~') => Kind::NotMatchRegex,
                Some('=') => Kind::Operator(BinaryOp::NotEqual),
                other => {
                    let other = quoted_char(other);
                    let message = format!("unexpected character after '!' inside braces: {other}");
                    return fault(start, message);
                }
            },
            '{' => return fault(start, "unexpected left brace '{'"),
            '}' => {
                self.brace_open = false;
                if self.is_series {
                    self.mode = Mode::Values;
                }
                Kind::RightBrace
            }
            other => {
                let other = quoted_char(Some(other));
                return fault(start, format!("unexpected character inside braces: {other}"));
            }
        };
        Ok(self.token(kind, start))
    }

    /// The values of a series, where space counts.
    fn value(&mut self) -> Lexed {
        let start = self.at;
        let Some(char) = self.bump() else {
            return self.end(start);
        };
        let kind = match char {
            '{' if self.peek() == Some('{') => {
                let Some(length) = self.text[start..].find("}}") else {
                    return fault(start, "unterminated histogram description");
                };
                self.at = start + length + 2;
                Kind::Histogram
            }
            char if is_space(char) => {
                let space = self.token(Kind::Space, start);
                self.skip_space();
                return Ok(space);
            }
            '+' => Kind::Operator(BinaryOp::Add),
            '-' => Kind::Operator(BinaryOp::Sub),
            'x' => Kind::Times,
            '_' => Kind::Blank,
            '0'..='9' => return self.series_number(start),
            '.' if self.peek_is(|byte| byte.is_ascii_digit()) => return self.series_number(start),
            'a'..='z' | 'A'..='Z' => return Ok(self.word(start)),
            other => {
                let other = quoted_char(Some(other));
                return fault(start, format!("unexpected character in series sequence: {other}"));
            }
        };
        Ok(self.token(kind, start))
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token { kind, span: Span::new(start, self.at) }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn peek_is(&self, wanted: impl Fn(u8) -> bool) -> bool {
        self.text.as_bytes().get(self.at).is_some_and(|byte| wanted(*byte))
    }

    fn bump(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    /// Takes the next byte if it is one of these, all of them ASCII.
    fn take(&mut self, wanted: &[u8]) -> bool {
        let taken = self.peek_is(|byte| wanted.contains(&byte));
        self.at += usize::from(taken);
        taken
    }

    /// Takes bytes as long as they are wanted, all of them ASCII.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len());
    }

    fn skip_space(&mut self) {
        self.take_while(|byte| is_space(char::from(byte)));
    }

    fn skip_space_and_comments(&mut self) {
        loop {
            self.skip_space();
            if !self.take(b"#") {
                return;
            }
            self.take_while(|byte| !matches!(byte, b'\r' | b'\n'));
        }
    }
}

fn fault<T>(at: usize, message: impl Into<String>) -> Result<T, LexFault> {
    Err(LexFault { at, message: message.into() })
}

pub(crate) fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r')
}

/// A letter, a digit or an underscore.
fn is_word_byte(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}
