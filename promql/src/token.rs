//! The words of the language: kinds of tokens, keywords, and how an unexpected token is described.
//! Cutting a text into tokens is `lex`'s.

use crate::op::{AggregateOp, BinaryOp};
use crate::quote::quoted;
use crate::span::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The end of the text.
    End,
    Identifier,
    /// An identifier with a colon in it, as recording rules have.
    MetricIdentifier,
    String,
    Number,
    Duration,
    /// `=`
    Assign,
    /// `=~`
    MatchRegex,
    /// `!~`
    NotMatchRegex,
    /// `@`
    At,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Comma,
    Colon,
    Operator(BinaryOp),
    Aggregator(AggregateOp),
    Keyword(Keyword),
    Preprocessor(Preprocessor),
    /// `_` in the values of a series.
    Blank,
    /// `x` in the values of a series.
    Times,
    /// Space between the values of a series.
    Space,
    /// `{{…}}` in the values of a series.
    Histogram,
}

/// A word with a meaning of its own where a modifier may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Anchored,
    Bool,
    By,
    Fill,
    FillLeft,
    FillRight,
    GroupLeft,
    GroupRight,
    Ignoring,
    Offset,
    On,
    Smoothed,
    Without,
}

/// A word that, called, stands for a property of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preprocessor {
    End,
    MaxOf,
    MinOf,
    Range,
    Start,
    Step,
}

/// The longest keyword, in bytes.
const LONGEST_KEYWORD: usize = 12;

/// The kind of a word of letters, digits, underscores and colons outside of braces.
pub(crate) fn kind_of_word(word: &str) -> Kind {
    keyword(word).unwrap_or(if word.contains(':') {
        Kind::MetricIdentifier
    } else {
        Kind::Identifier
    })
}

/// The kind of a keyword, in whatever case it is written.
fn keyword(word: &str) -> Option<Kind> {
    let mut buffer = [0; LONGEST_KEYWORD];
    let lower = buffer.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"and" => Kind::Operator(BinaryOp::And),
        b"or" => Kind::Operator(BinaryOp::Or),
        b"unless" => Kind::Operator(BinaryOp::Unless),
        b"atan2" => Kind::Operator(BinaryOp::Atan2),
        b"sum" => Kind::Aggregator(AggregateOp::Sum),
        b"avg" => Kind::Aggregator(AggregateOp::Avg),
        b"count" => Kind::Aggregator(AggregateOp::Count),
        b"min" => Kind::Aggregator(AggregateOp::Min),
        b"max" => Kind::Aggregator(AggregateOp::Max),
        b"group" => Kind::Aggregator(AggregateOp::Group),
        b"stddev" => Kind::Aggregator(AggregateOp::Stddev),
        b"stdvar" => Kind::Aggregator(AggregateOp::Stdvar),
        b"topk" => Kind::Aggregator(AggregateOp::Topk),
        b"bottomk" => Kind::Aggregator(AggregateOp::Bottomk),
        b"count_values" => Kind::Aggregator(AggregateOp::CountValues),
        b"quantile" => Kind::Aggregator(AggregateOp::Quantile),
        b"limitk" => Kind::Aggregator(AggregateOp::Limitk),
        b"limit_ratio" => Kind::Aggregator(AggregateOp::LimitRatio),
        b"offset" => Kind::Keyword(Keyword::Offset),
        b"smoothed" => Kind::Keyword(Keyword::Smoothed),
        b"anchored" => Kind::Keyword(Keyword::Anchored),
        b"by" => Kind::Keyword(Keyword::By),
        b"without" => Kind::Keyword(Keyword::Without),
        b"on" => Kind::Keyword(Keyword::On),
        b"ignoring" => Kind::Keyword(Keyword::Ignoring),
        b"group_left" => Kind::Keyword(Keyword::GroupLeft),
        b"group_right" => Kind::Keyword(Keyword::GroupRight),
        b"fill" => Kind::Keyword(Keyword::Fill),
        b"fill_left" => Kind::Keyword(Keyword::FillLeft),
        b"fill_right" => Kind::Keyword(Keyword::FillRight),
        b"bool" => Kind::Keyword(Keyword::Bool),
        b"start" => Kind::Preprocessor(Preprocessor::Start),
        b"end" => Kind::Preprocessor(Preprocessor::End),
        lower => return duration_keyword(lower).or_else(|| special_number(lower)),
    })
}

/// The words that may stand where a duration is expected.
pub(crate) fn kind_of_duration_word(word: &str) -> Option<Kind> {
    duration_keyword(&word.as_bytes().to_ascii_lowercase())
}

fn duration_keyword(lower: &[u8]) -> Option<Kind> {
    Some(Kind::Preprocessor(match lower {
        b"step" => Preprocessor::Step,
        b"range" => Preprocessor::Range,
        b"max_of" => Preprocessor::MaxOf,
        b"min_of" => Preprocessor::MinOf,
        _ => return None,
    }))
}

fn special_number(lower: &[u8]) -> Option<Kind> {
    matches!(lower, b"inf" | b"nan").then_some(Kind::Number)
}

impl Kind {
    /// A word that names a metric where an expression begins.
    pub(crate) const fn may_name_a_metric(self) -> bool {
        match self {
            Self::Identifier | Self::MetricIdentifier | Self::Aggregator(_) => true,
            Self::Preprocessor(_) => true,
            Self::Operator(op) => op.is_set_operator(),
            Self::Keyword(keyword) => !matches!(
                keyword,
                Keyword::Bool
                    | Keyword::On
                    | Keyword::Ignoring
                    | Keyword::GroupLeft
                    | Keyword::GroupRight
            ),
            _ => false,
        }
    }

    /// A word that names a label in a list of labels.
    pub(crate) const fn may_name_a_label(self) -> bool {
        match self {
            Self::Identifier | Self::MetricIdentifier | Self::Aggregator(_) => true,
            Self::Preprocessor(_) => true,
            Self::Operator(op) => op.is_set_operator() || matches!(op, BinaryOp::Atan2),
            Self::Keyword(keyword) => !matches!(keyword, Keyword::Without),
            _ => false,
        }
    }

    /// Begins an item of the values of a series.
    pub(crate) const fn begins_series_item(self) -> bool {
        matches!(
            self,
            Self::Blank
                | Self::Histogram
                | Self::Identifier
                | Self::Number
                | Self::Duration
                | Self::Operator(BinaryOp::Add | BinaryOp::Sub)
        )
    }

    /// Begins an expression.
    pub(crate) const fn begins_expression(self) -> bool {
        self.may_name_a_metric()
            || matches!(
                self,
                Self::Number
                    | Self::Duration
                    | Self::String
                    | Self::LeftParen
                    | Self::LeftBrace
                    | Self::Operator(BinaryOp::Add | BinaryOp::Sub)
            )
    }
}

/// One token: what it is and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

impl Token {
    /// The token's own text.
    pub(crate) fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.span.start..self.span.end]
    }

    /// The token as an error message names it.
    pub(crate) fn described(&self, source: &str) -> String {
        let text = self.text(source);
        match self.kind {
            Kind::End => "end of input".to_owned(),
            Kind::Identifier => format!("identifier {}", quoted(text.as_bytes())),
            Kind::MetricIdentifier => format!("metric identifier {}", quoted(text.as_bytes())),
            Kind::String => format!("string {}", shortened(text)),
            Kind::Number => format!("number {}", shortened(text)),
            Kind::Duration => format!("duration {}", shortened(text)),
            Kind::Keyword(_) => format!("<{text}>"),
            Kind::Operator(_) | Kind::MatchRegex | Kind::NotMatchRegex | Kind::At => {
                format!("<op:{text}>")
            }
            Kind::Aggregator(_) => format!("<aggr:{text}>"),
            Kind::Histogram => "\"{{\"".to_owned(),
            Kind::Assign
            | Kind::LeftParen
            | Kind::RightParen
            | Kind::LeftBrace
            | Kind::RightBrace
            | Kind::LeftBracket
            | Kind::RightBracket
            | Kind::Comma
            | Kind::Colon
            | Kind::Preprocessor(_)
            | Kind::Blank
            | Kind::Times
            | Kind::Space => shortened(text),
        }
    }
}

/// A text in quotes, cut after ten characters.
fn shortened(text: &str) -> String {
    if text.len() <= 10 {
        return quoted(text.as_bytes());
    }
    let end = text.char_indices().nth(10).map_or(text.len(), |(at, _)| at);
    format!("{}...", quoted(&text.as_bytes()[..end]))
}
