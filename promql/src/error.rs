//! Why a text was refused: one error, the first, with its place. The words are Prometheus' own
//! wherever Prometheus refuses the text too.

use thiserror::Error;

use crate::span::{LineColumn, Span};

/// Whose rule a text broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A rule of the language: Prometheus refuses the text in the same words.
    Language,
    /// A limit of ours, which the message names.
    Limit,
}

/// The first thing wrong with a text. Prints as Prometheus does: `1:6: parse error: …`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: parse error: {message}", self.place())]
pub struct ParseError {
    /// Whose rule was broken.
    pub kind: ErrorKind,
    /// The bytes it is about.
    pub span: Span,
    /// What is wrong, without the place.
    pub message: String,
    /// The place for people; none in an empty text.
    pub at: Option<LineColumn>,
}

impl ParseError {
    /// A broken rule of the language.
    pub(crate) fn language(text: &str, span: Span, message: impl Into<String>) -> Self {
        let at = LineColumn::of(text, span.start);
        Self { kind: ErrorKind::Language, span, message: message.into(), at }
    }

    /// A limit of ours that the text goes beyond.
    pub(crate) fn limit(text: &str, span: Span, message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Limit, ..Self::language(text, span, message) }
    }

    /// The place as it is printed.
    fn place(&self) -> String {
        self.at.map_or_else(|| "unknown position".to_owned(), |at| at.to_string())
    }
}
